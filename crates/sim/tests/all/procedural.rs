//! Computed arrays: the bytes on the wire equal the closed form.

use std::sync::Arc;

use futures::TryStreamExt as _;
use hyperslab_sim::{CellType, ZarrArray, cell_value};
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutMode};

use crate::client::{BUCKET, client, start};

#[tokio::test(flavor = "multi_thread")]
async fn random_ranges_of_a_two_terabyte_array() {
    let sim = start().await;
    // 2^39 cells of 4 bytes: 2 TiB.
    let (shape, chunk) = ([1_u64 << 20, 1 << 19], [2048_u64, 2048]);
    let array = ZarrArray::new(CellType::Int32, &shape, &chunk).unwrap();
    sim.mount(BUCKET, "big", Arc::new(array)).unwrap();
    let store = client(&sim);
    let mut state = 12345_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..40 {
        let (ci, cj) = (random(512), random(256));
        let path = Path::from(format!("big/c/{ci}/{cj}"));
        let start = random(2048 * 2048 * 4);
        let end = (start + 1 + random(50_000)).min(2048 * 2048 * 4);
        let seen = store.get_range(&path, start..end).await.unwrap();
        let expected: Vec<u8> = (start..end)
            .map(|at| {
                let (cell, byte) = (at / 4, (at % 4) as usize);
                let (i, j) = (ci * 2048 + cell / 2048, cj * 2048 + cell % 2048);
                (cell_value(i * shape[1] + j) as i32).to_le_bytes()[byte]
            })
            .collect();
        assert_eq!(seen, expected, "{path} {start}..{end}");
    }
    let whole = store
        .get(&Path::from("big/c/0/0"))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(whole.len(), 2048 * 2048 * 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_listing_and_absent_chunks() {
    let sim = start().await;
    let array = ZarrArray::new(CellType::Float32, &[10, 10], &[4, 5]).unwrap();
    assert_eq!(
        array.cell(&[0, 1]).unwrap(),
        ((cell_value(1) >> 8) as f32 / 16_777_216.0).to_le_bytes()
    );
    assert_eq!(array.cell(&[10, 0]), None);
    sim.mount(BUCKET, "small", Arc::new(array)).unwrap();
    let store = client(&sim);
    let json = store
        .get(&Path::from("small/zarr.json"))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["data_type"], "float32");
    assert_eq!(
        json["chunk_grid"]["configuration"]["chunk_shape"],
        serde_json::json!([4, 5])
    );
    let listed: Vec<_> = store
        .list(Some(&Path::from("small")))
        .try_collect()
        .await
        .unwrap();
    assert_eq!(listed.len(), 3 * 2 + 1);
    assert!(listed.iter().take(6).all(|object| object.size == 4 * 5 * 4));
    let absent = store.get(&Path::from("small/c/3/0")).await;
    assert!(matches!(absent, Err(object_store::Error::NotFound { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn computed_objects_can_be_overlaid_but_not_deleted() {
    let sim = start().await;
    let array = ZarrArray::new(CellType::UInt8, &[10], &[4]).unwrap();
    sim.mount(BUCKET, "a", Arc::new(array)).unwrap();
    let store = client(&sim);
    let path = Path::from("a/c/0");
    let etag = store.head(&path).await.unwrap().e_tag;
    assert_eq!(store.get(&path).await.unwrap().meta.e_tag, etag);
    let create = store
        .put_opts(&path, "mine".into(), PutMode::Create.into())
        .await;
    assert!(matches!(
        create,
        Err(object_store::Error::AlreadyExists { .. })
    ));
    store.put(&path, "mine".into()).await.unwrap();
    assert_eq!(
        store.get(&path).await.unwrap().bytes().await.unwrap(),
        "mine"
    );
    store.delete(&path).await.unwrap();
    assert_eq!(
        store.get(&path).await.unwrap().bytes().await.unwrap().len(),
        4
    );
    assert!(store.delete(&path).await.is_err());
}
