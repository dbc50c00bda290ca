//! A bucket of a remote store.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use object_store::list::PaginatedListOptions;
use object_store::path::Path;
use object_store::{
    GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};

use super::client::{self, Client, Handles, Spec};
use super::failure::{Asked, Place, explain};
use super::transport::{Exchange, observe};
use super::version::meta;
use crate::key::{self, check_key, check_prefix};
use crate::location::StoreKind;
use crate::{Entry, Error, Get, Got, Listing, Meta, Put, Result, Store, lock};

/// A bucket of a remote store; keys are full object names.
pub(crate) struct Bucket {
    pub(super) spec: Arc<Spec>,
    /// The client, and the process it belongs to.
    client: Mutex<(u32, Arc<Client>)>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({})", self.spec.bucket_url)
    }
}

impl Bucket {
    pub(crate) fn open(spec: Spec) -> Result<Self> {
        let spec = Arc::new(spec);
        let client = client::client(&spec)?;
        Ok(Bucket {
            spec,
            client: Mutex::new((std::process::id(), client)),
        })
    }

    pub(super) fn client(&self) -> Result<Arc<Client>> {
        let mut held = lock(&self.client);
        if held.0 != std::process::id() {
            let fresh = (std::process::id(), client::client(&self.spec)?);
            let inherited = std::mem::replace(&mut *held, fresh);
            // Dropping it could end connections that the parent process still uses.
            std::mem::forget(inherited);
        }
        Ok(Arc::clone(&held.1))
    }

    pub(super) fn name(&self, key: &str) -> String {
        key::join(&self.spec.bucket_url, key)
    }

    /// Makes a request and explains its failure; also tells what the transport saw.
    pub(super) async fn ask<T, F: Future<Output = object_store::Result<T>>>(
        &self,
        asked: Asked,
        key: &str,
        request: impl FnOnce(Handles) -> F,
    ) -> Result<T, (Error, Exchange)> {
        let silent = |e: Error| (e, Exchange::default());
        let client = self.client().map_err(silent)?;
        let handles = client.handles().await.map_err(silent)?.clone();
        let (result, seen) = observe(request(handles)).await;
        let e = match result {
            // `object_store` takes a web server's 404 to a list for an empty directory; a server
            // that cannot list would then seem empty.
            Ok(_) if asked == Asked::List && seen.status == Some(404) => {
                return Err((
                    Error::not_found(format!("{} does not exist", self.name(key))),
                    seen,
                ));
            }
            Ok(value) => {
                client.see_bucket();
                return Ok(value);
            }
            Err(e) => e,
        };
        if matches!(seen.code.as_deref(), Some("NoSuchKey" | "BlobNotFound")) {
            client.see_bucket();
        }
        let place = Place {
            kind: self.spec.kind,
            asked,
            name: &self.name(key),
            bucket_url: &self.spec.bucket_url,
        };
        Err((explain(&e, &seen, &place), seen))
    }

    /// Google compares generations, not ETags, on writes: find the generation of the ETag.
    async fn generation(&self, key: &str, etag: &str) -> Result<Option<String>> {
        let path = path(key)?;
        let head = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        let request = |handles: Handles| async move { handles.objects.get_opts(&path, head).await };
        let found = match self.ask(Asked::Update, key, request).await {
            Ok(found) => found.meta,
            Err((e, _)) => return Err(e),
        };
        if found.e_tag.as_deref() != Some(etag) {
            return Err(Error::conflict(format!(
                "{} has changed since it was read",
                self.name(key)
            )));
        }
        Ok(found.version)
    }

    async fn list_page(
        &self,
        prefix: &str,
        page: Option<String>,
        delimiter: bool,
    ) -> Result<(Vec<Entry>, Vec<String>, Option<String>)> {
        let below = (!prefix.is_empty()).then(|| format!("{prefix}/"));
        let start = (!prefix.is_empty()).then(|| path(prefix)).transpose()?;
        let result = self.ask(Asked::List, prefix, |handles| async move {
            let Some(pages) = handles.pages else {
                let listed = list_at_once(&*handles.objects, start.as_ref(), delimiter).await?;
                return Ok((listed, None));
            };
            let options = PaginatedListOptions {
                delimiter: delimiter.then_some(Cow::Borrowed("/")),
                page_token: page,
                ..PaginatedListOptions::default()
            };
            let page = pages.list_paginated(below.as_deref(), options).await?;
            Ok((
                (page.result.objects, page.result.common_prefixes),
                page.page_token,
            ))
        });
        let ((objects, dirs), next) = result.await.map_err(|(e, _)| self.unlistable(e))?;
        // Some tools mark directories by an object `dir/`, which arrives here as `dir`: what is
        // not below the prefix is not an object of this list.
        let entries = objects
            .iter()
            .filter(|found| key::below(prefix, found.location.as_ref()).is_some())
            .map(|found| Entry {
                key: found.location.to_string(),
                meta: meta(found),
            })
            .collect();
        let names = dirs
            .iter()
            .filter_map(|dir| Some(dir.filename()?.to_owned()))
            .collect();
        Ok((entries, names, next))
    }

