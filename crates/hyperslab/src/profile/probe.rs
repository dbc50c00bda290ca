//! Calls the function for a measurement, and asks it for its limits.
//!
//! Between [`super::function`], which times the calls, and the client of the function's protocol.

use std::time::{Duration, Instant};

use hyperslab_function::{FunctionClient, Host, Limits, SlabRequest, StridedRun, Unit};
use hyperslab_plan::{FunctionProfile, Profile};

use super::Probe;
use crate::{Error, Result};

/// A call that takes longer has failed.
const CALL: Duration = Duration::from_secs(60);

impl Probe for FunctionClient {
    async fn call(&self, object: &str, read_bytes: u64) -> Result<Duration> {
        // The first and the last byte: the function reads what is between, and answers next to
        // nothing.
        let ends = StridedRun {
            start: 0,
            len: 1,
            step: read_bytes.saturating_sub(1).max(1),
            count: read_bytes.min(2),
        };
        let request = SlabRequest::new(object, vec![Unit::raw(vec![ends])])?;
        let begun = Instant::now();
        FunctionClient::call(self, &request, begun + CALL).await?;
        Ok(begun.elapsed())
    }
}

/// What cannot be measured of a function: the limits that it tells, and those that its cloud sets
/// besides. The times are zero; [`super::FunctionTimes::with_limits`] fills them in.
pub async fn function_limits(client: &FunctionClient) -> Result<FunctionProfile> {
    let health = client.health(Instant::now() + CALL).await?;
    limits(&health.limits)
}

fn limits(told: &Limits) -> Result<FunctionProfile> {
    let cloud = match told.host {
        Host::Aws => built_in("aws")?,
        Host::Azure => built_in("azure")?,
        Host::Google => built_in("gcp")?,
        // Nobody else has a say.
        Host::Local => FunctionProfile {
            seconds_per_byte: 0.0,
            warm_seconds: 0.0,
            cold_seconds: 0.0,
            cold_share: 0.0,
            memory_bytes: told.max_memory,
            max_answer_bytes: told.max_answer,
            stream_after_bytes: None,
            stream_bandwidth: None,
            max_seconds: told.max_seconds as f64,
            concurrency: told.max_concurrent,
        },
    };
    Ok(FunctionProfile {
        seconds_per_byte: 0.0,
        warm_seconds: 0.0,
        cold_seconds: 0.0,
        // Without being told, what calls may hold is the best guess at what is paid for.
        memory_bytes: told.memory.unwrap_or(told.max_memory),
        max_answer_bytes: cloud.max_answer_bytes.min(told.max_answer),
        max_seconds: cloud.max_seconds.min(told.max_seconds as f64),
        concurrency: told.concurrency.unwrap_or(cloud.concurrency),
        ..cloud
    })
}

fn built_in(cloud: &str) -> Result<FunctionProfile> {
    Profile::built_in(cloud)?
        .function
        .ok_or_else(|| Error::internal("a built-in profile has no function"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_function_and_of_its_cloud() {
        let mut told = Limits::of(Host::Aws);
        told.memory = Some(512 << 20);
        told.max_answer = 1 << 20;
        told.max_seconds = 5000;
        let found = limits(&told).unwrap();
        let lambda = built_in("aws").unwrap();
        assert_eq!(found.memory_bytes, 512 << 20);
        assert_eq!(found.max_answer_bytes, 1 << 20);
        assert_eq!(found.max_seconds, lambda.max_seconds);
        // Lambda answers one call in an instance, but has many instances.
        assert_eq!(found.concurrency, lambda.concurrency);
        assert_eq!(found.stream_bandwidth, lambda.stream_bandwidth);

        told.concurrency = Some(7);
        assert_eq!(limits(&told).unwrap().concurrency, 7);

        let local = Limits::of(Host::Local);
        let found = limits(&local).unwrap();
        assert_eq!(found.concurrency, local.max_concurrent);
        assert_eq!(found.stream_after_bytes, None);
        assert_eq!(found.memory_bytes, local.max_memory);
    }
}
