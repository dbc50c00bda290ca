//! What a cache holds, for people: a list, and a way to empty it.

use std::io;
use std::time::SystemTime;

use super::entry::Entry;
use super::ledger::counted;
use super::{DiskCache, unusable};
use crate::Result;
use crate::cache::ranges::Ranges;

/// What a cache holds of one state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedObject {
    /// Its URL, without options.
    pub url: String,
    /// The state.
    pub etag: String,
    /// Bytes of the whole object.
    pub size: u64,
    /// Bytes of it that are held.
    pub held: u64,
    /// Bytes that this takes on disk.
    pub on_disk: u64,
    /// When any of it was last used.
    pub used: SystemTime,
}

impl DiskCache {
    /// What is held, by URL.
    pub fn objects(&self) -> Result<Vec<CachedObject>> {
        let files = self.folder.files().map_err(|e| unusable(&self.dir, e))?;
        let mut entries: Vec<Entry> = files
            .iter()
            .filter_map(|file| Entry::open(&file.path).ok().flatten())
            .collect();
        entries.sort_by(|a, b| {
            let (a, b) = (&a.head, &b.head);
            (&a.identity, &a.etag).cmp(&(&b.identity, &b.etag))
        });
        let same =
            |a: &Entry, b: &Entry| a.head.identity == b.head.identity && a.head.etag == b.head.etag;
        let mut objects: Vec<CachedObject> = entries
            .chunk_by(same)
            .map(|entries| {
                let held: Ranges = entries.iter().flat_map(Entry::ranges).collect();
                CachedObject {
                    url: entries[0].head.url.clone(),
                    etag: entries[0].head.etag.clone(),
                    size: entries[0].head.size,
                    held: held.bytes(),
                    on_disk: entries.iter().map(|entry| counted(entry.len)).sum(),
                    used: entries
                        .iter()
                        .map(|entry| entry.used)
                        .max()
                        .unwrap_or(SystemTime::UNIX_EPOCH),
                }
            })
            .collect();
        objects.sort_by(|a, b| (&a.url, &a.etag).cmp(&(&b.url, &b.etag)));
        Ok(objects)
    }

    /// Removes all that is held; returns how many files and bytes of disk that was.
    pub fn clear(&self) -> Result<(u64, u64)> {
        let clear = || -> io::Result<(u64, u64)> {
            let files = self.folder.files()?;
            let bytes = files.iter().map(|file| file.counted).sum();
            match self.ledger.lock()? {
                Some(locked) => locked.set(self.folder.evict(0)?)?,
                None => drop(self.folder.evict(0)?),
            }
            Ok((files.len() as u64, bytes))
        };
        clear().map_err(|e| unusable(&self.dir, e))
    }
}
