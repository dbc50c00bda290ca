//! Shaped transfers are right, and limits refuse. How exact the timing is, `examples/calibrate`
//! measures; no test asserts a time.

use bytes::Bytes;
use hyperslab_sim::{Latency, Network, RateLimit, RateScope, SimConfig};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::client::{BUCKET, bare, chain, client, start_with};

#[tokio::test(flavor = "multi_thread")]
async fn shaped_bodies_arrive_whole_in_both_directions() {
    let network = Network {
        latency: Latency::LogNormal {
            floor_millis: 0.1,
            median_millis: 1.0,
            p99_millis: 5.0,
        },
        connection_bandwidth: Some(30e6),
        total_bandwidth: Some(60e6),
        ..Network::default()
    };
    let sim = start_with(SimConfig {
        network,
        ..Default::default()
    })
    .await;
    let store = client(&sim);
    let bytes: Bytes = (0..1_234_567_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let transfers = (0..4).map(|n| {
        let (store, bytes) = (&store, bytes.clone());
        async move {
            let path = Path::from(format!("object/{n}"));
            store.put(&path, bytes.clone().into()).await.unwrap();
            assert_eq!(
                store.get(&path).await.unwrap().bytes().await.unwrap(),
                bytes
            );
            let range = store.get_range(&path, 100_001..900_003).await.unwrap();
            assert_eq!(range, bytes.slice(100_001..900_003));
        }
    });
    futures::future::join_all(transfers).await;
    let meter = sim.meter();
    assert_eq!(meter.bytes_in, 4 * 1_234_567);
    assert_eq!(meter.bytes_out, 4 * (1_234_567 + 800_002));
}

#[tokio::test(flavor = "multi_thread")]
async fn above_the_rate_the_answer_is_503() {
    let limit = RateLimit {
        reads_per_second: Some(0.001),
        writes_per_second: None,
        burst: 3.0,
        scope: RateScope::Prefix(1),
        retry_after_seconds: Some(7),
    };
    let network = Network {
        rate_limit: Some(limit),
        ..Network::default()
    };
    let public_buckets = vec![BUCKET.to_string()];
    let sim = start_with(SimConfig {
        network,
        public_buckets,
        ..Default::default()
    })
    .await;
    let store = client(&sim);
    let path = Path::from("a/k");
    store.put(&path, "x".into()).await.unwrap();
    for _ in 0..3 {
        store.get(&path).await.unwrap();
    }
    let error = store.get(&path).await.unwrap_err();
    assert!(
        chain(&error).contains("503") && chain(&error).contains("SlowDown"),
        "{error}"
    );
    let answer = bare(&sim.endpoint(), "GET /bucket/a/k", &[], b"").await;
    assert_eq!(answer.status, 503);
    assert!(answer.head.contains("retry-after: 7"), "{}", answer.head);
    let other = store.get(&Path::from("b/k")).await.unwrap_err();
    assert!(
        matches!(other, object_store::Error::NotFound { .. }),
        "another prefix is free"
    );
    store.put(&path, "y".into()).await.unwrap();
    assert_eq!(sim.meter().not_billed, 2);
    sim.set_network(Network::unshaped()).unwrap();
    assert!(store.get(&path).await.is_ok());
}

#[test]
fn a_simulator_can_have_threads_of_its_own() {
    let sim = hyperslab_sim::Sim::start_in_thread(SimConfig {
        buckets: vec![BUCKET.into()],
        network: Network::preset("local").unwrap(),
        ..Default::default()
    })
    .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = client(&sim);
        store.put(&Path::from("k"), "x".into()).await.unwrap();
        assert_eq!(
            store
                .get(&Path::from("k"))
                .await
                .unwrap()
                .bytes()
                .await
                .unwrap(),
            "x"
        );
    });
    let endpoint = sim.endpoint();
    drop(sim);
    let address = endpoint.strip_prefix("http://").unwrap();
    assert!(
        std::net::TcpStream::connect(address).is_err(),
        "a dropped simulator is gone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_simulator_listens_no_more() {
    let sim = start_with(SimConfig::default()).await;
    let endpoint = sim.endpoint();
    sim.stop().await;
    let address = endpoint.strip_prefix("http://").unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
