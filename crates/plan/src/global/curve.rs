//! Which thresholds are worth trying: one sort of all gaps, and the cost of every prefix.

use super::setting::Setting;
use crate::{Model, Query};

/// Prefixes of the sorted gaps that are looked at.
const SAMPLES: usize = 2048;

/// Thresholds for joining: the best one by a curve that leaves out the longest request, its
/// neighbours, and both ends. Only gaps of objects that are fetched by ranges count.
pub(super) fn thresholds(query: &Query, model: &Model, setting: &Setting) -> Vec<u64> {
    let ranged = || {
        let objects = query.objects().iter().zip(&setting.by_function);
        objects.filter(|(_, f)| !**f).map(|(object, _)| object)
    };
    let mut gaps: Vec<u64> = Vec::new();
    let mut load = setting.function_load(query, model);
    let mut requests = 0;
    let mut bytes = 0;
    for object in ranged() {
        gaps.extend(object.runs.windows(2).map(|w| w[1].start - w[0].end));
        let covering = object.covering();
        requests += 1;
        bytes += covering.end - covering.start;
    }
    if gaps.is_empty() {
        return vec![u64::MAX];
    }
    gaps.sort_unstable_by(|a, b| b.cmp(a));

    // Splitting at the k largest gaps: k more requests, their bytes less.
    let mut best: Option<(f64, usize)> = None;
    let mut saved = 0;
    let step = (gaps.len() / SAMPLES).max(1);
    let mut k = 0;
    let mut candidates = Vec::new();
    let base = load;
    loop {
        load = base;
        let (n, s) = (requests + k as u64, bytes - saved);
        load.requests += n;
        load.bytes += s;
        load.slot_seconds +=
            model.request_seconds(0) * n as f64 + s as f64 / model.network().connection_bandwidth;
        let cost = model.cost(&load);
        candidates.push(k);
        if best.is_none_or(|(lowest, _)| cost < lowest) {
            best = Some((cost, candidates.len() - 1));
        }
        if k == gaps.len() {
            break;
        }
        // On to the next different gap: equal ones are joined or split together.
        let mut next = (k + step).min(gaps.len());
        while next < gaps.len() && gaps[next] == gaps[next - 1] {
            next += 1;
        }
        saved += gaps[k..next].iter().sum::<u64>();
        k = next;
    }
    let at = best.map_or(0, |(_, i)| i);
    // With k splits, gaps up to the next one are joined.
    let threshold = |k: usize| match gaps.get(k) {
        Some(gap) => *gap,
        None => 0,
    };
    let last = candidates.len() - 1;
    let near = |steps: usize| [at.saturating_sub(steps), (at + steps).min(last)];
    let mut chosen: Vec<usize> = vec![0, last, at];
    let mut steps = 1;
    while steps <= last && chosen.len() < 9 {
        chosen.extend(near(steps));
        steps *= 8;
    }
    let mut out: Vec<u64> = chosen
        .into_iter()
        .map(|i| {
            if i == 0 {
                u64::MAX
            } else {
                threshold(candidates[i])
            }
        })
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}
