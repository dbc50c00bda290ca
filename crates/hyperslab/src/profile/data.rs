//! The test data of a measurement: objects of random bytes in a folder of their own.
//!
//! Between the measurement and the store. The objects' sizes follow from how fast the first one
//! was written, so that a slow line is not kept busy for minutes.
//!
//! Invariant: every key that may exist is known before it is written, and [`TestData::remove`]
//! waits for writes that are under way, for a dropped one could still take effect after its removal.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use hyperslab_store::{Put, StoreRef};
use tokio::task::JoinSet;

use crate::{Error, Progress, Result};

/// The object whose writing tells how fast the line is.
const FIRST_BYTES: u64 = 256 << 10;
/// The smallest object that transfers are measured with.
const LEAST_BYTES: u64 = 64 << 10;
/// Objects written, and removed, at a time.
const AT_ONCE: usize = 16;
/// Objects begin this far apart in the pool of random bytes, so that no two are the same.
const SHIFT: usize = 1 << 10;
/// Objects after which the pool begins anew.
const SHIFTS: usize = 64;
/// Removal ends after this time, whatever is left.
const REMOVAL: Duration = Duration::from_secs(90);

/// How much data to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Bytes of all objects together, at most.
    pub(super) bytes: u64,
    /// Bytes of one object, at most.
    pub(super) object_bytes: u64,
    /// Seconds that reading one object by itself should take.
    pub(super) object_seconds: f64,
    /// No object is begun after this time.
    pub(super) time: Duration,
    /// Also write one object of this size, if that does not take longer than twice `time`.
    pub(super) large_bytes: Option<u64>,
}

/// An object that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestObject {
    pub(super) key: String,
    pub(super) size: u64,
}

/// Objects of random bytes in a folder of their own.
pub(super) struct TestData {
    store: StoreRef,
    folder: String,
    pool: Bytes,
    /// Every key that was ever begun.
    keys: Vec<String>,
    objects: Vec<TestObject>,
    writes: JoinSet<Result<TestObject>>,
}

impl TestData {
    /// No object as yet, and later none larger than `largest`.
    pub(super) fn new(store: StoreRef, largest: u64) -> Self {
        let stamp = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_nanos() as u64);
        let seed = scramble(stamp ^ (u64::from(std::process::id()) << 40));
        let length = largest.max(FIRST_BYTES) as usize + SHIFTS * SHIFT;
        TestData {
            store,
            folder: format!(".hyperslab-profile-{:012x}", seed >> 16),
            pool: random_bytes(seed, length),
            keys: Vec::new(),
            objects: Vec::new(),
            writes: JoinSet::new(),
        }
    }

    pub(super) fn store(&self) -> &StoreRef {
        &self.store
    }

    /// The URL of everything that is written here, without options.
    pub(super) fn url(&self) -> String {
        format!("{}/{}", self.store.url().trim_end_matches('/'), self.folder)
    }

    /// Bytes of all objects that were written.
    pub(super) fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.size).sum()
    }

    /// The largest object.
    pub(super) fn largest(&self) -> Result<&TestObject> {
        self.objects
            .iter()
            .max_by_key(|object| object.size)
            .ok_or_else(|| Error::internal("no test data was written"))
    }

    /// `many` ranges of `length` bytes, spread over all objects that are large enough.
    pub(super) fn ranges(&self, many: u64, length: u64) -> Vec<(String, std::ops::Range<u64>)> {
        let fitting: Vec<&TestObject> = self
            .objects
            .iter()
            .filter(|object| object.size >= length)
            .collect();
        if fitting.is_empty() {
            return Vec::new();
        }
        let pick = |number: u64| {
            let at = (number % fitting.len() as u64) as usize;
            let turn = number / fitting.len() as u64;
            let start = turn * length % (fitting[at].size - length + 1);
            (fitting[at].key.clone(), start..start + length)
        };
        (0..many).map(pick).collect()
    }

    /// Writes the objects.
    pub(super) async fn fill(&mut self, extent: &Extent, progress: &dyn Progress) -> Result<()> {
        progress.start(extent.bytes);
        // The first request of all may have to find a region and fetch credentials.
        self.begin(1);
        self.finish_one(progress).await?;
        let first = FIRST_BYTES.min(extent.object_bytes);
        let begun = Instant::now();
        self.begin(first);
        self.finish_one(progress).await?;
        let speed = first as f64 / begun.elapsed().as_secs_f64().max(1e-9);

        let begun = Instant::now();
        let mut left = extent.bytes.saturating_sub(self.bytes());
        let affordable = (2.0 * speed * extent.time.as_secs_f64()) as u64;
        if let Some(large) = extent.large_bytes {
            let large = large.min(affordable.max(LEAST_BYTES)).min(left);
            self.begin(large);
            left -= large;
        }
        let size = ((speed * extent.object_seconds) as u64)
            .clamp(LEAST_BYTES.min(extent.object_bytes), extent.object_bytes);
        while left >= size && (self.objects.len() < 3 || begun.elapsed() < extent.time) {
            if self.writes.len() < AT_ONCE {
                self.begin(size);
                left -= size;
            } else {
                self.finish_one(progress).await?;
            }
        }
        while self.finish_one(progress).await? {}
        Ok(())
    }

    /// Begins to write an object of `size` bytes.
    fn begin(&mut self, size: u64) {
        let number = self.keys.len();
        let key = format!("{}/{number}", self.folder);
        self.keys.push(key.clone());
        let from = number % SHIFTS * SHIFT;
        let end = (from + size as usize).min(self.pool.len());
        let value = self.pool.slice(from..end);
        let store = self.store.clone();
        self.writes.spawn(async move {
            let size = value.len() as u64;
            store.put(&key, vec![value], Put::Overwrite).await?;
            Ok(TestObject { key, size })
        });
    }

    /// Waits until one more object is written; false if none is under way.
    async fn finish_one(&mut self, progress: &dyn Progress) -> Result<bool> {
        let Some(ended) = self.writes.join_next().await else {
            return Ok(false);
        };
        let object = ended.map_err(|e| Error::internal("a write ended early").with_source(e))??;
        progress.add(object.size);
        self.objects.push(object);
        Ok(true)
    }

    /// Removes every object that was begun.
    pub(super) async fn remove(mut self) -> Result<()> {
        let url = self.url();
        let left_behind = |why: &str| {
            Error::unavailable(format!("test data was left behind at {url}: {why}"))
                .with_hint("remove the folder with the cloud's own tool; no array uses it")
        };
        let removal = async {
            while self.writes.join_next().await.is_some() {}
            let store = &self.store;
            let mut deletes = futures::stream::iter(&self.keys)
                .map(|key| store.delete(key))
                .buffer_unordered(AT_ONCE);
            let mut failed = None;
            while let Some(deleted) = deletes.next().await {
                failed = failed.or(deleted.err());
            }
            failed
        };
        match tokio::time::timeout(REMOVAL, removal).await {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(left_behind(error.message())),
            Err(_) => Err(left_behind("the store takes too long to remove it")),
        }
    }
}

