//! The simulated cloud in virtual time: what a plan takes, without waiting for it.
//!
//! Beside the simulator that listens on the loopback, and described by the same [`Network`] and
//! [`FunctionModel`]: the same latencies in the same order, the same bandwidths, instances and
//! bill. It is a discrete-event simulation in which bodies flow as a fluid, so a hundred thousand
//! requests take a fraction of a second. The client is our executor: a sliding window of requests,
//! which enter it in the order of the plan.
//!
//! What it leaves out: a request above the rate limit waits for its token where the listening
//! simulator refuses it and the client tries again; a call above the function's concurrency waits
//! for an instance; nothing fails; and decoding takes no time.
//!
//! Invariant: a pure function of the configuration and of what was run before; no clock, no I/O.
//!
//! ```
//! use hyperslab_sim::{Network, VirtualCloud, VirtualConfig, VirtualRequest, Work};
//!
//! let mut cloud = VirtualCloud::new(VirtualConfig {
//!     network: Network::preset("bench")?,
//!     ..VirtualConfig::default()
//! })?;
//! let work = vec![Work::from(VirtualRequest::Get { bytes: 9_000_000 })];
//! let outcome = cloud.run(&work, 1)?;
//! // 20 ms to the first byte, then 9 MB at 90 MB/s.
//! assert!((outcome.seconds - 0.12).abs() < 1e-9);
//! # Ok::<(), hyperslab_index::Error>(())
//! ```

mod engine;
mod instances;
mod outcome;
mod schedule;
mod sharing;
#[cfg(test)]
mod tests;
mod tokens;
mod work;

pub use outcome::VirtualOutcome;
pub use work::{VirtualRequest, Work};

use hyperslab_index::{Error, Result};
use hyperslab_plan::{Place, PriceBook};

use crate::function::FunctionModel;
use crate::network::Network;
use instances::Instances;
use tokens::Tokens;

/// A cloud and the client in front of it. The default is an unshaped network without a function,
/// free of charge, and a client that takes no time and has 256 requests and 256 calls in flight.
#[derive(Debug, Clone)]
pub struct VirtualConfig {
    /// The network between client and store; its seed draws the latencies.
    pub network: Network,
    /// The function next to the data, if there is one.
    pub function: Option<FunctionModel>,
    /// Instances of the function that run at the start.
    pub warm: u32,
    /// What requests, bytes and calls cost.
    pub prices: PriceBook,
    /// Where the client is said to be.
    pub place: Place,
    /// Requests in flight at a time.
    pub window: usize,
    /// Calls of the function in flight at a time, besides.
    pub call_window: usize,
    /// Seconds of the client's own work for each request, one request after another.
    pub request_seconds: f64,
}

impl Default for VirtualConfig {
    fn default() -> Self {
        VirtualConfig {
            network: Network::unshaped(),
            function: None,
            warm: 0,
            prices: PriceBook::free(),
            place: Place::default(),
            window: 256,
            call_window: 256,
            request_seconds: 0.0,
        }
    }
}

/// A cloud whose clock moves only by what it runs. Instances of the function, tokens of the rate
/// limit and the numbers of requests carry over from one run to the next.
#[derive(Debug)]
pub struct VirtualCloud {
    config: VirtualConfig,
    now: f64,
    /// When the client has done its own work for all requests so far.
    client_free: f64,
    /// The number of the next request, from which its latency is drawn.
    number: u64,
    tokens: Option<Tokens>,
    instances: Option<Instances>,
}

impl VirtualCloud {
    /// Checks the configuration; the clock is at 0.
    pub fn new(config: VirtualConfig) -> Result<Self> {
        config.network.validate()?;
        if let Some(function) = &config.function {
            function.validate()?;
        }
        let own_work = config.request_seconds;
        if config.window == 0
            || config.call_window == 0
            || !(own_work.is_finite() && own_work >= 0.0)
        {
            return Err(Error::invalid(format!(
                "a client with {} requests and {} calls in flight and {own_work} seconds for each does \
                 not exist",
                config.window, config.call_window
            ))
            .with_hint("allow one request at a time, and 0 seconds or more"));
        }
        Ok(VirtualCloud {
            now: 0.0,
            client_free: 0.0,
            number: 0,
            tokens: Tokens::new(&config.network),
            instances: config
                .function
                .as_ref()
                .map(|function| Instances::new(function, config.warm)),
            config,
        })
    }

    /// What this is a cloud of.
    pub fn config(&self) -> &VirtualConfig {
        &self.config
    }

    /// Runs work in its order, at most so many pieces of it at a time, until the last byte has
    /// arrived; the next run begins at that moment.
    pub fn run(&mut self, work: &[Work], pieces: usize) -> Result<VirtualOutcome> {
        if self.config.function.is_none() && work.iter().any(Work::has_calls) {
            return Err(Error::invalid("there are calls, but no function to call")
                .with_hint("give the virtual cloud a function, or plan without one"));
        }
        Ok(engine::Engine::new(self, work, pieces.max(1)).run())
    }
}
