//! Writes HDF5, through libhdf5.
//!
//! Beside the engine, which reads HDF5 by itself: this crate makes the *skeleton* of a file (a real
//! HDF5 file with every object, attribute and link, and without the cells of numeric datasets; design
//! note 009), also that of a hierarchy that never was a file, and fills a skeleton with cells. It is
//! the only crate that links libhdf5, which is built from source and static.
//!
//! libhdf5 has one lock; every public function takes it. Nothing here is on the way of a read.

#![allow(unsafe_code)]

mod attributes;
mod blueprint;
mod files;
mod fill;
mod filters;
mod handle;
mod json;
mod links;
mod properties;
mod redraw;
mod references;
mod scales;
mod skeleton;
mod types;

pub use blueprint::{Drawn, blueprint};
pub use fill::{Changes, Layout, Output, Rechunk};
pub use redraw::{Described, Redraw, redraw};
pub use skeleton::{Skeleton, skeleton};
