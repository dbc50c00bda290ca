//! Ctrl-C in the middle of work.

use std::process::{Command, Stdio};
use std::time::Duration;

use hyperslab_sim::{Network, SimConfig};

use super::support::{Place, cloud_with, npy};

/// Starts a command, interrupts it once the cloud has seen `begun`, and gives its exit.
fn interrupted(
    place: &Place,
    arguments: &[&str],
    begun: impl Fn() -> bool,
) -> (Option<i32>, String) {
    let child = place
        .command(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !begun() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn an_interrupted_put_leaves_whole_chunks() {
    // At 400 kB/s the array takes 10 seconds, so the signal always arrives in the middle.
    let network = Network {
        total_bandwidth: Some(4e5),
        ..Network::unshaped()
    };
    let sim = cloud_with(SimConfig {
        network,
        ..SimConfig::default()
    });
    let place = Place::near(&sim);
    place.write(
        "in.npy",
        &npy("'|u1'", false, "(4000000,)", &[7; 4_000_000]),
    );
    let arguments = [
        "put",
        "in.npy",
        "s3://data/a.zarr",
        "--chunks",
        "10000",
        "--codec",
        "none",
        "--concurrency",
        "2",
    ];
    let stored = || {
        sim.objects("data")
            .unwrap()
            .keys()
            .iter()
            .filter(|k| k.contains("/c/"))
            .count()
    };
    let (code, err) = interrupted(&place, &arguments, || stored() > 2);
    assert_eq!(code, Some(130), "{err}");
    assert!(
        err.contains("interrupted") && err.contains("--overwrite"),
        "{err}"
    );
    sim.set_network(Network::unshaped()).unwrap();
    place
        .run(&["get", "s3://data/a.zarr", "-o", "out.raw"])
        .ok();
    let cells = place.read("out.raw");
    assert_eq!(cells.len(), 4_000_000);
    for chunk in cells.chunks(10_000) {
        assert!(chunk.iter().all(|c| *c == 7) || chunk.iter().all(|c| *c == 0));
    }
    assert!(cells.contains(&7) && cells.contains(&0));
}

#[test]
fn an_interrupted_get_leaves_no_file() {
    let sim = cloud_with(SimConfig::default());
    let place = Place::near(&sim);
    place.write("in.bin", &[7; 4_000_000]);
    place
        .run(&[
            "put",
            "in.bin",
            "s3://data/a.zarr",
            "--dtype",
            "u1",
            "--shape",
            "4000000",
            "--chunks",
            "10000",
            "--codec",
            "none",
        ])
        .ok();
    sim.set_network(Network {
        total_bandwidth: Some(4e5),
        ..Network::unshaped()
    })
    .unwrap();
    sim.reset_meter();
    let (code, err) = interrupted(
        &place,
        &["get", "s3://data/a.zarr", "-o", "out.npy"],
        || sim.meter().get > 5,
    );
    assert_eq!(code, Some(130), "{err}");
    assert!(err.contains("out.npy was not written"), "{err}");
    assert_eq!(place.files(), ["in.bin"]);
}
