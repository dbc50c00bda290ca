//! One bucket: its objects, its computed sets, and the uploads under way.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, RwLock};
use std::time::SystemTime;

use bytes::Bytes;
use hyperslab_index::Result;

use super::disk::Shelf;
use super::multipart::Uploads;
use super::{Condition, Entry, Generations, ObjectHeaders, Payload, Refused};
use crate::network::seeded::mix;
use crate::procedural::{Procedural, position_after};
use crate::sync::{read, write};

/// A bucket.
pub(crate) struct Bucket {
    name: String,
    created: SystemTime,
    entries: RwLock<BTreeMap<String, Arc<Entry>>>,
    mounts: RwLock<Vec<Mount>>,
    pub(super) uploads: Mutex<Uploads>,
    shelf: Option<Shelf>,
    generations: Arc<Generations>,
}

struct Mount {
    /// Ends with `/` unless it is empty.
    prefix: String,
    set: Arc<dyn Procedural>,
    modified: SystemTime,
}

impl Bucket {
    pub(super) fn open(
        name: &str,
        shelf: Option<Shelf>,
        generations: Arc<Generations>,
    ) -> Result<Self> {
        let mut entries = BTreeMap::new();
        for (key, entry) in shelf
            .as_ref()
            .map(Shelf::load)
            .transpose()?
            .unwrap_or_default()
        {
            generations.pass(entry.generation);
            entries.insert(key, Arc::new(entry));
        }
        Ok(Bucket {
            name: name.to_string(),
            created: SystemTime::now(),
            entries: RwLock::new(entries),
            mounts: RwLock::default(),
            uploads: Mutex::new(Uploads {
                under_way: HashMap::new(),
                completed: HashMap::new(),
            }),
            shelf,
            generations,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn created(&self) -> SystemTime {
        self.created
    }

    /// True if a write touches the disk, and so may take a while.
    pub(crate) fn on_disk(&self) -> bool {
        self.shelf.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        read(&self.entries).is_empty() && read(&self.mounts).is_empty()
    }

    pub(super) fn remove_shelf(&self) -> Result<()> {
        self.shelf.as_ref().map_or(Ok(()), Shelf::remove)
    }

    /// The object of this key. A stored one lies over a computed one.
    pub(crate) fn get(&self, key: &str) -> Result<Arc<Entry>, Refused> {
        if let Some(entry) = read(&self.entries).get(key) {
            return Ok(Arc::clone(entry));
        }
        self.computed(key).map(Arc::new).ok_or(Refused::NoSuchKey)
    }

    /// Stores an object if the condition holds, in one step.
    pub(crate) fn put(
        &self,
        key: &str,
        bytes: Bytes,
        etag: String,
        headers: ObjectHeaders,
        condition: &Condition,
    ) -> Result<Arc<Entry>, Refused> {
        // A cheap look first, so that a create that must fail writes no file.
        condition.check(self.get(key).ok().as_deref())?;
        let generation = self.generations.next();
        let mut entry = Entry {
            size: bytes.len() as u64,
            payload: Payload::Memory(bytes),
            etag,
            modified: SystemTime::now(),
            generation,
            headers: Arc::new(headers),
        };
        if let Some(shelf) = &self.shelf {
            shelf.write_data(&mut entry)?;
        }
        let computed = self.computed(key);
        let mut entries = write(&self.entries);
        let present = entries.get(key).map(Arc::as_ref).or(computed.as_ref());
        if let Err(refused) = condition.check(present) {
            drop(entries);
            if let Some(shelf) = &self.shelf {
                shelf.discard(&entry);
            }
            return Err(refused);
        }
        if let Some(shelf) = &self.shelf {
            shelf.commit(key, &entry)?;
        }
        let entry = Arc::new(entry);
        let old = entries.insert(key.to_string(), Arc::clone(&entry));
        drop(entries);
        if let (Some(shelf), Some(old)) = (&self.shelf, old) {
            shelf.discard(&old);
        }
        Ok(entry)
    }

    /// Removes an object if the condition holds; an absent one is no error.
    pub(crate) fn delete(&self, key: &str, condition: &Condition) -> Result<bool, Refused> {
        let computed = self.computed(key);
        let mut entries = write(&self.entries);
        let present = entries.get(key).map(Arc::as_ref).or(computed.as_ref());
        condition.check(present)?;
        match entries.remove(key) {
            Some(old) => {
                drop(entries);
                if let Some(shelf) = &self.shelf {
                    shelf.discard(&old);
                }
                Ok(true)
            }
            None if computed.is_some() => Err(Refused::ReadOnly),
            None => Ok(false),
        }
    }

    /// Changes the bytes of a stored object behind the clients' back: ETag, time and generation
    /// stay, as after a fault of the medium.
    pub(super) fn replace_bytes(&self, key: &str, bytes: Bytes) -> Result<(), Refused> {
        let mut entries = write(&self.entries);
        let old = entries.get(key).ok_or(Refused::NoSuchKey)?;
        let mut entry = Entry {
            size: bytes.len() as u64,
            payload: Payload::Memory(bytes),
            etag: old.etag.clone(),
            modified: old.modified,
            generation: old.generation,
            headers: Arc::clone(&old.headers),
        };
        if let Some(shelf) = &self.shelf {
            shelf.write_data(&mut entry)?;
            shelf.commit(key, &entry)?;
        }
        entries.insert(key.to_string(), Arc::new(entry));
        Ok(())
    }

    /// Makes computed objects appear under a prefix.
    pub(crate) fn mount(&self, prefix: &str, set: Arc<dyn Procedural>) {
        let prefix = match prefix.trim_end_matches('/') {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        write(&self.mounts).push(Mount {
            prefix,
            set,
            modified: SystemTime::now(),
        });
    }

    /// The first key after the bound in byte order, stored or computed.
    pub(super) fn next_key(&self, after: Bound<&str>) -> Option<String> {
        let stored = read(&self.entries)
            .range::<str, _>((after, Bound::Unbounded))
            .next()
            .map(|(key, _)| key.clone());
        let computed = read(&self.mounts)
            .iter()
            .filter_map(|mount| mount.next_key(after))
            .min();
        match (stored, computed) {
            (Some(stored), Some(computed)) => Some(stored.min(computed)),
            (stored, computed) => stored.or(computed),
        }
    }

    fn computed(&self, key: &str) -> Option<Entry> {
        read(&self.mounts).iter().find_map(|mount| mount.entry(key))
    }
}

impl Mount {
    fn entry(&self, key: &str) -> Option<Entry> {
        let relative = key.strip_prefix(&self.prefix)?;
        let size = self.set.size(relative)?;
        // The ETag stands for content that never changes: a digest of the key and the size.
        let digest = key
            .bytes()
            .fold(mix(size), |state, byte| mix(state ^ u64::from(byte)));
        Some(Entry {
            payload: Payload::Computed {
                set: Arc::clone(&self.set),
                key: relative.to_string(),
            },
            size,
            etag: format!("{digest:016x}{:016x}", mix(digest)),
            modified: self.modified,
            generation: 1,
            headers: Arc::default(),
        })
    }

    fn next_key(&self, after: Bound<&str>) -> Option<String> {
        let position = match after {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => match key.strip_prefix(&self.prefix) {
                Some(rest) => {
                    let inclusive = matches!(after, Bound::Included(_));
                    position_after(self.set.as_ref(), rest, inclusive)
                }
                None if key < self.prefix.as_str() => 0,
                None => return None,
            },
        };
        (position < self.set.key_count())
            .then(|| format!("{}{}", self.prefix, self.set.key_at(position)))
    }
}
