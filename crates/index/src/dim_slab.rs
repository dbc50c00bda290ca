//! One dimension of a regular selection.
//!
//! Sits under [`crate::Hyperslab`]; all questions about one dimension are answered here in closed
//! form, whatever the number of blocks.
//!
//! Invariant (of the slabs inside a [`crate::Hyperslab`]): `stride >= block >= 1`, and either
//! `count == 0` (nothing), or `count == 1` (one box, `stride == block`), or `stride > block`.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// `count` blocks of `block` cells, whose starts are `stride` apart, the first at `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DimSlab {
    /// The first selected coordinate.
    pub start: u64,
    /// The distance between the starts of neighbouring blocks.
    pub stride: u64,
    /// The number of blocks.
    pub count: u64,
    /// The number of cells in a block.
    pub block: u64,
}

impl DimSlab {
    /// `side` cells in one piece.
    pub fn contiguous(start: u64, side: u64) -> DimSlab {
        match side {
            0 => DimSlab {
                start: 0,
                stride: 1,
                count: 0,
                block: 1,
            },
            _ => DimSlab {
                start,
                stride: side,
                count: 1,
                block: side,
            },
        }
    }

    /// The number of selected coordinates.
    pub fn num_cells(&self) -> u64 {
        self.count.saturating_mul(self.block)
    }

    /// The canonical form of the same selection, or why there is none.
    pub(crate) fn normalised(self, dim: usize) -> Result<DimSlab> {
        let DimSlab {
            start,
            stride,
            count,
            block,
        } = self;
        if count == 0 || block == 0 {
            return Ok(DimSlab::contiguous(0, 0));
        }
        if count > 1 && stride < block {
            return Err(Error::invalid(format!(
                "in dimension {dim} blocks of {block} cells overlap, since the stride is {stride}"
            ))
            .with_hint("make the stride at least as large as the block"));
        }
        let end = (count - 1)
            .checked_mul(stride)
            .and_then(|last| last.checked_add(start))
            .and_then(|last| last.checked_add(block));
        if end.is_none() {
            return Err(Error::invalid(format!(
                "in dimension {dim} the selection (start {start}, stride {stride}, count {count}, block {block}) ends beyond 2^64"
            ))
            .with_hint("check the numbers for a negative one that became unsigned"));
        }
        Ok(match count == 1 || stride == block {
            true => DimSlab::contiguous(start, count * block),
            false => self,
        })
    }

    /// One past the last selected coordinate; `start` if nothing is selected.
    pub(crate) fn end(&self) -> u64 {
        match self.count {
            0 => self.start,
            count => self.start + (count - 1) * self.stride + self.block,
        }
    }

    /// How many selected coordinates are less than `x`; for a selected `x` its place in the result.
    pub(crate) fn cells_below(&self, x: u64) -> u64 {
        if x <= self.start {
            return 0;
        }
        let blocks = (x - self.start) / self.stride;
        if blocks >= self.count {
            return self.num_cells();
        }
        blocks * self.block + (x - self.start - blocks * self.stride).min(self.block)
    }

    /// The first selected coordinate that is at least `x`.
    pub(crate) fn first_from(&self, x: u64) -> Option<u64> {
        if self.count == 0 || x <= self.start {
            return (self.count > 0).then_some(self.start);
        }
        let blocks = (x - self.start) / self.stride;
        if blocks >= self.count {
            return None;
        }
        if x - self.start - blocks * self.stride < self.block {
            return Some(x);
        }
        (blocks + 1 < self.count).then(|| self.start + (blocks + 1) * self.stride)
    }

    /// How many chunks of this side hold a selected coordinate.
    pub(crate) fn num_chunks(&self, side: u64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let gap = self.stride - self.block;
        if gap < side {
            // No chunk fits between two blocks, so none is skipped.
            return (self.end() - 1) / side - self.start / side + 1;
        }
        // Blocks lie in different chunks: add up the chunks of each block.
        let sum = |first: u64| floor_sum(self.count, side, self.stride, first);
        (sum(self.start + self.block - 1) - sum(self.start)) as u64 + self.count
    }
}

/// The sum of `(a·i + b) / m` (rounded down) for `i` in `0..n`, by Euclid's algorithm on the
/// lattice points under the line.
fn floor_sum(n: u64, m: u64, a: u64, b: u64) -> u128 {
    let (mut n, mut m, mut a, mut b) = (n as u128, m as u128, a as u128, b as u128);
    let mut sum = 0;
    loop {
        sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
        a %= m;
        b %= m;
        let top = a * n + b;
        if top < m {
            return sum;
        }
        // Count the same points by rows instead of columns.
        (n, b) = (top / m, top % m);
        (m, a) = (a, m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(slab: &DimSlab) -> Vec<u64> {
        (0..slab.count)
            .flat_map(|k| (0..slab.block).map(move |j| slab.start + k * slab.stride + j))
            .collect()
    }

    #[test]
    fn closed_forms_equal_counting() {
        for bits in 0..5 * 7 * 6 * 5u64 {
            let (start, stride) = (bits % 5, 1 + bits / 5 % 7);
            let (count, block) = (bits / 35 % 6, 1 + bits / 210 % 5);
            let Ok(slab) = (DimSlab {
                start,
                stride,
                count,
                block,
            })
            .normalised(0) else {
                assert!(stride < block && count > 1);
                continue;
            };
            let cells = selected(&slab);
            assert_eq!(cells.len() as u64, count * block);
            for x in 0..50 {
                assert_eq!(
                    slab.cells_below(x),
                    cells.iter().filter(|&&c| c < x).count() as u64
                );
                assert_eq!(slab.first_from(x), cells.iter().copied().find(|&c| c >= x));
            }
            for side in 1..9 {
                let mut chunks: Vec<u64> = cells.iter().map(|c| c / side).collect();
                chunks.dedup();
                assert_eq!(
                    slab.num_chunks(side),
                    chunks.len() as u64,
                    "{slab:?} in {side}"
                );
            }
        }
    }

    #[test]
    fn one_box_has_one_form() {
        let box_of_six = DimSlab::contiguous(2, 6);
        for (stride, count, block) in [(1, 6, 1), (3, 2, 3), (0, 1, 6), (9, 1, 6), (6, 1, 6)] {
            let slab = DimSlab {
                start: 2,
                stride,
                count,
                block,
            };
            assert_eq!(slab.normalised(0).unwrap(), box_of_six);
        }
    }

    #[test]
    fn ends_that_overflow_are_refused() {
        let slab = DimSlab {
            start: 1,
            stride: 1 << 40,
            count: 1 << 30,
            block: 1,
        };
        assert!(
            slab.normalised(3)
                .unwrap_err()
                .message()
                .contains("dimension 3")
        );
        assert!(
            DimSlab {
                start: u64::MAX,
                stride: 1,
                count: 1,
                block: 1
            }
            .normalised(0)
            .is_err()
        );
    }
}
