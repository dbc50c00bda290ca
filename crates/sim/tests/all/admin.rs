//! The simulator's own path, for programs in other languages.

use object_store::ObjectStoreExt as _;
use object_store::path::Path;

use crate::client::{bare, client, start};

#[tokio::test(flavor = "multi_thread")]
async fn the_meter_can_be_read_and_reset_over_http() {
    let sim = start().await;
    client(&sim)
        .put(&Path::from("k"), "12345".into())
        .await
        .unwrap();
    let answer = bare(&sim.endpoint(), "GET /_sim/meter", &[], b"").await;
    assert_eq!(answer.status, 200);
    let meter: hyperslab_sim::MeterSnapshot = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((meter.put, meter.bytes_in, meter.requests()), (1, 5, 1));
    let answer = bare(&sim.endpoint(), "POST /_sim/reset", &[], b"").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        sim.meter().requests(),
        0,
        "and the admin path itself is not counted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn network_and_faults_can_be_changed_over_http() {
    let sim = start().await;
    let answer = bare(&sim.endpoint(), "PUT /_sim/network?preset=bench", &[], b"").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        sim.network(),
        hyperslab_sim::Network::preset("bench").unwrap()
    );
    let json = br#"{"latency": {"kind": "constant", "millis": 1.5}}"#;
    let answer = bare(&sim.endpoint(), "PUT /_sim/network", &[], json).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        sim.network().latency,
        hyperslab_sim::Latency::Constant { millis: 1.5 }
    );
    let json = br#"{"rules": [{"kind": "slow-down", "trigger": {"nth": 1}}], "seed": 3}"#;
    let answer = bare(&sim.endpoint(), "PUT /_sim/faults", &[], json).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(sim.faults().plan().seed, 3);
    assert!(
        client(&sim)
            .get(&Path::from("k"))
            .await
            .unwrap_err()
            .to_string()
            .contains("503")
    );
    let answer = bare(&sim.endpoint(), "PUT /_sim/faults", &[], b"{\"rules\": 7}").await;
    assert_eq!(answer.status, 400);
    let answer = bare(&sim.endpoint(), "GET /_sim/nonsense", &[], b"").await;
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("GET meter"), "{}", answer.text());
}
