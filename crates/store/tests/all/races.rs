//! Writers that race: exactly one wins, and no update is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hyperslab_store::{ErrorKind, Get, Local, Memory, Put, Store, StoreRef};

const WRITERS: usize = 8;

/// One store handle per writer, all on the same objects, as separate processes would have.
fn stores(dir: &std::path::Path) -> Vec<Vec<StoreRef>> {
    let memory: StoreRef = Arc::new(Memory::new());
    let local = || Arc::new(Local::new(dir).unwrap()) as StoreRef;
    vec![
        vec![memory; WRITERS],
        (0..WRITERS).map(|_| local()).collect(),
    ]
}

async fn count_winners(stores: &[StoreRef], key: &str, mode: Put) -> usize {
    let winners = Arc::new(AtomicUsize::new(0));
    let barrier = Arc::new(tokio::sync::Barrier::new(WRITERS));
    let mut tasks = Vec::new();
    for (i, store) in stores.iter().cloned().enumerate() {
        let (winners, barrier) = (Arc::clone(&winners), Arc::clone(&barrier));
        let (key, mode) = (key.to_owned(), mode.clone());
        tasks.push(tokio::spawn(async move {
            barrier.wait().await;
            match store
                .put(&key, vec![Bytes::from(vec![i as u8; 1000])], mode)
                .await
            {
                Ok(_) => {
                    winners.fetch_add(1, Ordering::SeqCst);
                }
                Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    winners.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn of_racing_creates_and_updates_exactly_one_wins() {
    let dir = tempfile::tempdir().unwrap();
    for stores in stores(dir.path()) {
        for round in 0..50 {
            let key = format!("d{}/k{round}", round % 3);
            assert_eq!(count_winners(&stores, &key, Put::Create).await, 1);
            let etag = stores[0].head(&key).await.unwrap().etag.unwrap();
            assert_eq!(count_winners(&stores, &key, Put::Update(etag)).await, 1);
            let body = stores[0].get(&key, Get::default()).await.unwrap().body;
            let bytes = body.into_bytes().unwrap();
            assert!(bytes.iter().all(|b| *b == bytes[0]) && bytes.len() == 1000);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_thousand_increments_lose_none() {
    let dir = tempfile::tempdir().unwrap();
    for stores in stores(dir.path()) {
        stores[0]
            .put("n", vec!["0".into()], Put::Create)
            .await
            .unwrap();
        let mut tasks = Vec::new();
        for store in stores.clone() {
            tasks.push(tokio::spawn(async move {
                for _ in 0..1000 / WRITERS {
                    loop {
                        let got = store.get("n", Get::default()).await.unwrap();
                        let etag = got.meta.etag.clone().unwrap();
                        let text = got.body.into_bytes().unwrap();
                        let n: u64 = std::str::from_utf8(&text).unwrap().trim().parse().unwrap();
                        // A fixed width keeps the size from telling the versions apart.
                        let next = format!("{:6}", n + 1);
                        match store.put("n", vec![next.into()], Put::Update(etag)).await {
                            Ok(_) => break,
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
                        }
                    }
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let got = stores[0].get("n", Get::default()).await.unwrap();
        assert_eq!(got.body.into_bytes().unwrap(), "  1000");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn writers_survive_deletes_that_prune_their_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut tasks = Vec::new();
    for i in 0..WRITERS {
        let store = Local::new(dir.path()).unwrap();
        tasks.push(tokio::spawn(async move {
            for round in 0..200 {
                let key = format!("a/b/c/{i}");
                let mode = if round % 2 == 0 {
                    Put::Create
                } else {
                    Put::Overwrite
                };
                store.put(&key, vec!["x".into()], mode).await.unwrap();
                store.delete(&key).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
