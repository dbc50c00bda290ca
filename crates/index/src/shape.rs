//! The sides of an array.
//!
//! The base of every other module here.
//!
//! Invariant: a [`Shape`] has at most [`MAX_RANK`] sides, and the product of its non-zero sides
//! fits in `i64`; so strides, offsets and cell counts of valid coordinates never overflow `u64`.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::{Error, Result};

/// The largest number of dimensions, as in HDF5.
pub const MAX_RANK: usize = 32;

/// One number per dimension; up to six live without an allocation.
pub type Dims = SmallVec<[u64; 6]>;

/// The sides of an array, outermost first; no sides at all is a scalar of one cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct Shape(Dims);

impl Shape {
    /// Checks the rank and that the cells can be counted.
    pub fn new(sides: impl IntoIterator<Item = u64>) -> Result<Shape> {
        // One more than allowed is enough to refuse, however long the iterator is.
        let sides: Dims = sides.into_iter().take(MAX_RANK + 1).collect();
        checked_cells(&sides)?;
        Ok(Shape(sides))
    }

    /// For sides that are known to keep the invariant, such as parts of another shape.
    pub(crate) fn trusted(sides: Dims) -> Shape {
        debug_assert!(checked_cells(&sides).is_ok());
        Shape(sides)
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of cells: 1 for a scalar, 0 when a side is 0.
    pub fn num_cells(&self) -> u64 {
        self.0.iter().product()
    }

    /// How many cells apart neighbours along each dimension lie in row-major order.
    pub fn strides(&self) -> Dims {
        row_major_strides(&self.0)
    }

    /// The row-major position of a cell; `coords` must lie within the shape.
    pub fn offset_of(&self, coords: &[u64]) -> u64 {
        debug_assert_eq!(coords.len(), self.rank());
        self.0
            .iter()
            .zip(coords)
            .fold(0, |offset, (side, at)| offset * side + at)
    }

    /// The cell at a row-major position, which must be less than the number of cells.
    pub fn coords_of(&self, offset: u64) -> Dims {
        debug_assert!(offset < self.num_cells());
        let mut rest = offset;
        let mut coords: Dims = self.0.clone();
        for at in coords.iter_mut().rev() {
            let side = (*at).max(1);
            *at = rest % side;
            rest /= side;
        }
        coords
    }
}

/// Row-major strides in cells. Zero sides count as 1, so that strides stay positive.
pub(crate) fn row_major_strides(sides: &[u64]) -> Dims {
    let mut strides: Dims = sides.into();
    let mut cells = 1;
    for stride in strides.iter_mut().rev() {
        let side = (*stride).max(1);
        *stride = cells;
        cells *= side;
    }
    strides
}

/// The number of cells of a box with these sides, or why there cannot be such a box.
pub(crate) fn checked_cells(sides: &[u64]) -> Result<u64> {
    if sides.len() > MAX_RANK {
        return Err(
            Error::invalid(format!("more than {MAX_RANK} dimensions are not supported"))
                .with_hint("merge dimensions that are always read together"),
        );
    }
    let mut cells: u64 = 1;
    for &side in sides.iter().filter(|&&side| side != 0) {
        cells = cells
            .checked_mul(side)
            .filter(|&cells| cells <= i64::MAX as u64)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "the shape {} has too many cells to count",
                    Tuple(sides)
                ))
                .with_hint("the product of the sides must be less than 2^63")
            })?;
    }
    Ok(if sides.contains(&0) { 0 } else { cells })
}

/// Prints sides as Python prints a tuple.
pub(crate) struct Tuple<'a>(pub(crate) &'a [u64]);

impl fmt::Display for Tuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (dim, side) in self.0.iter().enumerate() {
            write!(f, "{}{side}", if dim == 0 { "" } else { ", " })?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Tuple(&self.0).fmt(f)
    }
}

impl Deref for Shape {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.0
    }
}

impl AsRef<[u64]> for Shape {
    fn as_ref(&self) -> &[u64] {
        &self.0
    }
}

impl TryFrom<Vec<u64>> for Shape {
    type Error = Error;

    fn try_from(sides: Vec<u64>) -> Result<Shape> {
        Shape::new(sides)
    }
}

impl TryFrom<&[u64]> for Shape {
    type Error = Error;

    fn try_from(sides: &[u64]) -> Result<Shape> {
        Shape::new(sides.iter().copied())
    }
}

impl From<Shape> for Vec<u64> {
    fn from(shape: Shape) -> Vec<u64> {
        shape.0.into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_coordinates_are_inverse() {
        let shape = Shape::new([3, 1, 4]).unwrap();
        assert_eq!(shape.strides().as_slice(), [4, 4, 1]);
        for offset in 0..shape.num_cells() {
            assert_eq!(shape.offset_of(&shape.coords_of(offset)), offset);
        }
        assert_eq!(shape.coords_of(7).as_slice(), [1, 0, 3]);
    }

    #[test]
    fn a_scalar_has_one_cell_and_a_zero_side_none() {
        let scalar = Shape::new([]).unwrap();
        assert_eq!(
            (scalar.num_cells(), scalar.offset_of(&[]), scalar.rank()),
            (1, 0, 0)
        );
        assert!(scalar.coords_of(0).is_empty());
        assert_eq!(Shape::new([5, 0, 7]).unwrap().num_cells(), 0);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        assert!(Shape::new([1 << 62]).is_ok());
        assert!(Shape::new([1 << 32, 1 << 31]).is_err());
        assert!(Shape::new([u64::MAX]).is_err());
        // The strides of the empty array would overflow all the same.
        assert!(Shape::new([0, 1 << 40, 1 << 40]).is_err());
        assert!(Shape::new([1; 32]).is_ok());
        let error = Shape::new([1; 33]).unwrap_err();
        assert!(error.message().contains("32 dimensions"), "{error}");
        assert!(Shape::new(std::iter::repeat(1)).is_err());
    }

    #[test]
    fn shapes_print_as_tuples() {
        let text = |sides: &[u64]| Shape::try_from(sides).unwrap().to_string();
        assert_eq!(text(&[3, 4]), "(3, 4)");
        assert_eq!(text(&[3]), "(3,)");
        assert_eq!(text(&[]), "()");
    }
}
