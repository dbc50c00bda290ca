//! The chunk cache and the shard-index cache of a session, in memory.
//!
//! An entry is keyed by object and range and remembers the ETag it was read under, and when the
//! store last confirmed that. Least recently used entries go first once the bytes exceed the bound.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyperslab_format::ShardIndex;

/// First byte of an object and one past the last; `None` is the whole object.
pub(crate) type Span = Option<(u64, u64)>;

/// Object (store URL and key) and its bytes.
pub(crate) type Key = (String, Span);

/// Makes the key of an object's bytes.
pub(crate) fn key(object: &str, range: Option<&Range<u64>>) -> Key {
    (object.to_owned(), range.map(|r| (r.start, r.end)))
}

/// A cached value and the state of the object that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Cached<T> {
    pub(crate) value: T,
    pub(crate) etag: Option<String>,
    /// How long ago the store confirmed that the object has that ETag.
    pub(crate) age: Duration,
    /// True if the store need not be asked again.
    pub(crate) fresh: bool,
}

#[derive(Debug)]
struct Slot<T> {
    value: T,
    etag: Option<String>,
    bytes: u64,
    checked: Instant,
    used: u64,
}

/// A bounded map that forgets what was used least recently.
#[derive(Debug)]
pub(crate) struct Lru<T> {
    limit: u64,
    fresh: Duration,
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    slots: HashMap<Key, Slot<T>>,
    by_use: BTreeMap<u64, Key>,
    ranges: HashMap<String, Vec<Key>>,
    bytes: u64,
    clock: u64,
}

/// Encoded chunks.
pub(crate) type ChunkCache = Lru<Bytes>;
/// Shard indexes.
pub(crate) type IndexCache = Lru<Arc<ShardIndex>>;

impl<T: Clone> Lru<T> {
    pub(crate) fn new(limit: u64, fresh: Duration) -> Self {
        Lru {
            limit,
            fresh,
            inner: Mutex::new(Inner {
                slots: HashMap::new(),
                by_use: BTreeMap::new(),
                ranges: HashMap::new(),
                bytes: 0,
                clock: 0,
            }),
        }
    }

    /// True if nothing is ever kept.
    pub(crate) fn is_off(&self) -> bool {
        self.limit == 0
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Cached<T>> {
        let mut inner = self.inner.lock().ok()?;
        inner.clock += 1;
        let now = inner.clock;
        let slot = inner.slots.get_mut(key)?;
        let before = std::mem::replace(&mut slot.used, now);
        let age = slot.checked.elapsed();
        let cached = Cached {
            value: slot.value.clone(),
            etag: slot.etag.clone(),
            age,
            fresh: age < self.fresh,
        };
        inner.by_use.remove(&before);
        inner.by_use.insert(now, key.clone());
        Some(cached)
    }

    pub(crate) fn put(&self, key: Key, value: T, etag: Option<String>, bytes: u64) {
        if bytes > self.limit || etag.is_none() {
            return;
        }
        let Ok(mut inner) = self.inner.lock() else {
            return;
        };
        inner.remove(&key);
        while inner.bytes + bytes > self.limit {
            let Some((_, oldest)) = inner.by_use.pop_first() else {
                break;
            };
            inner.remove(&oldest);
        }
        inner.clock += 1;
        let used = inner.clock;
        inner.bytes += bytes;
        inner.by_use.insert(used, key.clone());
        inner
            .ranges
            .entry(key.0.clone())
            .or_default()
            .push(key.clone());
        inner.slots.insert(
            key,
            Slot {
                value,
                etag,
                bytes,
                checked: Instant::now(),
                used,
            },
        );
    }

    /// All that is kept of an object.
    pub(crate) fn of(&self, object: &str) -> Vec<(Span, Cached<T>)> {
        if self.is_off() {
            return Vec::new();
        }
        let found = |inner: &Inner<T>| inner.ranges.get(object).cloned();
        let keys = self.inner.lock().ok().as_deref().and_then(found);
        let keys = keys.unwrap_or_default().into_iter();
        keys.filter_map(|key| Some((key.1, self.get(&key)?)))
            .collect()
    }

    /// The store said that the object still has this ETag.
    pub(crate) fn confirm(&self, object: &str, etag: &str) {
        if let Ok(mut inner) = self.inner.lock() {
            let inner = &mut *inner;
            for key in inner.ranges.get(object).into_iter().flatten() {
                if let Some(slot) = inner.slots.get_mut(key)
                    && slot.etag.as_deref() == Some(etag)
                {
                    slot.checked = Instant::now();
                }
            }
        }
    }

    /// Forgets everything about an object.
    pub(crate) fn forget(&self, object: &str) {
        if self.is_off() {
            return;
        }
        if let Ok(mut inner) = self.inner.lock() {
            for key in inner.ranges.get(object).cloned().unwrap_or_default() {
                inner.remove(&key);
            }
        }
    }

    /// Forgets everything about objects whose names begin so.
    pub(crate) fn forget_below(&self, prefix: &str) {
        if let Ok(mut inner) = self.inner.lock() {
            let below = |key: &&Key| key.0.starts_with(prefix);
            let keys: Vec<Key> = inner.slots.keys().filter(below).cloned().collect();
            keys.iter().for_each(|key| inner.remove(key));
        }
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.inner.lock().unwrap().bytes
    }
}

impl<T> Inner<T> {
    fn remove(&mut self, key: &Key) {
        if let Some(slot) = self.slots.remove(key) {
            self.bytes -= slot.bytes;
            self.by_use.remove(&slot.used);
            if let Some(keys) = self.ranges.get_mut(&key.0) {
                keys.retain(|k| k != key);
                if keys.is_empty() {
                    self.ranges.remove(&key.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etag() -> Option<String> {
        Some("e".into())
    }

    #[test]
    fn the_least_recently_used_goes_first_and_bytes_stay_bounded() {
        let cache: Lru<u32> = Lru::new(30, Duration::from_secs(60));
        for (i, name) in ["a", "b", "c"].iter().enumerate() {
            cache.put(key(name, None), i as u32, etag(), 10);
        }
        assert!(cache.get(&key("a", None)).unwrap().fresh);
        cache.put(key("d", None), 3, etag(), 10);
        assert!(cache.get(&key("b", None)).is_none());
        assert_eq!(cache.get(&key("a", None)).unwrap().value, 0);
        cache.put(key("big", None), 4, etag(), 31);
        assert!(cache.get(&key("big", None)).is_none());
        assert_eq!(cache.bytes(), 30);
    }

    #[test]
    fn a_written_object_is_forgotten_with_all_its_ranges() {
        let cache: Lru<u32> = Lru::new(100, Duration::ZERO);
        cache.put(key("a", Some(&(0..4))), 1, etag(), 4);
        cache.put(key("a", Some(&(4..8))), 2, etag(), 4);
        cache.put(key("b", None), 3, etag(), 4);
        assert!(!cache.get(&key("b", None)).unwrap().fresh);
        assert_eq!(cache.of("a").len(), 2);
        cache.forget("a");
        assert!(cache.of("a").is_empty());
        assert!(cache.get(&key("a", Some(&(4..8)))).is_none());
        assert_eq!(cache.bytes(), 4);
        cache.put(key("b/c", None), 3, etag(), 4);
        cache.forget_below("b/");
        assert_eq!(cache.bytes(), 4);
    }

    #[test]
    fn what_has_no_etag_is_not_kept() {
        let cache: Lru<u32> = Lru::new(100, Duration::ZERO);
        cache.put(key("a", None), 1, None, 4);
        assert!(cache.get(&key("a", None)).is_none());
    }
}
