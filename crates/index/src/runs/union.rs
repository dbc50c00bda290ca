//! Runs of unions in row-major chunks: a walk through the span tree, row by row.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::CellRun;
use crate::union::{Node, Window};

pub(super) struct Rows {
    window: Window,
    /// One entry per dimension that was reached; those beyond `depth` are kept for reuse.
    levels: SmallVec<[Level; 4]>,
    depth: usize,
}

/// A dimension, the coordinate it is at, and the offset of that row.
struct Level {
    tree: Arc<Node>,
    span: usize,
    at: u64,
    row: u64,
    /// Whether a run was found since this level was entered.
    found: bool,
}

impl Level {
    fn new(tree: Arc<Node>) -> Level {
        Level {
            tree,
            span: 0,
            at: 0,
            row: 0,
            found: false,
        }
    }
}

impl Rows {
    pub(super) fn new(window: Window, root: Arc<Node>) -> Rows {
        let mut rows = Rows {
            window,
            levels: SmallVec::new(),
            depth: 0,
        };
        rows.enter(root, 0);
        rows
    }

    fn enter(&mut self, tree: Arc<Node>, row: u64) {
        let low = self.window.low[self.depth];
        match self.levels.get_mut(self.depth) {
            Some(level) => level.tree = tree,
            None => self.levels.push(Level::new(tree)),
        }
        let level = &mut self.levels[self.depth];
        level.span = level.tree.first_ending_after(low);
        level.at = low;
        level.row = row;
        level.found = false;
        self.depth += 1;
    }

    pub(super) fn next(&mut self) -> Option<CellRun> {
        while self.depth > 0 {
            let dim = self.depth - 1;
            let (low, high) = (self.window.low[dim], self.window.high[dim]);
            let stride = self.window.strides[dim];
            let level = &mut self.levels[dim];
            let Some(span) = level
                .tree
                .spans()
                .get(level.span)
                .filter(|span| span.low < high)
            else {
                self.leave();
                continue;
            };
            let from = span.low.max(level.at);
            let until = span.high.min(high);
            if from >= until {
                level.span += 1;
                continue;
            }
            let row = level.row + (from - low) * stride;
            match &span.below {
                Some(below) if !self.window.is_full(Some(below), dim + 1) => {
                    level.at = from + 1;
                    let below = below.clone();
                    self.enter(below, row);
                }
                _ => {
                    level.span += 1;
                    level.found = true;
                    return Some(CellRun {
                        start: row,
                        end: row + (until - from) * stride,
                    });
                }
            }
        }
        None
    }

    /// Back to the dimension above, which goes on with its next coordinate, or with its next span
    /// if the tree of this one has nothing in the window.
    fn leave(&mut self) {
        self.depth -= 1;
        let found = self.levels[self.depth].found;
        if let Some(above) = self.depth.checked_sub(1) {
            self.levels[above].found |= found;
            self.levels[above].span += usize::from(!found);
        }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at: SmallVec<[u64; 6]> = self.levels[..self.depth]
            .iter()
            .map(|level| level.at)
            .collect();
        f.debug_struct("Rows").field("at", &at).finish()
    }
}
