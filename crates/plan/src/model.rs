//! The cost of a plan: `Cost(Q) = T(Q) + φ·F(Q)`.
//!
//! `F` is that of the paper's table 3 over all objects of the query, with the read that a call
//! makes next to the data charged as the request it is. `T` is our own: where the paper adds up
//! lock-step batches, this models a sliding window of requests, in which
//!
//! - a request takes its latency and its bytes at the speed of one connection, and nothing ends
//!   before the longest request does;
//! - a window of W slots works through all requests' slot time, and the last ones leave it half
//!   empty;
//! - all bytes together cannot arrive faster than the total bandwidth `BW(N)`, after the first
//!   latency; those of calls, after the first call's computation;
//! - the slowest of many requests answers later than usual, by the spread of the latency;
//! - the client itself sends one request after the other;
//! - calls have a window of their own, and come in waves where the function runs fewer at a time.
//!
//! The time is the longest of these.

use crate::{
    Call, Error, FunctionProfile, Load, NetworkProfile, Object, Place, PriceBook, Profile, Query,
    Result, Run,
};

/// Calls of the function under way at a time, at most.
const CALLS: u64 = 256;
/// Bandwidth this near to the peak is the peak: a curve that was measured is never quite level, and
/// hundreds of requests are not worth a few hundredths.
const NEARLY: f64 = 0.94;
/// The share of the client's work that counts in any case.
const TIE: f64 = 0.05;

/// Fees in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Fees {
    /// Per request for an object or a range.
    pub request: f64,
    /// Per byte that leaves the cloud.
    pub byte: f64,
    /// Per call of the function.
    pub call: f64,
    /// Per second of a call, with the memory that the function has.
    pub call_second: f64,
}

impl Fees {
    /// Fees at a place, with a function of so much memory.
    pub fn new(book: &PriceBook, place: Place, memory_bytes: u64) -> Fees {
        // Memory is billed in binary gigabytes by all three clouds; the smallest share of a
        // processor that is billed apart from memory is a whole one.
        let gigabytes = memory_bytes as f64 / (1u64 << 30) as f64;
        Fees {
            request: book.request_dollars(0, 1, 0),
            byte: book.egress_dollars(place, 1 << 30) / (1u64 << 30) as f64,
            call: book.function.per_million_requests.value / 1e6,
            call_second: book.function.per_gb_second.value * gigabytes
                + book.function.per_vcpu_second.value,
        }
    }
}

/// All that the cost of a plan depends on besides the query.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    network: NetworkProfile,
    function: Option<FunctionProfile>,
    fees: Fees,
    phi: f64,
    window: u64,
}

impl Model {
    /// A model for a client at `place`. `phi` says how many seconds a dollar is worth: 0 minimises
    /// time, infinity minimises money.
    pub fn new(profile: &Profile, book: &PriceBook, place: Place, phi: f64) -> Result<Model> {
        let memory = profile.function.as_ref().map_or(0, |f| f.memory_bytes);
        Self::with_fees(profile, Fees::new(book, place, memory), phi)
    }

    /// A model with given fees.
    pub fn with_fees(profile: &Profile, fees: Fees, phi: f64) -> Result<Model> {
        profile.check()?;
        if phi.is_nan() || phi < 0.0 {
            return Err(
                Error::invalid(format!("φ is {phi}, but it has to be 0 or more")).with_hint(
                    "0 minimises time, inf minimises money, 1000 pays a dollar for 1,000 seconds",
                ),
            );
        }
        let mut network = profile.network.clone();
        let enough = NEARLY * network.peak();
        let full = network.peak();
        for point in &mut network.bandwidth {
            if point.bytes_per_second >= enough {
                point.bytes_per_second = full;
            }
        }
        Ok(Model {
            window: profile.network.window(),
            network,
            function: profile.function.clone(),
            fees,
            phi,
        })
    }

    /// The way to the store.
    pub fn network(&self) -> &NetworkProfile {
        &self.network
    }

    /// The function, if there is one.
    pub fn function(&self) -> Option<&FunctionProfile> {
        self.function.as_ref()
    }

