//! The order of dimensions in a stored chunk.
//!
//! Sits beside [`crate::ChunkGrid`]: the grid says which cells a chunk has, the order says at which
//! offset each of them is stored (Zarr's `transpose` codec).
//!
//! Invariant: the list is a permutation of the dimensions.

use smallvec::SmallVec;

use crate::shape::row_major_strides;
use crate::{Dims, Error, MAX_RANK, Result};

/// `order[i]` is the array dimension that is the `i`-th stored one, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CellOrder {
    dims: SmallVec<[usize; 6]>,
}

impl CellOrder {
    /// The last dimension varies fastest, as in C.
    pub fn row_major(rank: usize) -> CellOrder {
        CellOrder {
            dims: (0..rank).collect(),
        }
    }

    /// Checks that every dimension is named once.
    pub fn new(order: &[usize]) -> Result<CellOrder> {
        let named: u64 = order
            .iter()
            .filter(|&&dim| dim < MAX_RANK)
            .fold(0, |set, dim| set | 1 << dim);
        if order.len() > MAX_RANK || named != (1 << order.len()) - 1 {
            return Err(Error::invalid(format!(
                "the dimension order {order:?} is not a permutation of the {} dimensions",
                order.len()
            ))
            .with_hint("name each dimension from 0 on exactly once"));
        }
        Ok(CellOrder { dims: order.into() })
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The array dimension of each stored one.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// True if nothing is permuted.
    pub fn is_row_major(&self) -> bool {
        self.dims
            .iter()
            .enumerate()
            .all(|(stored, &dim)| stored == dim)
    }

    /// The shape as stored: the sides in stored order.
    pub fn stored_shape(&self, chunk: &[u64]) -> Dims {
        debug_assert_eq!(chunk.len(), self.rank());
        self.dims.iter().map(|&dim| chunk[dim]).collect()
    }

    /// How many stored cells apart neighbours along each array dimension lie.
    pub fn strides(&self, chunk: &[u64]) -> Dims {
        let stored = row_major_strides(&self.stored_shape(chunk));
        let mut strides: Dims = chunk.into();
        for (&dim, &stride) in self.dims.iter().zip(&stored) {
            strides[dim] = stride;
        }
        strides
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_stored_order() {
        let order = CellOrder::new(&[2, 0, 1]).unwrap();
        assert_eq!(order.stored_shape(&[2, 3, 4]).as_slice(), [4, 2, 3]);
        assert_eq!(order.strides(&[2, 3, 4]).as_slice(), [3, 1, 6]);
        assert!(!order.is_row_major() && CellOrder::row_major(3).is_row_major());
        assert!(CellOrder::new(&[]).unwrap().is_row_major());
    }

    #[test]
    fn only_permutations_are_orders() {
        for wrong in [&[0, 0][..], &[1, 2], &[0, 64], &[0, 1 << 40]] {
            assert!(
                CellOrder::new(wrong)
                    .unwrap_err()
                    .message()
                    .contains("permutation")
            );
        }
        let all: Vec<usize> = (0..33).collect();
        assert!(CellOrder::new(&all).is_err());
        assert!(CellOrder::new(&all[..32]).is_ok());
    }
}
