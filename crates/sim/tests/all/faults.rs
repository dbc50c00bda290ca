//! Each kind of fault, as the client sees it.

use std::time::Duration;

use hyperslab_sim::{FaultKind, FaultPlan, FaultRule, Sim, SimConfig, Trigger};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStoreExt as _, RetryConfig};

use crate::client::{BUCKET, builder, chain, client, start, start_with};

fn inject(sim: &Sim, kind: FaultKind) {
    let rule = FaultRule::new(kind, Trigger::Nth(1)).pattern("bucket/victim");
    sim.faults().set(FaultPlan::of([rule])).unwrap();
}

fn victim() -> Path {
    Path::from("victim")
}

async fn with_object() -> Sim {
    let sim = start().await;
    sim.objects(BUCKET)
        .unwrap()
        .put("victim", vec![7; 2_000_000])
        .unwrap();
    sim.objects(BUCKET).unwrap().put("other", "fine").unwrap();
    sim
}

/// The fault happens once and only to its victim.
async fn seen_once(sim: &Sim, kind: FaultKind) {
    assert_eq!(sim.faults().counts().get(&kind), Some(&1), "{kind:?}");
    let store = client(sim);
    assert_eq!(
        store
            .get(&Path::from("other"))
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap(),
        "fine"
    );
    assert_eq!(
        store
            .get(&victim())
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap()
            .len(),
        2_000_000
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reset_before_headers() {
    let sim = with_object().await;
    inject(&sim, FaultKind::ResetBeforeHeaders);
    let error = client(&sim).get(&victim()).await.unwrap_err();
    assert!(!chain(&error).contains("HTTP status"), "{}", chain(&error));
    seen_once(&sim, FaultKind::ResetBeforeHeaders).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reset_after_headers() {
    let sim = with_object().await;
    inject(&sim, FaultKind::ResetAfterHeaders);
    // The reset may overtake the headers in the client's kernel; the bytes never come whole.
    match client(&sim).get(&victim()).await {
        Ok(got) => assert!(got.bytes().await.is_err()),
        Err(error) => assert!(!chain(&error).contains("HTTP status"), "{}", chain(&error)),
    }
    seen_once(&sim, FaultKind::ResetAfterHeaders).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn truncated_body() {
    let sim = with_object().await;
    inject(&sim, FaultKind::TruncatedBody);
    let got = client(&sim).get(&victim()).await.unwrap();
    assert_eq!(got.meta.size, 2_000_000, "the headers promise everything");
    assert!(got.bytes().await.is_err());
    assert_eq!(sim.meter().bytes_out, 1_000_000);
    seen_once(&sim, FaultKind::TruncatedBody).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hang_until_the_client_gives_up() {
    let sim = with_object().await;
    inject(&sim, FaultKind::Hang);
    let options = ClientOptions::new()
        .with_allow_http(true)
        .with_timeout(Duration::from_millis(200));
    let store = builder(&sim).with_client_options(options).build().unwrap();
    let error = store.get(&victim()).await.unwrap_err();
    assert!(
        chain(&error).contains("timed out") || chain(&error).contains("timeout"),
        "{error}"
    );
    seen_once(&sim, FaultKind::Hang).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_is_bounded() {
    let sim = with_object().await;
    let rule = FaultRule::new(FaultKind::Hang, Trigger::Nth(1));
    sim.faults()
        .set(FaultPlan {
            hang_seconds: 0.1,
            ..FaultPlan::of([rule])
        })
        .unwrap();
    assert!(
        client(&sim).get(&victim()).await.is_err(),
        "the connection is reset in the end"
    );
    seen_once(&sim, FaultKind::Hang).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_errors_and_slow_down() {
    for (kind, status) in [
        (FaultKind::InternalError, "500"),
        (FaultKind::SlowDown, "503"),
    ] {
        let sim = with_object().await;
        inject(&sim, kind);
        let error = client(&sim).put(&victim(), "new".into()).await.unwrap_err();
        assert!(chain(&error).contains(status), "{}", chain(&error));
        seen_once(&sim, kind).await;
        let meter = sim.meter();
        assert_eq!((meter.put, meter.not_billed), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_response_leaves_the_effect() {
    let sim = start().await;
    inject(&sim, FaultKind::LostResponse);
    let error = client(&sim)
        .put(&victim(), "stored".into())
        .await
        .unwrap_err();
    assert!(!chain(&error).contains("HTTP status"), "{}", chain(&error));
    assert_eq!(
        sim.objects(BUCKET).unwrap().get("victim").unwrap().unwrap(),
        "stored"
    );
    // Bulk deletes name their keys in the body, so the pattern has to match the bucket.
    let rule = FaultRule::new(FaultKind::LostResponse, Trigger::Nth(1)).pattern("bucket/*");
    sim.faults().set(FaultPlan::of([rule])).unwrap();
    assert!(
        client(&sim).get(&victim()).await.is_ok(),
        "reads are left alone"
    );
    assert!(client(&sim).delete(&victim()).await.is_err());
    assert!(sim.objects(BUCKET).unwrap().keys().is_empty());
    assert_eq!(
        sim.faults().counts().get(&FaultKind::LostResponse),
        Some(&2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retrying_client_gets_through_random_faults() {
    let kinds = [
        FaultKind::ResetBeforeHeaders,
        FaultKind::InternalError,
        FaultKind::SlowDown,
        FaultKind::ResetAfterHeaders,
    ];
    let rules = kinds.map(|kind| FaultRule::new(kind, Trigger::Probability(0.05)).method("GET"));
    let config = SimConfig {
        faults: FaultPlan {
            seed: 5,
            ..FaultPlan::of(rules)
        },
        ..Default::default()
    };
    let sim = start_with(config).await;
    sim.objects(BUCKET).unwrap().put("other", "fine").unwrap();
    let mut retry = RetryConfig {
        max_retries: 20,
        ..RetryConfig::default()
    };
    retry.backoff.init_backoff = Duration::from_millis(1);
    retry.backoff.max_backoff = Duration::from_millis(2);
    let store = builder(&sim).with_retry(retry).build().unwrap();
    for _ in 0..100 {
        let got = store
            .get(&Path::from("other"))
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        assert_eq!(got, "fine");
    }
    let injected: u64 = sim.faults().counts().values().sum();
    assert!(injected > 5, "{injected}");
    assert_eq!(
        sim.meter().get,
        100 + injected,
        "each fault cost one more request"
    );
}
