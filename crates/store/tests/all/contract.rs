//! What every writable store promises, checked on memory, local disk, and both below a prefix.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_store::{ErrorKind, Get, GetRange, Local, Memory, Prefixed, Put, StoreRef};
use proptest::prelude::*;

/// Runs `check` on each back end.
async fn each<F: Future<Output = ()>>(check: impl Fn(StoreRef) -> F) {
    let dir = tempfile::tempdir().unwrap();
    check(Arc::new(Memory::new())).await;
    check(Arc::new(Local::new(dir.path().join("not/yet")).unwrap())).await;
    check(Arc::new(
        Prefixed::new(Arc::new(Memory::new()), "p/q r").unwrap(),
    ))
    .await;
    let local = Local::new(dir.path().join("other")).unwrap();
    check(Arc::new(Prefixed::new(Arc::new(local), "p/q r").unwrap())).await;
}

fn whole() -> Get {
    Get::default()
}

fn bounded(range: std::ops::Range<u64>) -> Get {
    Get {
        range: Some(GetRange::Bounded(range)),
        ..Get::default()
    }
}

fn suffix(n: u64) -> Get {
    Get {
        range: Some(GetRange::Suffix(n)),
        ..Get::default()
    }
}

fn value(text: &str) -> Vec<Bytes> {
    // In several segments, one of them empty.
    let bytes = Bytes::from(text.to_owned());
    let half = bytes.len() / 2;
    vec![bytes.slice(..half), Bytes::new(), bytes.slice(half..)]
}

async fn text(store: &StoreRef, key: &str, get: Get) -> String {
    let got = store.get(key, get).await.unwrap();
    assert_eq!(got.body.len(), got.range.end - got.range.start);
    String::from_utf8(got.body.into_bytes().unwrap().to_vec()).unwrap()
}

async fn kind(store: &StoreRef, key: &str, get: Get) -> ErrorKind {
    store.get(key, get).await.unwrap_err().kind()
}

async fn keys(store: &StoreRef, prefix: &str) -> Vec<String> {
    let (mut keys, mut page) = (Vec::new(), None);
    loop {
        let (entries, next) = store.list(prefix, page).await.unwrap();
        for entry in entries {
            // A list tells the same as a head.
            assert_eq!(entry.meta, store.head(&entry.key).await.unwrap());
            keys.push(entry.key);
        }
        page = next;
        if page.is_none() {
            keys.sort();
            return keys;
        }
    }
}

#[tokio::test]
async fn reads_return_what_was_asked_for() {
    each(|store| async move {
        let meta = store
            .put("a/b", value("0123456789"), Put::Create)
            .await
            .unwrap();
        assert_eq!(meta.size, 10);
        assert_eq!(text(&store, "a/b", whole()).await, "0123456789");
        assert_eq!(text(&store, "a/b", bounded(2..7)).await, "23456");
        assert_eq!(text(&store, "a/b", bounded(0..10)).await, "0123456789");
        assert_eq!(text(&store, "a/b", bounded(10..10)).await, "");
        assert_eq!(text(&store, "a/b", suffix(3)).await, "789");
        assert_eq!(text(&store, "a/b", suffix(0)).await, "");
        assert_eq!(text(&store, "a/b", suffix(99)).await, "0123456789");
        assert_eq!(store.get("a/b", suffix(3)).await.unwrap().range, 7..10);
        assert_eq!(store.get("a/b", suffix(3)).await.unwrap().meta, meta);
        assert_eq!(store.head("a/b").await.unwrap(), meta);
        for past in [0..11, 9..11, 11..11, 20..30] {
            assert_eq!(kind(&store, "a/b", bounded(past)).await, ErrorKind::Data);
        }
        #[expect(
            clippy::reversed_empty_ranges,
            reason = "that is what is to be refused"
        )]
        let backwards = 7..2;
        assert_eq!(
            kind(&store, "a/b", bounded(backwards)).await,
            ErrorKind::Invalid
        );

        store.put("empty", vec![], Put::Create).await.unwrap();
        assert_eq!(text(&store, "empty", whole()).await, "");
        assert_eq!(text(&store, "empty", suffix(5)).await, "");
    })
    .await;
}

