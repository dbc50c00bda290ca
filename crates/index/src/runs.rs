//! Splits a part into the byte runs it touches in its stored chunk.
//!
//! Sits between [`Part`] and the planner; does no I/O.
//!
//! Invariant: the runs of a part are sorted, disjoint and non-adjacent, and together they hold
//! each selected cell of that chunk exactly once.

mod regular;
mod summary;
mod union;

use crate::copies::{Lattice, UnionPaths};
use crate::part::Body;
use crate::union::Window;
use crate::{CellOrder, Part, Target};

pub use summary::RunSummary;

/// Neighbouring bytes in a stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteRun {
    /// The first byte, counted from the start of the decoded chunk.
    pub offset: u64,
    /// The number of bytes, at least one cell.
    pub len: u64,
}

impl ByteRun {
    /// One past the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// The runs of a part, made by [`Part::runs`].
#[derive(Debug)]
pub struct Runs {
    source: Source,
    /// A run that may still grow.
    open: Option<CellRun>,
    cell_bytes: u64,
}

/// Neighbouring cells in a stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CellRun {
    start: u64,
    end: u64,
}

/// Sorted runs that may touch or repeat.
#[derive(Debug)]
enum Source {
    Regular(Box<regular::Rows>),
    Union(Box<union::Rows>),
    List(std::vec::IntoIter<CellRun>),
}

impl Runs {
    pub(crate) fn new(part: &Part, order: &CellOrder, cell_bytes: u64) -> Runs {
        let source = match part.body() {
            Body::Regular(slab) => {
                Source::Regular(Box::new(regular::Rows::new(&part.axes(slab, order))))
            }
            Body::Union(union, _) if order.is_row_major() => {
                let window = Window::new(part.region(), part.chunk_shape());
                Source::Union(Box::new(union::Rows::new(window, union.root().clone())))
            }
            Body::Union(..) => Source::List(permuted_union(part, order)),
            Body::Points { .. } => Source::List(points(part, order)),
        };
        Runs {
            source,
            open: None,
            cell_bytes,
        }
    }

    fn bytes(&self, run: CellRun) -> ByteRun {
        ByteRun {
            offset: run.start.saturating_mul(self.cell_bytes),
            len: (run.end - run.start).saturating_mul(self.cell_bytes),
        }
    }
}

impl Iterator for Runs {
    type Item = ByteRun;

    fn next(&mut self) -> Option<ByteRun> {
        loop {
            let run = match &mut self.source {
                Source::Regular(rows) => rows.next(),
                Source::Union(rows) => rows.next(),
                Source::List(list) => list.next(),
            };
            let Some(run) = run else {
                return self.open.take().map(|last| self.bytes(last));
            };
            match &mut self.open {
                Some(open) if run.start <= open.end => open.end = open.end.max(run.end),
                open => {
                    if let Some(done) = open.replace(run) {
                        return Some(self.bytes(done));
                    }
                }
            }
        }
    }
}

/// The tree is sorted for row-major chunks only; in another order the boxes of its paths are cut
/// into runs and these are sorted, at most one per cell of the chunk.
fn permuted_union(part: &Part, order: &CellOrder) -> std::vec::IntoIter<CellRun> {
    let mut runs = Vec::new();
    let mut lattice = Lattice::default();
    if let Body::Union(union, _) = part.body() {
        // Runs do not care where cells go; with a target of all zeros only sources are folded.
        let mut paths = UnionPaths::new(part, union, order, &Target::strided(0, [0]));
        while paths.next(&mut lattice) {
            runs.extend(
                lattice
                    .source_runs()
                    .map(|(start, end)| CellRun { start, end }),
            );
        }
    }
    runs.sort_unstable();
    runs.into_iter()
}

fn points(part: &Part, order: &CellOrder) -> std::vec::IntoIter<CellRun> {
    let mut runs = Vec::new();
    if let Body::Points { list, range, .. } = part.body() {
        let place = list.placement(part, order);
        runs.extend(list.entries[range.clone()].iter().map(|entry| {
            let start = list.offset(entry, &place);
            CellRun {
                start,
                end: start + 1,
            }
        }));
    }
    if !order.is_row_major() {
        runs.sort_unstable();
    }
    runs.into_iter()
}
