//! Splits the plan of a file into parts that are read by themselves.
//!
//! Between the planner, which joins pieces of a file where that pays, and the executor, which holds
//! what it has fetched until it is decoded. Invariant: every piece is in one part, with all ranges
//! that hold bytes of it.

use std::ops::Range;

use hyperslab_format::{Piece, Source};
use hyperslab_plan::Method;

use crate::fetch::Prepared;

/// The parts of a plan; a plan that is not by ranges, or that counts on caches, is one part.
pub(crate) fn split(prepared: Prepared, method: Method) -> Vec<(Prepared, Method)> {
    let Method::Ranges(ranges) = method else {
        return vec![(prepared, method)];
    };
    if !prepared.held().is_empty() {
        return vec![(prepared, Method::Ranges(ranges))];
    }
    let groups = grouped(&prepared.object.pieces, &ranges);
    let each = groups.into_iter().map(|(pieces, ranges)| {
        let pieces = pieces
            .into_iter()
            .map(|i| prepared.object.pieces[i].clone())
            .collect();
        (prepared.with_pieces(pieces), Method::Ranges(ranges))
    });
    each.collect()
}

/// Numbers of pieces, and the ranges that they need.
type Group = (Vec<usize>, Vec<Range<u64>>);

/// Pieces and ranges that overlap, directly or through others, are one group.
fn grouped(pieces: &[Piece], ranges: &[Range<u64>]) -> Vec<Group> {
    let mut spans: Vec<(Range<u64>, Option<usize>)> = Vec::new();
    let mut placeless = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        match &piece.source {
            Source::Range(range) => spans.push((range.clone(), Some(i))),
            _ => placeless.push(i),
        }
    }
    spans.extend(ranges.iter().map(|range| (range.clone(), None)));
    spans.sort_by_key(|(range, _)| range.start);
    let mut groups: Vec<Group> = Vec::new();
    let mut end = None;
    for (range, piece) in spans {
        if end.is_none_or(|end| range.start >= end) {
            groups.push(Group::default());
        }
        end = Some(end.unwrap_or(0).max(range.end));
        if let Some(group) = groups.last_mut() {
            match piece {
                Some(piece) => group.0.push(piece),
                None => group.1.push(range),
            }
        }
    }
    if !placeless.is_empty() {
        groups.push((placeless, Vec::new()));
    }
    groups
}