#[tokio::test]
async fn absent_keys_are_not_found_and_deletes_are_idempotent() {
    each(|store| async move {
        assert_eq!(kind(&store, "a", whole()).await, ErrorKind::NotFound);
        assert!(store.head("a").await.unwrap_err().is_not_found());
        store.delete("a").await.unwrap();
        store.put("a/b", value("x"), Put::Overwrite).await.unwrap();
        assert_eq!(
            kind(&store, "a", whole()).await,
            ErrorKind::NotFound,
            "a directory is no object"
        );
        assert!(store.head("a").await.unwrap_err().is_not_found());
        assert_eq!(kind(&store, "a/b/c", whole()).await, ErrorKind::NotFound);
        store.delete("a").await.unwrap();
        store.delete("a/b/c").await.unwrap();
        assert_eq!(text(&store, "a/b", whole()).await, "x");
        store.delete("a/b").await.unwrap();
        store.delete("a/b").await.unwrap();
        assert_eq!(kind(&store, "a/b", whole()).await, ErrorKind::NotFound);
        assert!(keys(&store, "").await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn conditions_hold() {
    each(|store| async move {
        let first = store
            .put("k", value("one"), Put::Create)
            .await
            .unwrap()
            .etag
            .unwrap();
        let clash = store.put("k", value("two"), Put::Create).await.unwrap_err();
        assert_eq!(clash.kind(), ErrorKind::Conflict);
        let second = store
            .put("k", value("two"), Put::Update(first.clone()))
            .await
            .unwrap();
        let second = second.etag.unwrap();
        assert_ne!(first, second);
        let late = store
            .put("k", value("three"), Put::Update(first.clone()))
            .await
            .unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Conflict);
        assert_eq!(text(&store, "k", whole()).await, "two");

        let pinned = |tag: &str| Get {
            if_match: Some(tag.to_owned()),
            ..Get::default()
        };
        assert_eq!(text(&store, "k", pinned(&second)).await, "two");
        assert_eq!(kind(&store, "k", pinned(&first)).await, ErrorKind::Conflict);

        let newer = |tag: &str| Get {
            if_none_match: Some(tag.to_owned()),
            ..Get::default()
        };
        let same = store.get("k", newer(&second)).await.unwrap();
        assert!(same.not_modified && same.body.is_empty());
        assert!(!store.get("k", newer(&first)).await.unwrap().not_modified);

        store.delete("k").await.unwrap();
        let gone = store
            .put("k", value("four"), Put::Update(second))
            .await
            .unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::Conflict);
        assert!(store.head("k").await.unwrap_err().is_not_found());
    })
    .await;
}

#[tokio::test]
async fn lists_follow_directories() {
    each(|store| async move {
        for key in ["a/x", "a/y/z", "a/y/w", "ab/x", "b", "a.b/x"] {
            store.put(key, value(key), Put::Create).await.unwrap();
        }
        assert_eq!(
            keys(&store, "").await,
            ["a.b/x", "a/x", "a/y/w", "a/y/z", "ab/x", "b"]
        );
        assert_eq!(keys(&store, "a").await, ["a/x", "a/y/w", "a/y/z"]);
        assert_eq!(keys(&store, "a/y").await, ["a/y/w", "a/y/z"]);
        assert!(keys(&store, "b").await.is_empty());
        assert!(keys(&store, "no/such").await.is_empty());

        let top = store.list_dir("").await.unwrap();
        assert_eq!(top.dirs, ["a", "a.b", "ab"]);
        assert_eq!(
            top.objects.iter().map(|e| &*e.key).collect::<Vec<_>>(),
            ["b"]
        );
        let below = store.list_dir("a").await.unwrap();
        assert_eq!(below.dirs, ["y"]);
        assert_eq!(
            below.objects.iter().map(|e| &*e.key).collect::<Vec<_>>(),
            ["a/x"]
        );
        assert_eq!(store.list_dir("no/such").await.unwrap(), Default::default());
    })
    .await;
}

#[tokio::test]
async fn lists_of_many_objects_are_complete() {
    each(|store| async move {
        for i in 0..2500 {
            store
                .put(&format!("d/{i}"), vec![], Put::Create)
                .await
                .unwrap();
        }
        assert_eq!(keys(&store, "d").await.len(), 2500);
        assert_eq!(store.list_dir("d").await.unwrap().objects.len(), 2500);
    })
    .await;
}

#[tokio::test]
async fn odd_names_are_kept_exactly() {
    each(|store| async move {
        let mut odd = vec![
            "a b",
            "ü/日本",
            "100%",
            "%20",
            "a#b",
            "a?b",
            "a+b",
            "c:d",
            "~",
            "..x",
            "{}[]|\\^`\"<>",
        ];
        for key in &odd {
            store.put(key, value(key), Put::Create).await.unwrap();
        }
        for key in &odd {
            assert_eq!(text(&store, key, whole()).await, *key);
        }
        odd.sort();
        assert_eq!(keys(&store, "").await, odd);
        let long = "x".repeat(1025);
        for bad in [
            "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\nb", &long,
        ] {
            assert_eq!(
                kind(&store, bad, whole()).await,
                ErrorKind::Invalid,
                "{bad:?}"
            );
            let put = store.put(bad, vec![], Put::Overwrite).await;
            assert_eq!(put.unwrap_err().kind(), ErrorKind::Invalid, "{bad:?}");
            assert_eq!(
                store.delete(bad).await.unwrap_err().kind(),
                ErrorKind::Invalid
            );
            assert_eq!(
                store.head(bad).await.unwrap_err().kind(),
                ErrorKind::Invalid
            );
        }
        assert_eq!(
            store.list("a//b", None).await.unwrap_err().kind(),
            ErrorKind::Invalid
        );
        assert_eq!(
            store.list_dir("..").await.unwrap_err().kind(),
            ErrorKind::Invalid
        );
    })
    .await;
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Put(usize, Vec<u8>),
    Create(usize, Vec<u8>),
    Update(usize, Vec<u8>),
    StaleUpdate(usize, Vec<u8>),
    Delete(usize),
    Read(usize, std::ops::Range<u64>),
}

/// Some are parents of others' directories, but none is both an object and a directory.
const KEYS: [&str; 4] = ["a", "b/c", "b/d/e", "b/d/f"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..KEYS.len();
    let value = || prop::collection::vec(any::<u8>(), 0..6);
    let step = prop_oneof![
        (key.clone(), value()).prop_map(|(k, v)| Step::Put(k, v)),
        (key.clone(), value()).prop_map(|(k, v)| Step::Create(k, v)),
        (key.clone(), value()).prop_map(|(k, v)| Step::Update(k, v)),
        (key.clone(), value()).prop_map(|(k, v)| Step::StaleUpdate(k, v)),
        key.clone().prop_map(Step::Delete),
        (key, 0u64..8, 0u64..8).prop_map(|(k, a, b)| Step::Read(k, a.min(b)..a.max(b))),
    ];
    prop::collection::vec(step, 1..40)
}

/// Replays a history on a store and on a map, which must agree at every step.
async fn agree(store: StoreRef, steps: Vec<Step>) {
    let mut model: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut past: Vec<String> = Vec::new();
    for step in steps {
        let (key, wrote) = match &step {
            Step::Put(k, v) => {
                model.insert(KEYS[*k], v.clone());
                (
                    *k,
                    Some(
                        store
                            .put(KEYS[*k], vec![v.clone().into()], Put::Overwrite)
                            .await
                            .unwrap(),
                    ),
                )
            }
            Step::Create(k, v) => {
                let result = store
                    .put(KEYS[*k], vec![v.clone().into()], Put::Create)
                    .await;
                assert_eq!(result.is_ok(), !model.contains_key(KEYS[*k]), "{step:?}");
                model.entry(KEYS[*k]).or_insert(v.clone());
                (*k, result.ok())
            }
            Step::Update(k, v) => {
                let Ok(now) = store.head(KEYS[*k]).await else {
                    continue;
                };
                let mode = Put::Update(now.etag.unwrap());
                model.insert(KEYS[*k], v.clone());
                (
                    *k,
                    Some(
                        store
                            .put(KEYS[*k], vec![v.clone().into()], mode)
                            .await
                            .unwrap(),
                    ),
                )
            }
            Step::StaleUpdate(k, v) => {
                let now = store.head(KEYS[*k]).await.ok().and_then(|meta| meta.etag);
                for old in past.iter().filter(|old| Some(*old) != now.as_ref()) {
                    let mode = Put::Update(old.clone());
                    let e = store
                        .put(KEYS[*k], vec![v.clone().into()], mode)
                        .await
                        .unwrap_err();
                    assert_eq!(e.kind(), ErrorKind::Conflict);
                }
                (*k, None)
            }
            Step::Delete(k) => {
                model.remove(KEYS[*k]);
                store.delete(KEYS[*k]).await.unwrap();
                (*k, None)
            }
            Step::Read(k, range) => {
                let got = store.get(KEYS[*k], bounded(range.clone())).await;
                let (from, to) = (range.start as usize, range.end as usize);
                match model.get(KEYS[*k]) {
                    None => assert!(got.unwrap_err().is_not_found()),
                    Some(v) if to > v.len() => assert_eq!(got.unwrap_err().kind(), ErrorKind::Data),
                    Some(v) => {
                        let body = got.unwrap().body.into_bytes().unwrap();
                        assert_eq!(body, v[from..to], "{step:?}");
                    }
                }
                (*k, None)
            }
        };
        if let Some(meta) = wrote {
            assert_eq!(meta.size, model[KEYS[key]].len() as u64);
            let etag = meta.etag.unwrap();
            assert!(!past.contains(&etag), "an ETag came back");
            past.push(etag);
        }
        assert_eq!(
            keys(&store, "").await,
            model.keys().copied().collect::<Vec<_>>()
        );
    }
    for (key, value) in model {
        let body = store.get(key, whole()).await.unwrap().body;
        assert_eq!(body.into_bytes().unwrap(), value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_agrees_with_a_map(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(each(|store| agree(store, steps.clone())));
    }
}
