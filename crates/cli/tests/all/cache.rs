//! The cache on local disk, from the command line.

use super::support::{Place, cloud, counting, npy, npy_parts};

const URL: &str = "s3://data/sky.zarr/images";

/// A place with an array in the cloud: 40 x 50 cells in raw chunks of 16 x 16.
fn place(sim: &hyperslab_sim::Sim) -> Place {
    let place = Place::near(sim);
    place.write("in.npy", &npy("'<i4'", false, "(40, 50)", &counting(2000)));
    place
        .run(&["put", "in.npy", URL, "--chunks", "16,16", "--codec", "none"])
        .ok();
    place
}

fn get(place: &Place, options: &[&str]) -> Vec<u8> {
    place
        .run(&[&["get", URL, "-o", "out.npy"], options].concat())
        .ok();
    npy_parts(&place.read("out.npy")).1
}

#[test]
fn commands_share_what_they_fetched() {
    let sim = cloud();
    let place = place(&sim);
    let fresh = ["--cache", "kept", "--cache-fresh", "1h"];
    assert_eq!(get(&place, &fresh), counting(2000));
    sim.reset_meter();
    assert_eq!(get(&place, &fresh), counting(2000));
    let meter = sim.meter();
    // The metadata is always read.
    assert_eq!((meter.get, meter.head), (1, 0));
    sim.reset_meter();
    assert_eq!(get(&place, &["--cache", "kept"]), counting(2000));
    let meter = sim.meter();
    assert_eq!((meter.get, meter.head), (1, 12));

    let explained = [&["explain", URL], &fresh[..]].concat();
    let text = place.run(&explained).ok();
    assert!(text.contains("12 by cache"), "{text}");
    let json = place.run(&[&explained[..], &["--json"]].concat()).json();
    assert_eq!(json["cached"], 8000);
    assert_eq!(json["estimate"]["bytes"], 0);

    let listed = place.run(&["cache", "ls", "kept", "--json"]).json();
    assert_eq!(listed["total"]["objects"], 12);
    // Where cells beyond the edge lay between wanted ones, they came along.
    let held = listed["total"]["held"].as_u64().unwrap();
    assert!((8000..=12 * 1024).contains(&held), "{held}");
    let text = place.run(&["cache", "ls", "--cache", "kept"]).ok();
    assert!(text.contains("s3://data/sky.zarr/images/c/0/0"), "{text}");
    assert!(text.contains("12 objects"), "{text}");
    place.run(&["cache", "clear", "kept"]).ok();
    let listed = place.run(&["cache", "ls", "kept", "--json"]).json();
    assert_eq!(listed["total"]["objects"], 0);
    assert_eq!(get(&place, &fresh), counting(2000));
}

#[test]
fn what_a_command_writes_the_next_one_reads() {
    let sim = cloud();
    let place = place(&sim);
    let fresh = ["--cache", "kept", "--cache-fresh", "1h"];
    assert_eq!(get(&place, &fresh), counting(2000));
    let others: Vec<u8> = (0..2000i32).flat_map(|i| (-i).to_le_bytes()).collect();
    place.write("new.npy", &npy("'<i4'", false, "(40, 50)", &others));
    place
        .run(&[&["put", "new.npy", URL], &fresh[..]].concat())
        .ok();
    assert_eq!(get(&place, &fresh), others);
    let slice = format!("{URL}[0:3]");
    place.write("rows.npy", &npy("'<i4'", false, "(3, 50)", &counting(150)));
    place
        .run(&[&["put", "rows.npy", &slice], &fresh[..]].concat())
        .ok();
    let expected = [&counting(150)[..], &others[600..]].concat();
    assert_eq!(get(&place, &fresh), expected);
    // An array that takes the place of a removed one holds nothing of it.
    place
        .run(&[&["rm", "--yes", URL], &fresh[..]].concat())
        .ok();
    let create = ["create", URL, "--shape", "40,50", "--dtype", "i4"];
    let layout = ["--chunks", "16,16", "--codec", "none"];
    place.run(&[&create[..], &layout, &fresh].concat()).ok();
    assert_eq!(get(&place, &fresh), vec![0; 8000]);
}

#[test]
fn a_cache_that_cannot_be_used_is_one_sentence_and_a_hint() {
    let sim = cloud();
    let place = place(&sim);
    place.write("file", b"x");
    let err = place.run(&["get", URL, "--cache", "file"]).fails(2);
    assert!(
        err.contains("cannot be used") && err.contains("hint: "),
        "{err}"
    );
    let err = place.run(&["cache", "ls", "nowhere"]).fails(3);
    assert!(err.contains("no cache in nowhere"), "{err}");
    place.run(&["cache", "clear"]).fails(2);
    place
        .run(&["get", URL, "--cache", "kept", "--cache-bytes", "0"])
        .fails(2);
    place
        .run(&["get", URL, "--cache", "kept", "--cache-fresh", "soon"])
        .fails(2);
    // Its bytes are this user's secrets.
    get(&place, &["--cache", "kept"]);
    use std::os::unix::fs::MetadataExt;
    let folder = std::fs::metadata(place.path("kept/hyperslab-cache-1")).unwrap();
    assert_eq!(folder.mode() & 0o077, 0);
}
