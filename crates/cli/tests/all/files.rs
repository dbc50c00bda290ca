//! `create`, `put` and `get`: cells go in and come out.

use super::support::{Place, counting, ints, npy, npy_parts};

/// A place with a 6 × 8 int32 array that counts from 0.
fn counted() -> Place {
    let place = Place::new();
    place.write("in.npy", &npy("'<i4'", false, "(6, 8)", &counting(48)));
    place
        .run(&[
            "put", "in.npy", "a.zarr", "--chunks", "4,3", "--codec", "zstd",
        ])
        .ok();
    place
}

fn got(place: &Place, array: &str) -> (String, Vec<i32>) {
    place.run(&["get", array, "-o", "out.npy"]).ok();
    let (header, cells) = npy_parts(&place.read("out.npy"));
    let cells = cells
        .chunks_exact(4)
        .map(|c| i32::from_le_bytes(c.try_into().unwrap()))
        .collect();
    (header, cells)
}

#[test]
fn npy_files_come_back_byte_for_byte() {
    let place = counted();
    place.run(&["get", "a.zarr", "-o", "out.npy"]).ok();
    let (header, cells) = npy_parts(&place.read("out.npy"));
    assert_eq!(
        header,
        "{'descr': '<i4', 'fortran_order': False, 'shape': (6, 8), }"
    );
    assert_eq!(cells, counting(48));
    place.run(&["put", "out.npy", "b.zarr"]).ok();
    place.run(&["get", "b.zarr", "-o", "again.npy"]).ok();
    assert_eq!(place.read("again.npy"), place.read("out.npy"));
    assert!(!place.files().iter().any(|name| name.ends_with(".part")));
}

#[test]
fn slices_are_numpys() {
    let place = counted();
    let (header, cells) = got(&place, "a.zarr[1:3, 2]");
    assert!(header.contains("'shape': (2,)"), "{header}");
    assert_eq!(cells, [10, 18]);
    assert_eq!(got(&place, "a.zarr[-1, ::3]").1, [40, 43, 46]);
    assert_eq!(
        got(&place, "a.zarr[::-2, 5:1:-2]").1,
        [45, 43, 29, 27, 13, 11]
    );
    assert_eq!(got(&place, "a.zarr[..., -1]").1, [7, 15, 23, 31, 39, 47]);
    let (header, cells) = got(&place, "a.zarr[2:2]");
    assert!(header.contains("(0, 8)") && cells.is_empty());
}

#[test]
fn little_memory_gives_the_same_cells() {
    let place = counted();
    for slices in ["", "[::-1]", "[1:5, ::-1]", "[:, 3]"] {
        let array = format!("a.zarr{slices}");
        let whole = got(&place, &array);
        for memory in ["1", "13", "100", "400"] {
            place
                .run(&["get", &array, "-o", "small.npy", "--memory", memory])
                .ok();
            assert_eq!(
                place.read("small.npy"),
                place.read("out.npy"),
                "{array} {memory}"
            );
        }
        assert!(!whole.1.is_empty());
    }
    for (memory, name) in [("1", "x"), ("50", "y"), ("200", "z")] {
        let array = format!("{name}.zarr");
        place
            .run(&[
                "put", "in.npy", &array, "--chunks", "4,3", "--memory", memory,
            ])
            .ok();
        assert_eq!(got(&place, &array).1, (0..48).collect::<Vec<_>>());
    }
}

#[test]
fn fortran_and_big_endian_files_are_turned() {
    let place = Place::new();
    let mut cells = Vec::new();
    for column in 0..3 {
        for row in 0..2 {
            cells.extend_from_slice(&i32::to_be_bytes(row * 3 + column));
        }
    }
    place.write("f.npy", &npy("'>i4'", true, "(2, 3)", &cells));
    for memory in ["1GiB", "24", "1"] {
        let array = format!("f{memory}.zarr");
        place
            .run(&[
                "put", "f.npy", &array, "--memory", memory, "--chunks", "1,2",
            ])
            .ok();
        assert_eq!(got(&place, &array).1, [0, 1, 2, 3, 4, 5]);
    }
    // Later versions of the header differ only in its length and text encoding.
    let mut v2 = b"\x93NUMPY\x02\x00".to_vec();
    let text = "{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}\n";
    v2.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
    v2.extend_from_slice(text.as_bytes());
    v2.extend_from_slice(&counting(1));
    place.write("v2.npy", &v2);
    v2[6] = 3;
    place.write("v3.npy", &v2);
    place.run(&["put", "v2.npy", "v2.zarr"]).ok();
    place.run(&["put", "v3.npy", "v3.zarr"]).ok();
}

