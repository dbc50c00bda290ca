//! Profiles of simulated clouds: what was configured is found, and nothing is left behind.

use std::future::{pending, ready};
use std::time::Duration;

use hyperslab::profile::{MeasureOptions, Measured, NoFunction, measure};
use hyperslab_sim::{FaultKind, FaultPlan, FaultRule, Latency, Network, SimConfig, Trigger};
use hyperslab_store::StoreRef;
use hyperslab_testkit::servers::SimPlace;
use hyperslab_testkit::{Outcome, ensure, run};

/// How far a measurement may be from what was configured.
const TOLERANCE: f64 = 0.15;
/// What the wake-ups of the simulator (for the head and for the body) and of the client may add to a
/// latency, besides.
const WAKE_UP: f64 = 0.3e-3;
/// Other tests run at the same time and disturb measurements: each number has to be found once.
const ATTEMPTS: usize = 4;

fn cloud(network: Network) -> SimPlace {
    let config = SimConfig {
        network,
        ..SimConfig::default()
    };
    SimPlace::start(config).unwrap()
}

fn options() -> MeasureOptions {
    MeasureOptions {
        bytes: 64 << 20,
        time: Duration::from_secs(6),
        // As many as the endpoint's limit lets through from the start.
        most_requests: 64,
    }
}

async fn measured(store: StoreRef, options: &MeasureOptions) -> Outcome<Measured> {
    let measured = measure::<NoFunction>(store, options, None, &(), pending()).await?;
    measured.ok_or_else(|| hyperslab_testkit::Failure::new("nothing stopped it"))
}

fn is_empty(cloud: &SimPlace) -> Outcome {
    let left = cloud.sim().objects(cloud.bucket())?.keys();
    ensure(left.is_empty(), || format!("left behind: {left:?}"))
}

/// What a small request takes on this machine when no network is simulated: client and server have
/// work to do too, which a latency of a millisecond does not hide.
fn overhead() -> f64 {
    let cloud = cloud(Network::unshaped());
    let options = MeasureOptions {
        bytes: 1 << 20,
        time: Duration::from_millis(500),
        most_requests: 1,
    };
    let found = run(async { measured(cloud.s3().store("probe")?, &options).await }).unwrap();
    found.network.latency_seconds
}

/// Measures a preset; returns the names of what is not as configured.
fn compare(preset: &str) -> Outcome<Vec<&'static str>> {
    let network = Network::preset(preset)?;
    let Latency::Constant { millis } = network.latency else {
        panic!("{preset} has no constant latency");
    };
    let (latency, own) = (millis / 1e3, overhead());
    let connection = network.connection_bandwidth.unwrap();
    let total = network.total_bandwidth.unwrap();
    let cloud = cloud(network);
    let found = run(async { measured(cloud.s3().store("scratch")?, &options()).await })?;
    is_empty(&cloud)?;
    let bytes = found.test_bytes;
    ensure(bytes <= options().bytes, || {
        format!("{bytes} bytes of test data")
    })?;
    found.profile("simulated", "2026-11-16", None)?;
    let seen = &found.network;
    let (least, _) = seen.useful_requests();
    eprintln!(
        "{preset}: {:.3} ms ({:.3} ms without a network), {:.2} MB/s, {:.2} MB/s from {least} up, {:.1} s",
        seen.latency_seconds * 1e3,
        own * 1e3,
        seen.connection_bandwidth / 1e6,
        seen.peak() / 1e6,
        found.took.as_secs_f64(),
    );
    // The number of requests that just fills the network may miss 90 % of the peak by a hair.
    let enough = (0.9 * total / connection).log2().ceil().exp2();
    let fills = f64::from(least) == enough || f64::from(least) == 2.0 * enough;
    let near = |seen: f64, configured: f64, slack: f64| {
        (seen - configured).abs() < TOLERANCE * configured + slack
    };
    let checks = [
        (
            "latency",
            near(seen.latency_seconds - own, latency, WAKE_UP),
        ),
        (
            "connection",
            near(seen.connection_bandwidth, connection, 0.0),
        ),
        ("total", near(seen.peak(), total, 0.0)),
        ("useful requests", fills),
    ];
    let differ = checks.iter().filter(|(_, fine)| !fine);
    Ok(differ.map(|(name, _)| *name).collect())
}

/// One after another: measurements would disturb each other.
#[test]
fn presets_are_found() {
    for preset in ["aws", "azure", "gcp"] {
        let mut missing = compare(preset).unwrap();
        for _ in 1..ATTEMPTS {
            if missing.is_empty() {
                break;
            }
            let differ = compare(preset).unwrap();
            missing.retain(|name| differ.contains(name));
        }
        assert!(missing.is_empty(), "{preset}: {missing:?} not found");
    }
}

#[test]
fn nothing_is_left_when_reads_fail() {
    let cloud = cloud(Network::unshaped());
    let rule = FaultRule::new(FaultKind::InternalError, Trigger::Every(20)).method("GET");
    cloud.sim().faults().set(FaultPlan::of([rule])).unwrap();
    fails_and_leaves_nothing(&cloud);
}

fn fails_and_leaves_nothing(cloud: &SimPlace) {
    run(async {
        let store = cloud.s3().with("retries", "0").store("scratch")?;
        let failed = measure::<NoFunction>(store, &options(), None, &(), pending()).await;
        ensure(failed.is_err(), || format!("it succeeded: {failed:?}"))?;
        is_empty(cloud)
    })
    .unwrap();
}

#[test]
fn nothing_is_left_when_writes_fail_or_lose_their_answers() {
    for kind in [FaultKind::InternalError, FaultKind::LostResponse] {
        let cloud = cloud(Network::unshaped());
        let rule = FaultRule::new(kind, Trigger::Nth(7)).method("PUT");
        cloud.sim().faults().set(FaultPlan::of([rule])).unwrap();
        fails_and_leaves_nothing(&cloud);
    }
}

#[test]
fn nothing_is_left_when_it_is_stopped() {
    let network = Network {
        total_bandwidth: Some(4e6),
        ..Network::unshaped()
    };
    let cloud = cloud(network);
    run(async {
        let store = cloud.s3().store("scratch")?;
        // At once, in the middle of the writes, and of the reads.
        let stopped =
            measure::<NoFunction>(store.clone(), &options(), None, &(), ready(())).await?;
        ensure(stopped.is_none(), || "it was not stopped".into())?;
        for reads in [0, 10] {
            cloud.sim().reset_meter();
            let begun = async {
                loop {
                    let meter = cloud.sim().meter();
                    if meter.put >= 3 && meter.get >= reads {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            let options = MeasureOptions {
                bytes: 4 << 20,
                ..options()
            };
            let stopped = measure::<NoFunction>(store.clone(), &options, None, &(), begun).await?;
            ensure(stopped.is_none(), || "it was not stopped".into())?;
            is_empty(&cloud)?;
        }
        Ok(())
    })
    .unwrap();
}
