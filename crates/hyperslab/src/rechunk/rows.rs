//! Where the cells of one box lie in the packed cells of another.
//!
//! Pure. Invariant: the runs come in row-major order of the inner box, are as long as can be, and
//! hold each of its cells once.

use hyperslab_index::Region;

/// The runs of `inner` in the cells of `outer`, which contains it: (first cell, cells).
pub(super) fn rows(outer: &Region, inner: &Region) -> Rows {
    let rank = outer.rank();
    let mut strides = vec![1u64; rank];
    for dim in (0..rank.saturating_sub(1)).rev() {
        strides[dim] = strides[dim + 1] * outer.shape()[dim + 1];
    }
    // The last dimension that is cut, and all behind it, make one run.
    let cut = (0..rank)
        .rev()
        .find(|dim| inner.shape()[*dim] < outer.shape()[*dim])
        .unwrap_or(0);
    let len = inner.shape()[cut.min(rank)..].iter().product();
    let offset = (0..rank)
        .map(|dim| (inner.start()[dim] - outer.start()[dim]) * strides[dim])
        .sum();
    let loops = (0..cut).map(|dim| (inner.shape()[dim], strides[dim]));
    Rows {
        loops: loops.collect(),
        at: vec![0; cut],
        next: (!inner.is_empty()).then_some(offset),
        len,
    }
}

/// The runs of a box in another.
pub(super) struct Rows {
    /// Cells and stride of the outer dimensions.
    loops: Vec<(u64, u64)>,
    at: Vec<u64>,
    next: Option<u64>,
    len: u64,
}

impl Rows {
    /// Cells of each run.
    pub(super) fn run(&self) -> u64 {
        self.len
    }
}

impl Iterator for Rows {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let offset = self.next.take()?;
        let mut following = offset;
        for (at, (side, stride)) in self.at.iter_mut().zip(&self.loops).rev() {
            *at += 1;
            following += stride;
            if *at < *side {
                self.next = Some(following);
                break;
            }
            following -= *at * stride;
            *at = 0;
        }
        Some((offset, self.len))
    }
}

/// Cells before a part of `whole`, which is cut into parts along a grid, when the parts lie one
/// after another in row-major order.
pub(super) fn cells_before(whole: &Region, part: &Region) -> u64 {
    let mut outer = 1;
    let mut rest: u64 = whole.num_cells();
    let mut before = 0;
    for dim in 0..whole.rank() {
        rest /= whole.shape()[dim].max(1);
        before += outer * (part.start()[dim] - whole.start()[dim]) * rest;
        outer *= part.shape()[dim];
    }
    before
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn region(start: &[u64], shape: &[u64]) -> Region {
        Region::new(start, shape).unwrap()
    }

    /// The naive model: the place of every cell of `inner`, one by one.
    fn cell_by_cell(outer: &Region, inner: &Region) -> Vec<u64> {
        let ones = vec![1; outer.rank()];
        let place = |cell: Region| {
            let mut at = 0;
            for dim in 0..outer.rank() {
                at = at * outer.shape()[dim] + cell.start()[dim] - outer.start()[dim];
            }
            at
        };
        inner.split(&ones).map(place).collect()
    }

    proptest! {
        #[test]
        fn runs_are_the_cells(dims in prop::collection::vec((0u64..4, 1u64..6, 0u64..4, 1u64..6), 0..4)) {
            let outer = region(
                &dims.iter().map(|d| d.0).collect::<Vec<_>>(),
                &dims.iter().map(|d| d.2 + d.3 + d.1).collect::<Vec<_>>(),
            );
            let inner = region(
                &dims.iter().map(|d| d.0 + d.2).collect::<Vec<_>>(),
                &dims.iter().map(|d| d.3).collect::<Vec<_>>(),
            );
            let cells: Vec<u64> = rows(&outer, &inner).flat_map(|(at, n)| at..at + n).collect();
            prop_assert_eq!(cells, cell_by_cell(&outer, &inner));
        }

        #[test]
        fn parts_follow_one_another(
            dims in prop::collection::vec((0u64..9, 1u64..9, 1u64..5), 0..4),
        ) {
            let whole = region(
                &dims.iter().map(|d| d.0).collect::<Vec<_>>(),
                &dims.iter().map(|d| d.1).collect::<Vec<_>>(),
            );
            let sides: Vec<u64> = dims.iter().map(|d| d.2).collect();
            let mut cells = 0;
            for part in whole.split_aligned(&sides) {
                prop_assert_eq!(cells_before(&whole, &part), cells);
                cells += part.num_cells();
            }
        }
    }

    #[test]
    fn whole_dimensions_join_into_one_run() {
        let outer = region(&[0, 0, 0], &[4, 3, 5]);
        let all: Vec<_> = rows(&outer, &region(&[1, 0, 0], &[2, 3, 5])).collect();
        assert_eq!(all, [(15, 30)]);
        let some: Vec<_> = rows(&outer, &region(&[1, 1, 0], &[2, 2, 5])).collect();
        assert_eq!(some, [(20, 10), (35, 10)]);
    }
}
