//! Replicas: reads are those of the original, whoever writes, and whatever is killed.

mod gate;
mod model;
mod schedules;

use std::sync::Arc;
use std::time::Duration;

use hyperslab::{
    Array, Compression, CopyOptions, Options, Query, Region, Selection, Session, block_on,
};
use hyperslab_store::{Faults, Faulty, Get, Memory, Put, StoreRef};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::spec;
use model::Plane;

const URL: &str = "test://replicas/a";
const SIDES: [u64; 2] = [12, 14];
const CHUNKS: [u64; 2] = [3, 14];

/// A session on a store that others share.
fn session(store: &StoreRef) -> Session {
    with(store, Options::default())
}

fn with(store: &StoreRef, options: Options) -> Session {
    let session = Session::new(options);
    session.mount("test://replicas", store.clone()).unwrap();
    session
}

/// A session that reads nothing but the original.
fn by_itself(store: &StoreRef) -> Array {
    let options = Options {
        replicas: false,
        ..Options::default()
    };
    block_on(with(store, options).open_array(URL)).unwrap()
}

fn open(session: &Session) -> Array {
    block_on(session.open_array(URL)).unwrap()
}

/// An array whose rows are chunks.
fn array(store: &StoreRef) -> Array {
    let mut s = spec(&SIDES, "u1");
    s.chunks = Some(CHUNKS.to_vec());
    s.compression = Compression::None;
    block_on(session(store).create_array(URL, s, false)).unwrap()
}

/// Adds a replica with these chunks.
fn add(array: &Array, name: &str, chunks: [u64; 2]) {
    let mut s = array.replica_spec();
    s.chunks = Some(chunks.to_vec());
    let options = CopyOptions::default();
    let made = block_on(array.create_replica(name, s, &options, &()));
    assert!(made.unwrap().complete);
}

/// Refreshes all replicas, those of killed writers too; true if none has a stale cell.
fn refresh(array: &Array) -> bool {
    let options = CopyOptions::default();
    let done = block_on(array.refresh_replicas(Duration::ZERO, &options, &()));
    done.unwrap().clean
}

/// An array full of numbers, with a replica by columns and one by blocks.
fn replicated(store: &StoreRef) -> Array {
    let array = array(store);
    block_on(array.write(&Selection::All, numbers(1))).unwrap();
    add(&array, "columns", [12, 2]);
    add(&array, "blocks", [5, 5]);
    array
}

fn numbers(first: u8) -> Vec<u8> {
    (0..SIDES[0] * SIDES[1])
        .map(|n| first.wrapping_add(n as u8))
        .collect()
}

fn cells(start: [u64; 2], shape: [u64; 2]) -> Selection {
    Selection::region(&Region::new(start, shape).unwrap())
}

fn memory() -> StoreRef {
    Arc::new(Memory::new())
}

#[test]
fn a_column_comes_from_the_replica_by_columns_and_a_row_from_the_original() {
    let store = memory();
    replicated(&store);
    let session = session(&store);
    let array = open(&session);
    let column = cells([0, 3], [12, 1]);
    let expected: Vec<u8> = (0..12).map(|row| 1 + row * 14 + 3).collect();
    assert_eq!(block_on(array.read(&column)).unwrap(), expected);
    assert_eq!(session.replica_reads(), 1);
    let explained = block_on(array.explain(&column)).unwrap();
    let names: Vec<_> = explained
        .copies
        .iter()
        .map(|c| (c.name.as_deref(), c.chosen))
        .collect();
    assert_eq!(
        names,
        [
            (None, false),
            (Some("columns"), true),
            (Some("blocks"), false)
        ]
    );
    assert!(
        explained.chunks[0].key.contains("/columns-"),
        "{}",
        explained.chunks[0].key
    );
    let row = cells([3, 0], [1, 14]);
    assert_eq!(
        block_on(array.read(&row)).unwrap(),
        (43..57).collect::<Vec<u8>>()
    );
    assert_eq!(session.replica_reads(), 1);
    // Both at a time, each from its own.
    let query = Query::new().with(&array, column).with(&array, row);
    let both = block_on(session.read(&query)).unwrap();
    assert_eq!((both[0].len(), both[1].len()), (12, 14));
    assert_eq!((&both[0], both[1][0]), (&expected, 43));
    assert_eq!(session.replica_reads(), 2);
}

