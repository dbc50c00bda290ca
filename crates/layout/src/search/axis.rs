//! The sides that a chunk may have along each dimension, and how often each is touched.

use super::Limits;
use crate::{Pattern, Result, Starts, chunks_along};

/// Distinct sides of one dimension that are looked at; of more, only some, ever further apart.
const MOST_SIDES: usize = 1024;

/// Makes an axis of the sides that the limits allow; the function says how often a box of each class
/// touches a side.
pub(super) type Choose = fn(Vec<u64>, &dyn Fn(u64) -> Vec<f64>) -> Axis;

/// One dimension.
pub(super) struct Axis {
    /// Sides to choose from, from the shortest.
    pub(super) sides: Vec<u64>,
    /// For each of them, the chunks that a box of each class touches.
    counts: Vec<f64>,
    classes: usize,
    /// True if no side that matters was left out.
    pub(super) complete: bool,
}

impl Axis {
    fn of(sides: Vec<u64>, counts: impl Fn(u64) -> Vec<f64>, complete: bool) -> Axis {
        let counts: Vec<Vec<f64>> = sides.iter().map(|side| counts(*side)).collect();
        Axis {
            classes: counts.first().map_or(0, Vec::len),
            counts: counts.concat(),
            sides,
            complete,
        }
    }

    /// All that the limits allow.
    pub(super) fn every_side(allowed: Vec<u64>, counts: &dyn Fn(u64) -> Vec<f64>) -> Axis {
        Axis::of(allowed, counts, true)
    }

    /// Powers of two, the shortest and the longest.
    pub(super) fn powers_of_two(allowed: Vec<u64>, counts: &dyn Fn(u64) -> Vec<f64>) -> Axis {
        let ends = (allowed.first().copied(), allowed.last().copied());
        let mut sides = allowed;
        sides.retain(|side| {
            side.is_power_of_two() || ends.0 == Some(*side) || ends.1 == Some(*side)
        });
        Axis::of(sides, counts, false)
    }

    /// The shortest of all sides that are touched equally often.
    pub(super) fn distinct_sides(allowed: Vec<u64>, counts: &dyn Fn(u64) -> Vec<f64>) -> Axis {
        let thinned = thin(&allowed);
        let complete = thinned.len() == allowed.len();
        let mut last = Vec::new();
        let mut sides = thinned;
        sides.retain(|side| {
            let these = counts(*side);
            let differs = these != last;
            last = these;
            differs
        });
        Axis::of(sides, counts, complete)
    }

    /// How often a box of each class touches the side at `index`.
    pub(super) fn counts(&self, index: usize) -> &[f64] {
        &self.counts[index * self.classes..(index + 1) * self.classes]
    }

    /// The longest side that has at most so many cells.
    pub(super) fn longest(&self, most: u64) -> Option<usize> {
        self.sides
            .partition_point(|side| *side <= most)
            .checked_sub(1)
    }
}

/// All sides from `least` to `most`, and true; or, of very many, steps that grow by a thousandth.
fn between(least: u64, most: u64) -> (Vec<u64>, bool) {
    const MANY: u64 = 1 << 16;
    if most - least < MANY {
        return ((least..=most).collect(), true);
    }
    let next = |side: &u64| side.checked_add((side / 1000).max(1));
    let mut sides: Vec<u64> = std::iter::successors(Some(least), next)
        .take_while(|side| *side < most)
        .collect();
    sides.push(most);
    (sides, false)
}

/// All of a few sides; of many, steps that grow by a hundredth.
fn thin(allowed: &[u64]) -> Vec<u64> {
    if allowed.len() <= MOST_SIDES {
        return allowed.to_vec();
    }
    let mut kept: Vec<u64> = Vec::with_capacity(MOST_SIDES);
    for side in allowed {
        let far = kept
            .last()
            .is_none_or(|last| *side >= last + (last / 100).max(1));
        if far {
            kept.push(*side);
        }
    }
    kept.extend(allowed.last().filter(|last| kept.last() != Some(last)));
    kept
}

