//! `ls`, `tree`, `info`, `du`, `cp`, `diff`, `rm` on hierarchies.

use super::support::{Place, counting, ints, npy};

/// A hierarchy with two arrays, one of them in a group with an odd name.
fn sky() -> Place {
    let place = Place::new();
    place
        .run(&["create", "--group", "sky.zarr", "--attr", "survey=deep"])
        .ok();
    place.write("in.npy", &npy("'<i4'", false, "(4, 6)", &counting(24)));
    place
        .run(&[
            "put",
            "in.npy",
            "sky.zarr/images",
            "--chunks",
            "2,3",
            "--codec",
            "none",
        ])
        .ok();
    place
        .run(&["put", "in.npy", "sky.zarr/größe 1/deep", "--chunks", "4,6"])
        .ok();
    place
}

#[test]
fn nodes_are_listed() {
    let place = sky();
    assert_eq!(place.run(&["ls", "sky.zarr"]).ok(), "größe 1/\nimages\n");
    let long = place.run(&["ls", "-l", "sky.zarr"]).ok();
    assert!(
        long.contains("int32") && long.contains("(4, 6)") && long.contains("chunks [2, 3]"),
        "{long}"
    );
    let tree = place.run(&["tree", "sky.zarr"]).ok();
    assert_eq!(
        tree,
        "sky.zarr/\n├── größe 1/\n│   └── deep (4, 6) int32\n└── images (4, 6) int32\n"
    );
    let json = place.run(&["tree", "sky.zarr", "--json"]).json();
    assert_eq!(json.as_array().unwrap().len(), 4);
    assert_eq!(json[3]["path"], "images");
    assert_eq!(place.run(&["ls", "sky.zarr/images"]).ok(), "images\n");
    // A folder that is no node shows what is in it.
    let folder = place.run(&["ls", "."]);
    assert!(
        folder.out.contains("sky.zarr/\n") && folder.err.contains("not a Zarr node"),
        "{folder:?}"
    );
    place.run(&["ls", "nowhere"]).fails(3);
}

#[test]
fn info_and_du_count_objects() {
    let place = sky();
    let info = place.run(&["info", "sky.zarr/images"]).ok();
    for part in [
        "(4, 6)",
        "int32",
        "(2, 3)",
        "none",
        "96 B",
        "4 of 4 chunks",
        "1.00 : 1",
        "█",
    ] {
        assert!(info.contains(part), "{part} in {info}");
    }
    let json = place.run(&["info", "sky.zarr/images", "--json"]).json();
    assert_eq!(json["stored"]["objects"], 4);
    assert_eq!(json["stored"]["bytes"], 96);
    assert_eq!(json["stored"]["histogram"][0]["objects"], 4);
    let group = place.run(&["info", "sky.zarr"]).ok();
    assert!(group.contains("survey: \"deep\""), "{group}");
    let du = place.run(&["du", "sky.zarr", "--json"]).json();
    assert_eq!(du["arrays"][1]["bytes"], 96);
    assert_eq!(du["total"]["objects"], 5);
    let du = place.run(&["du", "sky.zarr"]).ok();
    assert!(du.contains("96 B") && du.contains("total"), "{du}");
    let one = place.run(&["du", "sky.zarr/images"]).ok();
    assert_eq!(one, "96 B  4 objects  images\n");
}

