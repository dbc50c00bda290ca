//! What the virtual client does for a plan: the requests of each object, in order.
//!
//! Follows `hyperslab::read`, `fetch` and `call`: calls go first, those for several objects before the
//! others; an object of unknown size is read whole; a call reads the units of a shard one by one.

use hyperslab_plan::{Call, Method, Object, Plan, Query};

/// One request in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtualRequest {
    /// An object or a range of it.
    Get {
        /// Bytes of the body.
        bytes: u64,
    },
    /// A call of the function.
    Call {
        /// Bytes that it reads next to the data.
        read: u64,
        /// Requests by which it reads them.
        reads: u64,
        /// Bytes of its answer.
        answer: u64,
    },
}

/// What is asked for one object, or for several in one call: requests in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Work {
    /// The requests.
    pub requests: Vec<VirtualRequest>,
}

impl From<VirtualRequest> for Work {
    fn from(request: VirtualRequest) -> Self {
        Work {
            requests: vec![request],
        }
    }
}

impl Work {
    /// The work of a plan. `sizes` are those of the whole objects, which the planner may have had
    /// to guess.
    pub fn of_plan(query: &Query, plan: &Plan, sizes: &[u64]) -> Vec<Work> {
        let objects = query.objects();
        let mut bundled = vec![false; objects.len()];
        let mut all = Vec::with_capacity(objects.len());
        for bundle in &plan.bundles {
            let mut calls = Vec::new();
            for i in bundle {
                if let (Some(object), Some(Method::Function(own))) =
                    (objects.get(*i), plan.methods.get(*i))
                {
                    bundled[*i] = true;
                    calls.extend(own.iter().map(|call| CallOf::new(object, call)));
                }
            }
            all.push(Work::from(CallOf::together(&calls)));
        }
        let mut others = Vec::new();
        for (i, (object, method)) in objects.iter().zip(&plan.methods).enumerate() {
            let size = sizes.get(i).copied().unwrap_or(object.size);
            match method {
                Method::Function(_) if bundled[i] => {}
                Method::Function(_) => all.push(Work::of_object(object, method, size)),
                _ => others.push(Work::of_object(object, method, size)),
            }
        }
        // As the executor does it: what takes longest starts first.
        others.sort_by_key(|work| std::cmp::Reverse(work.longest()));
        all.extend(others);
        all
    }

    fn of_object(object: &Object, method: &Method, size: u64) -> Work {
        let whole = VirtualRequest::Get { bytes: size };
        match method {
            Method::Get => Work::from(whole),
            // Its size was a guess: the range that the planner saw may not be all of it.
            Method::Ranges(_) if !object.splittable => Work::from(whole),
            Method::Ranges(ranges) => Work {
                requests: ranges
                    .iter()
                    .map(|range| VirtualRequest::Get {
                        bytes: range.end - range.start,
                    })
                    .collect(),
            },
            Method::Function(calls) => Work {
                requests: calls
                    .iter()
                    .map(|call| CallOf::together(&[CallOf::new(object, call)]))
                    .collect(),
            },
        }
    }

    /// Bytes of its longest request.
    fn longest(&self) -> u64 {
        let bytes = |request: &VirtualRequest| match request {
            VirtualRequest::Get { bytes } => *bytes,
            VirtualRequest::Call { answer, .. } => *answer,
        };
        self.requests.iter().map(bytes).max().unwrap_or(0)
    }

    pub(super) fn has_calls(&self) -> bool {
        self.requests
            .iter()
            .any(|request| matches!(request, VirtualRequest::Call { .. }))
    }
}

/// What a call does for one object.
struct CallOf {
    read: u64,
    reads: u64,
    answer: u64,
}

impl CallOf {
    /// Raw cells are read as one range; units that decode as a whole one by one, without gaps.
    fn new(object: &Object, call: &Call) -> Self {
        let (mut read, mut reads) = (call.read.end - call.read.start, 1);
        if object.grain == 0 {
            let inside = |start: u64, end: u64| call.read.start <= start && end <= call.read.end;
            let units = || object.runs.iter().filter(|run| inside(run.start, run.end));
            read = units().map(|run| run.len()).sum();
            reads = units().count() as u64;
        }
        CallOf {
            read,
            reads,
            answer: call.useful,
        }
    }

    fn together(calls: &[CallOf]) -> VirtualRequest {
        VirtualRequest::Call {
            read: calls.iter().map(|call| call.read).sum(),
            reads: calls.iter().map(|call| call.reads).sum(),
            answer: calls.iter().map(|call| call.answer).sum(),
        }
    }
}
