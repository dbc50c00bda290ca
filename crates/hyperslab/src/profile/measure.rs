//! One measurement from its test data to its profile.
//!
//! The top of this module's measuring half: it divides the time, runs the parts in order, and
//! removes the test data however they end.

use std::time::{Duration, Instant};

use hyperslab_plan::{FunctionProfile, NetworkProfile, Profile};
use hyperslab_store::StoreRef;

use super::data::{Extent, TestData};
use super::function::{FunctionTimes, LARGEST_READ, Probe, function};
use super::network::{Effort, network};
use crate::{Error, Progress, Result};

/// Less test data than this says nothing.
const LEAST_BYTES: u64 = 1 << 20;
/// The largest object; longer transfers are no faster.
const LARGEST_OBJECT: u64 = 16 << 20;
/// Waves that a measurement is divided into: nine numbers of requests, five each.
const WAVES: f64 = 45.0;

/// How to measure.
#[derive(Debug, Clone)]
pub struct MeasureOptions {
    /// Bytes of test data, at most; each number of requests reads no more than that either.
    pub bytes: u64,
    /// About how long it may take. A slow network takes longer, but never without end.
    pub time: Duration,
    /// Requests in flight at a time, at most.
    pub most_requests: u32,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        MeasureOptions {
            bytes: 256 << 20,
            time: Duration::from_secs(60),
            most_requests: 256,
        }
    }
}

impl MeasureOptions {
    fn check(&self) -> Result<()> {
        if self.bytes < LEAST_BYTES {
            return Err(Error::invalid(format!(
                "{} bytes of test data are too few to measure with",
                self.bytes
            ))
            .with_hint("allow 1 MiB or more"));
        }
        if self.time.is_zero() || self.most_requests == 0 {
            return Err(Error::invalid("a measurement needs time and requests")
                .with_hint("allow a few seconds and at least one request at a time"));
        }
        Ok(())
    }

    fn object_bytes(&self) -> u64 {
        (self.bytes / 16).min(LARGEST_OBJECT)
    }

    fn large_bytes(&self) -> u64 {
        (self.bytes / 4).min(LARGEST_READ)
    }

    fn share(&self, of: f64) -> Duration {
        self.time.mul_f64(of)
    }
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The way to the store.
    pub network: NetworkProfile,
    /// The function, if one was called.
    pub function: Option<FunctionTimes>,
    /// Seconds of a small request by itself: the latency, and what this machine takes.
    pub alone_seconds: f64,
    /// Seconds of each small request that ran by itself.
    pub latencies: Vec<f64>,
    /// Bytes of test data that were written, and removed again.
    pub test_bytes: u64,
    /// How long it all took, the removal not included.
    pub took: Duration,
}

impl Measured {
    /// The profile of the endpoint `name`. What cannot be measured of a function is taken from
    /// `limits`; without them the profile has none.
    pub fn profile(
        &self,
        name: &str,
        date: &str,
        limits: Option<&FunctionProfile>,
    ) -> Result<Profile> {
        let function = match (&self.function, limits) {
            (Some(times), Some(limits)) => Some(times.with_limits(limits)),
            _ => None,
        };
        let profile = Profile {
            name: name.to_owned(),
            date: date.to_owned(),
            source: format!(
                "hyperslab profile: {} small requests, {} numbers of concurrent requests, {} calls, \
                 {} bytes of test data",
                self.latencies.len(),
                self.network.bandwidth.len(),
                self.function.as_ref().map_or(0, |times| times.calls.len()),
                self.test_bytes,
            ),
            network: self.network.clone(),
            function,
        };
        profile.check()?;
        Ok(profile)
    }
}

/// Measures the way to `store`, and the function that `probe` calls if there is one.
///
/// Writes test data into a folder of its own at the top of the store, and removes it at the end, on
/// an error, and when `stop` is ready before the end; then the result is `None`. A caller that drops
/// the future instead leaves the data behind.
pub async fn measure<P: Probe>(
    store: StoreRef,
    options: &MeasureOptions,
    probe: Option<&P>,
    progress: &dyn Progress,
    stop: impl Future<Output = ()>,
) -> Result<Option<Measured>> {
    options.check()?;
    let largest = options.object_bytes().max(match probe {
        Some(_) => options.large_bytes(),
        None => 0,
    });
    let mut data = TestData::new(store, largest);
    let url = data.url();
    let outcome = tokio::select! {
        outcome = run(&mut data, options, probe, progress) => outcome.map(Some),
        () = stop => Ok(None),
    };
    match (outcome, data.remove().await) {
        (outcome, Ok(())) => outcome,
        (Ok(_), Err(left)) => Err(left),
        (Err(error), Err(_)) => Err(error.with_hint(format!(
            "test data was left behind at {url}; remove it with the cloud's own tool"
        ))),
    }
}

