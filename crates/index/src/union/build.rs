//! Builds span trees.
//!
//! Under [`super::Union`]. Trees are interned (equal trees are one allocation), so that two trees
//! are compared by address and each pair of trees is merged once. Hyperslabs are merged in pairs,
//! then the pairs in pairs, so that a long list costs `n log n`.
//!
//! Invariant: at no time are more than the given number of spans alive.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::node::{Interval, Node, Span, address};
use crate::{DimSlab, Dims, Error, Hyperslab, Result};

/// The most intervals a union may have, about half a gigabyte of them.
pub(super) const MAX_SPANS: usize = 1 << 24;

/// The union of hyperslabs of one rank; `None` if all are empty.
pub(super) fn build(hyperslabs: &[Hyperslab], max_spans: usize) -> Result<Option<Arc<Node>>> {
    let mut builder = Builder {
        max_spans,
        ..Builder::default()
    };
    let mut sorted: Vec<&Hyperslab> = hyperslabs.iter().filter(|slab| !slab.is_empty()).collect();
    // Neighbours merge first, so that later rounds find little that overlaps.
    let starts = |slab: &Hyperslab| -> Dims { slab.dims().iter().map(|dim| dim.start).collect() };
    sorted.sort_by_cached_key(|slab| starts(slab));
    let mut trees = Vec::with_capacity(sorted.len());
    for hyperslab in sorted {
        trees.extend(builder.tree(hyperslab.dims())?);
    }
    while trees.len() > 1 {
        let mut merged = Vec::with_capacity(trees.len().div_ceil(2));
        for pair in trees.chunks(2) {
            merged.push(match pair {
                [one, other] => builder.merge(one, other)?,
                _ => pair[0].clone(),
            });
        }
        trees = merged;
        builder.forget_dead();
    }
    Ok(trees.pop())
}

/// All combinations of coordinates, of which each axis has some; `None` if one has none. The
/// coordinates of an axis rise.
pub(super) fn build_outer(axes: &[Vec<u64>], max_spans: usize) -> Result<Option<Arc<Node>>> {
    let mut builder = Builder {
        max_spans,
        ..Builder::default()
    };
    let mut below = None;
    for coordinates in axes.iter().rev() {
        let mut intervals = Vec::new();
        for &at in coordinates {
            append(&mut intervals, at, at.saturating_add(1), &below);
        }
        if intervals.is_empty() {
            return Ok(None);
        }
        below = Some(builder.intern(intervals)?);
    }
    Ok(below)
}

#[derive(Default)]
struct Builder {
    trees: HashSet<Interned>,
    /// Merged pairs by address; the trees stay alive in `trees` for as long as this is kept.
    merged: HashMap<(usize, usize), Arc<Node>>,
    spans: usize,
    max_spans: usize,
}

impl Builder {
    /// The tree of one hyperslab, from its last dimension up.
    fn tree(&mut self, dims: &[DimSlab]) -> Result<Option<Arc<Node>>> {
        let mut below = None;
        for slab in dims.iter().rev() {
            if slab.count > self.max_spans as u64 {
                return Err(self.too_many());
            }
            let intervals = (0..slab.count).map(|k| {
                let low = slab.start + k * slab.stride;
                Interval {
                    low,
                    high: low + slab.block,
                    below: below.clone(),
                }
            });
            below = Some(self.intern(intervals.collect())?);
        }
        Ok(below)
    }

    fn intern(&mut self, intervals: Vec<Interval>) -> Result<Arc<Node>> {
        let len = intervals.len();
        let Some(node) = Node::new(intervals) else {
            return Err(
                Error::invalid("a union of hyperslabs has too many cells to count")
                    .with_hint("it must have less than 2^63 cells"),
            );
        };
        let node = Interned(Arc::new(node));
        if let Some(known) = self.trees.get(&node) {
            return Ok(known.0.clone());
        }
        self.spans += len;
        if self.spans > self.max_spans {
            return Err(self.too_many());
        }
        let tree = node.0.clone();
        self.trees.insert(node);
        Ok(tree)
    }

    fn merge(&mut self, one: &Arc<Node>, other: &Arc<Node>) -> Result<Arc<Node>> {
        let (a, b) = (Arc::as_ptr(one) as usize, Arc::as_ptr(other) as usize);
        if a == b {
            return Ok(one.clone());
        }
        let key = (a.min(b), a.max(b));
        if let Some(known) = self.merged.get(&key) {
            return Ok(known.clone());
        }
        let merged = self.sweep(one.spans(), other.spans())?;
        let tree = self.intern(merged)?;
        self.merged.insert(key, tree.clone());
        Ok(tree)
    }

