//! Fetches the bytes of one object as planned: whole, by ranges, or through a shard's index.
//!
//! Sits between the planner and the decoder. Invariant: all bytes of one object that a read uses
//! have the same ETag; a replaced object is a `Conflict`, never a mixture. An object that the store
//! says does not exist is `Absent`, and only that.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use hyperslab_format::{ObjectPieces, ShardIndex};
use hyperslab_plan::Method;
use hyperslab_store::{Body, Get, GetRange, Got};

use crate::array::{Array, State};
use crate::cache;
use crate::plan::describe;
use crate::{Error, ErrorKind, Result};

/// How often an object that changes while it is read is read again.
const MAX_CHANGES: usize = 4;

fn bytes_in(segments: &[Bytes]) -> u64 {
    segments.iter().map(|segment| segment.len() as u64).sum()
}

/// An object that is ready for planning.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) object: ObjectPieces,
    /// The ETag under which a shard's index was read.
    pin: Option<String>,
    /// The store says that there is no such shard.
    absent: bool,
}

impl Prepared {
    /// The state of the object that was seen while preparing, if any.
    pub(crate) fn pin(&self) -> Option<String> {
        self.pin.clone()
    }

    /// True if the store says that there is no such object.
    pub(crate) fn is_absent(&self) -> bool {
        self.absent
    }
}

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
    /// The URL of an object, without credentials and options.
    pub(crate) fn object_url(&self, key: &str) -> String {
        format!("{}/{key}", self.inner().location.bare_root())
    }

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

    /// Makes an object ready for planning: a shard's pieces are located by its index, unless all of
    /// it had better be read.
    pub(crate) async fn prepare(&self, state: &State, object: ObjectPieces) -> Result<Prepared> {
        let mut prepared = Prepared {
            object,
            pin: None,
            absent: false,
        };
        let sharded = state.meta.codecs.sharding().is_some();
        let planner = &self.inner().open.planner;
        if !sharded || planner.takes_whole_shard(state, &prepared.object) {
            return Ok(prepared);
        }
        match self.shard_index(state, &prepared.object.key).await? {
            Some((index, etag)) => {
                prepared.object.locate(&index);
                prepared.pin = etag;
            }
            None => prepared.absent = true,
        }
        Ok(prepared)
    }

    /// Fetches an object's pieces as planned; by a plan of its own, again, if the object changes
    /// meanwhile.
    pub(crate) async fn fetch(
        &self,
        state: &State,
        prepared: &mut Prepared,
        method: Method,
    ) -> Result<Fetched> {
        let mut answer = self.fetch_once(state, prepared, method).await;
        for _ in 0..MAX_CHANGES {
            match &answer {
                Err(e) if e.kind() == ErrorKind::Conflict => {}
                _ => return answer,
            }
            self.forget(&prepared.object.key);
            let mut again = prepared.object.clone();
            again.unlocate(&state.meta);
            *prepared = self.prepare(state, again).await?;
            let planner = &self.inner().open.planner;
            let method = planner.plan_one(describe(state, &prepared.object))?;
            answer = self.fetch_once(state, prepared, method).await;
        }
        answer.map_err(|e| {
            if e.kind() != ErrorKind::Conflict {
                return e;
            }
            let key = &prepared.object.key;
            Error::conflict(format!("the object {key} keeps changing while it is read"))
                .with_source(e)
        })
    }

    /// Fetches an object that is planned by itself.
    pub(crate) async fn fetch_alone(
        &self,
        state: &State,
        object: ObjectPieces,
    ) -> Result<(ObjectPieces, Fetched)> {
        let mut prepared = self.prepare(state, object).await?;
        let planner = &self.inner().open.planner;
        let method = planner.plan_one(describe(state, &prepared.object))?;
        let fetched = self.fetch(state, &mut prepared, method).await?;
        Ok((prepared.object, fetched))
    }

    /// Opens a local file, which is read where needed: there is nothing to plan.
    pub(crate) async fn fetch_file(&self, key: &str) -> Result<Fetched> {
        Ok(match self.get_cached(key, None, None).await? {
            Some((body, _)) => Fetched::Whole(body),
            None => Fetched::Absent,
        })
    }

    async fn fetch_once(
        &self,
        state: &State,
        prepared: &Prepared,
        method: Method,
    ) -> Result<Fetched> {
        let key = &prepared.object.key;
        if prepared.absent {
            return Ok(Fetched::Absent);
        }
        match method {
            Method::Get => {
                let got = self.get_cached(key, None, prepared.pin.clone()).await?;
                Ok(match got {
                    Some((body, _)) => {
                        state.saw_size(body.len());
                        Fetched::Whole(body)
                    }
                    None => Fetched::Absent,
                })
            }
            Method::Ranges(ranges) => {
                let pin = prepared.pin.clone();
                self.fetch_ranges(key, ranges, pin).await
            }
            Method::Function(_) => Err(Error::internal(
                "an object of the function was to be fetched without it",
            )),
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
        let mut bodies: Vec<(u64, Body)> = Vec::with_capacity(ranges.len());
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
            match bodies.last_mut() {
                // Parts of one range, fetched over several connections.
                Some((start, Body::Memory(joined))) if *start + bytes_in(joined) == range.start => {
                    match body {
                        Body::Memory(segments) => joined.extend(segments),
                        file => joined.push(file.into_bytes()?),
                    }
                }
                _ => bodies.push((range.start, body)),
            }
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
        let Some(Got { meta, body, .. }) = self.get_in_window(key, options).await? else {
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
            let got = self.get_in_window(key, options).await?;
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
        let Some(got) = self.get_in_window(key, options).await? else {
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

    /// One request of a read: waits until the store's window has room.
    async fn get_in_window(&self, key: &str, options: Get) -> Result<Option<Got>> {
        let window = &self.inner().open.planner.window;
        let _slot = window
            .acquire()
            .await
            .map_err(|_| Error::internal("a store's window was closed"))?;
        self.get_object(key, options).await
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