async fn run<P: Probe>(
    data: &mut TestData,
    options: &MeasureOptions,
    probe: Option<&P>,
    progress: &dyn Progress,
) -> Result<Measured> {
    let begun = Instant::now();
    let extent = Extent {
        bytes: options.bytes,
        object_bytes: options.object_bytes(),
        object_seconds: options.share(1.0 / 40.0).as_secs_f64().clamp(0.05, 1.0),
        time: options.share(0.15),
        large_bytes: probe.map(|_| options.large_bytes()),
    };
    data.fill(&extent, progress).await?;
    let wave = options.share(0.6).as_secs_f64() / WAVES;
    let effort = Effort {
        bytes: options.bytes,
        most_requests: options.most_requests,
        wave_seconds: wave.clamp(0.05, 1.0),
        part: options.share(0.1),
        deadline: begun + options.time,
    };
    let found = network(data, &effort, progress).await?;
    let function = match probe {
        Some(probe) => {
            let time = options.share(0.25);
            Some(function(data, probe, found.alone, time).await?)
        }
        None => None,
    };
    Ok(Measured {
        network: found.profile,
        function,
        alone_seconds: found.alone,
        latencies: found.seconds,
        test_bytes: data.bytes(),
        took: begun.elapsed(),
    })
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Arc;

    use hyperslab_store::{Faults, Faulty, Memory};

    use super::*;
    use crate::profile::NoFunction;

    fn brief() -> MeasureOptions {
        MeasureOptions {
            bytes: 1 << 20,
            time: Duration::from_millis(300),
            most_requests: 16,
        }
    }

    async fn is_empty(store: &StoreRef) -> bool {
        store.list("", None).await.unwrap().0.is_empty()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_store_in_memory_has_a_profile_too() {
        let store: StoreRef = Arc::new(Memory::new());
        let measured = measure::<NoFunction>(store.clone(), &brief(), None, &(), pending())
            .await
            .unwrap()
            .unwrap();
        let profile = measured.profile("memory", "2026-11-16", None).unwrap();
        assert_eq!(Profile::parse(&profile.render().unwrap()).unwrap(), profile);
        assert!(measured.latencies.len() >= 8);
        assert!(measured.test_bytes <= 1 << 20);
        assert!(is_empty(&store).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn local_files_are_read_and_not_only_opened() {
        let folder = tempfile::tempdir().unwrap();
        let store = hyperslab_store::open(folder.path().to_str().unwrap()).unwrap();
        let measured = measure::<NoFunction>(store, &brief(), None, &(), pending())
            .await
            .unwrap()
            .unwrap();
        assert!(measured.network.connection_bandwidth > 0.0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_stopped_measurement_leaves_nothing() {
        let store: StoreRef = Arc::new(Memory::new());
        let stopped = measure::<NoFunction>(store.clone(), &brief(), None, &(), ready(())).await;
        assert_eq!(stopped.unwrap(), None);
        assert!(is_empty(&store).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_store_that_fails_is_an_error_that_leaves_nothing_it_can_reach() {
        let store: StoreRef = Arc::new(Memory::new());
        let faults = Faults {
            seed: 4,
            before: 0.03,
            ..Faults::default()
        };
        let faulty = Arc::new(Faulty::new(store.clone(), faults));
        let error = measure::<NoFunction>(faulty, &brief(), None, &(), pending())
            .await
            .unwrap_err();
        assert!(error.message().contains("injected"), "{error}");
        if !error
            .hint()
            .is_some_and(|hint| hint.contains("left behind"))
        {
            assert!(is_empty(&store).await);
        }
    }

    #[tokio::test]
    async fn too_little_is_refused() {
        let store: StoreRef = Arc::new(Memory::new());
        let wrong = [
            MeasureOptions {
                bytes: 1000,
                ..brief()
            },
            MeasureOptions {
                time: Duration::ZERO,
                ..brief()
            },
            MeasureOptions {
                most_requests: 0,
                ..brief()
            },
        ];
        for options in wrong {
            let error = measure::<NoFunction>(store.clone(), &options, None, &(), pending())
                .await
                .unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        }
    }
}
