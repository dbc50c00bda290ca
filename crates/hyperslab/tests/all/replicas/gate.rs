//! A store in which a request waits until the test lets it go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyperslab_store::{Entry, Get, Got, Listing, Meta, Put, Result, Store, StoreRef};

/// Which requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Get,
    Put,
}

/// Requests of one kind, to keys that hold a text, wait from the first on.
#[derive(Debug)]
pub(super) struct Gate {
    inner: StoreRef,
    what: What,
    text: String,
    reached: AtomicBool,
    open: AtomicBool,
}

impl Gate {
    fn new(inner: &StoreRef, what: What, text: &str) -> Arc<Self> {
        Arc::new(Gate {
            inner: inner.clone(),
            what,
            text: text.to_owned(),
            reached: AtomicBool::new(false),
            open: AtomicBool::new(false),
        })
    }

    pub(super) fn before_get(inner: &StoreRef, text: &str) -> Arc<Self> {
        Self::new(inner, What::Get, text)
    }

    pub(super) fn before_put(inner: &StoreRef, text: &str) -> Arc<Self> {
        Self::new(inner, What::Put, text)
    }

    /// Waits until a request waits.
    pub(super) fn wait(&self) {
        let reached = || self.reached.load(Ordering::SeqCst);
        for _ in (0..20_000).take_while(|_| !reached()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(reached(), "no request came to {}", self.text);
    }

    /// Lets all requests through, from now on.
    pub(super) fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    async fn pass(&self, what: What, key: &str) {
        if what != self.what || !key.contains(&self.text) {
            return;
        }
        self.reached.store(true, Ordering::SeqCst);
        while !self.open.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[async_trait]
impl Store for Gate {
    fn url(&self) -> &str {
        self.inner.url()
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        self.pass(What::Get, key).await;
        self.inner.get(key, options).await
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        self.pass(What::Put, key).await;
        self.inner.put(key, value, mode).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(key).await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.inner.head(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.inner.list(prefix, page).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.inner.list_dir(prefix).await
    }
}
