//! Bad input: each mistake has its exit code, one sentence and a hint, and no panic.

use super::support::{Place, counting, npy};

fn place() -> Place {
    let place = Place::new();
    place.write("in.npy", &npy("'<i4'", false, "(4, 4)", &counting(16)));
    place
        .run(&["put", "in.npy", "a.zarr", "--chunks", "2,2"])
        .ok();
    place.run(&["create", "--group", "g.zarr"]).ok();
    place
}

#[test]
fn wrong_requests_are_invalid() {
    let place = place();
    let long = format!("g.zarr/{}", "x".repeat(5000));
    let cases: &[&[&str]] = &[
        &["get", "ftp://host/a"],
        &["get", "s3:///a"],
        &["get", ""],
        &["get", "a.zarr[4]"],
        &["get", "a.zarr[0:5]"],
        &["get", "a.zarr[0,0,0]"],
        &["get", "a.zarr[x]"],
        &["get", "a.zarr[0"],
        &["get", "a.zarr[0:1:0]"],
        &["get", "g.zarr"],
        &["get", "a.zarr", "--memory", "lots"],
        &["get", "a.zarr", "--concurrency", "0"],
        &["create", "b.zarr", "--shape", "2"],
        &["create", "b.zarr", "--shape", "x", "--dtype", "i4"],
        &["create", "b.zarr", "--shape", "2", "--dtype", "f3"],
        &[
            "create", "b.zarr", "--shape", "2", "--dtype", "i4", "--codec", "moo",
        ],
        &[
            "create", "b.zarr", "--shape", "2", "--dtype", "i4", "--chunks", "0",
        ],
        &[
            "create", "b.zarr", "--shape", "2", "--dtype", "i4", "--chunks", "1,1",
        ],
        &[
            "create", "b.zarr", "--shape", "8", "--dtype", "i4", "--chunks", "2", "--shards", "3",
        ],
        &[
            "create", "b.zarr", "--shape", "8", "--dtype", "i4", "--fill", "x",
        ],
        &[
            "create",
            "b.zarr",
            "--shape",
            "18446744073709551615,2",
            "--dtype",
            "i4",
        ],
        &[
            "create",
            "b.zarr",
            "--shape",
            "18446744073709551615",
            "--dtype",
            "i4",
        ],
        &[
            "create",
            "b.zarr",
            "--shape",
            "99999999999999999999",
            "--dtype",
            "i4",
        ],
        &["create", "g.zarr/../x", "--shape", "2", "--dtype", "i4"],
        &["create", "g.zarr/a//b", "--shape", "2", "--dtype", "i4"],
        &["create", &long, "--shape", "2", "--dtype", "i4"],
        &["put", "a.zarr", "b.zarr"],
        &["resize", "a.zarr", "--shape", "-1"],
        &["resize", "g.zarr", "--shape", "1"],
        &["du", "a.zarr[0]"],
        &["moo"],
        &["sim", "--preset", "moon"],
        &["sim", "--fault", "moo=1"],
        &["demo", "--preset", "moon"],
    ];
    for case in cases {
        let run = place.run(case);
        assert_eq!(run.code, 2, "{case:?}: {}{}", run.out, run.err);
        run.fails(2);
    }
    assert!(
        !place.files().iter().any(|name| name.starts_with("b.zarr")),
        "{:?}",
        place.files()
    );
}

#[test]
fn absent_things_are_not_found() {
    let place = place();
    for case in [
        ["get", "no.zarr"],
        ["info", "g.zarr/no"],
        ["ls", "g.zarr/no"],
        ["tree", "no"],
        ["du", "no"],
        ["rm", "no"],
    ] {
        place.run(&case).fails(3);
    }
    place.run(&["put", "no.npy", "x.zarr"]).fails(3);
    place.run(&["cp", "no.zarr", "x.zarr"]).fails(3);
    place.run(&["diff", "a.zarr", "no.zarr"]).fails(3);
}

#[test]
fn broken_metadata_is_data() {
    let place = place();
    let good = String::from_utf8(place.read("a.zarr/zarr.json")).unwrap();
    let broken = [
        good[..good.len() / 2].to_owned(),
        "[]".to_owned(),
        good.replace("\"int32\"", "\"int33\""),
        good.replace("\"zstd\"", "\"moo\""),
        good.replace("\"zarr_format\": 3", "\"zarr_format\": 9"),
        good.replace("\"regular\"", "\"odd\""),
    ];
    for text in broken {
        assert_ne!(text, good);
        place.write("a.zarr/zarr.json", text.as_bytes());
        let err = place.run(&["get", "a.zarr"]).fails(7);
        assert!(!err.contains("panicked"), "{err}");
    }
}

#[test]
fn broken_chunks_are_data() {
    let place = place();
    let good = place.read("a.zarr/c/0/0");
    for bytes in [good[..good.len() / 2].to_vec(), vec![], vec![0xff; 100]] {
        place.write("a.zarr/c/0/0", &bytes);
        let err = place.run(&["get", "a.zarr"]).fails(7);
        assert!(err.contains("c/0/0"), "{err}");
    }
    // Other chunks are not harmed.
    place.run(&["get", "a.zarr[2:, 2:]"]).ok();
}

#[test]
fn a_file_where_a_node_belongs_is_told() {
    let place = place();
    place.write("file.zarr", b"not a folder");
    let err = place.run(&["info", "file.zarr"]).fails(3);
    assert!(err.contains("no array or group"), "{err}");
    let err = place
        .run(&["create", "file.zarr", "--shape", "2", "--dtype", "i4"])
        .fails(2);
    assert!(err.contains("is a file"), "{err}");
    assert_eq!(place.read("file.zarr"), b"not a folder");
    place.run(&["create", "a.zarr/inner", "--shape", "2", "--dtype", "i4"]);
    place.run(&["get", "a.zarr"]).ok();
}

#[test]
fn odd_names_work() {
    let place = place();
    for name in ["sp ace", "ünï-códé", "日本", "dot.ted", "plus+and&", "100%"] {
        let url = format!("g.zarr/{name}");
        place.run(&["put", "in.npy", &url]).ok();
        place
            .run(&["get", &format!("{url}[1]"), "-o", "out.raw"])
            .ok();
        assert_eq!(place.read("out.raw"), counting(8)[16..]);
    }
    let listed = place.run(&["ls", "g.zarr"]).ok();
    assert_eq!(listed.lines().count(), 6, "{listed}");
    place.run(&["cp", "g.zarr", "copy.zarr", "--verify"]).ok();
}
