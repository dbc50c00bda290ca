//! Copies of unions.
//!
//! A path takes one span per dimension, so it is a box. Along a span, cells are equally far apart
//! in the result (by the cells of the tree below), so each path is a lattice, in any stored order.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Lattice;
use crate::union::{Node, Window};
use crate::{CellOrder, Dims, Part, Target, Union};

pub(crate) struct Paths {
    window: Window,
    /// Dimensions in stored order, and the stored stride of each array dimension.
    order: CellOrder,
    strides: Dims,
    base: u64,
    step: u64,
    levels: SmallVec<[Level; 4]>,
    depth: usize,
}

/// A dimension and the span it is at.
struct Level {
    tree: Arc<Node>,
    span: usize,
    /// The first cell of the path so far: its stored offset and its rank in the result.
    src: u64,
    rank: u64,
    /// The clipped length of the span, and the cells below each of its coordinates.
    len: u64,
    each: u64,
}

impl Paths {
    pub(crate) fn new(part: &Part, union: &Union, order: &CellOrder, target: &Target) -> Paths {
        let mut paths = Paths {
            window: Window::new(part.region(), part.chunk_shape()),
            order: order.clone(),
            strides: order.strides(part.chunk_shape()),
            base: target.base(),
            step: target.stride(0),
            levels: SmallVec::new(),
            depth: 0,
        };
        paths.enter(union.root().clone(), 0, 0);
        paths
    }

    fn enter(&mut self, tree: Arc<Node>, src: u64, rank: u64) {
        let span = tree.first_ending_after(self.window.low[self.depth]);
        self.levels.truncate(self.depth);
        self.levels.push(Level {
            tree,
            span,
            src,
            rank,
            len: 0,
            each: 0,
        });
        self.depth += 1;
    }

    /// Fills the lattice with the next path.
    pub(crate) fn next(&mut self, lattice: &mut Lattice) -> bool {
        while self.depth > 0 {
            let dim = self.depth - 1;
            let (low, high) = (self.window.low[dim], self.window.high[dim]);
            let level = &mut self.levels[dim];
            let Some(span) = level
                .tree
                .spans()
                .get(level.span)
                .filter(|span| span.low < high)
            else {
                self.depth -= 1;
                continue;
            };
            level.span += 1;
            let from = span.low.max(low);
            level.len = span.high.min(high) - from;
            level.each = span.cells_each();
            let src = level.src + (from - low) * self.strides[dim];
            let rank = level.rank + span.before + (from - span.low) * level.each;
            match &span.below {
                Some(below) => {
                    let below = below.clone();
                    self.enter(below, src, rank);
                }
                None => {
                    self.fill(lattice, src, rank);
                    return true;
                }
            }
        }
        false
    }

    fn fill(&self, lattice: &mut Lattice, src: u64, rank: u64) {
        lattice.start(src, self.base + rank * self.step);
        for &dim in self.order.dims() {
            let level = &self.levels[dim];
            lattice.push(level.len, self.strides[dim], level.each * self.step);
        }
        lattice.finish();
    }
}

impl fmt::Debug for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spans: SmallVec<[usize; 6]> = self.levels.iter().map(|level| level.span).collect();
        f.debug_struct("Paths").field("next_spans", &spans).finish()
    }
}