    /// Walks along two levels at once and merges below where both have cells.
    fn sweep(&mut self, one: &[Span], other: &[Span]) -> Result<Vec<Interval>> {
        let mut out = Vec::with_capacity(one.len() + other.len());
        let (mut i, mut j) = (0, 0);
        // Everything before `x` is in `out` already.
        let mut x = 0;
        loop {
            match (one.get(i), other.get(j)) {
                (None, None) => return Ok(out),
                (Some(span), None) => {
                    append(&mut out, span.low.max(x), span.high, &span.below);
                    i += 1;
                }
                (None, Some(span)) => {
                    append(&mut out, span.low.max(x), span.high, &span.below);
                    j += 1;
                }
                (Some(a), Some(b)) => {
                    let (a_low, b_low) = (a.low.max(x), b.low.max(x));
                    if a_low < b_low {
                        x = a.high.min(b_low);
                        append(&mut out, a_low, x, &a.below);
                    } else if b_low < a_low {
                        x = b.high.min(a_low);
                        append(&mut out, b_low, x, &b.below);
                    } else {
                        x = a.high.min(b.high);
                        let below = match (&a.below, &b.below) {
                            (Some(a), Some(b)) => Some(self.merge(a, b)?),
                            _ => None,
                        };
                        append(&mut out, a_low, x, &below);
                    }
                    i += usize::from(a.high <= x);
                    j += usize::from(b.high <= x);
                }
            }
        }
    }

    /// Drops the trees that no result uses any more, parents before their children.
    fn forget_dead(&mut self) {
        self.merged.clear();
        let mut before = usize::MAX;
        while self.trees.len() < before {
            before = self.trees.len();
            let spans = &mut self.spans;
            self.trees.retain(|tree| {
                let used = Arc::strong_count(&tree.0) > 1;
                *spans -= if used { 0 } else { tree.0.spans().len() };
                used
            });
        }
    }

    fn too_many(&self) -> Error {
        Error::invalid(format!(
            "a union of hyperslabs needs more than {} intervals",
            self.max_spans
        ))
        .with_hint("select fewer or more regular hyperslabs at a time")
    }
}

fn append(out: &mut Vec<Interval>, low: u64, high: u64, below: &Option<Arc<Node>>) {
    if let Some(last) = out.last_mut()
        && last.high == low
        && address(&last.below) == address(below)
    {
        last.high = high;
        return;
    }
    out.push(Interval {
        low,
        high,
        below: below.clone(),
    });
}

/// A tree that is equal to another if its spans are; the trees below are compared by address.
struct Interned(Arc<Node>);

impl PartialEq for Interned {
    fn eq(&self, other: &Interned) -> bool {
        let (one, other) = (self.0.spans(), other.0.spans());
        let same = |a: &Span, b: &Span| {
            (a.low, a.high, address(&a.below)) == (b.low, b.high, address(&b.below))
        };
        one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(a, b))
    }
}

impl Eq for Interned {}

impl Hash for Interned {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for span in self.0.spans() {
            (span.low, span.high, address(&span.below)).hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_spans_are_an_error_and_not_an_allocation() {
        let every_second = |count| Hyperslab::new(&[0], &[2], &[count], &[1]).unwrap();
        assert!(build(&[every_second(10)], 10).is_ok());
        let error = build(&[every_second(11)], 10).err().unwrap();
        assert!(
            error.message().contains("more than 10 intervals"),
            "{error}"
        );
        assert!(build(&[every_second(1 << 60)], MAX_SPANS).is_err());
    }

    #[test]
    fn only_living_spans_count_against_the_limit() {
        // 64 boxes in a row merge to one span: the rounds need 64, 32, 16 … spans on top.
        let boxes: Vec<_> = (0..64)
            .map(|k| Hyperslab::new(&[k], &[1], &[1], &[1]).unwrap())
            .collect();
        let root = build(&boxes, 96).unwrap().unwrap();
        assert_eq!((root.spans().len(), root.cells()), (1, 64));
        assert!(build(&boxes, 63).is_err());
    }

    #[test]
    fn nothing_at_all_has_no_tree() {
        let none = Hyperslab::new(&[0], &[1], &[0], &[1]).unwrap();
        assert!(build(&[none.clone(), none], 1).unwrap().is_none());
    }

    #[test]
    fn unions_too_large_to_count_are_refused() {
        let half = |start| Hyperslab::new(&[start], &[1], &[1 << 62], &[1]).unwrap();
        assert!(build(&[half(0), half(1 << 62)], 10).is_err());
    }
}