/// Scrambles 64 bits (the finaliser of SplitMix64; Steele, Lea and Flood, 2014).
fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Bytes that no store and no proxy can compress.
fn random_bytes(seed: u64, length: usize) -> Bytes {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = Vec::with_capacity(length + 8);
    let mut state = seed;
    while bytes.len() < length {
        state = state.wrapping_add(GOLDEN);
        bytes.extend_from_slice(&scramble(state).to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hyperslab_store::{Fault, Faults, Faulty, Memory};

    use super::*;

    fn extent() -> Extent {
        Extent {
            bytes: 1 << 20,
            object_bytes: 128 << 10,
            object_seconds: 1.0,
            time: Duration::from_secs(1),
            large_bytes: None,
        }
    }

    async fn keys(store: &StoreRef) -> usize {
        store.list("", None).await.unwrap().0.len()
    }

    #[tokio::test]
    async fn data_is_bounded_spread_and_removed() {
        let store: StoreRef = Arc::new(Memory::new());
        let mut data = TestData::new(store.clone(), 128 << 10);
        data.fill(&extent(), &()).await.unwrap();
        assert!(data.bytes() <= 1 << 20 && data.bytes() > 1 << 19);
        assert_eq!(data.largest().unwrap().size, 128 << 10);
        let ranges = data.ranges(50, 60_000);
        assert_eq!(ranges.len(), 50);
        for (at, (key, range)) in ranges.iter().enumerate() {
            assert_eq!(range.end - range.start, 60_000);
            assert!(range.end <= 128 << 10, "{at}: {key} {range:?}");
        }
        assert!(data.ranges(1, 1 << 20).is_empty());
        assert!(keys(&store).await > 4);
        data.remove().await.unwrap();
        assert_eq!(keys(&store).await, 0);
    }

    #[tokio::test]
    async fn a_failed_write_leaves_nothing() {
        let store: StoreRef = Arc::new(Memory::new());
        // The write takes effect, but its answer is lost.
        let faults = Faults {
            at: vec![(5, Fault::After)],
            ..Faults::default()
        };
        let faulty = Arc::new(Faulty::new(store.clone(), faults));
        let mut data = TestData::new(faulty, 128 << 10);
        assert!(data.fill(&extent(), &()).await.is_err());
        data.remove().await.unwrap();
        assert_eq!(keys(&store).await, 0);
    }

    #[tokio::test]
    async fn data_that_cannot_be_removed_is_named() {
        let store: StoreRef = Arc::new(Memory::new());
        let faults = Faults {
            kill_at: Some(6),
            ..Faults::default()
        };
        let mut data = TestData::new(Arc::new(Faulty::new(store, faults)), 128 << 10);
        assert!(data.fill(&extent(), &()).await.is_err());
        let url = data.url();
        let error = data.remove().await.unwrap_err();
        assert!(error.message().contains(&url), "{error}");
    }

    #[test]
    fn random_bytes_are_random() {
        let bytes = random_bytes(3, 100_001);
        assert_eq!(bytes.len(), 100_001);
        let mut counts = [0u32; 256];
        bytes
            .iter()
            .for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| (250..550).contains(count)));
    }
}
