//! A part of an array that a command reads or writes, block by block.
//!
//! Joins slices (which may run backwards and drop dimensions) with the facade (whose buffers
//! ascend and keep every dimension).

use bytes::Bytes;
use hyperslab::{
    Array, Bounds, DataType, Error, Hyperslab, Result, Selection, Shape, parse_slices,
};
use hyperslab_index::DimSlab;

use crate::blocks::{Block, Blocks, Cut};
use crate::permute;

/// What a string is taken to need in memory when work is cut into blocks.
const STRING_BYTES: u64 = 64;

/// Cells in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cells {
    /// Packed little-endian cells of a fixed size.
    Fixed(Vec<u8>),
    /// Strings or byte strings of any length.
    Strings(Vec<Bytes>),
}

/// The cells of an array that slices select.
pub(crate) struct Target {
    pub(crate) array: Array,
    pub(crate) dtype: DataType,
    /// The shape as NumPy has it.
    pub(crate) shape: Shape,
    /// The shape with every dimension of the array.
    pub(crate) full_shape: Shape,
    /// Names of the dimensions of `shape`, where they have one.
    pub(crate) names: Vec<Option<String>>,
    dims: Vec<DimSlab>,
    flip: Vec<bool>,
    /// Sides of the chunks that are decoded by themselves.
    unit: Vec<u64>,
}

impl Target {
    /// The whole array, or what the slices say; reaching out of bounds is an error.
    pub(crate) fn new(array: Array, slices: Option<&str>) -> Result<Self> {
        let meta = array.meta();
        let slicing = parse_slices(slices.unwrap_or(""), &meta.shape, Bounds::Strict)?;
        let slab = slicing
            .selection
            .as_hyperslab(&meta.shape)
            .ok_or_else(|| Error::internal("slices did not become a hyperslab"))?;
        let names = match &meta.dimension_names {
            Some(names) => names.clone(),
            None => vec![None; meta.shape.rank()],
        };
        let dropped = indexed(slices.unwrap_or(""), meta.shape.rank());
        let kept = names
            .into_iter()
            .zip(dropped)
            .filter(|(_, gone)| !gone)
            .map(|(name, _)| name);
        Ok(Target {
            dtype: meta.dtype.clone(),
            names: kept.collect(),
            shape: slicing.shape,
            full_shape: slicing.full_shape,
            dims: slab.dims().to_vec(),
            flip: slicing.flip,
            unit: meta.unit()?.0.to_vec(),
            array,
        })
    }

    /// Bytes of a cell; an estimate for strings.
    pub(crate) fn cell_bytes(&self) -> u64 {
        self.dtype.cell_bytes().unwrap_or(STRING_BYTES)
    }

    /// Bytes of all cells; an estimate for strings.
    pub(crate) fn bytes(&self) -> u64 {
        self.full_shape
            .num_cells()
            .saturating_mul(self.cell_bytes())
    }

    /// Blocks of at most `budget` bytes, in row-major order.
    pub(crate) fn blocks(&self, budget: u64) -> Blocks {
        let chunks = self.chunk_borders();
        let cell_bytes = self.cell_bytes();
        Cut {
            shape: &self.full_shape,
            cell_bytes,
            budget,
            chunks: &chunks,
        }
        .blocks()
    }

    /// Per dimension the chunk side and the start within it; (0, 0) where the slices step.
    pub(crate) fn chunk_borders(&self) -> Vec<(u64, u64)> {
        self.dims
            .iter()
            .zip(&self.unit)
            .zip(&self.flip)
            .map(
                |((slab, side), flip)| match slab.count == 1 && !flip && *side > 0 {
                    true => (*side, slab.start % side),
                    false => (0, 0),
                },
            )
            .collect()
    }

    /// The cells of the array behind a block of the result.
    fn selection(&self, block: &Block) -> Result<Selection> {
        let dims = self.dims.iter().enumerate().map(|(dim, slab)| {
            let (mut from, many) = (block.start[dim], block.shape[dim]);
            if self.flip[dim] {
                from = self.full_shape[dim] - from - many;
            }
            match slab.count {
                0 | 1 => DimSlab::contiguous(slab.start + from, many),
                _ => DimSlab {
                    start: slab.start + from * slab.stride,
                    stride: slab.stride,
                    count: many,
                    block: slab.block,
                },
            }
        });
        Hyperslab::from_dims(dims.collect::<Vec<_>>()).map(Selection::Hyperslab)
    }

