//! The trait that every back end and every wrapper implements.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Body, Error, Result};

/// A place for objects: whole values under string keys.
///
/// Keys are `/`-separated, have no leading or trailing slash, and are relative to the prefix the
/// store was opened with. The empty key is invalid for objects and means "everything" for lists.
///
/// Small on purpose: behaviour that cuts across back ends (retry, limits, metering, latency,
/// faults) is a store that wraps a store, and options travel in structs so that the trait need
/// not grow.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// The URL this store was opened with, without credentials or options: for people and errors.
    fn url(&self) -> &str;

    /// Reads an object, or a range of it.
    ///
    /// An absent key is [`crate::ErrorKind::NotFound`]; a failed precondition is
    /// [`crate::ErrorKind::Conflict`]; a body shorter than promised is never returned as success.
    async fn get(&self, key: &str, options: Get) -> Result<Got>;

    /// Writes a whole object atomically: readers see the old value or the new one.
    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta>;

    /// Removes an object. Removing an absent key succeeds.
    async fn delete(&self, key: &str) -> Result<()>;

    /// What is known of an object without its bytes.
    async fn head(&self, key: &str) -> Result<Meta>;

    /// Every object whose key starts with `prefix` taken as a directory (`a` lists `a/b`, not `ab`),
    /// in pages, in no promised order. `page` is `None` first, then the token of the last page.
    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)>;

    /// The direct children of the directory `prefix`.
    async fn list_dir(&self, prefix: &str) -> Result<Listing>;
}

/// How to read an object.
#[derive(Debug, Clone, Default)]
pub struct Get {
    /// Which bytes; `None` reads the whole object.
    pub range: Option<GetRange>,
    /// Succeed only if the object's ETag is this one, else `Conflict`.
    pub if_match: Option<String>,
    /// Answer [`Got::not_modified`] with an empty body if the object's ETag is still this one.
    pub if_none_match: Option<String>,
}

/// Which bytes of an object to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GetRange {
    /// These bytes. A range that ends past the object's end is a `Data` error, not a short body.
    Bounded(Range<u64>),
    /// The first `n` bytes (all of them if the object is shorter).
    Prefix(u64),
    /// The last `n` bytes (all of them if the object is shorter).
    Suffix(u64),
}

/// What a read returned.
#[derive(Debug)]
pub struct Got {
    /// Size, ETag and time of the whole object.
    pub meta: Meta,
    /// Which bytes of the object [`Got::body`] holds.
    pub range: Range<u64>,
    /// The bytes.
    pub body: Body,
    /// True when `if_none_match` matched; the body is then empty.
    pub not_modified: bool,
}

impl Got {
    /// The answer to a read whose `if_none_match` matched.
    pub fn unchanged(meta: Meta) -> Self {
        Got {
            meta,
            range: 0..0,
            body: Body::default(),
            not_modified: true,
        }
    }
}

/// Which bytes of an object of `size` bytes a request means.
///
/// A range past the end is a `Data` error that names the object.
pub(crate) fn resolve_range(
    range: Option<&GetRange>,
    size: u64,
    name: impl FnOnce() -> String,
) -> Result<Range<u64>> {
    match range {
        None => Ok(0..size),
        Some(GetRange::Prefix(n)) => Ok(0..size.min(*n)),
        Some(GetRange::Suffix(n)) => Ok(size.saturating_sub(*n)..size),
        Some(GetRange::Bounded(range)) if range.end > size => Err(too_short(&name(), range, size)),
        Some(GetRange::Bounded(range)) => check_order(range).map(|()| range.clone()),
    }
}

/// Refuses a range that ends before it starts.
pub(crate) fn check_order(range: &Range<u64>) -> Result<()> {
    if range.start > range.end {
        return Err(Error::invalid(format!(
            "the byte range {}..{} ends before it starts",
            range.start, range.end
        )));
    }
    Ok(())
}

/// The error for a range that ends past the end of the object `name`.
pub(crate) fn too_short(name: &str, range: &Range<u64>, size: u64) -> Error {
    Error::data(format!(
        "{name} has {size} bytes, but bytes {}..{} were expected",
        range.start, range.end
    ))
    .with_hint("the object was cut short or replaced; restore or rewrite it")
}

/// What is known of an object without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// Bytes in the object.
    pub size: u64,
    /// The version tag by which conditional requests pin this state of the object.
    pub etag: Option<String>,
    /// Milliseconds since 1970, where the store tells.
    pub modified_ms: Option<i64>,
}

/// Under which condition to write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Put {
    /// Whatever is there.
    #[default]
    Overwrite,
    /// Only if the key is absent, else `Conflict`.
    Create,
    /// Only if the object's ETag is this one, else `Conflict` (also when it is gone).
    Update(String),
}

/// One object of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its size, ETag and time.
    pub meta: Meta,
}

/// The direct children of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Names of the sub-directories (last key component only), sorted.
    pub dirs: Vec<String>,
    /// Objects directly below, sorted by key.
    pub objects: Vec<Entry>,
}

/// A shared store, as the layers above pass it around.
pub type StoreRef = Arc<dyn Store>;
