//! Which stored cell goes where in the caller's buffer.
//!
//! Sits between [`Part`] and the executor's copy loop: the hot path of every read and write.
//!
//! Invariant: the copies of a part pair each of its selected cells with its place in the result
//! exactly once. Dimensions that are contiguous on both sides are folded into one piece, the next
//! one into the pieces of one copy; only the others take turns, without an allocation.

mod lattice;
mod points;
mod regular;
mod union;

use crate::part::Body;
use crate::{CellOrder, Part, Target};

pub(crate) use lattice::Lattice;
pub(crate) use union::Paths as UnionPaths;

/// `count` pieces of `len` cells each. Piece `k` goes from `src + k * src_step` in the stored chunk
/// to `dst + k * dst_step` in the caller's buffer; all numbers are cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StridedCopy {
    /// The first stored cell.
    pub src: u64,
    /// The place of that cell in the caller's buffer.
    pub dst: u64,
    /// The number of pieces.
    pub count: u64,
    /// From one piece to the next in the stored chunk; 0 if there is only one.
    pub src_step: u64,
    /// From one piece to the next in the caller's buffer; 0 if there is only one.
    pub dst_step: u64,
    /// The cells of a piece, contiguous on both sides.
    pub len: u64,
}

/// The copies of a part, made by [`Part::copies`].
#[derive(Debug)]
pub struct Copies {
    source: Source,
    lattice: Lattice,
}

#[derive(Debug)]
enum Source {
    Regular(regular::Choices),
    Union(union::Paths),
    Points(points::Walk),
}

impl Copies {
    pub(crate) fn new(part: &Part, order: &CellOrder, target: &Target) -> Copies {
        let source = match part.body() {
            Body::Regular(slab) => Source::Regular(regular::Choices::new(
                &part.axes(slab, order),
                order,
                target,
            )),
            Body::Union(union, _) => Source::Union(union::Paths::new(part, union, order, target)),
            Body::Points { list, range, .. } => {
                Source::Points(points::Walk::new(part, list, range.clone(), order, target))
            }
        };
        Copies {
            source,
            lattice: Lattice::default(),
        }
    }
}

impl Iterator for Copies {
    type Item = StridedCopy;

    #[inline]
    fn next(&mut self) -> Option<StridedCopy> {
        loop {
            if let Some(copy) = self.lattice.next() {
                return Some(copy);
            }
            let more = match &mut self.source {
                Source::Regular(choices) => choices.next(&mut self.lattice),
                Source::Union(paths) => paths.next(&mut self.lattice),
                Source::Points(walk) => return walk.next(),
            };
            if !more {
                return None;
            }
        }
    }
}
