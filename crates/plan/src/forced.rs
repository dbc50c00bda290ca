//! Plans that use one method for every object, and how objects are divided among calls.

use crate::{Call, Load, Method, Model, Object, Plan, Query};

/// More calls for one object are never tried.
const MAX_CALLS: u64 = 4096;

/// Whole objects.
pub(crate) fn get(query: &Query) -> Vec<Method> {
    vec![Method::Get; query.objects().len()]
}

/// One covering range per object.
pub(crate) fn range_merge(query: &Query) -> Vec<Method> {
    let covering = |object: &Object| Method::Ranges(vec![object.covering()]);
    query.objects().iter().map(covering).collect()
}

/// One range per run.
pub(crate) fn range_fetch(query: &Query) -> Vec<Method> {
    let runs = |object: &Object| object.runs.iter().map(|run| run.start..run.end).collect();
    let fetch = |object: &Object| Method::Ranges(runs(object));
    query.objects().iter().map(fetch).collect()
}

/// As few calls per object as the function's limits allow; Get where it cannot be used.
pub(crate) fn function(query: &Query, model: &Model) -> Vec<Method> {
    let call = |object: &Object| match fewest_calls(object, model) {
        Some(calls) => Method::Function(calls),
        None => Method::Get,
    };
    query.objects().iter().map(call).collect()
}

/// One call for everything, or one per object where that is too much for the function.
pub(crate) fn function_whole(query: &Query, model: &Model) -> Plan {
    let methods = function(query, model);
    let mut read = 0;
    let mut useful = 0;
    for method in &methods {
        match method {
            Method::Function(calls) if calls.len() == 1 => {
                read += calls[0].read.end - calls[0].read.start;
                useful += calls[0].useful;
            }
            _ => return Plan::of(query, model, methods),
        }
    }
    let whole = Call {
        read: 0..read,
        useful,
    };
    if !model.allows(&whole) {
        return Plan::of(query, model, methods);
    }
    let mut load = Load::default();
    load.add_call(model, &whole);
    Plan::with_load(model, methods, &load, true)
}

/// The fewest calls that keep the function's limits.
pub(crate) fn fewest_calls(object: &Object, model: &Model) -> Option<Vec<Call>> {
    if !object.function || model.function().is_none() {
        return None;
    }
    let mut count = 1;
    while count <= MAX_CALLS {
        let calls = divide(object, count);
        if calls.iter().all(|call| model.allows(call)) {
            return Some(calls);
        }
        if (calls.len() as u64) < count {
            return None;
        }
        count *= 2;
    }
    None
}

/// Divides an object among at most `count` calls that read about equally much. Parts end in gaps,
/// and between the cells of raw runs.
pub(crate) fn divide(object: &Object, count: u64) -> Vec<Call> {
    let covering = object.covering();
    let total = u128::from(covering.end - covering.start);
    let border = |part: u64| covering.start + (total * u128::from(part) / u128::from(count)) as u64;
    let mut calls: Vec<Call> = Vec::with_capacity(count as usize);
    let mut open = false;
    let mut add = |open: &mut bool, start: u64, end: u64, useful: u64| {
        match calls.last_mut() {
            Some(call) if *open => {
                call.read.end = end;
                call.useful += useful;
            }
            _ => calls.push(Call {
                read: start..end,
                useful,
            }),
        }
        *open = true;
    };
    let mut part = 1;
    for run in &object.runs {
        let mut start = run.start;
        while part < count && border(part) <= start {
            open = false;
            part += 1;
        }
        while object.grain > 0 && part < count && border(part) < run.end {
            let cells = (border(part) - run.start) / object.grain;
            let cut = run.start + cells * object.grain;
            part += 1;
            if cut > start {
                add(&mut open, start, cut, cut - start);
                start = cut;
            }
            open = false;
        }
        let useful = if start > run.start {
            run.end - start
        } else {
            run.useful
        };
        add(&mut open, start, run.end, useful);
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divided_objects_lose_nothing(
            lens in proptest::collection::vec((1u64..200, 1u64..50), 1..30),
            count in 1u64..12,
            grain in prop_oneof![Just(0u64), Just(1), Just(4)],
        ) {
            let mut at = 3;
            let mut runs = Vec::new();
            for (gap, len) in lens {
                let len = len * grain.max(1);
                runs.push(Run::plain(at..at + len));
                at += len + gap;
            }
            let object = Object { size: at, runs, grain, function: true, splittable: true };
            let calls = divide(&object, count);
            prop_assert!(calls.len() as u64 <= count);
            prop_assert_eq!(calls.iter().map(|c| c.useful).sum::<u64>(), object.useful());
            prop_assert!(calls.windows(2).all(|w| w[0].read.end <= w[1].read.start));
            for run in &object.runs {
                let inside: u64 = calls
                    .iter()
                    .map(|c| c.read.end.min(run.end).saturating_sub(c.read.start.max(run.start)))
                    .sum();
                prop_assert_eq!(inside, run.len());
            }
            let total = object.covering().end - object.covering().start;
            let longest_run = object.runs.iter().map(Run::len).max().unwrap_or(0);
            let slack = if grain == 0 { longest_run } else { grain };
            for call in &calls {
                let wanted: u64 = object
                    .runs
                    .iter()
                    .map(|r| call.read.end.min(r.end).saturating_sub(call.read.start.max(r.start)))
                    .sum();
                prop_assert_eq!(wanted, call.useful);
                prop_assert!(call.read.end - call.read.start <= total / count + 1 + 2 * slack);
            }
        }
    }
}
