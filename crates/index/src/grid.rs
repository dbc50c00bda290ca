//! Regular chunk grids.
//!
//! Sits between [`crate::Shape`] and [`crate::Parts`], which cuts a selection along the grid.
//!
//! Invariant: array and chunk have the same rank and no chunk side is 0. Chunks at the border
//! reach over it and are stored at full size, as in Zarr.

use crate::{Dims, Error, Parts, Region, Result, Selection, Shape};

/// An array cut into equal chunks from its first cell on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChunkGrid {
    array: Shape,
    chunk: Shape,
}

impl ChunkGrid {
    /// Checks that the ranks are equal and that no chunk side is 0.
    pub fn new(array: &Shape, chunk: &Shape) -> Result<ChunkGrid> {
        if array.rank() != chunk.rank() {
            return Err(Error::invalid(format!(
                "the chunk shape {chunk} and the array's shape {array} differ in rank"
            ))
            .with_hint("give one chunk side per dimension"));
        }
        if let Some(dim) = chunk.iter().position(|&side| side == 0) {
            return Err(
                Error::invalid(format!("the chunk shape {chunk} is 0 in dimension {dim}"))
                    .with_hint("chunk sides are at least 1"),
            );
        }
        Ok(ChunkGrid {
            array: array.clone(),
            chunk: chunk.clone(),
        })
    }

    /// The array's shape.
    pub fn array_shape(&self) -> &Shape {
        &self.array
    }

    /// The shape of every stored chunk.
    pub fn chunk_shape(&self) -> &Shape {
        &self.chunk
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.array.rank()
    }

    /// The number of chunks along each dimension.
    pub fn grid_shape(&self) -> Dims {
        self.array
            .iter()
            .zip(self.chunk.iter())
            .map(|(side, chunk)| side.div_ceil(*chunk))
            .collect()
    }

    /// The number of chunks: 1 for a scalar, 0 for an array without cells.
    pub fn num_chunks(&self) -> u64 {
        self.grid_shape().iter().product()
    }

    /// The cells of a chunk, cut off at the array's border; empty for an index beyond the grid.
    pub fn chunk_region(&self, index: &[u64]) -> Region {
        debug_assert_eq!(index.len(), self.rank());
        let mut start = Dims::new();
        let mut shape = Dims::new();
        for ((&side, &chunk), &at) in self.array.iter().zip(self.chunk.iter()).zip(index) {
            let low = at.saturating_mul(chunk).min(side);
            start.push(low);
            shape.push(chunk.min(side - low));
        }
        Region::trusted(start, shape)
    }

    /// The index of the chunk that holds a cell.
    pub fn chunk_of(&self, point: &[u64]) -> Dims {
        debug_assert_eq!(point.len(), self.rank());
        point
            .iter()
            .zip(self.chunk.iter())
            .map(|(at, chunk)| at / chunk)
            .collect()
    }

    /// The touched chunks in row-major order of their index, each once, with what the selection
    /// has in them. Regular selections are cut as the iterator advances, in closed form.
    pub fn parts(&self, selection: &Selection) -> Result<Parts<'_>> {
        selection.check(&self.array)?;
        Ok(Parts::new(self, selection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn border_chunks_are_cut_off() {
        let shape = |sides: &[u64]| Shape::try_from(sides).unwrap();
        let grid = ChunkGrid::new(&shape(&[10, 4]), &shape(&[4, 9])).unwrap();
        assert_eq!(grid.grid_shape().as_slice(), [3, 1]);
        assert_eq!(grid.num_chunks(), 3);
        assert_eq!(grid.chunk_region(&[2, 0]).to_string(), "[8:10, 0:4]");
        assert!(grid.chunk_region(&[3, 0]).is_empty());
        assert!(grid.chunk_region(&[u64::MAX, 0]).is_empty());
        assert_eq!(grid.chunk_of(&[8, 3]).as_slice(), [2, 0]);
        assert!(ChunkGrid::new(&shape(&[10]), &shape(&[0])).is_err());
        assert!(ChunkGrid::new(&shape(&[10]), &shape(&[1, 1])).is_err());
        let empty = ChunkGrid::new(&shape(&[0, 3]), &shape(&[1, 1])).unwrap();
        assert_eq!(empty.num_chunks(), 0);
        assert_eq!(
            ChunkGrid::new(&shape(&[]), &shape(&[]))
                .unwrap()
                .num_chunks(),
            1
        );
    }
}
