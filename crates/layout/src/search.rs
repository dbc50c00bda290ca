//! The chunk shape that is touched least.
//!
//! Three searches over the same shapes: [`exhaustive`] over all maximal ones, the paper's
//! [`powers_of_two`] with the neighbourhood of the best, and [`best`], which bounds what shapes can
//! still reach and so leaves most of them out.
//!
//! All rest on one fact: a longer side is never touched more often, so that of all sides that fit
//! into what the other dimensions leave, the longest is as good as any.

mod axis;
mod bound;
mod local;

use axis::{Axes, Axis};

use crate::pattern::listed;
use crate::{Error, Pattern, Result, Starts};

/// What a chunk shape has to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Cells of a chunk, at most.
    pub cells: u64,
    /// Every side divides the array's.
    pub whole_divisions: bool,
    /// The least and the greatest side for each dimension; none where there are no such limits. A
    /// dimension to which cells are appended one by one has (1, 1).
    pub sides: Option<Vec<(u64, u64)>>,
}

impl Limits {
    /// So many cells, and nothing else.
    pub fn cells(cells: u64) -> Limits {
        Limits {
            cells,
            whole_divisions: false,
            sides: None,
        }
    }

    /// The least and the greatest side along a dimension of `side` cells.
    pub(crate) fn range(&self, dim: usize, side: u64) -> Result<(u64, u64)> {
        let given = self.sides.as_ref().and_then(|sides| sides.get(dim));
        let (least, most) = given.copied().unwrap_or((1, side));
        let (least, most) = (least.max(1), most.min(side));
        if least > most {
            return Err(Error::invalid(format!(
                "along dimension {dim} a chunk would need {least} cells at least and {most} at most"
            )));
        }
        Ok((least, most))
    }
}

/// A chunk shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its sides.
    pub chunk: Vec<u64>,
    /// Chunks that a read touches, on average.
    pub blocks: f64,
    /// True if no shape within the limits is touched less.
    pub proven: bool,
}

impl Found {
    /// True if this one is touched less, or as often with fewer cells.
    pub(crate) fn is_better(&self, other: &Found) -> bool {
        let cells =
            |found: &Found| -> f64 { found.chunk.iter().map(|side| *side as f64).product() };
        // Sums of the same numbers in another order differ in the last digits.
        let slack = 1e-9 * other.blocks;
        self.blocks < other.blocks - slack
            || (self.blocks <= other.blocks + slack && cells(self) < cells(other))
    }
}

/// The best of all maximal shapes, one after the other. Takes long for many dimensions.
pub fn exhaustive(pattern: &Pattern, starts: Starts, limits: &Limits) -> Result<Found> {
    let axes = Axes::new(pattern, starts, limits, Axis::every_side)?;
    let mut best: Option<Found> = None;
    axes.each_maximal(&mut |chunk| {
        let blocks = crate::expected_blocks(pattern, chunk, starts);
        let found = Found {
            chunk: chunk.to_vec(),
            blocks,
            proven: true,
        };
        if best.as_ref().is_none_or(|best| found.is_better(best)) {
            best = Some(found);
        }
    });
    best.ok_or_else(|| nothing_fits(limits))
}

/// The paper's approximation: the best shape whose sides are powers of two (or the array's own), then
/// the best of those with sides from half to twice as long, and of those around that, as long as it
/// gains.
pub fn powers_of_two(pattern: &Pattern, starts: Starts, limits: &Limits) -> Result<Found> {
    let rough = Axes::new(pattern, starts, limits, Axis::powers_of_two)?;
    let mut found = bound::search(&rough, None).ok_or_else(|| nothing_fits(limits))?;
    loop {
        let sides = found.chunk.iter().enumerate().map(|(dim, side)| {
            let (least, most) = limits.range(dim, pattern.shape()[dim])?;
            Ok(((side / 2).max(least), (side * 2).min(most)))
        });
        let near = Limits {
            sides: Some(sides.collect::<Result<_>>()?),
            ..limits.clone()
        };
        let near = Axes::new(pattern, starts, &near, Axis::distinct_sides)?;
        let before = found.blocks;
        found = bound::search(&near, Some(found)).ok_or_else(|| nothing_fits(limits))?;
        found.proven = false;
        if found.blocks >= before * (1.0 - 1e-12) {
            return Ok(found);
        }
    }
}

/// The best shape: proven so where the proof does not take too long, and otherwise the best that
/// several descents and a bounded search find.
pub fn best(pattern: &Pattern, starts: Starts, limits: &Limits) -> Result<Found> {
    let axes = Axes::new(pattern, starts, limits, Axis::distinct_sides)?;
    let descended = local::descend(&axes);
    bound::search(&axes, descended).ok_or_else(|| nothing_fits(limits))
}

