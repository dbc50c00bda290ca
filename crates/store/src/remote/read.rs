//! Reads of a remote bucket: what HTTP's byte ranges cannot express, and what servers make of them.

use std::ops::Range;

use bytes::Bytes;
use futures::StreamExt;
use object_store::{GetOptions, GetResult};

use super::bucket::{Bucket, path};
use super::failure::Asked;
use super::transport::Exchange;
use super::version::{conditions, is_other, meta};
use crate::location::StoreKind;
use crate::traits::{check_order, resolve_range, too_short};
use crate::{Body, Error, ErrorKind, Get, GetRange, Got, Meta, Result};

/// What a read yields before it becomes a [`Got`].
pub(super) type Parts = (Meta, Range<u64>, Vec<Bytes>);

impl Bucket {
    /// Reads an object, or a range of it.
    pub(super) async fn read_object(&self, key: &str, options: &Get) -> Result<Got> {
        if let Some(GetRange::Bounded(range)) = &options.range {
            check_order(range)?;
        }
        match &options.range {
            Some(GetRange::Bounded(range)) if range.is_empty() => self.empty(key, options).await,
            Some(GetRange::Prefix(0) | GetRange::Suffix(0)) => self.empty(key, options).await,
            Some(GetRange::Suffix(n)) if self.spec.kind == StoreKind::Azure => {
                self.suffix_by_size(key, options, *n).await
            }
            _ => self.fetch(key, options).await,
        }
    }

    /// Reads with `options`, whose range is not empty; `None` if the object is unchanged.
    pub(super) async fn read(
        &self,
        key: &str,
        options: GetOptions,
        most: u64,
    ) -> Result<Option<Parts>, (Error, Exchange)> {
        let path = path(key).map_err(|e| (e, Exchange::default()))?;
        let wanted = match &options.range {
            Some(object_store::GetRange::Bounded(range)) => Some(range.clone()),
            _ => None,
        };
        let body = self.ask(Asked::Read, key, |handles| async move {
            let result = match handles.objects.get_opts(&path, options).await {
                Err(object_store::Error::NotModified { .. }) => return Ok(None),
                other => other?,
            };
            let (meta, range) = (meta(&result.meta), result.range.clone());
            // A truncated or oversized body is not worth reading; the caller sees why.
            let clipped = |wanted: Range<u64>| wanted.start..wanted.end.min(meta.size);
            let useless = wanted.is_some_and(|wanted| clipped(wanted) != range) || meta.size > most;
            let segments = if useless {
                Vec::new()
            } else {
                collect(result).await?
            };
            Ok(Some((meta, range, segments)))
        });
        body.await
    }

    /// The object's metadata under the conditions of `options`; `None` if it is unchanged.
    pub(super) async fn inspect(&self, key: &str, options: &Get) -> Result<Option<Meta>> {
        let request = GetOptions {
            head: true,
            ..conditions(options)
        };
        match self.read_head(key, request).await {
            Ok(Some(meta)) if is_other(options, &meta) => Err(self.changed(key)),
            Ok(meta) => Ok(meta),
            Err((e, _)) if e.is_not_found() => self.confirm_absence(key, e).await,
            Err((e, _)) => Err(e),
        }
    }

    async fn read_head(
        &self,
        key: &str,
        options: GetOptions,
    ) -> Result<Option<Meta>, (Error, Exchange)> {
        let path = path(key).map_err(|e| (e, Exchange::default()))?;
        self.ask(Asked::Read, key, |handles| async move {
            match handles.objects.get_opts(&path, options).await {
                Err(object_store::Error::NotModified { .. }) => Ok(None),
                other => Ok(Some(meta(&other?.meta))),
            }
        })
        .await
    }

    /// A `HEAD` has no error document, so on S3 and Google its 404 may also mean that the bucket
    /// is missing. Unless the bucket was seen before, a small `GET` asks again and is told.
    async fn confirm_absence(&self, key: &str, e: Error) -> Result<Option<Meta>> {
        let vague = matches!(self.spec.kind, StoreKind::S3 | StoreKind::Google);
        if !vague || self.client()?.bucket_seen() {
            return Err(e);
        }
        let first = GetOptions {
            range: Some((0..1).into()),
            ..GetOptions::default()
        };
        match self.read(key, first, u64::MAX).await {
            Err((e, _)) => Err(e),
            // Somebody has written the object since.
            Ok(found) => Ok(found.map(|(meta, ..)| meta)),
        }
    }

