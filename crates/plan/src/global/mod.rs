//! Our planner: a search over all objects of a query together.
//!
//! For a cost that is linear in requests (c_r) and bytes (c_b), joining two neighbouring runs pays
//! exactly when gap·c_b < c_r. So one threshold for all gaps of the query is enough, one sort of
//! the gaps with prefix sums gives the cost of every threshold, and what is not linear (bandwidth
//! that depends on the number of requests, the longest request, the window) is a search over few
//! numbers:
//!
//! - `gap`: neighbours at most this far apart are joined;
//! - `part`: longer ranges are fetched over several connections;
//! - `call`: calls of the function read at most this much, several for one object if need be;
//! - which objects go to the function: a prefix of them, by how much that saves.
//!
//! The search goes round these coordinates until nothing gets better, from the best threshold. Small
//! queries are then polished move by move ([`polish`]). The plans of the forced modes and of the
//! paper take part in the comparison, so none of them is ever cheaper by this cost.

mod curve;
mod polish;
mod setting;

use crate::{Load, Method, Model, Query, forced, paper};
use setting::{Setting, Tally};

/// Rounds of the search; the second seldom finds anything.
const ROUNDS: usize = 4;
/// Queries with more runs are not planned by the paper's algorithm as well.
const PAPER_RUNS: usize = 20_000;

/// The cheapest methods that the search finds.
pub(crate) fn methods(query: &Query, model: &Model) -> Vec<Method> {
    if query.objects().is_empty() {
        return Vec::new();
    }
    let mut plans = vec![
        search(query, model).methods(query, model),
        forced::range_merge(query),
        forced::range_fetch(query),
    ];
    if model.function().is_some() {
        plans.push(forced::function(query, model));
    }
    if query.num_runs() <= PAPER_RUNS {
        plans.push(paper::methods(query, model));
    }
    if polish::is_small(query) {
        // From several starts: a single one may end where no move helps, short of the best.
        let polished = plans.iter().map(|plan| polish::polish(query, model, plan));
        plans.extend(polished.collect::<Vec<_>>());
    }
    let cost = |plan: &Vec<Method>| model.cost(&Load::of(query, model, plan));
    let mut best = plans
        .into_iter()
        .map(|plan| (cost(&plan), plan))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(Vec::new, |(_, plan)| plan);
    whole_objects(query, &mut best);
    best
}

/// A range that is the whole object needs no range header.
fn whole_objects(query: &Query, methods: &mut [Method]) {
    for (object, method) in query.objects().iter().zip(methods) {
        if let Method::Ranges(ranges) = method
            && let [only] = ranges.as_slice()
            && *only == (0..object.size)
        {
            *method = Method::Get;
        }
    }
}

/// Goes round the coordinates until nothing gets better.
fn search(query: &Query, model: &Model) -> Setting {
    let mut best = Setting::ranges(query);
    let mut best_cost = f64::INFINITY;
    for _ in 0..ROUNDS {
        let before = best_cost;
        for gap in curve::thresholds(query, model, &best) {
            let tally = Tally::new(query, model, &best, gap);
            for part in tally.parts() {
                let cost = model.cost(&tally.load(part));
                if cost < best_cost {
                    best_cost = cost;
                    best.gap = gap;
                    best.part = part;
                }
            }
        }
        if model.function().is_some() {
            best_cost = setting::choose_calls(query, model, &mut best, best_cost);
        }
        if best_cost >= before * (1.0 - 1e-9) {
            break;
        }
    }
    best
}
