//! Rechunking: any layout to any other, killed anywhere, in place, and what it refuses.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperslab::store::{Faults, Faulty, Get, StoreRef};
use hyperslab::{
    Array, ArraySpec, Compression, ErrorKind, RechunkOptions, Rechunked, Result, Selection,
    Session, block_on, rechunk, rechunk_in_place,
};
use proptest::prelude::*;

use crate::{fresh, spec};

fn options(memory: u64) -> RechunkOptions {
    RechunkOptions {
        memory,
        verify: true,
        ..RechunkOptions::default()
    }
}

/// What is in flight depends on the cores.
fn two_cores() -> Session {
    Session::new(hyperslab::Options {
        cores: 2,
        ..hyperslab::Options::default()
    })
}

fn counting(cells: u64) -> Vec<u8> {
    (0..cells).flat_map(|i| (i as u16).to_le_bytes()).collect()
}

/// An array of counting 16-bit numbers.
fn counted(session: &Session, url: &str, shape: &[u64], spec: ArraySpec) -> Array {
    let array = block_on(session.create_array(url, spec, false)).unwrap();
    let cells = counting(shape.iter().product());
    block_on(array.write(&Selection::All, cells)).unwrap();
    array
}

/// All objects below a store, but for what writes that were killed left behind.
async fn objects(store: &StoreRef) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut all = BTreeMap::new();
    for entry in store.list("", None).await?.0 {
        let got = store.get(&entry.key, Get::default()).await?;
        all.insert(entry.key, got.body.into_bytes()?.to_vec());
    }
    Ok(all)
}