    /// The fees.
    pub fn fees(&self) -> &Fees {
        &self.fees
    }

    /// Seconds that a dollar is worth.
    pub fn phi(&self) -> f64 {
        self.phi
    }

    /// Requests in flight at a time.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Seconds of one request by itself.
    pub fn request_seconds(&self, bytes: u64) -> f64 {
        self.network.latency_seconds + bytes as f64 / self.network.connection_bandwidth
    }

    /// Seconds until a call that reads so many bytes sends its first byte.
    pub fn call_first_byte(&self, read: u64) -> f64 {
        self.network.latency_seconds + self.compute_seconds(read)
    }

    /// The paper's `T_λ`: α·bytes + β, with β between warm and cold by the share of cold calls.
    pub fn compute_seconds(&self, read: u64) -> f64 {
        self.function.as_ref().map_or(f64::INFINITY, |f| {
            let fixed = f.warm_seconds + f.cold_share * (f.cold_seconds - f.warm_seconds);
            fixed + f.seconds_per_byte * read as f64
        })
    }

    /// Seconds that an answer takes from its first byte to its last.
    pub fn answer_seconds(&self, useful: u64) -> f64 {
        let fast = useful as f64 / self.network.connection_bandwidth;
        fast.max(self.streamed_seconds(useful))
    }

    /// Seconds that the cloud itself takes to send an answer, where it is slow on purpose.
    fn streamed_seconds(&self, useful: u64) -> f64 {
        let Some(f) = &self.function else { return 0.0 };
        match (f.stream_after_bytes, f.stream_bandwidth) {
            (Some(after), Some(speed)) if useful > after => (useful - after) as f64 / speed,
            _ => 0.0,
        }
    }

    /// Seconds of a call that are paid: a call runs until its answer has left.
    pub fn paid_seconds(&self, read: u64, useful: u64) -> f64 {
        self.compute_seconds(read) + self.streamed_seconds(useful)
    }

    /// True if a call keeps the function's limits.
    pub fn allows(&self, call: &Call) -> bool {
        self.function.as_ref().is_some_and(|f| {
            let read = call.bytes;
            call.useful <= f.max_answer_bytes
                && read.saturating_add(call.useful) <= f.memory_bytes
                && self.paid_seconds(read, call.useful) <= f.max_seconds
        })
    }

    /// Calls under way at a time: they have a window of their own, since they do not load the line
    /// while they compute.
    pub fn call_window(&self) -> u64 {
        let concurrency = self
            .function
            .as_ref()
            .map_or(1, |f| u64::from(f.concurrency));
        concurrency.clamp(1, CALLS)
    }

    /// `T`: seconds from the first request to the last byte.
    pub fn seconds(&self, load: &Load) -> f64 {
        let n = load.requests + load.calls;
        if n == 0 {
            return 0.0;
        }
        let latency = self.network.latency_seconds;
        let total = self.network.bandwidth(n.min(self.window));
        let mut seconds = load.longest + self.tail(n);
        seconds = seconds.max(latency + (load.bytes + load.answered) as f64 / total);
        if load.requests > self.window {
            let (requests, window) = (load.requests as f64, self.window as f64);
            seconds = seconds.max(load.slot_seconds * (1.0 / window + 0.5 / requests));
        }
        if load.calls > 0 {
            seconds = seconds.max(load.first_call + load.answered as f64 / total);
            // More calls than can run come in waves.
            let waves = load.calls.div_ceil(self.call_window()) as f64;
            seconds = seconds.max(waves * load.call_slots / load.calls as f64);
        }
        if let Some(rate) = self.network.requests_per_second {
            // What a store takes in a second, it takes at once.
            let waiting = (load.requests as f64 - rate).max(0.0);
            seconds = seconds.max(latency + waiting / rate);
        }
        // The client sends one request after the other, while those before are under way.
        let work = n as f64 * self.network.request_seconds;
        let last = work + (load.slot_seconds + load.call_slots) / n as f64;
        // Of two equal plans the one with fewer requests is better.
        (seconds + self.network.request_seconds).max(last) + TIE * work
    }

