//! The cache as one process sees it, against a naive model.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn cache(dir: &Path, bytes: u64) -> DiskCache {
    DiskCache::open(&DiskCacheOptions {
        dir: dir.to_owned(),
        bytes,
    })
    .unwrap()
}

fn name(object: u8) -> ObjectName {
    ObjectName::new("https://s", &format!("s3://b/{object}"), "")
}

/// The byte at an offset of one state of an object.
fn byte(object: u8, state: u8, at: u64) -> u8 {
    (at.wrapping_mul(31) + u64::from(object) * 7 + u64::from(state) * 101) as u8
}

fn part(object: u8, state: u8, range: &std::ops::Range<u64>) -> Part {
    let bytes: Bytes = range.clone().map(|at| byte(object, state, at)).collect();
    (range.start, vec![bytes])
}

fn on_disk(cache: &DiskCache) -> u64 {
    let files = cache.folder.files().unwrap();
    files.iter().map(|file| file.counted).sum()
}

/// Every byte that the cache holds of an object, by state.
fn held(cache: &DiskCache, object: u8) -> BTreeMap<String, BTreeMap<u64, u8>> {
    let mut held: BTreeMap<String, BTreeMap<u64, u8>> = BTreeMap::new();
    for entry in cache.entries(&name(object)) {
        let file = cache.use_file(&entry).unwrap();
        for range in entry.ranges() {
            let bytes = entry.read(&file, &range).unwrap().unwrap();
            assert_eq!(bytes.len() as u64, range.end - range.start);
            let of = held.entry(entry.head.etag.clone()).or_default();
            of.extend(range.zip(bytes));
        }
    }
    held
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8, Vec<std::ops::Range<u64>>),
    Forget(u8),
    Open,
}

fn step() -> impl Strategy<Value = Step> {
    let range = (0u64..900, 1u64..200).prop_map(|(start, len)| start..(start + len).min(1000));
    let ranges = proptest::collection::vec(range, 1..4);
    prop_oneof![
        20 => (0u8..3, 0u8..2, ranges).prop_map(|(object, state, mut ranges)| {
            // Fetched ranges are disjoint.
            ranges.sort_by_key(|r| r.start);
            ranges.dedup_by(|next, range| next.start < range.end);
            Step::Put(object, state, ranges)
        }),
        1 => (0u8..3).prop_map(Step::Forget),
        1 => Just(Step::Open),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// With room for all: what was put last of the last state is held, byte by byte.
    #[test]
    fn a_cache_holds_the_bytes_that_were_put(steps in proptest::collection::vec(step(), 1..60)) {
        let dir = tempfile::tempdir().unwrap();
        let mut cache = cache(dir.path(), 1 << 30);
        let mut model: BTreeMap<u8, (u8, BTreeSet<u64>)> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(object, state, ranges) => {
                    let parts = ranges.iter().map(|r| part(object, state, r)).collect();
                    cache.put(&name(object), &state.to_string(), 1000, parts);
                    let known = model.entry(object).or_insert((state, BTreeSet::new()));
                    if known.0 != state {
                        *known = (state, BTreeSet::new());
                    }
                    known.1.extend(ranges.into_iter().flatten());
                }
                Step::Forget(object) => {
                    cache.forget(&name(object));
                    model.remove(&object);
                }
                Step::Open => {
                    let bytes = 1 << 30;
                    let dir = dir.path().to_owned();
                    cache = DiskCache::open(&DiskCacheOptions { dir, bytes }).unwrap();
                }
            }
            for object in 0..3 {
                let expected: BTreeMap<String, BTreeMap<u64, u8>> = model
                    .get(&object)
                    .map(|(state, at)| {
                        let bytes = at.iter().map(|at| (*at, byte(object, *state, *at)));
                        (state.to_string(), bytes.collect())
                    })
                    .into_iter()
                    .collect();
                prop_assert_eq!(held(&cache, object), expected);
                prop_assert!(cache.entries(&name(object)).len() <= 17);
            }
        }
        let booked = cache.ledger.lock().unwrap().unwrap().total();
        prop_assert_eq!(booked, Some(on_disk(&cache)));
        prop_assert!(cache.trouble().is_none());
    }

    /// With little room: the bound holds after every step, and what is held is right.
    #[test]
    fn a_cache_keeps_its_bound(
        bound in 2u64..30,
        steps in proptest::collection::vec((0u8..20, 1u64..12_000), 1..60),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let bound = bound * counted(1);
        let cache = cache(dir.path(), bound);
        for (object, len) in steps {
            cache.put(&name(object), "e", 20_000, vec![part(object, 0, &(0..len))]);
            prop_assert!(on_disk(&cache) <= bound);
        }
        for object in 0..20 {
            for (at, found) in held(&cache, object).into_values().flatten() {
                prop_assert_eq!(found, byte(object, 0, at));
            }
        }
    }
}

