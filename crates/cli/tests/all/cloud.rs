//! The program against a simulated cloud, and the simulated cloud as a program.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use hyperslab_sim::{KeyPair, SimConfig};

use super::support::{Place, cloud, cloud_with, counting, npy};

#[test]
fn arrays_travel_to_the_cloud_and_back() {
    let sim = cloud();
    let place = Place::near(&sim);
    place.write("in.npy", &npy("'<i4'", false, "(40, 50)", &counting(2000)));
    place
        .run(&[
            "put",
            "in.npy",
            "s3://data/x/sky.zarr/images",
            "--chunks",
            "16,16",
            "--codec",
            "none",
        ])
        .ok();
    place
        .run(&[
            "get",
            "s3://data/x/sky.zarr/images[10:30, ::7]",
            "-o",
            "a.npy",
        ])
        .ok();
    place.run(&["put", "in.npy", "local.zarr"]).ok();
    place
        .run(&["get", "local.zarr[10:30, ::7]", "-o", "b.npy"])
        .ok();
    assert_eq!(place.read("a.npy"), place.read("b.npy"));
    place
        .run(&[
            "cp",
            "s3://data/x/sky.zarr",
            "s3://data/y.zarr",
            "--chunks",
            "8,50",
            "--verify",
        ])
        .ok();
    assert_eq!(
        place
            .run(&["diff", "s3://data/y.zarr/images", "local.zarr"])
            .code,
        0
    );
    let listed = place.run(&["ls", "s3://data"]).ok();
    assert!(
        listed.contains("x/") && listed.contains("y.zarr/"),
        "{listed}"
    );
    let du = place.run(&["du", "s3://data/y.zarr", "--json"]).json();
    assert_eq!(du["total"]["objects"], 5);
    place.run(&["rm", "-r", "--yes", "s3://data/y.zarr"]).ok();
    place.run(&["info", "s3://data/y.zarr"]).fails(3);
    // Options of the store may stand in the URL; nothing of them is shown.
    let endpoint = sim.endpoint();
    let url = format!("s3://data/x/sky.zarr/images?endpoint={endpoint}&region=us-east-1");
    let info = place.run(&["info", &url]).ok();
    assert!(!info.contains(&endpoint), "{info}");
}

#[test]
fn refusals_are_denied_and_name_no_secret() {
    let sim = cloud();
    let url = "s3://data/a.zarr";
    Place::near(&sim)
        .run(&["create", url, "--shape", "4", "--dtype", "i4"])
        .ok();
    let secret = "hunter2-is-the-secret";
    for (name, value) in [
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AWS_ACCESS_KEY_ID", secret),
    ] {
        let place = Place::near(&sim).with(name, value);
        for command in [
            vec!["get", url],
            vec![
                "create",
                "s3://data/b.zarr",
                "--shape",
                "4",
                "--dtype",
                "i4",
            ],
        ] {
            let run = place.run(&[command, vec!["-vv"]].concat());
            assert_eq!(run.code, 4, "{run:?}");
            assert!(
                !run.err.contains(secret) && !run.out.contains(secret),
                "{run:?}"
            );
            assert!(run.err.contains("hint: "), "{run:?}");
        }
    }
}

#[test]
fn rights_are_respected() {
    let mut reader = KeyPair::new("READER", "reader-secret");
    reader.may_write = false;
    let mut blind = KeyPair::new("BLIND", "blind-secret");
    blind.may_list = false;
    let mut keys = SimConfig::default().keys;
    keys.extend([reader, blind]);
    let sim = cloud_with(SimConfig {
        keys,
        expired_tokens: vec!["old".into()],
        ..SimConfig::default()
    });
    let owner = Place::near(&sim);
    owner.write("in.npy", &npy("'<i4'", false, "(4,)", &counting(4)));
    owner.run(&["put", "in.npy", "s3://data/a.zarr"]).ok();
    let as_key = |key: &str, secret: &str| {
        Place::near(&sim)
            .with("AWS_ACCESS_KEY_ID", key)
            .with("AWS_SECRET_ACCESS_KEY", secret)
    };
    let reader = as_key("READER", "reader-secret");
    reader.run(&["get", "s3://data/a.zarr"]).ok();
    reader.write("in.npy", &npy("'<i4'", false, "(4,)", &counting(4)));
    reader.run(&["put", "in.npy", "s3://data/a.zarr"]).fails(4);
    reader.run(&["rm", "--yes", "s3://data/a.zarr"]).fails(4);
    as_key("BLIND", "blind-secret")
        .run(&["get", "s3://data/a.zarr"])
        .ok();
    as_key("BLIND", "blind-secret")
        .run(&["get", "s3://data/no.zarr"])
        .fails(4);
    let expired = Place::near(&sim).with("AWS_SESSION_TOKEN", "old");
    expired.run(&["get", "s3://data/a.zarr"]).fails(4);
    assert_eq!(
        owner
            .run(&["get", "s3://data/a.zarr", "--format", "csv"])
            .ok(),
        "0\n1\n2\n3\n"
    );
}

