//! Several writers, growing and shrinking.

use std::sync::Arc;
use std::time::Duration;

use hyperslab::{Compression, ErrorKind, FillValue, Query, Region, Selection, Session, block_on};
use hyperslab_store::{Faults, Faulty, Memory, Retry, RetryPolicy, StoreRef};
use serde_json::json;

use crate::{fresh, spec};

#[test]
fn writers_of_one_chunk_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for url in [fresh(), dir.path().display().to_string()] {
        let url = format!("{url}/race.zarr/a");
        let mut s = spec(&[64], "i4");
        s.chunks = Some(vec![64]);
        block_on(Session::default().create_array(&url, s, false)).unwrap();
        std::thread::scope(|scope| {
            for t in 0..8u64 {
                let url = url.clone();
                scope.spawn(move || {
                    let array = block_on(Session::default().open_array(&url)).unwrap();
                    for round in 0..10u32 {
                        let region = Region::new([t * 8], [8]).unwrap();
                        let cells = (round + 1).to_le_bytes().repeat(8);
                        block_on(array.write(&Selection::region(&region), cells)).unwrap();
                    }
                });
            }
        });
        let array = block_on(Session::default().open_array(&url)).unwrap();
        let all = block_on(array.read(&Selection::All)).unwrap();
        assert_eq!(all, 10u32.to_le_bytes().repeat(64));
    }
}

/// The worst case for claiming a range: all writers append equally much, so they want to write the
/// same metadata, and many answers are lost, so each keeps asking whose the stored metadata is.
#[test]
fn appenders_whose_answers_are_lost_get_ranges_of_their_own() {
    let memory: StoreRef = Arc::new(Memory::new());
    let session = |seed: u64| {
        let faults = Faults {
            seed,
            after: if seed == 0 { 0.0 } else { 0.4 },
            ..Faults::default()
        };
        let policy = RetryPolicy {
            retries: 20,
            max_delay: Duration::from_millis(2),
            first_delay: Duration::from_micros(100),
            ..RetryPolicy::default()
        };
        let faulty = Arc::new(Faulty::new(memory.clone(), faults));
        let session = Session::default();
        session
            .mount("test://log", Arc::new(Retry::new(faulty, policy)))
            .unwrap();
        session
    };
    let mut s = spec(&[0], "u1");
    s.chunks = Some(vec![16]);
    let array = block_on(session(0).create_array("test://log/a", s, false)).unwrap();
    let starts: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (1..=4u64)
            .map(|t| {
                let session = session(t);
                scope.spawn(move || {
                    let array = block_on(session.open_array("test://log/a")).unwrap();
                    let append = |_| block_on(array.append(0, vec![t as u8; 2])).unwrap();
                    (0..25).map(append).collect::<Vec<u64>>()
                })
            })
            .collect();
        writers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    let distinct: std::collections::BTreeSet<u64> = starts.iter().copied().collect();
    assert_eq!(distinct.len(), 100, "a range was claimed twice");
    drop(array);
    let array = block_on(session(0).open_array("test://log/a")).unwrap();
    assert_eq!(array.shape()[..], [200]);
}

#[test]
fn appenders_get_ranges_of_their_own() {
    let url = format!("{}/log.zarr/a", fresh());
    let mut s = spec(&[0, 3], "i4");
    s.chunks = Some(vec![4, 3]);
    block_on(Session::default().create_array(&url, s, false)).unwrap();
    std::thread::scope(|scope| {
        for t in 1..=6i32 {
            let url = url.clone();
            scope.spawn(move || {
                let array = block_on(Session::default().open_array(&url)).unwrap();
                for _ in 0..5 {
                    block_on(array.append(0, t.to_le_bytes().repeat(6))).unwrap();
                }
            });
        }
    });
    let array = block_on(Session::default().open_array(&url)).unwrap();
    assert_eq!(array.shape()[..], [60, 3]);
    let all = block_on(array.read(&Selection::All)).unwrap();
    let mut counts = [0; 7];
    all.as_chunks::<4>()
        .0
        .iter()
        .for_each(|c| counts[i32::from_le_bytes(*c) as usize] += 1);
    assert_eq!(counts, [0, 30, 30, 30, 30, 30, 30]);
}

