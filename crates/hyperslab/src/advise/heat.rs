//! Where an array is read: how often each chunk, as far as a picture shows.

use hyperslab_index::{ChunkGrid, Selection, Shape};
use hyperslab_layout::Sample;

use crate::Result;

/// Cells of the picture along an axis, at most.
const MOST: u64 = 96;
/// Chunks of one read that are counted one by one, at most.
const MOST_CHUNKS: usize = 1 << 14;

/// How often chunks are touched, over the last two axes of the grid; the others are summed up, and
/// neighbours are one where there are many.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    /// Rows and columns of the picture.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Reads that touch each, as a share of all reads; row by row.
    pub shares: Vec<f64>,
}

impl Heat {
    pub(crate) fn new(shape: &[u64], chunk: &Shape, samples: &[Sample]) -> Result<Heat> {
        let grid = ChunkGrid::new(&Shape::new(shape.iter().copied())?, chunk)?;
        let all = grid.grid_shape();
        let side = |from_end: usize| all.iter().rev().nth(from_end).copied().unwrap_or(1).max(1);
        let (tall, wide) = (side(1), side(0));
        let (rows, columns) = (tall.min(MOST) as usize, wide.min(MOST) as usize);
        let mut shares = vec![0.0; rows * columns];
        let mut total = 0.0;
        for sample in samples {
            let selection = Selection::region(&sample.region);
            let mut touched: Vec<usize> = grid
                .parts(&selection)?
                .take(MOST_CHUNKS)
                .map(|part| {
                    let at = |from_end: usize| {
                        part.chunk()
                            .iter()
                            .rev()
                            .nth(from_end)
                            .copied()
                            .unwrap_or(0)
                    };
                    let row = (at(1) * rows as u64 / tall) as usize;
                    let column = (at(0) * columns as u64 / wide) as usize;
                    row * columns + column
                })
                .collect();
            touched.sort_unstable();
            touched.dedup();
            for place in touched {
                shares[place] += sample.weight;
            }
            total += sample.weight;
        }
        if total > 0.0 {
            shares.iter_mut().for_each(|share| *share /= total);
        }
        Ok(Heat {
            rows,
            columns,
            shares,
        })
    }
}
