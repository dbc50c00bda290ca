//! What every store promises, checked on one.
//!
//! Every check works below a prefix of its own, so that one store runs the suite many times over.
//! The checks follow the documentation of [`hyperslab_store::Store`], sentence by sentence.

mod conditions;
mod lists;
mod names;
mod races;
mod ranges;
mod values;

use bytes::Bytes;
use hyperslab_store::{Get, Put, StoreRef};

use crate::{Outcome, all, within};

/// How much of it: real servers are slow, memory is not.
#[derive(Debug, Clone, Copy)]
pub struct StoreScale {
    /// Keys in one directory, to be listed in pages.
    pub keys: usize,
    /// Bytes of the large value.
    pub large: usize,
    /// Increments of one counter by four tasks.
    pub increments: usize,
    /// How often 16 tasks race for one key.
    pub races: usize,
}

impl StoreScale {
    /// A few seconds on a quick store: more than two pages of keys.
    pub const FULL: StoreScale = StoreScale {
        keys: 2_345,
        large: 20 << 20,
        increments: 200,
        races: 20,
    };

    /// For servers that need milliseconds for a request: just more than one page.
    pub const SLOW: StoreScale = StoreScale {
        keys: 1_010,
        large: 20 << 20,
        increments: 200,
        races: 3,
    };

    /// For examples.
    pub const SMALL: StoreScale = StoreScale {
        keys: 30,
        large: 1 << 16,
        increments: 20,
        races: 1,
    };
}

/// Checks all that a store promises.
pub async fn store_suite(store: StoreRef) -> Outcome {
    store_suite_with(store, StoreScale::FULL).await
}

/// The same at another scale.
pub async fn store_suite_with(store: StoreRef, scale: StoreScale) -> Outcome {
    // One after another: a failure in one check does not hide those of the next.
    let checks = [
        within("values", values::check(&store, scale.large)).await,
        within("ranges", ranges::check(&store)).await,
        within("conditional reads", conditions::check_reads(&store)).await,
        within("conditional writes", conditions::check_writes(&store)).await,
        within("races to create", races::check_creates(&store, scale.races)).await,
        within("races to update", races::check_updates(&store, scale.races)).await,
        within(
            "increments",
            races::check_increments(&store, scale.increments),
        )
        .await,
        within("names", names::check(&store)).await,
        within("lists", lists::check(&store)).await,
        within("long lists", lists::check_pages(&store, scale.keys)).await,
    ];
    all(checks).map_err(|failure| failure.within(store.url()))
}

/// Writes a value whatever is there.
async fn put(store: &StoreRef, key: &str, value: impl Into<Bytes>) -> Outcome<String> {
    let meta = store.put(key, vec![value.into()], Put::Overwrite).await?;
    etag(meta.etag)
}

/// The bytes of an object.
async fn get(store: &StoreRef, key: &str) -> Outcome<Bytes> {
    Ok(store.get(key, Get::default()).await?.body.into_bytes()?)
}

/// Every store that is written to has ETags.
fn etag(etag: Option<String>) -> Outcome<String> {
    etag.ok_or_else(|| crate::Failure::new("the store gives no ETag"))
}

/// Every key below a prefix, over all pages, and the number of pages.
async fn list_all(store: &StoreRef, prefix: &str) -> Outcome<(Vec<(String, u64)>, usize)> {
    let (mut found, mut pages, mut token) = (Vec::new(), 0, None);
    loop {
        let (entries, next) = store.list(prefix, token).await?;
        pages += 1;
        found.extend(
            entries
                .into_iter()
                .map(|entry| (entry.key, entry.meta.size)),
        );
        crate::ensure(pages < 10_000, || {
            format!("the list of {prefix:?} does not end")
        })?;
        token = next;
        if token.is_none() {
            found.sort();
            return Ok((found, pages));
        }
    }
}
