//! One touched chunk and what a selection has in it.
//!
//! Sits between [`crate::Parts`] and the executor, which turns [`Runs`] into ranged requests and
//! [`Copies`] into memory traffic.
//!
//! Invariant: a part is never empty; it owns (shares) all it needs, so it can move to another
//! thread and outlive grid and selection.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::axis::Axis;
use crate::parts::PointList;
use crate::union::Clipped;
use crate::{
    CellOrder, ChunkGrid, Copies, Dims, Hyperslab, Region, RunSummary, Runs, Shape, Target, Union,
};

/// One touched chunk, with the part of the selection in it.
#[derive(Clone, Debug)]
pub struct Part {
    chunk: Dims,
    region: Region,
    chunk_shape: Shape,
    cells: u64,
    body: Body,
}

/// The whole selection; the part's region says which piece of it is meant.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Regular(Arc<Hyperslab>),
    Union(Union, Clipped),
    Points {
        list: Arc<PointList>,
        range: Range<usize>,
        distinct: u64,
    },
}

impl Part {
    pub(crate) fn new(chunk: Dims, grid: &ChunkGrid, cells: u64, body: Body) -> Part {
        let region = grid.chunk_region(&chunk);
        Part {
            chunk,
            region,
            chunk_shape: grid.chunk_shape().clone(),
            cells,
            body,
        }
    }

    /// The chunk's index in the grid.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// The chunk's cells in the array, cut off at the array's border.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The shape the chunk is stored with, which at the border exceeds the region's.
    pub fn chunk_shape(&self) -> &Shape {
        &self.chunk_shape
    }

    /// The number of result cells that come from this chunk; duplicate points count each time.
    pub fn num_cells(&self) -> u64 {
        self.cells
    }

    /// True if every cell that the chunk has within the array is selected, so that a write need
    /// not read the chunk first.
    pub fn is_whole(&self) -> bool {
        let distinct = match &self.body {
            Body::Regular(_) | Body::Union(..) => self.cells,
            Body::Points { distinct, .. } => *distinct,
        };
        distinct == self.region.num_cells()
    }

    /// The bytes of the selected cells in the stored chunk: sorted, disjoint and non-adjacent
    /// runs, with each cell once. `order` must have the array's rank, and the chunk's size in
    /// bytes must fit in `u64`.
    pub fn runs(&self, order: &CellOrder, cell_bytes: u64) -> Runs {
        Runs::new(self, order, cell_bytes)
    }

    /// What [`Part::runs`] would yield, in total. Closed form, except for points and for unions
    /// in a permuted order.
    pub fn run_summary(&self, order: &CellOrder, cell_bytes: u64) -> RunSummary {
        RunSummary::of(self, order, cell_bytes)
    }

    /// Which stored cell goes where in the caller's buffer, each pair once. A write follows the
    /// same copies backwards; of duplicate points the last one in the list comes last.
    /// `order` must have the array's rank; check the target with [`Target::required_cells`].
    pub fn copies(&self, order: &CellOrder, target: &Target) -> Copies {
        Copies::new(self, order, target)
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// The dimensions of a regular selection in this chunk, in stored order.
    pub(crate) fn axes(&self, slab: &Hyperslab, order: &CellOrder) -> SmallVec<[Axis; 4]> {
        debug_assert_eq!(order.rank(), self.chunk.len());
        let cut = |&dim: &usize| {
            let low = self.region.start()[dim];
            Axis::cut(
                &slab.dims()[dim],
                low,
                self.region.end(dim),
                self.chunk_shape[dim],
            )
        };
        order.dims().iter().map(cut).collect()
    }
}
