//! Selections that list their cells.
//!
//! Sits under [`crate::Selection`]. The order is the caller's and duplicates are allowed: cell `i`
//! of the result is point `i`.
//!
//! Invariant: the coordinates are a whole number of points of the rank, which is at least 1.

use std::fmt;
use std::sync::Arc;

use crate::{Dims, Error, MAX_RANK, Region, Result};

/// A list of cells; clones share the coordinates.
#[derive(Clone, PartialEq, Eq)]
pub struct Points {
    rank: usize,
    coords: Arc<[u64]>,
}

impl Points {
    /// Takes the coordinates of one point after another.
    pub fn new(rank: usize, flat_coords: Vec<u64>) -> Result<Points> {
        if rank == 0 || rank > MAX_RANK {
            return Err(Error::invalid(format!(
                "points need 1 to {MAX_RANK} dimensions, but have {rank}"
            ))
            .with_hint("a scalar is read as a whole"));
        }
        if !flat_coords.len().is_multiple_of(rank) {
            return Err(Error::invalid(format!(
                "{} coordinates are not a whole number of points of {rank} dimensions",
                flat_coords.len()
            ))
            .with_hint("give one coordinate per dimension for every point"));
        }
        Ok(Points {
            rank,
            coords: flat_coords.into(),
        })
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of points, duplicates included.
    pub fn len(&self) -> usize {
        self.coords.len() / self.rank
    }

    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.coords.is_empty()
    }

    /// The coordinates of all points, one point after another.
    pub fn flat_coords(&self) -> &[u64] {
        &self.coords
    }

    /// The points in the caller's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u64]> {
        self.coords.chunks_exact(self.rank)
    }

    /// The coordinates of a point, which must be less than [`Points::len`].
    pub fn point(&self, index: usize) -> &[u64] {
        &self.coords[index * self.rank..][..self.rank]
    }

    /// The smallest box around the points, if there are any.
    pub fn bounding(&self) -> Option<Region> {
        let mut points = self.iter();
        let mut low: Dims = points.next()?.into();
        let mut high = low.clone();
        for point in points {
            for dim in 0..self.rank {
                low[dim] = low[dim].min(point[dim]);
                high[dim] = high[dim].max(point[dim]);
            }
        }
        let shape: Option<Dims> = low
            .iter()
            .zip(&high)
            .map(|(low, high)| (high - low).checked_add(1))
            .collect();
        Region::new(low, shape?).ok()
    }
}

/// The size only: a list may be long.
impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Points")
            .field("rank", &self.rank)
            .field("len", &self.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_keep_their_order() {
        let points = Points::new(2, vec![5, 1, 0, 9, 5, 1]).unwrap();
        assert_eq!((points.len(), points.point(1)), (3, &[0, 9][..]));
        assert_eq!(points.bounding().unwrap().to_string(), "[0:6, 1:10]");
        assert!(Points::new(2, vec![]).unwrap().bounding().is_none());
    }

    #[test]
    fn wrong_lists_are_refused() {
        assert!(
            Points::new(2, vec![1, 2, 3])
                .unwrap_err()
                .message()
                .contains("3 coordinates")
        );
        assert!(Points::new(0, vec![]).is_err());
        assert!(Points::new(33, vec![]).is_err());
    }
}
