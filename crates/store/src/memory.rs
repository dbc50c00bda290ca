//! A store in this process's memory.
//!
//! The reference for every other back end: a map under one lock, so each operation is atomic.
//! `memory://name` gives every caller in the process the same map; [`Memory::new`] gives a private
//! one.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;

use crate::key::{self, check_key, check_prefix};
use crate::traits::resolve_range;
use crate::{Body, Entry, Error, Get, Got, Listing, Meta, Put, Result, Store};

/// Entries per page of a list, as S3 has it.
const PAGE: usize = 1000;

/// A store in memory.
pub struct Memory {
    url: String,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Object>,
    writes: u64,
}

#[derive(Clone)]
struct Object {
    segments: Vec<Bytes>,
    meta: Meta,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({})", self.url)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// A new, empty store that nobody else can open.
    pub fn new() -> Self {
        Self::at("memory://".to_owned())
    }

    fn at(url: String) -> Self {
        Memory {
            url,
            state: RwLock::default(),
        }
    }

    /// The store that `memory://name` names in this process.
    pub fn shared(name: &str) -> Arc<Self> {
        static STORES: LazyLock<Mutex<HashMap<String, Arc<Memory>>>> =
            LazyLock::new(Mutex::default);
        let mut stores = crate::lock(&STORES);
        let new = || Arc::new(Memory::at(format!("memory://{name}")));
        Arc::clone(stores.entry(name.to_owned()).or_insert_with(new))
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn absent(&self, key: &str) -> Error {
        Error::not_found(format!("{}/{key} does not exist", self.url))
    }
}

#[async_trait]
impl Store for Memory {
    fn url(&self) -> &str {
        &self.url
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        check_key(key)?;
        let object = self
            .read(|state| state.objects.get(key).cloned())
            .ok_or_else(|| self.absent(key))?;
        let name = || format!("{}/{key}", self.url);
        if options.if_match.is_some() && options.if_match != object.meta.etag {
            return Err(Error::conflict(format!(
                "{} has changed since it was opened",
                name()
            )));
        }
        if options.if_none_match.is_some() && options.if_none_match == object.meta.etag {
            return Ok(Got::unchanged(object.meta));
        }
        let range = resolve_range(options.range.as_ref(), object.meta.size, name)?;
        let body = Body::Memory(slice(&object.segments, range.clone()));
        Ok(Got {
            meta: object.meta,
            range,
            body,
            not_modified: false,
        })
    }

    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        check_key(key)?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let now = state
            .objects
            .get(key)
            .and_then(|object| object.meta.etag.as_deref());
        match (&mode, now) {
            (Put::Create, Some(_)) => {
                return Err(Error::conflict(format!(
                    "{}/{key} exists already",
                    self.url
                )));
            }
            (Put::Update(expected), now) if now != Some(expected) => {
                return Err(Error::conflict(format!(
                    "{}/{key} has changed or is gone",
                    self.url
                )));
            }
            _ => {}
        }
        state.writes += 1;
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let meta = Meta {
            size: value.iter().map(|segment| segment.len() as u64).sum(),
            etag: Some(format!("\"{:x}\"", state.writes)),
            modified_ms: i64::try_from(since.as_millis()).ok(),
        };
        let object = Object {
            segments: value,
            meta: meta.clone(),
        };
        state.objects.insert(key.to_owned(), object);
        Ok(meta)
    }

    async fn delete(&self, key: &str) -> Result<()> {
        check_key(key)?;
        self.state
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .objects
            .remove(key);
        Ok(())
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        check_key(key)?;
        self.read(|state| state.objects.get(key).map(|object| object.meta.clone()))
            .ok_or_else(|| self.absent(key))
    }

    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        check_prefix(prefix)?;
        let start = match &page {
            Some(last) => Bound::Excluded(last.as_str()),
            None => Bound::Included(prefix),
        };
        let mut entries = self.read(|state| {
            let below = state.objects.range::<str, _>((start, Bound::Unbounded));
            below
                .take_while(|(key, _)| key.starts_with(prefix))
                .filter(|(key, _)| key::below(prefix, key).is_some())
                .take(PAGE + 1)
                .map(|(key, object)| Entry {
                    key: key.clone(),
                    meta: object.meta.clone(),
                })
                .collect::<Vec<_>>()
        });
        let more = entries.len() > PAGE;
        entries.truncate(PAGE);
        let next = entries
            .last()
            .filter(|_| more)
            .map(|entry| entry.key.clone());
        Ok((entries, next))
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        check_prefix(prefix)?;
        let mut listing = Listing::default();
        self.read(|state| {
            let below = state
                .objects
                .range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
            for (key, object) in below.take_while(|(key, _)| key.starts_with(prefix)) {
                match key::below(prefix, key).map(|rest| rest.split_once('/')) {
                    None => {}
                    Some(None) => {
                        listing.objects.push(Entry {
                            key: key.clone(),
                            meta: object.meta.clone(),
                        });
                    }
                    Some(Some((dir, _))) => listing.dirs.push(dir.to_owned()),
                }
            }
        });
        listing.dirs.sort();
        listing.dirs.dedup();
        Ok(listing)
    }
}

/// The bytes `range` of the concatenation of `segments`, without a copy.
fn slice(segments: &[Bytes], range: Range<u64>) -> Vec<Bytes> {
    let mut out = Vec::new();
    let mut start = 0;
    for segment in segments {
        let end = start + segment.len() as u64;
        let (from, to) = (range.start.max(start), range.end.min(end));
        if from < to {
            out.push(segment.slice((from - start) as usize..(to - start) as usize));
        }
        start = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slices_equal_slices_of_the_concatenation(
            segments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 0..5),
            a in 0u64..20,
            b in 0u64..20,
        ) {
            let all = segments.concat();
            let (a, b) = (a.min(all.len() as u64), b.min(all.len() as u64));
            let range = a.min(b)..a.max(b);
            let segments: Vec<_> = segments.into_iter().map(Bytes::from).collect();
            let out = slice(&segments, range.clone()).concat();
            prop_assert_eq!(&out[..], &all[range.start as usize..range.end as usize]);
        }
    }

    #[tokio::test]
    async fn shared_stores_are_shared_by_name() {
        let key = "only-here";
        Memory::shared("mem-a")
            .put(key, vec![], Put::Create)
            .await
            .unwrap();
        assert!(Memory::shared("mem-a").head(key).await.is_ok());
        assert!(
            Memory::shared("mem-b")
                .head(key)
                .await
                .unwrap_err()
                .is_not_found()
        );
    }
}
