//! `advise`: layouts from patterns, boxes and traces.

use super::support::{Place, counting, npy};

fn array(place: &Place) {
    place.write(
        "in.npy",
        &npy("'<i4'", false, "(100, 200)", &counting(20_000)),
    );
    let layout = ["--chunks", "100,1", "--codec", "none"];
    place
        .run(&[&["put", "in.npy", "a.zarr"], &layout[..]].concat())
        .ok();
}

#[test]
fn the_papers_example_comes_out() {
    let place = Place::new();
    let shape = ["--shape", "100,2000,8000", "--dtype", "uint8"];
    let layout = ["--chunks", "1,1,8000", "--codec", "none"];
    place
        .run(&[&["create", "p.zarr"], &shape[..], &layout[..]].concat())
        .ok();
    place.write("pattern.txt", b"2\n10 400 10 1\n20 5 400 1\n");
    let blocks = [
        "--objective",
        "blocks",
        "--block-bytes",
        "8000",
        "--aligned",
    ];
    let asked = ["advise", "p.zarr", "--pattern", "pattern.txt"];
    let advice = place
        .run(&[&asked[..], &blocks[..], &["--json"]].concat())
        .json();
    assert_eq!(advice["today"]["blocks"], 2050.0);
    assert_eq!(advice["proposed"]["blocks"], 20.0);
    assert_eq!(advice["worth_it"], true);
    let text = place.run(&[&asked[..], &blocks[..]].concat()).ok();
    assert!(text.contains("hyperslab rechunk p.zarr"), "{text}");
}

#[test]
fn a_trace_tells_how_an_array_is_read() {
    let place = Place::new();
    array(&place);
    for row in 0..12 {
        let rows = format!("a.zarr[{row}]");
        place
            .run(&["get", &rows, "-o", "row.npy", "--trace", "traces"])
            .ok();
    }
    let page = ["--html", "advice.html", "-o", "advice.json"];
    let limits = ["--min-chunk", "800", "--max-chunk", "8000"];
    let asked = ["advise", "a.zarr", "--trace", "traces", "--json"];
    let advice = place
        .run(&[&asked[..], &limits[..], &page[..]].concat())
        .json();
    assert_eq!(advice["reads"], 12);
    assert_eq!(advice["classes"][0]["extent"], serde_json::json!([1, 200]));
    let chunk = &advice["proposed"]["layouts"][0]["chunks"];
    assert_eq!(chunk[1], 200, "{advice}");
    let html = String::from_utf8(place.read("advice.html")).unwrap();
    assert!(html.contains("<svg") && html.contains("before and after"));
    let layout: serde_json::Value = serde_json::from_slice(&place.read("advice.json")).unwrap();
    assert_eq!(&layout["chunks"], chunk);
    // What is advised can be done.
    let follow = [
        "rechunk",
        "a.zarr",
        "better.zarr",
        "--apply-advice",
        "advice.json",
    ];
    place.run(&follow).ok();
    let same = place.run(&["diff", "a.zarr", "better.zarr"]).ok();
    assert!(same.contains("equal: "), "{same}");
    // Reads are written down by those who read, not here.
    let seen = place.run(&["trace", "show", "traces", "--json"]).json();
    assert_eq!(seen["arrays"][0]["reads"], 12);
}

#[test]
fn drift_tells_when_a_pattern_no_longer_fits() {
    let place = Place::new();
    array(&place);
    let asked = |boxes: &'static str| ["advise", "a.zarr", "--box", boxes, "--json"];
    let save = ["--save-pattern", "before.txt"];
    place.run(&[&asked("1,200")[..], &save[..]].concat()).ok();
    let since = ["--since", "before.txt"];
    let same = place
        .run(&[&asked("1,200")[..], &since[..]].concat())
        .json();
    assert_eq!(same["drift"], 0.0);
    let other = place
        .run(&[&asked("100,1")[..], &since[..]].concat())
        .json();
    assert!(other["drift"].as_f64().unwrap() > 5.0);
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let place = Place::new();
    array(&place);
    place.write("rank.txt", b"1\n1 1 1 4\n");
    place.write("often.txt", b"1\n1 1 -4\n");
    place.write("large.txt", b"1\n101 1 4\n");
    for (pattern, said) in [
        ("rank.txt", "3 dimensions"),
        ("often.txt", "frequency -4"),
        ("large.txt", "larger than the array"),
        ("none.txt", "cannot be read"),
    ] {
        let failed = place.run(&["advise", "a.zarr", "--pattern", pattern]);
        let message = failed.fails(2);
        assert!(message.contains(said), "{message}");
    }
    let small = ["--objective", "blocks", "--block-bytes", "3"];
    let asked = ["advise", "a.zarr", "--box", "1,1"];
    let message = place.run(&[&asked[..], &small[..]].concat()).fails(2);
    assert!(message.contains("no room for a cell"), "{message}");
    let message = place.run(&["advise", "a.zarr"]).fails(2);
    assert!(message.contains("nothing says how"), "{message}");
    place
        .run(&["get", "a.zarr[0]", "-o", "r.npy", "--trace", "t"])
        .ok();
    place.run(&["cp", "a.zarr", "b.zarr"]).ok();
    let message = place.run(&["advise", "b.zarr", "--trace", "t"]).fails(2);
    assert!(message.contains("no reads of"), "{message}");
}
