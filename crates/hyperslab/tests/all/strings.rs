//! Strings of variable length.

use bytes::Bytes;
use hyperslab::{Region, Selection, Session, block_on};

use crate::{fresh, spec};

#[test]
fn strings_plain_and_sharded() {
    for shards in [vec![], vec![8, 6]] {
        let url = format!("{}/text.zarr/names", fresh());
        let mut s = spec(&[10, 6], "string");
        s.chunks = Some(vec![4, 3]);
        s.shards = Some(shards);
        let session = Session::default();
        let array = block_on(session.create_array(&url, s, false)).unwrap();
        let text = |i: usize| Bytes::from("é".repeat(i % 5));
        let some = Selection::region(&Region::new([2, 1], [5, 4]).unwrap());
        block_on(array.write_strings(&some, (0..20).map(text).collect())).unwrap();
        let all = block_on(array.read_strings(&Selection::All)).unwrap();
        for (i, cell) in all.iter().enumerate() {
            let (row, col) = (i / 6, i % 6);
            let inside = (2..7).contains(&row) && (1..5).contains(&col);
            let expected = if inside {
                text((row - 2) * 4 + col - 1)
            } else {
                Bytes::new()
            };
            assert_eq!(*cell, expected, "cell {row} {col}");
        }
        assert_eq!(block_on(array.read_strings(&some)).unwrap()[7], text(7));
        assert!(block_on(array.read(&some)).is_err());
        let bad = Selection::region(&Region::new([0, 0], [1, 1]).unwrap());
        assert!(block_on(array.write_strings(&bad, vec![Bytes::from_static(&[0xff])])).is_err());
    }
}
