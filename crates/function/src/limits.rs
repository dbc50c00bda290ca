//! How much one call, and all calls together, may take.
//!
//! The defaults follow the limits that each cloud itself sets, so that a call fails here with a
//! sentence instead of there with a page.

use std::time::Duration;

use hyperslab_index::{Error, Result};
use hyperslab_store::Environment;
use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;

/// Where the function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    /// AWS Lambda.
    Aws,
    /// Azure Functions.
    Azure,
    /// Google Cloud Run.
    Google,
    /// A plain server.
    #[default]
    Local,
}

/// What a call may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Where the function runs.
    #[serde(default)]
    pub host: Host,
    /// Bytes of the longest answer.
    pub max_answer: u64,
    /// Bytes that all calls together may hold.
    pub max_memory: u64,
    /// Seconds of the longest call.
    pub max_seconds: u64,
    /// Calls at a time.
    pub max_concurrent: u32,
    /// Bytes of the largest request.
    pub max_request: u64,
    /// Most units in a request.
    pub max_units: u64,
    /// Most runs in a request.
    pub max_runs: u64,
    /// Bytes of memory that an instance is given and that are paid for, where it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Calls at a time over all instances, where it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}

impl Limits {
    /// The limits where nothing else is said.
    pub fn of(host: Host) -> Self {
        let (max_answer, max_concurrent) = match host {
            // Lambda streams 200 MB and runs one call in an instance at a time.
            Host::Aws => (200 * MIB, 1),
            Host::Azure => (100 * MIB, 32),
            // Cloud Run's limit for answers that are not streamed; a proxy may collect ours.
            Host::Google => (32 * MIB, 32),
            Host::Local => (256 * MIB, 64),
        };
        Limits {
            host,
            max_answer,
            max_memory: 1024 * MIB,
            max_seconds: 60,
            max_concurrent,
            // Lambda takes requests of 6 MB, in base64 at the worst.
            max_request: 4 * MIB,
            max_units: 10_000,
            max_runs: 200_000,
            memory: None,
            // A plain server is its only instance; how many a cloud starts, it does not tell.
            concurrency: (host == Host::Local).then_some(max_concurrent),
        }
    }

    /// The limits of a host, with what the environment says.
    pub fn from_environment(host: Host, environment: &Environment) -> Result<Self> {
        let mut limits = Self::of(host);
        // Lambda gives its memory in MiB; the program and the runtime need some of it.
        let given = environment
            .get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
            .and_then(|text| text.parse::<u64>().ok())
            .filter(|_| host == Host::Aws);
        if let Some(mib) = given {
            let bytes = mib.saturating_mul(MIB);
            limits.memory = Some(bytes);
            limits.max_memory = bytes / 4 * 3;
        }
        let variable = |name: &str, value: &mut u64, least: u64, most: u64| -> Result<()> {
            let Some(text) = environment.get(name) else {
                return Ok(());
            };
            let parsed = quantity(text).filter(|n| (least..=most).contains(n));
            *value = parsed.ok_or_else(|| {
                Error::invalid(format!("{name} is {text:?}, which is not a possible limit"))
                    .with_hint(format!(
                        "use a whole number from {least} to {most}, or 64MiB"
                    ))
            })?;
            Ok(())
        };
        variable(
            "HYPERSLAB_FUNCTION_MAX_ANSWER",
            &mut limits.max_answer,
            1,
            1 << 40,
        )?;
        variable(
            "HYPERSLAB_FUNCTION_MAX_MEMORY",
            &mut limits.max_memory,
            MIB,
            1 << 40,
        )?;
        variable(
            "HYPERSLAB_FUNCTION_MAX_SECONDS",
            &mut limits.max_seconds,
            1,
            3600,
        )?;
        let mut concurrent = u64::from(limits.max_concurrent);
        variable(
            "HYPERSLAB_FUNCTION_MAX_CONCURRENT",
            &mut concurrent,
            1,
            100_000,
        )?;
        limits.max_concurrent = u32::try_from(concurrent).unwrap_or(u32::MAX);
        limits.concurrency = (host == Host::Local).then_some(limits.max_concurrent);
        if environment.get("HYPERSLAB_FUNCTION_CONCURRENCY").is_some() {
            let mut all = 0;
            variable("HYPERSLAB_FUNCTION_CONCURRENCY", &mut all, 1, 1_000_000)?;
            limits.concurrency = u32::try_from(all).ok();
        }
        Ok(limits)
    }

    /// The longest call.
    pub fn time(&self) -> Duration {
        Duration::from_secs(self.max_seconds)
    }
}

/// A whole number, perhaps with a binary unit.
fn quantity(text: &str) -> Option<u64> {
    let text = text.trim();
    for (unit, factor) in [("KiB", 1 << 10), ("MiB", MIB), ("GiB", 1 << 30)] {
        if let Some(number) = text.strip_suffix(unit) {
            return number.trim_end().parse::<u64>().ok()?.checked_mul(factor);
        }
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(host: Host, variables: &[(&str, &str)]) -> Result<Limits> {
        Limits::from_environment(host, &variables.iter().copied().collect())
    }

    #[test]
    fn the_environment_overrides_the_host() {
        let found = limits(
            Host::Google,
            &[
                ("HYPERSLAB_FUNCTION_MAX_ANSWER", "8 MiB"),
                ("HYPERSLAB_FUNCTION_MAX_SECONDS", "7"),
                ("HYPERSLAB_FUNCTION_MAX_CONCURRENT", "3"),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
            ],
        )
        .unwrap();
        assert_eq!(found.max_answer, 8 * MIB);
        assert_eq!((found.time().as_secs(), found.max_concurrent), (7, 3));
        assert_eq!(found.max_memory, 1024 * MIB);
        let lambda = limits(Host::Aws, &[("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")]).unwrap();
        assert_eq!(
            (lambda.max_memory, lambda.max_answer),
            (96 * MIB, 200 * MIB)
        );
        assert_eq!((lambda.memory, lambda.concurrency), (Some(128 * MIB), None));
        let local = limits(Host::Local, &[("HYPERSLAB_FUNCTION_MAX_CONCURRENT", "5")]).unwrap();
        assert_eq!((local.memory, local.concurrency), (None, Some(5)));
        let all = limits(Host::Aws, &[("HYPERSLAB_FUNCTION_CONCURRENCY", "50")]).unwrap();
        assert_eq!((all.max_concurrent, all.concurrency), (1, Some(50)));
    }

    #[test]
    fn impossible_limits_are_refused() {
        for (name, value) in [
            ("HYPERSLAB_FUNCTION_MAX_ANSWER", "0"),
            ("HYPERSLAB_FUNCTION_MAX_MEMORY", "much"),
            ("HYPERSLAB_FUNCTION_MAX_MEMORY", "1"),
            ("HYPERSLAB_FUNCTION_MAX_SECONDS", "-1"),
            ("HYPERSLAB_FUNCTION_MAX_CONCURRENT", "99999999GiB"),
            ("HYPERSLAB_FUNCTION_CONCURRENCY", "0"),
        ] {
            let error = limits(Host::Local, &[(name, value)]).unwrap_err();
            assert!(error.message().contains(name), "{error}");
        }
    }
}
