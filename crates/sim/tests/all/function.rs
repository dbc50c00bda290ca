//! The function service: right cells, cold starts, the bill, and every way to fail.

use std::time::{Duration, Instant};

use hyperslab_format::{CodecChain, DataType};
use hyperslab_function::{FunctionClient, Secret, SlabRequest, StridedRun, Unit, UnitCodecs};
use hyperslab_index::ErrorKind;
use hyperslab_sim::{
    FunctionConfig, FunctionFailure, FunctionFailures, FunctionModel, Network, Place, PriceBook,
    Sim, SimConfig,
};

use crate::client::{BUCKET, start_with};

const MIB: u64 = 1 << 20;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// A simulator with a function and an object of 2 MiB.
async fn start(function: FunctionConfig) -> (Sim, FunctionClient) {
    let sim = start_with(SimConfig {
        prices: PriceBook::built_in("aws").unwrap(),
        place: Place::Internet,
        function: Some(function),
        ..SimConfig::default()
    })
    .await;
    let object: Vec<u8> = (0..2 * MIB).map(|i| (i % 251) as u8).collect();
    sim.objects(BUCKET).unwrap().put("a/c0", object).unwrap();
    let url = sim.function_url().unwrap();
    (sim, FunctionClient::new(&url, None).unwrap())
}

/// Four bytes of every 4,096 of the object's second half.
fn request() -> (SlabRequest, Vec<u8>) {
    let run = StridedRun {
        start: 0,
        len: 4,
        step: 4096,
        count: 256,
    };
    let units = vec![Unit::raw(vec![run]).at(MIB..2 * MIB)];
    let request = SlabRequest::new(format!("s3://{BUCKET}/a/c0"), units).unwrap();
    let cells = (0..256u64)
        .flat_map(|i| (0..4).map(move |j| ((MIB + i * 4096 + j) % 251) as u8))
        .collect();
    (request, cells)
}

/// Bytes that a call reads: from the first piece to the end of the last.
const READ: u64 = 255 * 4096 + 4;

