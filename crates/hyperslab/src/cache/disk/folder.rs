//! The folder of a cache: where its files are, which go first, and what dead processes left.
//!
//! ```text
//! DIR/hyperslab-cache-1/       the number is the version of all that is below
//!   usage                      bytes that all processes keep together (`ledger`)
//!   new/PID-…                  files that are being written
//!   objects/ab/cdef…/…         one folder for each object, one file for each fetch of it
//! ```
//!
//! When a file was last modified tells when its object was last checked, and when it was last
//! accessed tells when it was last used; both are set by hand, whatever the file system does.

use std::fs::{DirBuilder, File, FileTimes};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, test_kill_process};

use super::Identity;
use super::ledger::counted;

/// Where this version of the cache lives in the user's folder.
const VERSION: &str = "hyperslab-cache-1";
/// A file that was begun so long ago will not be finished.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The folder of a cache.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    root: PathBuf,
}

/// A file of the cache, as eviction sees it.
pub(super) struct Seen {
    pub(super) path: PathBuf,
    pub(super) counted: u64,
    used: SystemTime,
}

impl Folder {
    pub(super) fn new(dir: &Path) -> Self {
        Folder {
            root: dir.join(VERSION),
        }
    }

    pub(super) fn exists(&self) -> bool {
        self.root.is_dir()
    }

    /// Makes the folders of the cache. The user's folder is made only if `with_parents`: one that
    /// went away later may be a disk that is not there, and nothing should land in its place.
    pub(super) fn make(&self, with_parents: bool) -> io::Result<()> {
        if with_parents {
            private(true).create(&self.root)?;
        }
        for path in [self.root.clone(), self.objects(), self.new_files()] {
            exists_or(private(false).create(path))?;
        }
        Ok(())
    }

    pub(super) fn usage(&self) -> PathBuf {
        self.root.join("usage")
    }

    pub(super) fn new_files(&self) -> PathBuf {
        self.root.join("new")
    }

    fn objects(&self) -> PathBuf {
        self.root.join("objects")
    }

    /// The folder of an object's files.
    pub(super) fn of(&self, identity: &Identity) -> PathBuf {
        let hex: String = identity.iter().map(|byte| format!("{byte:02x}")).collect();
        self.objects().join(&hex[..2]).join(&hex[2..])
    }

    /// Makes the folder of an object's files.
    pub(super) fn make_of(&self, identity: &Identity) -> io::Result<()> {
        let path = self.of(identity);
        if let Some(parent) = path.parent() {
            match exists_or(private(false).create(parent)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    self.make(false)?;
                    exists_or(private(false).create(parent))?;
                }
                made => made?,
            }
        }
        exists_or(private(false).create(&path))
    }

    /// All files of the cache.
    pub(super) fn files(&self) -> io::Result<Vec<Seen>> {
        let mut files = Vec::new();
        for first in children(&self.objects())? {
            for object in children(&first)? {
                for path in children(&object)? {
                    files.extend(look(path));
                }
            }
        }
        Ok(files)
    }

    /// Removes the files that were used least recently until all together count at most `target`;
    /// returns what is left, files that are being written included.
    pub(super) fn evict(&self, target: u64) -> io::Result<u64> {
        let under_way = self.clear_abandoned()?;
        let mut files = self.files()?;
        files.sort_by_key(|file| file.used);
        let mut total = under_way + files.iter().map(|file| file.counted).sum::<u64>();
        for file in files {
            if total <= target {
                break;
            }
            if remove(&file.path)? {
                tidy(&file.path);
            }
            total -= file.counted;
        }
        Ok(total)
    }

    /// Removes what dead processes began to write; returns what the others are writing.
    pub(super) fn clear_abandoned(&self) -> io::Result<u64> {
        let mut under_way = 0;
        for path in children(&self.new_files())? {
            let Some(file) = look(path) else { continue };
            let old = file.used.elapsed().is_ok_and(|age| age > ABANDONED);
            if old || !writer_lives(&file.path) {
                remove(&file.path)?;
            } else {
                under_way += file.counted;
            }
        }
        Ok(under_way)
    }
}

/// Folders that only their owner may look into: cached bytes may be anybody's secrets.
fn private(recursive: bool) -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(recursive).mode(0o700);
    builder
}

fn exists_or(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// What is in a folder; nothing, if it is gone.
pub(super) fn children(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let gone = |e: &io::Error| {
        matches!(
            e.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    match std::fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(e) if gone(&e) => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

/// Length and time of a file; `None` if it is gone.
fn look(path: PathBuf) -> Option<Seen> {
    let meta = std::fs::symlink_metadata(&path).ok()?;
    let modified = meta.modified().ok()?;
    let seen = Seen {
        counted: counted(meta.len()),
        used: meta.accessed().unwrap_or(modified).max(modified),
        path,
    };
    meta.is_file().then_some(seen)
}

/// Removes a file; false if somebody else did.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes the folder of a removed file, if that was its last.
pub(super) fn tidy(removed: &Path) {
    if let Some(parent) = removed.parent() {
        // Not empty, or gone already: both are fine.
        let _ = std::fs::remove_dir(parent);
    }
}

/// True if the process that a file under way is named after is running, or may be.
fn writer_lives(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let pid = name.and_then(|name| name.split('-').next()?.parse::<i32>().ok());
    match pid.and_then(Pid::from_raw) {
        Some(pid) => !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)),
        None => false,
    }
}

/// Notes that a file's bytes were used just now.
pub(super) fn mark_used(file: &File) {
    // A read-only folder serves what it has, in whatever order it goes later.
    let _ = file.set_times(FileTimes::new().set_accessed(SystemTime::now()));
}

/// Notes that the store has just said that a file's object is unchanged.
pub(super) fn mark_checked(path: &Path) -> io::Result<()> {
    let now = SystemTime::now();
    File::open(path)?.set_times(FileTimes::new().set_accessed(now).set_modified(now))
}
