//! Keeps fetched bytes: books room, writes a new file, and moves it to its place.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use super::entry::{self, Entry, Part};
use super::folder::{mark_checked, remove};
use super::ledger::counted;
use super::{DiskCache, ObjectName};
use crate::cache::ranges::Ranges;

/// So many small files of one object are made into one.
const MANY: usize = 16;
/// Files that are made into one are at most this large.
const SMALL: u64 = 1 << 20;
/// How often the folder of an object may vanish under a new file: another process removes it with
/// its last file.
const VANISHED: usize = 8;

impl DiskCache {
    /// Keeps bytes that were just fetched.
    pub(crate) fn put(&self, name: &ObjectName, etag: &str, size: u64, parts: Vec<Part>) {
        if self.is_paused() {
            return;
        }
        if let Err(e) = self.try_put(name, etag, size, parts) {
            self.fail(&e);
        }
    }

    fn try_put(
        &self,
        name: &ObjectName,
        etag: &str,
        size: u64,
        mut parts: Vec<Part>,
    ) -> io::Result<()> {
        let (same, stale): (Vec<_>, Vec<_>) = self
            .entries(name)
            .into_iter()
            .partition(|entry| entry.head.etag == etag && entry.head.size == size);
        stale.iter().for_each(|entry| self.discard(&entry.path));
        for entry in &same {
            let _ = mark_checked(&entry.path);
        }
        let held: Ranges = same.iter().flat_map(Entry::ranges).collect();
        parts.retain(|part| !held.covers(&range_of(part)));
        if parts.is_empty() {
            return Ok(());
        }
        let absorbed = self.absorb(&same, &mut parts);
        parts.sort_by_key(|(start, _)| *start);
        let Some(front) = entry::front(&name.identity, &name.url, etag, size, &parts) else {
            return Ok(());
        };
        let bytes: u64 = parts.iter().map(len_of).sum();
        if !self.write(name, &front, &parts, front.len() as u64 + bytes)? {
            return Ok(());
        }
        absorbed.iter().for_each(|entry| self.discard(&entry.path));
        Ok(())
    }

    /// Adds what small files hold to `parts` if there are many: each costs a look at every read.
    fn absorb<'a>(&self, same: &'a [Entry], parts: &mut Vec<Part>) -> Vec<&'a Entry> {
        let small: Vec<&Entry> = same.iter().filter(|entry| entry.len < SMALL).collect();
        if small.len() < MANY {
            return Vec::new();
        }
        let mut covered: Ranges = parts.iter().map(range_of).collect();
        for entry in &small {
            let Ok(file) = File::open(&entry.path) else {
                continue;
            };
            for range in entry.ranges() {
                for part in covered.missing(&range) {
                    if let Ok(Some(bytes)) = entry.read(&file, &part) {
                        parts.push((part.start, vec![bytes]));
                    }
                }
            }
            covered = parts.iter().map(range_of).collect();
        }
        small
    }

    /// Makes a file; false if there is no room for it.
    fn write(&self, name: &ObjectName, front: &[u8], parts: &[Part], len: u64) -> io::Result<bool> {
        let reserved = match self.reserve(len) {
            // The user has emptied the folder.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.folder.make(false)?;
                self.reserve(len)
            }
            other => other,
        };
        let Some((path, file)) = reserved? else {
            return Ok(false);
        };
        let fill = || -> io::Result<()> {
            let mut out = BufWriter::with_capacity(64 << 10, file);
            out.write_all(front)?;
            for segment in parts.iter().flat_map(|(_, segments)| segments) {
                out.write_all(segment)?;
            }
            out.flush()
        };
        match fill().and_then(|()| self.publish(&path, name)) {
            Ok(()) => Ok(true),
            Err(e) => {
                // If it cannot be removed either, the next process to start here does.
                let _ = self.ledger.release(counted(len), || remove(&path));
                // Somebody has taken the file for abandoned, or keeps removing the object's folder.
                let quiet = e.kind() == io::ErrorKind::NotFound && self.folder.exists();
                if quiet { Ok(false) } else { Err(e) }
            }
        }
    }

    /// Books room for a file and begins it; `None` if there is none, or others keep the ledger.
    fn reserve(&self, len: u64) -> io::Result<Option<(PathBuf, File)>> {
        let need = counted(len);
        if need > self.bytes {
            return Ok(None);
        }
        let Some(locked) = self.ledger.lock()? else {
            return Ok(None);
        };
        let mut total = locked.total().unwrap_or(u64::MAX);
        if total.saturating_add(need) > self.bytes {
            // A tenth more than needed goes, so that not every file makes all be counted.
            let target = (self.bytes - self.bytes / 10).saturating_sub(need);
            locked.begin_count()?;
            total = self.folder.evict(target)?;
            if total.saturating_add(need) > self.bytes {
                locked.set(total)?;
                return Ok(None);
            }
        }
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = now.map_or(0, |now| now.as_nanos());
        let file_name = format!("{}-{nanos:x}-{made:x}", std::process::id());
        let path = self.folder.new_files().join(file_name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        // Whoever counts the files meanwhile counts all of it.
        match file.set_len(len).and_then(|()| locked.set(total + need)) {
            Ok(()) => Ok(Some((path, file))),
            Err(e) => {
                let _ = remove(&path);
                Err(e)
            }
        }
    }

    /// Moves a complete file to the others of its object.
    fn publish(&self, path: &Path, name: &ObjectName) -> io::Result<()> {
        let file_name = path.file_name().unwrap_or_default();
        let place = self.folder.of(&name.identity).join(file_name);
        let mut moved = std::fs::rename(path, &place);
        for _ in 0..VANISHED {
            match &moved {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                _ => break,
            }
            self.folder.make_of(&name.identity)?;
            moved = std::fs::rename(path, &place);
        }
        moved
    }
}

fn len_of((_, segments): &Part) -> u64 {
    segments.iter().map(|segment| segment.len() as u64).sum()
}

fn range_of(part: &Part) -> Range<u64> {
    part.0..part.0 + len_of(part)
}
