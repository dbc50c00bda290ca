//! The suites over every back end, and what bad input and a failing cloud do to the facade.

// Helpers of tests panic as tests do.
#![allow(clippy::unwrap_used, clippy::panic)]

mod arrays;
mod bad_arrays;
mod bad_places;
mod disk_cache;
mod disk_full;
mod failing_cloud;
mod faults;
mod function;
mod hdf5;
mod kill;
mod oracle;
mod profile;
mod replicas;
mod stores;
mod web;

use hyperslab_sim::SimConfig;
use hyperslab_testkit::servers::SimPlace;

/// A simulator with one bucket.
fn sim() -> SimPlace {
    SimPlace::start(SimConfig::default()).unwrap()
}
