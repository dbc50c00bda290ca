//! Regular selections: one [`DimSlab`] per dimension.
//!
//! Sits between [`crate::DimSlab`] and [`crate::Selection`].
//!
//! Invariant: every dimension is in the canonical form of [`DimSlab`], so equal selections are
//! equal values, and the number of cells fits in `i64`.

use std::fmt;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::shape::checked_cells;
use crate::{DimSlab, Dims, Error, Region, Result};

/// A regular pattern of blocks in each dimension, as HDF5 has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<DimSlab>", into = "Vec<DimSlab>")]
pub struct Hyperslab {
    dims: SmallVec<[DimSlab; 6]>,
}

impl Hyperslab {
    /// Checks ranks, overlaps and overflow. A count or block of 0 selects nothing.
    pub fn new(start: &[u64], stride: &[u64], count: &[u64], block: &[u64]) -> Result<Hyperslab> {
        let rank = start.len();
        if [stride.len(), count.len(), block.len()]
            .iter()
            .any(|&len| len != rank)
        {
            return Err(Error::invalid(format!(
                "a hyperslab has {rank} starts, {} strides, {} counts and {} blocks",
                stride.len(),
                count.len(),
                block.len()
            ))
            .with_hint("give one of each per dimension"));
        }
        Hyperslab::from_dims((0..rank).map(|dim| DimSlab {
            start: start[dim],
            stride: stride[dim],
            count: count[dim],
            block: block[dim],
        }))
    }

    /// The same from one slab per dimension.
    pub fn from_dims(dims: impl IntoIterator<Item = DimSlab>) -> Result<Hyperslab> {
        let mut normalised = SmallVec::new();
        for (dim, slab) in dims.into_iter().take(crate::MAX_RANK + 1).enumerate() {
            normalised.push(slab.normalised(dim)?);
        }
        let hyperslab = Hyperslab { dims: normalised };
        checked_cells(&hyperslab.result_shape())?;
        Ok(hyperslab)
    }

    /// The cells of a box.
    pub fn from_region(region: &Region) -> Hyperslab {
        let sides = region.start().iter().zip(region.shape());
        Hyperslab {
            dims: sides
                .map(|(&start, &side)| DimSlab::contiguous(start, side))
                .collect(),
        }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// One slab per dimension, in canonical form.
    pub fn dims(&self) -> &[DimSlab] {
        &self.dims
    }

    /// The selected coordinates per dimension.
    pub fn result_shape(&self) -> Dims {
        self.dims.iter().map(DimSlab::num_cells).collect()
    }

    /// The number of selected cells.
    pub fn num_cells(&self) -> u64 {
        self.dims.iter().map(DimSlab::num_cells).product()
    }

    /// True if nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.dims.iter().any(|slab| slab.count == 0)
    }

    /// The smallest box around the selected cells, if there are any.
    pub fn bounding(&self) -> Option<Region> {
        if self.is_empty() {
            return None;
        }
        let start: Dims = self.dims.iter().map(|slab| slab.start).collect();
        let shape: Dims = self
            .dims
            .iter()
            .map(|slab| slab.end() - slab.start)
            .collect();
        // The box around few cells can have more cells than can be counted.
        Region::new(start, shape).ok()
    }

    /// The box this is, if every dimension is in one piece; an empty selection is an empty box.
    pub fn as_region(&self) -> Option<Region> {
        if self.dims.iter().any(|slab| slab.count > 1) {
            return None;
        }
        let start = self.dims.iter().map(|slab| slab.start).collect();
        Some(Region::trusted(start, self.result_shape()))
    }

    /// True if the cell is selected.
    pub fn contains_point(&self, point: &[u64]) -> bool {
        point.len() == self.rank()
            && self
                .dims
                .iter()
                .zip(point)
                .all(|(slab, &x)| slab.first_from(x) == Some(x))
    }
}

/// Slices as NumPy writes them; blocks of several cells add `/block` to the step.
impl fmt::Display for Hyperslab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (dim, slab) in self.dims.iter().enumerate() {
            write!(
                f,
                "{}{}:{}",
                if dim == 0 { "" } else { ", " },
                slab.start,
                slab.end()
            )?;
            if slab.count > 1 {
                write!(f, ":{}", slab.stride)?;
                if slab.block > 1 {
                    write!(f, "/{}", slab.block)?;
                }
            }
        }
        f.write_str("]")
    }
}

impl TryFrom<Vec<DimSlab>> for Hyperslab {
    type Error = Error;

    fn try_from(dims: Vec<DimSlab>) -> Result<Hyperslab> {
        Hyperslab::from_dims(dims)
    }
}

impl From<Hyperslab> for Vec<DimSlab> {
    fn from(hyperslab: Hyperslab) -> Vec<DimSlab> {
        hyperslab.dims.into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_and_bounds_follow_the_blocks() {
        let slab = Hyperslab::new(&[1, 0], &[4, 2], &[3, 5], &[2, 1]).unwrap();
        assert_eq!(slab.result_shape().as_slice(), [6, 5]);
        assert_eq!(slab.num_cells(), 30);
        assert_eq!(slab.bounding().unwrap().to_string(), "[1:11, 0:9]");
        assert_eq!(slab.to_string(), "[1:11:4/2, 0:9:2]");
        assert!(slab.as_region().is_none());
        assert!(slab.contains_point(&[6, 8]) && !slab.contains_point(&[7, 8]));
        assert!(!slab.contains_point(&[0, 0]) && !slab.contains_point(&[6]));
    }

    #[test]
    fn nothing_is_a_selection() {
        let none = Hyperslab::new(&[5, 5], &[1, 1], &[0, 3], &[1, 1]).unwrap();
        assert_eq!(none.result_shape().as_slice(), [0, 3]);
        assert!(none.is_empty() && none.bounding().is_none());
        assert_eq!(none.as_region().unwrap().num_cells(), 0);
    }

    #[test]
    fn wrong_calls_are_refused() {
        assert!(Hyperslab::new(&[0], &[1, 1], &[1], &[1]).is_err());
        let overlap = Hyperslab::new(&[0], &[2], &[2], &[3]).unwrap_err();
        assert!(overlap.to_string().contains("overlap"), "{overlap}");
        assert!(Hyperslab::new(&[0; 2], &[1; 2], &[1 << 32; 2], &[1; 2]).is_err());
        assert!(Hyperslab::new(&[0; 33], &[1; 33], &[1; 33], &[1; 33]).is_err());
    }
}
