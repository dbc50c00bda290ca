//! What `get` prints and draws, and the other ways of output.

use std::process::Stdio;

use super::support::{Place, counting, npy};

fn place() -> Place {
    let place = Place::new();
    place.write("in.npy", &npy("'<i4'", false, "(3, 4)", &counting(12)));
    place
        .run(&["put", "in.npy", "a.zarr", "--dims", "y,x"])
        .ok();
    place
}

#[test]
fn text_is_numpys() {
    let place = place();
    let text = place.run(&["get", "a.zarr"]).ok();
    assert_eq!(text, "[[ 0  1  2  3]\n [ 4  5  6  7]\n [ 8  9 10 11]]\n");
    assert_eq!(place.run(&["get", "a.zarr[1, 2]"]).ok(), "6\n");
    assert_eq!(place.run(&["get", "a.zarr[0:1, 2:3]"]).ok(), "[[2]]\n");
    place
        .run(&[
            "create",
            "big.zarr",
            "--shape",
            "100,200,300",
            "--dtype",
            "u1",
            "--fill",
            "7",
        ])
        .ok();
    let text = place.run(&["get", "big.zarr"]).ok();
    assert!(
        text.contains("[7 7 7 ... 7 7 7]") && text.contains("\n ...\n"),
        "{text}"
    );
    assert!(text.lines().count() < 60);
    let one = place.run(&["get", "big.zarr[5, :, 7]"]).ok();
    assert_eq!(one.trim().matches('7').count(), 200);
}

#[test]
fn csv_and_json_have_every_cell() {
    let place = place();
    assert_eq!(
        place.run(&["get", "a.zarr", "--format", "csv"]).ok(),
        "0,1,2,3\n4,5,6,7\n8,9,10,11\n"
    );
    assert_eq!(
        place.run(&["get", "a.zarr[1]", "--format", "csv"]).ok(),
        "4\n5\n6\n7\n"
    );
    let json = place.run(&["get", "a.zarr[1:, ::-1]", "--json"]).json();
    assert_eq!(
        json["data"],
        serde_json::json!([[7, 6, 5, 4], [11, 10, 9, 8]])
    );
    assert_eq!(json["shape"], serde_json::json!([2, 4]));
    place
        .run(&[
            "create", "n.zarr", "--shape", "1,2,2", "--dtype", "f4", "--fill", "nan", "--dims",
            "t,,x",
        ])
        .ok();
    place.run(&["get", "n.zarr", "-o", "n.csv"]).ok();
    let csv = String::from_utf8(place.read("n.csv")).unwrap();
    assert_eq!(
        csv,
        "t,i1,x,value\n0,0,0,nan\n0,0,1,nan\n0,1,0,nan\n0,1,1,nan\n"
    );
    place.run(&["get", "n.zarr[0]", "-o", "n.json"]).ok();
    let json: serde_json::Value = serde_json::from_slice(&place.read("n.json")).unwrap();
    assert_eq!(json["data"][1][1], "NaN");
}

fn size(png: &[u8]) -> (u32, u32) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height)
}

#[test]
fn heat_maps_are_drawn() {
    let place = place();
    place.run(&["get", "a.zarr", "-o", "small.png"]).ok();
    let (width, height) = size(&place.read("small.png"));
    assert_eq!(height, 120 + 16);
    assert!(width > 4 * 32 + 16 + 16 && width < 300, "{width}");
    place
        .run(&["create", "b.zarr", "--shape", "5000,1000", "--dtype", "f8"])
        .ok();
    place
        .run(&[
            "get", "b.zarr", "-o", "big.png", "--vmin", "-1", "--vmax", "1", "--memory", "1MiB",
        ])
        .ok();
    let (width, height) = size(&place.read("big.png"));
    assert_eq!(height, 5000u32.div_ceil(3) + 16);
    assert!(width > 1000u32.div_ceil(3), "{width}");
    place.run(&["get", "a.zarr[0]", "-o", "x.png"]).fails(2);
    place
        .run(&["get", "a.zarr", "-o", "x.png", "--vmin", "3", "--vmax", "1"])
        .fails(2);
    place.run(&["get", "a.zarr[0:0]", "-o", "x.png"]).fails(2);
}

#[test]
fn errors_are_json_too() {
    let place = place();
    let run = place.run(&["get", "a.zarr[9]", "--json"]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.starts_with("error: ") && run.err.contains("\nhint: "),
        "{}",
        run.err
    );
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(json["error"]["kind"], "invalid");
    assert_eq!(json["error"]["exit_code"], 2);
    let run = place.run(&["--json", "get"]);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &json["error"]["kind"]), (2, &"invalid".into()));
}

#[test]
fn quiet_and_verbose_do_what_they_say() {
    let place = place();
    let quiet = place.run(&["create", "q.zarr", "--shape", "2", "--dtype", "i4", "-q"]);
    assert_eq!(
        (quiet.code, quiet.out.as_str(), quiet.err.as_str()),
        (0, "", "")
    );
    let loud = place.run(&["get", "a.zarr", "-v"]);
    assert!(loud.err.contains("requests"), "{}", loud.err);
    assert!(!loud.err.contains('\u{1b}') && !loud.out.contains('\u{1b}'));
    let logged = place
        .command(&["get", "a.zarr"])
        .env("RUST_LOG", "trace")
        .output()
        .unwrap();
    assert!(logged.status.success());
}

#[test]
fn a_closed_pipe_is_silent() {
    let place = place();
    place
        .run(&["create", "big.zarr", "--shape", "3000000", "--dtype", "u1"])
        .ok();
    let mut child = place
        .command(&["get", "big.zarr", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn help_and_completions_are_there() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]).ok();
        assert!(
            script.contains("hyperslab") && script.contains("chunks"),
            "{shell}"
        );
    }
    place.run(&["completions", "tcl"]).fails(2);
    let help = place.run(&["--help"]).ok();
    for command in [
        "ls",
        "tree",
        "info",
        "get",
        "put",
        "create",
        "resize",
        "cp",
        "replicas",
        "rm",
        "du",
        "diff",
        "doctor",
        "demo",
        "sim",
        "completions",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
        let help = place.run(&[command, "--help"]).ok();
        assert!(help.contains("Examples:"), "{command}");
    }
    assert!(place.run(&["--version"]).ok().starts_with("hyperslab "));
}