    /// Reads a block.
    pub(crate) async fn read(&self, block: &Block) -> Result<Cells> {
        let selection = self.selection(block)?;
        Ok(match self.dtype.cell_bytes() {
            Some(width) => {
                let cells = self.array.read(&selection).await?;
                Cells::Fixed(permute::flip(
                    cells,
                    &block.shape,
                    &self.flip,
                    width as usize,
                ))
            }
            None => {
                let cells = self.array.read_strings(&selection).await?;
                Cells::Strings(permute::flip(cells, &block.shape, &self.flip, 1))
            }
        })
    }

    /// Writes a block.
    pub(crate) async fn write(&self, block: &Block, cells: Cells) -> Result<()> {
        let selection = self.selection(block)?;
        match (cells, self.dtype.cell_bytes()) {
            (Cells::Fixed(cells), Some(width)) => {
                let cells = permute::flip(cells, &block.shape, &self.flip, width as usize);
                self.array.write(&selection, cells).await
            }
            (Cells::Strings(cells), None) => {
                let cells = permute::flip(cells, &block.shape, &self.flip, 1);
                self.array.write_strings(&selection, cells).await
            }
            _ => Err(Error::internal("cells and data type do not go together")),
        }
    }

    /// Reads the cells whose coordinates along each dimension of the result are in `wanted`, in
    /// row-major order: the corners of a result that is too large to show.
    pub(crate) async fn read_picked(&self, wanted: &[Vec<u64>]) -> Result<Cells> {
        let mut points = Vec::new();
        let sides: Vec<u64> = wanted.iter().map(|list| list.len() as u64).collect();
        permute::for_each(&sides, |at| {
            for (dim, i) in at.iter().enumerate() {
                let mut place = wanted[dim][*i as usize];
                if self.flip[dim] {
                    place = self.full_shape[dim] - 1 - place;
                }
                let slab = &self.dims[dim];
                points.push(match slab.count {
                    0 | 1 => slab.start + place,
                    _ => slab.start + place * slab.stride,
                });
            }
        });
        let selection = Selection::points(wanted.len(), points)?;
        Ok(match self.dtype.is_variable() {
            false => Cells::Fixed(self.array.read(&selection).await?),
            true => Cells::Strings(self.array.read_strings(&selection).await?),
        })
    }
}

impl Cells {
    /// The bytes of cell `index`.
    pub(crate) fn get(&self, index: usize, width: usize) -> &[u8] {
        match self {
            Cells::Fixed(cells) => &cells[index * width..(index + 1) * width],
            Cells::Strings(cells) => &cells[index],
        }
    }

    /// The number of cells, which have `width` bytes if their size is fixed.
    pub(crate) fn len(&self, width: usize) -> usize {
        match self {
            Cells::Fixed(cells) => cells.len() / width.max(1),
            Cells::Strings(cells) => cells.len(),
        }
    }
}

/// Which dimensions are indexed by an integer and so have no place in the result. The slices were
/// parsed before, so they are well-formed.
fn indexed(slices: &str, rank: usize) -> Vec<bool> {
    let items: Vec<&str> = slices
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect();
    let mut out: Vec<bool> = Vec::with_capacity(rank);
    for (at, item) in items.iter().enumerate() {
        match *item {
            "..." => out.resize(rank.saturating_sub(items.len() - at - 1), false),
            item => out.push(!item.contains(':')),
        }
    }
    out.resize(rank, false);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_drop_their_dimension() {
        assert_eq!(indexed("", 2), [false, false]);
        assert_eq!(indexed("5", 3), [true, false, false]);
        assert_eq!(indexed(":, 5,", 3), [false, true, false]);
        assert_eq!(indexed("..., 5", 3), [false, false, true]);
        assert_eq!(indexed("1, ..., 5", 4), [true, false, false, true]);
        assert_eq!(indexed("1, ..., 5", 2), [true, true]);
    }
}
