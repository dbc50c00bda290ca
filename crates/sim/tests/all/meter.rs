//! The counts and the bill are exact.

use std::collections::BTreeMap;

use futures::TryStreamExt as _;
use hyperslab_sim::{Place, PriceBook, SimConfig};
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};

use crate::client::{client, start_with};

#[tokio::test(flavor = "multi_thread")]
async fn requests_bytes_and_dollars_add_up() {
    let prices = PriceBook::built_in("aws").unwrap();
    let config = SimConfig {
        prices: prices.clone(),
        place: Place::Internet,
        ..Default::default()
    };
    let sim = start_with(config).await;
    let store = client(&sim);
    let path = Path::from("a/object");
    store.put(&path, vec![1; 1000].into()).await.unwrap();
    for _ in 0..3 {
        store.get(&path).await.unwrap().bytes().await.unwrap();
    }
    store.get_range(&path, 10..60).await.unwrap();
    store.head(&path).await.unwrap();
    store.head(&Path::from("absent")).await.unwrap_err();
    let before_list = sim.meter();
    assert_eq!(before_list.bytes_out, 3 * 1000 + 50);
    assert_eq!(before_list.bytes_in, 1000);
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 1);
    store.delete(&path).await.unwrap();
    let meter = sim.meter();
    assert_eq!((meter.get, meter.head, meter.list), (4, 2, 1));
    assert_eq!((meter.put, meter.delete), (1, 1));
    assert_eq!(meter.requests(), 9);
    assert_eq!(meter.operations["GetObject"], 4);
    assert_eq!(meter.operations["PutObject"], 1);
    assert_eq!(meter.operations["ListObjectsV2"], 1);
    let expected =
        prices.request_dollars(meter.put + meter.list, meter.get + meter.head, meter.delete)
            + prices.egress_dollars(Place::Internet, meter.bytes_out);
    assert!((meter.dollars - expected).abs() < 1e-15);
    assert!(meter.dollars > 0.0);
    sim.reset_meter();
    let zero = sim.meter();
    assert_eq!((zero.requests(), zero.bytes_out, zero.bytes_in), (0, 0, 0));
    assert_eq!(zero.operations, BTreeMap::new());
    assert_eq!(zero.dollars, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrency_is_seen() {
    let network = hyperslab_sim::Network {
        latency: hyperslab_sim::Latency::Constant { millis: 100.0 },
        ..Default::default()
    };
    let sim = start_with(SimConfig {
        network,
        ..Default::default()
    })
    .await;
    sim.objects(crate::client::BUCKET)
        .unwrap()
        .put("k", "x")
        .unwrap();
    let store = client(&sim);
    let path = Path::from("k");
    let gets = (0..8).map(|_| async { store.get(&path).await.unwrap().bytes().await.unwrap() });
    futures::future::join_all(gets).await;
    let meter = sim.meter();
    assert_eq!(meter.get, 8);
    assert_eq!(meter.max_concurrent, 8);
}
