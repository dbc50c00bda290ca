//! A directory of this machine as a store.
//!
//! Objects are files under the root, with their keys as relative paths, so other tools read and
//! write the same tree. All work is blocking system calls, on tokio's blocking threads or where
//! [`blocking_here`] allows it; a read hands out the open file and copies nothing.
//!
//! Invariants:
//! - a reader sees a whole old value or a whole new one: values are written to a temporary file
//!   beside the target and renamed over it, and a read pins the inode it opened;
//! - no two values that a key ever had share an ETag (see [`etag`]);
//! - a killed writer leaves at most a temporary file, which is never listed and never read.

mod dir;
mod error;
mod etag;
mod list;
mod write;

use std::cell::Cell;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use self::error::{io_error, is_absent};
use crate::key::{check_key, check_prefix};
use crate::traits::resolve_range;
use crate::{Body, Entry, Error, Get, Got, Listing, Meta, Put, Result, Store};

/// Names of temporary files start so; keys must not.
const TEMPORARY: &str = ".hyperslab-tmp-";

thread_local! {
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Tells stores that `work` runs on a thread which may block: they then use the disk right there,
/// instead of handing the work to another thread and waiting for it.
pub fn blocking_here<T>(work: impl FnOnce() -> T) -> T {
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            MAY_BLOCK.set(self.0);
        }
    }
    let _reset = Reset(MAY_BLOCK.replace(true));
    work()
}

/// A store on local disk.
pub struct Local {
    url: String,
    inner: Arc<Root>,
}

/// The directory, shared with the blocking threads.
struct Root {
    path: PathBuf,
    fsync: bool,
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Local({})", self.url)
    }
}

impl Local {
    /// The store under `path`, which need not exist yet. A relative path stays relative to the
    /// directory that was current now.
    pub fn new(path: impl AsRef<Path>) -> Result<Self> {
        let url = path.as_ref().display().to_string();
        Self::with_url(url, path.as_ref(), false)
    }

    /// The store under `path`, shown as `url`. With `fsync`, a write is reported only once the
    /// disk has it.
    pub(crate) fn with_url(url: String, path: &Path, fsync: bool) -> Result<Self> {
        let path = std::path::absolute(path)
            .map_err(|e| Error::invalid(format!("\"{url}\" is not a usable path: {e}")))?;
        Ok(Local {
            url,
            inner: Arc::new(Root { path, fsync }),
        })
    }

    /// Runs `work` where it may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Root) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if MAY_BLOCK.get() {
            return work(&self.inner);
        }
        let root = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&root)).await;
        done.unwrap_or_else(|e| {
            Err(Error::internal("a task that worked on local disk did not finish").with_source(e))
        })
    }
}

impl Root {
    /// The file of a key.
    fn file(&self, key: &str) -> Result<PathBuf> {
        check_key(key)?;
        if key.split('/').any(|part| part.starts_with(TEMPORARY)) {
            return Err(Error::invalid(format!(
                "the key {key:?} has a component that starts with \"{TEMPORARY}\", which is reserved"
            )));
        }
        Ok(self.path.join(key))
    }
}

fn absent(path: &Path) -> Error {
    Error::not_found(format!("{} does not exist", path.display()))
}

/// Opens an object for reading and tells what it is now.
fn open(path: &Path) -> Result<(File, Meta)> {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(e) if is_absent(&e) => return Err(absent(path)),
        Err(e) => return Err(io_error("read", path, e)),
    };
    let found = file.metadata().map_err(|e| io_error("read", path, e))?;
    if found.is_dir() {
        return Err(absent(path));
    }
    if !found.is_file() {
        return Err(Error::invalid(format!(
            "{} is not a regular file",
            path.display()
        )));
    }
    Ok((file, etag::meta(&found)))
}

#[async_trait]
impl Store for Local {
    fn url(&self) -> &str {
        &self.url
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        let path = self.inner.file(key)?;
        self.blocking(move |_| {
            let (file, meta) = open(&path)?;
            if options.if_match.is_some() && options.if_match != meta.etag {
                return Err(Error::conflict(format!(
                    "{} has changed since it was opened",
                    path.display()
                )));
            }
            if options.if_none_match.is_some() && options.if_none_match == meta.etag {
                return Ok(Got::unchanged(meta));
            }
            let range = resolve_range(options.range.as_ref(), meta.size, || {
                path.display().to_string()
            })?;
            let body = Body::File {
                file: Arc::new(file),
                range: range.clone(),
            };
            Ok(Got {
                meta,
                range,
                body,
                not_modified: false,
            })
        })
        .await
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        let path = self.inner.file(key)?;
        self.blocking(move |root| write::put(root, &path, &value, &mode))
            .await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        let path = self.inner.file(key)?;
        self.blocking(move |root| write::delete(root, &path)).await
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        let path = self.inner.file(key)?;
        self.blocking(move |_| match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => Ok(etag::meta(&found)),
            Ok(found) if found.is_dir() => Err(absent(&path)),
            Ok(_) => Err(Error::invalid(format!(
                "{} is not a regular file",
                path.display()
            ))),
            Err(e) if is_absent(&e) => Err(absent(&path)),
            Err(e) => Err(io_error("read", &path, e)),
        })
        .await
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        check_prefix(prefix)?;
        let prefix = prefix.to_owned();
        self.blocking(move |root| list::page(&root.path, &prefix, page.as_deref()))
            .await
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        check_prefix(prefix)?;
        let prefix = prefix.to_owned();
        self.blocking(move |root| list::directory(&root.path, &prefix))
            .await
    }
}
