//! Cuts a result into blocks that are contiguous in row-major order and fit in memory.
//!
//! Sits under everything that streams: files are written and read block by block.
//!
//! Invariant: the blocks cover each cell of the shape once, in row-major order.

/// A box of a result whose cells are contiguous in row-major order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) start: Vec<u64>,
    pub(crate) shape: Vec<u64>,
}

impl Block {
    /// The number of cells.
    pub(crate) fn cells(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// How to cut.
pub(crate) struct Cut<'a> {
    /// The shape to cover.
    pub(crate) shape: &'a [u64],
    /// Bytes of a cell; an estimate for strings.
    pub(crate) cell_bytes: u64,
    /// Bytes that a block may have; one cell is always let through.
    pub(crate) budget: u64,
    /// Per dimension the side of a chunk, and where in its first chunk the result starts: blocks
    /// end at chunk borders where they can, so that no chunk is read or rewritten twice.
    pub(crate) chunks: &'a [(u64, u64)],
}

impl Cut<'_> {
    /// The blocks.
    pub(crate) fn blocks(&self) -> Blocks {
        let rank = self.shape.len();
        let total: u64 = self.shape.iter().product();
        let most = (self.budget / self.cell_bytes.max(1)).max(1);
        // Dimensions behind `axis` are whole in every block, those before are single.
        let mut inner = 1u64;
        let mut axis = 0;
        for dim in (0..rank).rev() {
            axis = dim;
            match inner.checked_mul(self.shape[dim]) {
                Some(more) if more <= most => inner = more,
                _ => break,
            }
        }
        let whole = total <= most || rank == 0;
        let inner = self.shape.iter().skip(axis + 1).product::<u64>().max(1);
        let rows = if whole {
            u64::MAX
        } else {
            (most / inner).max(1)
        };
        let chunk = self.chunks.get(axis).copied().filter(|(side, _)| *side > 0);
        Blocks {
            shape: self.shape.to_vec(),
            axis,
            rows,
            chunk,
            next: (total > 0).then(|| vec![0; rank]),
            whole,
        }
    }
}

/// Gives the blocks one after another.
pub(crate) struct Blocks {
    shape: Vec<u64>,
    axis: usize,
    rows: u64,
    chunk: Option<(u64, u64)>,
    next: Option<Vec<u64>>,
    whole: bool,
}

impl Blocks {
    /// Where the rows that begin at `from` end.
    fn row_end(&self, from: u64) -> u64 {
        let side = self.shape[self.axis];
        let end = from.saturating_add(self.rows).min(side);
        match self.chunk {
            Some((chunk, offset)) if end < side => {
                let border = (end + offset) / chunk * chunk;
                border
                    .checked_sub(offset)
                    .filter(|aligned| *aligned > from)
                    .unwrap_or(end)
            }
            _ => end,
        }
    }
}

impl Iterator for Blocks {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let start = self.next.take()?;
        if self.whole {
            return Some(Block {
                start,
                shape: self.shape.clone(),
            });
        }
        let axis = self.axis;
        let end = self.row_end(start[axis]);
        let mut shape = self.shape.clone();
        shape[..axis].fill(1);
        shape[axis] = end - start[axis];

        let mut following = start.clone();
        following[axis] = end;
        if end < self.shape[axis] {
            self.next = Some(following);
        } else if let Some(dim) = (0..axis).rev().find(|d| start[*d] + 1 < self.shape[*d]) {
            following[dim] += 1;
            following[dim + 1..].fill(0);
            self.next = Some(following);
        }
        Some(Block { start, shape })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permute::for_each;

    fn covered(cut: &Cut<'_>) -> Vec<Vec<u64>> {
        let mut cells = Vec::new();
        for block in cut.blocks() {
            for_each(&block.shape, |at| {
                cells.push(at.iter().zip(&block.start).map(|(a, s)| a + s).collect());
            });
        }
        cells
    }

    #[test]
    fn blocks_cover_everything_in_order() {
        for shape in [
            vec![],
            vec![7],
            vec![0, 3],
            vec![3, 0],
            vec![4, 5, 6],
            vec![1, 1, 9],
            vec![5, 1, 4],
        ] {
            let mut expected = Vec::new();
            for_each(&shape, |at| expected.push(at.to_vec()));
            for budget in [1, 2, 7, 8, 12, 30, 61, 1000] {
                for chunk in [0, 1, 3, 4] {
                    let chunks = vec![(chunk, chunk / 2); shape.len()];
                    let cut = Cut {
                        shape: &shape,
                        cell_bytes: 2,
                        budget,
                        chunks: &chunks,
                    };
                    assert_eq!(covered(&cut), expected, "{shape:?} {budget} {chunk}");
                    for block in cut.blocks() {
                        assert!(block.cells() * 2 <= budget.max(2), "{block:?} in {budget}");
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_end_at_chunk_borders() {
        let cut = Cut {
            shape: &[100, 10],
            cell_bytes: 1,
            budget: 350,
            chunks: &[(16, 5), (10, 0)],
        };
        let ends: Vec<u64> = cut.blocks().map(|b| b.start[0] + b.shape[0]).collect();
        assert_eq!(ends, [27, 59, 91, 100]);
    }
}