fn nothing_fits(limits: &Limits) -> Error {
    let least = limits.sides.iter().flatten().map(|(least, _)| *least);
    Error::invalid(format!(
        "a chunk may have {} cells, which is less than it needs: {}",
        limits.cells,
        listed(&least.collect::<Vec<u64>>())
    ))
    .with_hint("allow more bytes for a chunk, or shorter sides")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Shape, boxes with frequencies, cells, whole divisions.
    type Instance = (Vec<u64>, Vec<(Vec<u64>, f64)>, u64, bool);

    fn instances() -> impl Strategy<Value = Instance> {
        prop::collection::vec(1..14_u64, 1..5).prop_flat_map(|shape| {
            let extent: Vec<_> = shape.iter().map(|side| 1..=*side).collect();
            let boxes = prop::collection::vec((extent, (1..9_u32).prop_map(f64::from)), 1..6);
            (Just(shape), boxes, 1..300_u64, any::<bool>())
        })
    }

    /// Every shape that fits, maximal or not.
    fn naive(pattern: &Pattern, starts: Starts, limits: &Limits) -> f64 {
        let shape = pattern.shape();
        let mut least = f64::INFINITY;
        let mut chunk = vec![1; shape.len()];
        loop {
            let divides = shape.iter().zip(&chunk).all(|(side, c)| side % c == 0);
            if chunk.iter().product::<u64>() <= limits.cells && (divides || !limits.whole_divisions)
            {
                least = least.min(crate::expected_blocks(pattern, &chunk, starts));
            }
            let Some(dim) = (0..shape.len()).find(|dim| chunk[*dim] < shape[*dim]) else {
                return least;
            };
            chunk[dim] += 1;
            chunk[..dim].fill(1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn searches_equal_the_naive_one((shape, boxes, cells, whole) in instances()) {
            let pattern = Pattern::new(&shape, boxes).unwrap();
            let limits = Limits { whole_divisions: whole, ..Limits::cells(cells) };
            for starts in [Starts::Aligned, Starts::Anywhere] {
                let least = naive(&pattern, starts, &limits);
                let all = exhaustive(&pattern, starts, &limits).unwrap();
                let found = best(&pattern, starts, &limits).unwrap();
                let near = powers_of_two(&pattern, starts, &limits).unwrap();
                prop_assert!((all.blocks - least).abs() < 1e-9 * least);
                prop_assert!(found.proven);
                prop_assert!((found.blocks - least).abs() < 1e-9 * least, "{:?} {:?}", found, all);
                for found in [all, found, near] {
                    prop_assert!(found.blocks >= least * (1.0 - 1e-9));
                    prop_assert!(found.chunk.iter().product::<u64>() <= cells);
                    let blocks = crate::expected_blocks(&pattern, &found.chunk, starts);
                    prop_assert!((blocks - found.blocks).abs() < 1e-9 * blocks);
                    let sides = found.chunk.iter().zip(&shape);
                    for (c, side) in sides {
                        prop_assert!((1..=*side).contains(c) && (!whole || side % c == 0));
                    }
                }
            }
        }
    }

    fn worked_example() -> Pattern {
        let boxes = [(vec![10, 400, 10], 1.0), (vec![20, 5, 400], 1.0)];
        Pattern::new(&[100, 2000, 8000], boxes).unwrap()
    }

    #[test]
    fn the_papers_example_takes_20_blocks() {
        let limits = Limits::cells(8000);
        for search in [exhaustive, powers_of_two, best] {
            let found = search(&worked_example(), Starts::Aligned, &limits).unwrap();
            assert_eq!(found.blocks, 20.0, "{found:?}");
        }
        assert_eq!(
            crate::expected_blocks(&worked_example(), &[20, 20, 20], Starts::Aligned),
            20.0
        );
    }

    #[test]
    fn limits_hold() {
        let limits = Limits {
            sides: Some(vec![(1, 1), (1, 2000), (50, 8000)]),
            ..Limits::cells(8000)
        };
        let found = best(&worked_example(), Starts::Anywhere, &limits).unwrap();
        assert!(found.chunk[0] == 1 && found.chunk[2] >= 50, "{found:?}");
        let tight = Limits {
            cells: 49,
            ..limits.clone()
        };
        for search in [exhaustive, powers_of_two, best] {
            assert!(search(&worked_example(), Starts::Anywhere, &tight).is_err());
        }
        let none = Limits::cells(0);
        assert!(best(&worked_example(), Starts::Anywhere, &none).is_err());
        let crossed = Limits {
            sides: Some(vec![(5, 4), (1, 1), (1, 1)]),
            ..limits
        };
        assert!(best(&worked_example(), Starts::Anywhere, &crossed).is_err());
    }

    #[test]
    fn six_dimensions_and_twenty_classes_are_searched() {
        let shape = [365, 24, 40, 721, 1440, 12];
        let mut state = 7_u64;
        let mut random = move |most: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            1 + state % most
        };
        let boxes: Vec<(Vec<u64>, f64)> = (0..20)
            .map(|_| {
                let extent = shape.iter().map(|side| match random(3) {
                    1 => 1,
                    2 => *side,
                    _ => random(*side),
                });
                (extent.collect(), random(9) as f64)
            })
            .collect();
        let pattern = Pattern::new(&shape, boxes).unwrap();
        let limits = Limits::cells(1 << 20);
        let found = best(&pattern, Starts::Anywhere, &limits).unwrap();
        let rough = powers_of_two(&pattern, Starts::Anywhere, &limits).unwrap();
        assert!(found.blocks <= rough.blocks * (1.0 + 1e-9));
    }
}
