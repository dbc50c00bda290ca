//! Signatures, keys, tokens, public buckets and keys that may not list.

use futures::TryStreamExt as _;
use hyperslab_sim::{KeyPair, SimConfig};
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use crate::client::{BUCKET, bare, builder, chain, client, start, start_with};

fn key() -> Path {
    Path::from("object")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_and_an_unknown_key_are_refused() {
    let sim = start().await;
    sim.objects(BUCKET).unwrap().put("object", "x").unwrap();
    let wrong = builder(&sim)
        .with_secret_access_key("wrong")
        .build()
        .unwrap();
    let error = wrong.get(&key()).await.unwrap_err();
    assert!(
        matches!(error, object_store::Error::PermissionDenied { .. }),
        "{error}"
    );
    assert!(
        chain(&error).contains("SignatureDoesNotMatch"),
        "{}",
        chain(&error)
    );
    let put = wrong
        .put(&key(), vec![7; 3_000_000].into())
        .await
        .unwrap_err();
    assert!(
        chain(&put).contains("SignatureDoesNotMatch"),
        "a large upload reads its refusal too"
    );
    let unknown = builder(&sim).with_access_key_id("NOBODY").build().unwrap();
    let error = unknown.get(&key()).await.unwrap_err();
    assert!(
        chain(&error).contains("InvalidAccessKeyId"),
        "{}",
        chain(&error)
    );
    assert_eq!(
        sim.objects(BUCKET).unwrap().get("object").unwrap().unwrap(),
        "x"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skewed_clock_is_refused() {
    let sim = start().await;
    let headers = [
        ("x-amz-date", "20200101T000000Z"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=SIMACCESSKEY/20200101/us-east-1/s3/aws4_request, \
             SignedHeaders=host;x-amz-content-sha256;x-amz-date, \
             Signature=0000000000000000000000000000000000000000000000000000000000000000",
        ),
    ];
    let answer = bare(&sim.endpoint(), "GET /bucket/object", &headers, b"").await;
    assert_eq!(answer.status, 403);
    assert!(
        answer.text().contains("RequestTimeTooSkewed"),
        "{}",
        answer.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_expire_and_must_fit() {
    let mut pair = KeyPair::new("TEMPORARY", "secret");
    pair.session_token = Some("fresh".into());
    let sim = start_with(SimConfig {
        keys: vec![pair],
        expired_tokens: vec!["stale".into()],
        ..Default::default()
    })
    .await;
    sim.objects(BUCKET).unwrap().put("object", "x").unwrap();
    let fresh = builder(&sim).with_token("fresh").build().unwrap();
    assert!(fresh.get(&key()).await.is_ok());
    let stale = builder(&sim).with_token("stale").build().unwrap();
    let error = stale.get(&key()).await.unwrap_err();
    assert!(chain(&error).contains("ExpiredToken"), "{}", chain(&error));
    let error = client(&sim).get(&key()).await.unwrap_err();
    assert!(chain(&error).contains("InvalidToken"), "{}", chain(&error));
    assert!(
        sim.env()
            .contains(&("AWS_SESSION_TOKEN".into(), "fresh".into()))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_public_buckets_are_read_without_a_signature() {
    let sim = start_with(SimConfig {
        public_buckets: vec!["open".into()],
        buckets: vec!["open".into()],
        ..Default::default()
    })
    .await;
    for bucket in ["open", BUCKET] {
        sim.objects(bucket).unwrap().put("k", "x").unwrap();
    }
    let status = |line: &'static str| {
        let endpoint = sim.endpoint();
        async move { bare(&endpoint, line, &[], b"").await.status }
    };
    assert_eq!(status("GET /open/k").await, 200);
    assert_eq!(status("GET /open/absent").await, 404);
    assert_eq!(status("GET /open?list-type=2").await, 200);
    assert_eq!(status("PUT /open/k").await, 403);
    assert_eq!(status("DELETE /open/k").await, 403);
    assert_eq!(status("GET /bucket/k").await, 403);
    assert_eq!(status("GET /bucket?list-type=2").await, 403);
    assert_eq!(status("GET /").await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_not_list_sees_403_for_absent_keys() {
    let mut blind = KeyPair::new("BLIND", "secret");
    blind.may_list = false;
    blind.may_write = false;
    let sim = start_with(SimConfig {
        keys: vec![blind],
        ..Default::default()
    })
    .await;
    sim.objects(BUCKET).unwrap().put("object", "x").unwrap();
    let store = client(&sim);
    assert!(store.get(&key()).await.is_ok());
    let denied =
        |error: object_store::Error| matches!(error, object_store::Error::PermissionDenied { .. });
    assert!(denied(store.get(&Path::from("absent")).await.unwrap_err()));
    assert!(denied(store.head(&Path::from("absent")).await.unwrap_err()));
    assert!(denied(store.put(&key(), "y".into()).await.unwrap_err()));
    let listed: Result<Vec<_>, _> = store.list(None).try_collect().await;
    assert!(chain(&listed.unwrap_err()).contains("403"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_bucket_is_not_a_missing_key() {
    let sim = start().await;
    let store = builder(&sim).with_bucket_name("other").build().unwrap();
    let error = store.get(&key()).await.unwrap_err();
    assert!(chain(&error).contains("NoSuchBucket"), "{}", chain(&error));
    let error = client(&sim).get(&key()).await.unwrap_err();
    assert!(chain(&error).contains("NoSuchKey"), "{}", chain(&error));
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let mut config = SimConfig::default();
    config.keys[0].session_token = Some("session-token".into());
    config.expired_tokens.push("expired-token".into());
    let text = format!("{config:?}");
    assert!(text.contains("SIMACCESSKEY"));
    for secret in ["sim-secret-key", "session-token", "expired-token"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn impossible_configurations_are_refused() {
    use hyperslab_sim::Sim;
    let none = SimConfig {
        keys: vec![],
        ..Default::default()
    };
    assert!(
        Sim::start(none)
            .await
            .unwrap_err()
            .message()
            .contains("no pair of keys")
    );
    let bad = SimConfig {
        buckets: vec!["No_Bucket".into()],
        ..Default::default()
    };
    assert!(Sim::start(bad).await.is_err());
    let first = Sim::start(SimConfig::default()).await.unwrap();
    let port = first
        .endpoint()
        .rsplit(':')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let taken = Sim::start(SimConfig {
        port,
        ..Default::default()
    })
    .await
    .unwrap_err();
    assert_eq!(taken.kind(), hyperslab_index::ErrorKind::Unavailable);
}
