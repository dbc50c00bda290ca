//! Closed forms, bounds that hold for every run, and the meter's bill.

use std::sync::Arc;

use hyperslab_plan::{Call, Method, Mode, Model, Object, Profile, Query, Run, plan};

use super::*;
use crate::meter::Meter;
use crate::network::seeded::uniform;
use crate::network::{Latency, RateLimit, RateScope};
use crate::operation::Operation;

const LATENCY: f64 = 0.02;
const CONNECTION: f64 = 10e6;
const TOTAL: f64 = 40e6;

fn config() -> VirtualConfig {
    VirtualConfig {
        network: Network {
            latency: Latency::Constant { millis: 20.0 },
            connection_bandwidth: Some(CONNECTION),
            total_bandwidth: Some(TOTAL),
            ..Network::default()
        },
        function: Some(FunctionModel {
            alpha_millis_per_mib: 15.0,
            beta_millis: 180.0,
            cold_millis: 400.0,
            max_concurrent: 1000,
            ..FunctionModel::default()
        }),
        warm: 1000,
        ..VirtualConfig::default()
    }
}

fn gets(count: usize, bytes: u64) -> Vec<Work> {
    vec![Work::from(VirtualRequest::Get { bytes }); count]
}

fn calls(count: usize, read: u64, answer: u64) -> Vec<Work> {
    let call = VirtualRequest::Call {
        read,
        reads: 1,
        answer,
    };
    vec![Work::from(call); count]
}

fn run(config: VirtualConfig, work: &[Work]) -> VirtualOutcome {
    let mut cloud = VirtualCloud::new(config).unwrap();
    cloud.run(work, 1024).unwrap()
}

#[track_caller]
fn assert_seconds(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-9 * expected.max(1.0),
        "{found} seconds, not {expected}"
    );
}

#[test]
fn one_request_takes_latency_and_the_speed_of_a_connection() {
    let one = run(config(), &gets(1, 5_000_000));
    assert_seconds(one.seconds, LATENCY + 0.5);
    assert_eq!((one.requests, one.calls, one.bytes), (1, 0, 5_000_000));
    assert_eq!(run(config(), &[]), VirtualOutcome::default());
}

#[test]
fn equal_requests_take_turns_in_the_window() {
    // Four connections are as fast as all together.
    let mut config = config();
    config.window = 4;
    let turns = run(config, &gets(20, 100_000));
    assert_seconds(turns.seconds, 5.0 * (LATENCY + 0.01));
}

#[test]
fn many_large_requests_fill_the_bandwidth() {
    let full = run(config(), &gets(200, 1_000_000));
    assert_seconds(full.seconds, LATENCY + 200e6 / TOTAL);
}

#[test]
fn the_client_works_on_one_request_after_another() {
    let mut config = config();
    config.request_seconds = 0.001;
    let many = run(config, &gets(200, 0));
    assert_seconds(many.seconds, 0.2 + LATENCY);
}

#[test]
fn requests_above_the_rate_wait() {
    let mut config = config();
    config.network.rate_limit = Some(RateLimit {
        reads_per_second: Some(100.0),
        writes_per_second: None,
        burst: 50.0,
        scope: RateScope::Bucket,
        retry_after_seconds: None,
    });
    let many = run(config.clone(), &gets(150, 0));
    assert_seconds(many.seconds, 1.0 + LATENCY);
    // What a call reads next to the data is not limited.
    let called = run(config, &calls(150, 0, 0));
    assert_seconds(called.seconds, LATENCY + 0.18);
}

#[test]
fn a_call_takes_alpha_beta_and_its_answer() {
    let mut cold = config();
    cold.warm = 0;
    let warm = run(config(), &calls(1, 2 << 20, 1_000_000));
    assert_seconds(warm.seconds, LATENCY + 0.03 + 0.18 + 0.1);
    assert_seconds(warm.function_seconds, 0.21);
    let cold = run(cold, &calls(1, 2 << 20, 1_000_000));
    assert_seconds(cold.seconds, warm.seconds + 0.4);
    assert_seconds(cold.function_seconds, 0.61);
    assert_eq!((warm.cold_starts, cold.cold_starts), (0, 1));
    assert_eq!((warm.requests, warm.calls, warm.reads), (0, 1, 1));
}

#[test]
fn no_more_calls_run_than_allowed() {
    let mut config = config();
    if let Some(function) = &mut config.function {
        function.max_concurrent = 2;
    }
    let six = run(config, &calls(6, 0, 0));
    assert_seconds(six.seconds, 3.0 * (LATENCY + 0.18));
}

