//! What the simulated network is like: latency, bandwidth and request limits.
//!
//! This module holds the description ([`Network`]), which is plain data; [`shaper`] turns it into
//! deadlines, [`limit`] into refusals, and [`timer`] waits for the deadlines.
//!
//! Invariant: [`Network::unshaped`] causes no sleep at all.

pub(crate) mod limit;
mod preset;
pub(crate) mod seeded;
pub(crate) mod shaper;
pub(crate) mod timer;

use std::time::Duration;

use hyperslab_index::{Error, Result};
use serde::{Deserialize, Serialize};

/// A network between client and store. The default is [`Network::unshaped`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Time from the arrival of a request (for an upload: of its last byte) to the first byte of
    /// the answer.
    pub latency: Latency,
    /// Bytes per second on one connection, in each direction; `None` is without limit.
    pub connection_bandwidth: Option<f64>,
    /// Bytes per second on all connections together, in each direction; `None` is without limit.
    pub total_bandwidth: Option<f64>,
    /// Requests per second before the store answers 503 SlowDown; `None` is without limit.
    pub rate_limit: Option<RateLimit>,
    /// Seed of the latency draws: the same seed and order of requests give the same latencies.
    pub seed: u64,
}

/// How long the first byte of an answer takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Latency {
    /// No waiting at all.
    #[default]
    None,
    /// Always the same time.
    Constant {
        /// Milliseconds to the first byte.
        millis: f64,
    },
    /// A log-normal distribution moved to the right by `floor_millis`.
    LogNormal {
        /// The least possible time.
        #[serde(default)]
        floor_millis: f64,
        /// Half of all requests are faster than this.
        median_millis: f64,
        /// One request in a hundred is slower than this.
        p99_millis: f64,
    },
}

/// Token buckets that refuse requests above a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// GET, HEAD and LIST requests per second; `None` is without limit.
    pub reads_per_second: Option<f64>,
    /// PUT, POST, COPY and DELETE requests per second; `None` is without limit.
    pub writes_per_second: Option<f64>,
    /// How many requests a bucket that has been idle admits at once; at least one.
    pub burst: f64,
    /// What shares one token bucket.
    pub scope: RateScope,
    /// Seconds in the `Retry-After` header of a refusal; `None` sends none, as S3 does.
    pub retry_after_seconds: Option<u64>,
}

/// What shares one token bucket of a [`RateLimit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateScope {
    /// All keys of a storage bucket.
    Bucket,
    /// Keys that agree in this many leading components, as S3 partitions by prefix.
    Prefix(usize),
}

impl Network {
    /// No latency, no limits: the loopback as it is.
    pub fn unshaped() -> Self {
        Self::default()
    }

    /// Constant latency and two bandwidth limits, in bytes per second.
    pub fn constant(latency: Duration, connection_bandwidth: f64, total_bandwidth: f64) -> Self {
        Network {
            latency: Latency::Constant {
                millis: latency.as_secs_f64() * 1e3,
            },
            connection_bandwidth: Some(connection_bandwidth),
            total_bandwidth: Some(total_bandwidth),
            ..Self::default()
        }
    }

    /// Checks that every number makes sense.
    pub fn validate(&self) -> Result<()> {
        let positive = |name: &str, value: Option<f64>| match value {
            Some(value) if !(value.is_finite() && value > 0.0) => Err(Error::invalid(format!(
                "the network's {name} is {value}, which is not a positive number"
            ))
            .with_hint("leave it out for no limit")),
            _ => Ok(()),
        };
        positive("connection bandwidth", self.connection_bandwidth)?;
        positive("total bandwidth", self.total_bandwidth)?;
        if let Some(limit) = &self.rate_limit {
            positive("read rate", limit.reads_per_second)?;
            positive("write rate", limit.writes_per_second)?;
            if !(limit.burst.is_finite() && limit.burst >= 1.0) {
                return Err(Error::invalid(format!(
                    "the rate limit's burst is {}, which admits no request at all",
                    limit.burst
                ))
                .with_hint("a burst is at least 1"));
            }
        }
        self.latency.validate()
    }
}

impl Latency {
    fn validate(&self) -> Result<()> {
        const LONGEST_MILLIS: f64 = 3.6e6;
        let sane = |millis: f64| (0.0..=LONGEST_MILLIS).contains(&millis);
        match *self {
            Latency::None => Ok(()),
            Latency::Constant { millis } if sane(millis) => Ok(()),
            Latency::Constant { millis } => Err(Error::invalid(format!(
                "a latency of {millis} ms is outside 0 to {LONGEST_MILLIS} ms"
            ))),
            Latency::LogNormal {
                floor_millis,
                median_millis,
                p99_millis,
            } => {
                let sane_ends = sane(floor_millis) && sane(p99_millis);
                if sane_ends && floor_millis < median_millis && median_millis <= p99_millis {
                    Ok(())
                } else {
                    Err(Error::invalid(format!(
                        "a log-normal latency with floor {floor_millis}, median {median_millis} and \
                         99th percentile {p99_millis} ms does not exist"
                    ))
                    .with_hint("floor < median <= 99th percentile, and at least 0"))
                }
            }
        }
    }

    /// The latency of the `number`-th request.
    pub(crate) fn sample(&self, seed: u64, number: u64) -> Duration {
        /// The 99th percentile of the standard normal distribution.
        const Z99: f64 = 2.326_347_874_040_841;
        const PURPOSE: u64 = 1;
        let millis = match *self {
            Latency::None => return Duration::ZERO,
            Latency::Constant { millis } => millis,
            Latency::LogNormal {
                floor_millis,
                median_millis,
                p99_millis,
            } => {
                let mu = (median_millis - floor_millis).ln();
                let sigma = ((p99_millis - floor_millis).ln() - mu) / Z99;
                floor_millis + (mu + sigma * seeded::normal(seed, PURPOSE, number)).exp()
            }
        };
        Duration::try_from_secs_f64(millis / 1e3).unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_normal_hits_its_median_and_99th_percentile() {
        let latency = Latency::LogNormal {
            floor_millis: 4.0,
            median_millis: 20.0,
            p99_millis: 90.0,
        };
        let mut draws: Vec<f64> = (0..50_000)
            .map(|n| latency.sample(3, n).as_secs_f64() * 1e3)
            .collect();
        draws.sort_by(f64::total_cmp);
        assert!(draws[0] >= 4.0);
        let (median, p99) = (draws[25_000], draws[49_500]);
        assert!((median / 20.0 - 1.0).abs() < 0.02, "median {median}");
        assert!((p99 / 90.0 - 1.0).abs() < 0.05, "p99 {p99}");
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let mut network = Network {
            total_bandwidth: Some(0.0),
            ..Network::default()
        };
        assert!(
            network
                .validate()
                .unwrap_err()
                .message()
                .contains("total bandwidth is 0")
        );
        network.total_bandwidth = Some(f64::NAN);
        assert!(network.validate().is_err());
        network.total_bandwidth = None;
        network.latency = Latency::LogNormal {
            floor_millis: 5.0,
            median_millis: 5.0,
            p99_millis: 9.0,
        };
        assert!(network.validate().is_err());
        network.latency = Latency::Constant { millis: -1.0 };
        assert!(network.validate().is_err());
    }
}
