//! Random numbers that depend only on a seed, a purpose and the number of the request.
//!
//! Counter-based on purpose: latency, faults and their rules draw independently, so switching one
//! of them on does not change the numbers that another one sees.

/// Scrambles 64 bits (the finaliser of SplitMix64; Steele, Lea and Flood, 2014).
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A uniform number in [0, 1) for the `number`-th request and the given `purpose`.
pub(crate) fn uniform(seed: u64, purpose: u64, number: u64) -> f64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let bits =
        mix(mix(seed ^ purpose.wrapping_mul(GOLDEN)).wrapping_add(number.wrapping_mul(GOLDEN)));
    // 53 bits fill the mantissa of a double exactly.
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// A standard normal number, by the Box-Muller transform.
pub(crate) fn normal(seed: u64, purpose: u64, number: u64) -> f64 {
    let radius = uniform(seed, purpose, 2 * number);
    let angle = uniform(seed, purpose, 2 * number + 1);
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_is_uniform_and_repeatable() {
        let draws: Vec<f64> = (0..20_000).map(|n| uniform(7, 1, n)).collect();
        assert_eq!(draws[3], uniform(7, 1, 3));
        assert_ne!(draws[3], uniform(8, 1, 3));
        assert_ne!(draws[3], uniform(7, 2, 3));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "mean {mean}");
        for tenth in 0..10 {
            let low = f64::from(tenth) / 10.0;
            let count = draws.iter().filter(|&&x| x >= low && x < low + 0.1).count();
            assert!(
                (1800..2200).contains(&count),
                "{count} draws in the tenth at {low}"
            );
        }
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let draws: Vec<f64> = (0..20_000).map(|n| normal(7, 1, n)).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!(mean.abs() < 0.03, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.05, "variance {variance}");
    }
}
