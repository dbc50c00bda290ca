//! Writes a real HDF5 file from a hierarchy and its skeleton.
//!
//! Cells are read ahead by the engine while libhdf5, which does one thing at a time, writes. A file
//! that is not finished has another name; the paths of finished datasets are written down beside it,
//! so that a run that was stopped can go on.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyperslab::{
    Array, CopyOptions, Error, Progress, Region, Result, Selection, Session, Shape, compare_arrays,
};
use hyperslab_libhdf5::{Changes, Output};

use crate::keep::bare;
use crate::{RECORD, Record, SKELETON, keep};

/// How a file is written.
#[derive(Debug, Clone)]
pub struct Export {
    /// Bytes that cells in flight may take.
    pub memory: u64,
    /// Chunks for all datasets of as many dimensions, instead of those that they had.
    pub chunks: Option<Vec<u64>>,
    /// Replace a file that is there.
    pub overwrite: bool,
    /// Go on with a file that was begun.
    pub resume: bool,
    /// Read the file back and compare every cell.
    pub verify: bool,
}

/// What was written.
#[derive(Debug, Default)]
pub struct Exported {
    /// Datasets whose cells were written.
    pub datasets: u64,
    /// Their cells.
    pub cells: u64,
    /// Datasets with deflate in place of filters that cannot be written.
    pub refiltered: Vec<(String, Vec<i32>)>,
    /// What could not be kept, in sentences.
    pub lost: Vec<String>,
}

/// Writes the hierarchy at `source`, which was copied from an HDF5 file or is one, to a new HDF5 file.
pub async fn export(
    session: &Session,
    source: &str,
    path: &Path,
    how: &Export,
    progress: &dyn Progress,
) -> Result<Exported> {
    if path.exists() && !how.overwrite {
        return Err(
            Error::conflict(format!("{} is there already", path.display()))
                .with_hint("add --overwrite to replace it"),
        );
    }
    let (image, arrays) = skeleton_of(session, source).await?;
    let part = beside(path, "part");
    let journal = beside(path, "part.json");
    let mut done = match how.resume && part.exists() {
        true => finished(&journal),
        false => HashSet::new(),
    };
    let mut exported = Exported::default();
    let output = match done.is_empty() {
        true => {
            let (output, changes) = begin(part.clone(), image, arrays.clone(), how).await?;
            exported.refiltered = changes.refiltered;
            exported.lost = changes.lost;
            output
        }
        false => blocking(move || Output::open(&part)).await?,
    };
    let part = beside(path, "part");
    let mut output = output;
    let opened = open_all(session, source, &arrays).await?;
    let bytes = |array: &Array| array.shape().num_cells() * cell_bytes(array);
    progress.start(opened.iter().map(|(_, array)| bytes(array)).sum());
    for (name, array) in &opened {
        if done.contains(name) {
            progress.add(bytes(array));
        } else {
            output = fill(output, name, array, how, progress)
                .await
                .map_err(|e| e.context(name))?;
            done.insert(name.clone());
            note(&journal, &done)?;
        }
        exported.datasets += 1;
        exported.cells += array.shape().num_cells();
    }
    blocking(move || output.finish()).await?;
    fs::rename(&part, path)
        .map_err(|e| Error::unavailable(format!("{} cannot be written: {e}", path.display())))?;
    let _ = fs::remove_file(&journal);
    if how.verify {
        verify(session, path, &opened, how, progress).await?;
    }
    Ok(exported)
}

/// The skeleton of a hierarchy, and the paths of its arrays: kept beside it, or made of the file that
/// it is.
async fn skeleton_of(session: &Session, source: &str) -> Result<(Vec<u8>, Vec<String>)> {
    if let Some(record) = session.read_beside(source, RECORD).await? {
        let record: Record = serde_json::from_slice(&record).map_err(|e| {
            Error::data(format!(
                "{source}: the record of its skeleton is damaged: {e}"
            ))
        })?;
        let image = session.read_beside(source, SKELETON).await?;
        let image = image
            .filter(|image| image.len() as u64 == record.bytes)
            .ok_or_else(|| {
                Error::data(format!(
                    "{source}: the skeleton is not the one of its record"
                ))
            })?;
        return Ok((image.to_vec(), record.arrays));
    }
    let outline = session.outline(source).await?.ok_or_else(|| {
        Error::invalid(format!(
            "{source} was not copied from an HDF5 file, and is none"
        ))
        .with_hint("only hierarchies with a skeleton can be written as HDF5")
    })?;
    let made = keep::make(outline).await?;
    let arrays = made.outside.iter().map(|path| bare(path).to_owned());
    Ok((made.image.clone(), arrays.collect()))
}

async fn begin(
    part: PathBuf,
    mut image: Vec<u8>,
    arrays: Vec<String>,
    how: &Export,
) -> Result<(Output, Changes)> {
    let chunks = how.chunks.clone();
    blocking(move || {
        let outside: HashSet<String> = arrays.into_iter().collect();
        let is_outside = |path: &str| outside.contains(bare(path));
        let rechunk = |path: &str, shape: &[u64]| {
            let chunks = chunks
                .as_ref()
                .filter(|chunks| chunks.len() == shape.len())?;
            is_outside(path).then(|| chunks.clone())
        };
        Output::create(&part, &mut image, &is_outside, &rechunk)
            .map_err(|e| e.context(part.display().to_string()))
    })
    .await
}

