//! Google's language, through object_store's Google client.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use hyperslab_sim::{FaultKind, FaultPlan, FaultRule, Sim, SimConfig, Trigger};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, ClientOptions, Error, GetOptions, GetRange, MultipartUpload as _,
    ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions, RetryConfig, UpdateVersion,
};

use crate::client::{BUCKET, bare, chain, client, start_with};

async fn google() -> (Sim, GoogleCloudStorage) {
    let sim = start_with(SimConfig {
        gcs_port: Some(0),
        ..Default::default()
    })
    .await;
    let store = GoogleCloudStorageBuilder::new()
        .with_service_account_key(sim.gcs_service_account_json().unwrap())
        .with_bucket_name(BUCKET)
        .with_retry(RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        })
        .with_client_options(
            ClientOptions::new()
                .with_allow_http(true)
                .with_timeout(Duration::from_secs(20)),
        )
        .build()
        .unwrap();
    (sim, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_ranges_and_metadata() {
    let (sim, store) = google().await;
    let path = Path::from("a b/ü%.bin");
    let attributes = Attributes::from_iter([
        (Attribute::ContentType, "text/plain"),
        (Attribute::Metadata("colour".into()), "blue"),
    ]);
    let options = PutOptions {
        attributes: attributes.clone(),
        ..PutOptions::default()
    };
    let put = store
        .put_opts(&path, "0123456789".into(), options)
        .await
        .unwrap();
    assert!(put.version.is_some());
    let got = store.get(&path).await.unwrap();
    assert_eq!(got.attributes, attributes);
    assert_eq!(
        (&got.meta.e_tag, &got.meta.version),
        (&put.e_tag, &put.version)
    );
    assert_eq!(got.bytes().await.unwrap(), "0123456789");
    assert_eq!(store.get_range(&path, 2..5).await.unwrap(), "234");
    let suffix = GetOptions {
        range: Some(GetRange::Suffix(3)),
        ..GetOptions::default()
    };
    assert_eq!(
        store
            .get_opts(&path, suffix)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap(),
        "789"
    );
    assert_eq!(store.head(&path).await.unwrap().size, 10);
    // The same object through the other door.
    assert_eq!(
        client(&sim)
            .get(&path)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap(),
        "0123456789"
    );
    store.copy(&path, &Path::from("copy")).await.unwrap();
    // By hand: object_store 0.13.2 sends the condition with the wrong one of its two kinds of copy.
    let guarded = [
        ("x-goog-copy-source", "bucket/copy"),
        ("x-goog-if-generation-match", "0"),
    ];
    let endpoint = sim.gcs_endpoint().unwrap();
    assert_eq!(
        bare(&endpoint, "PUT /bucket/copy", &guarded, b"")
            .await
            .status,
        412
    );
    assert_eq!(
        bare(&endpoint, "PUT /bucket/new", &guarded, b"")
            .await
            .status,
        200
    );
    store.delete(&Path::from("new")).await.unwrap();
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 2);
    let top = store.list_with_delimiter(None).await.unwrap();
    assert_eq!((top.objects.len(), top.common_prefixes.len()), (1, 1));
    store.delete(&path).await.unwrap();
    assert!(matches!(
        store.delete(&path).await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        store.get(&path).await,
        Err(Error::NotFound { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn generations_guard_writes() {
    let (_sim, store) = google().await;
    let path = Path::from("object");
    let first = store
        .put_opts(&path, "1".into(), PutMode::Create.into())
        .await
        .unwrap();
    let again = store
        .put_opts(&path, "2".into(), PutMode::Create.into())
        .await;
    assert!(
        matches!(again, Err(Error::AlreadyExists { .. })),
        "{again:?}"
    );
    let version: UpdateVersion = first.into();
    let second = store
        .put_opts(&path, "3".into(), PutMode::Update(version.clone()).into())
        .await
        .unwrap();
    let stale = store
        .put_opts(&path, "4".into(), PutMode::Update(version.clone()).into())
        .await;
    assert!(
        matches!(stale, Err(Error::Precondition { .. })),
        "{stale:?}"
    );
    let old = GetOptions {
        version: version.version,
        ..GetOptions::default()
    };
    assert!(matches!(
        store.get_opts(&path, old).await,
        Err(Error::NotFound { .. })
    ));
    let present = GetOptions {
        version: second.version,
        ..GetOptions::default()
    };
    assert_eq!(
        store
            .get_opts(&path, present)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap(),
        "3"
    );
    let unchanged = GetOptions {
        if_none_match: second.e_tag,
        ..GetOptions::default()
    };
    assert!(matches!(
        store.get_opts(&path, unchanged).await,
        Err(Error::NotModified { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_creates_have_one_winner() {
    let (_sim, store) = google().await;
    crate::conditions::race(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_become_one_object() {
    let (sim, store) = google().await;
    let path = Path::from("a/object");
    let mut upload = store.put_multipart(&path).await.unwrap();
    upload.put_part(vec![1_u8; 5 << 20].into()).await.unwrap();
    upload.put_part("end".into()).await.unwrap();
    let put = upload.complete().await.unwrap();
    let got = store.get(&path).await.unwrap();
    assert_eq!(
        (got.meta.e_tag.clone(), got.meta.version.clone()),
        (put.e_tag, put.version)
    );
    assert_eq!(got.bytes().await.unwrap().len(), (5 << 20) + 3);
    let mut upload = store.put_multipart(&Path::from("never")).await.unwrap();
    upload.put_part("x".into()).await.unwrap();
    upload.abort().await.unwrap();
    assert_eq!(sim.objects(BUCKET).unwrap().keys(), ["a/object"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_and_the_meter_cover_google_too() {
    let (sim, store) = google().await;
    let rule = FaultRule::new(FaultKind::SlowDown, Trigger::Nth(1)).method("PUT");
    sim.faults().set(FaultPlan::of([rule])).unwrap();
    let path = Path::from("object");
    let error = store.put(&path, "x".into()).await.unwrap_err();
    assert!(chain(&error).contains("503"), "{}", chain(&error));
    store.put(&path, "x".into()).await.unwrap();
    let meter = sim.meter();
    assert_eq!(
        (meter.put, meter.not_billed, meter.operations["PutObject"]),
        (2, 1, 2)
    );
}