#[test]
fn an_array_without_replicas_is_read_with_its_own_requests_only() {
    let memory = memory();
    array(&memory);
    let counted = Arc::new(Faulty::new(memory, Faults::default()));
    let store: StoreRef = counted.clone();
    let array = open(&session(&store));
    assert_eq!(counted.requests(), 1, "its metadata");
    for _ in 0..3 {
        block_on(array.read(&cells([0, 0], [3, 14]))).unwrap();
    }
    assert_eq!(counted.requests(), 4);
}

#[test]
fn a_read_from_a_replica_adds_one_request_beside_the_others() {
    let memory = memory();
    replicated(&memory);
    let counted = Arc::new(Faulty::new(memory, Faults::default()));
    let store: StoreRef = counted.clone();
    let session = session(&store);
    let array = open(&session);
    let column = cells([0, 2], [12, 2]);
    block_on(array.read(&column)).unwrap();
    let before = counted.requests();
    block_on(array.read(&column)).unwrap();
    assert_eq!(counted.requests() - before, 2, "a chunk and the manifest");
    let fresh = Options {
        replica_fresh: Duration::from_secs(60),
        ..Options::default()
    };
    let array = open(&with(&store, fresh));
    block_on(array.read(&column)).unwrap();
    let before = counted.requests();
    block_on(array.read(&column)).unwrap();
    assert_eq!(counted.requests() - before, 1, "a chunk");
}

#[test]
fn other_readers_see_nothing_of_replicas() {
    let store = memory();
    let array = replicated(&store);
    let got = block_on(store.get("a/zarr.json", Get::default())).unwrap();
    let text = got.body.into_bytes().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let members: Vec<&str> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert!(!members.contains(&"hyperslab"), "{members:?}");
    assert_eq!(json["attributes"], serde_json::json!({}));
    // A replica is an array of its own.
    let replicas = block_on(array.replicas()).unwrap();
    let path = replicas[0].url.strip_prefix("test://replicas/").unwrap();
    let key = format!("{path}/zarr.json");
    let got = block_on(store.get(&key, Get::default())).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&got.body.into_bytes().unwrap()).unwrap();
    assert_eq!(json["shape"], serde_json::json!([12, 14]));
}

#[test]
fn a_handle_that_is_older_than_the_replica_writes_to_it() {
    let store = memory();
    let array = array(&store);
    let (old, reader) = (session(&store), session(&store));
    let handle = open(&old);
    block_on(handle.write(&Selection::All, numbers(1))).unwrap();
    add(&array, "columns", [12, 2]);
    let reading = open(&reader);
    let column = cells([0, 3], [12, 1]);
    block_on(reading.read(&column)).unwrap();
    assert_eq!(reader.replica_reads(), 1);
    block_on(handle.write(&column, vec![9; 12])).unwrap();
    assert_eq!(block_on(reading.read(&column)).unwrap(), [9; 12]);
    let again = session(&store);
    assert_eq!(block_on(open(&again).read(&column)).unwrap(), [9; 12]);
    assert_eq!(again.replica_reads(), 1, "it is healed");
}

#[test]
fn a_replica_that_is_removed_while_it_is_read_is_not_taken_for_fill_values() {
    let store = memory();
    let array = replicated(&store);
    let session = session(&store);
    let reading = open(&session);
    let column = cells([0, 3], [12, 1]);
    let expected = block_on(reading.read(&column)).unwrap();
    // The manifest still says that it is there, and its objects are gone.
    let replicas = block_on(array.replicas()).unwrap();
    let folder = replicas[0]
        .url
        .strip_prefix("test://replicas/")
        .unwrap()
        .to_owned();
    let gate = gate::Gate::before_get(&store, &folder);
    let gated: StoreRef = gate.clone();
    let slow = self::session(&gated);
    let handle = open(&slow);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| block_on(handle.read(&cells([0, 3], [12, 1]))).unwrap());
        gate.wait();
        // The validation beside it has come through by now, or comes too late.
        std::thread::sleep(Duration::from_millis(50));
        assert!(block_on(array.remove_replica("columns", &())).unwrap());
        gate.open();
        assert_eq!(read.join().unwrap(), expected);
    });
    assert_eq!(block_on(reading.read(&column)).unwrap(), expected);
    assert!(!block_on(array.remove_replica("columns", &())).unwrap());
}

