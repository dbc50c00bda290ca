//! Strings, byte strings, structures and times.

use super::support::{Place, npy, npy_parts};

fn utf32(strings: &[&str], width: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for string in strings {
        let mut chars: Vec<u32> = string.chars().map(u32::from).collect();
        chars.resize(width, 0);
        out.extend(chars.into_iter().flat_map(u32::to_le_bytes));
    }
    out
}

#[test]
fn strings_of_any_length_go_both_ways() {
    let place = Place::new();
    place
        .run(&[
            "create", "s.zarr", "--shape", "4", "--dtype", "string", "--fill", "–", "--chunks", "2",
        ])
        .ok();
    let cells = utf32(&["a", "größer, \"x\"", ""], 11);
    place.write("in.npy", &npy("'<U11'", false, "(3,)", &cells));
    place.run(&["put", "in.npy", "s.zarr[0:3]"]).ok();
    assert_eq!(
        place.run(&["get", "s.zarr", "--format", "csv"]).ok(),
        "a\n\"größer, \"\"x\"\"\"\n\n–\n"
    );
    let json = place.run(&["get", "s.zarr[::-1]", "--json"]).json();
    assert_eq!(
        json["data"],
        serde_json::json!(["–", "", "größer, \"x\"", "a"])
    );
    place.run(&["get", "s.zarr", "-o", "out.npy"]).ok();
    let (header, back) = npy_parts(&place.read("out.npy"));
    assert!(header.contains("'<U11'"), "{header}");
    assert_eq!(back, [cells, utf32(&["–"], 11)].concat());
    assert!(place.run(&["get", "s.zarr"]).ok().contains("\"a\""));
    place.run(&["get", "s.zarr", "-o", "out.raw"]).fails(2);
    place.run(&["get", "s.zarr", "-o", "out.png"]).fails(2);
}

#[test]
fn fixed_strings_structures_and_times_are_shown() {
    let place = Place::new();
    place.write(
        "u.npy",
        &npy("'<U2'", false, "(2,)", &utf32(&["ab", "é"], 2)),
    );
    place.run(&["put", "u.npy", "u.zarr"]).ok();
    assert_eq!(
        place.run(&["get", "u.zarr", "--format", "csv"]).ok(),
        "ab\né\n"
    );
    place.write(
        "st.npy",
        &npy(
            "[('a', '>i2'), ('b', '|S2')]",
            false,
            "(1,)",
            &[1, 2, b'x', 0],
        ),
    );
    place.run(&["put", "st.npy", "st.zarr"]).ok();
    let json = place.run(&["get", "st.zarr", "--json"]).json();
    assert_eq!(json["data"], serde_json::json!([{"a": 258, "b": "x"}]));
    place.run(&["get", "st.zarr", "-o", "st2.npy"]).ok();
    let (header, cells) = npy_parts(&place.read("st2.npy"));
    assert!(header.contains("[('a', '<i2'), ('b', '|S2')]"), "{header}");
    assert_eq!(cells, [2, 1, b'x', 0]);
    place.write(
        "t.npy",
        &npy(
            "'<M8[D]'",
            false,
            "(2,)",
            &[19_675i64, i64::MIN].map(i64::to_le_bytes).concat(),
        ),
    );
    place.run(&["put", "t.npy", "t.zarr"]).ok();
    assert_eq!(
        place.run(&["get", "t.zarr", "--format", "csv"]).ok(),
        "2023-11-14\nNaT\n"
    );
    place.write("o.npy", &npy("'|O'", false, "(1,)", &[0; 8]));
    assert!(
        place
            .run(&["put", "o.npy", "o.zarr"])
            .fails(2)
            .contains("Python objects")
    );
}

#[test]
fn byte_strings_become_npy() {
    let place = Place::new();
    place
        .run(&["create", "b.zarr", "--shape", "2", "--dtype", "bytes"])
        .ok();
    place.write("in.npy", &npy("'|S3'", false, "(2,)", b"a\xff\0bcd"));
    place.run(&["put", "in.npy", "b.zarr"]).ok();
    place.run(&["get", "b.zarr", "-o", "out.npy"]).ok();
    let (header, cells) = npy_parts(&place.read("out.npy"));
    assert!(header.contains("'|S3'"), "{header}");
    assert_eq!(cells, b"a\xff\0bcd");
}
