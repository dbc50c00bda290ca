//! Cuts a region into smaller boxes.
//!
//! Sits on [`Region`]; streams of boxes and bounded copies iterate over what it yields.
//!
//! Invariant: the boxes are disjoint, come in row-major order, and together hold each cell of the
//! region exactly once.

use crate::{Dims, Region};

/// The boxes of a region, made by [`Region::split`] or [`Region::split_aligned`].
#[derive(Clone, Debug)]
pub struct RegionSplit {
    region: Region,
    sides: Dims,
    aligned: bool,
    /// The next box, or `None` when all were given.
    next: Option<Dims>,
}

impl Region {
    /// Boxes of at most `max_shape`, counted from the region's start. A side of 0 counts as 1;
    /// dimensions without an entry are not cut.
    pub fn split(&self, max_shape: &[u64]) -> RegionSplit {
        RegionSplit::new(self, max_shape, false)
    }

    /// Boxes of at most `max_shape` that are cut only at multiples of `max_shape` in the array,
    /// so that with a multiple of the chunk shape no two boxes share a chunk.
    pub fn split_aligned(&self, max_shape: &[u64]) -> RegionSplit {
        RegionSplit::new(self, max_shape, true)
    }
}

impl RegionSplit {
    fn new(region: &Region, max_shape: &[u64], aligned: bool) -> RegionSplit {
        let side = |dim| max_shape.get(dim).copied().unwrap_or(u64::MAX).max(1);
        RegionSplit {
            sides: (0..region.rank()).map(side).collect(),
            aligned,
            next: (!region.is_empty()).then(|| region.start().into()),
            region: region.clone(),
        }
    }

    /// Where the box that starts at `from` ends along a dimension.
    fn cut(&self, dim: usize, from: u64) -> u64 {
        let side = self.sides[dim];
        let used = if self.aligned { from % side } else { 0 };
        from.saturating_add(side - used).min(self.region.end(dim))
    }
}

impl Iterator for RegionSplit {
    type Item = Region;

    fn next(&mut self) -> Option<Region> {
        let start = self.next.take()?;
        let shape: Dims = (0..start.len())
            .map(|dim| self.cut(dim, start[dim]) - start[dim])
            .collect();
        let mut following = start.clone();
        for dim in (0..start.len()).rev() {
            following[dim] += shape[dim];
            if following[dim] < self.region.end(dim) {
                self.next = Some(following);
                break;
            }
            following[dim] = self.region.start()[dim];
        }
        Some(Region::trusted(start, shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    fn texts(split: RegionSplit) -> Vec<String> {
        split.map(|region| region.to_string()).collect()
    }

    #[test]
    fn boxes_come_in_row_major_order() {
        let region = Region::new([1, 4], [3, 5]).unwrap();
        assert_eq!(
            texts(region.split(&[2, 3])),
            ["[1:3, 4:7]", "[1:3, 7:9]", "[3:4, 4:7]", "[3:4, 7:9]"]
        );
        assert_eq!(
            texts(region.split_aligned(&[2, 3])),
            ["[1:2, 4:6]", "[1:2, 6:9]", "[2:4, 4:6]", "[2:4, 6:9]"]
        );
        assert_eq!(texts(region.split(&[2])), ["[1:3, 4:9]", "[3:4, 4:9]"]);
    }

    #[test]
    fn empty_regions_have_no_box_and_scalars_one() {
        assert_eq!(
            Region::new([3, 3], [2, 0]).unwrap().split(&[1, 1]).count(),
            0
        );
        assert_eq!(
            Region::whole(&Shape::new([]).unwrap()).split(&[]).count(),
            1
        );
        assert_eq!(Region::new([0], [3]).unwrap().split(&[0]).count(), 3);
    }
}
