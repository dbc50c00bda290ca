//! Irregular selections: unions of hyperslabs.
//!
//! Sits under [`crate::Selection`]. A union is a span tree as in HDF5: a level per dimension, each
//! a sorted list of coordinate intervals, each interval with the tree of the remaining dimensions
//! that all its coordinates share. A regular pattern therefore costs the sum over its dimensions,
//! never the product.
//!
//! Invariant: the intervals of a level are disjoint; neighbours that touch have different trees
//! below; equal trees are the same allocation; no tree is empty.

mod build;
mod clip;
mod node;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

pub(crate) use clip::{Clipped, Window};
pub(crate) use node::{Node, Span};

use crate::{DimSlab, Dims, Hyperslab, Region, Result};

/// The cells of several hyperslabs, each once, in row-major order; clones share the tree.
#[derive(Clone)]
pub struct Union {
    root: Arc<Node>,
    rank: usize,
    spans: usize,
    /// The smallest coordinate per dimension, and one past the largest.
    low: Dims,
    high: Dims,
}

impl Union {
    /// The union of hyperslabs of one rank, which is at least 1; `None` if all are empty.
    pub(crate) fn new(hyperslabs: &[Hyperslab]) -> Result<Option<Union>> {
        let root = build::build(hyperslabs, build::MAX_SPANS)?;
        let rank = hyperslabs.first().map_or(0, Hyperslab::rank);
        Ok(root.map(|root| Union::of_tree(root, rank)))
    }

    /// All combinations of coordinates, which rise along each axis; `None` if an axis has none. There
    /// is at least one axis.
    pub(crate) fn outer(axes: &[Vec<u64>]) -> Result<Option<Union>> {
        let root = build::build_outer(axes, build::MAX_SPANS)?;
        Ok(root.map(|root| Union::of_tree(root, axes.len())))
    }

    fn of_tree(root: Arc<Node>, rank: usize) -> Union {
        let mut low: Dims = (0..rank).map(|_| u64::MAX).collect();
        let mut high: Dims = (0..rank).map(|_| 0).collect();
        let mut spans = 0;
        let mut seen = HashSet::new();
        let mut open = vec![(&root, 0)];
        while let Some((node, level)) = open.pop() {
            if !seen.insert(Arc::as_ptr(node)) {
                continue;
            }
            spans += node.spans().len();
            for span in node.spans() {
                low[level] = low[level].min(span.low);
                high[level] = high[level].max(span.high);
                open.extend(span.below.iter().map(|below| (below, level + 1)));
            }
        }
        Union {
            root,
            rank,
            spans,
            low,
            high,
        }
    }

    pub(crate) fn root(&self) -> &Arc<Node> {
        &self.root
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of cells, each counted once.
    pub fn num_cells(&self) -> u64 {
        self.root.cells()
    }

    /// The number of intervals in memory, a measure of how irregular the selection is.
    pub fn num_spans(&self) -> usize {
        self.spans
    }

    /// The smallest box around the cells; `None` if that box has more than 2^63 cells.
    pub fn bounding(&self) -> Option<Region> {
        let shape: Dims = self
            .low
            .iter()
            .zip(&self.high)
            .map(|(low, high)| high - low)
            .collect();
        Region::new(&self.low, shape).ok()
    }

    /// One past the largest coordinate per dimension.
    pub(crate) fn ends(&self) -> &[u64] {
        &self.high
    }

    /// How many selected cells come before the cell in row-major order; for a selected cell its
    /// place in the result.
    pub fn rank_of(&self, point: &[u64]) -> u64 {
        self.locate(point).0
    }

    /// True if the cell is selected.
    pub fn contains_point(&self, point: &[u64]) -> bool {
        self.locate(point).1
    }

    fn locate(&self, point: &[u64]) -> (u64, bool) {
        debug_assert_eq!(point.len(), self.rank);
        let mut node: &Node = &self.root;
        let mut before = 0;
        for &x in point {
            let Some(span) = node.spans().get(node.first_ending_after(x)) else {
                return (before + node.cells(), false);
            };
            before += span.before;
            if x < span.low {
                return (before, false);
            }
            before += (x - span.low) * span.cells_each();
            match &span.below {
                Some(below) => node = below,
                None => return (before, true),
            }
        }
        (before, false)
    }

    /// The same selection as a hyperslab, if it is regular.
    pub(crate) fn as_hyperslab(&self) -> Option<Hyperslab> {
        let mut dims: SmallVec<[DimSlab; 6]> = SmallVec::new();
        let mut node = Some(&self.root);
        while let Some(at) = node {
            dims.push(at.as_slab()?);
            node = at.spans().first().and_then(|span| span.below.as_ref());
        }
        Hyperslab::from_dims(dims).ok()
    }
}

/// The size only: printed as a tree, shared parts would repeat without bound.
impl fmt::Debug for Union {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Union")
            .field("rank", &self.rank)
            .field("cells", &self.num_cells())
            .field("spans", &self.spans)
            .field("bounding", &self.bounding().as_ref().map(Region::to_string))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn slab(start: [u64; 2], stride: [u64; 2], count: [u64; 2], block: [u64; 2]) -> Hyperslab {
        Hyperslab::new(&start, &stride, &count, &block).unwrap()
    }

    #[test]
    fn ranks_count_the_cells_before() {
        let slabs = [
            slab([1, 1], [3, 2], [3, 3], [2, 1]),
            slab([0, 4], [1, 1], [5, 4], [1, 1]),
            slab([4, 0], [1, 4], [1, 2], [1, 3]),
        ];
        let union = Union::new(&slabs).unwrap().unwrap();
        let shape = Shape::new([10, 10]).unwrap();
        let mut before = 0;
        for offset in 0..shape.num_cells() {
            let point = shape.coords_of(offset);
            assert_eq!(union.rank_of(&point), before, "{point:?}");
            let selected = slabs.iter().any(|slab| slab.contains_point(&point));
            assert_eq!(union.contains_point(&point), selected, "{point:?}");
            before += u64::from(selected);
        }
        assert_eq!(union.num_cells(), before);
        assert_eq!(union.bounding().unwrap().to_string(), "[0:9, 0:8]");
    }

    #[test]
    fn regular_patterns_cost_their_sum() {
        let every = |start| slab([start, 0], [4, 3], [1000, 2000], [1, 1]);
        let union = Union::new(&[every(0), every(1)]).unwrap().unwrap();
        assert_eq!(union.num_cells(), 4_000_000);
        assert_eq!(union.num_spans(), 3000);
        let found = union.as_hyperslab().unwrap();
        assert_eq!(found, slab([0, 0], [4, 3], [1000, 2000], [2, 1]));
    }

    #[test]
    fn irregular_unions_stay_unions() {
        let union = Union::new(&[
            slab([0, 0], [1, 1], [1, 1], [2, 2]),
            slab([2, 2], [1, 1], [1, 1], [2, 2]),
        ]);
        let union = union.unwrap().unwrap();
        assert!(union.as_hyperslab().is_none());
        assert!(format!("{union:?}").contains("[0:4, 0:4]"));
    }
}
