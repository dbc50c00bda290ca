//! Profiles of endpoints: measured, kept as dated files, and refined by real reads.
//!
//! Beside the executor, above `store` and `plan`: [`measure`] fills a [`Profile`] by timing requests
//! for test data of its own, [`load_for`] and [`save`] keep profiles in the user's configuration
//! folder, and a [`Refiner`] follows a network that changes without measuring anew.
//!
//! Invariant: test data is removed when a measurement ends, fails or is stopped, or the error says
//! where it was left; and a profile is never used for another endpoint than its own.

mod calibration;
mod data;
mod function;
mod measure;
mod network;
mod place;
mod probe;
mod refiner;
mod requests;
mod running;
mod statistics;
mod sustained;

pub use function::{FunctionTimes, NoFunction, Probe};
pub use hyperslab_plan::{BandwidthPoint, FunctionProfile, NetworkProfile, Profile};
pub use measure::{MeasureOptions, Measured, measure};
pub use place::{endpoint, file_for, load, load_for, save};
pub use probe::function_limits;
pub use refiner::{Refiner, Sample};
