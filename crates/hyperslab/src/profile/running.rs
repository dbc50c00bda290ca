//! A running estimate of one quantity: steady under noise, quick after a change.
//!
//! Below the refiner; pure. The estimate is the median of a sliding window. The window starts full
//! of the value that was believed before, so that few samples move little. When the median of the
//! latest samples leaves the band around the estimate, the quantity itself has changed: the window
//! is forgotten, and the estimate follows the latest samples until they are all of the new time.

use std::collections::VecDeque;

use super::statistics::median;

/// Samples whose median is the estimate.
const WINDOW: usize = 64;
/// Samples whose median tells of a change.
const LATEST: usize = 16;
/// How far the latest samples may be from the estimate, as a share of it.
const BAND: f64 = 0.2;

/// The estimate of one quantity.
#[derive(Debug, Clone)]
pub(super) struct Running {
    estimate: f64,
    /// The latest sample stands last; always full.
    window: VecDeque<f64>,
    /// Samples until the latest ones are all later than the last change.
    settling: usize,
}

impl Running {
    pub(super) fn new(believed: f64) -> Self {
        Running {
            estimate: believed,
            window: VecDeque::from(vec![believed; WINDOW]),
            settling: 0,
        }
    }

    pub(super) fn estimate(&self) -> f64 {
        self.estimate
    }

    /// Takes a sample into account; one that is no positive number is left out.
    pub(super) fn push(&mut self, sample: f64) {
        if !(sample.is_finite() && sample > 0.0) {
            return;
        }
        self.window.pop_front();
        self.window.push_back(sample);
        let latest: Vec<f64> = self.window.iter().skip(WINDOW - LATEST).copied().collect();
        let latest = median(&latest).unwrap_or(self.estimate);
        if (latest / self.estimate - 1.0).abs() > BAND {
            self.settling = LATEST;
        }
        if self.settling > 0 {
            self.settling -= 1;
            self.estimate = latest;
            let old = WINDOW - LATEST;
            self.window
                .iter_mut()
                .take(old)
                .for_each(|value| *value = latest);
        } else {
            let all: Vec<f64> = self.window.iter().copied().collect();
            self.estimate = median(&all).unwrap_or(self.estimate);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A sample of a noisy quantity: 15 % either way, and one in fifty ten times too large.
    fn noisy(rng: &mut StdRng, truth: f64) -> f64 {
        let outlier = if rng.random_bool(0.02) { 10.0 } else { 1.0 };
        truth * rng.random_range(0.85..1.15) * outlier
    }

    #[test]
    fn noise_and_outliers_hardly_move_it() {
        for seed in 0..100 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut running = Running::new(7.0);
            for _ in 0..1000 {
                running.push(noisy(&mut rng, 7.0));
                let off = running.estimate() / 7.0 - 1.0;
                assert!(off.abs() < 0.1, "seed {seed}: {off}");
            }
        }
    }

    #[test]
    fn a_change_is_noticed_within_32_samples() {
        for factor in [0.5, 3.0, 0.7, 1.4, 0.01, 100.0] {
            for seed in 0..50 {
                let mut rng = StdRng::seed_from_u64(seed);
                let mut running = Running::new(7.0);
                (0..200).for_each(|_| running.push(noisy(&mut rng, 7.0)));
                (0..32).for_each(|_| running.push(noisy(&mut rng, 7.0 * factor)));
                let off = running.estimate() / (7.0 * factor) - 1.0;
                assert!(off.abs() < 0.15, "seed {seed}, factor {factor}: {off}");
            }
        }
    }

    #[test]
    fn a_small_error_of_the_start_is_mended_in_time() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut running = Running::new(8.0);
        (0..WINDOW).for_each(|_| running.push(noisy(&mut rng, 7.0)));
        assert!((running.estimate() / 7.0 - 1.0).abs() < 0.05);
    }

    #[test]
    fn samples_that_cannot_be_are_left_out() {
        let mut running = Running::new(2.0);
        for _ in 0..100 {
            for wrong in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
                running.push(wrong);
            }
        }
        assert_eq!(running.estimate(), 2.0);
    }
}
