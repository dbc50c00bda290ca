//! Direct access to the objects of a bucket, behind the clients' back.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_index::{Error, Result};
use s3s::crypto::{Checksum as _, Md5};

use super::{Bucket, Condition, ListRequest, Payload};
use crate::text::hex;

/// The objects of one bucket, without network, faults, limits or bill.
pub struct ObjectsHandle {
    bucket: Arc<Bucket>,
}

impl ObjectsHandle {
    pub(crate) fn new(bucket: Arc<Bucket>) -> Self {
        ObjectsHandle { bucket }
    }

    /// Stores an object and returns its ETag.
    pub fn put(&self, key: &str, bytes: impl Into<Bytes>) -> Result<String> {
        let bytes = bytes.into();
        let etag = hex(Md5::checksum(&bytes).as_ref());
        let always = &Condition::Always;
        Ok(self
            .bucket
            .put(key, bytes, etag, Default::default(), always)?
            .etag
            .clone())
    }

    /// The bytes of an object, `None` if there is none. A computed object is computed whole.
    pub fn get(&self, key: &str) -> Result<Option<Bytes>> {
        let Ok(entry) = self.bucket.get(key) else {
            return Ok(None);
        };
        let length = usize::try_from(entry.size)
            .map_err(|_| Error::invalid(format!("{key:?} does not fit into memory")))?;
        Ok(Some(match &entry.payload {
            Payload::Memory(bytes) => bytes.clone(),
            Payload::File(path) => {
                let mut bytes = Vec::with_capacity(length);
                std::fs::File::open(path)
                    .and_then(|mut file| file.read_to_end(&mut bytes))
                    .map_err(|e| {
                        Error::unavailable(format!("{key:?} cannot be read")).with_source(e)
                    })?;
                Bytes::from(bytes)
            }
            Payload::Computed { set, key } => {
                let mut bytes = vec![0; length];
                set.fill(key, 0, &mut bytes);
                Bytes::from(bytes)
            }
        }))
    }

    /// The ETag of an object, `None` if there is none.
    pub fn etag(&self, key: &str) -> Option<String> {
        self.bucket.get(key).ok().map(|entry| entry.etag.clone())
    }

    /// Removes an object; false if there was none.
    pub fn delete(&self, key: &str) -> Result<bool> {
        Ok(self.bucket.delete(key, &Condition::Always)?)
    }

    /// All keys, sorted.
    pub fn keys(&self) -> Vec<String> {
        let all = ListRequest {
            max_keys: usize::MAX,
            ..ListRequest::default()
        };
        self.bucket
            .list(&all)
            .objects
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    }

    /// Changes the bytes of a stored object while its ETag stays, as a faulty medium would.
    pub fn corrupt(&self, key: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let bytes = self
            .get(key)?
            .ok_or_else(|| Error::not_found(format!("there is no object {key:?} to corrupt")))?;
        let mut bytes = bytes.to_vec();
        change(&mut bytes);
        Ok(self.bucket.replace_bytes(key, Bytes::from(bytes))?)
    }
}
