//! A simulated cloud on the loopback: an object store with a network, faults and a bill.
//!
//! Stands beside the other crates: tests and benchmarks start it and talk to it as to any store,
//! over HTTP, in S3's or Google's language. It depends on `index` for the error, on `plan` for the
//! price books, and on `function` and `store` for the handler that its function service runs.
//!
//! Invariants: the store is linearisable per key (of concurrent conditional creates exactly one
//! succeeds); a network without shaping adds no sleep; with shaping, latency and bandwidth hold on
//! average within a percent or two; and the same seeds and order of requests meet the same
//! latencies and faults.
//!
//! ```
//! use hyperslab_sim::{Network, Sim, SimConfig};
//!
//! let sim = Sim::start_in_thread(SimConfig {
//!     buckets: vec!["data".into()],
//!     network: Network::preset("bench")?,
//!     ..SimConfig::default()
//! })?;
//! sim.objects("data")?.put("hello", "world")?;
//! assert!(sim.endpoint().starts_with("http://127.0.0.1:"));
//! assert_eq!(sim.meter().requests(), 0);
//! # Ok::<(), hyperslab_index::Error>(())
//! ```

mod admin;
mod body;
mod cloud;
mod config;
mod connection;
mod fault;
mod front;
mod function;
mod gcs;
mod meter;
mod network;
mod objects;
mod operation;
mod procedural;
mod s3;
mod server;
mod sim;
mod sync;
mod text;
mod virtual_time;
mod wire;

pub use config::{KeyPair, SimConfig};
pub use fault::{FaultCounts, FaultKind, FaultPlan, FaultRule, Faults, Trigger};
pub use function::{FunctionConfig, FunctionFailure, FunctionFailures, FunctionModel};
pub use hyperslab_plan::{
    EgressPrices, Fact, FunctionPrices, Place, PriceBook, RequestPrices, Sureness,
};
pub use meter::{FunctionCounts, MeterSnapshot};
pub use network::{Latency, Network, RateLimit, RateScope};
pub use objects::ObjectsHandle;
pub use procedural::{CellType, Procedural, ZarrArray, cell_value};
pub use sim::Sim;
pub use virtual_time::{VirtualCloud, VirtualConfig, VirtualOutcome, VirtualRequest, Work};