#[test]
fn hierarchies_are_copied_and_compared() {
    let place = sky();
    let json = place
        .run(&["cp", "sky.zarr", "copy.zarr", "--verify", "--json"])
        .json();
    assert_eq!((&json["arrays"], &json["cells"]), (&2.into(), &48.into()));
    assert!(
        place
            .run(&["diff", "sky.zarr", "copy.zarr", "--layout"])
            .ok()
            .contains("48 cells")
    );
    assert_eq!(
        place.run(&["info", "copy.zarr", "--json"]).json()["attributes"]["survey"],
        "deep"
    );
    place.run(&["cp", "sky.zarr", "copy.zarr"]).fails(5);
    place
        .run(&[
            "cp",
            "sky.zarr",
            "copy.zarr",
            "--overwrite",
            "--chunks",
            "3,2",
            "--memory",
            "100",
        ])
        .ok();
    let same = place.run(&["diff", "sky.zarr", "copy.zarr"]);
    assert!(
        same.code == 0
            && same
                .err
                .contains("note: images: chunks [2,3] differs from [3,2]"),
        "{same:?}"
    );
    assert_eq!(
        place
            .run(&["diff", "sky.zarr", "copy.zarr", "--layout"])
            .code,
        1
    );

    place.write("cell.npy", &npy("'<i4'", false, "()", &ints(&[99])));
    place
        .run(&["put", "cell.npy", "copy.zarr/images[2, 5]"])
        .ok();
    let different = place.run(&["diff", "sky.zarr", "copy.zarr"]);
    assert_eq!(different.code, 1);
    assert!(
        different
            .out
            .contains("images: 1 of 24 cells differ, the first at [2, 5]: 17 and 99"),
        "{different:?}"
    );
    let json = place.run(&["diff", "sky.zarr", "copy.zarr", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["equal"], false);
    assert_eq!(
        json["differences"][0]["detail"]["first"],
        serde_json::json!([2, 5])
    );
    assert_eq!(
        place
            .run(&["diff", "sky.zarr", "copy.zarr", "--metadata-only"])
            .code,
        0
    );

    place.run(&["rm", "copy.zarr/images", "--yes"]).ok();
    let missing = place.run(&["diff", "sky.zarr", "copy.zarr"]);
    assert!(
        missing.code == 1 && missing.out.contains("images: only in the first"),
        "{missing:?}"
    );
    place.run(&["cp", "sky.zarr", "sky.zarr/inside"]).fails(2);
}

#[test]
fn a_stopped_copy_goes_on() {
    let place = sky();
    place.run(&["cp", "sky.zarr", "copy.zarr", "--resume"]).ok();
    std::fs::remove_file(place.path("copy.zarr/images/c/1/1")).unwrap();
    // A chunk that is there is not copied again, so a marked one keeps its mark.
    place.write("copy.zarr/images/c/0/0", &ints(&[-1; 6]));
    place.run(&["cp", "sky.zarr", "copy.zarr", "--resume"]).ok();
    let diff = place.run(&["diff", "sky.zarr", "copy.zarr"]);
    assert!(
        diff.out
            .contains("6 of 24 cells differ, the first at [0, 0]"),
        "{diff:?}"
    );
    place
        .run(&["create", "other.zarr", "--shape", "3", "--dtype", "i1"])
        .ok();
    place
        .run(&["cp", "sky.zarr/images", "other.zarr", "--resume"])
        .fails(5);
}

#[test]
fn rm_asks_or_refuses() {
    let place = sky();
    let err = place.run(&["rm", "sky.zarr/images"]).fails(2);
    assert!(err.contains("--yes"), "{err}");
    assert!(
        place
            .run(&["rm", "sky.zarr", "--yes"])
            .fails(2)
            .contains("-r")
    );
    assert_eq!(place.run(&["ls", "sky.zarr"]).ok(), "größe 1/\nimages\n");
    let json = place
        .run(&["rm", "sky.zarr/images", "--yes", "--json"])
        .json();
    assert_eq!(json["objects"], 4, "the four chunks, besides the metadata");
    assert_eq!(place.run(&["ls", "sky.zarr"]).ok(), "größe 1/\n");
    place.run(&["rm", "-r", "-y", "sky.zarr"]).ok();
    assert_eq!(place.files(), ["in.npy"]);
    place.run(&["rm", "-r", "-y", "sky.zarr"]).fails(3);
}

#[test]
fn a_stale_copy_of_metadata_is_noticed() {
    let place = sky();
    let own = String::from_utf8(place.read("sky.zarr/images/zarr.json")).unwrap();
    place.write(
        "sky.zarr/images/zarr.json",
        own.replace("\"fill_value\": 0", "\"fill_value\": 5")
            .as_bytes(),
    );
    let info = place.run(&["info", "sky.zarr"]);
    assert_eq!(info.code, 0);
    assert!(
        info.err.contains("warning: ") && info.err.contains("images"),
        "{info:?}"
    );
    let doctor = place.run(&["doctor", "sky.zarr"]);
    assert!(
        doctor.code == 1 && doctor.out.contains("✗ metadata"),
        "{doctor:?}"
    );
}
