//! The caches as reads see them: look up, load, keep, confirm, forget.
//!
//! Work on disk runs on threads for blocking work, never on those that wait for the network.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_format::{ShardIndex, Sharding};
use hyperslab_store::Body;

use super::Held;
use super::disk::{DiskCache, ObjectName, Part};
use crate::{Array, Error, Result, runtime};

/// The cache on disk, for the objects of one store.
#[derive(Debug, Clone)]
pub(crate) struct DiskPlace {
    pub(crate) cache: Arc<DiskCache>,
    /// The server and its bucket.
    pub(crate) endpoint: String,
    /// What a web server's URL has behind the question mark.
    pub(crate) query: String,
}

/// What one request brought.
#[derive(Debug)]
pub(crate) struct Brought {
    /// Where the bytes are in the object.
    pub(crate) start: u64,
    pub(crate) body: Body,
    pub(crate) etag: Option<String>,
    /// Bytes of the whole object.
    pub(crate) size: u64,
}

/// A shard's index.
#[derive(Debug)]
pub(crate) struct FoundIndex {
    pub(crate) index: Arc<ShardIndex>,
    pub(crate) etag: Option<String>,
    /// The store need not be asked whether the shard still has that ETag.
    pub(crate) checked: bool,
}

/// True if bytes under this ETag may be joined with others: a weak one does not promise that.
pub(crate) fn is_strong(etag: &str) -> bool {
    !etag.starts_with("W/")
}

/// Runs work that may wait for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    runtime::handle().ok()?.spawn_blocking(work).await.ok()
}

impl Array {
    /// The name of an object in the session's memory.
    pub(crate) fn cache_name(&self, key: &str) -> String {
        format!("{}/{key}", self.inner().location.root)
    }

    /// The cache on disk and the name of an object there, if objects of this store are kept.
    fn on_disk(&self, key: &str) -> Option<(Arc<DiskCache>, ObjectName)> {
        let place = self.inner().open.disk.as_ref()?;
        let name = ObjectName::new(&place.endpoint, &self.object_url(key), &place.query);
        Some((place.cache.clone(), name))
    }

    /// True if fetched bytes are kept on disk.
    pub(crate) fn keeps(&self) -> bool {
        self.inner().open.disk.is_some()
    }

    /// What the caches hold of an object.
    pub(crate) async fn held(&self, key: &str) -> Held {
        let session = &self.inner().session;
        let chunks = &session.inner().chunks;
        if chunks.is_off() && !self.keeps() {
            return Held::default();
        }
        let memory = chunks.of(&self.cache_name(key));
        let disk = match self.on_disk(key) {
            Some((cache, name)) => blocking(move || cache.entries(&name)).await,
            None => None,
        };
        let disk = disk.unwrap_or_default();
        if memory.is_empty() && disk.is_empty() {
            return Held::default();
        }
        let options = session.options();
        Held::new(
            memory,
            disk,
            options.cache_fresh,
            options.function.is_some(),
        )
    }

    /// Loads held ranges. A `Conflict` if they are gone meanwhile: then all is to be fetched.
    pub(crate) async fn load(&self, held: &Held, ranges: Vec<Range<u64>>) -> Result<Vec<Part>> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let sources = held.sources();
        let cache = self.inner().open.disk.as_ref();
        let cache = cache.map(|place| place.cache.clone());
        let loaded = blocking(move || sources.load(cache.as_deref(), &ranges)).await;
        loaded
            .flatten()
            .ok_or_else(|| Error::conflict("cached bytes are gone"))
    }

    /// A shard's index, if the caches hold it.
    pub(crate) async fn held_index(&self, sharding: &Sharding, held: &Held) -> Option<FoundIndex> {
        let range = held.index_range(sharding)?;
        let (_, segments) = self.load(held, vec![range]).await.ok()?.pop()?;
        let bytes = Body::Memory(segments).into_bytes().ok()?;
        let index = sharding.decode_index(&bytes, held.size()?).ok()?;
        Some(FoundIndex {
            index: Arc::new(index),
            etag: held.etag(),
            checked: held.fresh(),
        })
    }

    /// Keeps bytes of one state of an object on disk, if that is asked for.
    pub(crate) async fn keep(&self, key: &str, brought: &[Brought]) {
        let (Some((cache, name)), Some(first)) = (self.on_disk(key), brought.first()) else {
            return;
        };
        let Some(etag) = first.etag.clone().filter(|etag| is_strong(etag)) else {
            return;
        };
        let size = first.size;
        let in_memory = |one: &Brought| match &one.body {
            Body::Memory(segments) => Some((one.start, segments.clone())),
            Body::File { .. } => None,
        };
        let parts: Vec<Part> = brought.iter().filter_map(in_memory).collect();
        blocking(move || cache.put(&name, &etag, size, parts)).await;
    }

    /// Notes that the store has just confirmed an object's ETag.
    pub(crate) fn confirm_in_memory(&self, key: &str, etag: &str) {
        let name = self.cache_name(key);
        let session = self.inner().session.inner();
        session.chunks.confirm(&name, etag);
        session.indexes.confirm(&name, etag);
    }

    /// Asks the store whether an object is still as the caches have it; a `Conflict` if not.
    pub(crate) async fn confirm(&self, key: &str, etag: &str) -> Result<()> {
        let changed = || Error::conflict(format!("the object {key} changed since it was cached"));
        let open = &self.inner().open;
        let slot = open.planner.window.acquire().await;
        let _slot = slot.map_err(|_| Error::internal("a store's window was closed"))?;
        match open.store.head(key).await {
            Ok(meta) if meta.etag.as_deref() == Some(etag) => {}
            Ok(_) => return Err(changed()),
            Err(e) if e.is_not_found() => return Err(changed()),
            Err(e) => return Err(e),
        }
        self.confirm_in_memory(key, etag);
        if let Some((cache, name)) = self.on_disk(key) {
            let etag = etag.to_owned();
            blocking(move || cache.confirm(&name, &etag)).await;
        }
        Ok(())
    }

    /// Forgets cached bytes of an object that is about to change, or has changed.
    pub(crate) fn forget(&self, key: &str) {
        let name = self.cache_name(key);
        let session = self.inner().session.inner();
        session.chunks.forget(&name);
        session.indexes.forget(&name);
        if let Some((cache, name)) = self.on_disk(key) {
            cache.forget(&name);
        }
    }
}

/// Joins bytes that follow one another; `parts` are disjoint.
pub(crate) fn join(mut parts: Vec<Part>) -> Vec<(u64, Body)> {
    parts.sort_by_key(|(start, _)| *start);
    let mut joined: Vec<(u64, u64, Vec<Bytes>)> = Vec::with_capacity(parts.len());
    for (start, segments) in parts {
        let len: u64 = segments.iter().map(|segment| segment.len() as u64).sum();
        match joined.last_mut() {
            Some((_, end, before)) if *end == start => {
                before.extend(segments);
                *end = start + len;
            }
            _ => joined.push((start, start + len, segments)),
        }
    }
    let bodies = joined.into_iter();
    bodies
        .map(|(start, _, segments)| (start, Body::Memory(segments)))
        .collect()
}
