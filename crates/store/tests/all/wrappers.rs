//! The wrappers around a scripted or faulty store.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyperslab_store::{
    Entry, Error, ErrorKind, Fault, Faults, Faulty, Get, Got, Limit, LimitHandle, Listing, Memory,
    Meta, Meter, MeterHandle, Put, ReadOnly, RequestKind, Result, Retry, RetryAfter, RetryPolicy,
    Shape, Shaped, Store, StoreRef,
};
use tokio::time::Instant;

/// A store that gives the errors of a script, one per request, and then works.
#[derive(Debug)]
struct Scripted {
    inner: Memory,
    script: Mutex<VecDeque<Error>>,
    requests: AtomicUsize,
}

impl Scripted {
    fn new(script: impl IntoIterator<Item = Error>) -> Arc<Self> {
        Arc::new(Scripted {
            inner: Memory::new(),
            script: Mutex::new(script.into_iter().collect()),
            requests: AtomicUsize::new(0),
        })
    }

    fn step(&self) -> Result<()> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.script.lock().unwrap().pop_front().map_or(Ok(()), Err)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Store for Scripted {
    fn url(&self) -> &str {
        self.inner.url()
    }
    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        self.step()?;
        self.inner.get(key, options).await
    }
    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        self.step()?;
        self.inner.put(key, value, mode).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.step()?;
        self.inner.delete(key).await
    }
    async fn head(&self, key: &str) -> Result<Meta> {
        self.step()?;
        self.inner.head(key).await
    }
    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.step()?;
        self.inner.list(prefix, page).await
    }
    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.step()?;
        self.inner.list_dir(prefix).await
    }
}

fn outage() -> Error {
    Error::unavailable("scripted outage")
}

fn retry(inner: StoreRef) -> Retry {
    Retry::new(inner, RetryPolicy::default())
}

fn faulty(at: &[(u64, Fault)]) -> (Arc<Memory>, Arc<Faulty>) {
    let memory = Arc::new(Memory::new());
    let faults = Faults {
        at: at.to_vec(),
        ..Faults::default()
    };
    (Arc::clone(&memory), Arc::new(Faulty::new(memory, faults)))
}

async fn stored(store: &dyn Store, key: &str) -> Bytes {
    store
        .get(key, Get::default())
        .await
        .unwrap()
        .body
        .into_bytes()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn outages_are_retried_at_most_as_often_as_allowed() {
    let store = Scripted::new([outage(), outage(), outage()]);
    retry(store.clone()).delete("k").await.unwrap();
    assert_eq!(store.requests(), 4);

    let store = Scripted::new([outage(), outage(), outage(), outage()]);
    let e = retry(store.clone()).head("k").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unavailable);
    assert!(e.message().contains("after 4 attempts"), "{e}");
    assert_eq!(store.requests(), 4);
}

#[tokio::test(start_paused = true)]
async fn successes_pay_for_further_repetitions_and_an_outage_spends_them() {
    // 20 successes, then an outage: two further repetitions are paid for, then there are none.
    let store = Arc::new(Faulty::new(Arc::new(Memory::new()), faults_from(21)));
    let retry = retry(store.clone());
    for _ in 0..20 {
        retry.delete("k").await.unwrap();
    }
    let e = retry.delete("k").await.unwrap_err();
    assert!(e.message().contains("after 6 attempts"), "{e}");
    let e = retry.delete("k").await.unwrap_err();
    assert!(e.message().contains("after 4 attempts"), "{e}");
    assert_eq!(store.requests(), 20 + 6 + 4);

    // However much has been earned, one request has an end, and so has what is kept.
    let store = Arc::new(Faulty::new(Arc::new(Memory::new()), faults_from(1001)));
    let retry = Retry::new(store.clone(), RetryPolicy::default());
    for _ in 0..1000 {
        retry.delete("k").await.unwrap();
    }
    let mut made = vec![];
    for _ in 0..5 {
        let before = store.requests();
        retry.delete("k").await.unwrap_err();
        made.push(store.requests() - before);
    }
    assert_eq!(made, [10, 10, 10, 6, 4]);

    // Who asks for no repetition gets none.
    let store = Arc::new(Faulty::new(Arc::new(Memory::new()), faults_from(101)));
    let policy = RetryPolicy {
        retries: 0,
        ..RetryPolicy::default()
    };
    let retry = Retry::new(store.clone(), policy);
    for _ in 0..100 {
        retry.delete("k").await.unwrap();
    }
    retry.delete("k").await.unwrap_err();
    assert_eq!(store.requests(), 101);
}

/// Everything fails from this request on.
fn faults_from(first: u64) -> Faults {
    Faults {
        kill_at: Some(first),
        ..Faults::default()
    }
}

