//! A latency histogram of atomics.
//!
//! Buckets are exact below 16 µs and then eight to each doubling, so a quantile is off by at most
//! one eighth. Recording is one relaxed addition.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// 16 exact buckets, then 8 for each of the doublings from 2^4 to 2^63.
const BUCKETS: usize = 16 + 60 * 8;

#[derive(Debug)]
pub(super) struct Histogram(Box<[AtomicU64]>);

impl Default for Histogram {
    fn default() -> Self {
        Histogram((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Histogram {
    pub(super) fn record(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.0[bucket(micros)].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> Latencies {
        Latencies {
            counts: self
                .0
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .collect(),
        }
    }
}

fn bucket(micros: u64) -> usize {
    if micros < 16 {
        return micros as usize;
    }
    let doubling = micros.ilog2() as usize;
    let eighth = (micros >> (doubling - 3)) as usize & 7;
    16 + (doubling - 4) * 8 + eighth
}

/// The largest number of microseconds that falls into a bucket.
fn upper(bucket: usize) -> u64 {
    if bucket < 16 {
        return bucket as u64;
    }
    let (doubling, eighth) = ((bucket - 16) / 8 + 4, (bucket - 16) % 8);
    let width = 1u64 << (doubling - 3);
    ((8 + eighth as u64) << (doubling - 3)).saturating_add(width - 1)
}

/// How long requests took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    counts: Vec<u64>,
}

impl Latencies {
    /// Number of requests.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The latency that the fraction `q` (0 to 1) of requests did not exceed, or `None` if there
    /// were none. At most one eighth too high.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let count = self.count();
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for (bucket, n) in self.counts.iter().enumerate() {
            below += n;
            if below >= rank {
                return Some(Duration::from_micros(upper(bucket)));
            }
        }
        None
    }

    /// The median.
    pub fn p50(&self) -> Option<Duration> {
        self.quantile(0.5)
    }

    /// The latency that 99 of 100 requests did not exceed.
    pub fn p99(&self) -> Option<Duration> {
        self.quantile(0.99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_is_at_most_an_eighth_below_its_bucket(micros in 0..u64::MAX) {
            let upper = upper(bucket(micros));
            prop_assert!(upper >= micros);
            prop_assert!(upper - micros <= micros / 8);
        }

        #[test]
        fn quantiles_agree_with_a_sorted_list(
            mut values in prop::collection::vec(0u64..1 << 40, 1..200),
            q in 0.0f64..=1.0,
        ) {
            let histogram = Histogram::default();
            values.iter().for_each(|v| histogram.record(Duration::from_micros(*v)));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1];
            let got = histogram.snapshot().quantile(q).unwrap().as_micros() as u64;
            prop_assert!(got >= exact && got - exact <= exact / 8, "{got} for {exact}");
        }
    }

    #[test]
    fn nothing_recorded_has_no_quantile() {
        assert_eq!(Histogram::default().snapshot().p99(), None);
        assert_eq!(Latencies::default().p50(), None);
    }
}
