//! What a run took, and its bill.

use hyperslab_plan::{Place, PriceBook};
use serde::Serialize;

/// What a run in virtual time took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct VirtualOutcome {
    /// From the first request to the last byte.
    pub seconds: f64,
    /// The bill, by the price book and place of the configuration.
    pub dollars: f64,
    /// Requests that the client made of the store.
    pub requests: u64,
    /// Calls of the function.
    pub calls: u64,
    /// Calls, of those, that had to start an instance.
    pub cold_starts: u64,
    /// Requests that calls made of the store.
    pub reads: u64,
    /// Bytes that reached the client.
    pub bytes: u64,
    /// Paid seconds of all calls.
    pub function_seconds: f64,
    /// The same, times the gigabytes of an instance.
    pub gb_seconds: f64,
}

impl VirtualOutcome {
    /// The bill by another book or at another place: as the simulator's meter has it.
    pub fn bill(&self, prices: &PriceBook, place: Place) -> f64 {
        let function = &prices.function;
        prices.request_dollars(0, self.requests + self.reads, 0)
            + prices.egress_dollars(place, self.bytes)
            + self.calls as f64 * function.per_million_requests.value / 1e6
            + self.gb_seconds * function.per_gb_second.value
            + self.function_seconds * function.per_vcpu_second.value
    }

    /// Two runs, one after the other.
    pub fn then(self, next: &VirtualOutcome) -> VirtualOutcome {
        VirtualOutcome {
            seconds: self.seconds + next.seconds,
            dollars: self.dollars + next.dollars,
            requests: self.requests + next.requests,
            calls: self.calls + next.calls,
            cold_starts: self.cold_starts + next.cold_starts,
            reads: self.reads + next.reads,
            bytes: self.bytes + next.bytes,
            function_seconds: self.function_seconds + next.function_seconds,
            gb_seconds: self.gb_seconds + next.gb_seconds,
        }
    }
}
