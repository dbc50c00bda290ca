//! `replicas`, and what `info` and `explain` say of them.

use super::support::{Place, counting, npy};

#[test]
fn replicas_are_made_listed_refreshed_and_removed() {
    let place = Place::new();
    place.write("in.npy", &npy("'<i4'", false, "(12, 10)", &counting(120)));
    let put = [
        "put", "in.npy", "a.zarr", "--chunks", "1,10", "--codec", "none",
    ];
    place.run(&put).ok();
    let none = place.run(&["replicas", "ls", "a.zarr", "--json"]).json();
    assert_eq!(none["replicas"].as_array().unwrap().len(), 0);
    let create = ["replicas", "create", "a.zarr", "--chunks", "12,1", "--json"];
    let made = place.run(&create).json();
    assert_eq!(
        (&made["name"], &made["complete"]),
        (&"r1".into(), &true.into())
    );
    assert_eq!(made["chunks"], serde_json::json!([12, 1]));
    let explained = place.run(&["explain", "a.zarr[:, 3]", "--json"]).json();
    assert_eq!(explained["copies"][1]["name"], "r1");
    assert_eq!(explained["copies"][1]["chosen"], true);
    assert!(
        place
            .run(&["explain", "a.zarr[:, 3]"])
            .ok()
            .contains("r1 (answers)")
    );
    let info = place.run(&["info", "a.zarr"]).ok();
    assert!(info.contains("r1: chunks (12, 1), complete"), "{info}");

    // A program that knows nothing of replicas removes a chunk.
    std::fs::remove_file(place.path("a.zarr/c/4/0")).unwrap();
    let column = place.run(&["get", "a.zarr[4, 3]"]).ok();
    assert_eq!(column.trim(), "0");
    let refreshed = place
        .run(&["replicas", "refresh", "a.zarr", "--json"])
        .json();
    assert_eq!(
        (&refreshed["clean"], &refreshed["foreign_objects"]),
        (&true.into(), &1.into())
    );
    let again = place.run(&["replicas", "refresh", "a.zarr"]).ok();
    assert!(again.contains("up to date"), "{again}");

    place.run(&["replicas", "rm", "a.zarr", "nothing"]).fails(3);
    place.run(&["replicas", "rm", "a.zarr", "r1"]).ok();
    let list = place.run(&["replicas", "ls", "a.zarr"]).ok();
    assert!(list.contains("has no copies"), "{list}");
    assert_eq!(place.run(&["get", "a.zarr[5, 3]"]).ok().trim(), "53");
}

#[test]
fn a_replica_is_laid_out_and_nothing_else() {
    let place = Place::new();
    place.write("in.npy", &npy("'<i4'", false, "(12, 10)", &counting(120)));
    place.run(&["put", "in.npy", "a.zarr"]).ok();
    let fill = [
        "replicas", "create", "a.zarr", "--chunks", "1,10", "--fill", "7",
    ];
    place.run(&fill).fails(2);
    place
        .run(&["replicas", "create", "a.zarr", "--chunks", "1,10,3"])
        .fails(2);
    place
        .run(&["replicas", "create", "a.zarr", "--name", "a/b"])
        .fails(2);
    place.run(&["replicas", "rm", "a.zarr"]).fails(2);
}
