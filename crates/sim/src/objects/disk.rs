//! Objects in a folder, so that they survive a restart.
//!
//! A bucket is a folder (a shelf); an object is two files named by its generation: `N.data` with
//! the bytes and `N.json` with key, ETag and headers. The rename of `N.json` into place commits a
//! write. At a start, data without a description is removed, and of two descriptions of one key
//! the later generation wins.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use hyperslab_index::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Entry, ObjectHeaders, Payload};

/// The folder of a store.
pub(super) struct Disk {
    folder: PathBuf,
}

/// The folder of a bucket.
#[derive(Clone)]
pub(super) struct Shelf {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Description {
    key: String,
    size: u64,
    etag: String,
    modified_nanos: u64,
    generation: u64,
    headers: ObjectHeaders,
}

impl Disk {
    pub(super) fn open(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).map_err(|error| failed("made", &folder, error))?;
        Ok(Disk { folder })
    }

    /// The buckets that exist, by name.
    pub(super) fn shelves(&self) -> Result<Vec<(String, Shelf)>> {
        let mut shelves = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|e| failed("listed", &self.folder, e))? {
            let path = entry
                .map_err(|error| failed("listed", &self.folder, error))?
                .path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if path.is_dir() && s3s::path::check_bucket_name(name) {
                shelves.push((
                    name.to_string(),
                    Shelf {
                        folder: path.clone(),
                    },
                ));
            }
        }
        Ok(shelves)
    }

    pub(super) fn create_shelf(&self, bucket: &str) -> Result<Shelf> {
        let folder = self.folder.join(bucket);
        fs::create_dir_all(&folder).map_err(|error| failed("made", &folder, error))?;
        Ok(Shelf { folder })
    }
}

impl Shelf {
    /// Reads all descriptions and clears what an interrupted write has left.
    pub(super) fn load(&self) -> Result<Vec<(String, Entry)>> {
        let mut newest: BTreeMap<String, Description> = BTreeMap::new();
        let mut stale: Vec<u64> = Vec::new();
        let mut data: Vec<u64> = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|e| failed("listed", &self.folder, e))? {
            let path = entry
                .map_err(|error| failed("listed", &self.folder, error))?
                .path();
            let stem = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default();
            let generation = stem.parse::<u64>().ok();
            match (
                generation,
                path.extension().and_then(|extension| extension.to_str()),
            ) {
                (Some(generation), Some("data")) => data.push(generation),
                (Some(_), Some("json")) => {
                    let description = read_description(&path)?;
                    if let Some(other) = newest.remove(&description.key) {
                        let (new, old) = if other.generation > description.generation {
                            (other, description)
                        } else {
                            (description, other)
                        };
                        stale.push(old.generation);
                        newest.insert(new.key.clone(), new);
                    } else {
                        newest.insert(description.key.clone(), description);
                    }
                }
                (Some(_), Some("tmp")) => drop(fs::remove_file(&path)),
                _ => {}
            }
        }
        let live: std::collections::BTreeSet<u64> = newest.values().map(|d| d.generation).collect();
        stale.extend(
            data.into_iter()
                .filter(|generation| !live.contains(generation)),
        );
        stale
            .into_iter()
            .for_each(|generation| self.remove_files(generation));
        newest
            .into_iter()
            .map(|(key, found)| Ok((key, self.entry(found)?)))
            .collect()
    }

    /// Moves the bytes of an entry from memory to its data file.
    pub(super) fn write_data(&self, entry: &mut Entry) -> Result<()> {
        let path = self.path(entry.generation, "data");
        let Payload::Memory(bytes) = &entry.payload else {
            return Ok(());
        };
        // A new file and a rename, so that a reader of the old bytes keeps them.
        let fresh = self.path(entry.generation, "tmp");
        fs::write(&fresh, bytes).map_err(|error| failed("written", &fresh, error))?;
        fs::rename(&fresh, &path).map_err(|error| failed("written", &path, error))?;
        entry.payload = Payload::File(path);
        Ok(())
    }

    /// Makes a written object exist.
    pub(super) fn commit(&self, key: &str, entry: &Entry) -> Result<()> {
        let age = entry
            .modified
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let description = Description {
            key: key.to_string(),
            size: entry.size,
            etag: entry.etag.clone(),
            modified_nanos: u64::try_from(age.as_nanos()).unwrap_or(u64::MAX),
            generation: entry.generation,
            headers: ObjectHeaders::clone(&entry.headers),
        };
        let path = self.path(entry.generation, "json");
        let fresh = self.path(entry.generation, "tmp");
        let json = serde_json::to_vec(&description).map_err(|error| {
            Error::internal("the description of an object cannot be written").with_source(error)
        })?;
        fs::write(&fresh, json).map_err(|error| failed("written", &fresh, error))?;
        fs::rename(&fresh, &path).map_err(|error| failed("written", &path, error))
    }

    /// Removes the files of an object that has been replaced, deleted or refused.
    pub(super) fn discard(&self, entry: &Entry) {
        if matches!(entry.payload, Payload::File(_)) {
            self.remove_files(entry.generation);
        }
    }

    pub(super) fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.folder).map_err(|error| failed("removed", &self.folder, error))
    }

    /// The description first: an object without one does not exist. What cannot be removed now
    /// is removed at the next start.
    fn remove_files(&self, generation: u64) {
        let _ = fs::remove_file(self.path(generation, "json"));
        let _ = fs::remove_file(self.path(generation, "data"));
    }

    fn entry(&self, found: Description) -> Result<Entry> {
        let path = self.path(found.generation, "data");
        let length = fs::metadata(&path)
            .map_err(|error| failed("read", &path, error))?
            .len();
        if length != found.size {
            return Err(Error::data(format!(
                "the stored object {:?} has {length} bytes instead of {}",
                found.key, found.size
            ))
            .with_hint("delete its files, or start with an empty folder"));
        }
        Ok(Entry {
            payload: Payload::File(path),
            size: found.size,
            etag: found.etag,
            modified: UNIX_EPOCH + Duration::from_nanos(found.modified_nanos),
            generation: found.generation,
            headers: Arc::new(found.headers),
        })
    }

    fn path(&self, generation: u64, extension: &str) -> PathBuf {
        self.folder.join(format!("{generation}.{extension}"))
    }
}

fn read_description(path: &Path) -> Result<Description> {
    let text = fs::read(path).map_err(|error| failed("read", path, error))?;
    serde_json::from_slice(&text).map_err(|error| {
        Error::data(format!("{} does not describe an object", path.display()))
            .with_hint("delete it, or start with an empty folder")
            .with_source(error)
    })
}

fn failed(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::unavailable(format!("{} cannot be {what}: {error}", path.display()))
        .with_hint("check that the folder exists, is writable and has room")
}
