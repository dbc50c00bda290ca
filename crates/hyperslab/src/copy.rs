//! Copying and comparing arrays within a memory bound.

use std::collections::HashSet;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format::{DataType, Field, ZarrFormat};
use hyperslab_index::{ChunkGrid, Region, Selection, Shape};
use hyperslab_store::{Get, Put};

use crate::rechunk::lcm;
use crate::{Array, Error, Progress, Result};

/// Settings of a copy or comparison.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// Bytes that cells in flight may take.
    pub memory: u64,
    /// Go on with a copy that was stopped: objects that are there are complete, since each is
    /// written once and atomically, and are left out.
    pub resume: bool,
}

impl Default for CopyOptions {
    fn default() -> Self {
        CopyOptions {
            memory: 1 << 30,
            resume: false,
        }
    }
}

/// How two arrays compare, cell by cell and bit by bit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Cells that were compared.
    pub cells: u64,
    /// How many differ.
    pub differing: u64,
    /// Coordinates of the first cell that differs, in row-major order.
    pub first: Option<Vec<u64>>,
}

impl Comparison {
    /// True if no cell differs.
    pub fn equal(&self) -> bool {
        self.differing == 0
    }
}

/// Copies all cells of `from` into `to`, which has the same shape and type but may be laid out and
/// encoded in any way. Arrays with the same layout are copied object by object, without decoding.
pub async fn copy_array(
    from: &Array,
    to: &Array,
    options: &CopyOptions,
    progress: &dyn Progress,
) -> Result<()> {
    same_kind(from, to)?;
    let (a, b) = (from.meta(), to.meta());
    let cell = a.dtype.cell_bytes().unwrap_or(32);
    progress.start(a.shape.num_cells() * cell);
    let same_layout = a.format == ZarrFormat::V3
        && a.chunk_shape == b.chunk_shape
        && a.codecs.to_json() == b.codecs.to_json()
        && a.fill == b.fill
        // Objects that are put as they are leave no marks.
        && (to.is_plain() || to.replicas().await?.is_empty());
    if same_layout {
        return copy_objects(from, to, options, progress).await;
    }
    if a.shape.num_cells() == 0 {
        return Ok(());
    }
    let sides = box_sides(
        &a.shape,
        &a.chunk_shape,
        &b.chunk_shape,
        cell,
        options.memory / 4,
    );
    let done = if options.resume {
        to.chunk_objects()
            .await?
            .into_iter()
            .map(|(index, _)| index)
            .collect()
    } else {
        HashSet::new()
    };
    let grid = b.grid()?;
    let todo = Region::whole(&a.shape).split(&sides).filter(|region| {
        let copied = is_copied(&grid, region, &done);
        if copied {
            progress.add(region.num_cells() * cell);
        }
        !copied
    });
    // A quarter for boxes read ahead, a quarter for boxes being written; the session's own bound
    // holds what is encoded or decoded meanwhile.
    let box_bytes = sides.iter().product::<u64>() * cell;
    let at_once = (options.memory / 4 / box_bytes.max(1)).clamp(1, 16) as usize;
    stream::iter(todo)
        .map(|region| async move {
            let selection = Selection::region(&region);
            let cells = if from.dtype().is_variable() {
                Cells::Strings(from.read_strings(&selection).await?)
            } else {
                Cells::Fixed(from.read(&selection).await?)
            };
            Ok::<_, Error>((region, cells))
        })
        .buffered(at_once)
        .map_ok(|(region, cells)| async move {
            let selection = Selection::region(&region);
            match cells {
                Cells::Strings(cells) => to.write_strings(&selection, cells).await?,
                Cells::Fixed(cells) => to.write(&selection, cells).await?,
            }
            progress.add(region.num_cells() * cell);
            Ok(())
        })
        .try_buffer_unordered(at_once)
        .try_collect()
        .await
}

enum Cells {
    Fixed(Vec<u8>),
    Strings(Vec<Bytes>),
}

/// True if all objects of a region, which is a whole number of them, are there.
fn is_copied(grid: &ChunkGrid, region: &Region, done: &HashSet<Vec<u64>>) -> bool {
    if done.is_empty() {
        return false;
    }
    let sides = grid.chunk_shape();
    region
        .split(sides)
        .all(|chunk| done.contains(&grid.chunk_of(chunk.start()).to_vec()))
}

/// A type with the same bytes in memory, the same one for all types that differ in words only.
fn in_memory(dtype: &DataType) -> DataType {
    let known = dtype.storable();
    let same = match &known {
        DataType::RawBits(bytes) => Some(DataType::RawBytes(*bytes)),
        DataType::Struct(fields) => as_complex(fields),
        _ => None,
    };
    same.unwrap_or(known)
}

/// The complex number that fields are: HDF5 has no other type for it.
fn as_complex(fields: &[Field]) -> Option<DataType> {
    let [real, imaginary] = fields else {
        return None;
    };
    let named = (real.name.as_str(), imaginary.name.as_str()) == ("r", "i");
    match real.dtype {
        DataType::Float(bytes @ (4 | 8)) if named && real.dtype == imaginary.dtype => {
            Some(DataType::Complex(2 * bytes))
        }
        _ => None,
    }
}

/// Fails unless cells of one are cells of the other.
pub(crate) fn same_kind(a: &Array, b: &Array) -> Result<()> {
    let (left, right) = (a.meta(), b.meta());
    if left.shape != right.shape || in_memory(&left.dtype) != in_memory(&right.dtype) {
        return Err(Error::invalid(format!(
            "{} is {} {}, but {} is {} {}",
            a.url(),
            left.dtype,
            left.shape,
            b.url(),
            right.dtype,
            right.shape
        ))
        .with_hint("shape and data type must be the same"));
    }
    Ok(())
}

