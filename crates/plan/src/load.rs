//! The sums over all requests of a plan from which time and fee follow.

use crate::{Call, Method, Model, Object, Query, Run};

/// Calls of several objects that travel as one request.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Bundle {
    /// Objects.
    pub(crate) objects: u64,
    /// Requests that the function makes.
    pub(crate) reads: u64,
    /// Bytes that the function reads.
    pub(crate) read: u64,
    /// Bytes that it answers with.
    pub(crate) useful: u64,
}

impl Bundle {
    /// The bundle with one more call.
    pub(crate) fn with(self, call: &Call) -> Bundle {
        Bundle {
            objects: self.objects + 1,
            reads: self.reads + call.reads,
            read: self.read + call.bytes,
            useful: self.useful + call.useful,
        }
    }

    /// An object that one call reads.
    pub(crate) fn of_object(object: &Object) -> Bundle {
        let whole = object.covering();
        let (read, reads) = match object.grain {
            0 => {
                let blocks = object.runs.iter();
                (blocks.map(Run::len).sum(), object.runs.len() as u64)
            }
            _ => (whole.end - whole.start, 1),
        };
        Bundle {
            objects: 1,
            reads,
            read,
            useful: object.useful(),
        }
    }

    /// Both bundles in one.
    pub(crate) fn join(self, other: &Bundle) -> Bundle {
        Bundle {
            objects: self.objects + other.objects,
            reads: self.reads + other.reads,
            read: self.read + other.read,
            useful: self.useful + other.useful,
        }
    }

    /// True if it keeps the function's limits.
    pub(crate) fn is_allowed(&self, model: &Model) -> bool {
        self.objects <= MAX_BUNDLE
            && model.allows(&Call {
                read: 0..self.read,
                bytes: self.read,
                useful: self.useful,
                reads: self.reads,
            })
    }
}

/// Objects that one call reads, at most: the function bounds the parts of a request.
pub(crate) const MAX_BUNDLE: u64 = 1024;

/// What a plan asks of network and function.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// Requests for objects and ranges.
    pub requests: u64,
    /// Bytes that they fetch.
    pub bytes: u64,
    /// Calls of the function.
    pub calls: u64,
    /// Bytes that calls answer with.
    pub answered: u64,
    /// Requests that calls make next to the data.
    pub reads: u64,
    /// Bytes that calls read next to the data.
    pub read: u64,
    /// Seconds of a slot of the window, over all requests.
    pub slot_seconds: f64,
    /// The same over all calls, which have a window of their own.
    pub call_slots: f64,
    /// Seconds of the longest request or call.
    pub longest: f64,
    /// Seconds that calls compute, which are paid.
    pub call_seconds: f64,
    /// Seconds until the quickest call sends its first byte.
    pub first_call: f64,
}

impl Load {
    /// The load of a plan.
    pub fn of(query: &Query, model: &Model, methods: &[Method], bundles: &[Vec<usize>]) -> Load {
        let mut load = Load::default();
        let mut bundled = vec![false; if bundles.is_empty() { 0 } else { methods.len() }];
        for bundle in bundles {
            let mut sum = Bundle::default();
            for i in bundle {
                bundled[*i] = true;
                if let Method::Function(calls) = &methods[*i] {
                    sum = calls.iter().fold(sum, |sum, call| sum.with(call));
                }
            }
            load.add_bundle(model, &sum);
        }
        for (i, (object, method)) in query.objects().iter().zip(methods).enumerate() {
            if bundled.get(i) == Some(&true) {
                continue;
            }
            match method {
                Method::Get => load.add_request(model, object.size),
                Method::Ranges(ranges) => ranges
                    .iter()
                    .for_each(|range| load.add_request(model, range.end - range.start)),
                Method::Function(calls) => {
                    calls.iter().for_each(|call| load.add_call(model, call));
                }
            }
        }
        load
    }

    /// One more request.
    pub fn add_request(&mut self, model: &Model, bytes: u64) {
        let seconds = model.request_seconds(bytes);
        self.requests += 1;
        self.bytes += bytes;
        self.slot_seconds += seconds;
        self.longest = self.longest.max(seconds);
    }

    /// More requests, which fetch `bytes` together; the longest of them fetches `longest`.
    pub(crate) fn add_requests(&mut self, model: &Model, requests: u64, bytes: u64, longest: u64) {
        self.requests += requests;
        self.bytes += bytes;
        self.slot_seconds += model.request_seconds(0) * requests as f64
            + bytes as f64 / model.network().connection_bandwidth;
        self.longest = self.longest.max(model.request_seconds(longest));
    }

    /// One more call.
    pub fn add_call(&mut self, model: &Model, call: &Call) {
        self.add_bundle(model, &Bundle::default().with(call));
    }

    /// One more call that reads several objects.
    pub(crate) fn add_bundle(&mut self, model: &Model, bundle: &Bundle) {
        let first = model.call_first_byte(bundle.read);
        let seconds = first + model.answer_seconds(bundle.useful);
        self.first_call = if self.calls == 0 {
            first
        } else {
            self.first_call.min(first)
        };
        self.calls += 1;
        self.answered += bundle.useful;
        self.reads += bundle.reads;
        self.read += bundle.read;
        self.call_slots += seconds;
        self.longest = self.longest.max(seconds);
        self.call_seconds += model.paid_seconds(bundle.read, bundle.useful);
    }

    /// The load of two disjoint sets of requests.
    pub(crate) fn join(self, other: &Load) -> Load {
        Load {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            calls: self.calls + other.calls,
            answered: self.answered + other.answered,
            reads: self.reads + other.reads,
            read: self.read + other.read,
            slot_seconds: self.slot_seconds + other.slot_seconds,
            call_slots: self.call_slots + other.call_slots,
            longest: self.longest.max(other.longest),
            call_seconds: self.call_seconds + other.call_seconds,
            first_call: match (self.calls, other.calls) {
                (_, 0) => self.first_call,
                (0, _) => other.first_call,
                _ => self.first_call.min(other.first_call),
            },
        }
    }
}
