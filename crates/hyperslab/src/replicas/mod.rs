//! Replicas: copies of an array with other chunks, orders and codecs, which answer the reads that they
//! are cheaper for.
//!
//! Between arrays and the executors of reads and writes. `docs/design/012-replicas.md` has the protocol,
//! and why it is right.
//!
//! Invariant: a read that begins after a write through this library was acknowledged never returns a
//! value that is older than that write.

mod check;
mod copies;
mod heal;
mod ledger;
mod manage;
mod manifest;
mod pick;
mod shape;
mod states;
mod work;

use std::time::Duration;

pub(crate) use copies::Copies;
pub use manage::{Refreshed, ReplicaInfo};
pub(crate) use pick::{best, choose, read_strings, run};
pub(crate) use shape::resize;
pub(crate) use states::{ABSENT, Change, state_of_etag};
pub(crate) use work::{Noted, run as write};

/// How old a mark is when it is taken for that of a killed writer, if nothing else is said.
pub const ABANDONED: Duration = manage::ABANDONED;
