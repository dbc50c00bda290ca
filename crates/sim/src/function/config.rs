//! What the simulated function is like.

use std::time::Duration;

use hyperslab_function::Secret;
use hyperslab_index::{Error, Result};
use serde::{Deserialize, Serialize};

/// The function service of a simulator.
#[derive(Debug, Clone, Default)]
pub struct FunctionConfig {
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// URL prefixes that it may read; empty stands for all buckets of the configuration.
    pub allow: Vec<String>,
    /// Who may call: whoever knows this. `None` lets everybody call.
    pub secret: Option<Secret>,
    /// How long calls take, and their limits.
    pub model: FunctionModel,
    /// What goes wrong.
    pub failures: FunctionFailures,
}

/// How long calls take, and their limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FunctionModel {
    /// Milliseconds for each MiB that a call reads: the α of ArrayMorph (2025).
    pub alpha_millis_per_mib: f64,
    /// Milliseconds of a call besides: its β.
    pub beta_millis: f64,
    /// Milliseconds more where an instance has to start.
    pub cold_millis: f64,
    /// Seconds that an idle instance is kept.
    pub keep_warm_seconds: f64,
    /// Memory of an instance.
    pub memory_bytes: u64,
    /// Calls at a time.
    pub max_concurrent: u32,
    /// Bytes of the longest answer.
    pub max_answer_bytes: u64,
    /// From here on an answer leaves at `stream_bandwidth`; `None` for never.
    pub stream_after_bytes: Option<u64>,
    /// Bytes per second of an answer past `stream_after_bytes`.
    pub stream_bandwidth: Option<f64>,
}

/// No waiting, and the limits of Lambda.
impl Default for FunctionModel {
    fn default() -> Self {
        FunctionModel {
            alpha_millis_per_mib: 0.0,
            beta_millis: 0.0,
            cold_millis: 0.0,
            keep_warm_seconds: 600.0,
            memory_bytes: 1769 << 20,
            max_concurrent: 1000,
            max_answer_bytes: 200 << 20,
            stream_after_bytes: None,
            stream_bandwidth: None,
        }
    }
}

/// How often calls fail, as probabilities of each kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FunctionFailures {
    /// The function crashes: 502 by the cloud.
    pub crash: f64,
    /// No answer until the client gives up or [`FunctionFailures::hang_seconds`] have passed.
    pub hang: f64,
    /// A byte of the answer is another one.
    pub wrong_bytes: f64,
    /// A web page with status 200 in place of the answer.
    pub error_page: f64,
    /// How long a hang lasts at most.
    pub hang_seconds: f64,
    /// Seed of the probabilities.
    pub seed: u64,
}

impl Default for FunctionFailures {
    fn default() -> Self {
        FunctionFailures {
            crash: 0.0,
            hang: 0.0,
            wrong_bytes: 0.0,
            error_page: 0.0,
            hang_seconds: 60.0,
            seed: 0,
        }
    }
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FunctionFailure {
    /// The function crashes.
    Crash,
    /// There is no answer.
    Hang,
    /// The answer has a wrong byte.
    WrongBytes,
    /// There is a web page instead.
    ErrorPage,
}

impl FunctionConfig {
    pub(crate) fn validate(&self) -> Result<()> {
        self.model.validate()?;
        self.failures.validate()
    }
}

impl FunctionModel {
    /// The computed time of a call that reads so many bytes in a running instance.
    pub fn compute_seconds(&self, read: u64) -> f64 {
        let mib = read as f64 / (1u64 << 20) as f64;
        (self.alpha_millis_per_mib * mib + self.beta_millis) / 1e3
    }

    /// Seconds that an answer takes to leave where the cloud is slow on purpose.
    pub fn streamed_seconds(&self, answer: u64) -> f64 {
        match (self.stream_after_bytes, self.stream_bandwidth) {
            (Some(after), Some(speed)) => answer.saturating_sub(after) as f64 / speed,
            _ => 0.0,
        }
    }

    /// Gigabytes that are billed.
    pub fn gigabytes(&self) -> f64 {
        self.memory_bytes as f64 / (1u64 << 30) as f64
    }