fn layout() -> impl Strategy<Value = (Vec<u64>, Vec<u64>, Vec<u64>, bool, bool, bool)> {
    (1usize..=3).prop_flat_map(|rank| {
        let sides = |most| prop::collection::vec(1u64..=most, rank);
        (
            sides(12),
            sides(9),
            sides(5),
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_layout_becomes_every_other(
        (shape, from, to, raw, sharded, on_disk) in layout(),
        memory in prop::sample::select(vec![400u64, 1000, 3000, 20_000, 1 << 24]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let base = match on_disk {
            true => dir.path().display().to_string(),
            false => fresh(),
        };
        let session = two_cores();
        let mut source = spec(&shape, "u2");
        source.chunks = Some(from);
        if raw {
            source.compression = Compression::None;
        }
        let array = counted(&session, &format!("{base}/a.zarr/x"), &shape, source);
        let mut target = spec(&shape, "u2");
        target.chunks = Some(to.clone());
        target.order = Some((0..shape.len()).rev().collect());
        if sharded {
            target.shards = Some(to.iter().map(|side| side * 2).collect());
        }
        let url = format!("{base}/b.zarr/y/z");
        match block_on(rechunk(&array, &url, target, &options(memory), &())) {
            Ok((made, done)) => {
                prop_assert!(done.source_reads <= 2 && done.planned_memory <= memory, "{:?}", done);
                let read = block_on(made.read(&Selection::All)).unwrap();
                prop_assert_eq!(read, counting(shape.iter().product()));
                let opened = block_on(session.open_array(&url)).unwrap();
                prop_assert_eq!(opened.meta(), made.meta());
            }
            Err(e) => {
                prop_assert_eq!(e.kind(), ErrorKind::Invalid, "{}", e);
                prop_assert!(memory < 20_000, "{}", e);
                prop_assert!(block_on(session.open(&url)).is_err());
            }
        }
    }
}

/// A session whose store at `url` dies at a request; `None` never does.
fn dying(url: &str, store: &StoreRef, kill_at: Option<u64>, loses: bool) -> (Session, Arc<Faulty>) {
    let faults = Faults {
        kill_at,
        kill_loses_answer: loses,
        ..Faults::default()
    };
    let faulty = Arc::new(Faulty::new(store.clone(), faults));
    let session = Session::default();
    session.mount(url, faulty.clone()).unwrap();
    (session, faulty)
}

const SHAPE: [u64; 3] = [9, 8, 10];

fn slices() -> ArraySpec {
    let mut source = spec(&SHAPE, "u2");
    source.chunks = Some(vec![1, 8, 10]);
    source
}

fn columns() -> ArraySpec {
    let mut target = spec(&SHAPE, "u2");
    target.chunks = Some(vec![9, 3, 4]);
    target
}

/// Little enough memory for two passes of several boxes each.
const TIGHT: u64 = 1400;

#[test]
fn a_rechunk_that_is_killed_at_any_request_ends_the_same() {
    let (from, to) = (fresh(), fresh());
    let store = hyperslab::store::open(&from).unwrap();
    let plain = Session::default();
    counted(&plain, &format!("{from}/a.zarr/x"), &SHAPE, slices());
    let url = format!("{to}/b.zarr/x");
    let run = |session: &Session, resume: bool| -> Result<Rechunked> {
        block_on(async {
            let array = session.open_array(&format!("{from}/a.zarr/x")).await?;
            let how = RechunkOptions {
                resume,
                verify: false,
                ..options(TIGHT)
            };
            let (_, done) = rechunk(&array, &url, columns(), &how, &()).await?;
            Ok(done)
        })
    };
    let target = hyperslab::store::open(&to).unwrap();
    let (session, counter) = dying(&to, &target, None, false);
    let done = run(&session, false).unwrap();
    assert_eq!((done.passes, done.source_reads), (2, 1));
    let expected = block_on(objects(&target)).unwrap();
    assert!(expected.keys().all(|key| !key.contains(".hyperslab")));
    let requests = counter.requests();
    assert!(requests > 40, "{requests}");
    for kill in 1..=requests {
        for loses in [false, true] {
            block_on(plain.remove(&format!("{to}/b.zarr"), &())).unwrap();
            let (session, _) = dying(&to, &target, Some(kill), loses);
            let died = run(&session, false);
            // Nothing can be seen before it is complete.
            if let Ok(array) = block_on(Session::default().open_array(&url)) {
                let read = block_on(array.read(&Selection::All)).unwrap();
                assert_eq!(read, counting(SHAPE.iter().product()), "kill {kill}");
            }
            if died.is_err() {
                // Once more, a little later.
                let (session, _) = dying(&to, &target, Some(kill / 2 + 10), loses);
                let _ = run(&session, true);
                run(&plain, true).unwrap_or_else(|e| panic!("kill {kill}: {e}"));
            }
            let found = block_on(objects(&target)).unwrap();
            let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&found), names(&expected), "kill {kill} {loses}");
            assert!(found == expected, "kill {kill} {loses}");
        }
    }
    assert!(block_on(store.list("", None)).is_ok());
}

#[test]
fn in_place_readers_see_the_old_array_or_the_new_one() {
    let base = fresh();
    let url = format!("{base}/a.zarr/g/x");
    let store = hyperslab::store::open(&base).unwrap();
    let expected = counting(SHAPE.iter().product());
    let plain = Session::default();
    let run = |session: &Session, resume: bool, overwrite: bool| -> Result<Rechunked> {
        block_on(async {
            let array = session.open_array(&url).await?;
            let how = RechunkOptions {
                resume,
                overwrite,
                ..options(TIGHT)
            };
            let done = rechunk_in_place(&array, columns(), &how, &()).await?;
            let read = array.read(&Selection::All).await?;
            assert!(
                read == counting(SHAPE.iter().product()),
                "the handle itself"
            );
            Ok(done)
        })
    };
    let make = || {
        let _ = block_on(plain.remove(&format!("{base}/a.zarr"), &()));
        counted(&plain, &url, &SHAPE, slices());
    };
    make();
    let (session, counter) = dying(&base, &store, None, false);
    assert_eq!(run(&session, false, false).unwrap().passes, 2);
    let requests = counter.requests();
    for kill in (1..=requests).step_by(2) {
        for overwrite in [false, true] {
            make();
            let (session, _) = dying(&base, &store, Some(kill), kill % 4 == 1);
            let died = run(&session, false, false);
            for url in [&url, &format!("{base}/a.zarr")] {
                let read = block_on(async {
                    let array = match Session::default().open(url).await? {
                        hyperslab::Node::Array(array) => array,
                        // By way of the consolidated copy, which may be one step behind.
                        hyperslab::Node::Group(group) => match group.node("g/x").await? {
                            hyperslab::Node::Array(array) => array,
                            hyperslab::Node::Group(_) => panic!("a group"),
                        },
                    };
                    array.read(&Selection::All).await
                });
                match read {
                    Ok(read) => assert!(read == expected, "kill {kill}: {url}"),
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "kill {kill}: {e}"),
                }
            }
            if died.is_err() {
                let (session, _) = dying(&base, &store, Some(kill / 2 + 10), false);
                let _ = run(&session, !overwrite, overwrite);
                run(&plain, !overwrite, overwrite).unwrap_or_else(|e| panic!("kill {kill}: {e}"));
            }
            let array = block_on(plain.open_array(&url)).unwrap();
            assert_eq!(&array.meta().chunk_shape[..], [9, 3, 4], "kill {kill}");
            assert_eq!(block_on(array.read(&Selection::All)).unwrap(), expected);
            let keys: Vec<String> = block_on(objects(&store)).unwrap().into_keys().collect();
            assert!(
                keys.iter().all(|key| !key.contains(".hyperslab")),
                "kill {kill}: {keys:?}"
            );
            // Three sets of zarr.json, and the new chunks.
            assert_eq!(keys.len(), 3 + 9, "kill {kill}: {keys:?}");
        }
    }
}

#[test]
fn in_place_there_and_back_with_attributes_kept() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().display().to_string();
    let session = Session::default();
    let mut source = slices();
    source.attributes.insert("unit".into(), "K".into());
    let array = counted(&session, &format!("{base}/a.zarr/x"), &SHAPE, source);
    for chunks in [vec![9, 3, 4], vec![2, 8, 10], vec![1, 1, 1], vec![1, 8, 10]] {
        let mut target = columns();
        target.chunks = Some(chunks.clone());
        let done = block_on(rechunk_in_place(
            &array,
            target.clone(),
            &options(1 << 20),
            &(),
        ));
        assert!(done.unwrap().passes > 0);
        let opened = block_on(session.open_array(&format!("{base}/a.zarr/x"))).unwrap();
        assert_eq!(opened.meta().chunk_shape[..], chunks);
        assert_eq!(opened.meta().attributes["unit"], "K");
        let read = block_on(opened.read(&Selection::All)).unwrap();
        assert_eq!(read, counting(SHAPE.iter().product()));
        let again = block_on(rechunk_in_place(&array, target, &options(1 << 20), &()));
        assert_eq!(again.unwrap().passes, 0, "there is nothing to do");
    }
}

