//! Cuts a selection along a chunk grid.
//!
//! Sits between [`crate::ChunkGrid`] and [`Part`]; the executor pulls parts as it has room for
//! them.
//!
//! Invariant: parts come in row-major order of their chunk index, each touched chunk once, and
//! none is empty.

mod points;
mod refine;
mod regular;
mod union;

use crate::{ChunkGrid, Hyperslab, Part, Region, Selection};

pub(crate) use points::{Placement, PointList};

/// The parts of a selection, made by [`ChunkGrid::parts`].
#[derive(Debug)]
pub struct Parts<'a> {
    grid: &'a ChunkGrid,
    cutter: Cutter,
}

#[derive(Debug)]
enum Cutter {
    Regular(regular::Regular),
    Union(union::Walk),
    Points(points::Groups),
}

impl<'a> Parts<'a> {
    /// The selection must have been checked against the grid's array.
    pub(crate) fn new(grid: &'a ChunkGrid, selection: &Selection) -> Parts<'a> {
        let cutter = match selection {
            Selection::All => {
                let all = Hyperslab::from_region(&Region::whole(grid.array_shape()));
                Cutter::Regular(regular::Regular::new(grid, all))
            }
            Selection::Hyperslab(slab) => {
                Cutter::Regular(regular::Regular::new(grid, slab.clone()))
            }
            Selection::Union(union) => Cutter::Union(union::Walk::new(grid, union)),
            Selection::Points(points) => Cutter::Points(points::Groups::new(grid, points)),
        };
        Parts { grid, cutter }
    }

    /// How many parts are left; `None` for unions, where only walking through them tells.
    pub fn remaining(&self) -> Option<u64> {
        match &self.cutter {
            Cutter::Regular(regular) => Some(regular.remaining()),
            Cutter::Union(_) => None,
            Cutter::Points(groups) => Some(groups.remaining()),
        }
    }
}

impl Iterator for Parts<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        match &mut self.cutter {
            Cutter::Regular(regular) => regular.next(self.grid),
            Cutter::Union(walk) => walk.next(self.grid),
            Cutter::Points(groups) => groups.next(self.grid),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.remaining() {
            Some(left) => (
                usize::try_from(left).unwrap_or(usize::MAX),
                usize::try_from(left).ok(),
            ),
            None => (0, None),
        }
    }
}
