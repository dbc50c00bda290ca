//! Shards: how many chunks share an object, and in which shape.
//!
//! The paper's platters are today's objects. A shard is a whole number of chunks along every
//! dimension, and the best shape is the one of which reads touch fewest.

use crate::count::expected_blocks;
use crate::{Error, Found, Pattern, Result, Starts};

/// Combinations up to which all are tried.
const FEW: u64 = 200_000;

/// The shape of shards of at most `cells` cells, made of these chunks, of which reads touch fewest.
pub fn shards(pattern: &Pattern, starts: Starts, chunk: &[u64], cells: u64) -> Result<Found> {
    let shape = pattern.shape();
    let of_chunk = chunk.iter().try_fold(1_u64, |n, side| n.checked_mul(*side));
    let Some(most) = of_chunk.map(|n| cells / n.max(1)).filter(|n| *n > 0) else {
        return Err(Error::invalid(format!(
            "a shard of {cells} cells has no room for a chunk of {}",
            crate::pattern::listed(chunk)
        )));
    };
    // More chunks than the array has along an axis gain nothing.
    let longest: Vec<u64> = shape
        .iter()
        .zip(chunk)
        .map(|(side, chunk)| side.div_ceil((*chunk).max(1)).min(most))
        .collect();
    let search = Multiples {
        pattern,
        starts,
        chunk,
        most,
        longest: &longest,
    };
    let every = longest.iter().try_fold(1_u64, |n, m| n.checked_mul(*m));
    let proven = every.is_some_and(|every| every <= FEW);
    let mut best: Option<Found> = None;
    search.each(&mut vec![1; chunk.len()], 0, most, proven, &mut best);
    let mut found = best.ok_or_else(|| Error::internal("an array has no shard"))?;
    found.proven = proven;
    Ok(found)
}

struct Multiples<'a> {
    pattern: &'a Pattern,
    starts: Starts,
    chunk: &'a [u64],
    most: u64,
    longest: &'a [u64],
}

impl Multiples<'_> {
    /// Tries all numbers of chunks along each axis, or the powers of two and the longest ones.
    fn each(
        &self,
        counts: &mut Vec<u64>,
        dim: usize,
        left: u64,
        all: bool,
        best: &mut Option<Found>,
    ) {
        if dim == counts.len() {
            self.weigh(counts, best);
            return;
        }
        let most = self.longest[dim].min(left);
        let mut count = 1;
        while count <= most {
            counts[dim] = count;
            self.each(counts, dim + 1, left / count, all, best);
            count = match all {
                true => count + 1,
                false if count == most => most + 1,
                false => (count * 2).min(most),
            };
        }
        counts[dim] = 1;
    }

    fn weigh(&self, counts: &[u64], best: &mut Option<Found>) {
        debug_assert!(counts.iter().product::<u64>() <= self.most);
        let shard: Vec<u64> = counts.iter().zip(self.chunk).map(|(n, c)| n * c).collect();
        // Sides beyond the array's are touched as often as its own.
        let inside: Vec<u64> = shard
            .iter()
            .zip(self.pattern.shape())
            .map(|(shard, side)| *shard.min(side))
            .collect();
        let found = Found {
            blocks: expected_blocks(self.pattern, &inside, self.starts),
            chunk: shard,
            proven: false,
        };
        if best.as_ref().is_none_or(|best| found.is_better(best)) {
            *best = Some(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_other_multiple_is_touched_less(
            dims in prop::collection::vec((1..12_u64, 1..4_u64, 1..40_u64), 1..4),
            cells in 1..200_u64,
        ) {
            let shape: Vec<u64> = dims.iter().map(|(count, chunk, _)| count * chunk).collect();
            let chunk: Vec<u64> = dims.iter().map(|(_, chunk, _)| *chunk).collect();
            let extent: Vec<u64> = dims.iter().zip(&shape).map(|(d, s)| d.2.min(*s)).collect();
            let pattern = Pattern::new(&shape, [(extent, 1.0)]).unwrap();
            let found = shards(&pattern, Starts::Anywhere, &chunk, cells);
            if chunk.iter().product::<u64>() > cells {
                prop_assert!(found.is_err());
                return Ok(());
            }
            let found = found.unwrap();
            prop_assert!(found.chunk.iter().product::<u64>() <= cells);
            let mut least = f64::INFINITY;
            let mut counts = vec![1; chunk.len()];
            loop {
                let shard: Vec<u64> = counts.iter().zip(&chunk).map(|(n, c)| n * c).collect();
                if shard.iter().product::<u64>() <= cells {
                    least = least.min(expected_blocks(&pattern, &shard, Starts::Anywhere));
                }
                let next = (0..dims.len()).find(|d| counts[*d] < dims[*d].0);
                let Some(dim) = next else { break };
                counts[dim] += 1;
                counts[..dim].fill(1);
            }
            prop_assert!((found.blocks - least).abs() < 1e-9 * least, "{:?} {}", found, least);
        }
    }

    #[test]
    fn large_grids_are_searched_by_powers_of_two() {
        let pattern = Pattern::new(&[1 << 20, 1 << 20], [(vec![1, 1 << 20], 1.0)]).unwrap();
        let found = shards(&pattern, Starts::Anywhere, &[64, 64], 1 << 22).unwrap();
        assert_eq!(found.chunk, [64, 1 << 16]);
        assert!(!found.proven);
    }
}
