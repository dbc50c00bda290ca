//! The skeleton of a hierarchy that is an HDF5 file to its users: kept beside the arrays, and replaced
//! as a whole.
//!
//! A record, `skeleton.json`, names the skeleton, which is an object of its own under a name that its
//! content gives. To replace it is to write a new one and then the record, under the condition that
//! nobody else did so meanwhile. Invariant: a record leads to a skeleton that is whole.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyperslab_store::Put;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result, Session};

/// The record, beside a hierarchy.
const RECORD: &str = "skeleton.json";
/// The version of records.
const VERSION: u32 = 2;

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    version: u32,
    /// The name of the skeleton beside the hierarchy.
    skeleton: String,
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
    name: Option<String>,
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
        let kept = self.read_beside(url, &record.skeleton).await?;
        let kept = kept.filter(|kept| kept.bytes.len() as u64 == record.bytes);
        let kept = kept.ok_or_else(|| damaged("its skeleton is not there".into()))?;
        Ok(Some(Skeleton {
            image: kept.bytes,
            arrays: record.arrays,
            root: record.root,
            state: SkeletonState {
                etag,
                name: Some(record.skeleton),
            },
        }))
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
        let digest = Sha256::digest(&image);
        let digits: String = digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let record = Record {
            version: VERSION,
            skeleton: format!("skeleton-{digits}.h5"),
            bytes: image.len() as u64,
            arrays,
            root,
        };
        let json = serde_json::to_vec_pretty(&record)
            .map_err(|e| Error::internal(format!("a record has no JSON: {e}")))?;
        let name = record.skeleton;
        if before.name.as_deref() != Some(&name) {
            self.write_beside(url, &name, image, Put::Overwrite).await?;
        }
        let condition = match &before.etag {
            Some(etag) => Put::Update(etag.clone()),
            None if before.name.is_some() => Put::Overwrite,
            None => Put::Create,
        };
        let written = self.write_beside(url, RECORD, json.into(), condition).await;
        let etag = written.map_err(|e| match e.kind() {
            ErrorKind::Conflict => Error::conflict(format!(
                "another program has changed {url} since it was opened"
            ))
            .with_hint(
                "close the file and open it again; only one program may write to it at a time",
            )
            .with_source(e),
            _ => e,
        })?;
        if let Some(old) = before.name.as_ref().filter(|old| **old != name) {
            // Nothing leads to it any more; if it stays, it only takes room.
            let _ = self.remove_beside(url, old).await;
        }
        Ok(SkeletonState {
            etag,
            name: Some(name),
        })
    }
}
