//! A store that refuses writes.

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Entry, Error, Get, Got, Listing, Meta, Put, Result, Store, StoreRef};

/// A store whose writes and deletes are [`crate::ErrorKind::Invalid`].
#[derive(Debug)]
pub struct ReadOnly(StoreRef);

impl ReadOnly {
    /// Lets only reads through to `inner`.
    pub fn new(inner: StoreRef) -> Self {
        ReadOnly(inner)
    }

    fn refuse(&self, what: &str, key: &str) -> Error {
        Error::invalid(format!(
            "cannot {what} {key:?}: {} is read only",
            self.0.url()
        ))
        .with_hint("write to a directory, S3, Azure or Google Cloud Storage")
    }
}

#[async_trait]
impl Store for ReadOnly {
    fn url(&self) -> &str {
        self.0.url()
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        self.0.get(key, options).await
    }

    async fn put(&self, key: &str, _: Vec<Bytes>, _: Put) -> Result<Meta> {
        Err(self.refuse("write", key))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        Err(self.refuse("delete", key))
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.0.head(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.0.list(prefix, page).await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.0.list_dir(prefix).await
    }
}
