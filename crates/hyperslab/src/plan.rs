//! Planning: which requests fetch the pieces of one object.
//!
//! A pure function of pieces and settings, behind a trait, so that a planner by cost can take its
//! place. This one is simple: whole objects when most of them is wanted or codecs leave no choice,
//! byte ranges otherwise, neighbours joined across small gaps.
//!
//! Invariant: every wanted byte is covered by exactly one request.

use std::fmt::Debug;
use std::ops::Range;

use hyperslab_format::{ArrayMeta, ObjectPieces, Source};

use crate::Options;

/// What to do for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Fetch the object whole, and cut the pieces out of it.
    Whole,
    /// Read the shard's index first, then plan again.
    Index,
    /// Fetch these ranges: sorted, disjoint.
    Ranges(Vec<Range<u64>>),
}

/// Chooses requests.
pub trait Planner: Debug + Send + Sync {
    /// Plans one object. Called a second time, with located pieces, after [`Plan::Index`].
    fn plan(&self, meta: &ArrayMeta, object: &ObjectPieces) -> Plan;
}

/// Whole chunk, or byte runs when the codec chain allows.
#[derive(Debug, Clone)]
pub struct SimplePlanner {
    join_gap: u64,
    max_ranges: usize,
    whole_chunks: bool,
}

impl SimplePlanner {
    /// A planner with the session's settings.
    pub fn new(options: &Options) -> Self {
        SimplePlanner {
            join_gap: options.join_gap,
            max_ranges: options.max_ranges.max(1),
            whole_chunks: options.whole_chunks,
        }
    }

    fn shard(&self, meta: &ArrayMeta, object: &ObjectPieces) -> Plan {
        let inner = meta.codecs.sharding().map_or(1, |s| s.num_inner());
        if object
            .pieces
            .iter()
            .any(|p| matches!(p.source, Source::Inner(_)))
        {
            // Past half of a shard the second round trip costs more than the bytes it saves.
            let most = 2 * object.pieces.len() as u64 >= inner;
            return if most || self.whole_chunks {
                Plan::Whole
            } else {
                Plan::Index
            };
        }
        let mut ranges: Vec<Range<u64>> = object
            .pieces
            .iter()
            .filter_map(|piece| match &piece.source {
                Source::Range(range) => Some(range.clone()),
                _ => None,
            })
            .filter(|range| !range.is_empty())
            .collect();
        ranges.sort_by_key(|r| (r.start, r.end));
        Plan::Ranges(self.join(ranges.into_iter()))
    }

    /// Joins ranges that overlap or lie at most the gap apart.
    fn join(&self, ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        let mut out: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match out.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(self.join_gap) => {
                    last.end = last.end.max(range.end);
                }
                _ => out.push(range),
            }
        }
        out
    }

    fn runs(&self, meta: &ArrayMeta, object: &ObjectPieces) -> Option<Plan> {
        let [piece] = object.pieces.as_slice() else {
            return None;
        };
        let cell = meta.dtype.cell_bytes()?;
        let (unit, order) = meta.unit().ok()?;
        let total = unit.num_cells() * cell;
        let summary = piece.part.run_summary(&order, cell);
        if summary.bytes == total {
            return None;
        }
        let covering = summary.first..summary.end;
        let useful = if summary.runs > 1 << 16 {
            // So many runs that even looking at each would cost more than the bytes between them.
            vec![covering.clone()]
        } else {
            let runs = piece
                .part
                .runs(&order, cell)
                .map(|r| r.offset..r.offset + r.len);
            self.join(runs)
        };
        let ranges = if useful.len() > self.max_ranges {
            vec![covering]
        } else {
            useful
        };
        let bytes: u64 = ranges.iter().map(|r| r.end - r.start).sum();
        // A whole object needs no range header and one request; nearly all of it is not worth more.
        (bytes * 10 < total * 9).then_some(Plan::Ranges(ranges))
    }
}

impl Planner for SimplePlanner {
    fn plan(&self, meta: &ArrayMeta, object: &ObjectPieces) -> Plan {
        if meta.codecs.sharding().is_some() {
            return self.shard(meta, object);
        }
        if self.whole_chunks || object.whole || !meta.codecs.is_rangeable() {
            return Plan::Whole;
        }
        self.runs(meta, object).unwrap_or(Plan::Whole)
    }
}
