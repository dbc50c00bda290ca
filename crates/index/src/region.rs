//! Half-open boxes of cells.
//!
//! Sits on [`crate::Shape`]; chunks, halos and streams of boxes are regions.
//!
//! Invariant: `start + shape` does not overflow in any dimension, and the sides are as those of a
//! [`Shape`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::shape::{Tuple, checked_cells};
use crate::{Dims, Error, Result, Shape};

/// A box of cells: from `start`, `shape` cells along each dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Region {
    start: Dims,
    shape: Dims,
}

#[derive(Serialize, Deserialize)]
struct Fields {
    start: Vec<u64>,
    shape: Vec<u64>,
}

impl Region {
    /// Checks that both have the same rank and that the ends can be represented.
    pub fn new(start: impl AsRef<[u64]>, shape: impl AsRef<[u64]>) -> Result<Region> {
        let (start, shape) = (start.as_ref(), shape.as_ref());
        if start.len() != shape.len() {
            return Err(Error::invalid(format!(
                "a region's start {} and shape {} differ in rank",
                Tuple(start),
                Tuple(shape)
            ))
            .with_hint("give one start and one length per dimension"));
        }
        checked_cells(shape)?;
        if start
            .iter()
            .zip(shape)
            .any(|(start, side)| start.checked_add(*side).is_none())
        {
            return Err(Error::invalid(format!(
                "a region from {} of shape {} ends beyond 2^64",
                Tuple(start),
                Tuple(shape)
            ))
            .with_hint("check the start for a negative number that became unsigned"));
        }
        Ok(Region {
            start: start.into(),
            shape: shape.into(),
        })
    }

    /// For boxes that are known to keep the invariant, such as parts of another box.
    pub(crate) fn trusted(start: Dims, shape: Dims) -> Region {
        debug_assert!(Region::new(&start, &shape).is_ok());
        Region { start, shape }
    }

    /// All cells of an array.
    pub fn whole(shape: &Shape) -> Region {
        Region {
            start: shape.iter().map(|_| 0).collect(),
            shape: shape.iter().copied().collect(),
        }
    }

    /// The first cell.
    pub fn start(&self) -> &[u64] {
        &self.start
    }

    /// The sides.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// One past the last coordinate along a dimension.
    pub fn end(&self, dim: usize) -> u64 {
        self.start[dim] + self.shape[dim]
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.start.len()
    }

    /// The number of cells.
    pub fn num_cells(&self) -> u64 {
        self.shape.iter().product()
    }

    /// True if a side is 0.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The sides as a shape.
    pub fn to_shape(&self) -> Shape {
        Shape::trusted(self.shape.clone())
    }

    /// The cells that both have; `None` if there are none or the ranks differ.
    pub fn intersect(&self, other: &Region) -> Option<Region> {
        if self.rank() != other.rank() {
            return None;
        }
        let mut start = Dims::new();
        let mut shape = Dims::new();
        for dim in 0..self.rank() {
            let low = self.start[dim].max(other.start[dim]);
            let high = self.end(dim).min(other.end(dim));
            if low >= high {
                return None;
            }
            start.push(low);
            shape.push(high - low);
        }
        Some(Region { start, shape })
    }

    /// True if every cell of `other` is in this region; an empty region of the same rank always is.
    pub fn contains(&self, other: &Region) -> bool {
        self.rank() == other.rank()
            && (other.is_empty()
                || (0..self.rank()).all(|dim| {
                    self.start[dim] <= other.start[dim] && other.end(dim) <= self.end(dim)
                }))
    }

    /// True if the cell is in this region.
    pub fn contains_point(&self, point: &[u64]) -> bool {
        point.len() == self.rank()
            && (0..self.rank()).all(|d| self.start[d] <= point[d] && point[d] < self.end(d))
    }

    /// The same box, `by` cells further along each dimension.
    pub fn translate(&self, by: &[u64]) -> Result<Region> {
        self.check_rank(by.len())?;
        let start: Option<Dims> = self
            .start
            .iter()
            .zip(by)
            .map(|(a, b)| a.checked_add(*b))
            .collect();
        let start = start.ok_or_else(|| {
            Error::invalid(format!(
                "the region {self} moved by {} ends beyond 2^64",
                Tuple(by)
            ))
        })?;
        Region::new(start, &self.shape)
    }

