//! Times requests: latency, bandwidth of one connection, bandwidth of many.
//!
//! Between [`super::requests`] and [`super::measure`]. A store hands on whole bodies only, so a
//! transfer is what a long request takes besides what a short one does.
//!
//! Bandwidth of N requests is measured in waves: N requests of equal length begin together, and the
//! wave takes one latency and then its bytes at `BW(N)`, as the planner's model has it.

use std::time::{Duration, Instant};

use hyperslab_plan::{BandwidthPoint, NetworkProfile};

use super::calibration::Calibration;
use super::data::TestData;
use super::requests::{SmallRequests, TINY, request, together};
use super::statistics::{median, upper_quartile};
use super::sustained;
use crate::{Error, Progress, Result};

/// Transfers of one connection by itself, and waves of each number of requests.
const TRANSFERS: usize = 5;
const WAVES: usize = 5;
/// Streams of small requests.
const STREAMS: usize = 3;
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

/// What was found of a network.
pub(super) struct Found {
    pub(super) profile: NetworkProfile,
    /// Seconds of a small request by itself: the latency, and what this machine takes.
    pub(super) alone: f64,
    /// Seconds of each small request that ran by itself.
    pub(super) seconds: Vec<f64>,
}

/// Measures the way to the store of the test data.
pub(super) async fn network(
    data: &TestData,
    effort: &Effort,
    progress: &dyn Progress,
) -> Result<Found> {
    let (most, time) = (effort.most_requests, effort.part / 3);
    // A store without a network has no latency to find.
    let calibration = match is_remote(data.store().url()) {
        true => Calibration::start(),
        false => None,
    };
    let calibration = calibration.as_ref();
    let mut small = SmallRequests::default();
    small.measure(data, calibration, most, time).await?;
    let connection = connection(data, effort, small.alone(), progress).await?;
    small.measure(data, calibration, most, time).await?;
    // However long the rest has taken: bandwidth of a few requests says nothing of many.
    let effort = &Effort {
        deadline: effort.deadline.max(Instant::now() + 5 * effort.part),
        ..*effort
    };
    let bandwidth = curve(data, effort, small.alone(), connection, progress).await?;
    small.measure(data, calibration, most, time).await?;
    let work = work(data, u64::from(most), &small).await?;
    let profile = NetworkProfile {
        latency_seconds: small.latency(),
        latency_spread: small.spread(),
        request_seconds: work,
        connection_bandwidth: connection,
        bandwidth,
        requests_per_second: None,
        window: 256,
    };
    Ok(Found {
        profile,
        alone: small.alone(),
        seconds: small.seconds,
    })
}

/// Seconds of work with each of many requests.
async fn work(data: &TestData, most: u64, small: &SmallRequests) -> Result<f64> {
    let mut least: Option<f64> = None;
    for _ in 0..STREAMS {
        match sustained::work(data, most, small.alone()).await? {
            Some(work) => least = Some(least.map_or(work, |least| least.min(work))),
            // A machine that is not busy now shows that work was not what the others waited for.
            None => return Ok(small.work()),
        }
    }
    Ok(least.unwrap_or(0.0).max(small.work()))
}

fn is_remote(url: &str) -> bool {
    url.contains("://") && !url.starts_with("file://") && !url.starts_with("memory://")
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
            let times = together(data, many, self.length).await?;
            let seconds = times.last().copied().unwrap_or_default();
            speeds.push(speed(bytes, seconds, latency));
            progress.add(bytes);
        }
        Ok(BandwidthPoint {
            requests: self.requests,
            bytes_per_second: upper_quartile(&speeds)
                .ok_or_else(|| Error::internal("no wave was measured"))?,
        })
    }
}

/// Bytes per second of a transfer that began after `latency`.
fn speed(bytes: u64, seconds: f64, latency: f64) -> f64 {
    let transfer = seconds - latency.min(MOST_LATENCY_SHARE * seconds);
    bytes as f64 / transfer.max(1e-9)
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