    /// How much later than usual the slowest of so many requests answers.
    fn tail(&self, requests: u64) -> f64 {
        if self.network.latency_spread == 0.0 {
            return 0.0;
        }
        let together = requests.min(self.window).max(1) as f64;
        self.network.latency_spread * (2.0 * together.ln()).sqrt()
    }

    /// `F`: all fees in dollars.
    pub fn dollars(&self, load: &Load) -> f64 {
        (load.requests + load.reads) as f64 * self.fees.request
            + (load.bytes + load.answered) as f64 * self.fees.byte
            + load.calls as f64 * self.fees.call
            + load.call_seconds * self.fees.call_second
    }

    /// What is minimised.
    pub fn cost(&self, load: &Load) -> f64 {
        self.weigh(self.seconds(load), self.dollars(load))
    }

    /// What no plan of a query can cost less than: nothing is transferred that is not wanted, and all
    /// at the peak.
    pub fn bound(&self, query: &Query) -> f64 {
        let network = &self.network;
        let useful: u64 = query.objects().iter().map(|object| object.useful()).sum();
        let stored: u64 = query.objects().iter().map(least_bytes).sum();
        let least = useful.min(stored) as f64;
        let seconds = network.latency_seconds + least / network.peak();
        let request = self.fees.request.min(self.fees.call);
        let dollars = request + least * self.fees.byte;
        self.weigh(seconds, dollars)
    }

    /// `T + φ·F`. Where only money counts, time decides between equals.
    pub fn weigh(&self, seconds: f64, dollars: f64) -> f64 {
        if self.phi.is_infinite() {
            dollars + 1e-12 * seconds
        } else {
            seconds + self.phi * dollars
        }
    }
}

/// Bytes of an object that cannot be left out without the function.
fn least_bytes(object: &Object) -> u64 {
    object.runs.iter().map(Run::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(phi: f64) -> Model {
        let mut profile = Profile::built_in("aws").unwrap();
        profile.network.requests_per_second = None;
        let book = PriceBook::built_in("aws").unwrap();
        Model::new(&profile, &book, Place::Internet, phi).unwrap()
    }

    #[test]
    fn phi_must_be_a_weight() {
        let profile = Profile::built_in("aws").unwrap();
        for phi in [-1.0, f64::NAN, f64::NEG_INFINITY] {
            assert!(Model::with_fees(&profile, Fees::default(), phi).is_err());
        }
        assert!(Model::with_fees(&profile, Fees::default(), f64::INFINITY).is_ok());
    }

    #[test]
    fn a_gibibyte_over_the_internet_costs_what_the_book_says() {
        let model = model(0.0);
        let mut load = Load::default();
        load.add_request(&model, 1 << 30);
        assert!((model.dollars(&load) - 0.09 - 0.0004 / 1000.0).abs() < 1e-12);
    }

    #[test]
    fn time_is_bound_by_the_longest_the_window_and_the_bandwidth() {
        let model = model(0.0);
        let one = |bytes, count| {
            let mut load = Load::default();
            load.add_requests(&model, count, count * bytes, bytes);
            model.seconds(&load)
        };
        let network = model.network();
        // One request runs at the speed of a connection, and costs the client a moment.
        let alone = network.latency_seconds
            + 64e6 / network.connection_bandwidth
            + network.request_seconds * (1.0 + TIE);
        assert!((one(64_000_000, 1) - alone).abs() < 1e-9);
        // Many tiny ones take turns in the window.
        let requests = 100 * model.window();
        let tie = TIE * requests as f64 * network.request_seconds;
        let turns = one(1, requests) - tie;
        assert!(turns > 99.0 * network.latency_seconds && turns < 102.0 * network.latency_seconds);
        // Many large ones fill the pipe.
        let full = one(1 << 20, 1000);
        let floor = 1000.0 * f64::from(1 << 20) / network.peak();
        assert!(full >= floor && full < 1.1 * floor);
    }
}
