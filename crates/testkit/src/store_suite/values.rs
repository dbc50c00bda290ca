//! Whole values: written, read, replaced, removed.

use bytes::Bytes;
use hyperslab_store::{ErrorKind, Get, Put, StoreRef};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use super::{etag, get, put};
use crate::{Outcome, ensure, fails, same};

pub(super) async fn check(store: &StoreRef, large: usize) -> Outcome {
    let key = "values/a";
    store.delete(key).await?;
    fails(
        "get of an absent key",
        store.get(key, Get::default()).await,
        ErrorKind::NotFound,
    )?;
    fails(
        "head of an absent key",
        store.head(key).await,
        ErrorKind::NotFound,
    )?;
    let deep = "values/no/such/directory/x";
    fails(
        "get below an absent directory",
        store.get(deep, Get::default()).await,
        ErrorKind::NotFound,
    )?;

    let first = put(store, key, "one").await?;
    same("the value", get(store, key).await?, Bytes::from("one"))?;
    let got = store.get(key, Get::default()).await?;
    same("size", got.meta.size, 3)?;
    same("range", got.range.clone(), 0..3)?;
    same("body length", got.body.len(), 3)?;
    ensure(!got.not_modified, || {
        "an unconditional read says that nothing changed".into()
    })?;
    same(
        "the ETag of get and put",
        etag(got.meta.etag)?,
        first.clone(),
    )?;
    let head = store.head(key).await?;
    same("size by head", head.size, 3)?;
    same("the ETag of head and put", etag(head.etag)?, first.clone())?;
    ensure(
        head.modified_ms.is_none_or(|ms| ms > 1_500_000_000_000),
        || {
            format!(
                "the time {:?} is not in milliseconds since 1970",
                head.modified_ms
            )
        },
    )?;

    let segments = ["seg", "", "ments"].map(Bytes::from).to_vec();
    let second = etag(store.put(key, segments, Put::Overwrite).await?.etag)?;
    ensure(first != second, || {
        format!("two values have the ETag {first}")
    })?;
    same(
        "the replaced value",
        get(store, key).await?,
        Bytes::from("segments"),
    )?;

    put(store, "values/empty", "").await?;
    let empty = store.get("values/empty", Get::default()).await?;
    same("size of the empty value", empty.meta.size, 0)?;
    same("the empty value", empty.body.into_bytes()?, Bytes::new())?;
    same(
        "size of the empty value by head",
        store.head("values/empty").await?.size,
        0,
    )?;

    store.delete(key).await?;
    fails(
        "get after delete",
        store.get(key, Get::default()).await,
        ErrorKind::NotFound,
    )?;
    store.delete(key).await?;
    store.delete("values/never/there").await?;
    check_large(store, large).await?;
    check_bad_keys(store).await
}

async fn check_large(store: &StoreRef, large: usize) -> Outcome {
    let mut bytes = vec![0; large];
    StdRng::seed_from_u64(7).fill_bytes(&mut bytes);
    let bytes = Bytes::from(bytes);
    let third = large / 3;
    let segments = vec![bytes.slice(..third), bytes.slice(third..)];
    store.put("values/large", segments, Put::Overwrite).await?;
    let found = get(store, "values/large").await?;
    ensure(found == bytes, || {
        format!("a value of {large} bytes came back changed")
    })?;
    store.delete("values/large").await?;
    Ok(())
}

/// Names that no store takes alike are refused by all of them.
async fn check_bad_keys(store: &StoreRef) -> Outcome {
    for key in ["", "/a", "a/", "a//b", "a/../b", ".", "a\nb"] {
        let what = format!("the key {key:?}");
        fails(
            &what,
            store.get(key, Get::default()).await,
            ErrorKind::Invalid,
        )?;
        fails(
            &what,
            store.put(key, vec![], Put::Overwrite).await,
            ErrorKind::Invalid,
        )?;
        fails(&what, store.delete(key).await, ErrorKind::Invalid)?;
    }
    Ok(())
}
