//! Profiles of simulated clouds: what was configured is found, and nothing is left behind.

use std::future::{pending, ready};
use std::time::Duration;

use hyperslab::FunctionClient;
use hyperslab::profile::{MeasureOptions, Measured, NoFunction, function_limits, measure};
use hyperslab_sim::{
    FaultKind, FaultPlan, FaultRule, FunctionConfig, FunctionModel, Latency, Network, SimConfig,
    Trigger,
};
use hyperslab_testkit::servers::SimPlace;
use hyperslab_testkit::{Outcome, ensure, run, same};

/// How far a measurement may be from what was configured.
const TOLERANCE: f64 = 0.15;
const MIB: f64 = 1_048_576.0;

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
        time: Duration::from_secs(5),
        most_requests: 256,
    }
}

fn is_empty(cloud: &SimPlace) -> Outcome {
    let left = cloud.sim().objects(cloud.bucket())?.keys();
    ensure(left.is_empty(), || format!("left behind: {left:?}"))
}

/// Measures a preset with its function, from the inside of the program as `hyperslab profile` does.
async fn measured(cloud: &SimPlace) -> Outcome<Measured> {
    let client = FunctionClient::new(&cloud.sim().function_url().unwrap_or_default(), None)?;
    let store = cloud.s3().store("scratch")?;
    let measured = measure(store, &options(), Some(&client), &(), pending()).await?;
    let measured = measured.ok_or_else(|| hyperslab_testkit::Failure::new("nothing stopped it"))?;
    let limits = function_limits(&client).await?;
    measured.profile("simulated", "2026-11-16", Some(&limits))?;
    Ok(measured)
}

/// Measures a preset; returns what was found beside what is configured.
fn compare(preset: &str) -> Outcome<Vec<Found>> {
    let network = Network::preset(preset)?;
    let model = FunctionModel::preset(preset)?;
    let Latency::Constant { millis } = network.latency else {
        panic!("{preset} has no constant latency");
    };
    let connection = network.connection_bandwidth.unwrap();
    let total = network.total_bandwidth.unwrap();
    let cloud = SimPlace::start(SimConfig {
        network,
        function: Some(FunctionConfig {
            model: model.clone(),
            ..FunctionConfig::default()
        }),
        ..SimConfig::default()
    })?;
    let found = run(measured(&cloud))?;
    is_empty(&cloud)?;
    let bytes = found.test_bytes;
    ensure(bytes <= options().bytes, || {
        format!("{bytes} bytes of test data")
    })?;
    let seen = &found.network;
    let (least, _) = seen.useful_requests();
    // The number of requests that just fills the network may miss 90 % of the peak by a hair.
    let enough = (0.9 * total / connection).log2().ceil().exp2();
    let useful = match f64::from(least) == 2.0 * enough {
        true => enough,
        false => f64::from(least),
    };
    let function = found.function.as_ref().unwrap();
    eprintln!(
        "{preset}: {:.3} ms of work with each request, useful from {least} on, {:.1} s",
        seen.request_seconds * 1e3,
        found.took.as_secs_f64(),
    );
    let found = vec![
        ("latency", seen.latency_seconds, millis / 1e3),
        ("connection", seen.connection_bandwidth, connection),
        ("total", seen.peak(), total),
        ("useful requests", useful, enough),
        (
            "alpha",
            function.seconds_per_byte,
            model.alpha_millis_per_mib / 1e3 / MIB,
        ),
        ("beta", function.warm_seconds, model.beta_millis / 1e3),
        (
            "cold beta",
            function.cold_seconds,
            (model.beta_millis + model.cold_millis) / 1e3,
        ),
    ];
    for (name, seen, configured) in &found {
        let off = 100.0 * (seen / configured - 1.0);
        eprintln!("{preset}: {name} {seen:.4e}, {off:+.1} %");
    }
    Ok(found)
}

/// A quantity with what was found of it and what is configured.
type Found = (&'static str, f64, f64);

fn is_near((_, seen, configured): &Found) -> bool {
    (seen / configured - 1.0).abs() <= TOLERANCE
}

/// The medians of three measurements; two that are near already decide them.
fn medians(preset: &str) -> Outcome<Vec<Found>> {
    let first = compare(preset)?;
    let second = compare(preset)?;
    if first.iter().chain(&second).all(is_near) {
        return Ok(second);
    }
    let third = compare(preset)?;
    let middle = |at: usize| {
        let mut found = [first[at], second[at], third[at]];
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found[1]
    };
    Ok((0..first.len()).map(middle).collect())
}

/// One after another: measurements would disturb each other.
#[test]
fn presets_are_found() {
    let mut wrong = Vec::new();
    for preset in ["aws", "azure", "gcp"] {
        let found = medians(preset).unwrap();
        wrong.extend(
            found
                .iter()
                .filter(|one| !is_near(one))
                .map(|one| (preset, *one)),
        );
    }
    assert!(wrong.is_empty(), "not found: {wrong:#?}");
}

#[test]
fn the_limits_of_a_function_are_told() {
    for preset in ["aws", "azure", "gcp"] {
        let model = FunctionModel::preset(preset).unwrap();
        let cloud = SimPlace::start(SimConfig {
            function: Some(FunctionConfig {
                model: model.clone(),
                ..FunctionConfig::default()
            }),
            ..SimConfig::default()
        })
        .unwrap();
        run(async {
            let url = cloud.sim().function_url().unwrap_or_default();
            let limits = function_limits(&FunctionClient::new(&url, None)?).await?;
            same("memory", limits.memory_bytes, model.memory_bytes)?;
            same("answer", limits.max_answer_bytes, model.max_answer_bytes)?;
            same("concurrency", limits.concurrency, model.max_concurrent)?;
            same("stream", limits.stream_bandwidth, model.stream_bandwidth)?;
            same("after", limits.stream_after_bytes, model.stream_after_bytes)?;
            same("calls", cloud.sim().meter().function.calls, 0)
        })
        .unwrap();
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
