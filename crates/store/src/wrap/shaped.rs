//! Adds latency and bandwidth, to see remote behaviour without a server.
//!
//! Latencies are a function of the seed and the request's number; bandwidth in total is one link
//! that transfers share one after another. Time is tokio's, so a paused clock makes it exact.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, sleep, sleep_until};

use super::draw;
use crate::{Entry, Get, Got, Listing, Meta, Put, Result, Store, StoreRef, lock};

/// How requests are slowed.
#[derive(Debug, Clone, Default)]
pub struct Shape {
    /// Seeds the latencies.
    pub seed: u64,
    /// The least latency of a request.
    pub latency: Duration,
    /// Mean of what is added to it, exponentially distributed.
    pub jitter: Duration,
    /// Bytes per second of one request; `None` is unbounded.
    pub request_bandwidth: Option<u64>,
    /// Bytes per second of all requests together; `None` is unbounded.
    pub total_bandwidth: Option<u64>,
}

/// A store with added latency and bounded bandwidth.
#[derive(Debug)]
pub struct Shaped {
    inner: StoreRef,
    shape: Shape,
    requests: AtomicU64,
    /// When the shared link is free again.
    link_free: Mutex<Option<Instant>>,
}

impl Shaped {
    /// Slows the requests to `inner` as `shape` says.
    pub fn new(inner: StoreRef, shape: Shape) -> Self {
        Shaped {
            inner,
            shape,
            requests: AtomicU64::new(0),
            link_free: Mutex::new(None),
        }
    }

    async fn wait(&self) {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        // Inverse of the exponential distribution; the draw is below 1, so the logarithm is finite.
        let factor = -(1.0 - draw(self.shape.seed, number)).ln();
        let delay = self.shape.latency + self.shape.jitter.mul_f64(factor);
        if !delay.is_zero() {
            sleep(delay).await;
        }
    }

    async fn transfer(&self, bytes: u64) {
        let start = Instant::now();
        let mut end = start + duration(bytes, self.shape.request_bandwidth);
        if self.shape.total_bandwidth.is_some() {
            let mut free = lock(&self.link_free);
            let done =
                free.unwrap_or(start).max(start) + duration(bytes, self.shape.total_bandwidth);
            *free = Some(done);
            end = end.max(done);
        }
        if end > start {
            sleep_until(end).await;
        }
    }
}

fn duration(bytes: u64, bandwidth: Option<u64>) -> Duration {
    match bandwidth {
        Some(rate) => Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64),
        None => Duration::ZERO,
    }
}

#[async_trait]
impl Store for Shaped {
    fn url(&self) -> &str {
        self.inner.url()
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        self.wait().await;
        let got = self.inner.get(key, options).await?;
        self.transfer(got.body.len()).await;
        Ok(got)
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        self.wait().await;
        self.transfer(value.iter().map(|segment| segment.len() as u64).sum())
            .await;
        self.inner.put(key, value, mode).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.wait().await;
        self.inner.delete(key).await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.wait().await;
        self.inner.head(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.wait().await;
        self.inner.list(prefix, page).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.wait().await;
        self.inner.list_dir(prefix).await
    }
}
