//! Odd names: a key comes back from every operation as it went in, and no two share an object.

use bytes::Bytes;
use hyperslab_store::{ErrorKind, Put, StoreRef};

use super::{get, list_all, put};
use crate::{Failure, Outcome, fails, same};

const NAMES: &[&str] = &[
    "with space",
    " leading and trailing ",
    "per%cent",
    "per%20cent",
    "per cent",
    "plus+plus",
    "hash#tag",
    "question?mark=1&x=2",
    "grüße/žluťoučký/日本語/🦀",
    "e\u{301}-decomposed",
    "é-composed",
    "quote'\"`",
    "brackets[0](1){2}<3>",
    "semi;colon,comma:at@dollar$",
    "tilde~caret^pipe|star*",
    "dots...",
    ".hidden",
    "UPPER/lower",
    "upper/LOWER",
    "c/0/0",
    "c.0.0",
];

pub(super) async fn check(store: &StoreRef) -> Outcome {
    // A component may have 255 bytes on local disks; the whole key up to 1024 with its prefix.
    let long = format!("{}/{}", "l".repeat(200), "o".repeat(200));
    let names: Vec<&str> = NAMES.iter().copied().chain([long.as_str()]).collect();
    for name in &names {
        let key = format!("names/{name}");
        let named = |failure: Failure| failure.within(format!("{key:?}"));
        put(store, &key, (*name).to_owned()).await.map_err(named)?;
    }
    for name in &names {
        let key = format!("names/{name}");
        let named = |failure: Failure| failure.within(format!("{key:?}"));
        same(
            "value",
            get(store, &key).await.map_err(named)?,
            Bytes::copy_from_slice(name.as_bytes()),
        )
        .map_err(named)?;
        let size = store.head(&key).await.map_err(|e| named(e.into()))?.size;
        same("size", size, name.len() as u64).map_err(named)?;
    }
    let mut expected: Vec<(String, u64)> = names
        .iter()
        .map(|name| (format!("names/{name}"), name.len() as u64))
        .collect();
    expected.sort();
    same("the list", list_all(store, "names").await?.0, expected)?;
    check_dirs(store, &names).await?;
    check_backslash(store).await?;
    for name in &names {
        let key = format!("names/{name}");
        store.delete(&key).await?;
        fails(&key, store.head(&key).await, ErrorKind::NotFound)?;
    }
    same(
        "the list after all were removed",
        list_all(store, "names").await?.0,
        Vec::new(),
    )
}

async fn check_dirs(store: &StoreRef, names: &[&str]) -> Outcome {
    let mut dirs: Vec<String> = names
        .iter()
        .filter_map(|name| Some(name.split_once('/')?.0.to_owned()))
        .collect();
    dirs.sort();
    dirs.dedup();
    let mut objects: Vec<String> = names
        .iter()
        .filter(|name| !name.contains('/'))
        .map(|name| format!("names/{name}"))
        .collect();
    objects.sort();
    let listing = store.list_dir("names").await?;
    same("the directories", listing.dirs, dirs)?;
    let found: Vec<String> = listing.objects.into_iter().map(|entry| entry.key).collect();
    same("the objects of the directory", found, objects)
}

/// Azure takes a backslash for a slash. A store keeps such a name or refuses it; it never stores
/// the object under another.
async fn check_backslash(store: &StoreRef) -> Outcome {
    let key = "slashes/back\\slash";
    match store.put(key, vec![Bytes::from("x")], Put::Overwrite).await {
        Err(e) if e.kind() == ErrorKind::Invalid => return Ok(()),
        other => other?,
    };
    let listed = list_all(store, "slashes").await?.0;
    store.delete(key).await?;
    same(
        "the list of a name with a backslash",
        listed,
        vec![(key.to_owned(), 1)],
    )
}