#[test]
fn slices_are_written() {
    let place = counted();
    place.write("row.npy", &npy("'<i4'", false, "(8,)", &ints(&[9; 8])));
    place.run(&["put", "row.npy", "a.zarr[2]"]).ok();
    place.write(
        "pair.npy",
        &npy("'<i4'", false, "(2, 2)", &ints(&[1, 2, 3, 4])),
    );
    place
        .run(&["put", "pair.npy", "a.zarr[5:3:-1, 0:8:7]"])
        .ok();
    let cells = got(&place, "a.zarr").1;
    let mut expected: Vec<i32> = (0..48).collect();
    expected[16..24].fill(9);
    (expected[40], expected[47], expected[32], expected[39]) = (1, 2, 3, 4);
    assert_eq!(cells, expected);
    // One dimension more than the result, all of one cell.
    place.write("flat.npy", &npy("'<i4'", false, "(1, 8)", &ints(&[5; 8])));
    place.run(&["put", "flat.npy", "a.zarr[0]"]).ok();
    assert_eq!(got(&place, "a.zarr[0]").1, [5; 8]);
    place.run(&["put", "pair.npy", "a.zarr[0:2, 0:3]"]).fails(2);
    place
        .run(&["put", "pair.npy", "a.zarr", "--chunks", "2,2"])
        .fails(2);
    place.write("other.npy", &npy("'<f4'", false, "(8,)", &[0; 32]));
    assert!(
        place
            .run(&["put", "other.npy", "a.zarr[0]"])
            .fails(2)
            .contains("float32")
    );
    place
        .run(&["put", "pair.npy", "none.zarr[0:2, 0:2]"])
        .fails(3);
}

#[test]
fn raw_cells_go_both_ways() {
    let place = Place::new();
    place.write("in.bin", &counting(12));
    place
        .run(&["put", "in.bin", "r.zarr", "--dtype", "i4", "--shape", "3,4"])
        .ok();
    place.run(&["get", "r.zarr[1]", "-o", "out.raw"]).ok();
    assert_eq!(place.read("out.raw"), ints(&[4, 5, 6, 7]));
    let piped = place.run(&["get", "r.zarr", "--format", "raw"]);
    assert_eq!(piped.bytes, counting(12));
    // What the file does not say, the array does.
    place.write("row.bin", &ints(&[0; 4]));
    place.run(&["put", "row.bin", "r.zarr[2]"]).ok();
    let big: Vec<u8> = (0i32..4).flat_map(i32::to_be_bytes).collect();
    place.write("big.bin", &big);
    place
        .run(&["put", "big.bin", "r.zarr[2]", "--dtype", ">i4"])
        .ok();
    place.run(&["get", "r.zarr[2]", "-o", "out.raw"]).ok();
    assert_eq!(place.read("out.raw"), counting(4));
    place
        .run(&["put", "in.bin", "x.zarr", "--dtype", "i4"])
        .fails(2);
    place
        .run(&["put", "in.bin", "x.zarr", "--dtype", "i4", "--shape", "5,4"])
        .fails(7);
}

#[test]
fn truncated_files_change_nothing() {
    let place = counted();
    let before = place.files();
    let whole = npy("'<i4'", false, "(6, 8)", &[0; 192]);
    for cut in [3, 9, 40, 128, 200, whole.len() - 1] {
        place.write("bad.npy", &whole[..cut]);
        let err = place.run(&["put", "bad.npy", "a.zarr"]).fails(7);
        assert!(err.contains("bad.npy"), "{err}");
        place.run(&["put", "bad.npy", "new.zarr"]).fails(7);
    }
    let long = [whole, vec![0]].concat();
    place.write("bad.npy", &long);
    place.run(&["put", "bad.npy", "a.zarr"]).fails(7);
    assert_eq!(got(&place, "a.zarr").1, (0..48).collect::<Vec<_>>());
    let after: Vec<String> = place
        .files()
        .into_iter()
        .filter(|n| n != "bad.npy" && n != "out.npy")
        .collect();
    assert_eq!(after, before);
}

#[test]
fn zero_length_and_scalar_arrays_work() {
    let place = Place::new();
    place.write("none.npy", &npy("'<i4'", false, "(0, 3)", &[]));
    place.run(&["put", "none.npy", "none.zarr"]).ok();
    place.run(&["get", "none.zarr", "-o", "out.npy"]).ok();
    assert!(npy_parts(&place.read("out.npy")).0.contains("(0, 3)"));
    assert!(place.run(&["get", "none.zarr"]).ok().contains("[]"));
    place.write("one.npy", &npy("'<i4'", false, "()", &ints(&[7])));
    place.run(&["put", "one.npy", "one.zarr"]).ok();
    assert_eq!(place.run(&["get", "one.zarr"]).ok(), "7\n");
    place.run(&["get", "one.zarr", "-o", "out.npy"]).ok();
    let (header, cells) = npy_parts(&place.read("out.npy"));
    assert!(header.contains("'shape': ()"), "{header}");
    assert_eq!(cells, ints(&[7]));
    assert_eq!(
        place.run(&["info", "one.zarr", "--json"]).json()["cells"],
        1
    );
}

#[test]
fn a_failed_get_leaves_no_file() {
    let place = counted();
    std::fs::write(place.path("a.zarr/c/1/2"), b"broken").unwrap();
    let err = place.run(&["get", "a.zarr", "-o", "out.npy"]).fails(7);
    assert!(err.contains("c/1/2"), "{err}");
    assert!(!place.files().iter().any(|name| name.contains("out")));
    place.run(&["get", "a.zarr[0:4]", "-o", "out.npy"]).ok();
    place
        .run(&["get", "a.zarr[0]", "-o", "no/such/out.npy"])
        .fails(3);
    place.run(&["get", "a.zarr[0]", "-o", "out.xyz"]).fails(2);
}
