//! Layouts of new arrays, `cp` into other layouts, `resize`.

use super::support::{Place, counting, npy};

#[test]
fn every_layout_keeps_the_cells() {
    let place = Place::new();
    place.write("in.npy", &npy("'<i4'", false, "(12, 10)", &counting(120)));
    let layouts: [&[&str]; 14] = [
        &["--codec", "none"],
        &["--codec", "gzip:9", "--chunks", "5,3"],
        &["--codec", "blosc", "--chunks", "12,1"],
        &["--codec", "blosc:zstd:3:bitshuffle,crc32c", "--order", "F"],
        &["--codec", "zstd:-3", "--endian", "big"],
        &["--chunks", "3,2", "--shards", "6,10"],
        &["--chunks", "3,2", "--shards", "auto", "--codec", "crc32c"],
        &["--chunks", "auto", "--shards", "none"],
        &[
            "--chunks",
            "3,2",
            "--shards",
            "6,10",
            "--shard-order",
            "1,0",
            "--codec",
            "none",
        ],
        &[
            "--chunks",
            "3,2",
            "--shards",
            "12,10",
            "--shard-order",
            "F",
            "--order",
            "F",
        ],
        &[
            "--order",
            "1,0",
            "--endian",
            "little",
            "--codec",
            "shuffle,lz4",
        ],
        &["--codec", "zlib,fletcher32"],
        &[
            "--codec",
            "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}]",
        ],
        &[
            "--codec",
            "{\"name\": \"gzip\", \"configuration\": {\"level\": 1}}",
        ],
    ];
    place.run(&["put", "in.npy", "first.zarr"]).ok();
    for (at, layout) in layouts.iter().enumerate() {
        let array = format!("l{at}.zarr");
        place
            .run(&[&["put", "in.npy", &array], *layout].concat())
            .ok();
        place.run(&["get", &array, "-o", "out.raw"]).ok();
        assert_eq!(place.read("out.raw"), counting(120), "{layout:?}");
        // The same by way of a copy.
        let copy = format!("c{at}.zarr");
        place
            .run(&[&["cp", "first.zarr", &copy, "--verify"], *layout].concat())
            .ok();
        assert!(
            place
                .run(&["diff", &array, &copy])
                .ok()
                .contains("equal: 120 cells")
        );
    }
}

#[test]
fn create_says_what_it_made() {
    let place = Place::new();
    let json = place
        .run(&[
            "create",
            "a.zarr",
            "--shape",
            "100, 200",
            "--dtype",
            "<f4",
            "--chunks",
            "10,20",
            "--fill",
            "nan",
            "--attr",
            "units=K",
            "--attr",
            "range=[0, 1]",
            "--dims",
            "lat,lon",
            "--codec",
            "none",
            "--json",
        ])
        .json();
    assert_eq!(json["shape"], serde_json::json!([100, 200]));
    assert_eq!(json["fill_value"], "NaN");
    assert_eq!(json["attributes"]["range"][1], 1);
    assert_eq!(json["dimension_names"][1], "lon");
    assert_eq!(json["chunks"], serde_json::json!([10, 20]));
    place
        .run(&["create", "a.zarr", "--shape", "3", "--dtype", "i1"])
        .fails(5);
    place
        .run(&[
            "create",
            "a.zarr",
            "--shape",
            "3",
            "--dtype",
            "i1",
            "--overwrite",
        ])
        .ok();
    assert_eq!(
        place.run(&["info", "a.zarr", "--json"]).json()["dtype"],
        "int8"
    );
    place
        .run(&["create", "--group", "g.zarr", "--attr", "n=1"])
        .ok();
    let json = place.run(&["info", "g.zarr", "--json"]).json();
    assert_eq!(
        (&json["kind"], &json["attributes"]["n"]),
        (&"group".into(), &1.into())
    );
}

#[test]
fn resize_keeps_what_remains() {
    let place = Place::new();
    place.write("in.npy", &npy("'<i4'", false, "(2, 3)", &counting(6)));
    place
        .run(&["put", "in.npy", "a.zarr", "--chunks", "1,2", "--fill", "-1"])
        .ok();
    place.run(&["resize", "a.zarr", "--shape", "3,2"]).ok();
    assert_eq!(
        place.run(&["get", "a.zarr", "--format", "csv"]).ok(),
        "0,1\n3,4\n-1,-1\n"
    );
    place.run(&["resize", "a.zarr", "--shape", "1,3"]).ok();
    assert_eq!(
        place.run(&["get", "a.zarr", "--format", "csv"]).ok(),
        "0,1,-1\n"
    );
    place.run(&["resize", "a.zarr", "--shape", "5"]).fails(2);
}
