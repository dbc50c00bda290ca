//! The part of a store below a prefix.

use async_trait::async_trait;
use bytes::Bytes;

use crate::key::{self, check_key, check_prefix};
use crate::{Entry, Get, Got, Listing, Meta, Put, Result, Store, StoreRef};

/// A store that sees only the keys below a prefix, without that prefix.
#[derive(Debug)]
pub struct Prefixed {
    inner: StoreRef,
    prefix: String,
    url: String,
}

impl Prefixed {
    /// The part of `inner` below `prefix`.
    pub fn new(inner: StoreRef, prefix: impl Into<String>) -> Result<Self> {
        let prefix = prefix.into();
        check_prefix(&prefix)?;
        let url = key::join(inner.url().trim_end_matches('/'), &prefix);
        Ok(Prefixed { inner, prefix, url })
    }

    /// The same, shown under another URL.
    pub(crate) fn with_url(mut self, url: String) -> Self {
        self.url = url;
        self
    }

    fn full(&self, key: &str) -> Result<String> {
        check_key(key)?;
        Ok(key::join(&self.prefix, key))
    }

    fn strip(&self, mut entry: Entry) -> Option<Entry> {
        entry.key = key::below(&self.prefix, &entry.key)?.to_owned();
        Some(entry)
    }
}

#[async_trait]
impl Store for Prefixed {
    fn url(&self) -> &str {
        &self.url
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        self.inner.get(&self.full(key)?, options).await
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        self.inner.put(&self.full(key)?, value, mode).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(&self.full(key)?).await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.inner.head(&self.full(key)?).await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        check_prefix(prefix)?;
        let (entries, next) = self
            .inner
            .list(&key::join(&self.prefix, prefix), page)
            .await?;
        Ok((
            entries
                .into_iter()
                .filter_map(|entry| self.strip(entry))
                .collect(),
            next,
        ))
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        check_prefix(prefix)?;
        let mut listing = self
            .inner
            .list_dir(&key::join(&self.prefix, prefix))
            .await?;
        listing.objects = listing
            .objects
            .into_iter()
            .filter_map(|entry| self.strip(entry))
            .collect();
        Ok(listing)
    }
}
