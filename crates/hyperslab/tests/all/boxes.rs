//! Streams of boxes, copies and comparisons.

use std::time::Duration;

use futures::TryStreamExt;
use hyperslab::{
    ArrayBox, BoxOptions, CopyOptions, Options, Region, Selection, Session, block_on,
    compare_arrays, copy_array,
};

use crate::{fresh, spec};

#[test]
fn boxes_cover_the_array_once_and_halos_stop_at_its_edge() {
    let session = Session::default();
    let mut s = spec(&[7, 9], "u1");
    s.chunks = Some(vec![3, 4]);
    let array = block_on(session.create_array(&format!("{}/b.zarr/a", fresh()), s, false)).unwrap();
    let cells: Vec<u8> = (0..63).collect();
    block_on(array.write(&Selection::All, cells.clone())).unwrap();
    let options = BoxOptions {
        halo: Some(vec![1, 2]),
        shape: Some(vec![2, 5]),
        ..Default::default()
    };
    let stream = array.boxes(options).unwrap();
    let boxes: Vec<ArrayBox> = block_on(stream.try_collect()).unwrap();
    assert_eq!(boxes.len(), 8);
    let mut seen = vec![0; 63];
    for piece in &boxes {
        for i in 0..63u64 {
            seen[i as usize] += i32::from(piece.core.contains_point(&[i / 9, i % 9]));
        }
        let expected: Vec<u8> = (0..63u8)
            .filter(|i| {
                piece
                    .region
                    .contains_point(&[u64::from(i / 9), u64::from(i % 9)])
            })
            .collect();
        assert_eq!(piece.cells, expected);
        assert!(piece.region.contains(&piece.core));
    }
    assert!(seen.iter().all(|n| *n == 1));
}

#[test]
fn copies_equal_their_source_whatever_the_layout() {
    let session = Session::default();
    let base = fresh();
    let mut s = spec(&[20, 30], "i2");
    s.chunks = Some(vec![6, 7]);
    let from =
        block_on(session.create_array(&format!("{base}/c.zarr/from"), s.clone(), false)).unwrap();
    let region = Region::new([3, 4], [15, 20]).unwrap();
    let cells: Vec<u8> = (0..600u32).map(|i| (i % 251) as u8).collect();
    block_on(from.write(&Selection::region(&region), cells)).unwrap();
    let options = CopyOptions {
        memory: 2000,
        resume: false,
    };
    for (i, (chunks, shards)) in [
        (vec![5, 11], vec![]),
        (vec![3, 5], vec![6, 10]),
        (vec![6, 7], vec![]),
    ]
    .into_iter()
    .enumerate()
    {
        s.chunks = Some(chunks);
        s.shards = Some(shards);
        let to = block_on(session.create_array(&format!("{base}/c.zarr/to{i}"), s.clone(), false))
            .unwrap();
        block_on(copy_array(&from, &to, &options, &())).unwrap();
        let comparison = block_on(compare_arrays(&from, &to, &options, &())).unwrap();
        assert!(
            comparison.equal() && comparison.cells == 600,
            "{comparison:?}"
        );
        let cell = Region::new([12, 17], [1, 1]).unwrap();
        block_on(to.write(&Selection::region(&cell), vec![0xee, 0xee])).unwrap();
        let comparison = block_on(compare_arrays(&from, &to, &options, &())).unwrap();
        assert_eq!(
            (comparison.differing, comparison.first),
            (1, Some(vec![12, 17]))
        );
    }
}

#[test]
fn a_stopped_copy_goes_on_where_it_was() {
    let session = Session::default();
    let base = fresh();
    let mut s = spec(&[12, 12], "u1");
    s.chunks = Some(vec![5, 5]);
    let from =
        block_on(session.create_array(&format!("{base}/r.zarr/from"), s.clone(), false)).unwrap();
    block_on(from.write(&Selection::All, (1..145).map(|i| (i % 250) as u8).collect())).unwrap();
    for chunks in [vec![4, 4], vec![5, 5]] {
        s.chunks = Some(chunks.clone());
        let to = block_on(session.create_array(
            &format!("{base}/r.zarr/to{}", chunks[0]),
            s.clone(),
            false,
        ))
        .unwrap();
        let options = CopyOptions {
            memory: 100,
            resume: false,
        };
        block_on(copy_array(&from, &to, &options, &())).unwrap();
        // What an interrupted copy leaves: some objects are missing, the others are untouched.
        let store = hyperslab::store::open(&format!("{base}/r.zarr")).unwrap();
        for key in ["c/0/1", "c/2/2"] {
            block_on(store.delete(&format!("to{}/{key}", chunks[0]))).unwrap();
        }
        let writes = || to_writes(&session);
        let before = writes();
        let options = CopyOptions {
            memory: 100,
            resume: true,
        };
        block_on(copy_array(&from, &to, &options, &())).unwrap();
        assert_eq!(writes() - before, 2);
        assert!(
            block_on(compare_arrays(&from, &to, &options, &()))
                .unwrap()
                .equal()
        );
    }
}

fn to_writes(session: &Session) -> u64 {
    let kind = hyperslab::store::RequestKind::Put;
    session
        .meters()
        .iter()
        .map(|(_, meter)| meter.of(kind))
        .sum()
}

/// What a reader asked for and does not look after must not keep others from reading or writing: it did
/// where memory was short, and copies waited for themselves for ever.
#[test]
fn a_read_that_nobody_polls_is_in_nobodys_way() {
    let url = format!("{}/a", fresh());
    block_on(async {
        let whole = Session::default();
        let mut described = spec(&[64, 1024], "uint8");
        described.chunks = Some(vec![1, 1024]);
        let array = whole.create_array(&url, described, false).await?;
        array.write(&Selection::All, vec![7; 64 << 10]).await?;
        // Room for one chunk at a time.
        let session = Session::new(Options {
            memory: 4096,
            ..Options::default()
        });
        let array = session.open_array(&url).await?;
        for _ in 0..20 {
            let mut ahead: Vec<_> = (0..4)
                .map(|_| Box::pin(array.read(&Selection::All)))
                .collect();
            for read in &mut ahead {
                let _ = futures::poll!(read.as_mut());
            }
            let row = Selection::region(&Region::new([3, 0], [2, 1024])?);
            let write = array.write(&row, vec![7; 2048]);
            let patience = Duration::from_secs(20);
            tokio::time::timeout(patience, write).await.unwrap()?;
        }
        Ok::<_, hyperslab::Error>(())
    })
    .unwrap();
}
