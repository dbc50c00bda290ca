//! Objects in a folder survive a restart.

use hyperslab_sim::SimConfig;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, MultipartUpload as _, ObjectStore as _, ObjectStoreExt as _, PutOptions,
};

use crate::client::{BUCKET, client, start_with};

#[tokio::test(flavor = "multi_thread")]
async fn objects_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = || SimConfig {
        folder: Some(folder.path().to_path_buf()),
        ..Default::default()
    };
    let key = Path::from("a b/é");
    let attributes = Attributes::from_iter([(Attribute::Metadata("colour".into()), "blue")]);
    let etag = {
        let sim = start_with(config()).await;
        let store = client(&sim);
        store.put(&key, "old".into()).await.unwrap();
        let options = PutOptions {
            attributes: attributes.clone(),
            ..PutOptions::default()
        };
        let put = store
            .put_opts(&key, vec![9; 700_000].into(), options)
            .await
            .unwrap();
        store
            .put(&Path::from("a b"), "beside its own prefix".into())
            .await
            .unwrap();
        store.put(&Path::from("gone"), "x".into()).await.unwrap();
        store.delete(&Path::from("gone")).await.unwrap();
        let mut upload = store.put_multipart(&Path::from("parts")).await.unwrap();
        upload.put_part("whole".into()).await.unwrap();
        upload.complete().await.unwrap();
        sim.stop().await;
        put.e_tag
    };
    // What an interrupted write leaves: bytes without a description.
    std::fs::write(folder.path().join(BUCKET).join("7.data"), "half").unwrap();
    let sim = start_with(config()).await;
    let store = client(&sim);
    let got = store.get(&key).await.unwrap();
    assert_eq!(
        (
            got.meta.e_tag.clone(),
            got.attributes
                .get(&Attribute::Metadata("colour".into()))
                .is_some()
        ),
        (etag, true)
    );
    assert_eq!(got.bytes().await.unwrap(), vec![9; 700_000]);
    assert_eq!(
        store.get_range(&key, 5..15).await.unwrap(),
        [9; 10].as_slice()
    );
    assert_eq!(
        sim.objects(BUCKET).unwrap().keys(),
        ["a b", key.as_ref(), "parts"]
    );
    assert_eq!(
        store
            .get(&Path::from("parts"))
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap(),
        "whole"
    );
    assert!(!folder.path().join(BUCKET).join("7.data").exists());
    let files = std::fs::read_dir(folder.path().join(BUCKET))
        .unwrap()
        .count();
    assert_eq!(files, 6, "two files an object, none left over");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_keep_the_object_they_began_with() {
    let folder = tempfile::tempdir().unwrap();
    let config = SimConfig {
        folder: Some(folder.path().to_path_buf()),
        ..Default::default()
    };
    let sim = start_with(config).await;
    let store = client(&sim);
    let path = Path::from("object");
    store.put(&path, vec![0; 400_000].into()).await.unwrap();
    let rounds = 60_u8;
    let writer = async {
        for round in 1..=rounds {
            store.put(&path, vec![round; 400_000].into()).await.unwrap();
        }
    };
    let reader = async {
        for _ in 0..60 {
            let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
            assert!(
                bytes.iter().all(|byte| *byte == bytes[0]),
                "a mixture of two versions"
            );
        }
    };
    futures::future::join(writer, reader).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_folder_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let config = || SimConfig {
        folder: Some(folder.path().to_path_buf()),
        ..Default::default()
    };
    start_with(config()).await.stop().await;
    std::fs::write(folder.path().join(BUCKET).join("9.json"), "{").unwrap();
    let error = hyperslab_sim::Sim::start(config()).await.unwrap_err();
    assert_eq!(error.kind(), hyperslab_index::ErrorKind::Data);
    assert!(error.message().contains("9.json"), "{error}");
}
