//! The sums over all requests of a plan from which time and fee follow.

use crate::{Call, Method, Model, Query};

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
    /// Bytes that calls read next to the data.
    pub read: u64,
    /// Seconds of a slot of the window, over all requests and calls.
    pub slot_seconds: f64,
    /// Seconds of the longest request or call.
    pub longest: f64,
    /// Seconds that calls compute, which are paid.
    pub call_seconds: f64,
    /// Seconds until the quickest call sends its first byte.
    pub first_call: f64,
}

impl Load {
    /// The load of a plan.
    pub fn of(query: &Query, model: &Model, methods: &[Method]) -> Load {
        let mut load = Load::default();
        for (object, method) in query.objects().iter().zip(methods) {
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

    /// `count` more requests of `bytes` each.
    pub(crate) fn add_requests(&mut self, model: &Model, count: u64, bytes: u64) {
        if count == 0 {
            return;
        }
        let seconds = model.request_seconds(bytes);
        self.requests += count;
        self.bytes += bytes * count;
        self.slot_seconds += seconds * count as f64;
        self.longest = self.longest.max(seconds);
    }

    /// One more call.
    pub fn add_call(&mut self, model: &Model, call: &Call) {
        let read = call.read.end - call.read.start;
        let first = model.call_first_byte(read);
        let seconds = first + model.answer_seconds(call.useful);
        self.first_call = if self.calls == 0 {
            first
        } else {
            self.first_call.min(first)
        };
        self.calls += 1;
        self.answered += call.useful;
        self.read += read;
        self.slot_seconds += seconds;
        self.longest = self.longest.max(seconds);
        self.call_seconds += model.paid_seconds(read, call.useful);
    }

    /// The load of two disjoint sets of requests.
    pub(crate) fn join(self, other: &Load) -> Load {
        Load {
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            calls: self.calls + other.calls,
            answered: self.answered + other.answered,
            read: self.read + other.read,
            slot_seconds: self.slot_seconds + other.slot_seconds,
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
