//! Caches of fetched bytes: in memory for one session, on local disk for all processes.
//!
//! Between the executor and the stores. Before a read is planned, what the caches hold of an object
//! is taken out of what is wanted ([`Held`]), so plans fetch only what is missing. Within
//! `cache_fresh` of its last confirmation an object is used as it is. After that, what is missing is
//! fetched under the condition that the object still has the ETag of what is held, and where nothing
//! is missing one request without bytes asks for the ETag. Writes through a session remove what is
//! held of the objects they change.
//!
//! Invariant: the bytes of one object that a read uses have one ETag, wherever they come from.

mod disk;
mod held;
mod known;
mod memory;
mod ranges;
mod serve;

pub use disk::{CachedObject, DiskCache};
pub(crate) use held::Held;
pub(crate) use known::{Known, user_folder, was_file};
pub(crate) use memory::{Cached, ChunkCache, IndexCache, key};
pub(crate) use serve::{Brought, DiskPlace, FoundIndex, is_strong, join};
