//! A point of the search, and what it costs.

use std::ops::Range;

use crate::forced::{divide, fewest_calls};
use crate::{Call, Load, Method, Model, Object, Query};

/// Requests of less are not worth a connection of their own, however slow it is.
const MIN_PART: u64 = 4 << 10;

/// A point of the search.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Neighbouring runs at most this far apart are joined.
    pub(super) gap: u64,
    /// Ranges longer than this are fetched in parts.
    pub(super) part: u64,
    /// Calls read at most about this much.
    pub(super) call: u64,
    /// Which objects go to the function.
    pub(super) by_function: Vec<bool>,
}

impl Setting {
    /// One covering range for each object.
    pub(super) fn ranges(query: &Query) -> Setting {
        Setting {
            gap: u64::MAX,
            part: u64::MAX,
            call: u64::MAX,
            by_function: vec![false; query.objects().len()],
        }
    }

    /// The load of the objects that go to the function.
    pub(super) fn function_load(&self, query: &Query, model: &Model) -> Load {
        let mut load = Load::default();
        for (object, by_function) in query.objects().iter().zip(&self.by_function) {
            if *by_function {
                let calls = calls(object, model, self.call).unwrap_or_default();
                calls.iter().for_each(|call| load.add_call(model, call));
            }
        }
        load
    }

    /// The methods that the setting stands for.
    pub(super) fn methods(&self, query: &Query, model: &Model) -> Vec<Method> {
        let objects = query.objects().iter().zip(&self.by_function);
        objects
            .map(|(object, by_function)| {
                if *by_function && let Some(calls) = calls(object, model, self.call) {
                    return Method::Function(calls);
                }
                let mut ranges = Vec::new();
                each_group(object, self.gap, |group| {
                    ranges.extend(split_range(&group, part_of(object, self.part)));
                });
                Method::Ranges(ranges)
            })
            .collect()
    }
}

/// The calls of an object that read at most about `most` bytes each, if the function can serve it.
fn calls(object: &Object, model: &Model, most: u64) -> Option<Vec<Call>> {
    let fewest = fewest_calls(object, model)?;
    let covering = object.covering();
    let wanted = (covering.end - covering.start).div_ceil(most.max(1));
    if wanted <= fewest.len() as u64 {
        return Some(fewest);
    }
    let calls = divide(object, wanted);
    let allowed = calls.iter().all(|call| model.allows(call));
    Some(if allowed { calls } else { fewest })
}

/// The longest part of an object's ranges.
fn part_of(object: &Object, part: u64) -> u64 {
    if object.splittable { part } else { u64::MAX }
}

/// Runs joined across gaps of at most `gap`.
fn each_group(object: &Object, gap: u64, mut each: impl FnMut(Range<u64>)) {
    let Some(first) = object.runs.first() else {
        return;
    };
    let mut group = first.start..first.end;
    for run in &object.runs[1..] {
        if run.start - group.end <= gap {
            group.end = run.end;
        } else {
            each(std::mem::replace(&mut group, run.start..run.end));
        }
    }
    each(group);
}

/// A range in equal parts of at most `part` bytes.
pub(super) fn split_range(
    range: &Range<u64>,
    part: u64,
) -> impl Iterator<Item = Range<u64>> + use<> {
    let len = range.end - range.start;
    let count = len.div_ceil(part.max(1)).max(1);
    let start = range.start;
    let border = move |i: u64| start + (u128::from(len) * u128::from(i) / u128::from(count)) as u64;
    (0..count).map(move |i| border(i)..border(i + 1))
}

/// The groups of all ranged objects at one threshold.
pub(super) struct Tally<'a> {
    model: &'a Model,
    /// What the function is asked, and what is fetched in one piece.
    base: Load,
    /// Bytes of each group that may be fetched in parts.
    groups: Vec<u64>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(query: &Query, model: &'a Model, setting: &Setting, gap: u64) -> Self {
        let mut groups = Vec::with_capacity(query.objects().len());
        let mut base = setting.function_load(query, model);
        for (object, by_function) in query.objects().iter().zip(&setting.by_function) {
            if *by_function {
                continue;
            }
            each_group(object, gap, |group| {
                let len = group.end - group.start;
                if object.splittable {
                    groups.push(len);
                } else {
                    base.add_request(model, len);
                }
            });
        }
        Tally {
            model,
            base,
            groups,
        }
    }

    /// Sizes of parts that are worth trying: halves of the largest group, and their halves.
    pub(super) fn parts(&self) -> Vec<u64> {
        let largest = self.groups.iter().copied().max().unwrap_or(0);
        let mut parts = vec![u64::MAX];
        // Parts between powers of two matter for a few connections only.
        for count in [
            2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
        ] {
            let part = largest.div_ceil(count);
            if part < MIN_PART {
                break;
            }
            parts.push(part);
        }
        parts
    }

    pub(super) fn load(&self, part: u64) -> Load {
        let mut load = self.base;
        for len in &self.groups {
            let count = len.div_ceil(part.max(1)).max(1);
            load.add_requests(self.model, count, len / count);
            load.bytes += len % count;
        }
        load
    }
}

