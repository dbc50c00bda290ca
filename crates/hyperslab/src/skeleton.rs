//! The skeleton of a hierarchy that is an HDF5 file to its users: kept beside the arrays, and replaced
//! as a whole.
//!
//! A record, `skeleton.json`, names the skeleton, which is an object of its own under a name that its
//! content gives, or several of them if it is large: the cells of datasets that no array can hold are in
//! it, and of those that change little is to be written again. To replace it is to write what is new and
//! then the record, under the condition that nobody else did so meanwhile. Invariant: a record leads to
//! a skeleton that is whole.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyperslab_store::Put;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result, Session};

/// The record, beside a hierarchy.
const RECORD: &str = "skeleton.json";
/// The version of records.
const VERSION: u32 = 3;
/// Bytes of a part of a skeleton.
const PART: usize = 4 << 20;
/// Parts that are read or written at a time.
const CONCURRENT: usize = 16;
/// Bytes of a skeleton, at most: it is held in memory.
const MOST_BYTES: u64 = 64 << 30;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    version: u32,
    /// The names of the parts of the skeleton beside the hierarchy, in their order; all but the last
    /// have the same length.
    skeleton: Vec<String>,
    /// Its bytes.
    bytes: u64,
    /// Datasets whose cells are in arrays: the path of the array, and where the dataset's header is in
    /// the skeleton.
    arrays: BTreeMap<String, u64>,
    /// What the metadata of the hierarchy's root was when this was written; another one has been
    /// written by somebody who knows nothing of skeletons.
    root: Option<String>,
}

/// A skeleton that is kept.
#[derive(Debug, Clone)]
pub struct Skeleton {
    /// An HDF5 file without the cells that are in arrays.
    pub image: Bytes,
    /// Paths of arrays that hold cells of datasets, and where the headers of those are.
    pub arrays: BTreeMap<String, u64>,
    /// What the metadata of the hierarchy's root was.
    pub root: Option<String>,
    /// The state that it was read in, by which it can be replaced.
    pub state: SkeletonState,
}

/// Which skeleton a hierarchy has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkeletonState {
    etag: Option<String>,
    /// The names of its parts.
    names: Vec<String>,
}

impl Session {
    /// The skeleton of the hierarchy at a URL; `None` if there is none.
    pub async fn skeleton(&self, url: &str) -> Result<Option<Skeleton>> {
        let Some(record) = self.read_beside(url, RECORD).await? else {
            return Ok(None);
        };
        let damaged = |why: String| {
            Error::data(format!(
                "{url}: the record of its skeleton is damaged: {why}"
            ))
            .with_hint("remove .hyperslab/skeleton.json; the arrays can be read without it")
        };
        let etag = record.etag;
        let record: Record =
            serde_json::from_slice(&record.bytes).map_err(|e| damaged(e.to_string()))?;
        if record.version != VERSION {
            return Err(damaged(format!("its version is {}", record.version)));
        }
        if record.bytes > MOST_BYTES {
            return Err(damaged(format!("it has {} bytes", record.bytes)));
        }
        let damaged = &damaged;
        let parts = record.skeleton.iter().map(|name| async move {
            let part = self.read_beside(url, name).await?;
            part.ok_or_else(|| damaged(format!("its part {name} is not there")))
        });
        let parts: Vec<_> = stream::iter(parts)
            .buffered(CONCURRENT)
            .try_collect()
            .await?;
        let mut parts = parts.into_iter().map(|part| part.bytes);
        let image = match (parts.next(), record.skeleton.len()) {
            (Some(only), 1) => only,
            (first, _) => first.into_iter().chain(parts).flatten().collect(),
        };
        if image.len() as u64 != record.bytes {
            return Err(damaged("its skeleton has another length".into()));
        }
        Ok(Some(Skeleton {
            image,
            arrays: record.arrays,
            root: record.root,
            state: SkeletonState {
                etag,
                names: record.skeleton,
            },
        }))
    }

    /// A `Conflict` unless the skeleton of a hierarchy is the one that `known` names, or there is none yet.
    pub async fn check_skeleton(&self, url: &str, known: &SkeletonState) -> Result<()> {
        let etag = self.etag_beside(url, RECORD).await?;
        match etag == known.etag {
            true => Ok(()),
            false => Err(changed(url)),
        }
    }

    /// Keeps a skeleton in place of the one that `before` names, or as the first. A `Conflict` if
    /// somebody else was faster.
    pub async fn keep_skeleton(
        &self,
        url: &str,
        image: Bytes,
        arrays: BTreeMap<String, u64>,
        root: Option<String>,
        before: &SkeletonState,
    ) -> Result<SkeletonState> {
        let parts: Vec<(String, Bytes)> = match image.is_empty() {
            true => vec![named(image.clone())],
            false => (0..image.len())
                .step_by(PART)
                .map(|start| named(image.slice(start..image.len().min(start + PART))))
                .collect(),
        };
        let record = Record {
            version: VERSION,
            skeleton: parts.iter().map(|(name, _)| name.clone()).collect(),
            bytes: image.len() as u64,
            arrays,
            root,
        };
        let json = serde_json::to_vec_pretty(&record)
            .map_err(|e| Error::internal(format!("a record has no JSON: {e}")))?;
        let names = record.skeleton;
        let new = parts
            .into_iter()
            .filter(|(name, _)| !before.names.contains(name));
        let writes = new.map(|(name, part)| async move {
            self.write_beside(url, &name, part, Put::Overwrite)
                .await
                .map(drop)
        });
        stream::iter(writes)
            .buffer_unordered(CONCURRENT)
            .try_collect::<()>()
            .await?;
        let condition = match &before.etag {
            Some(etag) => Put::Update(etag.clone()),
            None if !before.names.is_empty() => Put::Overwrite,
            None => Put::Create,
        };
        let written = self.write_beside(url, RECORD, json.into(), condition).await;
        let etag = written.map_err(|e| match e.kind() {
            ErrorKind::Conflict => changed(url).with_source(e),
            _ => e,
        })?;
        for old in before.names.iter().filter(|old| !names.contains(old)) {
            // Nothing leads to it any more; if it stays, it only takes room.
            let _ = self.remove_beside(url, old).await;
        }
        Ok(SkeletonState { etag, names })
    }
}

fn changed(url: &str) -> Error {
    Error::conflict(format!(
        "another program has changed {url} since it was opened"
    ))
    .with_hint("close the file and open it again; only one program may write to it at a time")
}

/// A part of a skeleton, with the name that its content gives it.
fn named(part: Bytes) -> (String, Bytes) {
    let digest = Sha256::digest(&part);
    let digits = digest[..8].iter().map(|byte| format!("{byte:02x}"));
    (format!("skeleton-{}.h5", digits.collect::<String>()), part)
}
