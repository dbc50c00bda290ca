//! What a span tree has in one chunk.
//!
//! Under [`super::Union`], used by parts, runs and copies. Shared trees are measured once, so that
//! the cost is that of the spans in the chunk and not of the cells.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Node, Span};
use crate::{Dims, Region};

/// A chunk as its stored cells see it: a clipped region within full sides.
#[derive(Clone)]
pub(crate) struct Window {
    pub(crate) low: Dims,
    pub(crate) high: Dims,
    /// The sides of the stored chunk, which edge chunks exceed the array by.
    pub(crate) sides: Dims,
    /// Row-major strides of the stored chunk.
    pub(crate) strides: Dims,
}

/// The cells of a tree within a window, in row-major order of the stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clipped {
    pub(crate) cells: u64,
    pub(crate) runs: u64,
    /// The offsets of the first and the last cell.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Whether the first and the last stored cell are selected, so that runs join across rows.
    head: bool,
    tail: bool,
}

const NOTHING: Clipped = Clipped {
    cells: 0,
    runs: 0,
    first: 0,
    last: 0,
    head: false,
    tail: false,
};
const ONE_CELL: Clipped = Clipped {
    cells: 1,
    runs: 1,
    first: 0,
    last: 0,
    head: true,
    tail: true,
};

impl Window {
    pub(crate) fn new(region: &Region, sides: &[u64]) -> Window {
        Window {
            low: region.start().into(),
            high: (0..region.rank()).map(|dim| region.end(dim)).collect(),
            sides: sides.into(),
            strides: crate::shape::row_major_strides(sides),
        }
    }

    /// The spans of a node in this window, with their clipped ends.
    pub(crate) fn spans<'a>(
        &self,
        node: &'a Node,
        level: usize,
    ) -> impl Iterator<Item = (&'a Span, u64, u64)> + use<'a> {
        let (low, high) = (self.low[level], self.high[level]);
        node.spans()[node.first_ending_after(low)..]
            .iter()
            .take_while(move |span| span.low < high)
            .map(move |span| (span, span.low.max(low), span.high.min(high)))
    }

    /// True if the tree has every stored cell of the window's dimensions from `level` on.
    pub(crate) fn is_full(&self, mut below: Option<&Arc<Node>>, mut level: usize) -> bool {
        while let Some(node) = below {
            let Some((span, low, high)) = self.spans(node, level).next() else {
                return false;
            };
            if high - low != self.sides[level] {
                return false;
            }
            below = span.below.as_ref();
            level += 1;
        }
        true
    }

    /// Measures a tree.
    pub(crate) fn measure(&self, root: &Arc<Node>) -> Clipped {
        self.measure_below(Some(root), 0, &mut HashMap::new())
    }

    fn measure_below(
        &self,
        below: Option<&Arc<Node>>,
        level: usize,
        known: &mut HashMap<*const Node, Clipped>,
    ) -> Clipped {
        let Some(node) = below else {
            return ONE_CELL;
        };
        if let Some(clipped) = known.get(&Arc::as_ptr(node)) {
            return *clipped;
        }
        let (start, stride) = (self.low[level], self.strides[level]);
        let mut all = NOTHING;
        // Where the last counted span ended, and whether its last stored cell is selected.
        let mut joint = None;
        for (span, low, high) in self.spans(node, level) {
            let each = self.measure_below(span.below.as_ref(), level + 1, known);
            if each.cells == 0 {
                continue;
            }
            let rows = high - low;
            let joins = if each.head && each.tail { rows - 1 } else { 0 };
            let joins = joins + u64::from(joint == Some(low) && each.head);
            if all.cells == 0 {
                all.first = (low - start) * stride + each.first;
                all.head = low == start && each.head;
            }
            all.cells += rows * each.cells;
            all.runs += rows * each.runs - joins;
            all.last = (high - 1 - start) * stride + each.last;
            all.tail = high - start == self.sides[level] && each.tail;
            joint = each.tail.then_some(high);
        }
        known.insert(Arc::as_ptr(node), all);
        all
    }
}
