//! Shards whose layout is guessed by that of another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyperslab::{Array, Compression, Mode, Options, Region, Selection, Session, block_on};
use hyperslab_plan::Profile;
use hyperslab_store::{
    Entry, Error, Get, Got, Listing, Memory, Meta, Meter, MeterHandle, Put, Result, Store, StoreRef,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Barrier;

use crate::spec;

const SIDE: u64 = 96;
const SHARD: u64 = 32;

/// A store that answers two requests for chunks at a time, or none.
#[derive(Debug)]
struct Pairs {
    inner: Memory,
    armed: AtomicBool,
    barrier: Barrier,
}

#[async_trait]
impl Store for Pairs {
    fn url(&self) -> &str {
        self.inner.url()
    }
    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        if self.armed.load(Ordering::SeqCst) {
            let wait = tokio::time::timeout(Duration::from_secs(20), self.barrier.wait());
            let alone = |_| Error::internal(format!("{key} was asked for alone"));
            wait.await.map_err(alone)?;
        }
        self.inner.get(key, options).await
    }
    async fn put(&self, key: &str, value: Vec<Bytes>, mode: Put) -> Result<Meta> {
        self.inner.put(key, value, mode).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(key).await
    }
    async fn head(&self, key: &str) -> Result<Meta> {
        self.inner.head(key).await
    }
    async fn list(
        &self,
        prefix: &str,
        page: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>)> {
        self.inner.list(prefix, page).await
    }
    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        self.inner.list_dir(prefix).await
    }
}

fn cell(row: u64, column: u64) -> u16 {
    (row * SIDE + column + 1) as u16
}

/// Cells of a box; those of shards that `empty` names are zeros in their first inner chunk.
fn expected(region: &Region, empty: &[(u64, u64)]) -> Vec<u8> {
    let (start, sides) = (region.start(), region.shape());
    let mut cells = Vec::new();
    for row in start[0]..start[0] + sides[0] {
        for column in start[1]..start[1] + sides[1] {
            let first = row % SHARD < 8 && column % SHARD < 8;
            let is_empty = first && empty.contains(&(row / SHARD, column / SHARD));
            let value = if is_empty { 0 } else { cell(row, column) };
            cells.extend(value.to_le_bytes());
        }
    }
    cells
}

/// An array of 3 × 3 shards with 16 raw inner chunks each, and what is asked of its store.
fn array(empty: &[(u64, u64)]) -> (Array, MeterHandle, Arc<Pairs>) {
    let pairs = Arc::new(Pairs {
        inner: Memory::new(),
        armed: AtomicBool::new(false),
        barrier: Barrier::new(2),
    });
    let meter = MeterHandle::default();
    let metered: StoreRef = Arc::new(Meter::new(pairs.clone(), meter.clone()));
    // Bytes are dear, so shards are not read whole.
    let mut profile = Profile::built_in("aws").unwrap();
    profile.network.connection_bandwidth = 1e4;
    for point in &mut profile.network.bandwidth {
        point.bytes_per_second = 1e4 * f64::from(point.requests).min(4.0);
    }
    let options = Options {
        profile: Some(Arc::new(profile)),
        cache_bytes: 0,
        frozen: true,
        planner: Mode::RangeMerge,
        ..Options::default()
    };
    let session = Session::new(options.clone());
    session.mount("test://shards", metered.clone()).unwrap();
    let mut s = spec(&[SIDE, SIDE], "u2");
    s.chunks = Some(vec![8, 8]);
    s.shards = Some(vec![SHARD, SHARD]);
    s.compression = Compression::None;
    let array = block_on(session.create_array("test://shards/a", s, false)).unwrap();
    let whole = Region::new([0, 0], [SIDE, SIDE]).unwrap();
    block_on(array.write(&Selection::All, expected(&whole, empty))).unwrap();
    let reader = Session::new(options);
    reader.mount("test://shards", metered).unwrap();
    let array = block_on(reader.open_array("test://shards/a")).unwrap();
    (array, meter, pairs)
}

fn read(array: &Array, region: &Region) -> Vec<u8> {
    block_on(array.read(&Selection::region(region))).unwrap()
}

#[test]
fn a_shard_like_others_is_read_in_one_round_trip() {
    let (array, meter, pairs) = array(&[]);
    // In the first shard, and then in two others.
    for (row, column) in [(10, 8), (40, 48), (70, 0)] {
        let region = Region::new([row, column], [3, 8]).unwrap();
        let before = meter.snapshot().total();
        assert_eq!(read(&array, &region), expected(&region, &[]));
        // The index, and the cells: from the second shard on at the same time.
        assert_eq!(meter.snapshot().total() - before, 2);
        pairs.armed.store(true, Ordering::SeqCst);
    }
    pairs.armed.store(false, Ordering::SeqCst);
    // What was guessed is known from now on.
    let region = Region::new([41, 48], [2, 8]).unwrap();
    let before = meter.snapshot().total();
    assert_eq!(read(&array, &region), expected(&region, &[]));
    assert_eq!(meter.snapshot().total() - before, 1);
}

#[test]
fn shards_unlike_others_are_read_right_and_not_guessed_for_long() {
    // A writer leaves out inner chunks of fill values, so all that follow lie elsewhere.
    let empty = [(1, 1), (0, 2), (2, 0), (2, 2)];
    let (array, ..) = array(&empty);
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..60 {
        let start = [
            rng.random_range(0..SIDE - 12),
            rng.random_range(0..SIDE - 12),
        ];
        let sides = [rng.random_range(1..12), rng.random_range(1..12)];
        let region = Region::new(start, sides).unwrap();
        assert_eq!(
            read(&array, &region),
            expected(&region, &empty),
            "{region:?}"
        );
    }
}
