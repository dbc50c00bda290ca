//! What is known of remote HDF5 files, kept in the user's cache folder.
//!
//! Beside an open file. The metadata of a file costs several round trips, and it does not change as
//! long as the file does not: a second open costs the one request that tells the file's size and
//! ETag. Entries are named after them, so one that is out of date is never found.
//!
//! Nothing here fails a read: a folder that cannot be used is as good as none.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

/// Bytes of all entries together; the oldest go first.
const MOST: u64 = 1 << 30;
/// What entries begin with; another version is another beginning.
const HEAD: &[u8; 8] = b"hs-h5\x00\x00\x01";
/// Bytes of the checksum behind the head.
const SUM: usize = 32;
const ENDING: &str = "h5known";
const SEEN: &str = "h5seen";

/// The place of one file's entry.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    entry: PathBuf,
    /// There if the file was seen before, in whatever state.
    seen: PathBuf,
}

/// True if there was a file at this place: the server and folder, and the name there.
pub(crate) fn was_file(folder: &Path, place: &str, key: &str) -> bool {
    seen(folder, place, key).exists()
}

fn seen(folder: &Path, place: &str, key: &str) -> PathBuf {
    folder.join(format!("{}.{SEEN}", name(&[place, key])))
}

/// A name for all parts together.
fn name(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

impl Known {
    /// The entry of a file: the server and folder that it is on, its name there, and its state.
    pub(crate) fn new(folder: &Path, place: &str, key: &str, size: u64, etag: &str) -> Known {
        let name = name(&[place, key, &size.to_string(), etag]);
        Known {
            entry: folder.join(format!("{name}.{ENDING}")),
            seen: seen(folder, place, key),
        }
    }

    /// What is known, if anything is. An entry that is damaged counts as none.
    pub(crate) fn load(&self) -> Option<Vec<u8>> {
        let stored = fs::read(&self.entry).ok()?;
        let rest = stored.strip_prefix(HEAD)?;
        let (sum, content) = rest.split_at_checked(SUM)?;
        if Sha256::digest(content)[..] != *sum {
            return None;
        }
        // The time of a file is the time of its last use.
        if let Ok(file) = fs::File::open(&self.entry) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(content.to_vec())
    }

    /// Keeps what is known. Another process sees the old entry or the new one, never a part.
    pub(crate) fn save(&self, content: &[u8]) {
        if let Err(e) = self.write(content) {
            tracing::debug!("what is known of a file is not kept: {e}");
        }
    }

    fn write(&self, content: &[u8]) -> std::io::Result<()> {
        let folder = self.entry.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let draft = self
            .entry
            .with_extension(format!("{}.tmp", std::process::id()));
        // For this user only: what a file holds may be no one else's business.
        let mut private = fs::OpenOptions::new();
        private.write(true).create(true).truncate(true).mode(0o600);
        let mut file = private.open(&draft)?;
        file.write_all(HEAD)?;
        file.write_all(&Sha256::digest(content))?;
        file.write_all(content)?;
        drop(file);
        fs::rename(&draft, &self.entry).inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })?;
        private.open(&self.seen)?;
        make_room(folder)
    }
}

/// Removes the entries that were not used for longest.
fn make_room(folder: &Path) -> std::io::Result<()> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        if entry
            .path()
            .extension()
            .is_some_and(|ending| ending == ENDING)
        {
            entries.push((meta.modified()?, meta.len(), entry.path()));
        }
    }
    let mut total: u64 = entries.iter().map(|(_, len, _)| len).sum();
    entries.sort();
    for (_, len, path) in entries {
        if total <= MOST {
            break;
        }
        fs::remove_file(path)?;
        total -= len;
    }
    Ok(())
}

/// The folder that is used unless another is named.
pub(crate) fn user_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = match set("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".cache"),
    };
    Some(cache.join("hyperslab").join("hdf5"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_state_and_never_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let known = |etag| Known::new(folder.path(), "s3://b", "x.h5", 10, etag);
        assert_eq!(known("a").load(), None);
        assert!(!was_file(folder.path(), "s3://b", "x.h5"));
        known("a").save(b"content");
        assert!(was_file(folder.path(), "s3://b", "x.h5"));
        assert_eq!(known("a").load().as_deref(), Some(&b"content"[..]));
        assert_eq!(known("b").load(), None);
        let path = known("a").entry;
        let mut stored = fs::read(&path).unwrap();
        *stored.last_mut().unwrap() ^= 1;
        fs::write(&path, &stored).unwrap();
        assert_eq!(known("a").load(), None);
        fs::write(&path, &stored[..20]).unwrap();
        assert_eq!(known("a").load(), None);
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let known = Known::new(&file.path().join("below"), "s3://b", "x.h5", 10, "a");
        known.save(b"content");
        assert_eq!(known.load(), None);
    }
}
