//! How many chunks a read touches.
//!
//! Below the search, which compares shapes by it. Along one dimension a box of `extent` cells that
//! starts at `s` touches `⌊(s + extent − 1) / chunk⌋ − ⌊s / chunk⌋ + 1` chunks; dimensions are
//! independent, so the chunks of a box are the product.
//!
//! Invariant: a longer chunk is never touched more often (`chunks_along` does not grow with `chunk`).

use crate::Pattern;

/// Where boxes start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Starts {
    /// With a chunk, as the paper has it.
    Aligned,
    /// At any cell from which they fit, all as likely.
    #[default]
    Anywhere,
}

/// Chunks that a box of `extent` cells touches along a dimension of `side` cells, on average.
pub fn chunks_along(side: u64, extent: u64, chunk: u64, starts: Starts) -> f64 {
    match starts {
        Starts::Aligned => extent.div_ceil(chunk) as f64,
        Starts::Anywhere => {
            let places = side - extent + 1;
            let all = floors(side, chunk) - floors(extent - 1, chunk) - floors(places, chunk);
            1.0 + all as f64 / places as f64
        }
    }
}

/// `⌊0 / chunk⌋ + … + ⌊(count − 1) / chunk⌋`.
fn floors(count: u64, chunk: u64) -> u128 {
    let (count, chunk) = (u128::from(count), u128::from(chunk));
    let (whole, rest) = (count / chunk, count % chunk);
    chunk * whole * whole.saturating_sub(1) / 2 + whole * rest
}

/// Chunks that a read of the pattern touches, on average: the paper's expression (1).
pub fn expected_blocks(pattern: &Pattern, chunk: &[u64], starts: Starts) -> f64 {
    let classes = pattern.classes().iter();
    classes
        .map(|class| class.weight * class_blocks(pattern.shape(), &class.extent, chunk, starts))
        .sum()
}

/// Chunks that a box touches, on average.
pub(crate) fn class_blocks(shape: &[u64], extent: &[u64], chunk: &[u64], starts: Starts) -> f64 {
    let dims = shape.iter().zip(extent).zip(chunk);
    dims.map(|((side, extent), chunk)| chunks_along(*side, *extent, *chunk, starts))
        .product()
}

/// Blocks of `cells` cells that a read touches, on average, of an array that is laid out row by row.
/// Rows and blocks are taken to begin together: a block holds whole rows, or a row whole blocks.
pub fn linear_blocks(pattern: &Pattern, starts: Starts, cells: u64) -> f64 {
    expected_blocks(pattern, &linear_chunk(pattern.shape(), cells), starts)
}

/// The part of a row-major array that a block of so many cells holds.
fn linear_chunk(shape: &[u64], cells: u64) -> Vec<u64> {
    let mut left = cells.max(1);
    let mut chunk = vec![1; shape.len()];
    for (side, chunk) in shape.iter().zip(&mut chunk).rev() {
        *chunk = left.min(*side);
        left /= *chunk;
        if *chunk < *side {
            break;
        }
    }
    chunk
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts the chunks of every start.
    fn naive(side: u64, extent: u64, chunk: u64) -> f64 {
        let starts = 0..=side - extent;
        let touched: u64 = starts
            .clone()
            .map(|s| (s..s + extent).filter(move |cell| *cell == s || cell % chunk == 0))
            .map(|firsts| firsts.count() as u64)
            .sum();
        touched as f64 / starts.count() as f64
    }

    proptest! {
        #[test]
        fn the_mean_is_that_of_all_starts(
            side in 1..60_u64,
            extent in 1..60_u64,
            chunk in 1..70_u64,
        ) {
            let extent = extent.min(side);
            let mean = chunks_along(side, extent, chunk, Starts::Anywhere);
            prop_assert!((mean - naive(side, extent, chunk)).abs() < 1e-9);
            for starts in [Starts::Aligned, Starts::Anywhere] {
                let longer = chunks_along(side, extent, chunk + 1, starts);
                prop_assert!(longer <= chunks_along(side, extent, chunk, starts) + 1e-12);
            }
        }
    }

    #[test]
    fn whole_axes_touch_every_chunk() {
        assert_eq!(chunks_along(100, 100, 7, Starts::Anywhere), 15.0);
        let most = u64::MAX >> 1;
        assert!(chunks_along(most, 2, 3, Starts::Anywhere) > 1.3);
    }

    #[test]
    fn rows_that_are_longer_than_a_block_are_cut() {
        assert_eq!(linear_chunk(&[10, 20, 30], 600), [1, 20, 30]);
        assert_eq!(linear_chunk(&[10, 20, 30], 95), [1, 3, 30]);
        assert_eq!(linear_chunk(&[10, 20, 30], 7), [1, 1, 7]);
        assert_eq!(linear_chunk(&[10, 20], 1000), [10, 20]);
    }
}