    /// Plain web servers cannot list; WebDAV servers can.
    fn unlistable(&self, e: Error) -> Error {
        use crate::ErrorKind::{Denied, Unavailable};
        if self.spec.kind != StoreKind::Http || matches!(e.kind(), Denied | Unavailable) {
            return e;
        }
        Error::invalid(format!("{} cannot list its files", self.spec.bucket_url)).with_hint(
            "open the array or file by its full address, or consolidate the hierarchy's metadata",
        )
    }
}

/// Lists without pages, as WebDAV does it.
async fn list_at_once(
    store: &dyn ObjectStore,
    start: Option<&Path>,
    delimiter: bool,
) -> object_store::Result<(Vec<ObjectMeta>, Vec<Path>)> {
    if delimiter {
        let listed = store.list_with_delimiter(start).await?;
        return Ok((listed.objects, listed.common_prefixes));
    }
    let mut objects = Vec::new();
    let mut stream = store.list(start);
    while let Some(object) = stream.next().await {
        objects.push(object?);
    }
    Ok((objects, Vec::new()))
}

/// The exact name of an object: `Path::from` would percent-encode some characters.
pub(super) fn path(key: &str) -> Result<Path> {
    Path::parse(key).map_err(|_| Error::invalid(format!("{key:?} is not a possible object name")))
}

impl Bucket {
    /// Azure takes a backslash for a slash, so such a key would name another object there.
    fn check_key(&self, key: &str) -> Result<()> {
        check_key(key)?;
        if self.spec.kind == StoreKind::Azure && key.contains('\\') {
            return Err(Error::invalid(format!(
                "the key {key:?} has a backslash, which Azure takes for a slash"
            ))
            .with_hint("use another name"));
        }
        Ok(())
    }
}

#[async_trait]
impl Store for Bucket {
    fn url(&self) -> &str {
        &self.spec.bucket_url
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        self.check_key(key)?;
        self.read_object(key, &options).await
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        self.check_key(key)?;
        let (asked, mode) = match mode {
            Put::Overwrite => (Asked::Write, PutMode::Overwrite),
            Put::Create => (Asked::Write, PutMode::Create),
            Put::Update(etag) => {
                let version = match self.spec.kind {
                    StoreKind::Google => self.generation(key, &etag).await?,
                    _ => None,
                };
                (
                    Asked::Update,
                    PutMode::Update(UpdateVersion {
                        e_tag: Some(etag),
                        version,
                    }),
                )
            }
        };
        let size = value.iter().map(|segment| segment.len() as u64).sum();
        let path = path(key)?;
        let result = self.ask(asked, key, |handles| async move {
            let payload = PutPayload::from_iter(value);
            handles
                .objects
                .put_opts(&path, payload, PutOptions::from(mode))
                .await
        });
        match result.await {
            Ok(stored) => Ok(Meta {
                size,
                etag: stored.e_tag,
                modified_ms: None,
            }),
            Err((e, _)) => Err(e),
        }
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.check_key(key)?;
        let path = path(key)?;
        let request = |handles: Handles| async move { handles.objects.delete(&path).await };
        match self.ask(Asked::Delete, key, request).await {
            Err((e, _)) if !e.is_not_found() => Err(e),
            _ => Ok(()),
        }
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        self.check_key(key)?;
        match self.inspect(key, &Get::default()).await? {
            Some(meta) => Ok(meta),
            None => Err(Error::internal(
                "an unconditional request was answered \"not modified\"",
            )),
        }
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        check_prefix(prefix)?;
        let (entries, _, next) = self.list_page(prefix, page, false).await?;
        Ok((entries, next))
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        check_prefix(prefix)?;
        let mut listing = Listing::default();
        let mut page = None;
        loop {
            let (objects, dirs, next) = self.list_page(prefix, page, true).await?;
            listing.objects.extend(objects);
            listing.dirs.extend(dirs);
            page = next;
            if page.is_none() {
                break;
            }
        }
        listing.dirs.sort();
        listing.dirs.dedup();
        listing.objects.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listing)
    }
}
