//! Where the cells of a result lie in the caller's buffer.
//!
//! Sits beside [`crate::CellOrder`]: that one places cells in a stored chunk, this one in memory.
//!
//! A target does not know its selection. [`Target::required_cells`] checks the two against each
//! other once, before any [`crate::Copies`] are made from them.

use crate::shape::{Tuple, row_major_strides};
use crate::{Dims, Error, Result};

/// A base and one stride per dimension of the result, all in cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    base: u64,
    strides: Dims,
}

impl Target {
    /// The result in one piece in row-major order.
    pub fn packed(result_shape: impl AsRef<[u64]>) -> Target {
        Target {
            base: 0,
            strides: row_major_strides(result_shape.as_ref()),
        }
    }

    /// One stride per dimension of the result; unions and points have one dimension.
    pub fn strided(base: u64, strides: impl AsRef<[u64]>) -> Target {
        Target {
            base,
            strides: strides.as_ref().into(),
        }
    }

    /// The place of the result's first cell.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The distance of neighbours along each dimension of the result.
    pub fn strides(&self) -> &[u64] {
        &self.strides
    }

    /// How many cells the buffer must have for a result of this shape.
    pub fn required_cells(&self, result_shape: impl AsRef<[u64]>) -> Result<u64> {
        let shape = result_shape.as_ref();
        if shape.len() != self.strides.len() {
            return Err(Error::invalid(format!(
                "the buffer has {} strides, but the result has the shape {}",
                self.strides.len(),
                Tuple(shape)
            ))
            .with_hint(
                "give one stride per dimension of the result; a union or a list of points has one",
            ));
        }
        if shape.contains(&0) {
            return Ok(0);
        }
        let last = shape
            .iter()
            .zip(&self.strides)
            .try_fold(self.base, |last, (side, stride)| {
                last.checked_add((side - 1).checked_mul(*stride)?)
            });
        last.and_then(|last| last.checked_add(1)).ok_or_else(|| {
            Error::invalid(format!(
                "a result of shape {} with strides {} ends beyond 2^64",
                Tuple(shape),
                Tuple(&self.strides)
            ))
            .with_hint("strides count cells, not bytes, and are not negative")
        })
    }

    /// The stride of a dimension of the result.
    pub(crate) fn stride(&self, dim: usize) -> u64 {
        debug_assert!(
            dim < self.strides.len(),
            "required_cells was not asked first"
        );
        self.strides.get(dim).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_must_hold_the_last_cell() {
        assert_eq!(Target::packed([3, 4]).required_cells([3, 4]).unwrap(), 12);
        assert_eq!(Target::packed([]).required_cells([]).unwrap(), 1);
        assert_eq!(
            Target::strided(5, [10, 2]).required_cells([3, 4]).unwrap(),
            5 + 20 + 6 + 1
        );
        assert_eq!(
            Target::strided(5, [10, 2]).required_cells([3, 0]).unwrap(),
            0
        );
        assert!(Target::strided(0, [1]).required_cells([3, 4]).is_err());
        assert!(Target::strided(0, [u64::MAX]).required_cells([3]).is_err());
        assert!(Target::strided(u64::MAX, [1]).required_cells([1]).is_err());
    }
}
