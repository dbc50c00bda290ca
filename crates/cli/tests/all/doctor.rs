//! `doctor`: which check fails, and that nothing secret is shown.

use hyperslab_sim::{KeyPair, SimConfig};

use super::support::{Place, cloud, cloud_with};

fn check<'a>(json: &'a serde_json::Value, name: &str) -> &'a str {
    let checks = json["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"] == name);
    found.map_or("absent", |check| check["status"].as_str().unwrap())
}

fn diagnose(place: &Place, arguments: &[&str]) -> (i32, serde_json::Value) {
    let run = place.run(&[&["doctor", "--json"], arguments].concat());
    (run.code, serde_json::from_str(&run.out).unwrap())
}

#[test]
fn a_healthy_cloud_passes() {
    let sim = cloud();
    let place = Place::near(&sim);
    place
        .run(&[
            "create",
            "s3://data/s.zarr/a",
            "--shape",
            "4",
            "--dtype",
            "i4",
        ])
        .ok();
    let run = place.run(&["doctor", "--write", "s3://data/s.zarr"]);
    assert_eq!(run.code, 0, "{run:?}");
    for name in [
        "URL",
        "configuration",
        "endpoint",
        "clock",
        "credentials",
        "list",
        "read",
        "write",
        "latency",
        "metadata",
    ] {
        assert!(
            run.out.contains(&format!("✓ {name}: ")),
            "{name} in {}",
            run.out
        );
    }
    assert!(run.out.trim_end().ends_with("All is well."), "{}", run.out);
    assert!(run.out.contains("AWS_SECRET_ACCESS_KEY") && !run.out.contains(sim.secret_key()));
    let left: Vec<String> = sim
        .objects("data")
        .unwrap()
        .keys()
        .into_iter()
        .filter(|k| k.contains("doctor"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn each_illness_is_named() {
    let mut blind = KeyPair::new("BLIND", "blind-secret");
    blind.may_list = false;
    blind.may_write = false;
    let mut keys = SimConfig::default().keys;
    keys.push(blind);
    let sim = cloud_with(SimConfig {
        keys,
        ..SimConfig::default()
    });
    Place::near(&sim)
        .run(&[
            "create",
            "s3://data/a.zarr",
            "--shape",
            "4",
            "--dtype",
            "i4",
        ])
        .ok();

    let wrong = Place::near(&sim).with("AWS_SECRET_ACCESS_KEY", "wrong");
    let (code, json) = diagnose(&wrong, &["s3://data/a.zarr"]);
    assert_eq!(
        (code, check(&json, "credentials"), check(&json, "read")),
        (1, "failed", "absent")
    );
    assert!(
        json["verdict"].as_str().unwrap().contains("credentials"),
        "{json}"
    );

    let blind = Place::near(&sim)
        .with("AWS_ACCESS_KEY_ID", "BLIND")
        .with("AWS_SECRET_ACCESS_KEY", "blind-secret");
    let (code, json) = diagnose(&blind, &["s3://data/a.zarr", "--write"]);
    assert_eq!((code, check(&json, "credentials")), (1, "passed"), "{json}");
    assert_eq!(
        (
            check(&json, "list"),
            check(&json, "read"),
            check(&json, "write")
        ),
        ("failed", "passed", "failed")
    );

    let (code, json) = diagnose(&Place::near(&sim), &["s3://nowhere/a.zarr"]);
    assert_eq!(code, 1, "{json}");
    assert!(
        json["verdict"].as_str().unwrap().contains("nowhere"),
        "{json}"
    );

    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let dead = Place::near(&sim).with("AWS_ENDPOINT_URL", &format!("http://127.0.0.1:{port}"));
    let (code, json) = diagnose(&dead, &["s3://data/a.zarr"]);
    assert_eq!((code, check(&json, "endpoint")), (1, "failed"));

    let (code, json) = diagnose(&Place::new(), &["moo://x"]);
    assert_eq!((code, check(&json, "URL")), (1, "failed"));
}

#[test]
fn local_folders_are_checked_too() {
    let place = Place::new();
    place
        .run(&["create", "a.zarr", "--shape", "4", "--dtype", "i4"])
        .ok();
    let (code, json) = diagnose(&place, &["--write", "a.zarr"]);
    assert_eq!(code, 0, "{json}");
    assert_eq!(
        (check(&json, "write"), check(&json, "clock")),
        ("passed", "skipped")
    );
    place.write("a.zarr/zarr.json", b"{");
    let (code, json) = diagnose(&place, &["a.zarr"]);
    assert_eq!((code, check(&json, "metadata")), (1, "failed"));
}
