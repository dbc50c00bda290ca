//! Writes a real HDF5 file from a hierarchy and its skeleton, which is drawn if there is none.
//!
//! Cells are read ahead by the engine while libhdf5, which does one thing at a time, writes. A file
//! that is not finished has another name; the paths of finished datasets are written down beside it,
//! so that a run that was stopped can go on.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyperslab::{
    Array, CopyOptions, Error, Node, Progress, Region, Result, Selection, Session, Shape,
    compare_arrays,
};
use hyperslab_libhdf5::{Changes, Drawn, Output, blueprint};

use crate::keep;
use crate::keep::bare;

/// Bytes that a cell of variable length is taken to have.
const TEXT: u64 = 256;

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

/// What a file is made of.
struct Plan {
    skeleton: Vec<u8>,
    /// Paths of datasets whose cells are not in the skeleton.
    outside: HashSet<String>,
    /// Those that have an array each, which fills them.
    arrays: Vec<(String, Array)>,
    /// What could not be kept, in sentences.
    lost: Vec<String>,
}

/// Writes the hierarchy or array at `source` to a new HDF5 file: like the file that it was copied from
/// or is, and else as Zarr describes it.
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
    let plan = plan(session, source, path).await?;
    let opened = plan.arrays;
    let part = beside(path, "part");
    let journal = beside(path, "part.json");
    let mut done = match how.resume && part.exists() {
        true => finished(&journal),
        false => HashSet::new(),
    };
    let mut exported = Exported::default();
    let output = match done.is_empty() {
        true => {
            let (output, changes) = begin(part.clone(), plan.skeleton, plan.outside, how).await?;
            exported.refiltered = changes.refiltered;
            exported.lost = plan.lost;
            exported.lost.extend(changes.lost);
            output
        }
        false => blocking(move || Output::open(&part)).await?,
    };
    let part = beside(path, "part");
    let mut output = output;
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

/// The skeleton of a hierarchy: kept beside it, made of the file that it is, or of what Zarr says.
async fn plan(session: &Session, source: &str, path: &Path) -> Result<Plan> {
    let (skeleton, paths) = if let Some(kept) = session.skeleton(source).await? {
        (
            kept.image.to_vec(),
            kept.arrays.into_keys().collect::<Vec<_>>(),
        )
    } else if let Some(outline) = session.outline(source).await? {
        let made = keep::make(outline).await?;
        let arrays = made.outside.iter().map(|path| bare(path).to_owned());
        (made.image.clone(), arrays.collect())
    } else {
        return draw(session, source, path).await;
    };
    Ok(Plan {
        skeleton,
        outside: paths.iter().cloned().collect(),
        arrays: open_all(session, source, &paths).await?,
        lost: Vec::new(),
    })
}

/// A skeleton of a hierarchy or an array that never was an HDF5 file.
async fn draw(session: &Session, source: &str, path: &Path) -> Result<Plan> {
    let nodes = match session.open(source).await? {
        Node::Array(array) => {
            let url = array.url().trim_end_matches('/');
            let name = url.rsplit('/').next().filter(|name| !name.is_empty());
            vec![(name.unwrap_or("data").to_owned(), Node::Array(array))]
        }
        Node::Group(group) => {
            let mut nodes = group.walk().await?;
            nodes.insert(0, (String::new(), Node::Group(group)));
            nodes
        }
    };
    let drawn: Vec<(String, Drawn)> = nodes
        .iter()
        .map(|(path, node)| (path.clone(), drawn(node)))
        .collect();
    let ending = path.extension().and_then(|ending| ending.to_str());
    let netcdf = matches!(ending, Some("nc" | "nc4"));
    let made = blocking(move || blueprint(&drawn, netcdf)).await?;
    let outside = made.outside.iter().map(|path| bare(path).to_owned());
    Ok(Plan {
        outside: outside.collect(),
        arrays: nodes
            .into_iter()
            .filter_map(|(path, node)| match node {
                Node::Array(array) => Some((path, array)),
                Node::Group(_) => None,
            })
            .collect(),
        skeleton: made.image,
        lost: made.lost,
    })
}

/// A node as an object of a file that is to be made.
pub(crate) fn drawn(node: &Node) -> Drawn {
    match node {
        Node::Group(group) => Drawn::Group(group.attributes().clone()),
        Node::Array(array) => Drawn::Array(array.meta()),
    }
}

async fn begin(
    part: PathBuf,
    mut image: Vec<u8>,
    outside: HashSet<String>,
    how: &Export,
) -> Result<(Output, Changes)> {
    let chunks = how.chunks.clone();
    blocking(move || {
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

/// Cells of a box.
enum Cells {
    Fixed(Vec<u8>),
    Variable(Vec<Bytes>),
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
    let variable = array.dtype().is_variable();
    let element = match variable {
        true => TEXT,
        false => layout.element as u64,
    };
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
                let cells = match variable {
                    true => Cells::Variable(array.read_strings(&selection).await?),
                    false => Cells::Fixed(array.read(&selection).await?),
                };
                Ok::<_, Error>((region, cells))
            }
        });
    let mut reads = stream::iter(reads).buffered(2);
    while let Some((region, cells)) = reads.try_next().await? {
        let full = full.clone();
        let bytes = match &cells {
            Cells::Fixed(cells) => cells.len() as u64,
            Cells::Variable(cells) => cells.len() as u64,
        };
        output = blocking(move || {
            let (start, shape) = (region.start(), region.shape());
            match &cells {
                Cells::Fixed(cells) => output.write(&full, start, shape, cells)?,
                Cells::Variable(cells) => output.write_variable(&full, start, shape, cells)?,
            }
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
pub(crate) async fn blocking<T: Send + 'static>(
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
