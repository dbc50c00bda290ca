//! Profiles: what a client measured of an endpoint and of the function next to it.
//!
//! A profile is dated data. `hyperslab profile` writes one; the built-in ones in `profiles/` at the
//! root of the repository serve until one is measured.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What is known of an endpoint, as seen from one client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What it is a profile of: an endpoint, or a cloud for the built-in ones.
    pub name: String,
    /// When it was measured, as year-month or a longer date.
    pub date: String,
    /// Where the numbers come from.
    pub source: String,
    /// The way to the store.
    pub network: NetworkProfile,
    /// The function next to the data, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionProfile>,
}

/// The way to the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkProfile {
    /// Seconds from a request to the first byte of its answer: the paper's `T_R`.
    pub latency_seconds: f64,
    /// Standard deviation of the latency.
    #[serde(default)]
    pub latency_spread: f64,
    /// Seconds of the client's own work for each request, which no concurrency hides.
    #[serde(default)]
    pub request_seconds: f64,
    /// Bytes per second of one connection.
    pub connection_bandwidth: f64,
    /// Bytes per second of all connections, by their number: the paper's `BW(N)`.
    pub bandwidth: Vec<BandwidthPoint>,
    /// Requests per second that the store takes, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// Requests in flight at a time.
    #[serde(default = "default_window")]
    pub window: u32,
}

fn default_window() -> u32 {
    256
}

/// A measured point of `BW(N)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BandwidthPoint {
    /// Concurrent requests.
    pub requests: u32,
    /// Bytes per second of all of them together.
    pub bytes_per_second: f64,
}

/// The function next to the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionProfile {
    /// Seconds per byte that it reads: the paper's α.
    pub seconds_per_byte: f64,
    /// Seconds of a call besides, once the function runs: the paper's β.
    pub warm_seconds: f64,
    /// The same for a call that has to start it.
    pub cold_seconds: f64,
    /// Share of calls that have to start it.
    #[serde(default)]
    pub cold_share: f64,
    /// Memory that it is given, in bytes: the paper's `M_λ`.
    pub memory_bytes: u64,
    /// The longest answer.
    pub max_answer_bytes: u64,
    /// From here on an answer is sent at `stream_bandwidth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_after_bytes: Option<u64>,
    /// Bytes per second of an answer past `stream_after_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_bandwidth: Option<f64>,
    /// The longest call in seconds.
    pub max_seconds: f64,
    /// Calls that run at a time.
    pub concurrency: u32,
}

const BUILT_IN: [(&str, &str); 4] = [
    ("aws", include_str!("../../../profiles/aws.toml")),
    ("azure", include_str!("../../../profiles/azure.toml")),
    ("gcp", include_str!("../../../profiles/gcp.toml")),
    ("local", include_str!("../../../profiles/local.toml")),
];

impl Profile {
    /// Reads a profile and checks that it can be planned with.
    pub fn parse(text: &str) -> Result<Self> {
        let profile: Profile = toml::from_str(text).map_err(|error| {
            let reason = error.message().trim_end_matches('.').to_string();
            Error::invalid(format!("the profile cannot be used: {reason}"))
                .with_hint("measure a new one with `hyperslab profile`")
                .with_source(error)
        })?;
        profile.check()?;
        Ok(profile)
    }

    /// The profile as TOML.
    pub fn render(&self) -> Result<String> {
        toml::to_string_pretty(self)
            .map_err(|e| Error::internal("a profile has no TOML").with_source(e))
    }

    /// The built-in profile of this name: `aws`, `azure`, `gcp` or `local`.
    pub fn built_in(name: &str) -> Result<Self> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(text),
            None => Err(
                Error::invalid(format!("there is no built-in profile named {name:?}"))
                    .with_hint("the built-in profiles are aws, azure, gcp and local"),
            ),
        }
    }

    /// Refuses numbers that cannot be, or that contradict one another.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| {
            Err(
                Error::invalid(format!("the profile {:?} {what}", self.name))
                    .with_hint("measure a new one with `hyperslab profile`"),
            )
        };
        let network = &self.network;
        if network.bandwidth.is_empty() {
            return wrong("has no bandwidth".into());
        }
        for (name, value) in [
            ("latency_seconds", network.latency_seconds),
            ("latency_spread", network.latency_spread),
            ("request_seconds", network.request_seconds),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return wrong(format!("says that {name} is {value}"));
            }
        }
        let speeds = network.bandwidth.iter().map(|point| point.bytes_per_second);
        for value in speeds.chain([network.connection_bandwidth]) {
            if !(value.is_finite() && value > 0.0) {
                return wrong(format!("says that a bandwidth is {value}"));
            }
        }
        let numbers: Vec<u32> = network.bandwidth.iter().map(|p| p.requests).collect();
        if numbers[0] == 0 || numbers.windows(2).any(|w| w[0] >= w[1]) {
            return wrong("does not list its bandwidths by a growing number of requests".into());
        }
        if network.window == 0 || network.requests_per_second.is_some_and(is_no_speed) {
            return wrong("allows no requests at all".into());
        }
        match &self.function {
            Some(function) => self.check_function(function),
            None => Ok(()),
        }
    }

    fn check_function(&self, function: &FunctionProfile) -> Result<()> {
        let times = [
            ("seconds_per_byte", function.seconds_per_byte),
            ("warm_seconds", function.warm_seconds),
            ("cold_seconds", function.cold_seconds),
            ("cold_share", function.cold_share),
            ("max_seconds", function.max_seconds),
        ];
        let wrong = times.iter().find(|(_, v)| !(v.is_finite() && *v >= 0.0));
        let what = if let Some((name, value)) = wrong {
            format!("says that the function's {name} is {value}")
        } else if function.cold_seconds < function.warm_seconds {
            "says that a cold call is faster than a warm one".into()
        } else if function.concurrency == 0
            || function.max_answer_bytes == 0
            || function.memory_bytes == 0
        {
            "allows no call of the function".into()
        } else if function.stream_bandwidth.is_some_and(is_no_speed) {
            "says that answers are streamed at no speed".into()
        } else {
            return Ok(());
        };
        Err(
            Error::invalid(format!("the profile {:?} {what}", self.name))
                .with_hint("measure a new one with `hyperslab profile --function URL`"),
        )
    }
}

