//! Parts of point lists, by one sort.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::part::Body;
use crate::{CellOrder, ChunkGrid, Dims, Part, Points, Shape};

/// A point as its chunk sees it. Sorting puts equal cells in the caller's order, so that of
/// duplicates the last one is written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// The row-major position of the chunk in the grid.
    chunk: u64,
    /// The row-major offset of the cell in the stored chunk.
    pub(crate) offset: u64,
    /// The place in the caller's list.
    pub(crate) index: usize,
}

/// The points sorted by chunk, shared by all parts.
pub(crate) struct PointList {
    pub(crate) points: Points,
    pub(crate) entries: Vec<Entry>,
}

/// Without the entries: a list may be long.
impl fmt::Debug for PointList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PointList").field(&self.points).finish()
    }
}

/// Where the cells of a chunk are stored; `None` if in row-major order, which entries know.
pub(crate) type Placement = Option<(Dims, Dims)>;

impl PointList {
    /// The chunk's start and its stored strides, if the order is not the entries' own.
    pub(crate) fn placement(&self, part: &Part, order: &CellOrder) -> Placement {
        let permuted = !order.is_row_major();
        permuted.then(|| {
            (
                part.region().start().into(),
                order.strides(part.chunk_shape()),
            )
        })
    }

    /// The offset of a point's cell in the stored chunk.
    pub(crate) fn offset(&self, entry: &Entry, placement: &Placement) -> u64 {
        let Some((start, strides)) = placement else {
            return entry.offset;
        };
        let point = self.points.point(entry.index);
        point
            .iter()
            .zip(start.iter().zip(strides))
            .map(|(x, (low, stride))| (x - low) * stride)
            .sum()
    }
}

#[derive(Debug)]
pub(super) struct Groups {
    list: Arc<PointList>,
    /// Where the next part starts in the sorted list.
    at: usize,
    grid_shape: Shape,
    remaining: u64,
}

impl Groups {
    pub(super) fn new(grid: &ChunkGrid, points: &Points) -> Groups {
        Groups::of(grid, points, 0..points.iter().len())
    }

    /// Groups some of the points.
    pub(super) fn of(
        grid: &ChunkGrid,
        points: &Points,
        some: impl Iterator<Item = usize>,
    ) -> Groups {
        let grid_shape = Shape::trusted(grid.grid_shape());
        let entry = |index: usize| {
            let point = points.point(index);
            let sides = grid.chunk_shape().iter().zip(grid_shape.iter());
            let (mut chunk, mut offset) = (0, 0);
            for (&x, (&side, &chunks)) in point.iter().zip(sides) {
                chunk = chunk * chunks + x / side;
                offset = offset * side + x % side;
            }
            Entry {
                chunk,
                offset,
                index,
            }
        };
        let mut entries: Vec<Entry> = some.map(entry).collect();
        entries.sort_unstable();
        let remaining = entries.chunk_by(|a, b| a.chunk == b.chunk).count() as u64;
        let list = Arc::new(PointList {
            points: points.clone(),
            entries,
        });
        Groups {
            list,
            at: 0,
            grid_shape,
            remaining,
        }
    }

    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    pub(super) fn next(&mut self, grid: &ChunkGrid) -> Option<Part> {
        let rest = &self.list.entries[self.at..];
        let chunk = rest.first()?.chunk;
        let len = rest.partition_point(|entry| entry.chunk == chunk);
        let distinct = rest[..len].chunk_by(|a, b| a.offset == b.offset).count() as u64;
        let range: Range<usize> = self.at..self.at + len;
        self.at += len;
        self.remaining -= 1;
        let body = Body::Points {
            list: self.list.clone(),
            range,
            distinct,
        };
        Some(Part::new(
            self.grid_shape.coords_of(chunk),
            grid,
            len as u64,
            body,
        ))
    }
}
