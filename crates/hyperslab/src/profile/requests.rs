//! Times requests for a few bytes: what the network takes, and what this machine takes.
//!
//! Below [`super::network`], above the test data. A small request by itself takes the latency of the
//! network, and the time that client and machine take for themselves. The latter is what a request
//! takes against a server on this machine, less what that server held it back ([`super::calibration`]).
//!
//! Of that time, some overlaps when many requests run at once, and some is work that does not: of
//! `n` small requests that begin together, the last ones are done after one latency and `n` times
//! the work, so the work is the slope of that time over `n`.
//!
//! A machine that is busy with something else makes requests slower and never faster, so everything
//! is measured at several moments and the quickest counts; but for the latency, which is a difference
//! of two times that are measured one right after the other, and of these the median counts.

use std::ops::Range;
use std::time::{Duration, Instant};

use hyperslab_store::{Body, Get, GetRange, StoreRef};
use tokio::task::JoinSet;

use super::calibration::{self, Calibration};
use super::data::TestData;
use super::statistics::{median, spread};
use crate::{Error, Result};

/// Bytes of a request whose time is all latency.
pub(super) const TINY: u64 = 16;
/// Requests that open connections and are not counted.
const WARM_UP: usize = 4;
/// Requests of a batch whose median is the time of one alone, at least and at most.
const LEAST_ALONE: usize = 16;
const MOST_ALONE: usize = 48;
/// Pairs of a small and a large wave in a batch, at least and at most.
const LEAST_PAIRS: usize = 2;
const MOST_PAIRS: usize = 5;
/// A small wave has this share of the requests of a large one.
const SMALL_WAVE: u64 = 8;
/// A wave has ended when this share of its requests has: the slowest few tell of the latency's
/// spread, which grows with their number and would be taken for work.
const ENDED: f64 = 0.9;
/// Our own time is never more than this share of a request's, lest noise leave no latency.
const MOST_OWN: f64 = 0.9;

/// What requests for a few bytes take.
#[derive(Debug, Clone, Default)]
pub(super) struct SmallRequests {
    /// The quickest batch of requests, one at a time: median and spread.
    alone: Option<(f64, f64)>,
    /// What the store and what our own time was found to take, batch by batch.
    batches: Vec<(f64, f64)>,
    /// The quickest small and the quickest large wave.
    waves: Option<(f64, f64)>,
    /// Seconds of work with each request: their slope.
    work: Option<f64>,
    /// Seconds of every request that ran alone.
    pub(super) seconds: Vec<f64>,
}

impl SmallRequests {
    /// Seconds of a request by itself.
    pub(super) fn alone(&self) -> f64 {
        self.alone.map_or(0.0, |(middle, _)| middle)
    }

    /// Standard deviation of the above.
    pub(super) fn spread(&self) -> f64 {
        self.alone.map_or(0.0, |(_, spread)| spread)
    }

    /// Seconds of work with each request.
    pub(super) fn work(&self) -> f64 {
        let most = MOST_OWN * self.alone();
        self.work.map_or(0.0, |work| work.clamp(0.0, most))
    }

    /// Seconds that the network takes.
    pub(super) fn latency(&self) -> f64 {
        let rest = |(alone, own): &(f64, f64)| alone - own.max(self.work()).min(MOST_OWN * alone);
        let rests: Vec<f64> = self.batches.iter().map(rest).collect();
        median(&rests).unwrap_or(0.0).min(self.alone())
    }

    /// Measures one more batch, for about as long as `time`, with `most` requests at a time.
    pub(super) async fn measure(
        &mut self,
        data: &TestData,
        calibration: Option<&Calibration>,
        most: u32,
        time: Duration,
    ) -> Result<()> {
        let alone = self.measure_alone(data, time / 2).await?;
        let own = match calibration {
            Some(calibration) => own(calibration, alone, time / 4).await,
            None => 0.0,
        };
        self.batches.push((alone, own));
        self.measure_work(data, u64::from(most), time / 2).await
    }

    async fn measure_alone(&mut self, data: &TestData, time: Duration) -> Result<f64> {
        let (key, range) = one_range(data)?;
        let store = data.store().clone();
        let batch = batch(store, key, range, time, || 0.0).await?;
        self.seconds.extend(&batch);
        let middle = median(&batch).unwrap_or(0.0);
        if self.alone.is_none_or(|(least, _)| middle < least) {
            self.alone = Some((middle, spread(&batch)));
        }
        Ok(middle)
    }

    async fn measure_work(&mut self, data: &TestData, most: u64, time: Duration) -> Result<()> {
        let few = (most / SMALL_WAVE).max(1);
        if few == most {
            return Ok(());
        }
        // Opens the connections.
        together(data, most, TINY).await?;
        let begun = Instant::now();
        let mut pairs = 0;
        while pairs < MOST_PAIRS && (pairs < LEAST_PAIRS || begun.elapsed() < time) {
            let small = ended(&together(data, few, TINY).await?);
            let large = ended(&together(data, most, TINY).await?);
            let least = self.waves.unwrap_or((small, large));
            self.waves = Some((least.0.min(small), least.1.min(large)));
            pairs += 1;
        }
        self.work = self
            .waves
            .map(|(small, large)| (large - small) / (most - few) as f64);
        Ok(())
    }
}

/// Seconds that client and machine take for a request which is held back about as long as one to
/// the store takes; 0 where that cannot be measured.
async fn own(calibration: &Calibration, alone: f64, time: Duration) -> f64 {
    calibration.set_pause(alone);
    let (store, held) = (calibration.store().clone(), calibration.held());
    let (key, range) = (calibration::KEY.to_owned(), 0..calibration::BYTES);
    let batch = batch(store, key, range, time, held).await;
    let middle = batch.ok().and_then(|batch| median(&batch));
    middle.unwrap_or(0.0).max(0.0)
}

