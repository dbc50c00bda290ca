//! Uploads in parts.
//!
//! Parts live in memory until the upload is completed, also when objects live on disk: an upload
//! under way does not survive a restart, a completed one does.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use s3s::crypto::{Checksum as _, Md5};

use super::{Bucket, Condition, Entry, ObjectHeaders, Refused};
use crate::network::seeded::mix;
use crate::sync::lock;
use crate::text::{hex, unhex};

/// The least size of a part that is not the last one, as S3 and Google have it.
const LEAST_PART: usize = 5 << 20;

/// The uploads of a bucket.
pub(super) struct Uploads {
    pub(super) under_way: HashMap<String, Upload>,
    /// Completing an upload again gives the first answer, so that a client whose answer was lost
    /// can retry.
    pub(super) completed: HashMap<String, CompletedUpload>,
}

pub(super) struct Upload {
    key: String,
    headers: ObjectHeaders,
    parts: BTreeMap<i32, UploadPart>,
}

/// A part that has arrived.
#[derive(Debug, Clone)]
pub(crate) struct UploadPart {
    pub(crate) bytes: Bytes,
    pub(crate) etag: String,
    pub(crate) modified: SystemTime,
}

/// The object that an upload has become.
#[derive(Debug, Clone)]
pub(crate) struct CompletedUpload {
    pub(crate) etag: String,
    pub(crate) generation: u64,
}

impl Bucket {
    /// Starts an upload and returns its id.
    pub(crate) fn start_upload(&self, key: &str, headers: ObjectHeaders) -> String {
        let mut uploads = lock(&self.uploads);
        let serial = (uploads.under_way.len() + uploads.completed.len()) as u64;
        let started = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |age| age.as_nanos() as u64);
        let mut state = mix(started ^ mix(serial));
        let mut id = format!("{state:016x}");
        while uploads.under_way.contains_key(&id) || uploads.completed.contains_key(&id) {
            state = mix(state);
            id = format!("{state:016x}");
        }
        let upload = Upload {
            key: key.to_string(),
            headers,
            parts: BTreeMap::new(),
        };
        uploads.under_way.insert(id.clone(), upload);
        id
    }

    /// Takes a part; a part of the same number is replaced.
    pub(crate) fn put_part(
        &self,
        key: &str,
        id: &str,
        number: i32,
        bytes: Bytes,
        etag: String,
    ) -> Result<(), Refused> {
        let mut uploads = lock(&self.uploads);
        let upload = find(&mut uploads, key, id)?;
        upload.parts.insert(
            number,
            UploadPart {
                bytes,
                etag,
                modified: SystemTime::now(),
            },
        );
        Ok(())
    }

    /// The parts that have arrived, by number.
    pub(crate) fn parts(&self, key: &str, id: &str) -> Result<Vec<(i32, UploadPart)>, Refused> {
        let mut uploads = lock(&self.uploads);
        let upload = find(&mut uploads, key, id)?;
        Ok(upload
            .parts
            .iter()
            .map(|(number, part)| (*number, part.clone()))
            .collect())
    }

    /// Gives an upload up.
    pub(crate) fn abort_upload(&self, key: &str, id: &str) -> Result<(), Refused> {
        let mut uploads = lock(&self.uploads);
        find(&mut uploads, key, id)?;
        uploads.under_way.remove(id);
        Ok(())
    }

    /// Uploads under way as (key, id), sorted.
    pub(crate) fn uploads(&self) -> Vec<(String, String)> {
        let uploads = lock(&self.uploads);
        let mut list: Vec<(String, String)> = uploads
            .under_way
            .iter()
            .map(|(id, upload)| (upload.key.clone(), id.clone()))
            .collect();
        list.sort();
        list
    }

    /// Makes an object of the named parts, given as (number, ETag), if the condition holds.
    pub(crate) fn complete_upload(
        &self,
        key: &str,
        id: &str,
        named: &[(i32, String)],
        condition: &Condition,
    ) -> Result<CompletedUpload, Refused> {
        let (parts, headers) = {
            let mut uploads = lock(&self.uploads);
            if let Some(done) = uploads.completed.get(id) {
                return Ok(done.clone());
            }
            let upload = find(&mut uploads, key, id)?;
            (choose(upload, named)?, upload.headers.clone())
        };
        let etag = combined_etag(&parts);
        let mut bytes = BytesMut::with_capacity(parts.iter().map(|part| part.bytes.len()).sum());
        parts
            .iter()
            .for_each(|part| bytes.extend_from_slice(&part.bytes));
        let entry: Arc<Entry> = self.put(key, bytes.freeze(), etag, headers, condition)?;
        let done = CompletedUpload {
            etag: entry.etag.clone(),
            generation: entry.generation,
        };
        let mut uploads = lock(&self.uploads);
        uploads.under_way.remove(id);
        uploads.completed.insert(id.to_string(), done.clone());
        Ok(done)
    }
}

fn find<'a>(uploads: &'a mut Uploads, key: &str, id: &str) -> Result<&'a mut Upload, Refused> {
    uploads
        .under_way
        .get_mut(id)
        .filter(|upload| upload.key == key)
        .ok_or(Refused::NoSuchUpload)
}

fn choose(upload: &Upload, named: &[(i32, String)]) -> Result<Vec<UploadPart>, Refused> {
    if named.is_empty() {
        return Err(Refused::InvalidPart);
    }
    if named.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return Err(Refused::InvalidPartOrder);
    }
    let parts: Vec<UploadPart> = named
        .iter()
        .map(|(number, etag)| {
            upload
                .parts
                .get(number)
                .filter(|part| part.etag == *etag)
                .cloned()
        })
        .collect::<Option<_>>()
        .ok_or(Refused::InvalidPart)?;
    let all_but_last = &parts[..parts.len() - 1];
    if all_but_last
        .iter()
        .any(|part| part.bytes.len() < LEAST_PART)
    {
        return Err(Refused::PartTooSmall);
    }
    Ok(parts)
}

/// S3's ETag of an object in parts: the digest of the digests, a hyphen and the number of parts.
fn combined_etag(parts: &[UploadPart]) -> String {
    let mut digest = Md5::new();
    for part in parts {
        digest.update(&unhex(&part.etag).unwrap_or_default());
    }
    format!("{}-{}", hex(digest.finalize().as_ref()), parts.len())
}
