//! What the simulated store holds: buckets of objects, in memory, on disk or computed.
//!
//! Sits below the two front doors ([`crate::s3`], [`crate::gcs`]), which only translate. Every
//! conditional write is decided and done under the one lock of its bucket's key map.
//!
//! Invariant: of any number of concurrent writes with the condition "absent" to one key, exactly
//! one succeeds; readers see an object whole, as before or as after a write.

mod bucket;
mod condition;
mod disk;
mod entry;
mod handle;
mod list;
mod multipart;
mod read;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use hyperslab_index::Result;

use crate::sync::{read, write};

pub(crate) use bucket::Bucket;
pub(crate) use condition::Condition;
pub(crate) use entry::{Entry, ObjectHeaders, Payload};
pub use handle::ObjectsHandle;
pub(crate) use list::ListRequest;
pub(crate) use read::PayloadStream;

use disk::Disk;

/// Why the store refuses, in terms that both front doors translate.
#[derive(Debug)]
pub(crate) enum Refused {
    NoSuchBucket,
    NoSuchKey,
    BucketExists,
    BucketNotEmpty,
    BadBucketName,
    PreconditionFailed,
    /// A computed object can be read and overlaid, but not deleted.
    ReadOnly,
    NoSuchUpload,
    InvalidPart,
    InvalidPartOrder,
    PartTooSmall,
    /// The disk failed.
    Broken(hyperslab_index::Error),
}

impl From<hyperslab_index::Error> for Refused {
    fn from(error: hyperslab_index::Error) -> Self {
        Refused::Broken(error)
    }
}

impl From<Refused> for hyperslab_index::Error {
    fn from(refused: Refused) -> Self {
        use hyperslab_index::Error;
        match refused {
            Refused::Broken(error) => error,
            Refused::NoSuchBucket => Error::not_found("the simulated store has no such bucket"),
            Refused::NoSuchKey => Error::not_found("the simulated bucket has no such object"),
            Refused::BucketExists => Error::conflict("the simulated bucket exists already"),
            Refused::BadBucketName => Error::invalid("this is no valid name of a bucket")
                .with_hint("3 to 63 lower-case letters, digits, dots and hyphens"),
            other => Error::conflict(format!("the simulated store refuses: {other:?}")),
        }
    }
}

/// All buckets.
pub(crate) struct ObjectMap {
    buckets: RwLock<BTreeMap<String, Arc<Bucket>>>,
    disk: Option<Disk>,
    generations: Arc<Generations>,
}

/// Hands out numbers that grow over the life of a store, restarts included: each write gets one.
pub(crate) struct Generations(AtomicU64);

impl Generations {
    fn new() -> Self {
        let micros = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |age| age.as_micros());
        Generations(AtomicU64::new(u64::try_from(micros).unwrap_or(1)))
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes all later numbers greater than `seen`.
    fn pass(&self, seen: u64) {
        self.0.fetch_max(seen + 1, Ordering::Relaxed);
    }
}

impl ObjectMap {
    /// An empty store in memory, or what the folder holds.
    pub(crate) fn open(folder: Option<PathBuf>) -> Result<Self> {
        let generations = Arc::new(Generations::new());
        let disk = folder.map(Disk::open).transpose()?;
        let mut buckets = BTreeMap::new();
        for (name, shelf) in disk
            .iter()
            .map(Disk::shelves)
            .collect::<Result<Vec<_>>>()?
            .concat()
        {
            let bucket = Bucket::open(&name, Some(shelf), Arc::clone(&generations))?;
            buckets.insert(name, Arc::new(bucket));
        }
        Ok(ObjectMap {
            buckets: RwLock::new(buckets),
            disk,
            generations,
        })
    }

    /// The bucket of this name.
    pub(crate) fn bucket(&self, name: &str) -> Result<Arc<Bucket>, Refused> {
        read(&self.buckets)
            .get(name)
            .cloned()
            .ok_or(Refused::NoSuchBucket)
    }

    /// All buckets in the order of their names.
    pub(crate) fn buckets(&self) -> Vec<Arc<Bucket>> {
        read(&self.buckets).values().cloned().collect()
    }

    /// Makes an empty bucket.
    pub(crate) fn create_bucket(&self, name: &str) -> Result<Arc<Bucket>, Refused> {
        if !s3s::path::check_bucket_name(name) {
            return Err(Refused::BadBucketName);
        }
        let mut buckets = write(&self.buckets);
        if buckets.contains_key(name) {
            return Err(Refused::BucketExists);
        }
        let shelf = self
            .disk
            .as_ref()
            .map(|disk| disk.create_shelf(name))
            .transpose()?;
        let bucket = Arc::new(Bucket::open(name, shelf, Arc::clone(&self.generations))?);
        buckets.insert(name.to_string(), Arc::clone(&bucket));
        Ok(bucket)
    }

    /// Removes an empty bucket.
    pub(crate) fn delete_bucket(&self, name: &str) -> Result<(), Refused> {
        let mut buckets = write(&self.buckets);
        let bucket = buckets.get(name).ok_or(Refused::NoSuchBucket)?;
        if !bucket.is_empty() {
            return Err(Refused::BucketNotEmpty);
        }
        bucket.remove_shelf()?;
        buckets.remove(name);
        Ok(())
    }
}