#[test]
fn the_least_recently_used_goes_first() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path(), 10 * counted(1));
    for object in 0..10 {
        cache.put(&name(object), "e", 100, vec![part(object, 0, &(0..100))]);
        let entry = &cache.entries(&name(object))[0];
        let then = std::time::SystemTime::now() - Duration::from_secs(1000 - u64::from(object));
        let times = std::fs::FileTimes::new()
            .set_accessed(then)
            .set_modified(then);
        File::open(&entry.path).unwrap().set_times(times).unwrap();
    }
    // The oldest is used again.
    cache.use_file(&cache.entries(&name(0))[0]).unwrap();
    cache.put(&name(10), "e", 100, vec![part(10, 0, &(0..100))]);
    let left: Vec<u8> = (0..11)
        .filter(|object| !cache.entries(&name(*object)).is_empty())
        .collect();
    assert!(left.contains(&0) && left.contains(&10), "{left:?}");
    assert!(!left.contains(&1) && left.len() >= 8, "{left:?}");
}

#[test]
fn a_smaller_bound_shrinks_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let large = cache(dir.path(), 1 << 20);
    for object in 0..20 {
        large.put(&name(object), "e", 100, vec![part(object, 0, &(0..100))]);
    }
    assert_eq!(on_disk(&large), 20 * counted(1));
    assert!(on_disk(&cache(dir.path(), 5 * counted(1))) <= 5 * counted(1));
}

#[test]
fn what_dead_processes_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let first = cache(dir.path(), 1 << 20);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let new = first.folder.new_files();
    std::fs::write(new.join(format!("{dead}-1-1")), [0; 10]).unwrap();
    std::fs::write(new.join("nonsense"), [0; 10]).unwrap();
    std::fs::write(new.join(format!("{}-1-1", std::process::id())), [0; 10]).unwrap();
    cache(dir.path(), 1 << 20);
    assert_eq!(children(&new).unwrap().len(), 1);
}

#[test]
fn contents_are_listed_and_cleared() {
    let dir = tempfile::tempdir().unwrap();
    assert!(DiskCache::existing(dir.path()).unwrap_err().is_not_found());
    let cache = cache(dir.path(), 1 << 20);
    cache.put(&name(1), "e", 1000, vec![part(1, 0, &(0..100))]);
    cache.put(&name(1), "e", 1000, vec![part(1, 0, &(50..150))]);
    cache.put(&name(2), "f", 1000, vec![part(2, 0, &(0..1))]);
    let there = DiskCache::existing(dir.path()).unwrap();
    let listed = there.objects().unwrap();
    let brief: Vec<_> = listed.iter().map(|o| (&*o.url, &*o.etag, o.held)).collect();
    assert_eq!(brief, [("s3://b/1", "e", 150), ("s3://b/2", "f", 1)]);
    assert_eq!(there.clear().unwrap(), (3, 3 * counted(1)));
    assert!(there.objects().unwrap().is_empty());
    assert_eq!(cache.ledger.lock().unwrap().unwrap().total(), Some(0));
    cache.put(&name(1), "e", 1000, vec![part(1, 0, &(0..100))]);
    cache.forget_below("s3://b/");
    assert_eq!(on_disk(&cache), 0);
}

#[test]
fn a_folder_that_goes_away_is_one_warning() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("cache");
    let cache = cache(&inside, 1 << 20);
    // Emptied, it is used again; gone, it is not made anew.
    std::fs::remove_dir_all(cache.folder.new_files()).unwrap();
    cache.put(&name(1), "e", 1000, vec![part(1, 0, &(0..100))]);
    assert_eq!(held(&cache, 1).len(), 1);
    assert!(cache.trouble().is_none());
    std::fs::remove_dir_all(&inside).unwrap();
    assert!(held(&cache, 1).is_empty());
    cache.put(&name(1), "e", 1000, vec![part(1, 0, &(0..100))]);
    assert!(cache.trouble().unwrap().contains("cache"));
    assert!(!inside.exists());
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for (dir, bytes) in [
        (file.clone(), 10),
        (file.join("below"), 10),
        (dir.path().into(), 0),
    ] {
        let error = DiskCache::open(&DiskCacheOptions { dir, bytes }).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid, "{error}");
        assert!(error.hint().is_some());
    }
}