#[test]
fn calls_take_no_slots_from_requests() {
    let mut config = config();
    (config.window, config.call_window) = (1, 2);
    let mut work = calls(4, 0, 0);
    work.extend(gets(10, 0));
    // Two rounds of calls; meanwhile ten requests, one after another.
    let both = run(config, &work);
    assert_seconds(both.seconds, 2.0 * (LATENCY + 0.18));
}

#[test]
fn a_long_answer_is_streamed_slowly() {
    let mut config = config();
    if let Some(function) = &mut config.function {
        function.stream_after_bytes = Some(6_000_000);
        function.stream_bandwidth = Some(2e6);
    }
    let short = run(config.clone(), &calls(1, 0, 6_000_000));
    assert_seconds(short.seconds, LATENCY + 0.18 + 0.6);
    let long = run(config, &calls(1, 0, 16_000_000));
    assert_seconds(long.seconds, LATENCY + 0.18 + 5.0);
    assert_seconds(long.function_seconds, 0.18 + 5.0);
}

#[test]
fn instances_stay_warm_from_one_run_to_the_next() {
    let mut config = config();
    config.warm = 0;
    let mut cloud = VirtualCloud::new(config).unwrap();
    assert_eq!(cloud.run(&calls(10, 0, 0), 1024).unwrap().cold_starts, 10);
    assert_eq!(cloud.run(&calls(12, 0, 0), 1024).unwrap().cold_starts, 2);
}

#[test]
fn calls_without_a_function_are_refused() {
    let mut cloud = VirtualCloud::new(VirtualConfig::default()).unwrap();
    assert!(cloud.run(&calls(1, 0, 0), 1).is_err());
    let nobody = VirtualConfig {
        window: 0,
        ..VirtualConfig::default()
    };
    assert!(VirtualCloud::new(nobody).is_err());
}

/// Random work, and the network it meets.
fn random(seed: u64) -> (VirtualConfig, Vec<Work>) {
    let draw = |purpose, number| uniform(seed, purpose, number);
    let mut config = config();
    config.network.seed = seed;
    config.network.latency = Latency::LogNormal {
        floor_millis: 1.0,
        median_millis: 5.0 + 40.0 * draw(10, 0),
        p99_millis: 200.0,
    };
    config.network.connection_bandwidth = Some(1e6 + 1e8 * draw(10, 1));
    config.network.total_bandwidth = Some(1e6 + 2e8 * draw(10, 2));
    config.window = 1 + (40.0 * draw(10, 3)) as usize;
    config.call_window = 1 + (40.0 * draw(10, 8)) as usize;
    config.request_seconds = 0.002 * draw(10, 4);
    config.warm = (20.0 * draw(10, 5)) as u32;
    if let Some(function) = &mut config.function {
        function.max_concurrent = 1 + (30.0 * draw(10, 6)) as u32;
        function.stream_after_bytes = Some(100_000);
        function.stream_bandwidth = Some(2e6);
    }
    let work = (0..1 + (60.0 * draw(10, 7)) as u64).map(|i| {
        let by_call = draw(11, i) < 0.3;
        let requests = (0..1 + (4.0 * draw(12, i)) as u64).map(|j| {
            let size = (1e6 * draw(13, 100 * i + j)) as u64;
            match by_call {
                true => VirtualRequest::Call {
                    read: size,
                    reads: 1,
                    answer: size / 3,
                },
                false => VirtualRequest::Get { bytes: size },
            }
        });
        Work {
            requests: requests.collect(),
        }
    });
    let work = work.collect();
    (config, work)
}