#[test]
fn strings_have_replicas() {
    let store = memory();
    let session = session(&store);
    let mut s = spec(&[4, 6], "string");
    s.chunks = Some(vec![1, 6]);
    let array = block_on(session.create_array(URL, s, false)).unwrap();
    let text = |n: u64| bytes::Bytes::from(format!("cell {n}"));
    block_on(array.write_strings(&Selection::All, (0..24).map(text).collect())).unwrap();
    add(&array, "columns", [4, 1]);
    let column = cells([0, 2], [4, 1]);
    let expected: Vec<_> = [2, 8, 14, 20].map(text).to_vec();
    assert_eq!(block_on(array.read_strings(&column)).unwrap(), expected);
    block_on(array.write_strings(&column, vec![text(99); 4])).unwrap();
    let again = self::session(&store);
    assert_eq!(
        block_on(open(&again).read_strings(&column)).unwrap(),
        vec![text(99); 4]
    );
}

#[test]
fn a_removed_array_leaves_no_replicas_behind() {
    let store = memory();
    let array = replicated(&store);
    let session = array.session().clone();
    block_on(session.remove(URL, &())).unwrap();
    let (left, _) = block_on(store.list("a", None)).unwrap();
    assert!(left.is_empty(), "{left:?}");
    let mut s = spec(&SIDES, "u1");
    s.chunks = Some(CHUNKS.to_vec());
    let anew = block_on(session.create_array(URL, s, false)).unwrap();
    assert!(block_on(anew.replicas()).unwrap().is_empty());
    block_on(anew.write(&Selection::All, vec![7; 168])).unwrap();
    assert_eq!(
        block_on(anew.read(&cells([0, 3], [12, 1]))).unwrap(),
        [7; 12]
    );
}

/// Sessions that write, read, resize and refresh; writers that are killed between any two requests;
/// foreign writers. Every read is that of a naive model.
#[test]
fn reads_are_those_of_a_naive_model() {
    let by_replica: u64 = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..24)
            .map(|seed| scope.spawn(move || walk(seed)))
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).sum()
    });
    assert!(
        by_replica > 250,
        "only {by_replica} reads were answered by replicas"
    );
}

