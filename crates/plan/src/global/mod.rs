//! Our planner: a search over all objects of a query together.
//!
//! For a cost that is linear in requests (c_r) and bytes (c_b), joining two neighbouring runs pays
//! exactly when gap·c_b < c_r. So one threshold for all gaps of the query is enough, the gaps
//! by size with prefix sums give the cost of every threshold, and what is not linear (bandwidth
//! that depends on the number of requests, the longest request, the window) is a search over few
//! numbers:
//!
//! - `gap`: neighbours at most this far apart are joined;
//! - `part`: longer ranges are fetched over several connections;
//! - `call`: calls of the function read at most this much, several for one object if need be;
//! - which objects go to the function: a prefix of them, by how much that saves;
//! - how many objects travel with one call, which saves money where calls are dear.
//!
//! The search goes round these coordinates until nothing gets better, from the best threshold. Small
//! queries are then polished move by move ([`polish`]). The plans of the forced modes and of the
//! paper take part in the comparison, so none of them is ever cheaper by this cost.

mod calls;
mod curve;
mod lengths;
mod polish;
mod setting;

use crate::division::Division;
use crate::{Load, Method, Model, Query, forced, paper};
use setting::{Setting, Tally};

/// Rounds of the search; the second seldom finds anything.
const ROUNDS: usize = 4;
/// Queries with more runs are not planned by the paper's algorithm as well.
const PAPER_RUNS: usize = 20_000;

/// Methods, and the bundles of their calls.
type Candidate = (Vec<Method>, Vec<Vec<usize>>);

/// The cheapest methods that the search finds.
pub(crate) fn methods(query: &Query, model: &Model) -> Candidate {
    if query.objects().is_empty() {
        return Candidate::default();
    }
    let mut plans: Vec<Candidate> = Vec::new();
    let division = model.function().map(|_| Division::new(query, model));
    let found = search(query, model, division.as_ref());
    let methods = found.methods(query, model, division.as_ref());
    plans.push((methods, found.bundles));
    // The extremes are written out where they are cheaper than what was found, and as starts for
    // polishing.
    let small = polish::is_small(query);
    let lowest = cost(query, model, &plans[0]);
    for gap in [u64::MAX, 0] {
        let extreme = Setting {
            gap,
            ..Setting::ranges(query)
        };
        let tally = Tally::new(query, model, &extreme, gap);
        if small || model.cost(&tally.load(u64::MAX)) <= lowest {
            plans.push((extreme.methods(query, model, None), Vec::new()));
        }
    }
    if let Some(division) = &division {
        let [each, whole] = forced::function_loads(query, model, division);
        if small || model.cost(&each) <= lowest {
            plans.push((forced::function(query, division), Vec::new()));
        }
        if small || model.cost(&whole) <= lowest {
            plans.push(forced::function_whole(query, model, division));
        }
    }
    if query.num_runs() <= PAPER_RUNS {
        plans.push((paper::methods(query, model), Vec::new()));
    }
    let mut weighed: Vec<(f64, Candidate)> = plans
        .into_iter()
        .map(|plan| (cost(query, model, &plan), plan))
        .collect();
    weighed.sort_by(|a, b| a.0.total_cmp(&b.0));
    if small && let Some((lowest, (methods, bundles))) = weighed.first() {
        let seconds = model.seconds(&Load::of(query, model, methods, bundles));
        let mut budget = polish::budget(model, *lowest, model.bound(query), seconds);
        if budget > 0 {
            weighed.extend(polished(query, model, &weighed, &mut budget));
        }
    }
    let mut best = weighed
        .into_iter()
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(Candidate::default, |(_, plan)| plan);
    whole_objects(query, &mut best.0);
    best
}

/// The plans after polishing, from several starts: a single one may end where no move helps, short of
/// the best.
fn polished(
    query: &Query,
    model: &Model,
    weighed: &[(f64, Candidate)],
    budget: &mut u64,
) -> Vec<(f64, Candidate)> {
    let starts = polish::Starts::new(query);
    let unbundled = weighed.iter().filter(|(_, plan)| plan.1.is_empty());
    unbundled
        .map(|(_, (plan, _))| {
            let methods = polish::polish(query, model, plan, &starts, budget);
            let plan = (methods, Vec::new());
            (cost(query, model, &plan), plan)
        })
        .collect()
}

fn cost(query: &Query, model: &Model, (methods, bundles): &Candidate) -> f64 {
    model.cost(&Load::of(query, model, methods, bundles))
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
fn search(query: &Query, model: &Model, division: Option<&Division<'_>>) -> Setting {
    let mut best = Setting::ranges(query);
    let mut best_cost = f64::INFINITY;
    for _ in 0..ROUNDS {
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
        let Some(division) = division else { break };
        let before = best_cost;
        best_cost = calls::choose(query, model, division, &mut best, before);
        // Otherwise ranges and calls are as they were, and so would be all that follows from them.
        if best_cost >= before * (1.0 - 1e-9) {
            break;
        }
    }
    best
}
