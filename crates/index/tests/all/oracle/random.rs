//! Random cases for the naive model, small enough to look at every cell.

use hyperslab_index::DimSlab;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::{Case, Wanted};

impl Case {
    /// The case of a seed.
    pub(crate) fn random(seed: u64) -> Case {
        let rng = &mut StdRng::seed_from_u64(seed);
        let rank = rng.random_range(0..=5usize);
        let longest = [1, 60, 20, 9, 6, 4][rank];
        let side = |rng: &mut StdRng| match rng.random_bool(0.02) {
            true => 0,
            false => rng.random_range(1..=longest),
        };
        let sides: Vec<u64> = (0..rank).map(|_| side(rng)).collect();
        let chunk: Vec<u64> = sides
            .iter()
            .map(|&side| rng.random_range(1..=side + 2))
            .collect();
        let mut order: Vec<usize> = (0..rank).collect();
        if rng.random_bool(0.4) {
            order.shuffle(rng);
        }
        let empty_array = sides.contains(&0);
        let wanted = match rng.random_range(0..10) {
            0 => Wanted::All,
            1..=4 => Wanted::Slabs(vec![random_slab(rng, &sides)]),
            5..=7 => {
                let many = rng.random_range(2..=6);
                Wanted::Slabs((0..many).map(|_| random_slab(rng, &sides)).collect())
            }
            _ if rank == 0 || empty_array => Wanted::All,
            _ => Wanted::Points(random_points(rng, &sides)),
        };
        let mut case = Case {
            sides,
            chunk,
            order,
            wanted,
            base: 0,
            strides: None,
        };
        if rng.random_bool(0.4) {
            case.base = rng.random_range(0..5);
            // A larger buffer with its dimensions in any order.
            let result = case
                .selection()
                .map(|(selection, shape)| selection.result_shape(&shape));
            let result: Vec<u64> = result.map(Vec::from).unwrap_or_default();
            let mut strides = vec![0; result.len()];
            let mut dims: Vec<usize> = (0..result.len()).collect();
            dims.shuffle(rng);
            let mut stride = rng.random_range(1..=2);
            for dim in dims {
                strides[dim] = stride;
                stride *= result[dim].max(1) + rng.random_range(0..3);
            }
            case.strides = Some(strides);
        }
        case
    }
}

fn random_slab(rng: &mut StdRng, sides: &[u64]) -> Vec<DimSlab> {
    let dim = |side: u64| {
        let empty = DimSlab {
            start: 0,
            stride: 1,
            count: 0,
            block: 1,
        };
        if side == 0 || rng.random_bool(0.01) {
            return empty;
        }
        if rng.random_bool(0.2) {
            return DimSlab {
                start: 0,
                stride: 1,
                count: side,
                block: 1,
            };
        }
        let start = rng.random_range(0..side);
        let block = rng.random_range(1..=(side - start).min(5));
        let stride = block + rng.random_range(0..=side / 2);
        let most = (side - start - block) / stride + 1;
        DimSlab {
            start,
            stride,
            count: rng.random_range(1..=most),
            block,
        }
    };
    sides.iter().copied().map(dim).collect()
}

fn random_points(rng: &mut StdRng, sides: &[u64]) -> Vec<Vec<u64>> {
    let many = rng.random_range(0..40);
    let mut points: Vec<Vec<u64>> = Vec::new();
    while points.len() < many {
        let point = sides
            .iter()
            .map(|&side| rng.random_range(0..side))
            .collect();
        points.push(point);
        // Neighbours and duplicates are what a random list rarely has.
        while let Some(last) = points.last().filter(|_| rng.random_bool(0.5)) {
            let mut next = last.clone();
            if let (Some(x), Some(&side)) = (next.last_mut(), sides.last()) {
                *x = (*x + rng.random_range(0..2)).min(side - 1);
            }
            points.push(next);
        }
    }
    points
}
