//! One level of a span tree.
//!
//! Under [`super::Union`], which states the invariant.

use std::sync::Arc;

use crate::DimSlab;

/// A sorted list of intervals along one dimension.
pub(crate) struct Node {
    spans: Vec<Span>,
    cells: u64,
}

/// The coordinates `low..high`, all with the same cells below.
pub(crate) struct Span {
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// The cells of the spans before this one in its node.
    pub(crate) before: u64,
    /// The remaining dimensions; `None` at the last one.
    pub(crate) below: Option<Arc<Node>>,
}

/// An interval that is not yet counted.
pub(crate) struct Interval {
    pub(crate) low: u64,
    pub(crate) high: u64,
    pub(crate) below: Option<Arc<Node>>,
}

/// The identity of a tree: equal trees are one allocation.
pub(crate) fn address(below: &Option<Arc<Node>>) -> usize {
    below.as_ref().map_or(0, |node| Arc::as_ptr(node) as usize)
}

impl Span {
    /// The cells at each coordinate of the span.
    pub(crate) fn cells_each(&self) -> u64 {
        self.below.as_ref().map_or(1, |below| below.cells)
    }

    fn len(&self) -> u64 {
        self.high - self.low
    }
}

impl Node {
    /// Counts the cells; `None` if there are too many to count.
    pub(crate) fn new(intervals: Vec<Interval>) -> Option<Node> {
        let mut spans = Vec::with_capacity(intervals.len());
        let mut cells: u64 = 0;
        for Interval { low, high, below } in intervals {
            let span = Span {
                low,
                high,
                before: cells,
                below,
            };
            cells = span
                .len()
                .checked_mul(span.cells_each())?
                .checked_add(cells)?;
            if cells > i64::MAX as u64 {
                return None;
            }
            spans.push(span);
        }
        Some(Node { spans, cells })
    }

    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub(crate) fn cells(&self) -> u64 {
        self.cells
    }

    /// The index of the first span with a coordinate that is at least `x`.
    pub(crate) fn first_ending_after(&self, x: u64) -> usize {
        self.spans.partition_point(|span| span.high <= x)
    }

    /// This level as a regular pattern, if all spans are alike.
    pub(crate) fn as_slab(&self) -> Option<DimSlab> {
        let first = self.spans.first()?;
        let stride = self
            .spans
            .get(1)
            .map_or(first.len(), |second| second.low - first.low);
        let regular = self.spans.windows(2).all(|pair| {
            pair[1].low - pair[0].low == stride
                && pair[1].len() == first.len()
                && address(&pair[1].below) == address(&pair[0].below)
        });
        regular.then_some(DimSlab {
            start: first.low,
            stride,
            count: self.spans.len() as u64,
            block: first.len(),
        })
    }
}