/// One random walk; how many reads were answered by replicas.
fn walk(seed: u64) -> u64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let store = memory();
    replicated(&store);
    let mut model = Plane::new(SIDES, numbers(1));
    let mut sessions = [session(&store), session(&store)];
    // What a session knows of replicas lives as long as a handle does: it has to become old here.
    let mut handles = [open(&sessions[0]), open(&sessions[1])];
    let mut by_replica = 0;
    for step in 0..150 {
        let at = rng.random_range(0..2);
        let array = open(&sessions[at]);
        handles[at] = array.clone();
        match rng.random_range(0..100) {
            0..35 => {
                let (start, shape) = model.part(&mut rng);
                let values: Vec<u8> = (0..shape[0] * shape[1]).map(|_| rng.random()).collect();
                block_on(array.write(&cells(start, shape), values.clone())).unwrap();
                model.write(start, shape, &values);
            }
            35..40 => {
                let sides = [rng.random_range(1..16), rng.random_range(1..16)];
                block_on(array.resize(&sides)).unwrap();
                model = model.resized(sides);
            }
            40..44 => {
                let rows = rng.random_range(1..3);
                let values: Vec<u8> = (0..rows * model.sides[1]).map(|_| rng.random()).collect();
                let grown = [model.sides[0] + rows, model.sides[1]];
                let start = [model.sides[0], 0];
                block_on(array.append(0, values.clone())).unwrap();
                model = model.resized(grown);
                model.write(start, [rows, grown[1]], &values);
            }
            44..48 => {
                kill(&store, &mut rng, &mut model);
            }
            48..51 => {
                foreign(&store, &mut rng, &mut model);
                // Noticed at the next open.
                by_replica += sessions.iter().map(Session::replica_reads).sum::<u64>();
                sessions = [session(&store), session(&store)];
                handles = [open(&sessions[0]), open(&sessions[1])];
            }
            51..64 => {
                assert!(refresh(&array), "seed {seed}, step {step}");
            }
            _ => {
                let (start, shape) = model.part(&mut rng);
                let found = block_on(array.read(&cells(start, shape))).unwrap();
                let expected = model.read(start, shape);
                assert_eq!(
                    found, expected,
                    "seed {seed}, step {step}: {start:?} {shape:?}"
                );
            }
        }
    }
    drop(handles);
    // In the end every replica is the original.
    let array = open(&sessions[0]);
    assert!(refresh(&array), "seed {seed}");
    let expected = model.read([0, 0], model.sides);
    for replica in block_on(array.replicas()).unwrap() {
        assert_eq!(replica.marked, 0, "seed {seed}: {}", replica.name);
        let own = block_on(sessions[0].open_array(&replica.url)).unwrap();
        let found = block_on(own.read(&Selection::All)).unwrap();
        assert_eq!(found, expected, "seed {seed}: {}", replica.name);
    }
    by_replica + sessions.iter().map(Session::replica_reads).sum::<u64>()
}

/// A writer that dies at some request. What it wrote of the original is what the model has then.
fn kill(store: &StoreRef, rng: &mut StdRng, model: &mut Plane) {
    let faults = Faults {
        kill_at: Some(rng.random_range(2..30)),
        kill_loses_answer: rng.random(),
        ..Faults::default()
    };
    let dying: StoreRef = Arc::new(Faulty::new(store.clone(), faults));
    let Ok(array) = block_on(session(&dying).open_array(URL)) else {
        return;
    };
    let (start, shape) = model.part(rng);
    let values: Vec<u8> = (0..shape[0] * shape[1]).map(|_| rng.random()).collect();
    let done = match rng.random_range(0..3) {
        0 => {
            let sides = [rng.random_range(1..16), rng.random_range(1..16)];
            block_on(array.resize(&sides))
        }
        _ => block_on(array.write(&cells(start, shape), values.clone())),
    };
    drop(done);
    let original = by_itself(store);
    let sides = original.shape();
    let all = block_on(original.read(&Selection::All)).unwrap();
    *model = Plane::new([sides[0], sides[1]], all);
}

/// A program that knows nothing of replicas replaces, or removes, a chunk of the original.
fn foreign(store: &StoreRef, rng: &mut StdRng, model: &mut Plane) {
    let row = rng.random_range(0..model.sides[0].div_ceil(CHUNKS[0]));
    let column = rng.random_range(0..model.sides[1].div_ceil(CHUNKS[1]));
    let key = format!("a/c/{row}/{column}");
    let start = [row * CHUNKS[0], column * CHUNKS[1]];
    let shape = [
        CHUNKS[0].min(model.sides[0] - start[0]),
        CHUNKS[1].min(model.sides[1] - start[1]),
    ];
    let value = rng.random_range(0..20);
    // Cells beyond the border are fill values, as other programs have it.
    let mut chunk = vec![0; (CHUNKS[0] * CHUNKS[1]) as usize];
    for r in 0..shape[0] {
        let at = (r * CHUNKS[1]) as usize;
        chunk[at..at + shape[1] as usize].fill(value);
    }
    match value {
        0 => block_on(store.delete(&key)).unwrap(),
        _ => {
            let put = store.put(&key, vec![chunk.into()], Put::Overwrite);
            block_on(put).map(drop).unwrap();
        }
    }
    model.write(start, shape, &vec![value; (shape[0] * shape[1]) as usize]);
}
