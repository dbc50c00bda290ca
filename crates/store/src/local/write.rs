//! Writes and deletes on local disk.
//!
//! A value goes to a temporary file beside its target by vectored writes, without the lock;
//! the lock is held only while the target is looked at and replaced.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::dir::{DirLock, prune};
use super::error::{io_error, is_absent};
use super::{Root, TEMPORARY, etag};
use crate::{Error, Meta, Put, Result};

/// Bytes that one system call writes. For longer writes Linux takes pages of 2 MiB, which virtual
/// machines hand back to their host when they are free: getting one again costs many times what
/// copying into it does (docs/design/005-local-files.md).
const STRETCH: usize = 512 << 10;
/// Slices of one system call: what POSIX promises is less, what Linux takes is this.
const MAX_SLICES: usize = 1024;
/// How often to start again when a concurrent delete prunes the directory under us.
const ATTEMPTS: usize = 100;

/// Writes the object at `target`.
pub(super) fn put(root: &Root, target: &Path, value: &[Bytes], mode: &Put) -> Result<Meta> {
    let parent = target.parent().unwrap_or(&root.path);
    if *mode != Put::Overwrite {
        // Ask before writing megabytes for nothing; the binding check follows under the lock.
        check(target, mode, look(target)?.as_ref())?;
    }
    let mut attempt = 1;
    loop {
        match try_put(root, parent, target, value, mode) {
            Err(Failure::Pruned) if attempt < ATTEMPTS => attempt += 1,
            Err(Failure::Pruned) => {
                return Err(Error::unavailable(format!(
                    "{} vanishes each time it is made",
                    parent.display()
                )));
            }
            Err(Failure::Other(e)) => return Err(e),
            Ok(meta) => return Ok(meta),
        }
    }
}

enum Failure {
    /// The directory was removed between making it and using it.
    Pruned,
    Other(Error),
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
    move |e| match e.kind() {
        io::ErrorKind::NotFound => Failure::Pruned,
        _ => Failure::Other(io_error(what, path, e)),
    }
}

fn try_put(
    root: &Root,
    parent: &Path,
    target: &Path,
    value: &[Bytes],
    mode: &Put,
) -> Result<Meta, Failure> {
    let mut temporary = match Temporary::create(parent) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(parent).map_err(failed("make", parent))?;
            Temporary::create(parent)
        }
        other => other,
    }
    .map_err(failed("write", target))?;
    write_all(&mut temporary.file, value).map_err(failed("write", target))?;
    if root.fsync {
        temporary
            .file
            .sync_data()
            .map_err(failed("write", target))?;
    }

    let stamped = match mode {
        Put::Create => {
            let stamped = etag::stamp(&temporary.file, None).map_err(failed("write", target))?;
            if !temporary.link_new(target)? {
                look(target).map_err(Failure::Other)?;
                return Err(Failure::Other(exists(target)));
            }
            stamped
        }
        Put::Overwrite => {
            // Most objects are written once. Where there is none, nobody can be changing it, and
            // a name that is given only if it is free needs no lock.
            let stamped = etag::stamp(&temporary.file, None).map_err(failed("write", target))?;
            if temporary.link_new(target)? {
                stamped
            } else {
                replace(&mut temporary, parent, target, mode)?
            }
        }
        Put::Update(_) => replace(&mut temporary, parent, target, mode)?,
    };
    if root.fsync {
        File::open(parent)
            .and_then(|dir| dir.sync_all())
            .map_err(failed("write", target))?;
    }
    Ok(etag::meta(&stamped))
}

/// Puts the temporary file in the place of what is there, under the directory's lock.
fn replace(
    temporary: &mut Temporary,
    parent: &Path,
    target: &Path,
    mode: &Put,
) -> Result<Metadata, Failure> {
    let required = matches!(mode, Put::Update(_));
    let _lock = DirLock::take(parent, required).map_err(failed("lock", parent))?;
    let replaced = look(target).map_err(Failure::Other)?;
    check(target, mode, replaced.as_ref()).map_err(Failure::Other)?;
    let stamped =
        etag::stamp(&temporary.file, replaced.as_ref()).map_err(failed("write", target))?;
    temporary
        .rename_over(target)
        .map_err(failed("write", target))?;
    Ok(stamped)
}

