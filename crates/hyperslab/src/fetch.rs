//! Fetches the bytes of one object as planned: whole, by ranges, or through a shard's index.
//!
//! Sits between the planner and the decoder. Invariant: all bytes of one object that a read uses
//! have the same ETag; a replaced object is a `Conflict`, never a mixture. An object that the store
//! says does not exist is `Absent`, and only that.

use std::ops::Range;
use std::sync::Arc;

use futures::future::try_join_all;
use hyperslab_format::{ObjectPieces, ShardIndex};
use hyperslab_store::{Body, Get, GetRange, Got};

use crate::array::{Array, State};
use crate::cache;
use crate::plan::Plan;
use crate::{Error, ErrorKind, Result};

/// How often an object that changes while it is read is read again.
const MAX_CHANGES: usize = 4;

/// What came of an object.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// The store has no such object.
    Absent,
    /// All of it.
    Whole(Body),
    /// These ranges, by their offset in the object; the pieces are located.
    Ranges(Vec<(u64, Body)>),
}

impl Array {
    fn cache_name(&self, key: &str) -> String {
        format!("{}/{key}", self.inner().location.root)
    }

    /// Forgets cached bytes of an object that is about to change.
    pub(crate) fn forget(&self, key: &str) {
        let name = self.cache_name(key);
        let session = self.inner().session.inner();
        session.chunks.forget(&name);
        session.indexes.forget(&name);
    }