/// All dimensions.
pub(super) struct Axes {
    pub(super) axes: Vec<Axis>,
    /// Shares of the classes.
    pub(super) weights: Vec<f64>,
    /// Sides of the boxes of each class.
    pub(super) extents: Vec<Vec<u64>>,
    /// Cells of a chunk, at most.
    pub(super) cells: u64,
}

impl Axes {
    pub(super) fn new(
        pattern: &Pattern,
        starts: Starts,
        limits: &Limits,
        choose: Choose,
    ) -> Result<Axes> {
        let classes = pattern.classes();
        let axis = |(dim, side): (usize, &u64)| {
            let (least, most) = limits.range(dim, *side)?;
            // Longer ones fit no chunk.
            let most = most.min(limits.cells.max(least));
            let (allowed, all) = match limits.whole_divisions {
                true => {
                    let mut divisors = divisors(*side);
                    divisors.retain(|side| (least..=most).contains(side));
                    (divisors, true)
                }
                false => between(least, most),
            };
            let counts = |chunk: u64| -> Vec<f64> {
                let along = classes.iter().map(|class| class.extent[dim]);
                along
                    .map(|extent| chunks_along(*side, extent, chunk, starts))
                    .collect()
            };
            let mut axis = choose(allowed, &counts);
            axis.complete &= all;
            Ok(axis)
        };
        Ok(Axes {
            axes: pattern
                .shape()
                .iter()
                .enumerate()
                .map(axis)
                .collect::<Result<_>>()?,
            weights: classes.iter().map(|class| class.weight).collect(),
            extents: classes.iter().map(|class| class.extent.clone()).collect(),
            cells: limits.cells,
        })
    }

    /// Calls `each` with every shape of which the last side is as long as fits.
    pub(super) fn each_maximal(&self, each: &mut dyn FnMut(&[u64])) {
        let mut chunk = Vec::with_capacity(self.axes.len());
        self.fill(&mut chunk, self.cells, each);
    }

    fn fill(&self, chunk: &mut Vec<u64>, left: u64, each: &mut dyn FnMut(&[u64])) {
        let axis = match self.axes.get(chunk.len()) {
            Some(axis) => axis,
            // An array without dimensions has one cell.
            None if left > 0 => return each(chunk),
            None => return,
        };
        let Some(longest) = axis.longest(left) else {
            return;
        };
        let last = chunk.len() + 1 == self.axes.len();
        let shortest = if last { longest } else { 0 };
        for side in &axis.sides[shortest..=longest] {
            chunk.push(*side);
            match last {
                true => each(chunk),
                false => self.fill(chunk, left / side, each),
            }
            chunk.pop();
        }
    }

    /// The shape with these sides.
    pub(super) fn chunk(&self, chosen: &[usize]) -> Vec<u64> {
        let sides = chosen.iter().zip(&self.axes);
        sides.map(|(index, axis)| axis.sides[*index]).collect()
    }

    /// Chunks that a read touches on average.
    pub(super) fn blocks(&self, chosen: &[usize]) -> f64 {
        let mut products = self.weights.clone();
        for (index, axis) in chosen.iter().zip(&self.axes) {
            for (product, count) in products.iter_mut().zip(axis.counts(*index)) {
                *product *= count;
            }
        }
        products.iter().sum()
    }
}

fn divisors(of: u64) -> Vec<u64> {
    // Nobody waits for the divisors of an endless axis.
    const MOST: u64 = 1 << 20;
    let small: Vec<u64> = (1..=of.isqrt().min(MOST))
        .filter(|n| of.is_multiple_of(*n))
        .collect();
    let large = small.iter().rev().map(|n| of / n).filter(|n| n * n != of);
    small.iter().copied().chain(large).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_are_all_of_them() {
        for of in 1..200 {
            let naive: Vec<u64> = (1..=of).filter(|n| of % n == 0).collect();
            assert_eq!(divisors(of), naive);
        }
    }

    #[test]
    fn many_sides_are_thinned_to_both_ends() {
        let all: Vec<u64> = (1..=1_000_000).collect();
        let kept = thin(&all);
        assert!(kept.len() < 2 * MOST_SIDES && kept[..100] == all[..100]);
        assert_eq!(kept.last(), Some(&1_000_000));
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
