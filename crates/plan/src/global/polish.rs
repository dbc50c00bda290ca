//! Improves the plan of a small query, one move at a time, until no move helps.
//!
//! A move changes one object: two neighbouring groups are joined, a group is split at one of its
//! gaps, a range is fetched in more or fewer parts, the object goes to the function in so many
//! calls or comes back from it. Where several requests are the longest together, no single move
//! shortens the query, so one more move relieves all of them at once; and where no move helps by
//! itself, two together may.

use std::ops::Range;

use super::setting::split_range;
use crate::division::{divide, fewest_calls};
use crate::{Load, Method, Model, Object, Query};

/// Larger queries are not polished: there the search's thresholds leave little to gain.
const MAX_OBJECTS: usize = 24;
const MAX_RUNS: usize = 96;
/// Sweeps over all moves.
const SWEEPS: usize = 24;
/// Pairs of moves are tried where there are at most so many moves.
const MAX_PAIRED: usize = 240;
/// Candidates that are weighed for the quickest and for the slowest query.
const MIN_BUDGET: u64 = 600;
const MAX_BUDGET: u64 = 200_000;
/// Less to gain, as a share of the cost, is not worth the search.
const LEAST_GAIN: f64 = 0.005;
/// Calls of one object, and parts of one range, that are tried.
const MAX_PARTS: u64 = 32;

/// True if the query is small enough.
pub(super) fn is_small(query: &Query) -> bool {
    query.objects().len() <= MAX_OBJECTS && query.num_runs() <= MAX_RUNS
}

/// How one object is fetched.
#[derive(Debug, Clone, PartialEq)]
enum Choice {
    Groups(Vec<Group>),
    Calls(u64),
}

/// Runs `first..end` fetched as one range, in so many parts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Group {
    first: usize,
    end: usize,
    parts: u64,
}

impl Group {
    fn range(&self, object: &Object) -> Range<u64> {
        object.runs[self.first].start..object.runs[self.end - 1].end
    }
}

/// How many candidates may be weighed for a query that costs so much and takes so many seconds, where
/// no plan costs less than `bound`: the search must not take longer than what it may find is worth.
pub(super) fn budget(model: &Model, cost: f64, bound: f64, seconds: f64) -> u64 {
    const SHARE: f64 = 0.5;
    const SECONDS_EACH: f64 = 400e-9;
    let gain = 1.0 - bound / cost.max(f64::MIN_POSITIVE);
    if gain < LEAST_GAIN {
        return 0;
    }
    // Where only money counts, a search as long as the query is worth any of it.
    let worth = match model.phi().is_finite() {
        true => SHARE * gain * cost,
        false => seconds,
    };
    ((worth / SECONDS_EACH) as u64).clamp(MIN_BUDGET, MAX_BUDGET)
}

/// Choices for each object that are worth trying from everywhere.
pub(super) struct Starts(Vec<Vec<Choice>>);

impl Starts {
    pub(super) fn new(query: &Query) -> Starts {
        Starts(query.objects().iter().map(always).collect())
    }
}

