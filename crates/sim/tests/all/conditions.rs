//! Conditional reads and writes, and races between them.

use std::sync::Arc;

use hyperslab_sim::SimConfig;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectStore as _, ObjectStoreExt as _, PutMode, UpdateVersion,
};

use crate::client::{BUCKET, bare, client, start, start_with};

#[tokio::test(flavor = "multi_thread")]
async fn creates_and_updates_are_conditional() {
    let sim = start().await;
    let store = client(&sim);
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
    let version = UpdateVersion {
        e_tag: first.e_tag.clone(),
        version: None,
    };
    let update = || PutMode::Update(version.clone());
    store
        .put_opts(&path, "3".into(), update().into())
        .await
        .unwrap();
    let stale = store.put_opts(&path, "4".into(), update().into()).await;
    assert!(
        matches!(stale, Err(Error::Precondition { .. })),
        "{stale:?}"
    );
    let absent = store
        .put_opts(&Path::from("no"), "5".into(), update().into())
        .await;
    assert!(absent.is_err());
    assert_eq!(
        sim.objects(BUCKET).unwrap().get("object").unwrap().unwrap(),
        "3"
    );
    assert_eq!(sim.objects(BUCKET).unwrap().keys(), ["object"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_are_conditional() {
    let sim = start().await;
    let store = client(&sim);
    let path = Path::from("object");
    let etag = store.put(&path, "1".into()).await.unwrap().e_tag;
    let if_match = |etag| GetOptions {
        if_match: etag,
        ..GetOptions::default()
    };
    let if_none_match = |etag| GetOptions {
        if_none_match: etag,
        ..GetOptions::default()
    };
    assert!(store.get_opts(&path, if_match(etag.clone())).await.is_ok());
    let unchanged = store.get_opts(&path, if_none_match(etag.clone())).await;
    assert!(
        matches!(unchanged, Err(Error::NotModified { .. })),
        "{unchanged:?}"
    );
    store.put(&path, "2".into()).await.unwrap();
    let changed = store.get_opts(&path, if_match(etag.clone())).await;
    assert!(
        matches!(changed, Err(Error::Precondition { .. })),
        "{changed:?}"
    );
    assert!(store.get_opts(&path, if_none_match(etag)).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn not_modified_is_304_without_a_body() {
    let sim = start_with(SimConfig {
        public_buckets: vec![BUCKET.into()],
        ..Default::default()
    })
    .await;
    let etag = sim.objects(BUCKET).unwrap().put("k", "value").unwrap();
    let header = format!("\"{etag}\"");
    let answer = bare(
        &sim.endpoint(),
        "GET /bucket/k",
        &[("if-none-match", &header)],
        b"",
    )
    .await;
    assert_eq!(answer.status, 304);
    assert!(answer.body.is_empty());
    assert!(
        answer.head.contains(&format!("etag: {header}")),
        "{}",
        answer.head
    );
    let future = [("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT")];
    assert_eq!(
        bare(&sim.endpoint(), "GET /bucket/k", &future, b"")
            .await
            .status,
        304
    );
    let past = [("if-unmodified-since", "Thu, 01 Jan 1998 00:00:00 GMT")];
    assert_eq!(
        bare(&sim.endpoint(), "GET /bucket/k", &past, b"")
            .await
            .status,
        412
    );
}

/// Of sixteen concurrent creates of one key exactly one succeeds, each time.
pub(crate) async fn race(store: Arc<dyn object_store::ObjectStore>) {
    for round in 0..20 {
        let path = Path::from(format!("race/{round}"));
        let tasks: Vec<_> = (0..16)
            .map(|runner| {
                let (store, path) = (Arc::clone(&store), path.clone());
                tokio::spawn(async move {
                    let payload = format!("{runner}");
                    match store
                        .put_opts(&path, payload.into(), PutMode::Create.into())
                        .await
                    {
                        Ok(_) => Some(runner),
                        Err(Error::AlreadyExists { .. }) => None,
                        Err(other) => panic!("{other}"),
                    }
                })
            })
            .collect();
        let mut winners = Vec::new();
        for task in tasks {
            winners.extend(task.await.unwrap());
        }
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        let stored = store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!(stored, format!("{}", winners[0]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_creates_have_one_winner_in_memory() {
    let sim = start().await;
    race(Arc::new(client(&sim))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_creates_have_one_winner_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let config = SimConfig {
        folder: Some(folder.path().to_path_buf()),
        ..Default::default()
    };
    let sim = start_with(config).await;
    race(Arc::new(client(&sim))).await;
}