#[test]
fn cut_off_cells_do_not_come_back() {
    for shards in [vec![], vec![6, 6]] {
        let url = format!("{}/shrink.zarr/a", fresh());
        let mut s = spec(&[10, 10], "u1");
        s.chunks = Some(vec![3, 3]);
        s.shards = Some(shards);
        s.fill = Some(FillValue::from_json(&s.dtype, &json!(9)).unwrap());
        let session = Session::default();
        let array = block_on(session.create_array(&url, s, false)).unwrap();
        block_on(array.write(&Selection::All, vec![1; 100])).unwrap();
        block_on(array.resize(&[4, 7])).unwrap();
        assert_eq!(block_on(array.read(&Selection::All)).unwrap(), vec![1; 28]);
        block_on(array.resize(&[10, 10])).unwrap();
        let cells = block_on(array.read(&Selection::All)).unwrap();
        for (i, cell) in cells.iter().enumerate() {
            let inside = i / 10 < 4 && i % 10 < 7;
            assert_eq!(*cell, if inside { 1 } else { 9 }, "cell {i}");
        }
        assert_eq!(
            block_on(array.resize(&[10])).unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }
}

#[test]
fn a_query_reads_several_arrays() {
    let session = Session::default();
    let base = fresh();
    let mut query = Query::new();
    for i in 0..5u8 {
        let array = block_on(session.create_array(
            &format!("{base}/q.zarr/a{i}"),
            spec(&[20], "u1"),
            false,
        ))
        .unwrap();
        block_on(array.write(&Selection::All, vec![i; 20])).unwrap();
        query = query.with(
            &array,
            Selection::region(&Region::new([5], [u64::from(i) + 1]).unwrap()),
        );
    }
    let all = block_on(session.read(&query)).unwrap();
    let expected: Vec<Vec<u8>> = (0..5u8).map(|i| vec![i; usize::from(i) + 1]).collect();
    assert_eq!(all, expected);
    let mut buffers = expected
        .iter()
        .map(|e| vec![99; e.len()])
        .collect::<Vec<_>>();
    let mut slices: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    session.read_into(&query, &mut slices).unwrap();
    assert_eq!(buffers, expected);
}

#[test]
fn blocking_calls_inside_tasks_are_refused() {
    let e = block_on(async { block_on(async { Ok(()) }) }).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Invalid);
}

/// Rows of a kilobyte and more go from the caller's buffer to local files as they are.
#[test]
fn long_rows_are_written_from_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/rows.zarr/a", dir.path().display());
    let (rows, columns) = (48u64, 1024u64);
    let mut s = spec(&[rows, columns], "u4");
    s.chunks = Some(vec![16, 512]);
    s.shards = Some(Vec::new());
    s.compression = Compression::None;
    let session = Session::default();
    let array = block_on(session.create_array(&url, s, false)).unwrap();
    let cell = |row: u64, column: u64| {
        // The chunk (1, 1) is empty.
        let empty = (16..32).contains(&row) && column >= 512;
        if empty {
            0
        } else {
            (row * columns + column + 1) as u32
        }
    };
    let all: Vec<u8> = (0..rows)
        .flat_map(|row| (0..columns).flat_map(move |column| cell(row, column).to_le_bytes()))
        .collect();
    for round in 0..2 {
        array.write_from(&Selection::All, &all).unwrap();
        for (i, j) in (0..3u64).flat_map(|i| (0..2u64).map(move |j| (i, j))) {
            let path = dir.path().join(format!("rows.zarr/a/c/{i}/{j}"));
            if (i, j) == (1, 1) {
                assert!(!path.exists(), "round {round}");
                continue;
            }
            let expected: Vec<u8> = (i * 16..(i + 1) * 16)
                .flat_map(|row| (j * 512..(j + 1) * 512).map(move |column| (row, column)))
                .flat_map(|(row, column)| cell(row, column).to_le_bytes())
                .collect();
            assert_eq!(std::fs::read(&path).unwrap(), expected, "round {round}");
        }
    }
    // From the middle of a larger selection, and from a buffer that the call owns.
    let region = Region::new([16, 0], [32, columns]).unwrap();
    let part = all[16 * columns as usize * 4..].to_vec();
    block_on(array.write(&Selection::region(&region), part)).unwrap();
    assert_eq!(block_on(array.read(&Selection::All)).unwrap(), all);
}