#[tokio::test(flavor = "multi_thread")]
async fn cold_starts_seconds_and_dollars_add_up() {
    let model = FunctionModel {
        alpha_millis_per_mib: 8.0,
        beta_millis: 4.0,
        cold_millis: 16.0,
        ..FunctionModel::default()
    };
    let (sim, client) = start(FunctionConfig {
        model: model.clone(),
        ..FunctionConfig::default()
    })
    .await;
    let (request, cells) = request();
    for _ in 0..3 {
        assert_eq!(client.call(&request, soon()).await.unwrap(), cells);
    }
    let meter = sim.meter();
    let function = &meter.function;
    assert_eq!(
        (function.calls, function.cold_starts, function.reads),
        (3, 1, 3)
    );
    assert_eq!(
        meter.requests(),
        0,
        "what the function reads is not the client's"
    );
    let seconds = 3.0 * model.compute_seconds(READ) + 0.016;
    assert!((function.seconds - seconds).abs() < 1e-12, "{function:?}");
    let gigabytes = model.memory_bytes as f64 / (1u64 << 30) as f64;
    assert!((function.gb_seconds - seconds * gigabytes).abs() < 1e-12);
    assert_eq!(meter.bytes_out, 3 * (24 + 1024));
    let prices = PriceBook::built_in("aws").unwrap();
    let dollars = 3.0 * prices.function.per_million_requests.value / 1e6
        + function.gb_seconds * prices.function.per_gb_second.value
        + prices.request_dollars(0, 3, 0)
        + prices.egress_dollars(Place::Internet, meter.bytes_out);
    assert!((meter.dollars - dollars).abs() < 1e-15);
    sim.reset_meter();
    assert_eq!(sim.meter().function, Default::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_start_instances_until_there_are_enough() {
    let model = FunctionModel {
        beta_millis: 300.0,
        max_concurrent: 3,
        ..FunctionModel::default()
    };
    let (sim, client) = start(FunctionConfig {
        model,
        ..FunctionConfig::default()
    })
    .await;
    let (request, _) = request();
    let calls = (0..5).map(|_| client.call(&request, soon()));
    let answers = futures::future::join_all(calls).await;
    let good = answers.iter().filter(|answer| answer.is_ok()).count();
    let function = sim.meter().function;
    assert_eq!(function.calls as usize, good);
    assert_eq!(function.calls + function.throttled, 5);
    assert!(function.cold_starts <= 3);
    for error in answers.into_iter().filter_map(Result::err) {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_is_told_apart_and_counted() {
    let (sim, client) = start(FunctionConfig::default()).await;
    let (request, cells) = request();
    let none = FunctionFailures::default();
    for (failures, kind, word) in [
        (
            FunctionFailures {
                crash: 1.0,
                ..none.clone()
            },
            FunctionFailure::Crash,
            "502",
        ),
        (
            FunctionFailures {
                wrong_bytes: 1.0,
                ..none.clone()
            },
            FunctionFailure::WrongBytes,
            "checksum",
        ),
        (
            FunctionFailures {
                error_page: 1.0,
                ..none.clone()
            },
            FunctionFailure::ErrorPage,
            "web page",
        ),
        (
            FunctionFailures {
                hang: 1.0,
                hang_seconds: 0.05,
                ..none.clone()
            },
            FunctionFailure::Hang,
            "broke",
        ),
    ] {
        sim.set_function_failures(failures).unwrap();
        let error = client.call(&request, soon()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains(word), "{error}");
        assert_eq!(sim.meter().function.failures[&kind], 1);
    }
    let hang = FunctionFailures {
        hang: 1.0,
        ..none.clone()
    };
    sim.set_function_failures(hang).unwrap();
    let deadline = Instant::now() + Duration::from_millis(50);
    let error = client.call(&request, deadline).await.unwrap_err();
    assert!(error.message().contains("in time"), "{error}");
    sim.set_function_failures(none).unwrap();
    assert_eq!(client.call(&request, soon()).await.unwrap(), cells);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_is_told_from_the_function() {
    let secret = Secret::new("a secret for the simulator").unwrap();
    let (sim, stranger) = start(FunctionConfig {
        secret: Some(secret.clone()),
        ..FunctionConfig::default()
    })
    .await;
    sim.create_bucket("other").unwrap();
    sim.objects("other").unwrap().put("k", "secret").unwrap();
    let client = FunctionClient::new(&sim.function_url().unwrap(), Some(secret)).unwrap();
    let (request, cells) = request();
    assert_eq!(client.call(&request, soon()).await.unwrap(), cells);
    let at = |object: String| SlabRequest {
        object,
        ..request.clone()
    };
    let kind = async |client: &FunctionClient, request: SlabRequest| {
        client.call(&request, soon()).await.unwrap_err().kind()
    };
    let absent = at(format!("s3://{BUCKET}/a/c1"));
    assert_eq!(kind(&client, absent).await, ErrorKind::NotFound);
    assert_eq!(
        kind(&client, at("s3://other/k".into())).await,
        ErrorKind::Denied
    );
    assert_eq!(kind(&stranger, request.clone()).await, ErrorKind::Denied);
    let changed = request.clone().pinned(Some("\"other\"".into()));
    assert_eq!(kind(&client, changed).await, ErrorKind::Conflict);
    assert_eq!(client.health(soon()).await.unwrap().version, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_chunks_are_read_whole_and_decoded() {
    let (sim, client) = start(FunctionConfig::default()).await;
    let list = serde_json::json!(["bytes", {"name": "zstd", "configuration": {"level": 1}}]);
    let chain = CodecChain::from_json(list.as_array().unwrap(), &DataType::UInt(1), &[1000]);
    let mut cells: Vec<u8> = (0..1000u32).map(|i| (i / 7) as u8).collect();
    let expected = cells[100..200].to_vec();
    let encoded = chain.unwrap().encode(&mut cells, &[1000], &[0]).unwrap();
    sim.objects(BUCKET).unwrap().put("z", encoded).unwrap();
    let codecs = UnitCodecs {
        codecs: list,
        data_type: "uint8".into(),
        fill_value: 0.into(),
        shape: vec![1000],
    };
    let units = vec![Unit::decoded(codecs, vec![StridedRun::plain(100..200)])];
    let request = SlabRequest::new(format!("s3://{BUCKET}/z"), units).unwrap();
    assert_eq!(client.call(&request, soon()).await.unwrap(), expected);
    assert_eq!(sim.meter().function.reads, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_streams_and_shaped_networks_lose_nothing() {
    let sim = start_with(SimConfig {
        network: Network::preset("fast").unwrap(),
        function: Some(FunctionConfig {
            model: FunctionModel {
                stream_after_bytes: Some(100_000),
                stream_bandwidth: Some(20e6),
                ..FunctionModel::default()
            },
            ..FunctionConfig::default()
        }),
        ..SimConfig::default()
    })
    .await;
    let object: Vec<u8> = (0..MIB).map(|i| (i % 251) as u8).collect();
    sim.objects(BUCKET)
        .unwrap()
        .put("k", object.clone())
        .unwrap();
    let client = FunctionClient::new(&sim.function_url().unwrap(), None).unwrap();
    let units = vec![Unit::raw(vec![StridedRun::plain(0..MIB)])];
    let request = SlabRequest::new(format!("s3://{BUCKET}/k"), units).unwrap();
    assert_eq!(client.call(&request, soon()).await.unwrap(), object);
    let expected = (MIB - 100_000) as f64 / 20e6;
    assert!((sim.meter().function.seconds - expected).abs() < 1e-9);
}

#[tokio::test]
async fn a_simulator_without_a_function_says_so() {
    let sim = start_with(SimConfig::default()).await;
    assert_eq!(sim.function_url(), None);
    assert!(
        sim.set_function_failures(FunctionFailures::default())
            .is_err()
    );
    let bad = SimConfig {
        function: Some(FunctionConfig {
            failures: FunctionFailures {
                crash: -1.0,
                ..FunctionFailures::default()
            },
            ..FunctionConfig::default()
        }),
        ..SimConfig::default()
    };
    assert!(Sim::start(bad).await.is_err());
}