/// The plan after polishing; never costlier than before. Takes what it weighs from the budget.
pub(super) fn polish(
    query: &Query,
    model: &Model,
    methods: &[Method],
    starts: &Starts,
    budget: &mut u64,
) -> Vec<Method> {
    if *budget == 0 {
        return methods.to_vec();
    }
    let objects = query.objects();
    let mut state: Vec<Choice> = objects
        .iter()
        .zip(methods)
        .map(|(object, method)| choice(object, method))
        .collect();
    let before = model.cost(&Load::of(query, model, methods, &[]));
    let mut loads: Vec<Load> = objects
        .iter()
        .zip(&state)
        .filter_map(|(object, choice)| load(object, model, choice))
        .collect();
    if loads.len() != objects.len() {
        return methods.to_vec();
    }
    let mut cost = model.cost(&sum(&loads, None));
    let starts = &starts.0;
    for _ in 0..SWEEPS {
        let mut better = false;
        for (i, object) in objects.iter().enumerate() {
            if *budget == 0 {
                break;
            }
            let others = sum(&loads, Some(i));
            let mut best = None;
            for candidate in moves(object, model, &state[i], &starts[i]) {
                *budget = budget.saturating_sub(1);
                let Some(new) = load(object, model, &candidate) else {
                    continue;
                };
                let new_cost = model.cost(&others.join(&new));
                if new_cost < cost * (1.0 - 1e-12) {
                    cost = new_cost;
                    best = Some((candidate, new));
                }
            }
            if let Some(chosen) = best {
                better = true;
                (state[i], loads[i]) = chosen;
            }
        }
        // Only where no single move helps: it may lead past the best plan.
        if !better && let Some((relieved, new)) = relieve(objects, model, &state, &loads) {
            let new_cost = model.cost(&sum(&new, None));
            if new_cost < cost * (1.0 - 1e-12) {
                (cost, better) = (new_cost, true);
                (state, loads) = (relieved, new);
            }
        }
        if !better
            && let Some((changes, new_cost)) =
                pair(objects, model, starts, &state, &loads, cost, budget)
        {
            (cost, better) = (new_cost, true);
            for (at, choice, load) in changes {
                (state[at], loads[at]) = (choice, load);
            }
        }
        if !better {
            break;
        }
    }
    if cost >= before {
        return methods.to_vec();
    }
    let polished = objects.iter().zip(&state);
    polished
        .map(|(object, choice)| method(object, choice))
        .collect()
}

fn sum(loads: &[Load], without: Option<usize>) -> Load {
    let kept = loads
        .iter()
        .enumerate()
        .filter(|(i, _)| Some(*i) != without);
    kept.fold(Load::default(), |sum, (_, load)| sum.join(load))
}

fn choice(object: &Object, method: &Method) -> Choice {
    let whole = 0..object.size;
    let ranges = match method {
        Method::Function(calls) => return Choice::Calls(calls.len() as u64),
        Method::Get => std::slice::from_ref(&whole),
        Method::Ranges(ranges) => ranges.as_slice(),
    };
    let mut groups: Vec<(Range<u64>, u64)> = Vec::new();
    for range in ranges {
        match groups.last_mut() {
            Some((last, parts)) if last.end == range.start => {
                last.end = range.end;
                *parts += 1;
            }
            _ => groups.push((range.clone(), 1)),
        }
    }
    let run_at = |offset: u64| object.runs.partition_point(|run| run.start < offset);
    let groups = groups
        .into_iter()
        .map(|(range, parts)| Group {
            first: run_at(range.start),
            end: run_at(range.end),
            parts,
        })
        .filter(|group| group.end > group.first);
    Choice::Groups(groups.collect())
}

/// The load of an object; `None` if the object or the function does not allow it.
fn load(object: &Object, model: &Model, choice: &Choice) -> Option<Load> {
    let mut load = Load::default();
    match choice {
        Choice::Groups(groups) => {
            if !object.splittable && groups.iter().any(|group| group.parts > 1) {
                return None;
            }
            for group in groups {
                let range = group.range(object);
                let len = range.end - range.start;
                for part in split_range(object, &range, len.div_ceil(group.parts)) {
                    load.add_request(model, part.end - part.start);
                }
            }
        }
        Choice::Calls(count) => {
            if !object.function {
                return None;
            }
            for call in divide(object, *count) {
                if !model.allows(&call) {
                    return None;
                }
                load.add_call(model, &call);
            }
        }
    }
    Some(load)
}

fn method(object: &Object, choice: &Choice) -> Method {
    match choice {
        Choice::Calls(count) => Method::Function(divide(object, *count)),
        Choice::Groups(groups) => Method::Ranges(
            groups
                .iter()
                .flat_map(|group| {
                    let range = group.range(object);
                    let len = range.end - range.start;
                    split_range(object, &range, len.div_ceil(group.parts))
                })
                .collect(),
        ),
    }
}

