//! Breaks requests on purpose.
//!
//! Which request breaks, and how, is a function of the seed and the request's number, so a failing
//! run repeats. Used to show that the layers above keep their promises over a store that loses
//! answers, cuts bodies short, hangs, or dies in the middle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::sleep;

use super::draw;
use crate::{Body, Entry, Error, Get, Got, Listing, Meta, Put, Result, Store, StoreRef};

/// A way for a request to break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails and has no effect.
    Before,
    /// It takes effect, but its answer is lost.
    After,
    /// A read's body ends early; anything else fails as by [`Fault::After`].
    Truncate,
    /// Nothing happens until the time-out.
    Hang,
}

/// Which requests break. Requests are numbered from 1.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Seeds the random faults.
    pub seed: u64,
    /// Probability of [`Fault::Before`].
    pub before: f64,
    /// Probability of [`Fault::After`].
    pub after: f64,
    /// Probability of [`Fault::Truncate`].
    pub truncate: f64,
    /// Probability of [`Fault::Hang`].
    pub hang: f64,
    /// How long a hanging request hangs before it fails.
    pub hang_for: Duration,
    /// Faults of certain requests.
    pub at: Vec<(u64, Fault)>,
    /// Only puts of keys with this text in them break; all other requests are let through uncounted.
    pub puts_with: Option<String>,
    /// From this request on everything fails without effect, as if the process had been killed.
    pub kill_at: Option<u64>,
    /// The request before the kill takes effect, but its answer is lost.
    pub kill_loses_answer: bool,
}

/// A store that breaks requests.
#[derive(Debug)]
pub struct Faulty {
    inner: StoreRef,
    faults: Faults,
    requests: AtomicU64,
    broken: AtomicU64,
}

impl Faulty {
    /// Breaks the requests to `inner` as `faults` says.
    pub fn new(inner: StoreRef, faults: Faults) -> Self {
        Faulty {
            inner,
            faults,
            requests: AtomicU64::new(0),
            broken: AtomicU64::new(0),
        }
    }

    /// Requests made so far, broken ones included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Requests broken so far.
    pub fn broken(&self) -> u64 {
        self.broken.load(Ordering::SeqCst)
    }

    /// Numbers a request and decides what happens to it; `put` is the key of what it puts, if it does.
    fn next(&self, put: Option<&str>) -> Option<Fault> {
        if let Some(text) = &self.faults.puts_with
            && !put.is_some_and(|key| key.contains(text))
        {
            return None;
        }
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let fault = self.decide(number);
        if fault.is_some() {
            self.broken.fetch_add(1, Ordering::SeqCst);
        }
        fault
    }

    fn decide(&self, number: u64) -> Option<Fault> {
        let faults = &self.faults;
        if let Some(kill) = faults.kill_at {
            if number >= kill {
                return Some(Fault::Before);
            }
            if faults.kill_loses_answer && number + 1 == kill {
                return Some(Fault::After);
            }
        }
        if let Some((_, fault)) = faults.at.iter().find(|(at, _)| *at == number) {
            return Some(*fault);
        }
        let mut drawn = draw(faults.seed, number);
        for (probability, fault) in [
            (faults.before, Fault::Before),
            (faults.after, Fault::After),
            (faults.truncate, Fault::Truncate),
            (faults.hang, Fault::Hang),
        ] {
            if drawn < probability {
                return Some(fault);
            }
            drawn -= probability;
        }
        None
    }

    async fn broken_by<T>(
        &self,
        put: Option<&str>,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.next(put) {
            None => request.await,
            Some(fault) => self.fail(fault, request).await,
        }
    }

    async fn fail<T>(&self, fault: Fault, request: impl Future<Output = Result<T>>) -> Result<T> {
        Err(match fault {
            Fault::Before => Error::unavailable("injected fault: the request was not sent"),
            Fault::After | Fault::Truncate => {
                // What the store answered is exactly what the caller must not learn.
                let _ = request.await;
                Error::unavailable("injected fault: the answer was lost")
            }
            Fault::Hang => {
                sleep(self.faults.hang_for).await;
                Error::unavailable("injected fault: the request timed out")
            }
        })
    }
}

#[async_trait]
impl Store for Faulty {
    fn url(&self) -> &str {
        self.inner.url()
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        let request = self.inner.get(key, options);
        match self.next(None) {
            None => request.await,
            Some(Fault::Truncate) => {
                let mut got = request.await?;
                got.body = cut(got.body)?;
                Ok(got)
            }
            Some(fault) => self.fail(fault, request).await,
        }
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        let request = self.inner.put(key, value, mode);
        self.broken_by(Some(key), request).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.broken_by(None, self.inner.delete(key)).await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.broken_by(None, self.inner.head(key)).await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.broken_by(None, self.inner.list(prefix, page)).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.broken_by(None, self.inner.list_dir(prefix)).await
    }
}

/// The first half of a body.
fn cut(body: Body) -> Result<Body> {
    Ok(match body {
        Body::File { file, range } => {
            let end = range.start + (range.end - range.start) / 2;
            Body::File {
                file,
                range: range.start..end,
            }
        }
        memory => {
            let bytes = memory.into_bytes()?;
            bytes.slice(..bytes.len() / 2).into()
        }
    })
}
