//! A bucket of a remote store.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{
    GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, UpdateVersion,
};

use super::client::{self, Client, Handles, Spec};
use super::failure::{Asked, Place, explain};
use super::transport::{Exchange, observe};
use crate::key::{self, check_key, check_prefix};
use crate::location::StoreKind;
use crate::traits::{resolve_range, too_short};
use crate::{Body, Entry, Error, Get, GetRange, Got, Listing, Meta, Put, Result, Store, lock};

/// The largest object that is read whole because its server ignores byte ranges.
const MAX_WHOLE_READ: u64 = 256 << 20;

/// A bucket of a remote store; keys are full object names.
pub(crate) struct Bucket {
    spec: Arc<Spec>,
    /// The client, and the process it belongs to.
    client: Mutex<(u32, Arc<Client>)>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({})", self.spec.bucket_url)
    }
}

/// What a read yields before it becomes a [`Got`].
type Parts = (Meta, Range<u64>, Vec<Bytes>);

impl Bucket {
    pub(crate) fn open(spec: Spec) -> Result<Self> {
        let spec = Arc::new(spec);
        let client = client::client(&spec)?;
        Ok(Bucket {
            spec,
            client: Mutex::new((std::process::id(), client)),
        })
    }

    fn client(&self) -> Result<Arc<Client>> {
        let mut held = lock(&self.client);
        if held.0 != std::process::id() {
            let fresh = (std::process::id(), client::client(&self.spec)?);
            let inherited = std::mem::replace(&mut *held, fresh);
            // Dropping it could end connections that the parent process still uses.
            std::mem::forget(inherited);
        }
        Ok(Arc::clone(&held.1))
    }

    fn name(&self, key: &str) -> String {
        key::join(&self.spec.bucket_url, key)
    }