/// All neighbours of a choice.
fn moves(object: &Object, model: &Model, choice: &Choice, always: &[Choice]) -> Vec<Choice> {
    let mut out = Vec::new();
    let all = object.runs.len();
    let one = |first, end| Group {
        first,
        end,
        parts: 1,
    };
    match choice {
        Choice::Groups(groups) => {
            let with = |at: usize, removed: usize, new: &[Group]| {
                let mut changed = groups.clone();
                changed.splice(at..at + removed, new.iter().copied());
                Choice::Groups(changed)
            };
            for (at, group) in groups.iter().enumerate() {
                if let Some(next) = groups.get(at + 1) {
                    for parts in [1, group.parts, group.parts + next.parts] {
                        let joined = Group {
                            first: group.first,
                            end: next.end,
                            parts,
                        };
                        out.push(with(at, 2, &[joined]));
                    }
                }
                for cut in group.first + 1..group.end {
                    out.push(with(at, 1, &[one(group.first, cut), one(cut, group.end)]));
                    if group.parts > 1 {
                        let halves = [(group.first, cut), (cut, group.end)].map(|(first, end)| {
                            let parts = group.parts.div_ceil(2);
                            Group { first, end, parts }
                        });
                        out.push(with(at, 1, &halves));
                    }
                }
                let more = [
                    group.parts - 1,
                    group.parts + 1,
                    group.parts / 2,
                    group.parts * 2,
                ];
                for parts in more {
                    if (1..=MAX_PARTS).contains(&parts) {
                        out.push(with(at, 1, &[Group { parts, ..*group }]));
                    }
                }
            }
            if groups.len() < all {
                out.push(Choice::Groups((0..all).map(|i| one(i, i + 1)).collect()));
            }
            if let Some(fewest) = fewest_calls(object, model) {
                let counts = [1, 2, 3, 4, 6, 8, 12, 16].map(|k| fewest * k);
                out.extend(counts.into_iter().map(Choice::Calls));
            }
        }
        Choice::Calls(count) => {
            let counts = [*count - 1, *count + 1, *count / 2, *count * 2];
            let counts = counts.into_iter().filter(|n| (1..=MAX_PARTS).contains(n));
            out.extend(counts.map(Choice::Calls));
            out.push(Choice::Groups((0..all).map(|i| one(i, i + 1)).collect()));
        }
    }
    out.extend(always.iter().cloned());
    out
}

/// Choices that are worth trying from everywhere: few groups, divided at the largest gaps or so that
/// the longest is short, and one group in parts.
fn always(object: &Object) -> Vec<Choice> {
    let all = object.runs.len();
    let mut out = Vec::new();
    for k in 1..all.min(8) {
        let (gaps, even) = (at_largest_gaps(object, k), evenly(object, k + 1));
        if even != gaps {
            out.push(Choice::Groups(even));
        }
        // And the longest of them in parts, as often as a few more requests allow.
        let mut groups = gaps.clone();
        for _ in 0..if k < 4 { 4 } else { 0 } {
            let part = |group: &&mut Group| {
                let range = group.range(object);
                (range.end - range.start).div_ceil(group.parts)
            };
            if let Some(longest) = groups.iter_mut().max_by_key(part) {
                longest.parts += 1;
            }
            out.push(Choice::Groups(groups.clone()));
        }
        out.push(Choice::Groups(gaps));
    }
    for parts in [1, 2, 3, 4, 6, 8] {
        let (first, end) = (0, all);
        out.push(Choice::Groups(vec![Group { first, end, parts }]));
    }
    out
}

/// The runs of an object in at most `k` groups, the longest of which is as short as can be.
fn evenly(object: &Object, k: usize) -> Vec<Group> {
    let within = |most: u64| {
        let mut groups: Vec<Group> = Vec::new();
        for (i, run) in object.runs.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if run.end - object.runs[group.first].start <= most => {
                    group.end = i + 1;
                }
                _ => groups.push(Group {
                    first: i,
                    end: i + 1,
                    parts: 1,
                }),
            }
        }
        groups
    };
    let covering = object.covering();
    let (mut low, mut high) = (0, covering.end - covering.start);
    while low < high {
        let middle = low + (high - low) / 2;
        if within(middle).len() <= k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    within(high)
}

