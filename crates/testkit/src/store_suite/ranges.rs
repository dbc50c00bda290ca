//! Ranges of values: exactly the bytes that were asked for, or an error.

use std::ops::Range;

use bytes::Bytes;
use hyperslab_store::{ErrorKind, Get, GetRange, StoreRef};

use super::put;
use crate::{Outcome, fails, same};

const SIZE: u64 = 1000;

pub(super) async fn check(store: &StoreRef) -> Outcome {
    let value: Vec<u8> = (0..SIZE).map(|i| (i * 7 % 251) as u8).collect();
    put(store, "ranges/value", value.clone()).await?;
    put(store, "ranges/empty", "").await?;

    for range in [
        0..1,
        0..SIZE,
        10..20,
        SIZE - 1..SIZE,
        0..0,
        5..5,
        SIZE..SIZE,
    ] {
        check_one(store, &value, GetRange::Bounded(range.clone()), range).await?;
    }
    for suffix in [0, 1, 17, SIZE, SIZE + 1, 10 * SIZE] {
        let expected = SIZE.saturating_sub(suffix)..SIZE;
        check_one(store, &value, GetRange::Suffix(suffix), expected).await?;
    }
    for prefix in [0, 1, 17, SIZE, SIZE + 1, 10 * SIZE] {
        let expected = 0..SIZE.min(prefix);
        check_one(store, &value, GetRange::Prefix(prefix), expected).await?;
    }
    for range in [
        0..SIZE + 1,
        SIZE - 1..SIZE + 1,
        SIZE..SIZE + 1,
        5 * SIZE..6 * SIZE,
    ] {
        let what = format!("bytes {range:?} of {SIZE}");
        let error = fails(
            &what,
            read(store, "ranges/value", GetRange::Bounded(range)).await,
            ErrorKind::Data,
        )?;
        crate::ensure(error.message().contains("ranges/value"), || {
            format!("{what}: the error does not name the object: {error}")
        })?;
    }
    let reversed = Range { start: 20, end: 10 };
    fails(
        "a range that ends before it starts",
        read(store, "ranges/value", GetRange::Bounded(reversed)).await,
        ErrorKind::Invalid,
    )?;

    check_empty(store).await?;
    for range in [
        GetRange::Bounded(0..1),
        GetRange::Bounded(0..0),
        GetRange::Prefix(4),
        GetRange::Suffix(4),
    ] {
        let what = format!("{range:?} of an absent key");
        fails(
            &what,
            read(store, "ranges/absent", range).await,
            ErrorKind::NotFound,
        )?;
    }
    Ok(())
}

async fn check_empty(store: &StoreRef) -> Outcome {
    for range in [
        GetRange::Prefix(4),
        GetRange::Prefix(0),
        GetRange::Suffix(4),
        GetRange::Suffix(0),
        GetRange::Bounded(0..0),
    ] {
        let what = format!("{range:?} of an empty value");
        same(
            &what,
            read(store, "ranges/empty", range).await?,
            (Bytes::new(), 0..0, 0),
        )?;
    }
    let beyond = read(store, "ranges/empty", GetRange::Bounded(0..1)).await;
    fails("bytes 0..1 of an empty value", beyond, ErrorKind::Data).map(drop)
}

async fn check_one(
    store: &StoreRef,
    value: &[u8],
    range: GetRange,
    expected: Range<u64>,
) -> Outcome {
    let what = format!("{range:?} of {SIZE} bytes");
    let bytes = Bytes::copy_from_slice(&value[expected.start as usize..expected.end as usize]);
    same(
        &what,
        read(store, "ranges/value", range).await?,
        (bytes, expected, SIZE),
    )
}

/// The bytes, which ones they are, and the size of the whole object.
async fn read(
    store: &StoreRef,
    key: &str,
    range: GetRange,
) -> hyperslab_store::Result<(Bytes, Range<u64>, u64)> {
    let got = store
        .get(
            key,
            Get {
                range: Some(range),
                ..Get::default()
            },
        )
        .await?;
    Ok((got.body.into_bytes()?, got.range, got.meta.size))
}
