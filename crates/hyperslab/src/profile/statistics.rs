//! Medians, spreads and lines that a few wild values do not move.
//!
//! Below everything else in this module; pure. Measurements on a network have outliers in one
//! direction, so nothing here is a mean.

/// Turns the median absolute deviation of normal values into their standard deviation.
const NORMAL: f64 = 1.4826;

/// A straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) intercept: f64,
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let high = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(high);
    }
    Some((sorted.get(middle.checked_sub(1)?)? + high) / 2.0)
}

/// The value that a quarter reaches: the second best of five. For speeds, which a machine that is busy
/// with something else makes lower and never higher. `None` of nothing.
pub(super) fn upper_quartile(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * 3 / 4).copied()
}

/// A standard deviation that ignores outliers: the scaled median distance from the median.
pub(super) fn spread(values: &[f64]) -> f64 {
    let Some(middle) = median(values) else {
        return 0.0;
    };
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    NORMAL * median(&distances).unwrap_or(0.0)
}

/// The line through `points` by the estimator of Theil and Sen: the median of the slopes of all
/// pairs, each weighted by its distance, for close pairs say little. Almost a third of the points
/// may be wild. `None` unless two points differ in x.
pub(super) fn line(points: &[(f64, f64)]) -> Option<Line> {
    let mut slopes: Vec<(f64, f64)> = Vec::new();
    for (at, (x0, y0)) in points.iter().enumerate() {
        for (x1, y1) in &points[at + 1..] {
            let distance = (x1 - x0).abs();
            if distance > 0.0 {
                slopes.push(((y1 - y0) / (x1 - x0), distance));
            }
        }
    }
    slopes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = slopes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let slope = slopes.iter().find_map(|(slope, weight)| {
        below += weight;
        (below >= half).then_some(*slope)
    })?;
    let rests: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    Some(Line {
        slope,
        intercept: median(&rests)?,
    })
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn medians_and_spreads_of_few_values() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(upper_quartile(&[]), None);
        assert_eq!(upper_quartile(&[3.0]), Some(3.0));
        assert_eq!(upper_quartile(&[3.0, 9.0]), Some(9.0));
        assert_eq!(upper_quartile(&[5.0, 1.0, 2.0, 9.0, 3.0]), Some(5.0));
        assert_eq!(spread(&[]), 0.0);
        assert_eq!(spread(&[5.0; 7]), 0.0);
        // The wild value does not count.
        assert!((spread(&[1.0, 2.0, 3.0, 4.0, 1e9]) - NORMAL).abs() < 1e-12);
    }

    #[test]
    fn an_exact_line_is_found_and_no_line_is_none() {
        let points: Vec<(f64, f64)> = (0..9)
            .map(|x| f64::from(x) * 2.0)
            .map(|x| (x, 3.0 * x + 7.0))
            .collect();
        let line = line(&points).unwrap();
        assert!((line.slope - 3.0).abs() < 1e-12 && (line.intercept - 7.0).abs() < 1e-12);
        assert_eq!(super::line(&[]), None);
        assert_eq!(super::line(&[(1.0, 2.0)]), None);
        assert_eq!(super::line(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn random_lines_are_found_through_noise_and_outliers() {
        let mut rng = StdRng::seed_from_u64(5);
        for case in 0..200 {
            let slope = rng.random_range(1e-9..1e-7);
            let intercept = rng.random_range(0.01..0.5);
            let mut points = Vec::new();
            for size in [65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0] {
                // One of five is wild: less than a third in all, and of each size.
                let wild = rng.random_range(0..5);
                for call in 0..5 {
                    let noise = rng.random_range(0.97..1.03);
                    let outlier = if call == wild { 6.0 } else { 1.0 };
                    points.push((size, (slope * size + intercept) * noise * outlier));
                }
            }
            let found = line(&points).unwrap();
            // Beside a long fixed time a shallow slope is lost in the noise, so the line is
            // judged where it is used: at the ends.
            for size in [65_536.0, 16_777_216.0] {
                let (seen, wanted) = (
                    found.slope * size + found.intercept,
                    slope * size + intercept,
                );
                assert!(
                    (seen / wanted - 1.0).abs() < 0.1,
                    "case {case}: {seen} for {wanted}"
                );
            }
        }
    }
}
