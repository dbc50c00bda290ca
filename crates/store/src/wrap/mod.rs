//! Stores that wrap a store and add one behaviour each.
//!
//! Production and simulation share one path: what slows, breaks, counts or limits requests is put
//! around any store. Each wrapper keeps the invariants of [`crate::Store`], except [`Faulty`],
//! whose purpose is to break them in ways that the layers above must notice.

mod credit;
mod faulty;
mod histogram;
mod limit;
mod meter;
mod prefixed;
mod read_only;
mod retry;
mod shaped;

pub use faulty::{Fault, Faults, Faulty};
pub use histogram::Latencies;
pub use limit::{Limit, LimitHandle};
pub use meter::{Meter, MeterHandle, MeterSnapshot, RequestKind};
pub use prefixed::Prefixed;
pub use read_only::ReadOnly;
pub use retry::{Retry, RetryAfter, RetryPolicy};
pub use shaped::{Shape, Shaped};

/// The `index`-th number of the pseudo-random sequence `seed`, between 0 and 1.
///
/// A function of its arguments alone (SplitMix64), so that concurrent requests draw the same
/// numbers whatever order they run in.
fn draw(seed: u64, index: u64) -> f64 {
    let mut z = seed ^ index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn draws_are_uniform_enough() {
        let draws: Vec<_> = (0..10_000).map(|i| draw(42, i)).collect();
        assert!(draws.iter().all(|d| (0.0..1.0).contains(d)));
        for tenth in 0..10 {
            let from = f64::from(tenth) / 10.0;
            let n = draws
                .iter()
                .filter(|d| (from..from + 0.1).contains(*d))
                .count();
            assert!(
                (850..1150).contains(&n),
                "{n} of 10000 draws in tenth {tenth}"
            );
        }
        assert_ne!(draw(1, 0), draw(2, 0));
    }
}
