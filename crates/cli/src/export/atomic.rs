//! A local file that appears complete or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use hyperslab::{Error, Result};

/// A file that is written beside its place and moved there at the end; dropped before that, it
/// leaves nothing behind.
pub(crate) struct AtomicFile {
    file: Option<BufWriter<File>>,
    part: PathBuf,
    path: PathBuf,
}

impl AtomicFile {
    /// Begins a file that will be at `path`.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Err(Error::invalid(format!("{} is a folder", path.display()))
                .with_hint("give the name of a file in it"));
        }
        let Some(name) = path.file_name() else {
            return Err(Error::invalid(format!(
                "{} is not the name of a file",
                path.display()
            )));
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(hidden);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&part)
            .map_err(|e| {
                let shown = path.display();
                match e.kind() {
                    std::io::ErrorKind::NotFound => {
                        Error::not_found(format!("the folder of {shown} does not exist"))
                    }
                    std::io::ErrorKind::PermissionDenied => {
                        Error::denied(format!("{shown} may not be written"))
                            .with_hint("check the permissions of the folder")
                    }
                    _ => Error::unavailable(format!("{shown} cannot be written: {e}")),
                }
            })?;
        Ok(AtomicFile {
            file: Some(BufWriter::new(file)),
            part,
            path: path.to_owned(),
        })
    }

    /// Puts the finished file in its place.
    pub(crate) fn commit(mut self) -> Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let moved = file
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&self.part, &self.path));
        moved.map_err(|e| {
            // The part is of no use to anybody.
            let _ = fs::remove_file(&self.part);
            super::failed(&e)
        })
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(std::io::Error::other("the file is closed")),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Nothing more can be done about a part that cannot be removed.
            let _ = fs::remove_file(&self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_complete_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.bin");
        let mut dropped = AtomicFile::create(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let mut kept = AtomicFile::create(&path).unwrap();
        kept.write_all(b"whole").unwrap();
        assert!(!path.exists());
        kept.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(AtomicFile::create(dir.path()).is_err());
        assert!(
            AtomicFile::create(&dir.path().join("no/x"))
                .err()
                .unwrap()
                .is_not_found()
        );
    }
}