#[test]
fn strings_move_too() {
    let (session, base) = (Session::default(), fresh());
    let mut source = spec(&[12, 9], "string");
    source.chunks = Some(vec![1, 9]);
    let from = block_on(session.create_array(&format!("{base}/a.zarr"), source, false)).unwrap();
    let words: Vec<bytes::Bytes> = (0..108).map(|i| "ab".repeat(i % 7).into()).collect();
    block_on(from.write_strings(&Selection::All, words.clone())).unwrap();
    let mut target = spec(&[12, 9], "string");
    target.chunks = Some(vec![12, 2]);
    let (url, how) = (format!("{base}/b.zarr"), options(20_000));
    let (made, done) = block_on(rechunk(&from, &url, target, &how, &())).unwrap();
    assert!(done.verified);
    assert_eq!(block_on(made.read_strings(&Selection::All)).unwrap(), words);
}

#[test]
fn mistakes_and_changes_are_errors() {
    let (session, base) = (Session::default(), fresh());
    let from = counted(&session, &format!("{base}/a.zarr/x"), &SHAPE, slices());
    let go = |url: &str, spec: ArraySpec, how: RechunkOptions| {
        block_on(rechunk(&from, url, spec, &how, &())).map(|(_, done)| done)
    };
    let target = format!("{base}/b.zarr");
    let kind = |result: Result<Rechunked>| result.unwrap_err().kind();
    let small = go(&target, columns(), options(300)).unwrap_err();
    assert!(small.message().contains("needs"), "{small}");
    for inside in ["a.zarr/x/y", "a.zarr", "a.zarr/x"] {
        let inside = go(&format!("{base}/{inside}"), columns(), options(1 << 20));
        assert!(inside.unwrap_err().message().contains("within each other"));
    }
    let other = spec(&[9, 8], "u2");
    assert_eq!(
        kind(go(&target, other, options(1 << 20))),
        ErrorKind::Invalid
    );

    // A run that dies, and then does not fit what it is asked to go on with.
    let store = hyperslab::store::open(&target).unwrap();
    let (dead, _) = dying(&target, &store, Some(30), false);
    dead.mount(&base, hyperslab::store::open(&base).unwrap())
        .unwrap();
    let array = block_on(dead.open_array(&format!("{base}/a.zarr/x"))).unwrap();
    block_on(rechunk(&array, &target, columns(), &options(TIGHT), &())).unwrap_err();
    let resume = |memory| RechunkOptions {
        resume: true,
        ..options(memory)
    };
    assert_eq!(
        kind(go(&target, columns(), options(TIGHT))),
        ErrorKind::Conflict
    );
    assert_eq!(
        kind(go(&target, slices(), resume(TIGHT))),
        ErrorKind::Conflict
    );
    assert_eq!(
        kind(go(&target, columns(), resume(100))),
        ErrorKind::Invalid
    );
    // The source changes meanwhile.
    let first = hyperslab::Region::new([0, 0, 0], [1, 1, 1]).unwrap();
    block_on(from.write(&Selection::region(&first), vec![9, 9])).unwrap();
    assert_eq!(
        kind(go(&target, columns(), resume(TIGHT))),
        ErrorKind::Conflict
    );
    let again = RechunkOptions {
        overwrite: true,
        ..options(TIGHT)
    };
    go(&target, columns(), again).unwrap();
    // Nothing is left to do, or something else is there.
    assert_eq!(go(&target, columns(), resume(TIGHT)).unwrap().passes, 0);
    assert_eq!(
        kind(go(&target, slices(), resume(TIGHT))),
        ErrorKind::Conflict
    );
    assert_eq!(
        kind(go(&target, columns(), options(TIGHT))),
        ErrorKind::Conflict
    );
}