    /// Makes a request and explains its failure; also tells what the transport saw.
    async fn ask<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        asked: Asked,
        key: &str,
        request: impl FnOnce(Handles) -> F,
    ) -> Result<T, (Error, Exchange)> {
        let silent = |e: Error| (e, Exchange::default());
        let client = self.client().map_err(silent)?;
        let handles = client.handles().await.map_err(silent)?.clone();
        let (result, seen) = observe(request(handles)).await;
        let e = match result {
            // `object_store` takes a web server's 404 to a list for an empty directory; a server
            // that cannot list would then seem empty.
            Ok(_) if asked == Asked::List && seen.status == Some(404) => {
                return Err((
                    Error::not_found(format!("{} does not exist", self.name(key))),
                    seen,
                ));
            }
            Ok(value) => {
                client.see_bucket();
                return Ok(value);
            }
            Err(e) => e,
        };
        if matches!(seen.code.as_deref(), Some("NoSuchKey" | "BlobNotFound")) {
            client.see_bucket();
        }
        let place = Place {
            kind: self.spec.kind,
            asked,
            name: &self.name(key),
            bucket_url: &self.spec.bucket_url,
        };
        Err((explain(&e, &seen, &place), seen))
    }

    /// Reads with `options`, whose range is not empty; `None` if the object is unchanged.
    async fn read(
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
            let useless = wanted.is_some_and(|wanted| wanted != range) || meta.size > most;
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
    async fn inspect(&self, key: &str, options: &Get) -> Result<Option<Meta>> {
        let options = GetOptions {
            head: true,
            ..conditions(options)
        };
        match self.read_head(key, options).await {
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
            GetRange::Suffix(n) => object_store::GetRange::Suffix(*n),
        });
        let request = GetOptions {
            range,
            ..conditions(options)
        };
        match self.read(key, request, u64::MAX).await {
            Ok(parts) => self.got(key, options, parts),
            // A suffix of an empty object cannot be satisfied, says HTTP; we say it is empty.
            Err((e, seen)) if seen.status == Some(416) => match &options.range {
                Some(GetRange::Suffix(_)) => self.empty(key, options).await.map_err(|_| e),
                _ => Err(e),
            },
            Err((_, seen))
                if self.spec.kind == StoreKind::Http
                    && options.range.is_some()
                    && seen.status == Some(200) =>
            {
                client.note_ignored_range();
                self.fetch_whole(key, options).await
            }
            Err((e, _)) => Err(e),
        }
    }

    fn got(&self, key: &str, options: &Get, parts: Option<Parts>) -> Result<Got> {
        let Some((meta, range, segments)) = parts else {
            return Ok(Got::unchanged(unchanged(options)));
        };
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

    /// For servers that ignore byte ranges: reads the object whole and takes the range out.
    async fn fetch_whole(&self, key: &str, options: &Get) -> Result<Got> {
        let parts = match self.read(key, conditions(options), MAX_WHOLE_READ).await {
            Ok(Some(parts)) => parts,
            Ok(None) => return Ok(Got::unchanged(unchanged(options))),
            Err((e, _)) => return Err(e),
        };
        if parts.0.size > MAX_WHOLE_READ {
            return Err(Error::invalid(format!(
                "{} has {} bytes, and its server cannot read a part of it",
                self.name(key),
                parts.0.size
            ))
            .with_hint("use a web server that supports range requests"));
        }
        let whole = self.got(key, &Get::default(), Some(parts))?;
        let range = resolve_range(options.range.as_ref(), whole.meta.size, || self.name(key))?;
        let bytes = whole
            .body
            .into_bytes()?
            .slice(range.start as usize..range.end as usize);
        Ok(Got {
            meta: whole.meta,
            range,
            body: bytes.into(),
            not_modified: false,
        })
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
                (crate::ErrorKind::Conflict, None) => {
                    Error::unavailable(format!("{} changed while it was read", self.name(key)))
                }
                _ => e,
            })
    }

    /// Google compares generations, not ETags, on writes: find the generation of the ETag.
    async fn generation(&self, key: &str, etag: &str) -> Result<Option<String>> {
        let path = path(key)?;
        let head = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let request = |handles: Handles| async move { handles.objects.get_opts(&path, head).await };
        let found = match self.ask(Asked::Update, key, request).await {
            Ok(found) => found.meta,
            Err((e, _)) => return Err(e),
        };
        if found.e_tag.as_deref() != Some(etag) {
            return Err(Error::conflict(format!(
                "{} has changed since it was read",
                self.name(key)
            )));
        }
        Ok(found.version)
    }

    async fn list_page(
        &self,
        prefix: &str,
        page: Option<String>,
        delimiter: bool,
    ) -> Result<(Vec<Entry>, Vec<String>, Option<String>)> {
        let below = (!prefix.is_empty()).then(|| format!("{prefix}/"));
        let start = (!prefix.is_empty()).then(|| path(prefix)).transpose()?;
        let result = self.ask(Asked::List, prefix, |handles| async move {
            let Some(pages) = handles.pages else {
                let listed = list_at_once(&*handles.objects, start.as_ref(), delimiter).await?;
                return Ok((listed, None));
            };
            let options = PaginatedListOptions {
                delimiter: delimiter.then_some(Cow::Borrowed("/")),
                page_token: page,
                ..PaginatedListOptions::default()
            };
            let page = pages.list_paginated(below.as_deref(), options).await?;
            Ok((
                (page.result.objects, page.result.common_prefixes),
                page.page_token,
            ))
        });
        let ((objects, dirs), next) = result.await.map_err(|(e, _)| self.unlistable(e))?;
        // Some tools mark directories by an object `dir/`, which arrives here as `dir`: what is
        // not below the prefix is not an object of this list.
        let entries = objects
            .iter()
            .filter(|found| key::below(prefix, found.location.as_ref()).is_some())
            .map(|found| Entry {
                key: found.location.to_string(),
                meta: meta(found),
            })
            .collect();
        let names = dirs
            .iter()
            .filter_map(|dir| Some(dir.filename()?.to_owned()))
            .collect();
        Ok((entries, names, next))
    }

    /// Plain web servers cannot list; WebDAV servers can.
    fn unlistable(&self, e: Error) -> Error {
        use crate::ErrorKind::{Denied, Unavailable};
        if self.spec.kind != StoreKind::Http || matches!(e.kind(), Denied | Unavailable) {
            return e;
        }
        Error::invalid(format!("{} cannot list its files", self.spec.bucket_url)).with_hint(
            "open the array or file by its full address, or consolidate the hierarchy's metadata",
        )
    }
}