    /// Fetches an object's pieces, again if the object changes meanwhile.
    pub(crate) async fn fetch(&self, state: &State, object: &mut ObjectPieces) -> Result<Fetched> {
        let unresolved: Vec<_> = object.pieces.iter().map(|p| p.source.clone()).collect();
        let mut tries = 0;
        loop {
            match self.fetch_once(state, object).await {
                Err(e) if e.kind() == ErrorKind::Conflict && tries < MAX_CHANGES => {
                    tries += 1;
                    self.forget(&object.key);
                    for (piece, source) in object.pieces.iter_mut().zip(&unresolved) {
                        piece.source = source.clone();
                    }
                }
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    return Err(Error::conflict(format!(
                        "the object {} keeps changing while it is read",
                        object.key
                    ))
                    .with_source(e));
                }
                other => return other,
            }
        }
    }

    async fn fetch_once(&self, state: &State, object: &mut ObjectPieces) -> Result<Fetched> {
        let session = self.inner().session.inner();
        // A local file is opened once and read where needed: there is nothing to plan.
        let plan = if self.inner().open.lazy {
            Plan::Whole
        } else {
            session.planner.plan(&state.meta, object)
        };
        match plan {
            Plan::Whole => Ok(match self.get_cached(&object.key, None, None).await? {
                Some((body, _)) => Fetched::Whole(body),
                None => Fetched::Absent,
            }),
            Plan::Ranges(ranges) => self.fetch_ranges(&object.key, ranges, None).await,
            Plan::Index => {
                let Some((index, etag)) = self.shard_index(state, &object.key).await? else {
                    return Ok(Fetched::Absent);
                };
                object.locate(&index);
                match session.planner.plan(&state.meta, object) {
                    Plan::Ranges(ranges) => self.fetch_ranges(&object.key, ranges, etag).await,
                    _ => Err(Error::internal(
                        "the planner asked for a shard's index twice",
                    )),
                }
            }
        }
    }

    async fn fetch_ranges(
        &self,
        key: &str,
        ranges: Vec<Range<u64>>,
        pin: Option<String>,
    ) -> Result<Fetched> {
        let gets = ranges
            .iter()
            .map(|range| self.get_cached(key, Some(range), pin.clone()));
        let got = try_join_all(gets).await?;
        let mut bodies = Vec::with_capacity(ranges.len());
        let mut etag: Option<Option<String>> = None;
        for (range, answer) in ranges.iter().zip(got) {
            let Some((body, tag)) = answer else {
                if bodies.is_empty() && pin.is_none() {
                    return Ok(Fetched::Absent);
                }
                return Err(Error::conflict(format!(
                    "the object {key} was removed while it was read"
                )));
            };
            if etag.get_or_insert_with(|| tag.clone()) != &tag {
                return Err(Error::conflict(format!(
                    "the object {key} changed while it was read"
                )));
            }
            bodies.push((range.start, body));
        }
        Ok(Fetched::Ranges(bodies))
    }

    /// A shard's index, from the cache or from the object's tail (or head).
    async fn shard_index(
        &self,
        state: &State,
        key: &str,
    ) -> Result<Option<(Arc<ShardIndex>, Option<String>)>> {
        let Some(sharding) = state.meta.codecs.sharding() else {
            return Err(Error::internal("a plain chunk was asked for its index"));
        };
        let session = self.inner().session.inner();
        let cache_key = cache::key(&self.cache_name(key), None);
        // A stale entry does no harm: the ranges that follow are pinned to its ETag, and a changed
        // object answers with a Conflict, after which the index is read anew.
        if let Some(cached) = session.indexes.get(&cache_key) {
            return Ok(Some((cached.value, cached.etag)));
        }
        let n = sharding.index_bytes();
        let range = if sharding.index_at_start() {
            GetRange::Bounded(0..n)
        } else {
            GetRange::Suffix(n)
        };
        let options = Get {
            range: Some(range),
            ..Default::default()
        };
        let Some(Got { meta, body, .. }) = self.get_object(key, options).await? else {
            return Ok(None);
        };
        let index = sharding
            .decode_index(&body.into_bytes()?, meta.size)
            .map_err(|e| e.context(format!("the object {key}")))?;
        let index = Arc::new(index);
        session.indexes.put(
            cache_key,
            index.clone(),
            meta.etag.clone(),
            index.bytes() as u64,
        );
        Ok(Some((index, meta.etag)))
    }

    /// Bytes of an object through the chunk cache, with the ETag they were read under.
    async fn get_cached(
        &self,
        key: &str,
        range: Option<&Range<u64>>,
        pin: Option<String>,
    ) -> Result<Option<(Body, Option<String>)>> {
        let session = self.inner().session.inner();
        let bounded = range.map(|r| GetRange::Bounded(r.clone()));
        let options = Get {
            range: bounded,
            if_match: pin.clone(),
            if_none_match: None,
        };
        if session.chunks.is_off() || self.inner().open.lazy {
            let got = self.get_object(key, options).await?;
            return Ok(got.map(|got| (got.body, got.meta.etag)));
        }
        let cache_key = cache::key(&self.cache_name(key), range);
        let cached = session.chunks.get(&cache_key);
        if let Some(cached) = &cached
            && (cached.fresh || (pin.is_some() && cached.etag == pin))
        {
            return Ok(Some((cached.value.clone().into(), cached.etag.clone())));
        }
        let known = cached.as_ref().and_then(|c| c.etag.clone());
        let options = Get {
            if_none_match: known,
            if_match: pin,
            range: options.range,
        };
        let Some(got) = self.get_object(key, options).await? else {
            session.chunks.forget(&cache_key.0);
            return Ok(None);
        };
        if let (true, Some(cached)) = (got.not_modified, cached) {
            session.chunks.touch(&cache_key);
            return Ok(Some((cached.value.into(), cached.etag)));
        }
        let bytes = got.body.into_bytes()?;
        let etag = got.meta.etag;
        session
            .chunks
            .put(cache_key, bytes.clone(), etag.clone(), bytes.len() as u64);
        Ok(Some((bytes.into(), etag)))
    }

    /// One request; `None` if there is no such object.
    pub(crate) async fn get_object(&self, key: &str, options: Get) -> Result<Option<Got>> {
        match self.inner().open.store.get(key, options).await {
            Ok(got) => Ok(Some(got)),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }
}