/// Writes to the source while it is read.
struct Meddler<'a>(&'a Array);

impl hyperslab::Progress for Meddler<'_> {
    fn start(&self, _: u64) {}
    fn add(&self, _: u64) {
        let (array, handle) = (self.0.clone(), hyperslab::handle().unwrap());
        std::thread::spawn(move || {
            let last = hyperslab::Region::new([8, 7, 9], [1, 1, 1]).unwrap();
            handle.block_on(array.write(&Selection::region(&last), vec![7, 7]))
        })
        .join()
        .unwrap()
        .unwrap();
    }
}

#[test]
fn a_source_that_changes_while_it_is_read_is_a_conflict() {
    let (session, base) = (Session::default(), fresh());
    let from = counted(&session, &format!("{base}/a.zarr/x"), &SHAPE, slices());
    let how = RechunkOptions {
        verify: false,
        ..options(TIGHT)
    };
    let target = format!("{base}/b.zarr");
    let changed = block_on(rechunk(&from, &target, columns(), &how, &Meddler(&from)));
    assert_eq!(changed.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(block_on(session.open(&target)).is_err());
    let in_place = block_on(rechunk_in_place(&from, columns(), &how, &Meddler(&from)));
    assert_eq!(in_place.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(
        &block_on(session.open_array(&format!("{base}/a.zarr/x")))
            .unwrap()
            .meta()
            .chunk_shape[..],
        [1, 8, 10]
    );
}