/// A box that is a whole number of destination objects along every dimension, and of source
/// objects as far as memory allows, so that neither side is touched twice.
fn box_sides(shape: &Shape, from: &Shape, to: &Shape, cell: u64, memory: u64) -> Vec<u64> {
    let mut sides: Vec<u64> = to
        .iter()
        .zip(shape.iter())
        .map(|(t, n)| *t.min(n).max(&1))
        .collect();
    let bytes = |sides: &[u64]| {
        sides
            .iter()
            .try_fold(cell, |n, s| n.checked_mul(*s))
            .unwrap_or(u64::MAX)
    };
    for dim in 0..sides.len() {
        let aligned = lcm(from[dim], to[dim]).min(shape[dim].max(1));
        let before = std::mem::replace(&mut sides[dim], aligned);
        if bytes(&sides) > memory {
            sides[dim] = before;
        }
    }
    // Small boxes cost more requests than they save memory: grow, along the last dimensions first
    // since those cells lie together, as long as several boxes still fit.
    for dim in (0..sides.len()).rev() {
        while sides[dim] < shape[dim]
            && bytes(&sides).saturating_mul(2) <= (memory / 4).min(64 << 20)
        {
            sides[dim] = (sides[dim] * 2).min(shape[dim]);
        }
    }
    sides
}

async fn copy_objects(
    from: &Array,
    to: &Array,
    options: &CopyOptions,
    progress: &dyn Progress,
) -> Result<()> {
    let (a, b) = (from.state(), to.state());
    let mut objects = from.chunk_objects().await?;
    if options.resume {
        let done: HashSet<Vec<u64>> = to
            .chunk_objects()
            .await?
            .into_iter()
            .map(|(index, _)| index)
            .collect();
        objects.retain(|(index, _)| !done.contains(index));
    }
    let largest = objects.iter().map(|(_, n)| *n).max().unwrap_or(1).max(1);
    let at_once = (options.memory / largest).clamp(1, 64) as usize;
    let total = a.meta.shape.num_cells() * a.meta.dtype.cell_bytes().unwrap_or(32);
    let share = total / (objects.len() as u64).max(1);
    let (a, b) = (&a, &b);
    stream::iter(objects.iter().map(|(index, _)| async move {
        let got = from
            .inner()
            .open
            .store
            .get(&a.key(index), Get::default())
            .await?;
        let bytes = got.body.into_bytes()?;
        let key = b.key(index);
        to.forget(&key);
        to.inner()
            .open
            .store
            .put(&key, vec![bytes], Put::Overwrite)
            .await?;
        progress.add(share);
        Ok::<(), Error>(())
    }))
    .buffer_unordered(at_once)
    .try_collect()
    .await
}

/// Compares all cells of two arrays of the same shape and type, bit by bit.
pub async fn compare_arrays(
    a: &Array,
    b: &Array,
    options: &CopyOptions,
    progress: &dyn Progress,
) -> Result<Comparison> {
    same_kind(a, b)?;
    let (left, right) = (a.meta(), b.meta());
    let cell = left.dtype.cell_bytes().unwrap_or(32);
    progress.start(left.shape.num_cells() * cell);
    let mut out = Comparison::default();
    if left.shape.num_cells() == 0 {
        return Ok(out);
    }
    let sides = box_sides(
        &left.shape,
        &left.chunk_shape,
        &right.chunk_shape,
        cell,
        options.memory / 4,
    );
    let mut first_offset = None;
    for region in Region::whole(&left.shape).split(&sides) {
        let selection = Selection::region(&region);
        let cells = region.num_cells();
        let differing: Vec<u64> = if left.dtype.is_variable() {
            let (x, y) =
                futures::try_join!(a.read_strings(&selection), b.read_strings(&selection))?;
            (0..cells)
                .filter(|i| x[*i as usize] != y[*i as usize])
                .collect()
        } else {
            let (x, y) = futures::try_join!(a.read(&selection), b.read(&selection))?;
            if x == y {
                Vec::new()
            } else {
                let size = cell as usize;
                let pairs = x.chunks_exact(size).zip(y.chunks_exact(size)).enumerate();
                pairs
                    .filter(|(_, (x, y))| x != y)
                    .map(|(i, _)| i as u64)
                    .collect()
            }
        };
        out.cells += cells;
        out.differing += differing.len() as u64;
        if let Some(at) = differing.first() {
            let local = Shape::new(region.shape().iter().copied())?.coords_of(*at);
            let coords: Vec<u64> = local
                .iter()
                .zip(region.start())
                .map(|(l, s)| l + s)
                .collect();
            let offset = left.shape.offset_of(&coords);
            if first_offset.is_none_or(|first| offset < first) {
                first_offset = Some(offset);
                out.first = Some(coords);
            }
        }
        progress.add(cells * cell);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_align_with_both_sides_when_memory_allows() {
        let shape = |s: &[u64]| Shape::new(s.iter().copied()).unwrap();
        let sides = box_sides(
            &shape(&[2048, 1024, 1024]),
            &shape(&[64, 128, 128]),
            &shape(&[32, 256, 256]),
            4,
            64 << 20,
        );
        assert_eq!(sides, [64, 256, 256]);
        let tight = box_sides(&shape(&[100]), &shape(&[7]), &shape(&[10]), 1, 20);
        assert_eq!(tight, [10]);
    }
}
