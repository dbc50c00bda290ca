//! Plans that use one method for every object.

use crate::division::Division;
use crate::load::{Bundle, MAX_BUNDLE};
use crate::packing::Packing;
use crate::{Load, Method, Model, Object, Query};

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
pub(crate) fn function(query: &Query, division: &Division<'_>) -> Vec<Method> {
    (0..query.objects().len())
        .map(|i| match division.fewest(i) {
            Some(count) => Method::Function(division.calls(i, count)),
            None => Method::Get,
        })
        .collect()
}

/// One call for everything, or as few as the function's limits allow.
pub(crate) fn function_whole(
    query: &Query,
    model: &Model,
    division: &Division<'_>,
) -> (Vec<Method>, Vec<Vec<usize>>) {
    let alone: Vec<Bundle> = query.objects().iter().map(Bundle::of_object).collect();
    let packing = pack(&alone, model, division);
    (function(query, division), packing.bundles)
}

/// What [`function`] and [`function_whole`] ask for.
pub(crate) fn function_loads(query: &Query, model: &Model, division: &Division<'_>) -> [Load; 2] {
    let (mut each, mut whole) = (Load::default(), Load::default());
    for (i, object) in query.objects().iter().enumerate() {
        let mut load = Load::default();
        match division.fewest(i) {
            Some(count) => load = division.load(i, model, count),
            None => load.add_request(model, object.size),
        }
        each = each.join(&load);
        if division.fewest(i) != Some(1) {
            whole = whole.join(&load);
        }
    }
    let alone: Vec<Bundle> = query.objects().iter().map(Bundle::of_object).collect();
    let packed = pack(&alone, model, division).load(model);
    [each, whole.join(&packed)]
}

/// All objects that one call can read, packed as tightly as can be.
fn pack<'a>(alone: &'a [Bundle], model: &Model, division: &Division<'_>) -> Packing<'a> {
    let mut packing = Packing::new(alone, MAX_BUNDLE as usize);
    for i in (0..alone.len()).filter(|i| division.fewest(*i) == Some(1)) {
        packing.add(model, i);
    }
    packing
}
