//! What reads learn of the way to a store: the model that plans are costed by, and how long a
//! request may take before it is slow.
//!
//! Between the executor, which tells what every request took, and the planner. Invariant: without
//! requests nothing changes, and a frozen watch never changes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyperslab_plan::{Fees, Model, Profile};

use crate::Result;
use crate::profile::{Refiner, Sample};

/// Requests whose times are remembered.
const REMEMBERED: usize = 512;
/// Nothing is called slow before so many requests were seen.
const ENOUGH: usize = 100;
/// The percentile is looked up anew after so many requests.
const PACE: usize = 16;
/// A request is never called slow sooner.
const LEAST_PATIENCE: Duration = Duration::from_millis(5);

/// What is known of the way to one store.
#[derive(Debug)]
pub(crate) struct Watch {
    refiner: Refiner,
    fees: Fees,
    phi: f64,
    /// The current model, and the number of reports it knows of.
    model: Mutex<(u64, Arc<Model>)>,
    in_flight: AtomicU32,
    slowness: Mutex<Slowness>,
    hedged: AtomicU64,
}

/// How much longer than the model says requests took.
#[derive(Debug, Default)]
struct Slowness {
    ratios: Vec<f64>,
    next: usize,
    slow: Option<f64>,
}

impl Slowness {
    fn push(&mut self, ratio: f64) {
        if self.ratios.len() < REMEMBERED {
            self.ratios.push(ratio);
        } else {
            self.ratios[self.next % REMEMBERED] = ratio;
        }
        self.next += 1;
        if self.ratios.len() >= ENOUGH && self.next.is_multiple_of(PACE) {
            let mut sorted = self.ratios.clone();
            let at = sorted.len() * 99 / 100;
            let (_, slow, _) = sorted.select_nth_unstable_by(at, f64::total_cmp);
            self.slow = Some(*slow);
        }
    }
}

impl Watch {
    pub(crate) fn new(profile: Profile, frozen: bool, fees: Fees, phi: f64) -> Result<Self> {
        let model = Model::with_fees(&profile, fees, phi)?;
        Ok(Watch {
            refiner: if frozen {
                Refiner::frozen(profile)
            } else {
                Refiner::new(profile)
            },
            fees,
            phi,
            model: Mutex::new((0, Arc::new(model))),
            in_flight: AtomicU32::new(0),
            slowness: Mutex::default(),
            hedged: AtomicU64::new(0),
        })
    }

    /// The model that plans are costed by, as of now.
    pub(crate) fn model(&self) -> Arc<Model> {
        let reports = self.refiner.reports();
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        if model.0 != reports
            // What was learned is bounded by what the first profile allowed; should it be refused
            // nevertheless, the last model that was good goes on.
            && let Ok(new) = Model::with_fees(&self.refiner.current(), self.fees, self.phi)
        {
            *model = (reports, Arc::new(new));
        }
        model.1.clone()
    }

    /// A request begins.
    pub(crate) fn begin(self: &Arc<Self>) -> Flight {
        Flight {
            concurrency: 1 + self.in_flight.fetch_add(1, Ordering::Relaxed),
            watch: self.clone(),
            start: Instant::now(),
        }
    }

    /// How long a request for so many bytes may take before it is slow, if that is known.
    pub(crate) fn patience(&self, bytes: u64) -> Option<Duration> {
        let slowness = self.slowness.lock().unwrap_or_else(PoisonError::into_inner);
        let slow = slowness.slow?;
        drop(slowness);
        let seconds = slow * self.model().request_seconds(bytes);
        Some(
            Duration::try_from_secs_f64(seconds)
                .ok()?
                .max(LEAST_PATIENCE),
        )
    }

    /// Counts a request that was made a second time.
    pub(crate) fn hedge(&self) {
        self.hedged.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that were made a second time.
    pub(crate) fn hedged(&self) -> u64 {
        self.hedged.load(Ordering::Relaxed)
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Flight {
    watch: Arc<Watch>,
    start: Instant,
    concurrency: u32,
}

impl Flight {
    /// It ended well, with so many bytes.
    pub(crate) fn done(self, bytes: u64) {
        let total = self.start.elapsed();
        let model = self.watch.model();
        let expected = model.request_seconds(bytes);
        let mut slowness = self
            .watch
            .slowness
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        slowness.push(total.as_secs_f64() / expected.max(1e-6));
        drop(slowness);
        // The model counts the client's own work by itself.
        let own = Duration::try_from_secs_f64(model.network().request_seconds);
        self.watch.refiner.report(&Sample {
            bytes,
            first_byte: None,
            total: total.saturating_sub(own.unwrap_or_default()),
            // The first of a crowd began alone, and the last one ends alone.
            concurrency: self
                .concurrency
                .max(self.watch.in_flight.load(Ordering::Relaxed)),
        });
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.watch.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_a_hundred_is_slow() {
        let mut slowness = Slowness::default();
        for i in 0..ENOUGH - 1 {
            slowness.push(1.0 + i as f64 / 1000.0);
            assert!(slowness.slow.is_none());
        }
        for i in 0..10 * REMEMBERED {
            slowness.push(if i % 200 == 0 { 50.0 } else { 1.0 });
        }
        assert_eq!(slowness.slow, Some(1.0));
        for i in 0..REMEMBERED {
            slowness.push(if i % 20 == 0 { 50.0 } else { 1.0 });
        }
        assert_eq!(slowness.slow, Some(50.0));
    }

    #[test]
    fn a_frozen_watch_stays_as_it_is() {
        let profile = Profile::built_in("aws").unwrap();
        for frozen in [true, false] {
            let watch = Watch::new(profile.clone(), frozen, Fees::default(), 0.0).unwrap();
            let watch = Arc::new(watch);
            let before = watch.model();
            for _ in 0..64 {
                // They take next to no time: a network much faster than believed.
                let flight = watch.begin();
                std::thread::sleep(Duration::from_millis(1));
                flight.done(1);
            }
            let same = watch.model().network() == before.network();
            assert_eq!(same, frozen);
        }
    }
}
