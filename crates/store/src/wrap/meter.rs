//! Counts requests, bytes, failures and latencies.
//!
//! Belongs directly around the store that talks to the wire, so that every attempt counts. All
//! counters are relaxed atomics: a snapshot taken while requests run may be off by those.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;

use super::histogram::{Histogram, Latencies};
use crate::{Entry, Get, Got, Listing, Meta, Put, Result, Store, StoreRef};

/// What a request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Read an object or a range.
    Get,
    /// Asked for an object's size and ETag.
    Head,
    /// Wrote an object.
    Put,
    /// Removed an object.
    Delete,
    /// Read a page of a list, or a directory.
    List,
}

impl RequestKind {
    /// Every kind, in the order of [`MeterSnapshot::requests`].
    pub const ALL: [RequestKind; 5] = [
        RequestKind::Get,
        RequestKind::Head,
        RequestKind::Put,
        RequestKind::Delete,
        RequestKind::List,
    ];

    /// A lower-case word for logs and `--json` output.
    pub fn as_str(self) -> &'static str {
        match self {
            RequestKind::Get => "get",
            RequestKind::Head => "head",
            RequestKind::Put => "put",
            RequestKind::Delete => "delete",
            RequestKind::List => "list",
        }
    }
}

#[derive(Default)]
struct Counters {
    requests: [AtomicU64; 5],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    errors: AtomicU64,
    retries: AtomicU64,
    latencies: Histogram,
}

/// Reads a meter; clones share it.
#[derive(Clone, Default)]
pub struct MeterHandle(Arc<Counters>);

impl fmt::Debug for MeterHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MeterHandle({:?})", self.snapshot().requests)
    }
}

impl MeterHandle {
    /// A meter at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counts so far.
    pub fn snapshot(&self) -> MeterSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MeterSnapshot {
            requests: std::array::from_fn(|kind| load(&self.0.requests[kind])),
            bytes_in: load(&self.0.bytes_in),
            bytes_out: load(&self.0.bytes_out),
            errors: load(&self.0.errors),
            retries: load(&self.0.retries),
            latencies: self.0.latencies.snapshot(),
        }
    }

    /// Notes that a request is about to be repeated.
    pub(super) fn count_retry(&self) {
        self.0.retries.fetch_add(1, Ordering::Relaxed);
    }

    fn count<T>(&self, kind: RequestKind, start: Instant, result: &Result<T>) {
        self.0.requests[kind as usize].fetch_add(1, Ordering::Relaxed);
        self.0.latencies.record(start.elapsed());
        // Absent keys and lost races are answers, not failures of the store.
        let failed = result.as_ref().is_err_and(|e| {
            !matches!(
                e.kind(),
                crate::ErrorKind::NotFound | crate::ErrorKind::Conflict
            )
        });
        if failed {
            self.0.errors.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a meter counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterSnapshot {
    /// Requests by kind, in the order of [`RequestKind::ALL`].
    pub requests: [u64; 5],
    /// Bytes of objects read.
    pub bytes_in: u64,
    /// Bytes of objects written (or tried to).
    pub bytes_out: u64,
    /// Requests that failed, other than by an absent key or a conflict.
    pub errors: u64,
    /// Requests that were repetitions.
    pub retries: u64,
    /// How long requests took, bodies included.
    pub latencies: Latencies,
}

impl MeterSnapshot {
    /// Requests of one kind.
    pub fn of(&self, kind: RequestKind) -> u64 {
        self.requests[kind as usize]
    }

    /// Requests of all kinds.
    pub fn total(&self) -> u64 {
        self.requests.iter().sum()
    }
}

/// A store that counts what passes through.
#[derive(Debug)]
pub struct Meter {
    inner: StoreRef,
    handle: MeterHandle,
}

impl Meter {
    /// Counts the requests to `inner` in `handle`.
    pub fn new(inner: StoreRef, handle: MeterHandle) -> Self {
        Meter { inner, handle }
    }

    async fn metered<T>(
        &self,
        kind: RequestKind,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let start = Instant::now();
        let result = request.await;
        self.handle.count(kind, start, &result);
        result
    }
}

#[async_trait]
impl Store for Meter {
    fn url(&self) -> &str {
        self.inner.url()
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        let got = self
            .metered(RequestKind::Get, self.inner.get(key, options))
            .await?;
        self.handle
            .0
            .bytes_in
            .fetch_add(got.body.len(), Ordering::Relaxed);
        Ok(got)
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        let size = value.iter().map(|segment| segment.len() as u64).sum();
        self.handle.0.bytes_out.fetch_add(size, Ordering::Relaxed);
        self.metered(RequestKind::Put, self.inner.put(key, value, mode))
            .await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.metered(RequestKind::Delete, self.inner.delete(key))
            .await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.metered(RequestKind::Head, self.inner.head(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.metered(RequestKind::List, self.inner.list(prefix, page))
            .await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.metered(RequestKind::List, self.inner.list_dir(prefix))
            .await
    }
}
