//! Which thresholds are worth trying: all gaps by size, and the cost of splitting at the largest.

use super::lengths::Lengths;
use super::setting::Setting;
use crate::{Model, Query};

/// Thresholds for joining: the best one by a curve that leaves out the longest request, its
/// neighbours, and both ends. Only gaps of objects that are fetched by ranges count.
pub(super) fn thresholds(query: &Query, model: &Model, setting: &Setting) -> Vec<u64> {
    let mut gaps = Lengths::default();
    let mut requests = 0;
    let mut bytes = 0;
    for (object, by_function) in query.objects().iter().zip(&setting.by_function) {
        if *by_function {
            continue;
        }
        let between = object.runs.windows(2).map(|w| w[1].start - w[0].end);
        between.for_each(|gap| gaps.push(gap));
        let covering = object.covering();
        requests += 1;
        bytes += covering.end - covering.start;
    }
    // Largest first.
    let mut gaps = gaps.into_classes();
    gaps.reverse();

    // Splitting at the gaps of the first k classes: so many more requests, their bytes less.
    let mut best = (f64::INFINITY, 0);
    for k in 0..=gaps.len() {
        let mut load = setting.called;
        load.add_requests(model, requests, bytes, 0);
        let cost = model.cost(&load);
        if cost < best.0 {
            best = (cost, k);
        }
        if let Some(class) = gaps.get(k) {
            requests += class.count;
            bytes -= class.sum;
        }
    }

    let (last, at) = (gaps.len(), best.1);
    let mut chosen: Vec<usize> = vec![0, last, at];
    let mut steps = 1;
    while steps <= last && chosen.len() < 9 {
        chosen.extend([at.saturating_sub(steps), (at + steps).min(last)]);
        steps *= 8;
    }
    chosen.sort_unstable();
    chosen.dedup();
    // With k classes split, gaps up to those of the next class are joined.
    let threshold = |k: usize| match (k, gaps.get(k)) {
        (0, _) => u64::MAX,
        (_, Some(class)) => class.most,
        (_, None) => 0,
    };
    chosen.into_iter().map(threshold).collect()
}
