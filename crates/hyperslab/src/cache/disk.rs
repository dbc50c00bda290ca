//! The cache on local disk: fetched bytes, shared by all processes that name the same folder.
//!
//! Below the reads of remote stores; it knows objects by name and ETag and nothing of arrays. Bytes
//! are kept as they were fetched, so any part of a cached range is a hit. Invariants:
//! - bytes come back as they were written, of the ETag they were written under, or not at all;
//! - the files of all processes together, and their folders, take at most the bound, as long as all
//!   name the same one; the least recently used go first;
//! - no failure of the folder is a failure of a read: there is one warning, and reads go on.

mod contents;
mod entry;
mod folder;
mod keep;
mod ledger;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

pub use self::contents::CachedObject;
pub(crate) use self::entry::{Entry, Part};
use self::folder::{Folder, children, mark_checked, remove, tidy};
use self::ledger::{Ledger, counted};
use crate::{DiskCacheOptions, Error, Result};

/// A hash of all that tells an object from others: 32 bytes of SHA-256.
pub(crate) type Identity = [u8; 32];

/// For how long nothing is written after a failure.
const PAUSE: Duration = Duration::from_secs(60);

/// The name of an object, across processes.
#[derive(Debug, Clone)]
pub(crate) struct ObjectName {
    /// For people; without options, where signatures may be.
    url: String,
    identity: Identity,
}

impl ObjectName {
    /// An object behind `endpoint`: one URL may lead to several servers, as settings have it. Two
    /// URLs that differ in their query are two objects.
    pub(crate) fn new(endpoint: &str, url: &str, query: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [endpoint, url, query] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        ObjectName {
            url: url.to_owned(),
            identity: hash.finalize().into(),
        }
    }
}

/// A cache of fetched bytes in a folder of the local disk.
#[derive(Debug)]
pub struct DiskCache {
    dir: PathBuf,
    folder: Folder,
    ledger: Ledger,
    bytes: u64,
    /// Numbers the files that this process makes.
    made: AtomicU64,
    /// Nothing is written before this.
    paused: Mutex<Option<Instant>>,
    trouble: OnceLock<String>,
}

impl DiskCache {
    /// Opens a cache, and makes its folder if need be. One that is larger than the bound shrinks.
    pub fn open(options: &DiskCacheOptions) -> Result<Self> {
        if options.bytes == 0 {
            return Err(Error::invalid("the cache on disk is given no bytes")
                .with_hint("give it room, or leave it out"));
        }
        let cache = DiskCache::at(&options.dir, options.bytes);
        cache.start().map_err(|e| unusable(&options.dir, e))?;
        Ok(cache)
    }

    /// Opens the cache in a folder that has one, to look at it or to clear it.
    pub fn existing(dir: &Path) -> Result<Self> {
        let cache = DiskCache::at(dir, u64::MAX);
        if !cache.folder.exists() {
            return Err(
                Error::not_found(format!("there is no cache in {}", dir.display()))
                    .with_hint("name the folder that --cache was given"),
            );
        }
        Ok(cache)
    }

    fn at(dir: &Path, bytes: u64) -> Self {
        let folder = Folder::new(dir);
        DiskCache {
            dir: dir.to_owned(),
            ledger: Ledger::new(&folder.usage()),
            folder,
            bytes,
            made: AtomicU64::new(0),
            paused: Mutex::new(None),
            trouble: OnceLock::new(),
        }
    }

    fn start(&self) -> io::Result<()> {
        self.folder.make(true)?;
        self.folder.clear_abandoned()?;
        let Some(locked) = self.ledger.lock()? else {
            return Ok(());
        };
        match locked.total() {
            Some(total) if total <= self.bytes => Ok(()),
            _ => locked.set(self.folder.evict(self.bytes)?),
        }
    }

    /// Why the folder could not be used at some time, if so.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    /// Notes a failure of the folder: one warning, and nothing is written for a while.
    fn fail(&self, e: &io::Error) {
        if let Ok(mut paused) = self.paused.lock() {
            *paused = Some(Instant::now() + PAUSE);
        }
        let text = format!(
            "the cache folder {} could not be used, and reads went on without it: {e}",
            self.dir.display()
        );
        if self.trouble.set(text.clone()).is_ok() {
            tracing::warn!("{text}");
        }
    }

    fn is_paused(&self) -> bool {
        let until = self.paused.lock().map_or(None, |paused| *paused);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// The files that hold bytes of an object, of whatever state. Broken ones are removed.
    pub(crate) fn entries(&self, name: &ObjectName) -> Vec<Entry> {
        let paths = children(&self.folder.of(&name.identity)).unwrap_or_else(|e| {
            self.fail(&e);
            Vec::new()
        });
        let opened = paths.into_iter().filter_map(|path| {
            match Entry::open(&path) {
                Ok(Some(entry)) if entry.head.identity == name.identity => return Some(entry),
                Ok(_) => self.discard(&path),
                Err(e) => match e.kind() {
                    io::ErrorKind::NotFound => {}
                    io::ErrorKind::UnexpectedEof => self.discard(&path),
                    _ => self.fail(&e),
                },
            }
            None
        });
        opened.collect()
    }

    /// Removes a file that is broken or out of date.
    pub(crate) fn discard(&self, path: &Path) {
        let len = std::fs::metadata(path).map_or(0, |meta| meta.len());
        match self.ledger.release(counted(len), || remove(path)) {
            Ok(true) => tidy(path),
            Ok(false) => {}
            Err(e) => self.fail(&e),
        }
    }

    /// Forgets all states of an object.
    pub(crate) fn forget(&self, name: &ObjectName) {
        for path in children(&self.folder.of(&name.identity)).unwrap_or_default() {
            self.discard(&path);
        }
    }

    /// Forgets all objects whose URLs begin so, of whatever server.
    pub(crate) fn forget_below(&self, url: &str) {
        for file in self.folder.files().unwrap_or_default() {
            if let Ok(Some(entry)) = Entry::open(&file.path)
                && entry.head.url.starts_with(url)
            {
                self.discard(&file.path);
            }
        }
    }

    /// Opens a file to read from it, which makes it recently used.
    pub(crate) fn use_file(&self, entry: &Entry) -> io::Result<File> {
        let file = File::open(&entry.path)?;
        folder::mark_used(&file);
        Ok(file)
    }

    /// The store has just said that an object still has this ETag.
    pub(crate) fn confirm(&self, name: &ObjectName, etag: &str) {
        for entry in self.entries(name) {
            if entry.head.etag == etag {
                // It may be gone, or the folder read-only: then the store is asked again.
                let _ = mark_checked(&entry.path);
            }
        }
    }
}

fn unusable(dir: &Path, e: io::Error) -> Error {
    let text = format!("the cache folder {} cannot be used: {e}", dir.display());
    let error = match e.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists => Error::invalid(text),
        _ => Error::unavailable(text),
    };
    error
        .with_hint("choose a folder that you may write to and that has room, or do without a cache")
        .with_source(e)
}

#[cfg(test)]
mod tests;
