//! Suites that every back end and every way of storing an array runs, and the servers they run on.
//!
//! The top of the tree beside the command line: it may use every other crate, and only tests,
//! examples and benchmarks use it. It holds no test of its own promises but those of the crates
//! below it.
//!
//! - [`store_suite`]: what [`hyperslab_store::Store`] promises, for one back end;
//! - [`array_suite`]: what the facade promises, compared cell by cell with a naive model;
//! - [`kill_test`]: what is left when a writer dies at its k-th request;
//! - [`fault_test`], [`down_test`]: reads from a cloud that fails, or is down;
//! - [`replica_test`]: reads beside writers of an array with replicas;
//! - [`servers`]: real servers on free ports of the loopback.
//!
//! Invariant: a suite returns `Ok` only if it has looked; a server that cannot be started is
//! either a failure or a message on standard error, never a silent pass.
//!
//! ```
//! use hyperslab_testkit::servers::Place;
//! use hyperslab_testkit::{StoreScale, run, store_suite_with};
//!
//! # fn main() -> hyperslab_testkit::Outcome {
//! let place = Place::memory("doc");
//! run(store_suite_with(place.store("suite")?, StoreScale::SMALL))
//! # }
//! ```

mod array_suite;
mod fault_test;
mod kill_test;
mod model;
mod outcome;
mod replica_test;
pub mod servers;
mod store_suite;
mod wanted;

pub use array_suite::{ArrayScale, array_suite};
pub use fault_test::{FaultReport, down_test, fault_test};
pub use kill_test::{KillReport, kill_test};
pub use model::Model;
pub use outcome::{Failure, Outcome, all, ensure, fails, run, same, within};
pub use replica_test::{ReplicaReport, replica_test};
pub use store_suite::{StoreScale, store_suite, store_suite_with};
pub use wanted::Wanted;