/// The runs of an object, split at its `k` largest gaps.
fn at_largest_gaps(object: &Object, k: usize) -> Vec<Group> {
    let gap = |i: usize| object.runs[i].start - object.runs[i - 1].end;
    let mut cuts: Vec<usize> = (1..object.runs.len()).collect();
    cuts.sort_by_key(|i| std::cmp::Reverse(gap(*i)));
    cuts.truncate(k);
    cuts.sort_unstable();
    cuts.push(object.runs.len());
    let mut first = 0;
    let group = |end| {
        let parts = 1;
        Group {
            first: std::mem::replace(&mut first, end),
            end,
            parts,
        }
    };
    cuts.into_iter().map(group).collect()
}

type Change = (usize, Choice, Load);

/// The best two moves that are cheaper together, in queries with few moves.
fn pair(
    objects: &[Object],
    model: &Model,
    starts: &[Vec<Choice>],
    state: &[Choice],
    loads: &[Load],
    cost: f64,
    budget: &mut u64,
) -> Option<(Vec<Change>, f64)> {
    let allowed = |i: usize, choice: &Choice| -> Vec<(Choice, Load)> {
        let object = &objects[i];
        let moves = moves(object, model, choice, &starts[i]).into_iter();
        moves
            .filter_map(|choice| load(object, model, &choice).map(|load| (choice, load)))
            .collect()
    };
    let all: Vec<Vec<(Choice, Load)>> = state
        .iter()
        .enumerate()
        .map(|(i, choice)| allowed(i, choice))
        .collect();
    let moves = all.iter().map(Vec::len).sum::<usize>();
    // Each with each of the other objects' moves, and with about as many of its own object.
    let pairs = (moves * moves) as u64;
    if moves > MAX_PAIRED || pairs > *budget {
        return None;
    }
    *budget -= pairs;
    let mut best = None;
    let mut lowest = cost * (1.0 - 1e-12);
    for i in 0..objects.len() {
        // Two moves of one object.
        let others = sum(loads, Some(i));
        for (first, _) in &all[i] {
            for (choice, load) in allowed(i, first) {
                let new = model.cost(&others.join(&load));
                if new < lowest {
                    lowest = new;
                    best = Some(vec![(i, choice, load)]);
                }
            }
        }
        // One move of each of two objects.
        for j in i + 1..objects.len() {
            let kept = loads.iter().enumerate().filter(|(k, _)| *k != i && *k != j);
            let others = kept.fold(Load::default(), |sum, (_, load)| sum.join(load));
            for (a, load_a) in &all[i] {
                let with_a = others.join(load_a);
                for (b, load_b) in &all[j] {
                    let new = model.cost(&with_a.join(load_b));
                    if new < lowest {
                        lowest = new;
                        best = Some(vec![(i, a.clone(), *load_a), (j, b.clone(), *load_b)]);
                    }
                }
            }
        }
    }
    best.map(|changes| (changes, lowest))
}

/// One more part or call for everything that takes as long as the longest.
fn relieve(
    objects: &[Object],
    model: &Model,
    state: &[Choice],
    loads: &[Load],
) -> Option<(Vec<Choice>, Vec<Load>)> {
    let longest = sum(loads, None).longest * (1.0 - 1e-9);
    let mut new_state = state.to_vec();
    let mut new_loads = loads.to_vec();
    for (i, object) in objects.iter().enumerate() {
        if loads[i].longest < longest {
            continue;
        }
        match &mut new_state[i] {
            Choice::Calls(count) => *count += 1,
            Choice::Groups(groups) => {
                for group in groups {
                    let range = group.range(object);
                    let part = (range.end - range.start).div_ceil(group.parts);
                    if model.request_seconds(part) >= longest {
                        group.parts += 1;
                    }
                }
            }
        }
        new_loads[i] = load(object, model, &new_state[i])?;
    }
    Some((new_state, new_loads))
}
