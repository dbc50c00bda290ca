//! Files that are in a store.
//!
//! - [`open`] makes and opens them, and knows which are open;
//! - [`file`] holds what is known of one, and writes what was changed;
//! - [`dataset`] has the cells of a dataset, [`changed`] those that wait to be written, and [`chunks`]
//!   tells of its chunks; [`texts`] is about datasets of texts, and [`copy`] copies them.

mod changed;
mod chunks;
mod copy;
mod dataset;
mod file;
mod open;
mod texts;

pub(crate) use copy::{Side, copy_cells};
pub(crate) use dataset::Dataset;
pub(crate) use file::RemoteFile;
pub(crate) use open::{Asked, session};
