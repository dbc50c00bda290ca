//! Repeats requests that failed for a reason that may pass.
//!
//! Only [`ErrorKind::Unavailable`] is repeated. Delays grow exponentially with full jitter (any
//! duration up to the bound, so that clients that failed together do not return together), and
//! never undercut what the server asked for. A request that has used up its repetitions gets a few
//! more while the store answers others (see [`credit`](super::credit)).
//!
//! Invariant: a retried write reports success only if the object holds the caller's value under
//! the caller's condition, and a retried read only if the whole body arrived.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rand::Rng;
use tokio::time::{Instant, sleep};

use super::credit::Credit;
use super::meter::MeterHandle;
use crate::{Body, Entry, Error, ErrorKind, Get, Got, Listing, Meta, Put, Result, Store, StoreRef};

/// When to repeat a request.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// So many repetitions of one request, whatever happens to others.
    pub retries: u32,
    /// At most so many more while enough other requests succeed; none where `retries` is 0.
    pub further: u32,
    /// No repetition starts later than this after the request was made.
    pub deadline: Duration,
    /// Bound of the first delay.
    pub first_delay: Duration,
    /// Bound of every delay.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            retries: 3,
            further: 6,
            deadline: Duration::from_secs(180),
            first_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(20),
        }
    }
}

/// As an error's source: the server asked to be left alone for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter(pub Duration);

impl fmt::Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server asked to wait {:?}", self.0)
    }
}

impl std::error::Error for RetryAfter {}

/// A store that repeats what failed.
#[derive(Debug)]
pub struct Retry {
    inner: StoreRef,
    policy: RetryPolicy,
    credit: Credit,
    meter: Option<MeterHandle>,
}

impl Retry {
    /// Repeats the requests to `inner` as `policy` says.
    pub fn new(inner: StoreRef, policy: RetryPolicy) -> Self {
        Retry {
            inner,
            policy,
            credit: Credit::default(),
            meter: None,
        }
    }

    /// Also counts the repetitions in `meter`.
    #[must_use]
    pub fn with_meter(mut self, meter: MeterHandle) -> Self {
        self.meter = Some(meter);
        self
    }

    async fn retrying<T, F: Future<Output = Result<T>>>(
        &self,
        mut request: impl FnMut() -> F,
    ) -> Result<T> {
        let mut attempts = Attempts {
            retry: self,
            start: Instant::now(),
            made: 0,
        };
        loop {
            match request().await {
                Err(e) => attempts.pause(e).await?,
                Ok(value) => {
                    self.credit.earn();
                    return Ok(value);
                }
            }
        }
    }

    /// A conditional put. Its answer can get lost after it took effect; the repetition then meets
    /// its own first try and is told `Conflict`. So a conflict after an unclear failure is believed
    /// only if the stored object is not ours. Should somebody else have stored the very same bytes,
    /// the two cannot be told apart, and need not be: the object is what the caller wanted. Where
    /// the writer's identity matters (locks), it has to be in the value.
    async fn put_if(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        let mut attempts = Attempts {
            retry: self,
            start: Instant::now(),
            made: 0,
        };
        loop {
            match self.inner.put(key, value.clone(), mode.clone()).await {
                Err(e) if e.kind() == ErrorKind::Conflict && attempts.made > 0 => {
                    return match self.retrying(|| self.stored(key, &value)).await? {
                        Some(meta) => Ok(meta),
                        None => Err(e),
                    };
                }
                Err(e) => attempts.pause(e).await?,
                Ok(meta) => {
                    self.credit.earn();
                    return Ok(meta);
                }
            }
        }
    }

