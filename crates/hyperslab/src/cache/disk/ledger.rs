//! How many bytes all processes keep in a folder together.
//!
//! One small file holds the number; whoever changes it locks the file. Room is booked before a file
//! is made and given back after one is removed, so a process that dies leaves the number too large,
//! never too small. The next eviction counts the files and puts it right.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes that file systems hand out at a time, roughly: small files take as much, and so does the
/// folder of an object.
const DISK_BLOCK: u64 = 4096;
/// How often, and how far apart, a busy lock is tried.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(1);

/// What a file of this length counts as, with its folder.
pub(super) fn counted(len: u64) -> u64 {
    let blocks = len.div_ceil(DISK_BLOCK).saturating_add(1);
    blocks.saturating_mul(DISK_BLOCK)
}

/// The number, and the lock around it.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
}

impl Ledger {
    pub(super) fn new(path: &Path) -> Self {
        Ledger {
            path: path.to_owned(),
        }
    }

    fn file(&self) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)
    }

    /// Locks the number; `None` if others keep it busy: a cache is not worth a long wait, least of
    /// all for a process that was stopped while it held the lock. While somebody counts the files
    /// there is no wait at all.
    pub(super) fn lock(&self) -> io::Result<Option<Locked>> {
        let file = self.file()?;
        for _ in 0..TRIES {
            if let Some(locked) = Locked::of(&file)? {
                return Ok(Some(locked));
            }
            if number(&file).is_none() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// Removes a file by `remove`, which says whether it was there, and gives its room back.
    ///
    /// Both happen under the lock, or somebody who counts the files in between would give the room
    /// back a second time. While the lock is busy the file goes and its room stays booked.
    pub(super) fn release(
        &self,
        bytes: u64,
        remove: impl FnOnce() -> io::Result<bool>,
    ) -> io::Result<bool> {
        let locked = self.file().and_then(|file| Locked::of(&file));
        let removed = remove()?;
        if removed
            && let Ok(Some(locked)) = locked
            && let Some(total) = locked.total()
        {
            // Too large a number does no harm, and the next eviction puts it right.
            let _ = locked.set(total.saturating_sub(bytes));
        }
        Ok(removed)
    }
}

/// The locked number.
#[derive(Debug)]
pub(super) struct Locked(File);

impl Locked {
    fn of(file: &File) -> io::Result<Option<Locked>> {
        match file.try_lock() {
            Ok(()) => file.try_clone().map(|file| Some(Locked(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    /// The number; `None` if the files have to be counted.
    pub(super) fn total(&self) -> Option<u64> {
        number(&self.0)
    }

    /// The files are about to be counted. Should this process not live to write what it finds, the
    /// next one counts again.
    pub(super) fn begin_count(&self) -> io::Result<()> {
        self.0.write_all_at(&[0; 16], 0)
    }

    pub(super) fn set(&self, total: u64) -> io::Result<()> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&total.to_le_bytes());
        bytes[8..].copy_from_slice(&(!total).to_le_bytes());
        self.0.write_all_at(&bytes, 0)
    }
}

/// The number in the file, which its complement follows; `None` if it was never written, not to its
/// end, or taken back.
fn number(file: &File) -> Option<u64> {
    let mut bytes = [0; 16];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let (total, check) = bytes.split_at(8);
    let total = u64::from_le_bytes(total.try_into().ok()?);
    (!total == u64::from_le_bytes(check.try_into().ok()?)).then_some(total)
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing does it too, but not while a forked child still has the file open.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_shared_and_guarded() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::new(&dir.path().join("usage"));
        {
            let locked = ledger.lock().unwrap().unwrap();
            assert_eq!(locked.total(), None);
            locked.begin_count().unwrap();
            assert_eq!(locked.total(), None);
            assert!(ledger.lock().unwrap().is_none());
            locked.set(5000).unwrap();
            assert!(Locked::of(&ledger.file().unwrap()).unwrap().is_none());
        }
        assert!(ledger.release(2000, || Ok(true)).unwrap());
        assert!(!ledger.release(2000, || Ok(false)).unwrap());
        assert_eq!(ledger.lock().unwrap().unwrap().total(), Some(3000));
        std::fs::write(&ledger.path, [1; 16]).unwrap();
        assert_eq!(ledger.lock().unwrap().unwrap().total(), None);
        assert_eq!((counted(0), counted(1), counted(4097)), (4096, 8192, 12288));
    }
}
