//! Parts of unions, by walking the span tree chunk by chunk.
//!
//! For the chunk indices chosen so far, a level holds the trees that are reachable through spans
//! in those chunks. No tree is empty, so every choice leads to a touched chunk and the walk never
//! turns back empty-handed.

use std::fmt;
use std::sync::Arc;

use crate::part::Body;
use crate::union::{Node, Window};
use crate::{ChunkGrid, Dims, Part, Union};

pub(super) struct Walk {
    union: Union,
    /// Per dimension the reachable trees, each once.
    trees: Vec<Vec<Arc<Node>>>,
    /// The next chunk index, or `None` at the end.
    chunk: Option<Dims>,
}

impl Walk {
    pub(super) fn new(grid: &ChunkGrid, union: &Union) -> Walk {
        let mut trees = vec![Vec::new(); union.rank()];
        trees[0].push(union.root().clone());
        let mut walk = Walk {
            union: union.clone(),
            trees,
            chunk: None,
        };
        let mut chunk: Dims = (0..union.rank()).map(|_| 0).collect();
        if walk.descend(grid, &mut chunk, 0, 0) {
            walk.chunk = Some(chunk);
        }
        walk
    }

    /// Goes to the first touched chunk of dimension `dim` with coordinates from `x` on, and to the
    /// first one of every dimension below.
    fn descend(&mut self, grid: &ChunkGrid, chunk: &mut Dims, dim: usize, x: u64) -> bool {
        let side = grid.chunk_shape()[dim];
        let first_from = |tree: &Arc<Node>| {
            tree.spans()
                .get(tree.first_ending_after(x))
                .map(|span| span.low.max(x))
        };
        let Some(first) = self.trees[dim].iter().filter_map(first_from).min() else {
            return false;
        };
        chunk[dim] = first / side;
        if dim + 1 == chunk.len() {
            return true;
        }
        let (low, high) = (chunk[dim] * side, (chunk[dim] + 1) * side);
        let mut below = std::mem::take(&mut self.trees[dim + 1]);
        below.clear();
        for tree in &self.trees[dim] {
            let spans = &tree.spans()[tree.first_ending_after(low)..];
            for span in spans.iter().take_while(|span| span.low < high) {
                below.extend(span.below.clone());
            }
        }
        below.sort_unstable_by_key(Arc::as_ptr);
        below.dedup_by(|a, b| Arc::ptr_eq(a, b));
        self.trees[dim + 1] = below;
        self.descend(grid, chunk, dim + 1, 0)
    }

    pub(super) fn next(&mut self, grid: &ChunkGrid) -> Option<Part> {
        let chunk = self.chunk.take()?;
        let window = Window::new(&grid.chunk_region(&chunk), grid.chunk_shape());
        let clipped = window.measure(self.union.root());
        let mut following = chunk.clone();
        for dim in (0..chunk.len()).rev() {
            let x = (chunk[dim] + 1) * grid.chunk_shape()[dim];
            if self.descend(grid, &mut following, dim, x) {
                self.chunk = Some(following);
                break;
            }
        }
        Some(Part::new(
            chunk,
            grid,
            clipped.cells,
            Body::Union(self.union.clone(), clipped),
        ))
    }
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk")
            .field("union", &self.union)
            .field("chunk", &self.chunk)
            .finish()
    }
}