#[tokio::test(start_paused = true)]
async fn other_failures_are_not_retried() {
    for kind in [
        ErrorKind::Invalid,
        ErrorKind::NotFound,
        ErrorKind::Denied,
        ErrorKind::Conflict,
        ErrorKind::Data,
        ErrorKind::Internal,
    ] {
        let store = Scripted::new([Error::new(kind, "scripted")]);
        assert_eq!(
            retry(store.clone()).head("k").await.unwrap_err().kind(),
            kind
        );
        assert_eq!(store.requests(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_unless_it_passes_the_deadline() {
    let wait = Duration::from_secs(30);
    let store = Scripted::new([outage().with_source(RetryAfter(wait))]);
    let start = Instant::now();
    retry(store.clone()).delete("k").await.unwrap();
    assert!(start.elapsed() >= wait);

    let store = Scripted::new([outage().with_source(RetryAfter(wait))]);
    let policy = RetryPolicy {
        deadline: Duration::from_secs(10),
        ..RetryPolicy::default()
    };
    Retry::new(store.clone(), policy)
        .delete("k")
        .await
        .unwrap_err();
    assert_eq!(store.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn delays_stay_below_their_exponential_bound() {
    for _ in 0..50 {
        let store = Scripted::new([outage(), outage(), outage()]);
        let start = Instant::now();
        retry(store).delete("k").await.unwrap();
        // 100 + 200 + 400 ms, and a millisecond of the clock's rounding for each.
        assert!(
            start.elapsed() <= Duration::from_millis(703),
            "{:?}",
            start.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn truncated_bodies_are_read_again() {
    let (memory, faulty) = faulty(&[(1, Fault::Truncate), (2, Fault::Truncate)]);
    memory
        .put("k", vec!["0123456789".into()], Put::Create)
        .await
        .unwrap();
    assert_eq!(stored(&retry(faulty.clone()), "k").await, "0123456789");
    assert_eq!(faulty.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_conditional_put_is_no_conflict() {
    // Create: the first try took effect, the second meets it.
    let (memory, faulty) = faulty(&[(1, Fault::After)]);
    let store = retry(faulty);
    let meta = store
        .put("k", vec!["mi".into(), "ne".into()], Put::Create)
        .await
        .unwrap();
    assert_eq!(memory.head("k").await.unwrap(), meta);

    // Update: likewise, and the answer is the ETag of the first try.
    let (memory, faulty) = self::faulty(&[(1, Fault::After)]);
    let old = memory
        .put("k", vec!["old".into()], Put::Create)
        .await
        .unwrap();
    let mode = Put::Update(old.etag.unwrap());
    let meta = retry(faulty)
        .put("k", vec!["new".into()], mode)
        .await
        .unwrap();
    assert_eq!(memory.head("k").await.unwrap(), meta);
    assert_eq!(stored(&*memory, "k").await, "new");
}

#[tokio::test(start_paused = true)]
async fn a_real_conflict_after_an_outage_is_a_conflict() {
    for theirs in ["xx", "longer", "xxxx"] {
        let (memory, faulty) = faulty(&[(1, Fault::Before)]);
        memory
            .put("k", vec![theirs.into()], Put::Create)
            .await
            .unwrap();
        let e = retry(faulty)
            .put("k", vec!["mine".into()], Put::Create)
            .await
            .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert_eq!(stored(&*memory, "k").await, theirs);
    }
    // Without an outage before it, a conflict is believed even if the bytes are the same.
    let (memory, faulty) = faulty(&[]);
    memory
        .put("k", vec!["same".into()], Put::Create)
        .await
        .unwrap();
    let e = retry(faulty)
        .put("k", vec!["same".into()], Put::Create)
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
}

#[tokio::test(start_paused = true)]
async fn random_faults_never_change_what_is_stored() {
    for seed in 0..30 {
        let memory = Arc::new(Memory::new());
        let faults = Faults {
            seed,
            before: 0.1,
            after: 0.1,
            truncate: 0.1,
            hang: 0.05,
            hang_for: Duration::from_secs(60),
            ..Faults::default()
        };
        let faulty = Arc::new(Faulty::new(memory.clone(), faults));
        let policy = RetryPolicy {
            retries: 50,
            deadline: Duration::from_secs(36_000),
            ..RetryPolicy::default()
        };
        let store = Retry::new(faulty.clone(), policy);
        for i in 0..40 {
            let key = format!("k{i}");
            let meta = store
                .put(&key, vec![key.clone().into()], Put::Create)
                .await
                .unwrap();
            let next = format!("{key}!");
            let mode = Put::Update(meta.etag.unwrap());
            store
                .put(&key, vec![next.clone().into()], mode)
                .await
                .unwrap();
            assert_eq!(stored(&store, &key).await, next);
        }
        assert_eq!(memory.list("", None).await.unwrap().0.len(), 40);
        assert!(
            faulty.broken() > 10,
            "seed {seed} broke only {}",
            faulty.broken()
        );
    }
}

#[tokio::test]
async fn a_kill_ends_everything_at_its_request() {
    for loses_answer in [false, true] {
        let memory = Arc::new(Memory::new());
        let faults = Faults {
            kill_at: Some(3),
            kill_loses_answer: loses_answer,
            ..Faults::default()
        };
        let store = Faulty::new(memory.clone(), faults);
        let mut results = Vec::new();
        for i in 0..5 {
            results.push(
                store
                    .put(&format!("k{i}"), vec![], Put::Create)
                    .await
                    .is_ok(),
            );
        }
        assert_eq!(results, [true, !loses_answer, false, false, false]);
        assert_eq!(memory.list("", None).await.unwrap().0.len(), 2);
        assert_eq!(store.requests(), 5);
    }
}

#[tokio::test]
async fn faults_repeat_by_seed() {
    let run = |seed| async move {
        let faults = Faults {
            seed,
            before: 0.5,
            ..Faults::default()
        };
        let store = Faulty::new(Arc::new(Memory::new()), faults);
        let mut outcomes = Vec::new();
        for _ in 0..64 {
            outcomes.push(store.delete("k").await.is_ok());
        }
        outcomes
    };
    assert_eq!(run(7).await, run(7).await);
    assert_ne!(run(7).await, run(8).await);
}

#[tokio::test(start_paused = true)]
async fn the_meter_counts_each_attempt_and_the_limit_learns_from_it() {
    let base = Scripted::new([outage(), outage()]);
    let (meter, limit) = (MeterHandle::new(), LimitHandle::new(16));
    let metered = Arc::new(Meter::new(base, meter.clone()));
    let limited = Arc::new(Limit::new(metered, limit.clone()));
    let store = Retry::new(limited, RetryPolicy::default()).with_meter(meter.clone());

    store
        .put("k", vec!["12".into(), "345".into()], Put::Create)
        .await
        .unwrap();
    stored(&store, "k").await;
    store.head("absent").await.unwrap_err();
    store.list("", None).await.unwrap();
    store.list_dir("").await.unwrap();
    store.delete("k").await.unwrap();

    let seen = meter.snapshot();
    assert_eq!(seen.of(RequestKind::Put), 3);
    assert_eq!(seen.of(RequestKind::Get), 1);
    assert_eq!(seen.of(RequestKind::Head), 1);
    assert_eq!(seen.of(RequestKind::List), 2);
    assert_eq!(seen.of(RequestKind::Delete), 1);
    assert_eq!(seen.total(), 8);
    assert_eq!((seen.bytes_in, seen.bytes_out), (5, 15));
    assert_eq!((seen.errors, seen.retries), (2, 2));
    assert_eq!(seen.latencies.count(), 8);
    assert!(seen.latencies.p50() <= seen.latencies.p99());
    assert_eq!(limit.current(), 4, "two outages halve 16 twice");
    assert_eq!(limit.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_limit_bounds_what_is_in_flight() {
    let shape = Shape {
        latency: Duration::from_millis(10),
        ..Shape::default()
    };
    let limit = LimitHandle::new(3);
    let store = Arc::new(Limit::new(
        Arc::new(Shaped::new(Arc::new(Memory::new()), shape)),
        limit.clone(),
    ));
    let most = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for i in 0..30 {
        let (store, most, limit) = (store.clone(), most.clone(), limit.clone());
        tasks.push(tokio::spawn(async move {
            store
                .put(&format!("k{i}"), vec![], Put::Create)
                .await
                .unwrap();
            most.fetch_max(limit.in_flight(), Ordering::SeqCst);
        }));
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(limit.in_flight(), 3);
    for task in tasks {
        task.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= 3);
    assert_eq!(limit.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn shaped_requests_take_their_time() {
    let memory = Arc::new(Memory::new());
    memory
        .put("k", vec![vec![0; 1000].into()], Put::Create)
        .await
        .unwrap();
    let shape = Shape {
        latency: Duration::from_millis(20),
        request_bandwidth: Some(10_000),
        total_bandwidth: Some(5_000),
        ..Shape::default()
    };
    let store = Arc::new(Shaped::new(memory, shape));
    let start = Instant::now();
    let reads = (0..4).map(|_| store.get("k", Get::default()));
    futures::future::join_all(reads).await;
    // 20 ms to the first byte, then 4,000 bytes through 5,000 bytes a second.
    let took = start.elapsed();
    assert!(
        (Duration::from_millis(820)..Duration::from_millis(830)).contains(&took),
        "{took:?}"
    );
}

#[tokio::test]
async fn read_only_stores_refuse_writes() {
    let memory = Arc::new(Memory::new());
    memory
        .put("k", vec!["x".into()], Put::Create)
        .await
        .unwrap();
    let store = ReadOnly::new(memory);
    assert_eq!(stored(&store, "k").await, "x");
    let e = store.put("k", vec![], Put::Overwrite).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Invalid);
    assert!(e.message().contains("read only"), "{e}");
    assert_eq!(
        store.delete("k").await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
    assert_eq!(stored(&store, "k").await, "x");
}
