//! The order in which axes are nested when chunks, or the cells of a chunk, are laid out one after
//! another.
//!
//! The paper's lemma 1 says how far apart the first and the last block of a box lie, and lemma 2 which
//! order makes that least. Both hold for chunks of an array, for chunks in a shard and for cells in a
//! chunk alike: all that matters is how many there are along each axis and how many of them a box
//! touches.

use crate::{Pattern, Starts, chunks_along};

/// Axes from the outermost to the innermost so that boxes that touch `touched` of `count` along each,
/// on average, lie together: by increasing (touched − 1) / (count − 1), lemma 2. Axes with one block do
/// not matter and come first.
pub fn axis_order(count: &[u64], touched: &[f64]) -> Vec<usize> {
    let share = |axis: usize| match count[axis] {
        0 | 1 => -1.0,
        many => (touched[axis] - 1.0) / (many - 1) as f64,
    };
    let mut order: Vec<usize> = (0..count.len()).collect();
    order.sort_by(|a, b| share(*a).total_cmp(&share(*b)));
    order
}

/// The order of an array's axes in which its chunks had better lie.
pub fn chunk_order(pattern: &Pattern, chunk: &[u64], starts: Starts) -> Vec<usize> {
    let mut touched = vec![0.0; chunk.len()];
    for class in pattern.classes() {
        for (sum, along) in touched
            .iter_mut()
            .zip(touches(pattern, &class.extent, chunk, starts))
        {
            *sum += class.weight * along;
        }
    }
    axis_order(&counts(pattern, chunk), &touched)
}

/// Blocks from the first to the last of a box, on average over the pattern, when chunks are laid out by
/// nesting the axes in this order, the first one outermost: the numerator of lemma 1. Divided by the
/// blocks of a cylinder it is the tracks to seek.
pub fn seek_distance(pattern: &Pattern, chunk: &[u64], order: &[usize], starts: Starts) -> f64 {
    let count = counts(pattern, chunk);
    let span = |extent: &[u64]| {
        let touched = touches(pattern, extent, chunk, starts);
        let inward = order.iter().fold(0.0, |span, axis| {
            span * count[*axis] as f64 + (touched[*axis] - 1.0)
        });
        inward + 1.0
    };
    let classes = pattern.classes().iter();
    classes
        .map(|class| class.weight * span(&class.extent))
        .sum()
}

fn counts(pattern: &Pattern, chunk: &[u64]) -> Vec<u64> {
    let sides = pattern.shape().iter().zip(chunk);
    sides.map(|(side, chunk)| side.div_ceil(*chunk)).collect()
}

fn touches(pattern: &Pattern, extent: &[u64], chunk: &[u64], starts: Starts) -> Vec<f64> {
    let dims = pattern.shape().iter().zip(extent).zip(chunk);
    dims.map(|((side, extent), chunk)| chunks_along(*side, *extent, *chunk, starts))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn permutations(of: usize) -> Vec<Vec<usize>> {
        if of == 0 {
            return vec![Vec::new()];
        }
        let shorter = permutations(of - 1);
        let places = 0..of;
        places
            .flat_map(|place| {
                shorter.iter().map(move |order| {
                    let mut order = order.clone();
                    order.insert(place, of - 1);
                    order
                })
            })
            .collect()
    }

    proptest! {
        #[test]
        fn lemma_2_is_the_best_of_all_orders(
            dims in prop::collection::vec((1..9_u64, 1..6_u64, 1..20_u64, 1..20_u64), 1..5),
            often in 1..9_u32,
        ) {
            // Chunks divide the array, as the lemmas have it.
            let shape: Vec<u64> = dims.iter().map(|(count, chunk, ..)| count * chunk).collect();
            let chunk: Vec<u64> = dims.iter().map(|(_, chunk, ..)| *chunk).collect();
            let extent = |of: fn(&(u64, u64, u64, u64)) -> u64| -> Vec<u64> {
                dims.iter().zip(&shape).map(|(dim, side)| of(dim).min(*side)).collect()
            };
            let boxes = [(extent(|d| d.2), 1.0), (extent(|d| d.3), f64::from(often))];
            let pattern = Pattern::new(&shape, boxes).unwrap();
            for starts in [Starts::Aligned, Starts::Anywhere] {
                let order = chunk_order(&pattern, &chunk, starts);
                let ours = seek_distance(&pattern, &chunk, &order, starts);
                for other in permutations(chunk.len()) {
                    let distance = seek_distance(&pattern, &chunk, &other, starts);
                    prop_assert!(ours <= distance * (1.0 + 1e-9), "{:?} {:?}", order, other);
                }
            }
        }
    }

    #[test]
    fn the_papers_example_needs_16_tracks() {
        let boxes = [(vec![10, 400, 10], 1.0), (vec![20, 5, 400], 1.0)];
        let pattern = Pattern::new(&[100, 2000, 8000], boxes).unwrap();
        let chunk = [20, 20, 20];
        let order = chunk_order(&pattern, &chunk, Starts::Aligned);
        assert_eq!(order, [0, 2, 1]);
        let tracks = |order: &[usize]| {
            let blocks = seek_distance(&pattern, &chunk, order, Starts::Aligned);
            (blocks / 60.0 * 10.0).round() / 10.0
        };
        assert_eq!((tracks(&[0, 1, 2]), tracks(&order)), (63.5, 16.0));
    }
}
