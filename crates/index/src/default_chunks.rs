//! A chunk shape for an array whose accesses are not known.
//!
//! Beside [`crate::ChunkGrid`]. Without a workload every direction is as likely as any other, so
//! the sides of a chunk are proportional to those of the array (Sarawagi & Stonebraker 1994): a
//! read across any dimension then touches equally many chunks.
//!
//! Invariant: the chunk is at most as large as asked for (unless one cell is larger), and with one
//! chunk fewer along any dimension it would be larger.

use crate::{Dims, Shape};

/// The chunk shape whose bytes come close to `target_bytes` without passing it, with sides
/// proportional to the array's and cut so that the chunks along a side are nearly equal.
/// Sides are at least 1, also where the array's are 0.
pub fn default_chunks(shape: &Shape, cell_bytes: u64, target_bytes: u64) -> Shape {
    let budget = (target_bytes / cell_bytes.max(1)).max(1);
    let sides: Dims = shape.iter().map(|&side| side.max(1)).collect();
    // A side that cannot grow any more leaves what it does not use to the others.
    let mut fixed: Vec<Option<u64>> = vec![None; sides.len()];
    let chunk_at = |scale: f64, fixed: &[Option<u64>]| -> Dims {
        let free = |&side: &u64| even_side(side, scale);
        sides
            .iter()
            .zip(fixed)
            .map(|(side, fixed)| fixed.unwrap_or_else(|| free(side)))
            .collect()
    };
    let fits = |chunk: &[u64]| {
        let cells = chunk
            .iter()
            .try_fold(1u64, |cells, side| cells.checked_mul(*side));
        cells.is_some_and(|cells| cells <= budget)
    };
    // Beyond the longest side every chunk is a single cell, which always fits.
    let mut coarse = sides.iter().max().map_or(1.0, |&side| side as f64 * 2.0);
    loop {
        // The array divided by `coarse` fits; the least such divisor is what we look for.
        let mut fine = 1.0;
        let whole = chunk_at(fine, &fixed);
        if fits(&whole) {
            return Shape::trusted(whole);
        }
        loop {
            let middle = fine + (coarse - fine) / 2.0;
            if middle <= fine || middle >= coarse {
                break;
            }
            match fits(&chunk_at(middle, &fixed)) {
                true => coarse = middle,
                false => fine = middle,
            }
        }
        let (best, next) = (chunk_at(coarse, &fixed), chunk_at(fine, &fixed));
        // Of the sides that would grow next, the one that needs most room stays; among equal ones
        // the outermost, so that rows stay long.
        let growth = |dim: usize| next[dim] as f64 / best[dim] as f64;
        let growing = (0..best.len()).rev().filter(|&dim| best[dim] < next[dim]);
        match growing.max_by(|&one, &other| growth(one).total_cmp(&growth(other))) {
            Some(dim) => fixed[dim] = Some(best[dim]),
            None => return Shape::trusted(best),
        }
    }
}

/// About `side / scale` cells, rounded down to what cuts the side into nearly equal chunks.
fn even_side(side: u64, scale: f64) -> u64 {
    if scale <= 1.0 {
        return side;
    }
    let proportional = ((side as f64 / scale) as u64).clamp(1, side);
    side.div_ceil(side.div_ceil(proportional))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(sides: &[u64], cell_bytes: u64, target: u64) -> Vec<u64> {
        default_chunks(&Shape::try_from(sides).unwrap(), cell_bytes, target).into()
    }

    #[test]
    fn sides_are_proportional_and_even() {
        assert_eq!(chunks(&[16384, 16384], 4, 1 << 20), [512, 512]);
        assert_eq!(chunks(&[1000, 4000], 8, 8 * 40_000), [100, 400]);
        assert_eq!(chunks(&[10, 10], 1, 60), [5, 10]);
        assert_eq!(chunks(&[100], 1, 99), [50]);
    }

    #[test]
    fn slack_goes_to_the_other_sides() {
        // The short side cannot be cut in proportion, so the long one is cut less.
        assert_eq!(chunks(&[2, 1_000_000], 1, 1000), [1, 1000]);
        assert_eq!(chunks(&[3, 3, 3, 3], 1, 54), [2, 3, 3, 3]);
    }

    #[test]
    fn small_arrays_are_one_chunk() {
        assert_eq!(chunks(&[7, 9], 8, 1 << 20), [7, 9]);
        assert_eq!(chunks(&[], 8, 1), Vec::<u64>::new());
        assert_eq!(chunks(&[0, 5], 8, 1 << 20), [1, 5]);
        assert_eq!(chunks(&[100, 100], 1 << 40, 1 << 20), [1, 1]);
        assert_eq!(chunks(&[3], 0, 1 << 20), [3]);
        assert_eq!(chunks(&[i64::MAX as u64], 1, u64::MAX), [i64::MAX as u64]);
    }

    #[test]
    fn chunks_use_most_of_the_target_and_never_more() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let sides: Vec<u64> = (0..random(5))
                .map(|_| {
                    let most = 1 << random(14);
                    1 + random(most)
                })
                .collect();
            let target = 1 + random(1 << 20);
            let chunk = chunks(&sides, 1, target);
            let cells: u64 = chunk.iter().product();
            assert!(cells <= target, "{sides:?} {target} {chunk:?}");
            for (dim, (&side, &of)) in chunk.iter().zip(&sides).enumerate() {
                assert!((1..=of).contains(&side));
                assert_eq!(
                    of.div_ceil(of.div_ceil(side)),
                    side,
                    "{sides:?} {chunk:?} is uneven"
                );
                // One chunk fewer along any dimension would be too large.
                let fewer = of.div_ceil(side) - 1;
                if fewer > 0 {
                    let larger = cells / side * of.div_ceil(fewer);
                    assert!(
                        larger > target,
                        "{sides:?} {target} {chunk:?} could grow in {dim}"
                    );
                }
            }
        }
    }
}