    async fn fetch(&self, key: &str, options: &Get) -> Result<Got> {
        let client = self.client()?;
        if options.range.is_some() && client.ignores_ranges() {
            return self.fetch_whole(key, options).await;
        }
        let range = options.range.as_ref().map(|range| match range {
            GetRange::Bounded(range) => object_store::GetRange::Bounded(range.clone()),
            GetRange::Prefix(n) => object_store::GetRange::Bounded(0..*n),
            GetRange::Suffix(n) => object_store::GetRange::Suffix(*n),
        });
        let request = GetOptions {
            range,
            ..conditions(options)
        };
        match self.read(key, request, u64::MAX).await {
            Ok(parts) => self.got(key, options, parts),
            Err((_, seen))
                if self.spec.kind == StoreKind::Http
                    && options.range.is_some()
                    && seen.status == Some(200) =>
            {
                client.note_ignored_range();
                self.fetch_whole(key, options).await
            }
            // A prefix or suffix of an empty object cannot be satisfied, says HTTP, and servers
            // answer 416 or the whole of nothing; we say it is empty.
            Err((e, seen)) if matches!(seen.status, Some(200 | 416)) => match &options.range {
                Some(GetRange::Prefix(_) | GetRange::Suffix(_)) => {
                    self.empty(key, options).await.map_err(|_| e)
                }
                _ => Err(e),
            },
            Err((e, _)) => Err(e),
        }
    }

    pub(super) fn got(&self, key: &str, options: &Get, parts: Option<Parts>) -> Result<Got> {
        let Some((meta, range, segments)) = parts else {
            return Ok(Got::unchanged(unchanged(options)));
        };
        if is_other(options, &meta) {
            return Err(self.changed(key));
        }
        if let Some(GetRange::Bounded(wanted)) = &options.range
            && *wanted != range
        {
            return Err(too_short(&self.name(key), wanted, meta.size));
        }
        let got: u64 = segments.iter().map(|segment| segment.len() as u64).sum();
        let expected = range.end - range.start;
        if got != expected {
            return Err(Error::unavailable(format!(
                "{}: the response ended after {got} of {expected} bytes",
                self.name(key)
            )));
        }
        Ok(Got {
            meta,
            range,
            body: Body::Memory(segments),
            not_modified: false,
        })
    }

    pub(super) fn changed(&self, key: &str) -> Error {
        Error::conflict(format!("{} has changed", self.name(key)))
    }

    /// A read of no bytes, which HTTP cannot express.
    async fn empty(&self, key: &str, options: &Get) -> Result<Got> {
        let Some(meta) = self.inspect(key, options).await? else {
            return Ok(Got::unchanged(unchanged(options)));
        };
        let range = resolve_range(options.range.as_ref(), meta.size, || self.name(key))?;
        if !range.is_empty() {
            return Err(Error::unavailable(format!(
                "{} was just replaced",
                self.name(key)
            )));
        }
        Ok(Got {
            meta,
            range,
            body: Body::default(),
            not_modified: false,
        })
    }

    /// Azure has no suffix ranges: learn the size, then read the range of that very state.
    async fn suffix_by_size(&self, key: &str, options: &Get, n: u64) -> Result<Got> {
        let Some(meta) = self.inspect(key, options).await? else {
            return Ok(Got::unchanged(unchanged(options)));
        };
        let range = meta.size.saturating_sub(n)..meta.size;
        if range.is_empty() {
            return Ok(Got {
                meta,
                range,
                body: Body::default(),
                not_modified: false,
            });
        }
        let pinned = Get {
            range: Some(GetRange::Bounded(range)),
            if_match: meta.etag,
            if_none_match: None,
        };
        self.fetch(key, &pinned)
            .await
            .map_err(|e| match (e.kind(), &options.if_match) {
                // The caller pinned nothing, so a change between the two requests is a reason to
                // repeat them rather than a conflict.
                (ErrorKind::Conflict, None) => {
                    Error::unavailable(format!("{} changed while it was read", self.name(key)))
                }
                _ => e,
            })
    }
}

/// What is known of an object whose ETag is still the caller's: a 304 has no size.
pub(super) fn unchanged(options: &Get) -> Meta {
    Meta {
        size: 0,
        etag: options.if_none_match.clone(),
        modified_ms: None,
    }
}

async fn collect(result: GetResult) -> object_store::Result<Vec<Bytes>> {
    let mut segments = Vec::new();
    let mut stream = result.into_stream();
    while let Some(segment) = stream.next().await {
        segments.push(segment?);
    }
    Ok(segments)
}