#[test]
fn no_run_beats_the_floor_or_is_slower_than_one_after_another() {
    for seed in 0..300 {
        let (config, work) = random(seed);
        let network = config.network.clone();
        let connection = network.connection_bandwidth.unwrap();
        let total = network.total_bandwidth.unwrap();
        let function = config.function.clone().unwrap();
        let own_work = config.request_seconds;
        let outcome = run(config, &work);

        let requests: Vec<_> = work.iter().flat_map(|work| &work.requests).collect();
        let body = |request: &VirtualRequest| match request {
            VirtualRequest::Get { bytes } => *bytes,
            VirtualRequest::Call { answer, .. } => *answer,
        };
        let bytes: u64 = requests.iter().map(|request| body(request)).sum();
        let longest = requests.iter().map(|request| body(request)).max().unwrap();
        assert_eq!(outcome.bytes, bytes);
        assert_eq!(outcome.requests + outcome.calls, requests.len() as u64);
        let floor = (bytes as f64 / total)
            .max(longest as f64 / connection)
            .max(requests.len() as f64 * own_work);
        assert!(outcome.seconds >= floor, "{seed}: {outcome:?}");

        let latencies = (0..requests.len() as u64)
            .map(|number| network.latency.sample(network.seed, number).as_secs_f64());
        let mut serial: f64 = latencies.map(|latency| latency + own_work).sum();
        for request in requests {
            serial += body(request) as f64 / connection.min(total);
            if let VirtualRequest::Call { read, answer, .. } = request {
                serial += function.cold_millis / 1e3
                    + function.compute_seconds(*read)
                    + function.streamed_seconds(*answer);
            }
        }
        assert!(
            outcome.seconds <= serial * (1.0 + 1e-9),
            "{seed}: {outcome:?}"
        );
    }
}

#[test]
fn the_bill_is_the_meters() {
    let prices = PriceBook::built_in("gcp").unwrap();
    let mut config = config();
    config.prices = prices.clone();
    let mut work = gets(30, 1_000_000);
    work.extend(calls(7, 3 << 20, 500_000));
    let outcome = run(config.clone(), &work);
    assert_eq!((outcome.requests, outcome.calls), (30, 7));

    let meter = Arc::new(Meter::new(prices, config.place));
    let get = Operation::classify(&http::Method::GET, "/b/k", "", &http::HeaderMap::new());
    let function = config.function.unwrap();
    for work in work {
        for request in work.requests {
            match request {
                VirtualRequest::Get { bytes } => {
                    meter.arrived(&get);
                    meter.sent(bytes as usize);
                }
                VirtualRequest::Call { read, answer, .. } => {
                    let seconds = function.compute_seconds(read);
                    meter.called(false, seconds, function.gigabytes(), 1);
                    meter.sent(answer as usize);
                }
            }
        }
    }
    let billed = meter.snapshot().dollars;
    assert!((outcome.dollars / billed - 1.0).abs() < 1e-12);
}

#[test]
fn the_work_of_a_plan_is_what_the_executor_does() {
    let runs = |n: u64| -> Vec<Run> {
        let starts = (0..n).map(|i| i * 1000);
        starts.map(|at| Run::plain(at..at + 100)).collect()
    };
    let mut shard = Object::raw(100_000, runs(10));
    shard.grain = 0;
    let mut guessed = Object::encoded(50_000, 400);
    guessed.splittable = false;
    let query = Query::new(vec![Object::raw(100_000, runs(10)), guessed, shard]).unwrap();
    let profile = Profile::built_in("aws").unwrap();
    let model = Model::new(&profile, &PriceBook::free(), Place::Internet, 0.0).unwrap();
    let by_call = plan(&query, &model, Mode::Function);
    let call = |object: usize, read: std::ops::Range<u64>, useful: u64| {
        let Method::Function(calls) = &by_call.methods[object] else {
            panic!("{:?}", by_call.methods[object]);
        };
        Call {
            read,
            useful,
            ..calls[0].clone()
        }
    };
    let mut plan = plan(&query, &model, Mode::RangeFetch);
    plan.methods[2] = Method::Function(vec![call(2, 0..4100, 500), call(2, 5000..9100, 500)]);

    let work = Work::of_plan(&query, &plan, &[100_000, 60_000, 120_000]);
    // The longest request goes first.
    assert_eq!(work[1], Work::from(VirtualRequest::Get { bytes: 60_000 }));
    assert_eq!(
        work[2].requests,
        vec![VirtualRequest::Get { bytes: 100 }; 10]
    );
    // Calls go first. The five units of each call are read one by one, without the gaps.
    let half = VirtualRequest::Call {
        read: 500,
        reads: 5,
        answer: 500,
    };
    assert_eq!(work[0].requests, vec![half; 2]);

    plan.methods[0] = Method::Function(vec![call(0, 0..9100, 1000)]);
    plan.methods[2] = Method::Function(vec![call(2, 0..9100, 1000)]);
    plan.bundles = vec![vec![0, 2]];
    let together = VirtualRequest::Call {
        read: 9100 + 1000,
        reads: 11,
        answer: 2000,
    };
    let work = Work::of_plan(&query, &plan, &[]);
    let guessed = VirtualRequest::Get { bytes: 50_000 };
    assert_eq!(work, [Work::from(together), Work::from(guessed)]);
}
