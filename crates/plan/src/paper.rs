//! The planner of ArrayMorph (2025), section 4, as printed: for comparison.
//!
//! Algorithm 1 refines the ranges of each chunk, then Get, Range and Function are compared. Its
//! time adds up the transfer at `BW(N)`, the requests in lock-step batches and the functions in
//! lock-step batches; its cost sees the running total of requests over all chunks.

use std::collections::VecDeque;
use std::ops::Range;

use crate::division::Division;
use crate::{Method, Model, Object, Query, Run};

/// Running totals over all chunks: the paper's N_R, N_λ and S_T, and the fees.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    requests: u64,
    calls: u64,
    bytes: u64,
    /// The chunk size that T_λ is taken of.
    chunk: u64,
    dollars: f64,
}

impl Totals {
    /// The totals with one more way of fetching a chunk.
    fn with(mut self, model: &Model, method: &Method, object: &Object) -> Totals {
        let fees = model.fees();
        match method {
            Method::Get => self.add_ranges(model, 1, object.size),
            Method::Ranges(ranges) => {
                let bytes = ranges.iter().map(|r| r.end - r.start).sum();
                self.add_ranges(model, ranges.len() as u64, bytes);
            }
            Method::Function(calls) => {
                for call in calls {
                    self.requests += 1;
                    self.calls += 1;
                    self.bytes += call.useful;
                    self.chunk = self.chunk.max(object.size);
                    self.dollars += fees.call
                        + fees.byte * call.useful as f64
                        + fees.call_second * model.compute_seconds(object.size);
                }
            }
        }
        self
    }

    fn add_ranges(&mut self, model: &Model, requests: u64, bytes: u64) {
        self.requests += requests;
        self.bytes += bytes;
        self.dollars += model.fees().request * requests as f64 + model.fees().byte * bytes as f64;
    }

    /// The paper's Cost(Q).
    fn cost(&self, model: &Model) -> f64 {
        let threads = model.window() as f64;
        let batches = |n: u64| (n as f64 / threads).ceil();
        let mut seconds = self.bytes as f64 / model.network().bandwidth(self.requests)
            + model.network().latency_seconds * batches(self.requests);
        if self.calls > 0 {
            seconds += model.compute_seconds(self.chunk) * batches(self.calls);
        }
        model.weigh(seconds, self.dollars)
    }
}

/// Plans as the paper does.
pub(crate) fn methods(query: &Query, model: &Model) -> Vec<Method> {
    let mut totals = Totals::default();
    let mut methods = Vec::with_capacity(query.objects().len());
    let division = Division::new(query, model);
    for (i, object) in query.objects().iter().enumerate() {
        let covering = object.covering();
        let (mut requests, mut bytes) = (1, covering.end - covering.start);
        let groups = refine(object, |before, after| {
            let left = after.iter().map(|half| half.end - half.start).sum::<u64>();
            let fewer = bytes - (before.end - before.start - left);
            let cost = |requests, bytes| {
                let mut all = totals;
                all.add_ranges(model, requests, bytes);
                all.cost(model)
            };
            let pays = cost(requests, bytes) > cost(requests + 1, fewer);
            if pays {
                (requests, bytes) = (requests + 1, fewer);
            }
            pays
        });
        let mut choices = vec![Method::Ranges(groups), Method::Get];
        if let Some(count) = division.fewest(i) {
            choices.push(Method::Function(division.calls(i, count)));
        }
        let cost = |method: &Method| totals.with(model, method, object).cost(model);
        let best = choices
            .into_iter()
            .min_by(|a, b| cost(a).total_cmp(&cost(b)))
            .unwrap_or(Method::Get);
        totals = totals.with(model, &best, object);
        methods.push(best);
    }
    methods
}

