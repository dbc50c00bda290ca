//! Times calls of the function next to the data: `T_λ = α·size + β`, and a cold call apart.
//!
//! Beside [`super::network`]. What a call looks like on the wire is the business of whoever
//! implements [`Probe`]; here are only sizes, repetitions and the line through their medians.

use std::time::{Duration, Instant};

use hyperslab_plan::FunctionProfile;

use super::data::TestData;
use super::statistics::{line, median};
use crate::{Error, Result};

/// The longest read of a call that is timed.
pub(super) const LARGEST_READ: u64 = 16 << 20;
/// Bytes that calls read, where the test data is long enough.
const READS: [u64; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, LARGEST_READ];
/// Calls of each size, at least and at most.
const LEAST_ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 7;

/// Calls the function.
pub trait Probe: Send + Sync {
    /// Makes the function read the first `read_bytes` bytes of the object at the URL `object` and
    /// answer a few of them; returns how long that took, from the request to the answer's end.
    fn call(&self, object: &str, read_bytes: u64) -> impl Future<Output = Result<Duration>> + Send;
}

/// There is no function to call.
#[derive(Debug, Clone, Copy)]
pub enum NoFunction {}

impl Probe for NoFunction {
    async fn call(&self, _: &str, _: u64) -> Result<Duration> {
        match *self {}
    }
}

/// What was measured of the function.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionTimes {
    /// Seconds per byte that it reads: α.
    pub seconds_per_byte: f64,
    /// Seconds of a call besides, the way there not included: β.
    pub warm_seconds: f64,
    /// The same for the first call, which may have had to start the function.
    pub cold_seconds: f64,
    /// Every other call: bytes read and seconds, the way there included.
    pub calls: Vec<(u64, f64)>,
}

impl FunctionTimes {
    /// A profile with these times and the limits of `limits`, which cannot be measured.
    pub fn with_limits(&self, limits: &FunctionProfile) -> FunctionProfile {
        FunctionProfile {
            seconds_per_byte: self.seconds_per_byte,
            warm_seconds: self.warm_seconds,
            cold_seconds: self.cold_seconds,
            ..limits.clone()
        }
    }
}

/// Calls the function on the test data for about as long as `time`.
pub(super) async fn function<P: Probe>(
    data: &TestData,
    probe: &P,
    way: f64,
    time: Duration,
) -> Result<FunctionTimes> {
    let object = data.largest()?;
    let number = object.key.rsplit('/').next().unwrap_or(&object.key);
    let url = format!("{}/{number}", data.url());
    time_calls(probe, &url, object.size, way, time).await
}

async fn time_calls<P: Probe>(
    probe: &P,
    url: &str,
    size: u64,
    way: f64,
    time: Duration,
) -> Result<FunctionTimes> {
    let mut reads: Vec<u64> = READS.iter().copied().filter(|read| *read <= size).collect();
    if reads.len() < 2 {
        reads = vec![(size / 8).max(1), size];
    }
    let first = probe.call(url, reads[0]).await?.as_secs_f64();
    let begun = Instant::now();
    let mut calls = Vec::new();
    for round in 0..MOST_ROUNDS {
        if round >= LEAST_ROUNDS && begun.elapsed() > time {
            break;
        }
        for read in &reads {
            calls.push((*read, probe.call(url, *read).await?.as_secs_f64()));
        }
    }
    let points: Vec<(f64, f64)> = reads
        .iter()
        .filter_map(|read| {
            let of_size = calls.iter().filter(|(size, _)| size == read);
            let seconds: Vec<f64> = of_size.map(|(_, seconds)| *seconds).collect();
            Some((*read as f64, median(&seconds)?))
        })
        .collect();
    let line = line(&points).ok_or_else(|| Error::internal("calls of one size give no line"))?;
    let seconds_per_byte = line.slope.max(0.0);
    let warm_seconds = (line.intercept - way).max(0.0);
    let cold = first - seconds_per_byte * reads[0] as f64 - way;
    Ok(FunctionTimes {
        seconds_per_byte,
        warm_seconds,
        cold_seconds: cold.max(warm_seconds),
        calls,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A function with known times, whose first call is cold and every ninth one stalls.
    struct Known {
        calls: AtomicU64,
    }

    impl Probe for Known {
        async fn call(&self, _: &str, read_bytes: u64) -> Result<Duration> {
            let number = self.calls.fetch_add(1, Ordering::Relaxed);
            let cold = if number == 0 { 0.6 } else { 0.0 };
            let stall = if number % 9 == 8 { 2.0 } else { 0.0 };
            let noise = 1.0 + 0.02 * (number % 3) as f64 - 0.02;
            let seconds = (0.02 + 0.18 + 15e-9 * read_bytes as f64) * noise + cold + stall;
            Ok(Duration::from_secs_f64(seconds))
        }
    }

    #[tokio::test]
    async fn known_times_are_found_in_spite_of_stalls() {
        let known = Known {
            calls: AtomicU64::new(0),
        };
        let time = Duration::from_secs(5);
        let times = time_calls(&known, "memory://x", 16 << 20, 0.02, time)
            .await
            .unwrap();
        assert!(
            (times.seconds_per_byte / 15e-9 - 1.0).abs() < 0.1,
            "{times:?}"
        );
        assert!((times.warm_seconds / 0.18 - 1.0).abs() < 0.1, "{times:?}");
        assert!((times.cold_seconds / 0.78 - 1.0).abs() < 0.1, "{times:?}");
        assert_eq!(times.calls.len(), READS.len() * MOST_ROUNDS);
    }

    #[tokio::test]
    async fn little_data_gives_a_line_too() {
        let known = Known {
            calls: AtomicU64::new(0),
        };
        let times = time_calls(&known, "memory://x", 100_000, 0.02, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(times.calls.len(), 2 * LEAST_ROUNDS);
        assert!(times.warm_seconds > 0.1 && times.cold_seconds >= times.warm_seconds);
    }
}