/// Seconds of small requests, one after another, less what `held` says of each; in a task of their
/// own, as the requests of reads have: one thread sends and receives.
async fn batch(
    store: StoreRef,
    key: String,
    range: Range<u64>,
    time: Duration,
    held: impl Fn() -> f64 + Send + Sync + 'static,
) -> Result<Vec<f64>> {
    in_a_task(async move { alone(&store, &key, range, time, held).await }).await
}

async fn alone(
    store: &StoreRef,
    key: &str,
    range: Range<u64>,
    time: Duration,
    held: impl Fn() -> f64,
) -> Result<Vec<f64>> {
    for _ in 0..WARM_UP {
        request(store, key, range.clone()).await?;
    }
    let begun = Instant::now();
    let mut batch = Vec::with_capacity(MOST_ALONE);
    while batch.len() < MOST_ALONE {
        let enough = batch.len() >= LEAST_ALONE && begun.elapsed() > time;
        let too_slow = batch.len() >= LEAST_ALONE / 4 && begun.elapsed() > 3 * time;
        if enough || too_slow {
            break;
        }
        let seconds = request(store, key, range.clone()).await?;
        batch.push(seconds - held());
    }
    Ok(batch)
}

/// Runs `work` as a task, which ends with the measurement if that is stopped.
async fn in_a_task<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let mut tasks = JoinSet::new();
    tasks.spawn(work);
    match tasks.join_next().await {
        Some(Ok(result)) => result,
        Some(Err(e)) => Err(Error::internal("a request ended early").with_source(e)),
        None => Err(Error::internal("a task was lost")),
    }
}

/// When most of the requests that ended at `times`, which ascend, had ended.
fn ended(times: &[f64]) -> f64 {
    let count = (times.len() as f64 * ENDED).ceil() as usize;
    let last = count.saturating_sub(1).min(times.len().saturating_sub(1));
    times.get(last).copied().unwrap_or(0.0)
}

fn one_range(data: &TestData) -> Result<(String, Range<u64>)> {
    let mut ranges = data.ranges(1, TINY);
    ranges
        .pop()
        .ok_or_else(|| Error::internal("no test object is large enough"))
}

/// Begins `many` requests of `length` bytes together; returns after how many seconds each of them
/// had ended, ascending.
pub(super) async fn together(data: &TestData, many: u64, length: u64) -> Result<Vec<f64>> {
    let ranges = data.ranges(many, length);
    if ranges.is_empty() {
        return Err(Error::internal("no test object is large enough"));
    }
    // Tasks of their own use all cores, and end with the set if the measurement is stopped.
    let mut running = JoinSet::new();
    let begun = Instant::now();
    for (key, range) in ranges {
        let store = data.store().clone();
        running.spawn(async move {
            request(&store, &key, range).await?;
            Ok::<_, Error>(begun.elapsed().as_secs_f64())
        });
    }
    let mut times = Vec::with_capacity(running.len());
    while let Some(ended) = running.join_next().await {
        let ended = ended.map_err(|e| Error::internal("a request ended early").with_source(e))?;
        times.push(ended?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Seconds of one ranged read, its body included.
pub(super) async fn request(store: &StoreRef, key: &str, range: Range<u64>) -> Result<f64> {
    let wanted = range.end - range.start;
    let begun = Instant::now();
    let options = Get {
        range: Some(GetRange::Bounded(range)),
        ..Get::default()
    };
    let body = store.get(key, options).await?.body;
    let read = receive(body).await?;
    if read != wanted {
        return Err(Error::unavailable(format!(
            "{}/{key}: {read} bytes arrived instead of {wanted}",
            store.url()
        )));
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Reads what a local file has only opened; returns how many bytes there were.
async fn receive(body: Body) -> Result<u64> {
    if matches!(body, Body::Memory(_)) {
        return Ok(body.len());
    }
    let read = move || {
        let mut buffer = vec![0; 1 << 20];
        let mut done = 0;
        while done < body.len() {
            let length = (body.len() - done).min(buffer.len() as u64);
            body.read_at(done, &mut buffer[..length as usize])?;
            done += length;
        }
        Ok(done)
    };
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|e| Error::internal("a file's reader ended early").with_source(e))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_few_do_not_hold_up_a_wave() {
        let times: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(ended(&times), 18.0);
        assert_eq!(ended(&times[..1]), 1.0);
        assert_eq!(ended(&times[..2]), 2.0);
        assert_eq!(ended(&[]), 0.0);
    }

    #[test]
    fn what_is_ours_is_taken_off_but_never_all() {
        let with = |alone: f64, own: f64, work: f64| SmallRequests {
            alone: Some((alone, 0.1)),
            batches: vec![(alone, own), (7.0 * alone, own), (alone, own)],
            work: Some(work),
            waves: None,
            seconds: Vec::new(),
        };
        for (alone, own, work, latency) in [
            (1.5, 0.0, 0.5, 1.0),
            (1.5, 0.0, 0.0, 1.5),
            (1.5, 0.4, 0.1, 1.1),
            (1.5, 0.1, 0.4, 1.1),
            // Noise.
            (1.5, 0.0, -0.1, 1.5),
            (1.0, 9.0, 0.1, 0.1),
            (1.0, 0.0, 7.0, 0.1),
        ] {
            let requests = with(alone, own, work);
            assert!((requests.latency() - latency).abs() < 1e-9, "{requests:?}");
            assert!((0.0..=0.9).contains(&requests.work()), "{requests:?}");
        }
        let none = SmallRequests::default();
        assert_eq!(
            (none.latency(), none.work(), none.spread()),
            (0.0, 0.0, 0.0)
        );
    }
}
