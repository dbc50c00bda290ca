//! Object stores by URL, and wrappers that add one behaviour each.
//!
//! Sits between the object stores (local disk, memory, S3, Azure, Google, plain HTTP) and the
//! formats and the executor above; of our crates it uses only `hyperslab-index`, for the error.
//!
//! Invariants, which every back end and every wrapper keeps:
//! - a read returns exactly the bytes that were asked for, of one state of the object, or an error;
//! - absent and unreachable are different: only a key that the store says does not exist is
//!   [`ErrorKind::NotFound`]; a missing bucket is [`ErrorKind::Invalid`], a refusal
//!   [`ErrorKind::Denied`], an outage [`ErrorKind::Unavailable`];
//! - a conditional write happens entirely or not at all, and its answer says which;
//! - no credential appears in a URL that [`Store::url`] returns, in an error or in `Debug` output.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use hyperslab_store::{Get, GetRange, Put, open};
//!
//! let store = open("memory://example/run-1")?;
//! store.put("zarr.json", vec!["{}".into()], Put::Create).await?;
//! let tail = Get { range: Some(GetRange::Suffix(1)), ..Get::default() };
//! assert_eq!(store.get("zarr.json", tail).await?.body.into_bytes()?, "}");
//! assert!(store.put("zarr.json", vec![], Put::Create).await.is_err());
//! # Ok::<_, hyperslab_store::Error>(())
//! # })?;
//! # Ok(())
//! # }
//! ```
//!
//! # The stack that `open` builds
//!
//! For a remote store: `Retry(Limit(Meter(base)))`. The meter is next to the wire, so it counts
//! every attempt and its latency holds neither queueing nor back-off; the limiter's permit covers
//! one attempt and is given back while the caller backs off; retry is outermost, so each attempt
//! is limited and metered anew. Local disk and memory get the meter only: their failures (a full
//! disk, a denied directory) do not pass by waiting.

mod aws;
mod azure;
mod body;
mod config;
mod environment;
mod google;
mod key;
mod local;
mod location;
mod memory;
mod open;
mod options;
mod remote;
mod traits;
mod web;
mod wrap;

pub use body::Body;
pub use environment::Environment;
pub use hyperslab_index::{Error, ErrorKind, Result};
pub use local::{Local, blocking_here};
pub use location::{StoreKind, join_url, split_url};
pub use memory::Memory;
pub use open::{Opened, endpoint, open, open_with};
pub use options::Options;
pub use traits::{Entry, Get, GetRange, Got, Listing, Meta, Put, Store, StoreRef};
pub use wrap::{
    Fault, Faults, Faulty, Latencies, Limit, LimitHandle, Meter, MeterHandle, MeterSnapshot,
    Prefixed, ReadOnly, RequestKind, Retry, RetryAfter, RetryPolicy, Shape, Shaped,
};

/// Locks a mutex whose data stays valid whatever its holder was doing when it panicked.
fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
