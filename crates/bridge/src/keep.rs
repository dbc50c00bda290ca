//! Keeps the skeleton of an HDF5 file beside the hierarchy that was copied from it.

use std::collections::HashSet;

use bytes::Bytes;
use hyperslab::{Error, Outline, Result, Session, SkeletonState, objects_in};
use hyperslab_libhdf5::{Skeleton, skeleton};

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
    let outside: HashSet<&str> = made.outside.iter().map(|path| bare(path)).collect();
    let image = Bytes::from(made.image);
    let kept = Kept {
        bytes: image.len() as u64,
        lost: made.lost,
    };
    let objects = objects_in(image.clone()).await?;
    let arrays = objects.into_iter().filter_map(|noted| {
        let outside = outside.contains(noted.path.as_str());
        outside.then_some((noted.path, noted.address))
    });
    let before = match session.skeleton(destination).await? {
        Some(kept) => kept.state,
        None => SkeletonState::default(),
    };
    // By which it is noticed if somebody changes the hierarchy who knows nothing of skeletons.
    let root = session.published(destination).await?;
    let root = root.map(|(_, root)| root);
    session
        .keep_skeleton(destination, image, arrays.collect(), root, &before)
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
        let is_outside = |path: &str| outline.plain.contains_key(bare(path));
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
    let mut file = tempfile::Builder::new()
        .suffix(".h5")
        .tempfile()
        .map_err(|e| Error::unavailable(format!("a temporary file failed: {e}")))?;
    outline.write_metadata(file.as_file_mut()).await?;
    Ok(file)
}
