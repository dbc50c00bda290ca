//! Uploads in parts.

use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload as _, ObjectStoreExt as _};

use crate::client::{BUCKET, builder, chain, client, start};

const PART: usize = 5 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn parts_become_one_object() {
    let sim = start().await;
    let store = client(&sim);
    let path = Path::from("object");
    let mut upload = store.put_multipart(&path).await.unwrap();
    let parts = [vec![1_u8; PART], vec![2; PART], vec![3; 10]];
    // Out of order on the wire: the number of a part decides.
    let sends: Vec<_> = parts
        .iter()
        .map(|part| upload.put_part(part.clone().into()))
        .collect();
    for send in sends.into_iter().rev() {
        send.await.unwrap();
    }
    assert!(
        sim.objects(BUCKET).unwrap().keys().is_empty(),
        "nothing is there before completion"
    );
    let put = upload.complete().await.unwrap();
    assert!(put.e_tag.unwrap().ends_with("-3\""));
    let stored = sim.objects(BUCKET).unwrap().get("object").unwrap().unwrap();
    assert_eq!(stored, Bytes::from(parts.concat()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_upload_leaves_nothing() {
    let sim = start().await;
    let store = client(&sim);
    let mut upload = store.put_multipart(&Path::from("object")).await.unwrap();
    upload.put_part(vec![1_u8; 100].into()).await.unwrap();
    upload.abort().await.unwrap();
    assert!(upload.complete().await.is_err());
    assert!(sim.objects(BUCKET).unwrap().keys().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn small_parts_are_refused_as_on_s3() {
    let sim = start().await;
    let store = client(&sim);
    let mut upload = store.put_multipart(&Path::from("object")).await.unwrap();
    for _ in 0..2 {
        upload.put_part(vec![1_u8; 100].into()).await.unwrap();
    }
    let error = upload.complete().await.unwrap_err();
    assert!(
        chain(&error).contains("EntityTooSmall"),
        "{}",
        chain(&error)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_if_not_exists_goes_through_parts() {
    let sim = start().await;
    let how = object_store::aws::S3CopyIfNotExists::Multipart;
    let store = Arc::new(builder(&sim).with_copy_if_not_exists(how).build().unwrap());
    let (from, to) = (Path::from("from"), Path::from("to"));
    store.put(&from, "content".into()).await.unwrap();
    store.copy_if_not_exists(&from, &to).await.unwrap();
    let again = store.copy_if_not_exists(&from, &to).await;
    assert!(
        matches!(again, Err(object_store::Error::AlreadyExists { .. })),
        "{again:?}"
    );
    assert_eq!(
        sim.objects(BUCKET).unwrap().get("to").unwrap().unwrap(),
        "content"
    );
}
