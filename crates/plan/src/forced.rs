//! Plans that use one method for every object.

use crate::division::Division;
use crate::load::Bundle;
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
pub(crate) fn function(query: &Query, model: &Model) -> Vec<Method> {
    let division = Division::new(query, model);
    (0..query.objects().len())
        .map(|i| match division.fewest(i) {
            Some(count) => Method::Function(division.calls(i, count)),
            None => Method::Get,
        })
        .collect()
}

/// What [`function`] and [`function_whole`] would ask for.
pub(crate) fn function_loads(query: &Query, model: &Model, division: &Division<'_>) -> [Load; 2] {
    let (mut each, mut whole) = (Load::default(), Load::default());
    let mut bundle = Bundle::default();
    for (i, object) in query.objects().iter().enumerate() {
        match division.fewest(i) {
            None => {
                each.add_request(model, object.size);
                whole.add_request(model, object.size);
            }
            Some(1) => {
                let alone = Bundle::of_object(object);
                each.add_bundle(model, &alone);
                let joined = bundle.join(&alone);
                if bundle.objects > 0 && !joined.is_allowed(model) {
                    whole.add_bundle(model, &bundle);
                    bundle = alone;
                } else {
                    bundle = joined;
                }
            }
            Some(count) => division.each_call(i, count, |call| {
                each.add_call(model, &call);
                whole.add_call(model, &call);
            }),
        }
    }
    if bundle.objects > 0 {
        whole.add_bundle(model, &bundle);
    }
    [each, whole]
}

/// One call for everything, or as few as the function's limits allow.
pub(crate) fn function_whole(query: &Query, model: &Model) -> (Vec<Method>, Vec<Vec<usize>>) {
    let methods = function(query, model);
    let mut bundles: Vec<Vec<usize>> = Vec::new();
    let mut sum = Bundle::default();
    for (i, method) in methods.iter().enumerate() {
        let Method::Function(calls) = method else {
            continue;
        };
        let [call] = calls.as_slice() else {
            continue;
        };
        match bundles.last_mut() {
            Some(last) if sum.with(call).is_allowed(model) => last.push(i),
            _ => {
                bundles.push(vec![i]);
                sum = Bundle::default();
            }
        }
        sum = sum.with(call);
    }
    (methods, bundles)
}