/// Chooses which objects go to the function, and how much a call reads; returns the lowest cost.
pub(super) fn choose_calls(
    query: &Query,
    model: &Model,
    best: &mut Setting,
    mut best_cost: f64,
) -> f64 {
    let objects = query.objects();
    let ranged: Vec<Load> = objects
        .iter()
        .map(|object| {
            let mut load = Load::default();
            each_group(object, best.gap, |group| {
                let len = group.end - group.start;
                let count = len.div_ceil(part_of(object, best.part)).max(1);
                load.add_requests(model, count, len / count);
                load.bytes += len % count;
            });
            load
        })
        .collect();
    let longest = objects
        .iter()
        .map(|object| object.covering().end - object.covering().start)
        .max()
        .unwrap_or(0);
    let (gap, part) = (best.gap, best.part);
    for count in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64] {
        let call = if count == 1 {
            u64::MAX
        } else {
            longest.div_ceil(count)
        };
        if call < MIN_PART {
            break;
        }
        let called: Vec<Option<Load>> = objects
            .iter()
            .map(|object| {
                let calls = calls(object, model, call)?;
                let mut load = Load::default();
                calls.iter().for_each(|call| load.add_call(model, call));
                Some(load)
            })
            .collect();
        for order in orders(model, &ranged, &called) {
            let (cost, chosen) = best_prefix(model, &ranged, &called, &order);
            if cost < best_cost {
                best_cost = cost;
                let mut by_function = vec![false; objects.len()];
                order[..chosen].iter().for_each(|i| by_function[*i] = true);
                *best = Setting {
                    gap,
                    part,
                    call,
                    by_function,
                };
            }
        }
    }
    best_cost
}

/// Orders in which objects go to the function: most bytes saved first, most money saved first,
/// most slot time saved first.
fn orders(model: &Model, ranged: &[Load], called: &[Option<Load>]) -> Vec<Vec<usize>> {
    let savings: [fn(&Model, &Load, &Load) -> f64; 3] = [
        |_, r, c| r.bytes as f64 - c.answered as f64,
        |m, r, c| m.dollars(r) - m.dollars(c),
        |_, r, c| r.slot_seconds - c.slot_seconds,
    ];
    savings
        .iter()
        .map(|saving| {
            let mut order: Vec<(f64, usize)> = called
                .iter()
                .enumerate()
                .filter_map(|(i, c)| c.as_ref().map(|c| (saving(model, &ranged[i], c), i)))
                .collect();
            order.sort_by(|a, b| b.0.total_cmp(&a.0));
            order.into_iter().map(|(_, i)| i).collect()
        })
        .collect()
}

/// How many objects of `order` are best sent to the function, and what that costs.
fn best_prefix(
    model: &Model,
    ranged: &[Load],
    called: &[Option<Load>],
    order: &[usize],
) -> (f64, usize) {
    // What is left to ranges once the first m objects are gone: sums from the end.
    let mut in_order = vec![false; ranged.len()];
    order.iter().for_each(|i| in_order[*i] = true);
    let mut rest = ranged
        .iter()
        .zip(&in_order)
        .filter(|(_, inside)| !**inside)
        .fold(Load::default(), |sum, (load, _)| sum.join(load));
    let mut left = vec![rest; order.len() + 1];
    for (m, i) in order.iter().enumerate().rev() {
        rest = rest.join(&ranged[*i]);
        left[m] = rest;
    }
    let mut gone = Load::default();
    let mut best = (model.cost(&left[0]), 0);
    for (m, i) in order.iter().enumerate() {
        if let Some(load) = &called[*i] {
            gone = gone.join(load);
        }
        let cost = model.cost(&gone.join(&left[m + 1]));
        if cost < best.0 {
            best = (cost, m + 1);
        }
    }
    best
}
