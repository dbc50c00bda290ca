//! Random selections, with a definition of their cells that shares no code with the index crate.

use hyperslab::{Hyperslab, Selection};
use hyperslab_index::DimSlab;
use rand::Rng;
use rand::rngs::StdRng;

use crate::Outcome;
use crate::model::coords;

/// Which cells of an array a check reads or writes.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// Every cell.
    All,
    /// One or more hyperslabs, as a union.
    Slabs(Vec<Vec<DimSlab>>),
    /// A list of cells, duplicates allowed.
    Points(Vec<Vec<u64>>),
}

impl Wanted {
    /// A selection of any kind on an array with these sides.
    pub fn random(rng: &mut StdRng, sides: &[u64]) -> Self {
        let no_points = sides.is_empty() || sides.contains(&0);
        match rng.random_range(0..10) {
            0 => Wanted::All,
            1..=5 => Wanted::Slabs(vec![random_slab(rng, sides)]),
            6 | 7 => {
                let many = rng.random_range(2..=4);
                Wanted::Slabs((0..many).map(|_| random_slab(rng, sides)).collect())
            }
            _ if no_points => Wanted::All,
            _ => {
                let many = rng.random_range(0..30);
                let point =
                    |rng: &mut StdRng| sides.iter().map(|&n| rng.random_range(0..n)).collect();
                Wanted::Points((0..many).map(|_| point(rng)).collect())
            }
        }
    }

    /// A box.
    pub fn region(start: &[u64], sides: &[u64]) -> Self {
        let dims = start.iter().zip(sides);
        Wanted::Slabs(vec![
            dims.map(|(&start, &n)| DimSlab {
                start,
                stride: 1,
                count: n,
                block: 1,
            })
            .collect(),
        ])
    }

    /// The same as the facade takes it.
    pub fn selection(&self, rank: usize) -> Outcome<Selection> {
        Ok(match self {
            Wanted::All => Selection::All,
            Wanted::Slabs(slabs) => {
                let slabs = slabs
                    .iter()
                    .map(|dims| Hyperslab::from_dims(dims.iter().copied()));
                Selection::from_hyperslabs(slabs.collect::<Result<_, _>>()?)?
            }
            Wanted::Points(points) => Selection::points(rank, points.concat())?,
        })
    }

    /// The coordinates of the result's cells in order, found by looking at every cell.
    pub fn cells(&self, sides: &[u64]) -> Vec<Vec<u64>> {
        let hit =
            |dims: &[DimSlab], cell: &[u64]| dims.iter().zip(cell).all(|(dim, x)| covers(dim, *x));
        match self {
            Wanted::All => coords(sides).collect(),
            Wanted::Slabs(slabs) => coords(sides)
                .filter(|cell| slabs.iter().any(|dims| hit(dims, cell)))
                .collect(),
            Wanted::Points(points) => points.clone(),
        }
    }
}

fn covers(dim: &DimSlab, x: u64) -> bool {
    (0..dim.count).any(|k| {
        let low = dim.start + k * dim.stride;
        (low..low + dim.block).contains(&x)
    })
}

fn random_slab(rng: &mut StdRng, sides: &[u64]) -> Vec<DimSlab> {
    let mut dim = |side: u64| {
        if side == 0 || rng.random_bool(0.01) {
            return DimSlab {
                start: 0,
                stride: 1,
                count: 0,
                block: 1,
            };
        }
        if rng.random_bool(0.3) {
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
    sides.iter().map(|&side| dim(side)).collect()
}