    /// What is known of the object if it holds exactly `value`.
    async fn stored(&self, key: &str, value: &[Bytes]) -> Result<Option<Meta>> {
        let meta = match self.inner.head(key).await {
            Ok(meta) => meta,
            Err(e) if e.is_not_found() => return Ok(None),
            Err(e) => return Err(e),
        };
        if meta.size
            != value
                .iter()
                .map(|segment| segment.len() as u64)
                .sum::<u64>()
        {
            return Ok(None);
        }
        let pinned = Get {
            if_match: meta.etag.clone(),
            ..Get::default()
        };
        match self.inner.get(key, pinned).await {
            Ok(got) => {
                let got = complete(got)?;
                Ok(same(got.body, value.to_vec()).await?.then_some(meta))
            }
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Whether a body holds exactly `value`. Comparing may block on local files.
async fn same(body: Body, value: Vec<Bytes>) -> Result<bool> {
    let compare = move || {
        let stored = body.into_bytes()?;
        let mut rest = &stored[..];
        for segment in &value {
            match rest.strip_prefix(&segment[..]) {
                Some(tail) => rest = tail,
                None => return Ok(false),
            }
        }
        Ok(rest.is_empty())
    };
    tokio::task::spawn_blocking(compare)
        .await
        .unwrap_or_else(|e| Err(Error::internal("a comparison did not finish").with_source(e)))
}

/// A body shorter than announced is a broken transfer, whatever the layer below thought of it.
fn complete(got: Got) -> Result<Got> {
    let expected = got.range.end - got.range.start;
    if got.not_modified || got.body.len() == expected {
        return Ok(got);
    }
    Err(Error::unavailable(format!(
        "the response ended after {} of {expected} bytes",
        got.body.len()
    )))
}

/// The attempts at one request.
struct Attempts<'a> {
    retry: &'a Retry,
    start: Instant,
    made: u32,
}

impl Attempts<'_> {
    /// Waits before the next attempt, or gives the error back if there is to be none.
    async fn pause(&mut self, e: Error) -> Result<()> {
        let policy = &self.retry.policy;
        if e.kind() != ErrorKind::Unavailable || !self.allowed() {
            return Err(self.last(e));
        }
        // A store that answers others has no need of ever longer rests.
        let doublings = self.made.min(policy.retries).min(30);
        let bound = policy
            .first_delay
            .saturating_mul(1 << doublings)
            .min(policy.max_delay);
        let jitter = bound.mul_f64(rand::rng().random_range(0.0..=1.0));
        let delay = jitter.max(asked(&e).unwrap_or_default());
        if self.start.elapsed() + delay > policy.deadline {
            return Err(self.last(e));
        }
        tracing::debug!(attempt = self.made + 1, ?delay, error = %e, "a request is repeated");
        if let Some(meter) = &self.retry.meter {
            meter.count_retry();
        }
        sleep(delay).await;
        self.made += 1;
        Ok(())
    }

    /// Whether there may be one more; a further one is paid for.
    fn allowed(&self) -> bool {
        let policy = &self.retry.policy;
        if self.made < policy.retries {
            return true;
        }
        let most = policy.retries.saturating_add(policy.further);
        policy.retries > 0 && self.made < most && self.retry.credit.spend()
    }

    fn last(&self, e: Error) -> Error {
        match self.made {
            0 => e,
            n => e.context(format!("after {} attempts", n + 1)),
        }
    }
}

/// How long the server asked to wait.
fn asked(e: &Error) -> Option<Duration> {
    std::error::Error::source(e)?
        .downcast_ref::<RetryAfter>()
        .map(|after| after.0)
}

#[async_trait]
impl Store for Retry {
    fn url(&self) -> &str {
        self.inner.url()
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        self.retrying(|| async { complete(self.inner.get(key, options.clone()).await?) })
            .await
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        match mode {
            Put::Overwrite => {
                self.retrying(|| self.inner.put(key, value.clone(), Put::Overwrite))
                    .await
            }
            Put::Create | Put::Update(_) => self.put_if(key, value, mode).await,
        }
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.retrying(|| self.inner.delete(key)).await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.retrying(|| self.inner.head(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.retrying(|| self.inner.list(prefix, page.clone()))
            .await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.retrying(|| self.inner.list_dir(prefix)).await
    }
}