    /// The same box seen from `origin`, which becomes the cell 0.
    pub fn relative_to(&self, origin: &[u64]) -> Result<Region> {
        self.check_rank(origin.len())?;
        let start: Option<Dims> = self
            .start
            .iter()
            .zip(origin)
            .map(|(a, b)| a.checked_sub(*b))
            .collect();
        let start = start.ok_or_else(|| {
            Error::invalid(format!("the region {self} starts before {}", Tuple(origin)))
                .with_hint("intersect the region with the box it is taken relative to first")
        })?;
        Ok(Region {
            start,
            shape: self.shape.clone(),
        })
    }

    /// The box with `halo` more cells on both sides of each dimension, cut off at the array's
    /// borders. Dimensions for which `halo` has no entry stay as they are.
    #[must_use]
    pub fn grow(&self, halo: &[u64], bounds: &Shape) -> Region {
        let mut start = Dims::new();
        let mut shape = Dims::new();
        for dim in 0..self.rank() {
            let halo = halo.get(dim).copied().unwrap_or(0);
            let bound = bounds.get(dim).copied().unwrap_or(u64::MAX);
            let low = self.start[dim].saturating_sub(halo).min(bound);
            let high = self.end(dim).saturating_add(halo).min(bound);
            start.push(low);
            shape.push(high - low);
        }
        Region { start, shape }
    }

    fn check_rank(&self, rank: usize) -> Result<()> {
        if rank == self.rank() {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the region {self} has {} dimensions, but {rank} coordinates were given",
            self.rank()
        ))
        .with_hint("give one coordinate per dimension"))
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for dim in 0..self.rank() {
            let comma = if dim == 0 { "" } else { ", " };
            write!(f, "{comma}{}:{}", self.start[dim], self.end(dim))?;
        }
        f.write_str("]")
    }
}

impl TryFrom<Fields> for Region {
    type Error = Error;

    fn try_from(fields: Fields) -> Result<Region> {
        Region::new(fields.start, fields.shape)
    }
}

impl From<Region> for Fields {
    fn from(region: Region) -> Fields {
        Fields {
            start: region.start.into_vec(),
            shape: region.shape.into_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: &[u64], shape: &[u64]) -> Region {
        Region::new(start, shape).unwrap()
    }

    #[test]
    fn intersections_are_the_common_cells() {
        let a = region(&[0, 4], &[3, 4]);
        assert_eq!(a.to_string(), "[0:3, 4:8]");
        assert_eq!(
            a.intersect(&region(&[2, 0], &[9, 5])),
            Some(region(&[2, 4], &[1, 1]))
        );
        assert_eq!(a.intersect(&region(&[3, 4], &[1, 1])), None);
        assert_eq!(a.intersect(&region(&[0], &[1])), None);
        assert!(a.contains(&region(&[1, 5], &[2, 3])));
        assert!(!a.contains(&region(&[1, 5], &[2, 4])));
        assert!(a.contains(&region(&[90, 90], &[0, 1])));
        assert!(a.contains_point(&[2, 7]) && !a.contains_point(&[3, 7]));
        let scalar = region(&[], &[]);
        assert_eq!(scalar.intersect(&scalar), Some(scalar.clone()));
        assert_eq!(scalar.num_cells(), 1);
    }

    #[test]
    fn moving_is_checked() {
        let a = region(&[2, 4], &[3, 4]);
        assert_eq!(a.relative_to(&[2, 1]).unwrap(), region(&[0, 3], &[3, 4]));
        assert!(
            a.relative_to(&[3, 0])
                .unwrap_err()
                .message()
                .contains("starts before")
        );
        assert_eq!(a.translate(&[1, 1]).unwrap(), region(&[3, 5], &[3, 4]));
        assert!(a.translate(&[u64::MAX, 0]).is_err());
        assert!(a.translate(&[u64::MAX - 3, 0]).is_err());
        assert!(a.translate(&[1]).is_err());
        assert!(Region::new([u64::MAX], [1]).is_err());
        assert!(Region::new([0, 0], [1]).is_err());
    }

    #[test]
    fn halos_stop_at_the_border() {
        let bounds = Shape::new([10, 10]).unwrap();
        let grown = region(&[1, 5], &[2, 4]).grow(&[2, 3], &bounds);
        assert_eq!(grown, region(&[0, 2], &[5, 8]));
    }
}