async fn open_all(
    session: &Session,
    source: &str,
    arrays: &[String],
) -> Result<Vec<(String, Array)>> {
    let opened = arrays.iter().map(|path| async move {
        let (bare, query) = source.split_once('?').map_or((source, ""), |(b, q)| (b, q));
        let mut url = format!("{}/{path}", bare.trim_end_matches('/'));
        if !query.is_empty() {
            url = format!("{url}?{query}");
        }
        Ok::<_, Error>((path.clone(), session.open_array(&url).await?))
    });
    stream::iter(opened).buffered(16).try_collect().await
}

fn cell_bytes(array: &Array) -> u64 {
    array.dtype().cell_bytes().unwrap_or(1)
}

/// Writes all cells of an array to its dataset, box by box.
async fn fill(
    mut output: Output,
    path: &str,
    array: &Array,
    how: &Export,
    progress: &dyn Progress,
) -> Result<Output> {
    let full = format!("/{path}");
    let (layout, back) = {
        let full = full.clone();
        blocking(move || Ok((output.layout(&full)?, output))).await?
    };
    output = back;
    let shape = array.shape();
    let outer = layout.shape.len();
    if shape.get(..outer) != Some(&layout.shape[..]) {
        return Err(Error::data(format!(
            "the array has the shape {shape}, but the dataset {:?}",
            layout.shape
        )));
    }
    let element = layout.element as u64;
    let sides = box_sides(
        &layout.shape,
        layout.chunk.as_deref(),
        element,
        how.memory / 4,
    );
    let boxes: Vec<Region> = match outer {
        0 => vec![Region::whole(&Shape::new([])?)],
        _ => Region::whole(&Shape::new(layout.shape.clone())?)
            .split(&sides)
            .collect(),
    };
    let inner: Vec<u64> = shape[outer..].to_vec();
    let reads = boxes
        .into_iter()
        .filter(|region| !region.is_empty())
        .map(|region| {
            let inner = inner.clone();
            async move {
                let mut start = region.start().to_vec();
                let mut counts = region.shape().to_vec();
                start.extend(inner.iter().map(|_| 0));
                counts.extend(&inner);
                let selection = Selection::region(&Region::new(start, counts)?);
                Ok::<_, Error>((region, array.read(&selection).await?))
            }
        });
    let mut reads = stream::iter(reads).buffered(2);
    while let Some((region, cells)) = reads.try_next().await? {
        let full = full.clone();
        let bytes = cells.len() as u64;
        output = blocking(move || {
            output.write(&full, region.start(), region.shape(), &cells)?;
            Ok(output)
        })
        .await?;
        progress.add(bytes);
    }
    // What is noted as done has to be in the file.
    blocking(move || output.flush().map(|()| output)).await
}

/// Sides of boxes of whole chunks that take at most so many bytes; one chunk is always let through.
fn box_sides(shape: &[u64], chunk: Option<&[u64]>, element: u64, most: u64) -> Vec<u64> {
    let mut sides: Vec<u64> = match chunk {
        Some(chunk) => chunk.to_vec(),
        None => vec![1; shape.len()],
    };
    let mut bytes = sides
        .iter()
        .fold(element, |n, side| n.saturating_mul(*side));
    for dim in (0..shape.len()).rev() {
        let whole = shape[dim].max(1);
        let times = (most / bytes.max(1)).max(1);
        let grown = sides[dim]
            .saturating_mul(times)
            .min(whole.next_multiple_of(sides[dim]));
        bytes = bytes / sides[dim].max(1) * grown;
        sides[dim] = grown;
        if grown < whole {
            break;
        }
    }
    sides
}

/// Compares the file with the arrays that it was written from.
async fn verify(
    session: &Session,
    path: &Path,
    opened: &[(String, Array)],
    how: &Export,
    progress: &dyn Progress,
) -> Result<()> {
    let options = CopyOptions {
        memory: how.memory,
        resume: false,
    };
    for (name, array) in opened {
        let written = session
            .open_array(&format!("{}/{name}", path.display()))
            .await?;
        let comparison = compare_arrays(array, &written, &options, progress).await?;
        if !comparison.equal() {
            return Err(Error::data(format!(
                "{} differs from {} in {} cells, the first at {:?}",
                written.url(),
                array.url(),
                comparison.differing,
                comparison.first.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// The datasets that an earlier run finished.
fn finished(journal: &Path) -> HashSet<String> {
    let read = fs::read(journal).ok();
    read.and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn note(journal: &Path, done: &HashSet<String>) -> Result<()> {
    let text = serde_json::to_vec(done)
        .map_err(|e| Error::internal(format!("a journal has no JSON: {e}")))?;
    fs::write(journal, text)
        .map_err(|e| Error::unavailable(format!("{} cannot be written: {e}", journal.display())))
}

/// Runs what blocks on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Error::internal(format!("the work of libhdf5 was not finished: {e}")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_whole_chunks_within_memory() {
        assert_eq!(box_sides(&[100, 100], Some(&[10, 10]), 4, 1600), [10, 40]);
        assert_eq!(box_sides(&[100, 100], Some(&[10, 10]), 4, 8000), [20, 100]);
        assert_eq!(box_sides(&[100, 100], Some(&[10, 10]), 4, 10), [10, 10]);
        assert_eq!(box_sides(&[100, 100], None, 4, 1200), [3, 100]);
        assert_eq!(box_sides(&[], None, 4, 1200), [] as [u64; 0]);
    }
}
