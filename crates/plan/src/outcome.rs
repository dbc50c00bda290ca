//! What a planner answers.

use std::ops::Range;

use serde::Serialize;

use crate::load::Bundle;
use crate::{Load, Model, Query};

/// How the wanted bytes of one object are fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The whole object in one request.
    Get,
    /// These byte ranges, each a request: sorted and disjoint. Ranges may touch, where one long
    /// range is fetched over several connections.
    Ranges(Vec<Range<u64>>),
    /// By the function next to the data, which sends useful cells only.
    Function(Vec<Call>),
}

/// One call of the function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The part of the object that it looks at; wanted cells in there are its answer.
    pub read: Range<u64>,
    /// Bytes of that part that it reads.
    pub bytes: u64,
    /// Bytes of the answer.
    pub useful: u64,
    /// Requests that the function makes for it: one, or one for each block that is decoded by
    /// itself.
    pub reads: u64,
}

/// What a plan is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Estimate {
    /// Requests for objects and ranges.
    pub requests: u64,
    /// Calls of the function.
    pub calls: u64,
    /// Bytes that reach the client.
    pub bytes: u64,
    /// From the first request to the last byte.
    pub seconds: f64,
    /// All fees.
    pub dollars: f64,
}

/// How a query is answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// One method per object of the query, in its order.
    pub methods: Vec<Method>,
    /// Objects whose calls travel as one request, which saves what a call costs by itself. Objects
    /// of the function that stand in no bundle travel by themselves.
    pub bundles: Vec<Vec<usize>>,
    /// What it is expected to take.
    pub estimate: Estimate,
}

impl Plan {
    /// A plan with its estimate.
    pub(crate) fn of(
        query: &Query,
        model: &Model,
        methods: Vec<Method>,
        bundles: Vec<Vec<usize>>,
    ) -> Plan {
        let load = Load::of(query, model, &methods, &bundles);
        Plan {
            estimate: Estimate {
                requests: load.requests,
                calls: load.calls,
                bytes: load.bytes + load.answered,
                seconds: model.seconds(&load),
                dollars: model.dollars(&load),
            },
            methods,
            bundles,
        }
    }

    /// Says what is wrong with a plan for this query, if anything is. Used by tests and in debug
    /// builds; a planner never returns a plan that this refuses.
    pub fn check(&self, query: &Query, model: &Model) -> Result<(), String> {
        if self.methods.len() != query.objects().len() {
            return Err("the plan has another number of objects".into());
        }
        self.check_bundles(model)?;
        for (i, (object, method)) in query.objects().iter().zip(&self.methods).enumerate() {
            let fail = |what: &str| Err(format!("object {i}: {what}"));
            let ranges: Vec<Range<u64>> = match method {
                Method::Get => continue,
                Method::Ranges(ranges) => ranges.clone(),
                Method::Function(calls) => {
                    if !object.function {
                        return fail("the function cannot read it");
                    }
                    if let Some(call) = calls.iter().find(|call| !model.allows(call)) {
                        return fail(&format!("a call breaks a limit: {call:?}"));
                    }
                    if calls.iter().map(|call| call.useful).sum::<u64>() != object.useful() {
                        return fail("calls answer too much or too little");
                    }
                    calls.iter().map(|call| call.read.clone()).collect()
                }
            };
            let sorted = ranges.windows(2).all(|w| w[0].end <= w[1].start);
            if !sorted || ranges.iter().any(Range::is_empty) {
                return fail("ranges are empty, overlap or are not sorted");
            }
            if ranges.last().is_none_or(|last| last.end > object.size) {
                return fail("a range ends outside the object");
            }
            let in_parts = ranges.windows(2).any(|w| w[0].end == w[1].start);
            if !object.splittable && in_parts && matches!(method, Method::Ranges(_)) {
                return fail("it cannot be fetched in parts");
            }
            // Ranges that touch count as one: a run may be fetched in several parts.
            let mut joined: Vec<Range<u64>> = Vec::new();
            for range in ranges {
                match joined.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => joined.push(range),
                }
            }
            let covered = |start: u64, end: u64| {
                let at = joined.partition_point(|range| range.end < end);
                joined
                    .get(at)
                    .is_some_and(|range| range.start <= start && end <= range.end)
            };
            if object.runs.iter().any(|run| !covered(run.start, run.end)) {
                return fail("a run is not covered");
            }
        }
        Ok(())
    }

    fn check_bundles(&self, model: &Model) -> Result<(), String> {
        let mut seen = vec![false; self.methods.len()];
        for bundle in &self.bundles {
            let mut sum = Bundle::default();
            for i in bundle {
                match self.methods.get(*i) {
                    Some(Method::Function(calls)) if calls.len() == 1 && !seen[*i] => {
                        seen[*i] = true;
                        sum = sum.with(&calls[0]);
                    }
                    _ => return Err(format!("object {i} cannot be in this bundle")),
                }
            }
            if !sum.is_allowed(model) {
                return Err(format!("a bundle breaks a limit: {sum:?}"));
            }
        }
        Ok(())
    }
}
