//! Keeps the skeleton of an HDF5 file beside the hierarchy that was copied from it.

use std::io::{Seek as _, SeekFrom, Write as _};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyperslab::{Error, Outline, Result, Session};
use hyperslab_libhdf5::{Skeleton, skeleton};

use crate::{RECORD, Record, SKELETON};

/// Bytes of metadata that are fetched at a time.
const PIECE: u64 = 8 << 20;
/// Requests at a time.
const CONCURRENT: usize = 16;

/// What was kept.
#[derive(Debug)]
pub struct Kept {
    /// Bytes of the skeleton.
    pub bytes: u64,
    /// What could not be kept, in sentences.
    pub lost: Vec<String>,
}

/// Keeps the skeleton of the HDF5 file at `source` beside the hierarchy at `destination`; `None` if
/// there is no HDF5 file.
pub async fn keep_skeleton(
    session: &Session,
    source: &str,
    destination: &str,
) -> Result<Option<Kept>> {
    let Some(outline) = session.outline(source).await? else {
        return Ok(None);
    };
    let made = make(outline).await?;
    let record = Record {
        version: 1,
        bytes: made.image.len() as u64,
        arrays: made
            .outside
            .iter()
            .map(|path| bare(path).to_owned())
            .collect(),
    };
    let record = serde_json::to_vec_pretty(&record)
        .map_err(|e| Error::internal(format!("a record has no JSON: {e}")))?;
    let kept = Kept {
        bytes: made.image.len() as u64,
        lost: made.lost,
    };
    session
        .write_beside(destination, SKELETON, Bytes::from(made.image))
        .await?;
    session
        .write_beside(destination, RECORD, Bytes::from(record))
        .await?;
    Ok(Some(kept))
}

/// The skeleton of a file that was looked at.
pub(crate) async fn make(outline: Outline) -> Result<Skeleton> {
    // Without the cells of arrays: libhdf5 reads files, and this one may be in a bucket.
    let (path, sparse) = match &outline.local {
        Some(path) => (path.clone(), None),
        None => {
            let sparse = without_cells(&outline).await?;
            (sparse.path().to_owned(), Some(sparse))
        }
    };
    let made = tokio::task::spawn_blocking(move || {
        let is_outside = |path: &str| outline.plain.contains(bare(path));
        let made = skeleton(&path, &is_outside);
        drop(sparse);
        made
    });
    made.await
        .map_err(|e| Error::internal(format!("the skeleton was not finished: {e}")))?
}

/// A path without the slash that libhdf5 begins it with.
pub(crate) fn bare(path: &str) -> &str {
    path.trim_start_matches('/')
}

/// A file on local disk with the metadata of a remote one, and holes for its cells.
async fn without_cells(outline: &Outline) -> Result<tempfile::NamedTempFile> {
    let failed = |e: std::io::Error| Error::unavailable(format!("a temporary file failed: {e}"));
    let mut file = tempfile::Builder::new()
        .suffix(".h5")
        .tempfile()
        .map_err(failed)?;
    file.as_file().set_len(outline.size).map_err(failed)?;
    let parts = outline.metadata(PIECE).into_iter().map(|range| async move {
        let start = range.start;
        Ok::<_, Error>((start, outline.read(range).await?))
    });
    let mut parts = stream::iter(parts).buffer_unordered(CONCURRENT);
    while let Some((start, bytes)) = parts.try_next().await? {
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
    }
    drop(parts);
    file.flush().map_err(failed)?;
    Ok(file)
}
