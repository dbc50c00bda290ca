//! `rechunk`: to another place and in place, with advice, stopped and gone on with.

use std::time::Duration;

use serde_json::json;

use super::support::{Place, cloud, counting, npy};

fn with_array() -> Place {
    let place = Place::new();
    place.write("in.npy", &npy("'<i4'", false, "(30, 20)", &counting(600)));
    place
        .run(&[
            "put", "in.npy", "a.zarr/x", "--chunks", "1,20", "--attr", "unit=K",
        ])
        .ok();
    place
}

fn cells(place: &Place, array: &str) -> Vec<u8> {
    place.run(&["get", array, "-o", "out.raw"]).ok();
    place.read("out.raw")
}

#[test]
fn a_rechunk_says_what_it_did() {
    let place = with_array();
    let command = ["rechunk", "a.zarr/x", "b.zarr/x", "--chunks", "30,3"];
    let text = place.run(&command).ok();
    assert!(
        text.starts_with("rechunked a.zarr/x to b.zarr/x: one pass"),
        "{text}"
    );
    let info = place.run(&["info", "b.zarr/x", "--json"]).json();
    assert_eq!(info["chunks"], json!([30, 3]));
    assert_eq!(info["attributes"]["unit"], "K");
    assert_eq!(cells(&place, "b.zarr/x"), counting(600));
    assert!(
        place
            .files()
            .iter()
            .all(|file| !file.contains(".hyperslab"))
    );
    place.run(&command).fails(5);
    let again = [&command[..], &["--overwrite", "--verify", "--json"]].concat();
    let json = place.run(&again).json();
    assert_eq!(json["done"]["verified"], true);
    assert_eq!(json["done"]["cells"], 600);
    assert!(json["done"]["source_reads"].as_u64().unwrap() <= 2);
    let done = place.run(&[&command[..], &["--resume"]].concat()).ok();
    assert!(done.contains("nothing was left to do"), "{done}");
}

#[test]
fn layouts_shards_and_orders() {
    let place = with_array();
    for (at, layout) in [
        &["--chunks", "10,5", "--shards", "30,10", "--codec", "gzip:1"][..],
        &["--order", "F", "--codec", "none"],
        &["--chunks", "auto", "--temp", "scratch"],
        &["--codec", "zstd:9", "--fill", "7", "--dims", "y,x"],
    ]
    .iter()
    .enumerate()
    {
        let made = format!("l{at}.zarr");
        place
            .run(&[&["rechunk", "a.zarr/x", &made, "--verify"], *layout].concat())
            .ok();
        assert_eq!(cells(&place, &made), counting(600), "{layout:?}");
    }
}

#[test]
fn in_place_by_advice() {
    let place = with_array();
    let advice = json!({"chunks": [30, 2], "shards": null, "order": [1, 0], "codec": "zstd:3"});
    place.write("advice.json", advice.to_string().as_bytes());
    let command = [
        "rechunk",
        "a.zarr/x",
        "--in-place",
        "--apply-advice",
        "advice.json",
    ];
    let text = place.run(&command).ok();
    assert!(text.starts_with("rechunked a.zarr/x in place"), "{text}");
    let info = place.run(&["info", "a.zarr/x", "--json"]).json();
    assert_eq!(info["chunks"], json!([30, 2]));
    assert_eq!(info["attributes"]["unit"], "K");
    assert_eq!(cells(&place, "a.zarr/x"), counting(600));
    // The copy in the root group too, and nothing of the old chunks.
    place.run(&["doctor", "a.zarr"]).ok();
    let chunks = place
        .files()
        .iter()
        .filter(|file| file.contains("/c"))
        .count();
    assert_eq!(chunks, 10);
    let text = place.run(&command).ok();
    assert!(text.contains("nothing was left to do"), "{text}");
    // Options come before advice.
    place
        .run(&[&command[..], &["--chunks", "3,20"]].concat())
        .ok();
    let info = place.run(&["info", "a.zarr/x", "--json"]).json();
    assert_eq!(info["chunks"], json!([3, 20]));
    assert_eq!(cells(&place, "a.zarr/x"), counting(600));
}

