//! Which objects go to the function, how much a call reads, and which calls travel together.

use super::setting::{MIN_PART, Setting};
use crate::division::Division;
use crate::load::{Bundle, MAX_BUNDLE};
use crate::packing::Packing;
use crate::{Load, Model, Query};

/// Calls of the longest object that are tried.
const COUNTS: [u64; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64];
/// In queries of more objects the order of one call each serves for several calls too, and not
/// every prefix of it is weighed.
const MANY: usize = 512;
/// Prefixes that are weighed then, and once more around the best of them.
const PREFIXES: usize = 128;

/// Chooses which objects go to the function; returns the lowest cost.
pub(super) fn choose(
    query: &Query,
    model: &Model,
    division: &Division<'_>,
    best: &mut Setting,
    mut best_cost: f64,
) -> f64 {
    let objects = query.objects();
    let ranged: Vec<Load> = objects
        .iter()
        .map(|object| best.ranged_load(object, model))
        .collect();
    let longest = objects
        .iter()
        .map(|object| object.covering().end - object.covering().start)
        .max()
        .unwrap_or(0);
    let start = best.clone();
    let mut orders: Vec<Order> = Vec::new();
    for count in COUNTS {
        let call = if count == 1 {
            u64::MAX
        } else {
            longest.div_ceil(count)
        };
        if call < MIN_PART {
            break;
        }
        let called: Vec<Option<Load>> = (0..objects.len())
            .map(|i| {
                let count = division.count(i, model, call)?;
                Some(division.load(i, model, count))
            })
            .collect();
        if count == 1 || objects.len() <= MANY {
            orders = all_orders(model, &ranged, &called);
        } else {
            orders.truncate(1);
        }
        for order in &orders {
            let gone = order.objects.iter().filter_map(|i| called[*i].as_ref());
            let gone = prefixes(gone, |sum, load| sum.join(load));
            let (cost, chosen) = best_prefix(model, &gone, &order.left);
            if cost < best_cost {
                best_cost = cost;
                *best = Setting {
                    call,
                    called: gone[chosen],
                    by_function: order.flags(chosen, objects.len()),
                    bundles: Vec::new(),
                    ..start.clone()
                };
            }
        }
        // Calls for several objects save money, never time.
        if count == 1 && model.phi() > 0.0 && division.all_alone() {
            let alone: Vec<Bundle> = objects.iter().map(Bundle::of_object).collect();
            let tried = if objects.len() <= MANY {
                &orders[..]
            } else {
                &orders[BY_MONEY..=BY_MONEY]
            };
            for order in tried {
                let (cost, setting) = bundled(&alone, model, &start, order);
                if cost < best_cost {
                    best_cost = cost;
                    *best = setting;
                }
            }
        }
    }
    best_cost
}

/// Sums of the first 0, 1, 2, ... loads.
fn prefixes<'a>(
    loads: impl Iterator<Item = &'a Load>,
    join: impl Fn(Load, &Load) -> Load,
) -> Vec<Load> {
    let mut sum = Load::default();
    let mut out = vec![sum];
    for load in loads {
        sum = join(sum, load);
        out.push(sum);
    }
    out
}

/// An order in which objects go to the function.
struct Order {
    objects: Vec<usize>,
    /// What ranges have to fetch once the first m objects are gone.
    left: Vec<Load>,
}

impl Order {
    fn new(objects: Vec<usize>, ranged: &[Load]) -> Order {
        let mut inside = vec![false; ranged.len()];
        objects.iter().for_each(|i| inside[*i] = true);
        let outside = ranged.iter().zip(&inside).filter(|(_, inside)| !**inside);
        let mut rest = outside.fold(Load::default(), |sum, (load, _)| sum.join(load));
        let mut left = vec![rest; objects.len() + 1];
        for (m, i) in objects.iter().enumerate().rev() {
            rest = rest.join(&ranged[*i]);
            left[m] = rest;
        }
        Order { objects, left }
    }

    fn flags(&self, chosen: usize, objects: usize) -> Vec<bool> {
        let mut flags = vec![false; objects];
        self.objects[..chosen].iter().for_each(|i| flags[*i] = true);
        flags
    }
}

/// Which of the orders goes by the money that is saved.
const BY_MONEY: usize = 1;

/// Orders to try: most bytes saved first, most money saved first, most slot time saved first.
fn all_orders(model: &Model, ranged: &[Load], called: &[Option<Load>]) -> Vec<Order> {
    let savings: [fn(&Model, &Load, &Load) -> f64; 3] = [
        |_, r, c| r.bytes as f64 - c.answered as f64,
        |m, r, c| m.dollars(r) - m.dollars(c),
        |_, r, c| r.slot_seconds - c.call_slots,
    ];
    let order = |saving: &fn(&Model, &Load, &Load) -> f64| {
        let mut order: Vec<(f64, usize)> = called
            .iter()
            .enumerate()
            .filter_map(|(i, c)| c.as_ref().map(|c| (saving(model, &ranged[i], c), i)))
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        Order::new(order.into_iter().map(|(_, i)| i).collect(), ranged)
    };
    savings.iter().map(order).collect()
}

/// How many objects of an order are best sent to the function, and what that costs.
fn best_prefix(model: &Model, gone: &[Load], left: &[Load]) -> (f64, usize) {
    let len = gone.len().min(left.len());
    let weigh = |m: usize| model.cost(&gone[m].join(&left[m]));
    let mut best = (f64::INFINITY, 0);
    let mut look = |from: usize, to: usize, step: usize| {
        for m in (from..=to).step_by(step).chain([to]) {
            let cost = weigh(m);
            if cost < best.0 {
                best = (cost, m);
            }
        }
        best.1
    };
    if len <= MANY {
        look(0, len - 1, 1);
        return best;
    }
    let step = len / PREFIXES;
    let at = look(0, len - 1, step);
    look(
        at.saturating_sub(step),
        (at + step).min(len - 1),
        (step / 32).max(1),
    );
    best
}

/// The best way to send several objects with each call.
fn bundled(alone: &[Bundle], model: &Model, start: &Setting, order: &Order) -> (f64, Setting) {
    let step = if alone.len() <= MANY { 2 } else { 8 };
    let mut best = (f64::INFINITY, 1, 0, Load::default());
    let mut size = step;
    loop {
        let most = size.min(alone.len()).min(MAX_BUNDLE as usize);
        let mut packing = Packing::new(alone, most);
        let mut gone = Vec::with_capacity(1 + order.objects.len());
        gone.push(Load::default());
        for i in &order.objects {
            packing.add(model, *i);
            gone.push(packing.load(model));
        }
        let (cost, chosen) = best_prefix(model, &gone, &order.left);
        if cost < best.0 {
            best = (cost, most, chosen, gone[chosen]);
        }
        if most < size {
            break;
        }
        size *= step;
    }
    let (cost, most, chosen, called) = best;
    let mut packing = Packing::new(alone, most);
    for i in &order.objects[..chosen] {
        packing.add(model, *i);
    }
    let setting = Setting {
        call: u64::MAX,
        called,
        by_function: order.flags(chosen, alone.len()),
        bundles: packing.bundles,
        ..start.clone()
    };
    (cost, setting)
}