fn is_no_speed(value: f64) -> bool {
    value.is_nan() || value <= 0.0
}

impl NetworkProfile {
    /// Bytes per second of `requests` concurrent requests, interpolated between measured points.
    pub fn bandwidth(&self, requests: u64) -> f64 {
        let points = &self.bandwidth;
        let n = requests as f64;
        let above = points.partition_point(|point| f64::from(point.requests) < n);
        match (
            above.checked_sub(1).and_then(|i| points.get(i)),
            points.get(above),
        ) {
            (Some(low), Some(high)) => {
                let (x0, x1) = (f64::from(low.requests), f64::from(high.requests));
                let share = (n - x0) / (x1 - x0);
                low.bytes_per_second + share * (high.bytes_per_second - low.bytes_per_second)
            }
            (Some(end), None) | (None, Some(end)) => end.bytes_per_second,
            (None, None) => 0.0,
        }
    }

    /// The highest bandwidth that was measured.
    pub fn peak(&self) -> f64 {
        self.bandwidth
            .iter()
            .map(|point| point.bytes_per_second)
            .fold(0.0, f64::max)
    }

    /// The numbers of requests between which at least 90 % of the peak was measured: the paper's
    /// `N_min` and `N_max`.
    pub fn useful_requests(&self) -> (u32, u32) {
        let enough = 0.9 * self.peak();
        let mut good = self
            .bandwidth
            .iter()
            .filter(|point| point.bytes_per_second >= enough)
            .map(|point| point.requests);
        let first = good.next().unwrap_or(1);
        (first, good.next_back().unwrap_or(first))
    }

    /// Requests in flight at a time: what is allowed, but not so many that bandwidth falls.
    pub fn window(&self) -> u64 {
        let (_, most) = self.useful_requests();
        let measured_past = self.bandwidth.last().is_some_and(|p| p.requests > most);
        let most = if measured_past { most } else { u32::MAX };
        u64::from(self.window.min(most).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profiles_can_be_used_and_written() {
        for (name, _) in BUILT_IN {
            let profile = Profile::built_in(name).unwrap();
            assert_eq!(Profile::parse(&profile.render().unwrap()).unwrap(), profile);
        }
        assert!(Profile::built_in("mars").is_err());
    }

    #[test]
    fn bandwidth_is_interpolated_and_its_useful_range_found() {
        let point = |requests, mega: f64| BandwidthPoint {
            requests,
            bytes_per_second: mega * 1e6,
        };
        let mut network = Profile::built_in("aws").unwrap().network;
        network.bandwidth = vec![
            point(1, 10.0),
            point(8, 80.0),
            point(32, 100.0),
            point(64, 50.0),
        ];
        assert_eq!(network.bandwidth(0), 10e6);
        assert_eq!(network.bandwidth(1), 10e6);
        assert!((network.bandwidth(4) - 40e6).abs() < 1.0);
        assert_eq!(network.bandwidth(48), 75e6);
        assert_eq!(network.bandwidth(1000), 50e6);
        assert_eq!(network.useful_requests(), (32, 32));
        assert_eq!(network.window(), 32);
        network.bandwidth.pop();
        assert_eq!(network.window(), 256);
    }

    #[test]
    fn contradictions_are_refused_in_one_sentence() {
        let good = Profile::built_in("aws").unwrap();
        type Break = fn(&mut Profile);
        let cases: [(&str, Break); 9] = [
            ("no bandwidth", |p| p.network.bandwidth.clear()),
            ("latency_seconds is NaN", |p| {
                p.network.latency_seconds = f64::NAN
            }),
            ("latency_seconds is -1", |p| {
                p.network.latency_seconds = -1.0
            }),
            ("a bandwidth is 0", |p| p.network.connection_bandwidth = 0.0),
            ("growing number", |p| {
                p.network.bandwidth = vec![p.network.bandwidth[0]; 2];
            }),
            ("no requests at all", |p| p.network.window = 0),
            ("no requests at all", |p| {
                p.network.requests_per_second = Some(-1.0)
            }),
            ("faster than a warm", |p| {
                p.function.as_mut().unwrap().cold_seconds = 0.0;
            }),
            ("no call", |p| p.function.as_mut().unwrap().concurrency = 0),
        ];
        for (words, break_it) in cases {
            let mut profile = good.clone();
            break_it(&mut profile);
            let error = profile.check().unwrap_err();
            assert!(error.message().contains(words), "{error}");
            assert!(error.hint().is_some());
        }
        assert!(Profile::parse("").is_err());
        assert!(Profile::parse("name = 3").is_err());
    }
}
