//! Parts of regular selections, in closed form per dimension.

use std::sync::Arc;

use crate::part::Body;
use crate::{ChunkGrid, Dims, Hyperslab, Part};

/// An odometer over the touched chunk indices of each dimension.
#[derive(Debug)]
pub(super) struct Regular {
    slab: Arc<Hyperslab>,
    /// The next chunk index.
    chunk: Dims,
    /// The selected coordinates of that chunk per dimension.
    cells: Dims,
    remaining: u64,
}

impl Regular {
    pub(super) fn new(grid: &ChunkGrid, slab: Hyperslab) -> Regular {
        let sides = slab.dims().iter().zip(grid.chunk_shape().iter());
        // The product is at most the number of chunks, so it does not overflow.
        let remaining = match slab.is_empty() {
            true => 0,
            false => sides.map(|(dim, &side)| dim.num_chunks(side)).product(),
        };
        let mut regular = Regular {
            chunk: slab.dims().iter().map(|_| 0).collect(),
            cells: slab.dims().iter().map(|_| 0).collect(),
            slab: Arc::new(slab),
            remaining,
        };
        if remaining > 0 {
            for dim in 0..regular.chunk.len() {
                regular.seek(grid, dim, 0);
            }
        }
        regular
    }

    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Goes to the first touched chunk of a dimension with coordinates from `x` on.
    fn seek(&mut self, grid: &ChunkGrid, dim: usize, x: u64) -> bool {
        let slab = &self.slab.dims()[dim];
        let side = grid.chunk_shape()[dim];
        let Some(first) = slab.first_from(x) else {
            return false;
        };
        let chunk = first / side;
        self.chunk[dim] = chunk;
        self.cells[dim] = slab.cells_below((chunk + 1) * side) - slab.cells_below(chunk * side);
        true
    }

    pub(super) fn next(&mut self, grid: &ChunkGrid) -> Option<Part> {
        self.remaining = self.remaining.checked_sub(1)?;
        let part = Part::new(
            self.chunk.clone(),
            grid,
            self.cells.iter().product(),
            Body::Regular(self.slab.clone()),
        );
        for dim in (0..self.chunk.len()).rev() {
            let following = (self.chunk[dim] + 1) * grid.chunk_shape()[dim];
            if self.seek(grid, dim, following) {
                break;
            }
            self.seek(grid, dim, 0);
        }
        Some(part)
    }
}