/// Lists without pages, as WebDAV does it.
async fn list_at_once(
    store: &dyn ObjectStore,
    start: Option<&Path>,
    delimiter: bool,
) -> object_store::Result<(Vec<ObjectMeta>, Vec<Path>)> {
    if delimiter {
        let listed = store.list_with_delimiter(start).await?;
        return Ok((listed.objects, listed.common_prefixes));
    }
    let mut objects = Vec::new();
    let mut stream = store.list(start);
    while let Some(object) = stream.next().await {
        objects.push(object?);
    }
    Ok((objects, Vec::new()))
}

/// The exact name of an object: `Path::from` would percent-encode some characters.
fn path(key: &str) -> Result<Path> {
    Path::parse(key).map_err(|_| Error::invalid(format!("{key:?} is not a possible object name")))
}

fn meta(found: &ObjectMeta) -> Meta {
    let millis = found.last_modified.timestamp_millis();
    Meta {
        size: found.size,
        etag: found.e_tag.clone(),
        modified_ms: (millis != 0).then_some(millis),
    }
}

fn conditions(options: &Get) -> GetOptions {
    GetOptions {
        if_match: options.if_match.clone(),
        if_none_match: options.if_none_match.clone(),
        ..GetOptions::default()
    }
}

/// What is known of an object whose ETag is still the caller's: a 304 has no size.
fn unchanged(options: &Get) -> Meta {
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

#[async_trait]
impl Store for Bucket {
    fn url(&self) -> &str {
        &self.spec.bucket_url
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        check_key(key)?;
        match &options.range {
            Some(GetRange::Bounded(range)) if range.start > range.end => {
                resolve_range(options.range.as_ref(), 0, String::new)?;
                self.fetch(key, &options).await
            }
            Some(GetRange::Bounded(range)) if range.is_empty() => self.empty(key, &options).await,
            Some(GetRange::Suffix(0)) => self.empty(key, &options).await,
            Some(GetRange::Suffix(n)) if self.spec.kind == StoreKind::Azure => {
                self.suffix_by_size(key, &options, *n).await
            }
            _ => self.fetch(key, &options).await,
        }
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        check_key(key)?;
        let (asked, mode) = match mode {
            Put::Overwrite => (Asked::Write, PutMode::Overwrite),
            Put::Create => (Asked::Write, PutMode::Create),
            Put::Update(etag) => {
                let version = match self.spec.kind {
                    StoreKind::Google => self.generation(key, &etag).await?,
                    _ => None,
                };
                (
                    Asked::Update,
                    PutMode::Update(UpdateVersion {
                        e_tag: Some(etag),
                        version,
                    }),
                )
            }
        };
        let size = value.iter().map(|segment| segment.len() as u64).sum();
        let path = path(key)?;
        let result = self.ask(asked, key, |handles| async move {
            let payload = PutPayload::from_iter(value);
            handles
                .objects
                .put_opts(&path, payload, PutOptions::from(mode))
                .await
        });
        match result.await {
            Ok(stored) => Ok(Meta {
                size,
                etag: stored.e_tag,
                modified_ms: None,
            }),
            Err((e, _)) => Err(e),
        }
    }

    async fn delete(&self, key: &str) -> Result<()> {
        check_key(key)?;
        let path = path(key)?;
        let request = |handles: Handles| async move { handles.objects.delete(&path).await };
        match self.ask(Asked::Delete, key, request).await {
            Err((e, _)) if !e.is_not_found() => Err(e),
            _ => Ok(()),
        }
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        check_key(key)?;
        match self.inspect(key, &Get::default()).await? {
            Some(meta) => Ok(meta),
            None => Err(Error::internal(
                "an unconditional request was answered \"not modified\"",
            )),
        }
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        check_prefix(prefix)?;
        let (entries, _, next) = self.list_page(prefix, page, false).await?;
        Ok((entries, next))
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        check_prefix(prefix)?;
        let mut listing = Listing::default();
        let mut page = None;
        loop {
            let (objects, dirs, next) = self.list_page(prefix, page, true).await?;
            listing.objects.extend(objects);
            listing.dirs.extend(dirs);
            page = next;
            if page.is_none() {
                break;
            }
        }
        listing.dirs.sort();
        listing.dirs.dedup();
        listing.objects.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listing)
    }
}
