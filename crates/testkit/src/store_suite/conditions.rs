//! Conditional reads and writes, one at a time.

use bytes::Bytes;
use hyperslab_store::{ErrorKind, Get, GetRange, Put, StoreRef};

use super::{etag, get, put};
use crate::{Outcome, ensure, fails, same};

pub(super) async fn check_reads(store: &StoreRef) -> Outcome {
    let key = "conditions/read";
    let old = put(store, key, "old value").await?;
    let pinned = |etag: &str, range| Get {
        range,
        if_match: Some(etag.to_owned()),
        ..Get::default()
    };
    let unless = |etag: &str| Get {
        if_none_match: Some(etag.to_owned()),
        ..Get::default()
    };

    let got = store.get(key, pinned(&old, None)).await?;
    same(
        "a pinned read",
        got.body.into_bytes()?,
        Bytes::from("old value"),
    )?;
    for range in [GetRange::Bounded(4..9), GetRange::Suffix(5)] {
        let got = store.get(key, pinned(&old, Some(range))).await?;
        same(
            "a pinned range",
            got.body.into_bytes()?,
            Bytes::from("value"),
        )?;
    }
    let got = store.get(key, unless(&old)).await?;
    ensure(got.not_modified && got.body.is_empty(), || {
        format!("an unchanged object was sent again: {got:?}")
    })?;

    let new = put(store, key, "new one").await?;
    fails(
        "a pinned read of a replaced object",
        store.get(key, pinned(&old, None)).await,
        ErrorKind::Conflict,
    )?;
    for range in [
        GetRange::Bounded(0..2),
        GetRange::Suffix(2),
        GetRange::Bounded(0..0),
    ] {
        let what = format!("a pinned {range:?} of a replaced object");
        fails(
            &what,
            store.get(key, pinned(&old, Some(range))).await,
            ErrorKind::Conflict,
        )?;
    }
    let got = store.get(key, unless(&old)).await?;
    ensure(!got.not_modified, || {
        "a changed object is said to be unchanged".into()
    })?;
    same(
        "a changed object",
        got.body.into_bytes()?,
        Bytes::from("new one"),
    )?;
    same("its ETag", etag(got.meta.etag)?, new)
}

pub(super) async fn check_writes(store: &StoreRef) -> Outcome {
    let key = "conditions/write";
    store.delete(key).await?;
    let value = |text: &'static str| vec![Bytes::from(text)];
    let absent = store
        .put(key, value("x"), Put::Update("\"no-such-etag\"".into()))
        .await;
    fails("an update of an absent key", absent, ErrorKind::Conflict)?;
    fails(
        "get after a failed update",
        store.get(key, Get::default()).await,
        ErrorKind::NotFound,
    )?;

    let first = etag(store.put(key, value("first"), Put::Create).await?.etag)?;
    fails(
        "a second create",
        store.put(key, value("x"), Put::Create).await,
        ErrorKind::Conflict,
    )?;
    same(
        "after a failed create",
        get(store, key).await?,
        Bytes::from("first"),
    )?;

    let second = etag(
        store
            .put(key, value("second"), Put::Update(first.clone()))
            .await?
            .etag,
    )?;
    ensure(first != second, || {
        format!("two values have the ETag {first}")
    })?;
    let stale = store.put(key, value("x"), Put::Update(first.clone())).await;
    fails("an update with an old ETag", stale, ErrorKind::Conflict)?;
    same(
        "after a failed update",
        get(store, key).await?,
        Bytes::from("second"),
    )?;

    store.delete(key).await?;
    let gone = store.put(key, value("x"), Put::Update(second)).await;
    fails("an update of a removed key", gone, ErrorKind::Conflict)?;
    store.put(key, value("again"), Put::Create).await?;
    same(
        "a create after delete",
        get(store, key).await?,
        Bytes::from("again"),
    )
}
