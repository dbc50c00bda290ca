//! Follows a network that changes, by the timings of real reads.
//!
//! Between the executor, which reports [`Sample`]s, and the planner, which asks for the current
//! profile. No I/O and no clock: what is known follows from the samples alone.
//!
//! A sample tells of the latency if the time to its first byte is known or its body is short; of the
//! bandwidth of one connection if nothing else limited it; otherwise of all of them together. Which
//! it is, the current profile says.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyperslab_plan::{NetworkProfile, Profile};

use super::running::Running;

/// Bodies that should take no longer than this share of the latency tell of the latency.
const SHORT: f64 = 0.25;
/// Transfers that should take at least this many latencies tell of bandwidth.
const LONG: f64 = 1.0;
/// Requests that could together take this much more than there is are limited by the total.
const CROWDED: f64 = 1.1;
/// A latency that is so many times what is believed has changed, however crowded the network is.
const SURELY: f64 = 1.25;

/// What one request of a real read took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Bytes of its body.
    pub bytes: u64,
    /// Time from the request to the first byte, where it is known.
    pub first_byte: Option<Duration>,
    /// Time from the request to the last byte.
    pub total: Duration,
    /// Requests in flight meanwhile, this one included.
    pub concurrency: u32,
}

/// A profile that real reads refine. Share it in an `Arc`.
#[derive(Debug)]
pub struct Refiner {
    start: Profile,
    /// `None` if the profile never changes.
    running: Option<Mutex<State>>,
    reports: AtomicU64,
}

/// Factors on the profile that it all started from.
#[derive(Debug, Clone)]
struct State {
    latency: Running,
    connection: Running,
    total: Running,
}

impl Refiner {
    /// Begins with a profile and refines it.
    pub fn new(profile: Profile) -> Self {
        let one = Running::new(1.0);
        Refiner {
            start: profile,
            running: Some(Mutex::new(State {
                latency: one.clone(),
                connection: one.clone(),
                total: one,
            })),
            reports: AtomicU64::new(0),
        }
    }

    /// Keeps a profile as it is, whatever is reported.
    pub fn frozen(profile: Profile) -> Self {
        Refiner {
            start: profile,
            running: None,
            reports: AtomicU64::new(0),
        }
    }

    /// True if the profile never changes.
    pub fn is_frozen(&self) -> bool {
        self.running.is_none()
    }

    /// The profile as it is now believed to be.
    pub fn current(&self) -> Profile {
        match &self.running {
            None => self.start.clone(),
            Some(running) => {
                let state = running.lock().unwrap_or_else(PoisonError::into_inner);
                state.applied(&self.start)
            }
        }
    }