#[test]
fn logs_hold_no_credentials() {
    let mut pair = KeyPair::new("ME", "sesame-secret");
    pair.session_token = Some("token-of-the-session".into());
    let sim = cloud_with(SimConfig {
        keys: vec![pair],
        ..SimConfig::default()
    });
    let place = Place::near(&sim);
    place
        .run(&[
            "create",
            "s3://data/a.zarr",
            "--shape",
            "4",
            "--dtype",
            "i4",
        ])
        .ok();
    let output = place
        .command(&["get", "s3://data/a.zarr"])
        .env("RUST_LOG", "trace")
        .output()
        .unwrap();
    assert!(output.status.success());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(
        log.contains("TRACE") || log.contains("DEBUG"),
        "nothing was logged"
    );
    for secret in ["sesame-secret", "token-of-the-session", "Signature="] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

#[test]
fn missing_buckets_and_dead_servers_are_told_apart() {
    let sim = cloud();
    let place = Place::near(&sim);
    let err = place.run(&["get", "s3://nowhere/a.zarr"]).fails(2);
    assert!(err.contains("nowhere"), "{err}");
    let create = [
        "create",
        "s3://nowhere/a.zarr",
        "--shape",
        "4",
        "--dtype",
        "i4",
    ];
    place.run(&create).fails(2);
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("s3://data/a.zarr?endpoint=http://127.0.0.1:{port}&retries=0");
    place.run(&["get", &url]).fails(6);
}

#[test]
fn the_simulated_cloud_runs_as_a_program() {
    let place = Place::new();
    let mut child = place
        .command(&[
            "sim",
            "--json",
            "--bucket",
            "mine",
            "--procedural",
            "100x100,10x10,int32",
            "--access-key",
            "ME",
            "--secret-key",
            "SESAME",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let first: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(first["access_key"], "ME");
    let mut client = Place::new();
    for (name, value) in first["env"].as_object().unwrap() {
        client = client.with(name, value.as_str().unwrap());
    }
    client
        .run(&[
            "create",
            "s3://mine/a.zarr",
            "--shape",
            "4",
            "--dtype",
            "i4",
        ])
        .ok();
    let json = client
        .run(&["get", "s3://procedural/array[0, 1]", "--json"])
        .json();
    assert_eq!(json["data"], hyperslab_sim::cell_value(1) as i32);
    let stopped = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(stopped.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    let bill: serde_json::Value = serde_json::from_str(rest.trim()).unwrap();
    assert!(bill["requests"]["put"].as_u64().unwrap() >= 1, "{bill}");
    assert!(bill["dollars"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_demo_checks_itself() {
    let place = Place::new();
    let json = place
        .run(&["demo", "--preset", "unshaped", "--json"])
        .json();
    assert_eq!(json["checked"], true);
    for result in json["results"].as_array().unwrap() {
        let bytes = |way: &str| result[way]["bytes"].as_u64().unwrap();
        assert!(bytes("planned") <= bytes("whole_chunks"), "{result}");
    }
    let small = &json["results"][2];
    assert!(
        small["planned"]["bytes"].as_u64().unwrap() * 4
            < small["whole_chunks"]["bytes"].as_u64().unwrap()
    );
}

#[test]
fn explain_tells_the_plan_and_its_alternatives() {
    let sim = cloud();
    let place = Place::near(&sim);
    place.write(
        "in.npy",
        &npy("'<i4'", false, "(400, 500)", &counting(200_000)),
    );
    let url = "s3://data/sky.zarr/images";
    let raw = [
        "put", "in.npy", url, "--chunks", "100,100", "--codec", "none",
    ];
    place.run(&raw).ok();
    let before = sim.meter();
    let text = place
        .run(&["explain", "s3://data/sky.zarr/images[10:20, :]"])
        .ok();
    for word in ["5 by", "global (chosen)", "range-merge", "paper", "seconds"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    // Planning reads metadata and nothing else.
    let after = sim.meter();
    assert!(after.bytes_out - before.bytes_out < 10_000);

    let slices = "s3://data/sky.zarr/images[10:20, 5:300:7]";
    let json = place
        .run(&[
            "explain",
            slices,
            "--json",
            "--analyze",
            "--html",
            "plan.html",
        ])
        .json();
    assert_eq!(json["chunks"].as_array().unwrap().len(), 3);
    assert!(json["measured"]["requests"].as_u64().unwrap() >= 3);
    assert!(json["estimate"]["bytes"].as_u64().unwrap() < 3 * 40_000);
    let page = String::from_utf8(place.read("plan.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("range-fetch"));
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "it loads nothing"
    );

    let got = |planner: &str| {
        let run = ["get", slices, "-o", "out.npy", "--planner", planner];
        place.run(&run).ok();
        place.read("out.npy")
    };
    let planned = got("global");
    for planner in ["paper", "get", "range-merge", "range-fetch", "splits=3"] {
        assert_eq!(got(planner), planned, "{planner}");
    }
    for (option, value) in [
        ("--phi", "-1"),
        ("--phi", "NaN"),
        ("--planner", "best"),
        ("--place", "mars"),
        ("--profile", "no/such/file"),
        ("--prices", "no/such/file"),
    ] {
        place.run(&["explain", slices, option, value]).fails(2);
    }
    place.write("empty.toml", b"");
    let err = place
        .run(&["explain", slices, "--profile", "empty.toml"])
        .fails(2);
    assert!(err.contains("profile"), "{err}");
}