/// What is at `target`, if anything is.
fn look(target: &Path) -> Result<Option<Metadata>> {
    match fs::metadata(target) {
        Ok(found) if found.is_dir() => Err(io_error(
            "write",
            target,
            io::ErrorKind::IsADirectory.into(),
        )),
        Ok(found) => Ok(Some(found)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io_error("write", target, e)),
    }
}

/// Whether `mode` allows replacing `found`.
fn check(target: &Path, mode: &Put, found: Option<&Metadata>) -> Result<()> {
    match (mode, found) {
        (Put::Create, Some(_)) => Err(exists(target)),
        (Put::Update(_), None) => Err(Error::conflict(format!("{} is gone", target.display()))),
        (Put::Update(expected), Some(found))
            if etag::meta(found).etag.as_ref() != Some(expected) =>
        {
            Err(Error::conflict(format!(
                "{} has changed since it was read",
                target.display()
            )))
        }
        _ => Ok(()),
    }
}

fn exists(target: &Path) -> Error {
    Error::conflict(format!("{} exists already", target.display()))
}

/// Writes all segments, a stretch with each system call, without joining them.
fn write_all(file: &mut File, value: &[Bytes]) -> io::Result<()> {
    let mut stretch: Vec<IoSlice<'_>> = Vec::new();
    let mut len = 0;
    for piece in value.iter().flat_map(|segment| segment.chunks(STRETCH)) {
        if len + piece.len() > STRETCH || stretch.len() == MAX_SLICES {
            write_stretch(file, &mut stretch)?;
            stretch.clear();
            len = 0;
        }
        stretch.push(IoSlice::new(piece));
        len += piece.len();
    }
    write_stretch(file, &mut stretch)
}

fn write_stretch(file: &mut File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A temporary file, removed unless it becomes an object.
struct Temporary {
    path: PathBuf,
    file: File,
    pending: bool,
}

impl Temporary {
    fn create(dir: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            // The random part keeps apart processes of several machines on a shared directory.
            let path = dir.join(format!(
                "{TEMPORARY}{:x}-{:x}-{:08x}",
                std::process::id(),
                COUNTER.fetch_add(1, Ordering::Relaxed),
                rand::random::<u32>()
            ));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    return Ok(Temporary {
                        path,
                        file,
                        pending: true,
                    });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn rename_over(&mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.pending = false;
        Ok(())
    }

    /// Gives the file its name unless the name is taken, atomically; false if it is.
    fn link_new(&mut self, target: &Path) -> Result<bool, Failure> {
        let moved = match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => {
                self.pending = false;
                return Ok(true);
            }
            // Not every file system can rename without replacing; a hard link never replaces.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                fs::hard_link(&self.path, target)
            }
            Err(e) => Err(e.into()),
        };
        match moved {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(failed("write", target)(e)),
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.pending {
            // Nothing to be done if this fails: such files are ignored everywhere.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the object at `target`, and parents that became empty.
pub(super) fn delete(root: &Root, target: &Path) -> Result<()> {
    let parent = target.parent().unwrap_or(&root.path);
    let lock = match DirLock::take(parent, false) {
        Ok(lock) => lock,
        Err(e) if is_absent(&e) => return Ok(()),
        Err(e) => return Err(io_error("delete", target, e)),
    };
    match fs::symlink_metadata(target) {
        Ok(found) if found.is_dir() => return Ok(()),
        Err(e) if is_absent(&e) => return Ok(()),
        _ => {}
    }
    match fs::remove_file(target) {
        Ok(()) => {}
        Err(e) if is_absent(&e) => return Ok(()),
        Err(e) => return Err(io_error("delete", target, e)),
    }
    drop(lock);
    prune(&root.path, parent);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_segments_are_written_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        // More segments than one writev takes (IOV_MAX is 1024), some of them empty.
        let value: Vec<_> = (0..3000u32)
            .map(|i| Bytes::from(vec![i as u8; (i % 7) as usize]))
            .collect();
        write_all(&mut File::create(&path).unwrap(), &value).unwrap();
        assert_eq!(fs::read(&path).unwrap(), value.concat());
    }
}