    /// Takes note of what a request took.
    pub fn report(&self, sample: &Sample) {
        if let Some(running) = &self.running {
            let mut state = running.lock().unwrap_or_else(PoisonError::into_inner);
            state.learn(&self.start, sample);
            self.reports.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often something was learned: as long as it is the same, so is [`Refiner::current`].
    pub fn reports(&self) -> u64 {
        self.reports.load(Ordering::Relaxed)
    }
}

impl State {
    fn applied(&self, start: &Profile) -> Profile {
        let mut profile = start.clone();
        let network = &mut profile.network;
        network.latency_seconds *= self.latency.estimate();
        network.latency_spread *= self.latency.estimate();
        network.connection_bandwidth *= self.connection.estimate();
        for point in &mut network.bandwidth {
            let alone = network.connection_bandwidth * f64::from(point.requests);
            point.bytes_per_second = (point.bytes_per_second * self.total.estimate()).min(alone);
        }
        profile
    }

    fn learn(&mut self, start: &Profile, sample: &Sample) {
        let first = &start.network;
        let latency = first.latency_seconds * self.latency.estimate();
        let connection = first.connection_bandwidth * self.connection.estimate();
        let total = sample.total.as_secs_f64();
        let alone = sample.bytes as f64 / connection;

        let many = f64::from(sample.concurrency.max(1));
        if first.latency_seconds > 0.0
            && let Some(seconds) = self.latency_of(first, sample, latency, alone)
        {
            self.latency.push(seconds / first.latency_seconds);
        }

        if alone < LONG * latency || sample.bytes == 0 {
            return;
        }
        let believed = first.bandwidth(u64::from(sample.concurrency)) * self.total.estimate();
        let possible = many * sample.bytes as f64 / (latency + alone);
        if possible > CROWDED * believed {
            // So many requests that take so long each: Little's law.
            let seen = many * sample.bytes as f64 / total;
            let measured = first.bandwidth(u64::from(sample.concurrency));
            self.total.push(seen / measured);
        } else {
            let transfer = total - sample.first_byte.map_or(latency, |time| time.as_secs_f64());
            let seen = sample.bytes as f64 / transfer;
            self.connection.push(seen / first.connection_bandwidth);
        }
    }
}

impl State {
    /// The latency that a sample tells of. `latency` is what it is believed to be, and `alone` what
    /// the body takes by itself.
    fn latency_of(
        &self,
        first: &NetworkProfile,
        sample: &Sample,
        latency: f64,
        alone: f64,
    ) -> Option<f64> {
        let (_, useful) = first.useful_requests();
        if let Some(time) = sample.first_byte {
            // Past the useful number of requests the first byte waits for other requests' bytes.
            return (sample.concurrency <= useful).then_some(time.as_secs_f64());
        }
        if alone > SHORT * latency {
            return None;
        }
        // How long it may have waited for the bytes of the others, and for this machine.
        let many = f64::from(sample.concurrency.max(1));
        let total = first.bandwidth(u64::from(sample.concurrency)) * self.total.estimate();
        let shared = (many * sample.bytes as f64 / total - alone).max(0.0);
        let waited = shared + (many - 1.0) * first.request_seconds;
        let seconds = sample.total.as_secs_f64() - alone;
        if waited <= SHORT * latency {
            return Some(seconds - waited / 2.0);
        }
        // In a crowd only a latency that is longer or shorter in any case is told apart.
        let (least, most) = (seconds - waited, seconds);
        if least > SURELY * latency {
            Some(least)
        } else {
            Some(most).filter(|most| *most < latency / SURELY)
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A network that requests can be made of.
    #[derive(Clone, Copy)]
    struct Truth {
        latency: f64,
        connection: f64,
        total: f64,
    }

    impl Truth {
        fn of(profile: &Profile) -> Self {
            Truth {
                latency: profile.network.latency_seconds,
                connection: profile.network.connection_bandwidth,
                total: profile.network.peak(),
            }
        }

        /// What a request takes when `many` like it run, with noise and outliers.
        fn sample(&self, rng: &mut StdRng, bytes: u64, many: u32, first_byte: bool) -> Sample {
            let mut noise = || {
                let outlier = if rng.random_bool(0.02) { 10.0 } else { 1.0 };
                outlier * rng.random_range(0.85..1.15)
            };
            let latency = self.latency * noise();
            let alone = bytes as f64 / self.connection;
            // As long as all of them together are slower than the total allows.
            let shared = f64::from(many) * bytes as f64 / self.total - self.latency;
            let total = latency + alone.max(shared) * noise();
            Sample {
                bytes,
                first_byte: first_byte.then(|| Duration::from_secs_f64(latency)),
                total: Duration::from_secs_f64(total),
                concurrency: many,
            }
        }
    }

    fn near(seen: f64, wanted: f64, most: f64) -> bool {
        (seen / wanted - 1.0).abs() < most
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn noise_and_outliers_do_not_move_it() {
        for name in ["aws", "azure", "gcp", "local"] {
            for seed in 0..20 {
                let mut rng = StdRng::seed_from_u64(seed);
                let profile = Profile::built_in(name).unwrap();
                let truth = Truth::of(&profile);
                let refiner = Refiner::new(profile.clone());
                for step in 0..600u32 {
                    let many = [1, 4, 8, 32, 64, 200][step as usize % 6];
                    let bytes = [1000, 4 * MIB, 16 * MIB][step as usize % 3];
                    refiner.report(&truth.sample(&mut rng, bytes, many, step % 2 == 0));
                    let now = refiner.current().network;
                    let was = &profile.network;
                    let about = format!("{name}, seed {seed}, step {step}: {now:?}");
                    assert!(
                        near(now.latency_seconds, was.latency_seconds, 0.1),
                        "{about}"
                    );
                    let connection = was.connection_bandwidth;
                    assert!(near(now.connection_bandwidth, connection, 0.1), "{about}");
                    assert!(near(now.peak(), was.peak(), 0.1), "{about}");
                }
            }
        }
    }

    #[test]
    fn a_latency_that_triples_is_noticed_within_32_samples() {
        for first_byte in [true, false] {
            let profile = Profile::built_in("gcp").unwrap();
            let mut truth = Truth::of(&profile);
            let refiner = Refiner::new(profile.clone());
            let mut rng = StdRng::seed_from_u64(1);
            truth.latency *= 3.0;
            for _ in 0..32 {
                refiner.report(&truth.sample(&mut rng, 1000, 4, first_byte));
            }
            let now = refiner.current().network;
            assert!(near(now.latency_seconds, truth.latency, 0.15), "{now:?}");
            assert_eq!(now.peak(), profile.network.peak());
        }
    }

    #[test]
    fn bandwidth_that_halves_is_noticed_within_32_samples() {
        for first_byte in [true, false] {
            let profile = Profile::built_in("gcp").unwrap();
            let mut truth = Truth::of(&profile);
            truth.total /= 2.0;
            let refiner = Refiner::new(profile.clone());
            let mut rng = StdRng::seed_from_u64(2);
            for _ in 0..32 {
                refiner.report(&truth.sample(&mut rng, 4 * MIB, 64, first_byte));
            }
            let now = refiner.current().network;
            assert!(near(now.peak(), truth.total, 0.15), "{now:?}");
            assert!(now.latency_seconds > 0.0);

            // And one connection.
            let mut truth = Truth::of(&profile);
            truth.connection /= 2.0;
            let refiner = Refiner::new(profile.clone());
            for _ in 0..32 {
                refiner.report(&truth.sample(&mut rng, 4 * MIB, 1, first_byte));
            }
            let now = refiner.current().network;
            assert!(
                near(now.connection_bandwidth, truth.connection, 0.15),
                "{now:?}"
            );
            assert!(near(now.bandwidth(1), truth.connection, 0.15), "{now:?}");
            refiner.current().check().unwrap();
        }
    }

    #[test]
    fn a_network_that_recovers_is_noticed_too() {
        let profile = Profile::built_in("gcp").unwrap();
        let good = Truth::of(&profile);
        let mut bad = good;
        bad.total /= 4.0;
        let refiner = Refiner::new(profile);
        let mut rng = StdRng::seed_from_u64(3);
        for truth in [bad, good] {
            for _ in 0..64 {
                refiner.report(&truth.sample(&mut rng, 8 * MIB, 64, true));
            }
            let now = refiner.current().network;
            assert!(near(now.peak(), truth.total, 0.15), "{now:?}");
        }
    }

    #[test]
    fn a_crowd_of_short_requests_is_no_latency() {
        let mut profile = Profile::built_in("gcp").unwrap();
        profile.network.latency_seconds = 0.02;
        profile.network.request_seconds = 1e-4;
        let (peak, one) = (profile.network.peak(), profile.network.connection_bandwidth);
        // 64 requests of 64 KiB share the line: the last one ends after all their bytes.
        let (many, bytes) = (64, 64u64 << 10);
        let crowd = |refiner: &Refiner, latency: f64| {
            for k in 1..=many {
                let shared = (u64::from(k) * bytes) as f64 / peak;
                let arrived = shared.max(bytes as f64 / one) + f64::from(k) * 1e-4;
                refiner.report(&Sample {
                    bytes,
                    first_byte: None,
                    total: Duration::from_secs_f64(latency + arrived),
                    concurrency: many,
                });
            }
        };
        let refiner = Refiner::new(profile.clone());
        (0..50).for_each(|_| crowd(&refiner, 0.02));
        let now = refiner.current().network.latency_seconds;
        assert!(near(now, 0.02, 0.1), "{now}");
        // A latency that has grown much is noticed in a crowd too, as far as it is certain, and also
        // when it is short again.
        (0..50).for_each(|_| crowd(&refiner, 0.1));
        let now = refiner.current().network.latency_seconds;
        assert!((0.06..0.11).contains(&now), "{now}");
        (0..50).for_each(|_| crowd(&refiner, 0.02));
        let now = refiner.current().network.latency_seconds;
        assert!((0.01..0.04).contains(&now), "{now}");
    }

    #[test]
    fn a_frozen_profile_stays() {
        let profile = Profile::built_in("aws").unwrap();
        let refiner = Refiner::frozen(profile.clone());
        let slow = Sample {
            bytes: MIB,
            first_byte: Some(Duration::from_secs(1)),
            total: Duration::from_secs(9),
            concurrency: 1,
        };
        (0..1000).for_each(|_| refiner.report(&slow));
        assert!(refiner.is_frozen());
        assert_eq!(refiner.current(), profile);
    }

    #[test]
    fn nonsense_does_no_harm() {
        let refiner = Refiner::new(Profile::built_in("local").unwrap());
        for bytes in [0, 1, u64::MAX] {
            for concurrency in [0, 1, u32::MAX] {
                for total in [Duration::ZERO, Duration::from_secs(1 << 40)] {
                    for first_byte in [None, Some(Duration::ZERO), Some(Duration::MAX)] {
                        let sample = Sample {
                            bytes,
                            first_byte,
                            total,
                            concurrency,
                        };
                        (0..40).for_each(|_| refiner.report(&sample));
                        refiner.current().check().unwrap();
                    }
                }
            }
        }
    }
}