    pub(crate) fn keep_warm(&self) -> Duration {
        Duration::try_from_secs_f64(self.keep_warm_seconds).unwrap_or(Duration::MAX)
    }

    pub(crate) fn validate(&self) -> Result<()> {
        const LONGEST: f64 = 3.6e6;
        for (name, value) in [
            ("alpha", self.alpha_millis_per_mib),
            ("beta", self.beta_millis),
            ("cold start", self.cold_millis),
            ("keep-warm time", self.keep_warm_seconds),
        ] {
            if !(0.0..=LONGEST).contains(&value) {
                return Err(Error::invalid(format!(
                    "the function's {name} is {value}, which is outside 0 to {LONGEST}"
                )));
            }
        }
        let slow = self
            .stream_bandwidth
            .is_some_and(|speed| !(speed.is_finite() && speed > 0.0));
        if slow || self.memory_bytes < 1 << 20 || self.max_concurrent == 0 {
            return Err(Error::invalid("the function's limits let no call through")
                .with_hint("give it a MiB of memory, one call at a time and some bandwidth"));
        }
        Ok(())
    }
}

impl FunctionFailures {
    pub(crate) fn validate(&self) -> Result<()> {
        let rates = [self.crash, self.hang, self.wrong_bytes, self.error_page];
        let sane = rates.iter().all(|rate| (0.0..=1.0).contains(rate));
        match sane && (0.0..=3600.0).contains(&self.hang_seconds) {
            true => Ok(()),
            false => Err(
                Error::invalid("the function's failures have impossible rates")
                    .with_hint("probabilities are 0 to 1, and a hang lasts an hour at most"),
            ),
        }
    }

    /// What goes wrong with the `number`-th call.
    pub(crate) fn decide(&self, number: u64) -> Option<FunctionFailure> {
        /// Apart from the purposes of latencies and of the store's faults.
        const PURPOSE: u64 = 1 << 40;
        [
            (FunctionFailure::Crash, self.crash),
            (FunctionFailure::Hang, self.hang),
            (FunctionFailure::WrongBytes, self.wrong_bytes),
            (FunctionFailure::ErrorPage, self.error_page),
        ]
        .into_iter()
        .find(|(kind, rate)| {
            crate::network::seeded::uniform(self.seed, PURPOSE + *kind as u64, number) < *rate
        })
        .map(|(kind, _)| kind)
    }

    pub(crate) fn hang(&self) -> Duration {
        Duration::try_from_secs_f64(self.hang_seconds).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_the_formula() {
        let model = FunctionModel {
            alpha_millis_per_mib: 15.0,
            beta_millis: 180.0,
            stream_after_bytes: Some(100),
            stream_bandwidth: Some(50.0),
            ..FunctionModel::default()
        };
        assert!((model.compute_seconds(2 << 20) - 0.21).abs() < 1e-12);
        assert_eq!(model.streamed_seconds(99), 0.0);
        assert_eq!(model.streamed_seconds(200), 2.0);
    }

    #[test]
    fn failures_are_seeded_and_as_often_as_said() {
        let failures = |seed| FunctionFailures {
            crash: 0.1,
            error_page: 0.1,
            seed,
            ..FunctionFailures::default()
        };
        let draw = |seed| -> Vec<_> { (0..4000).map(|n| failures(seed).decide(n)).collect() };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let count = |kind| {
            draw(1)
                .into_iter()
                .filter(|seen| *seen == Some(kind))
                .count()
        };
        assert!((320..480).contains(&count(FunctionFailure::Crash)));
        assert!((280..440).contains(&count(FunctionFailure::ErrorPage)));
        assert_eq!(count(FunctionFailure::Hang), 0);
    }

    #[test]
    fn nonsense_is_refused() {
        let model = FunctionModel {
            beta_millis: f64::NAN,
            ..FunctionModel::default()
        };
        assert!(model.validate().is_err());
        let failures = FunctionFailures {
            crash: 2.0,
            ..FunctionFailures::default()
        };
        assert!(failures.validate().is_err());
    }
}