/// Algorithm 1 with its cost test replaced by a number of splits.
pub(crate) fn splits(query: &Query, k: u32) -> Vec<Method> {
    let split = |object: &Object| {
        let mut left = k;
        let groups = refine(object, |_, _| {
            let more = left > 0;
            left = left.saturating_sub(1);
            more
        });
        Method::Ranges(groups)
    };
    query.objects().iter().map(split).collect()
}

/// Algorithm 1: starts from one group and splits it where `pays(before, after)`.
fn refine(
    object: &Object,
    mut pays: impl FnMut(Range<u64>, [Range<u64>; 2]) -> bool,
) -> Vec<Range<u64>> {
    let span = |runs: &[Run]| match (runs.first(), runs.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    };
    let grain = if object.splittable {
        object.grain.max(1)
    } else {
        u64::MAX
    };
    let mut pending = VecDeque::from([Pending::Runs(0, object.runs.len())]);
    let mut assigned = Vec::new();
    while let Some(current) = pending.pop_front() {
        let (before, halves) = match &current {
            Pending::Runs(from, to) if to - from > 1 => {
                let at = largest_gap(&object.runs[*from..*to]) + from;
                let halves = [Pending::Runs(*from, at), Pending::Runs(at, *to)];
                (span(&object.runs[*from..*to]), Some(halves))
            }
            Pending::Runs(from, to) => {
                let range = span(&object.runs[*from..*to]);
                (range.clone(), break_in_half(&range, grain))
            }
            Pending::Part(range) => (range.clone(), break_in_half(range, grain)),
        };
        let range_of = |half: &Pending| match half {
            Pending::Runs(from, to) => span(&object.runs[*from..*to]),
            Pending::Part(range) => range.clone(),
        };
        match halves {
            Some(halves) if pays(before.clone(), [range_of(&halves[0]), range_of(&halves[1])]) => {
                pending.extend(halves);
            }
            _ => assigned.push(before),
        }
    }
    assigned.sort_by_key(|range| range.start);
    assigned
}

#[derive(Debug)]
enum Pending {
    /// Runs `from..to` as one group.
    Runs(usize, usize),
    /// A part of one run.
    Part(Range<u64>),
}

fn break_in_half(range: &Range<u64>, grain: u64) -> Option<[Pending; 2]> {
    let half = (range.end - range.start) / 2 / grain * grain;
    let middle = range.start + half;
    let halves = [range.start..middle, middle..range.end];
    (half > 0).then_some(halves.map(Pending::Part))
}

/// The index of the run with the largest gap before it; of several, the most even split.
fn largest_gap(runs: &[Run]) -> usize {
    let middle = runs.len() as f64 / 2.0;
    let key = |i: usize| {
        let gap = runs[i].start - runs[i - 1].end;
        let uneven = (i as f64 - middle).abs();
        (gap, uneven)
    };
    (1..runs.len())
        .rev()
        .max_by(|a, b| {
            let ((gap_a, uneven_a), (gap_b, uneven_b)) = (key(*a), key(*b));
            gap_a.cmp(&gap_b).then(uneven_b.total_cmp(&uneven_a))
        })
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the paper's figure 6: four ranges of single cells and pairs.
    #[test]
    fn the_largest_gap_is_split_first() {
        let runs = [(0, 2), (6, 9), (10, 12), (13, 14)];
        let runs: Vec<Run> = runs.iter().map(|(a, b)| Run::plain(4 * a..4 * b)).collect();
        let query = Query::new(vec![Object::raw(100, runs)]).unwrap();
        let ranges = |k| match &splits(&query, k)[0] {
            Method::Ranges(ranges) => ranges.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(ranges(0), std::slice::from_ref(&(0..56)));
        assert_eq!(ranges(1), [0..8, 24..56]);
        // A single range is broken in half; of equal gaps the more even split comes first.
        assert_eq!(ranges(2), [0..4, 4..8, 24..56]);
        assert_eq!(ranges(3), [0..4, 4..8, 24..36, 40..56]);
        assert!(ranges(1000).iter().all(|r| r.end - r.start == 4));
    }
}