#[test]
fn a_killed_rechunk_goes_on() {
    let place = Place::new();
    place.write(
        "in.npy",
        &npy("'<i4'", false, "(400, 5000)", &counting(2_000_000)),
    );
    place
        .run(&["put", "in.npy", "a.zarr", "--chunks", "1,5000"])
        .ok();
    let base = [
        "rechunk", "a.zarr", "b.zarr", "--chunks", "400,10", "--memory", "53MiB",
    ];
    let mut kills = 0;
    for pause in 0..200 {
        let run = [&base[..], &["--resume"]].concat();
        let mut child = place
            .command(&run)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(5 + 10 * pause));
        if child
            .try_wait()
            .unwrap()
            .is_some_and(|status| status.success())
        {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 0);
    place
        .run(&["rechunk", "a.zarr", "c.zarr", "--chunks", "400,10"])
        .ok();
    let under = |root: &str| -> Vec<(String, Vec<u8>)> {
        let all = place.files().into_iter();
        let files = all.filter(|file| file.starts_with(root) && !file.contains(".hyperslab-tmp-"));
        files
            .map(|file| (file[root.len()..].to_owned(), place.read(&file)))
            .collect()
    };
    assert!(under("b.zarr") == under("c.zarr"), "after {kills} kills");
}

#[test]
fn remote_arrays_too() {
    let sim = cloud();
    let place = Place::near(&sim);
    place.write("in.npy", &npy("'<i4'", false, "(30, 20)", &counting(600)));
    let url = "s3://data/a.zarr/x";
    place.run(&["put", "in.npy", url, "--chunks", "1,20"]).ok();
    place
        .run(&[
            "rechunk",
            url,
            "s3://data/b.zarr/x",
            "--chunks",
            "30,3",
            "--verify",
        ])
        .ok();
    assert_eq!(cells(&place, "s3://data/b.zarr/x"), counting(600));
    place
        .run(&["rechunk", url, "--in-place", "--chunks", "30,3"])
        .ok();
    assert_eq!(cells(&place, url), counting(600));
    let keys: Vec<String> = sim.objects("data").unwrap().keys();
    assert!(
        keys.iter().all(|key| !key.contains(".hyperslab")),
        "{keys:?}"
    );
}

#[test]
fn mistakes_are_told() {
    let place = with_array();
    let run = |more: &[&str]| place.run(&[&["rechunk", "a.zarr/x"], more].concat());
    assert!(run(&["b.zarr"]).fails(2).contains("nothing is said"));
    assert!(run(&["b.h5", "--chunks", "3,3"]).fails(2).contains("HDF5"));
    let little = run(&["b.zarr", "--chunks", "30,3", "--memory", "1MiB"]).fails(2);
    assert!(
        little.contains("needs") && little.contains("MiB"),
        "{little}"
    );
    let inside = run(&["a.zarr/x/y", "--chunks", "3,3"]).fails(2);
    assert!(inside.contains("within each other"), "{inside}");
    run(&["b.zarr", "--chunks", "3"]).fails(2);
    run(&["b.zarr", "--apply-advice", "none.json"]).fails(3);
    place.write("bad.json", b"[]");
    run(&["b.zarr", "--apply-advice", "bad.json"]).fails(2);
    let fill = run(&["--in-place", "--chunks", "3,3", "--fill", "4"]).fails(2);
    assert!(fill.contains("in place"), "{fill}");
    place
        .run(&["rechunk", "nothing.zarr", "b.zarr", "--chunks", "3"])
        .fails(3);
    place
        .run(&["rechunk", "a.zarr", "b.zarr", "--chunks", "3"])
        .fails(2);
    assert!(place.files().iter().all(|file| !file.starts_with("b.")));
}
