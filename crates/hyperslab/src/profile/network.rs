//! Times requests: latency, bandwidth of one connection, bandwidth of many.
//!
//! Between the test data and [`super::measure`]. A store hands on whole bodies only, so the time to
//! the first byte is that of requests for a few bytes, and a transfer is what a longer request takes
//! besides.
//!
//! Bandwidth of N requests is measured in waves: N requests of equal length begin together, and the
//! wave takes one latency and then its bytes at `BW(N)`, as the planner's model has it.

use std::ops::Range;
use std::time::{Duration, Instant};

use hyperslab_plan::{BandwidthPoint, NetworkProfile};
use hyperslab_store::{Body, Get, GetRange, StoreRef};
use tokio::task::JoinSet;

use super::data::TestData;
use super::statistics::{median, spread};
use crate::{Error, Progress, Result};

/// Bytes of a request whose time is all latency.
const TINY: u64 = 16;
/// Requests that open connections and are not counted.
const WARM_UP: usize = 4;
/// Requests whose median is the latency: as many as the paper's, and more if there is time.
const LEAST_LATENCIES: usize = 32;
const MOST_LATENCIES: usize = 64;
/// Transfers of one connection by itself, and waves of each number of requests.
const TRANSFERS: usize = 5;
const WAVES: usize = 3;
/// The shortest range of a wave.
const LEAST_RANGE: u64 = 16 << 10;
/// Bandwidth that has grown by less than this over two doublings has reached its peak.
const GROWTH: f64 = 1.05;
/// Latency is never more than this share of a transfer's time, lest noise divide by zero.
const MOST_LATENCY_SHARE: f64 = 0.9;

/// How thoroughly to measure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Bytes to read for each number of requests, at most.
    pub(super) bytes: u64,
    /// Requests at a time, at most.
    pub(super) most_requests: u32,
    /// Seconds of a wave.
    pub(super) wave_seconds: f64,
    /// Time of each part that can be cut short.
    pub(super) part: Duration,
    /// No further number of requests is begun after this moment.
    pub(super) deadline: Instant,
}

/// The network's profile, and the latencies that it was made from.
pub(super) async fn network(
    data: &TestData,
    effort: &Effort,
    progress: &dyn Progress,
) -> Result<(NetworkProfile, Vec<f64>)> {
    let latencies = latencies(data, effort).await?;
    let latency = median(&latencies).unwrap_or(0.0);
    let connection = connection(data, effort, latency, progress).await?;
    let bandwidth = curve(data, effort, latency, connection, progress).await?;
    let profile = NetworkProfile {
        latency_seconds: latency,
        latency_spread: spread(&latencies),
        connection_bandwidth: connection,
        bandwidth,
        requests_per_second: None,
        window: 256,
    };
    Ok((profile, latencies))
}

/// Seconds of small requests, one at a time.
async fn latencies(data: &TestData, effort: &Effort) -> Result<Vec<f64>> {
    let (key, range) = first_range(data, TINY)?;
    for _ in 0..WARM_UP {
        request(data.store(), &key, range.clone()).await?;
    }
    let begun = Instant::now();
    let mut seconds = Vec::with_capacity(MOST_LATENCIES);
    while seconds.len() < MOST_LATENCIES {
        let enough = seconds.len() >= LEAST_LATENCIES && begun.elapsed() > effort.part;
        let too_slow = seconds.len() >= LEAST_LATENCIES / 4 && begun.elapsed() > 3 * effort.part;
        if enough || too_slow {
            break;
        }
        seconds.push(request(data.store(), &key, range.clone()).await?);
    }
    Ok(seconds)
}

/// Bytes per second of one connection that nothing else disturbs.
async fn connection(
    data: &TestData,
    effort: &Effort,
    latency: f64,
    progress: &dyn Progress,
) -> Result<f64> {
    let object = data.largest()?.clone();
    let length = object.size.min(effort.bytes);
    progress.start(length * TRANSFERS as u64);
    let begun = Instant::now();
    let mut speeds = Vec::with_capacity(TRANSFERS);
    while speeds.len() < TRANSFERS && (speeds.len() < 3 || begun.elapsed() < effort.part) {
        let seconds = request(data.store(), &object.key, 0..length).await?;
        speeds.push(speed(length, seconds, latency));
        progress.add(length);
    }
    median(&speeds).ok_or_else(|| Error::internal("no transfer was measured"))
}

/// `BW(N)` for N = 1, 2, 4… until it grows no more, and for the largest N.
async fn curve(
    data: &TestData,
    effort: &Effort,
    latency: f64,
    connection: f64,
    progress: &dyn Progress,
) -> Result<Vec<BandwidthPoint>> {
    let mut points = vec![BandwidthPoint {
        requests: 1,
        bytes_per_second: connection,
    }];
    let mut requests = 2;
    while requests <= effort.most_requests && Instant::now() < effort.deadline {
        let wave = Wave::new(data, effort, requests, expected(&points))?;
        points.push(wave.measure(data, effort, latency, progress).await?);
        if is_flat(&points) {
            break;
        }
        requests *= 2;
    }
    // Too many requests may well be slower, and the planner has to know from where on.
    let reached = points.last().map_or(1, |point| point.requests);
    if reached < effort.most_requests && Instant::now() < effort.deadline {
        let wave = Wave::new(data, effort, effort.most_requests, expected(&points))?;
        points.push(wave.measure(data, effort, latency, progress).await?);
    }
    Ok(points)
}

