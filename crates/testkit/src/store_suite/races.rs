//! Conditional writes by many tasks at once: of each race there is one winner, and nothing is lost.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::future::{join_all, try_join_all};
use hyperslab_store::{ErrorKind, Get, Put, StoreRef};

use super::{etag, get, put};
use crate::{Failure, Outcome, ensure, same};

/// Tasks in a race.
const RACERS: usize = 16;
/// Tasks that increment one counter.
const COUNTERS: usize = 4;

pub(super) async fn check_creates(store: &StoreRef, races: usize) -> Outcome {
    for race in 0..races {
        let key = format!("races/create-{race}");
        store.delete(&key).await?;
        one_wins(store, &key, Put::Create).await?;
    }
    Ok(())
}

pub(super) async fn check_updates(store: &StoreRef, races: usize) -> Outcome {
    for race in 0..races {
        let key = format!("races/update-{race}");
        let before = put(store, &key, "before").await?;
        one_wins(store, &key, Put::Update(before)).await?;
    }
    Ok(())
}

/// Of tasks that write under the same condition exactly one succeeds, and its value stays.
async fn one_wins(store: &StoreRef, key: &str, mode: Put) -> Outcome {
    let racers = (0..RACERS).map(|racer| {
        let (store, key, mode) = (store.clone(), key.to_owned(), mode.clone());
        tokio::spawn(async move {
            let value = vec![Bytes::from(format!("racer {racer}"))];
            store.put(&key, value, mode).await
        })
    });
    let mut winners = Vec::new();
    for (racer, result) in join_all(racers).await.into_iter().enumerate() {
        match result? {
            Ok(meta) => winners.push((racer, etag(meta.etag)?)),
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            Err(e) => return Err(Failure::from(e).within(format!("{mode:?}, racer {racer}"))),
        }
    }
    let [(winner, tag)] = winners.as_slice() else {
        return Err(Failure::new(format!(
            "{mode:?} of {RACERS} tasks: the winners are {winners:?}"
        )));
    };
    let got = store.get(key, Get::default()).await?;
    same("the winner's ETag", etag(got.meta.etag)?, tag.clone())?;
    same(
        "the winner's value",
        got.body.into_bytes()?,
        Bytes::from(format!("racer {winner}")),
    )
}

/// Tasks that read, add one and write under the condition that nobody else did.
pub(super) async fn check_increments(store: &StoreRef, increments: usize) -> Outcome {
    let key = "races/counter";
    put(store, key, "0").await?;
    let tasks = (0..COUNTERS).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { count(&store, key, increments / COUNTERS).await })
    });
    let mut seen = BTreeSet::new();
    for wrote in try_join_all(tasks).await? {
        for number in wrote? {
            ensure(seen.insert(number), || {
                format!("two tasks both counted to {number}")
            })?;
        }
    }
    let expected = increments / COUNTERS * COUNTERS;
    same(
        "the counter",
        get(store, key).await?,
        Bytes::from(expected.to_string()),
    )
}

/// Adds one so many times; the numbers that this task wrote.
async fn count(store: &StoreRef, key: &str, times: usize) -> Outcome<Vec<u64>> {
    let mut wrote = Vec::new();
    let mut attempts = 0;
    while wrote.len() < times {
        attempts += 1;
        ensure(attempts < 1000 * times, || "a task starves".into())?;
        let got = store.get(key, Get::default()).await?;
        let tag = etag(got.meta.etag)?;
        let next = std::str::from_utf8(&got.body.into_bytes()?)?.parse::<u64>()? + 1;
        match store
            .put(key, vec![Bytes::from(next.to_string())], Put::Update(tag))
            .await
        {
            Ok(_) => wrote.push(next),
            Err(e) if e.kind() == ErrorKind::Conflict => tokio::task::yield_now().await,
            Err(e) => return Err(e.into()),
        }
    }
    Ok(wrote)
}
