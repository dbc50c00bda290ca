//! Directories: the lock that makes conditional updates atomic, and pruning.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

/// Holds the advisory lock of a directory until dropped.
///
/// Every overwrite, update and delete of an object takes its directory's lock between looking at
/// the present value and replacing it. That protects against other threads and other processes
/// of Hyperslab on this machine (and on others, where a network file system shares `flock`). It
/// does not protect against programs that write without the lock. The kernel drops the lock when
/// its holder dies.
pub(super) struct DirLock(#[expect(dead_code, reason = "held for its drop")] Option<File>);

impl DirLock {
    /// Waits for the lock. Where the file system has no locks, `required` decides between an
    /// error and going on without.
    pub(super) fn take(dir: &Path, required: bool) -> io::Result<Self> {
        let handle = File::open(dir)?;
        let locked = match handle.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => handle.lock(),
            Err(TryLockError::Error(e)) => Err(e),
        };
        match locked {
            Ok(()) => Ok(DirLock(Some(handle))),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Self::take(dir, required),
            Err(e) if required => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("the file system cannot lock a directory ({e})"),
            )),
            Err(_) => Ok(DirLock(None)),
        }
    }
}

/// Removes `dir` and its parents up to but not including `root`, as long as they are empty.
pub(super) fn prune(root: &Path, dir: &Path) {
    let mut dir = dir;
    while dir != root && dir.starts_with(root) && fs::remove_dir(dir).is_ok() {
        let Some(parent) = dir.parent() else { return };
        dir = parent;
    }
}