/// What twice as many requests may bring, as far as can be told.
fn expected(points: &[BandwidthPoint]) -> f64 {
    match points {
        [.., before, last] if last.bytes_per_second < 1.5 * before.bytes_per_second => {
            1.1 * last.bytes_per_second
        }
        [.., last] => 2.0 * last.bytes_per_second,
        [] => 0.0,
    }
}

/// True if two doublings have brought next to nothing.
fn is_flat(points: &[BandwidthPoint]) -> bool {
    match points {
        [.., before, _, last] => last.bytes_per_second < GROWTH * before.bytes_per_second,
        _ => false,
    }
}

/// So many requests of the same length that begin together.
struct Wave {
    requests: u32,
    length: u64,
}

impl Wave {
    fn new(data: &TestData, effort: &Effort, requests: u32, expected: f64) -> Result<Self> {
        let many = u64::from(requests);
        let most = (effort.bytes / WAVES as u64 / many).min(data.largest()?.size);
        let wanted = (expected * effort.wave_seconds) as u64 / many;
        Ok(Wave {
            requests,
            length: wanted.clamp(LEAST_RANGE.min(most), most).max(1),
        })
    }

    async fn measure(
        &self,
        data: &TestData,
        effort: &Effort,
        latency: f64,
        progress: &dyn Progress,
    ) -> Result<BandwidthPoint> {
        let many = u64::from(self.requests);
        // Opens the connections.
        together(data, many, TINY).await?;
        let bytes = many * self.length;
        progress.start(bytes * WAVES as u64);
        let mut speeds = Vec::with_capacity(WAVES);
        while speeds.len() < WAVES && (speeds.is_empty() || Instant::now() < effort.deadline) {
            let seconds = together(data, many, self.length).await?;
            speeds.push(speed(bytes, seconds, latency));
            progress.add(bytes);
        }
        Ok(BandwidthPoint {
            requests: self.requests,
            bytes_per_second: median(&speeds)
                .ok_or_else(|| Error::internal("no wave was measured"))?,
        })
    }
}

/// Bytes per second of a transfer that began after `latency`.
fn speed(bytes: u64, seconds: f64, latency: f64) -> f64 {
    let transfer = seconds - latency.min(MOST_LATENCY_SHARE * seconds);
    bytes as f64 / transfer.max(1e-9)
}

/// Seconds until the last of `many` requests of `length` bytes has ended.
async fn together(data: &TestData, many: u64, length: u64) -> Result<f64> {
    let ranges = data.ranges(many, length);
    if ranges.is_empty() {
        return Err(Error::internal("no test object is large enough"));
    }
    // Tasks of their own use all cores, and end with the set if the measurement is stopped.
    let mut running = JoinSet::new();
    let begun = Instant::now();
    for (key, range) in ranges {
        let store = data.store().clone();
        running.spawn(async move { request(&store, &key, range).await });
    }
    while let Some(ended) = running.join_next().await {
        ended.map_err(|e| Error::internal("a request ended early").with_source(e))??;
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn first_range(data: &TestData, length: u64) -> Result<(String, Range<u64>)> {
    let mut ranges = data.ranges(1, length);
    ranges
        .pop()
        .ok_or_else(|| Error::internal("no test object is large enough"))
}

/// Seconds of one ranged read, its body included.
async fn request(store: &StoreRef, key: &str, range: Range<u64>) -> Result<f64> {
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

    fn points(speeds: &[f64]) -> Vec<BandwidthPoint> {
        let point = |(at, speed): (usize, &f64)| BandwidthPoint {
            requests: 1 << at,
            bytes_per_second: *speed,
        };
        speeds.iter().enumerate().map(point).collect()
    }

    #[test]
    fn a_curve_is_flat_after_two_doublings_without_growth() {
        assert!(!is_flat(&points(&[1.0])));
        assert!(!is_flat(&points(&[1.0, 1.0])));
        assert!(is_flat(&points(&[1.0, 1.0, 1.0])));
        assert!(!is_flat(&points(&[1.0, 2.0, 2.0])));
        assert!(is_flat(&points(&[1.0, 2.0, 2.0, 2.0])));
        assert!(is_flat(&points(&[1.0, 2.0, 4.0, 3.0, 2.0])));
    }

    #[test]
    fn the_next_bandwidth_doubles_until_it_does_not() {
        assert_eq!(expected(&points(&[3.0])), 6.0);
        assert_eq!(expected(&points(&[3.0, 6.0])), 12.0);
        assert!((expected(&points(&[3.0, 4.0])) - 4.4).abs() < 1e-12);
    }

    #[test]
    fn latency_is_taken_off_but_never_all_of_the_time() {
        assert!((speed(1000, 1.5, 0.5) - 1000.0).abs() < 1e-9);
        assert!((speed(1000, 1.0, 5.0) - 10_000.0).abs() < 1e-6);
        assert!(speed(1000, 0.0, 0.0).is_finite());
    }
}
