//! Plain reads, writes, copies, deletes and listings.

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use hyperslab_sim::SimConfig;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _, PutOptions,
};

use crate::client::{BUCKET, bare, client, start, start_with};

fn pattern(length: usize) -> Bytes {
    (0..length)
        .map(|at| (at * 31 % 251) as u8)
        .collect::<Vec<u8>>()
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_comes_back() {
    let sim = start().await;
    let store = client(&sim);
    for (key, length) in [
        ("empty", 0),
        ("a/b c/ü+%.bin", 10),
        ("a", 1),
        ("large", 3_000_001),
    ] {
        let path = Path::from(key);
        let bytes = pattern(length);
        let put = store.put(&path, bytes.clone().into()).await.unwrap();
        let got = store.get(&path).await.unwrap();
        assert_eq!(got.meta.e_tag, put.e_tag);
        assert_eq!(got.meta.size, length as u64);
        assert_eq!(got.bytes().await.unwrap(), bytes, "{key}");
        assert_eq!(store.head(&path).await.unwrap().size, length as u64);
        assert_eq!(
            sim.objects(BUCKET)
                .unwrap()
                .get(path.as_ref())
                .unwrap()
                .unwrap(),
            bytes
        );
    }
    assert!(matches!(
        store.get(&Path::from("absent")).await,
        Err(object_store::Error::NotFound { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_slices() {
    let sim = start().await;
    let store = client(&sim);
    let path = Path::from("object");
    let bytes = pattern(100_000);
    store.put(&path, bytes.clone().into()).await.unwrap();
    for (start, end) in [(0, 1), (0, 100_000), (99_999, 100_000), (5, 70_000)] {
        let got = store.get_range(&path, start..end).await.unwrap();
        assert_eq!(got, bytes.slice(start as usize..end as usize));
    }
    let suffix = GetOptions {
        range: Some(GetRange::Suffix(77)),
        ..GetOptions::default()
    };
    let got = store.get_opts(&path, suffix).await.unwrap();
    assert_eq!(got.range, 99_923..100_000);
    assert_eq!(got.bytes().await.unwrap(), bytes.slice(99_923..));
    let offset = GetOptions {
        range: Some(GetRange::Offset(99_000)),
        ..GetOptions::default()
    };
    assert_eq!(
        store
            .get_opts(&path, offset)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap()
            .len(),
        1000
    );
    // A range that begins inside and ends outside is cut off; one that begins outside is refused.
    assert_eq!(
        store.get_range(&path, 99_990..200_000).await.unwrap().len(),
        10
    );
    assert!(store.get_range(&path, 100_000..100_001).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsatisfiable_range_is_416() {
    let sim = start_with(SimConfig {
        public_buckets: vec![BUCKET.into()],
        ..Default::default()
    })
    .await;
    sim.objects(BUCKET).unwrap().put("k", "0123456789").unwrap();
    let answer = bare(
        &sim.endpoint(),
        "GET /bucket/k",
        &[("range", "bytes=10-")],
        b"",
    )
    .await;
    assert_eq!(answer.status, 416);
    assert!(answer.text().contains("InvalidRange"));
    assert!(
        answer.head.contains("content-range: bytes */10"),
        "{}",
        answer.head
    );
    let answer = bare(
        &sim.endpoint(),
        "GET /bucket/k",
        &[("range", "bytes=-3")],
        b"",
    )
    .await;
    assert_eq!((answer.status, answer.text().as_str()), (206, "789"));
    assert!(answer.head.contains("content-range: bytes 7-9/10"));
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_metadata_are_kept() {
    let sim = start().await;
    let store = client(&sim);
    let path = Path::from("object");
    let attributes = Attributes::from_iter([
        (Attribute::ContentType, "application/json"),
        (Attribute::CacheControl, "no-store"),
        (Attribute::Metadata("colour".into()), "blue"),
    ]);
    let options = PutOptions {
        attributes: attributes.clone(),
        ..PutOptions::default()
    };
    store.put_opts(&path, "{}".into(), options).await.unwrap();
    assert_eq!(store.get(&path).await.unwrap().attributes, attributes);
    let copy = Path::from("copy");
    store.copy(&path, &copy).await.unwrap();
    assert_eq!(store.get(&copy).await.unwrap().attributes, attributes);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_and_bulk_deletes() {
    let sim = start().await;
    let store = client(&sim);
    let paths: Vec<Path> = (0..5).map(|n| Path::from(format!("d/{n}"))).collect();
    for path in &paths {
        store.put(path, "x".into()).await.unwrap();
    }
    store.delete(&paths[0]).await.unwrap();
    store.delete(&paths[0]).await.unwrap();
    let chosen = paths[1..4].to_vec();
    let rest = futures::stream::iter(chosen.into_iter().map(Ok)).boxed();
    let deleted: Vec<Path> = store.delete_stream(rest).try_collect().await.unwrap();
    assert_eq!(deleted, paths[1..4]);
    assert_eq!(sim.objects(BUCKET).unwrap().keys(), ["d/4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_have_pages_prefixes_and_delimiters() {
    let sim = start().await;
    let objects = sim.objects(BUCKET).unwrap();
    for n in 0..2345 {
        objects.put(&format!("many/{n:05}"), "x").unwrap();
    }
    for key in ["a", "a/b", "a/c/d", "a/c/e", "z z/ü"] {
        objects.put(key, "yy").unwrap();
    }
    let store = client(&sim);
    let many = Path::from("many");
    let listed: Vec<_> = store.list(Some(&many)).try_collect().await.unwrap();
    assert_eq!(listed.len(), 2345);
    assert!(
        listed
            .windows(2)
            .all(|two| two[0].location < two[1].location)
    );
    assert_eq!(sim.meter().list, 3, "pages of a thousand");
    let offset = Path::from("many/02340");
    let tail: Vec<_> = store
        .list_with_offset(Some(&many), &offset)
        .try_collect()
        .await
        .unwrap();
    assert_eq!(tail.len(), 4);
    let top = store.list_with_delimiter(None).await.unwrap();
    let prefixes: Vec<&str> = top.common_prefixes.iter().map(Path::as_ref).collect();
    assert_eq!(prefixes, ["a", "many", "z z"]);
    assert_eq!(top.objects.len(), 1);
    assert_eq!(
        (top.objects[0].location.as_ref(), top.objects[0].size),
        ("a", 2)
    );
    let inner = store
        .list_with_delimiter(Some(&Path::from("a")))
        .await
        .unwrap();
    assert_eq!(inner.objects[0].location.as_ref(), "a/b");
    assert_eq!(inner.common_prefixes[0].as_ref(), "a/c");
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_can_be_url_encoded_and_of_version_one() {
    let sim = start_with(SimConfig {
        public_buckets: vec![BUCKET.into()],
        ..Default::default()
    })
    .await;
    let objects = sim.objects(BUCKET).unwrap();
    for key in ["z z/ü", "a", "b/1", "b/2"] {
        objects.put(key, "x").unwrap();
    }
    let get = |query: &'static str| {
        let endpoint = sim.endpoint();
        async move {
            bare(&endpoint, &format!("GET /bucket?{query}"), &[], b"")
                .await
                .text()
        }
    };
    let encoded = get("list-type=2&encoding-type=url").await;
    assert!(encoded.contains("<Key>z%20z/%C3%BC</Key>"), "{encoded}");
    let first = get("delimiter=/&max-keys=2").await;
    assert!(first.contains("<NextMarker>b/</NextMarker>"), "{first}");
    let second = get("delimiter=/&max-keys=2&marker=b/").await;
    assert!(
        second.contains("z z/") && !second.contains("b/1"),
        "{second}"
    );
    assert!(second.contains("<IsTruncated>false</IsTruncated>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupted_object_keeps_its_etag() {
    let sim = start().await;
    let store = client(&sim);
    let path = Path::from("object");
    let put = store.put(&path, "good".into()).await.unwrap();
    sim.objects(BUCKET)
        .unwrap()
        .corrupt("object", |bytes| bytes[0] ^= 1)
        .unwrap();
    let got = store.get(&path).await.unwrap();
    assert_eq!(got.meta.e_tag, put.e_tag);
    assert_eq!(got.bytes().await.unwrap(), "food");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_digests_store_nothing() {
    let sim = start_with(SimConfig {
        gcs_port: Some(0),
        ..Default::default()
    })
    .await;
    let gcs = sim.gcs_endpoint().unwrap();
    let wrong = [("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")];
    let answer = bare(&gcs, "PUT /bucket/k", &wrong, b"hello").await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("BadDigest"), "{}", answer.text());
    let right = [
        ("content-md5", "XUFAKrxLKna5cZ2REBfFkg=="),
        ("x-amz-checksum-crc32c", "mnG7TA=="),
    ];
    assert_eq!(
        bare(&gcs, "PUT /bucket/k", &right, b"hello").await.status,
        200
    );
    let wrong = [("x-amz-checksum-sha256", "AAAA")];
    assert_eq!(
        bare(&gcs, "PUT /bucket/l", &wrong, b"hello").await.status,
        400
    );
    assert_eq!(sim.objects(BUCKET).unwrap().keys(), ["k"]);
}
