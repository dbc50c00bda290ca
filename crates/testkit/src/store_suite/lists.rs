//! Lists: directories end where their name ends, and pages lose nothing.

use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_store::StoreRef;

use super::{list_all, put};
use crate::{Outcome, ensure, same};

pub(super) async fn check(store: &StoreRef) -> Outcome {
    let keys = [
        "lists/a/1",
        "lists/a/2",
        "lists/a/b/3",
        "lists/ab/4",
        "lists/a.c",
        "lists/b",
        "lists/a/b/c/5",
    ];
    for key in keys {
        put(store, key, "12345").await?;
    }
    let names = async |prefix: &str| -> Outcome<Vec<String>> {
        Ok(list_all(store, prefix)
            .await?
            .0
            .into_iter()
            .map(|(key, _)| key)
            .collect())
    };
    let below = |prefix: &str| {
        let mut found: Vec<String> = keys
            .iter()
            .filter(|key| key.starts_with(prefix))
            .map(|key| (*key).to_owned())
            .collect();
        found.sort();
        found
    };
    same("list of lists", names("lists").await?, below("lists/"))?;
    same(
        "list of a, which is not ab",
        names("lists/a").await?,
        below("lists/a/"),
    )?;
    same(
        "list of a/b",
        names("lists/a/b").await?,
        below("lists/a/b/"),
    )?;
    same("list of an object", names("lists/b").await?, Vec::new())?;
    same(
        "list of an absent directory",
        names("lists/absent").await?,
        Vec::new(),
    )?;
    let (whole, _) = list_all(store, "").await?;
    ensure(
        keys.iter()
            .all(|key| whole.iter().any(|(found, size)| found == key && *size == 5)),
        || format!("the list of everything lacks some of {keys:?}"),
    )?;

    let listing = store.list_dir("lists").await?;
    same(
        "directories",
        listing.dirs,
        vec!["a".to_owned(), "ab".to_owned()],
    )?;
    let objects: Vec<(String, u64)> = listing
        .objects
        .into_iter()
        .map(|entry| (entry.key, entry.meta.size))
        .collect();
    same(
        "objects",
        objects,
        vec![("lists/a.c".to_owned(), 5), ("lists/b".to_owned(), 5)],
    )?;
    let absent = store.list_dir("lists/absent").await?;
    ensure(absent.dirs.is_empty() && absent.objects.is_empty(), || {
        format!("an absent directory has children: {absent:?}")
    })?;
    let root = store.list_dir("").await?;
    ensure(root.dirs.contains(&"lists".to_owned()), || {
        format!("the root lacks lists: {:?}", root.dirs)
    })
}

/// More keys than one page holds.
pub(super) async fn check_pages(store: &StoreRef, many: usize) -> Outcome {
    let key = |i: usize| format!("pages/{}/{i:06}", i % 3);
    let writes = (0..many).map(|i| async move { put(store, &key(i), "x").await });
    stream::iter(writes)
        .buffer_unordered(32)
        .try_collect::<Vec<_>>()
        .await?;
    let mut expected: Vec<(String, u64)> = (0..many).map(|i| (key(i), 1)).collect();
    expected.sort();
    let (found, pages) = list_all(store, "pages").await?;
    ensure(found == expected, || {
        format!(
            "{} keys are listed in {pages} pages, expected {many}",
            found.len()
        )
    })?;
    let listing = store.list_dir("pages/0").await?;
    same(
        "children of a long directory",
        listing.objects.len(),
        many.div_ceil(3),
    )?;
    let sorted = listing.objects.is_sorted_by(|a, b| a.key < b.key);
    ensure(sorted, || {
        "the children of a long directory are not sorted".into()
    })?;
    let removals = expected.iter().map(|(key, _)| store.delete(key));
    stream::iter(removals)
        .buffer_unordered(32)
        .try_collect::<Vec<_>>()
        .await?;
    same(
        "keys after all were removed",
        list_all(store, "pages").await?.0.len(),
        0,
    )
}
