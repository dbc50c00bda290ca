//! Counts requests and bytes and writes the bill.
//!
//! A request is counted when it arrives and billed when it is not refused with a 5xx or cut off by
//! a fault before its effect. Bytes are those of bodies, counted as they pass.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::fault::FaultCounts;
use crate::function::FunctionFailure;
use crate::operation::{Class, Operation};
use crate::sync::lock;
use hyperslab_plan::{Place, PriceBook};

/// What a meter has counted since it was last reset.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MeterSnapshot {
    /// GET requests for objects.
    pub get: u64,
    /// HEAD requests.
    pub head: u64,
    /// Listings of buckets, keys, uploads and parts.
    pub list: u64,
    /// PUT, POST and COPY requests.
    pub put: u64,
    /// DELETE requests.
    pub delete: u64,
    /// Requests, of the ones above, that were refused with a 5xx or cut off before their effect;
    /// they are not billed.
    pub not_billed: u64,
    /// Body bytes sent to clients.
    pub bytes_out: u64,
    /// Body bytes received from clients.
    pub bytes_in: u64,
    /// Requests by the name that S3 has for the operation.
    pub operations: BTreeMap<String, u64>,
    /// The most requests that were under way at once.
    pub max_concurrent: u64,
    /// Connections that clients have opened.
    pub connections: u64,
    /// The bill, by the price book and place of the configuration.
    pub dollars: f64,
    /// Injected faults by kind.
    pub faults: FaultCounts,
    /// Calls of the function; their fees are part of `dollars`.
    #[serde(default)]
    pub function: FunctionCounts,
}

/// What a meter has counted of the function.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FunctionCounts {
    /// Calls that an instance took; they are billed.
    pub calls: u64,
    /// Calls, of those, that had to start an instance.
    pub cold_starts: u64,
    /// Calls that found every instance busy; they are not billed.
    pub throttled: u64,
    /// Requests that calls made to the store; billed as requests, but not as traffic.
    pub reads: u64,
    /// Computed seconds of all calls.
    pub seconds: f64,
    /// The same, times the gigabytes of an instance.
    pub gb_seconds: f64,
    /// Calls that failed on purpose, by kind.
    pub failures: BTreeMap<FunctionFailure, u64>,
}

impl MeterSnapshot {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.get + self.head + self.list + self.put + self.delete
    }
}

/// The meter of a simulator.
pub(crate) struct Meter {
    prices: PriceBook,
    place: Place,
    counts: Mutex<Counts>,
    bytes_out: AtomicU64,
    bytes_in: AtomicU64,
}

#[derive(Default)]
struct Counts {
    arrived: [u64; 5],
    not_billed: [u64; 5],
    operations: BTreeMap<&'static str, u64>,
    under_way: u64,
    max_concurrent: u64,
    connections: u64,
    function: FunctionCounts,
}

/// Keeps a request counted as under way.
pub(crate) struct UnderWay {
    meter: Arc<Meter>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = lock(&self.meter.counts);
        counts.under_way = counts.under_way.saturating_sub(1);
    }
}

impl Meter {
    pub(crate) fn new(prices: PriceBook, place: Place) -> Self {
        Meter {
            prices,
            place,
            counts: Mutex::default(),
            bytes_out: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
        }
    }

    pub(crate) fn connected(&self) {
        lock(&self.counts).connections += 1;
    }

    /// Counts a request in; it is under way until the returned guard is dropped.
    pub(crate) fn arrived(self: &Arc<Self>, operation: &Operation) -> UnderWay {
        let mut counts = lock(&self.counts);
        counts.arrived[operation.class as usize] += 1;
        *counts.operations.entry(operation.name).or_default() += 1;
        counts.under_way += 1;
        counts.max_concurrent = counts.max_concurrent.max(counts.under_way);
        UnderWay {
            meter: Arc::clone(self),
        }
    }

    /// Keeps a call of the function under way until the returned guard is dropped.
    pub(crate) fn under_way(self: &Arc<Self>) -> UnderWay {
        let mut counts = lock(&self.counts);
        counts.under_way += 1;
        counts.max_concurrent = counts.max_concurrent.max(counts.under_way);
        UnderWay {
            meter: Arc::clone(self),
        }
    }

    /// Bills a call.
    pub(crate) fn called(&self, cold: bool, seconds: f64, gigabytes: f64, reads: u64) {
        let function = &mut lock(&self.counts).function;
        function.calls += 1;
        function.cold_starts += u64::from(cold);
        function.reads += reads;
        function.seconds += seconds;
        function.gb_seconds += seconds * gigabytes;
    }

    pub(crate) fn throttled(&self) {
        lock(&self.counts).function.throttled += 1;
    }

    pub(crate) fn call_failed(&self, kind: FunctionFailure) {
        let mut counts = lock(&self.counts);
        *counts.function.failures.entry(kind).or_default() += 1;
    }

    pub(crate) fn not_billed(&self, operation: &Operation) {
        lock(&self.counts).not_billed[operation.class as usize] += 1;
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What has been counted; faults are filled in by the caller.
    pub(crate) fn snapshot(&self) -> MeterSnapshot {
        let counts = lock(&self.counts);
        let arrived = |class: Class| counts.arrived[class as usize];
        let billed = |class: Class| {
            counts.arrived[class as usize].saturating_sub(counts.not_billed[class as usize])
        };
        let bytes_out = self.bytes_out.load(Ordering::Relaxed);
        let requests = self.prices.request_dollars(
            billed(Class::Put) + billed(Class::List),
            billed(Class::Get) + billed(Class::Head) + counts.function.reads,
            billed(Class::Delete),
        );
        MeterSnapshot {
            get: arrived(Class::Get),
            head: arrived(Class::Head),
            list: arrived(Class::List),
            put: arrived(Class::Put),
            delete: arrived(Class::Delete),
            not_billed: counts.not_billed.iter().sum(),
            bytes_out,
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            operations: counts
                .operations
                .iter()
                .map(|(k, v)| (k.to_string(), *v))
                .collect(),
            max_concurrent: counts.max_concurrent,
            connections: counts.connections,
            dollars: requests
                + self.prices.egress_dollars(self.place, bytes_out)
                + self.function_dollars(&counts.function),
            faults: FaultCounts::new(),
            function: counts.function.clone(),
        }
    }

    fn function_dollars(&self, counts: &FunctionCounts) -> f64 {
        let prices = &self.prices.function;
        // As the planner has it: a processor that is billed apart from memory is a whole one.
        counts.calls as f64 * prices.per_million_requests.value / 1e6
            + counts.gb_seconds * prices.per_gb_second.value
            + counts.seconds * prices.per_vcpu_second.value
    }

    /// Counts from zero again; requests under way stay under way.
    pub(crate) fn reset(&self) {
        let mut counts = lock(&self.counts);
        let under_way = counts.under_way;
        *counts = Counts {
            under_way,
            max_concurrent: under_way,
            ..Counts::default()
        };
        self.bytes_out.store(0, Ordering::Relaxed);
        self.bytes_in.store(0, Ordering::Relaxed);
    }
}
