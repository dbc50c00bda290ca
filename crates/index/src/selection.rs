//! Which cells of an array are wanted.
//!
//! Sits on the kinds of selection ([`Hyperslab`], [`Union`], [`Points`]) and under
//! [`crate::ChunkGrid`], which cuts a selection into parts.
//!
//! Invariant: the order of the result is fixed by the selection alone: row-major over the array,
//! except for points, which keep the caller's order.

use crate::{DimSlab, Dims, Error, Hyperslab, Points, Region, Result, Shape, Union};

/// A set (or for points a list) of cells.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Every cell, whatever the array's shape.
    All,
    /// A regular pattern; the result has its shape.
    Hyperslab(Hyperslab),
    /// The cells of several hyperslabs, each once; the result has one dimension.
    Union(Union),
    /// A list of cells; the result has one dimension.
    Points(Points),
}

impl Selection {
    /// The cells of a box.
    pub fn region(region: &Region) -> Selection {
        Selection::Hyperslab(Hyperslab::from_region(region))
    }

    /// The union of hyperslabs of one rank. A union that is regular comes back as one hyperslab,
    /// whose result has the same cells in the same order.
    pub fn from_hyperslabs(mut hyperslabs: Vec<Hyperslab>) -> Result<Selection> {
        let Some(first) = hyperslabs.first() else {
            return Err(Error::invalid("a selection needs at least one hyperslab")
                .with_hint("select nothing with a hyperslab whose count is 0"));
        };
        let rank = first.rank();
        if let Some(other) = hyperslabs.iter().find(|other| other.rank() != rank) {
            return Err(Error::invalid(format!(
                "a union has hyperslabs of {rank} and of {} dimensions",
                other.rank()
            ))
            .with_hint("give every hyperslab the rank of the array"));
        }
        if hyperslabs.len() > 1
            && rank > 0
            && let Some(union) = Union::new(&hyperslabs)?
        {
            return Ok(match union.as_hyperslab() {
                Some(hyperslab) => Selection::Hyperslab(hyperslab),
                None => Selection::Union(union),
            });
        }
        // One hyperslab, or several that are all empty or all the one cell of a scalar.
        Ok(Selection::Hyperslab(hyperslabs.swap_remove(0)))
    }

    /// All combinations of coordinates, of which each axis has a list that rises: the cells at rows 1, 5
    /// and 6 of columns 2 and 9, say. The cells come in row-major order, so the result has as many
    /// cells along each axis as its list. It costs the sum of the lists, never their product.
    pub fn outer(axes: &[Vec<u64>]) -> Result<Selection> {
        if axes.is_empty() || axes.len() > crate::MAX_RANK {
            return Err(Error::invalid(format!(
                "lists of coordinates for {} dimensions were given",
                axes.len()
            ))
            .with_hint(format!("give 1 to {} lists", crate::MAX_RANK)));
        }
        let rises = |axis: &Vec<u64>| axis.windows(2).all(|pair| pair[0] < pair[1]);
        if let Some(dim) = axes.iter().position(|axis| !rises(axis)) {
            return Err(
                Error::invalid(format!("the coordinates in dimension {dim} do not rise"))
                    .with_hint("sort them, and name each once"),
            );
        }
        Ok(match Union::outer(axes)? {
            None => Selection::Hyperslab(Hyperslab::from_dims(
                axes.iter().map(|_| DimSlab::contiguous(0, 0)),
            )?),
            Some(union) => match union.as_hyperslab() {
                Some(hyperslab) => Selection::Hyperslab(hyperslab),
                None => Selection::Union(union),
            },
        })
    }

    /// A list of cells, the coordinates of one after another; see [`Points::new`].
    pub fn points(rank: usize, flat_coords: Vec<u64>) -> Result<Selection> {
        Ok(Selection::Points(Points::new(rank, flat_coords)?))
    }

    /// The number of dimensions; `None` if the selection fits any.
    pub fn rank(&self) -> Option<usize> {
        match self {
            Selection::All => None,
            Selection::Hyperslab(hyperslab) => Some(hyperslab.rank()),
            Selection::Union(union) => Some(union.rank()),
            Selection::Points(points) => Some(points.rank()),
        }
    }

    /// The regular pattern this is on an array of the given shape, if it is one.
    pub fn as_hyperslab(&self, shape: &Shape) -> Option<Hyperslab> {
        match self {
            Selection::All => Some(Hyperslab::from_region(&Region::whole(shape))),
            Selection::Hyperslab(hyperslab) => Some(hyperslab.clone()),
            Selection::Union(_) | Selection::Points(_) => None,
        }
    }

    /// Checks the rank and the bounds against an array's shape.
    pub fn check(&self, shape: &Shape) -> Result<()> {
        let Some(rank) = self.rank() else {
            return Ok(());
        };
        if rank != shape.rank() {
            return Err(Error::invalid(format!(
                "the selection has {rank} dimensions, but the array's shape is {shape}"
            ))
            .with_hint("give one start, stride, count and block per dimension of the array"));
        }
        match self {
            Selection::All => Ok(()),
            Selection::Hyperslab(hyperslab) if hyperslab.is_empty() => Ok(()),
            Selection::Hyperslab(hyperslab) => {
                check_ends(hyperslab.dims().iter().map(DimSlab::end), shape)
            }
            Selection::Union(union) => check_ends(union.ends().iter().copied(), shape),
            Selection::Points(points) => check_points(points, shape),
        }
    }

    /// The number of cells of the result.
    pub fn num_cells(&self, shape: &Shape) -> u64 {
        match self {
            Selection::All => shape.num_cells(),
            Selection::Hyperslab(hyperslab) => hyperslab.num_cells(),
            Selection::Union(union) => union.num_cells(),
            Selection::Points(points) => points.len() as u64,
        }
    }

    /// The shape of the result: the array's, the hyperslab's, or one dimension.
    pub fn result_shape(&self, shape: &Shape) -> Shape {
        match self {
            Selection::All => shape.clone(),
            Selection::Hyperslab(hyperslab) => Shape::trusted(hyperslab.result_shape()),
            Selection::Union(_) | Selection::Points(_) => {
                Shape::trusted(Dims::from_iter([self.num_cells(shape)]))
            }
        }
    }

    /// The smallest box around the cells, if there are any.
    pub fn bounding(&self, shape: &Shape) -> Option<Region> {
        match self {
            Selection::All => Some(Region::whole(shape)).filter(|region| !region.is_empty()),
            Selection::Hyperslab(hyperslab) => hyperslab.bounding(),
            Selection::Union(union) => union.bounding(),
            Selection::Points(points) => points.bounding(),
        }
    }
}

impl From<Hyperslab> for Selection {
    fn from(hyperslab: Hyperslab) -> Selection {
        Selection::Hyperslab(hyperslab)
    }
}

fn check_ends(ends: impl Iterator<Item = u64>, shape: &Shape) -> Result<()> {
    for (dim, (end, &side)) in ends.zip(shape.iter()).enumerate() {
        if end > side {
            return Err(Error::invalid(format!(
                "the selection ends at {end} in dimension {dim}, beyond the bound {side} of the array's shape {shape}"
            ))
            .with_hint(format!("select coordinates below {side} in dimension {dim}")));
        }
    }
    Ok(())
}

fn check_points(points: &Points, shape: &Shape) -> Result<()> {
    for (index, point) in points.iter().enumerate() {
        for (dim, (&at, &side)) in point.iter().zip(shape.iter()).enumerate() {
            if at >= side {
                return Err(Error::invalid(format!(
                    "point {index} has coordinate {at} in dimension {dim}, beyond the bound {side} of the array's shape {shape}"
                ))
                .with_hint(format!("select coordinates below {side} in dimension {dim}")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab(start: &[u64], count: &[u64]) -> Hyperslab {
        Hyperslab::from_region(&Region::new(start, count).unwrap())
    }

    #[test]
    fn unions_become_hyperslabs_where_they_are_regular() {
        let joined =
            Selection::from_hyperslabs(vec![slab(&[0, 0], &[2, 3]), slab(&[2, 0], &[2, 3])]);
        assert!(matches!(joined.unwrap(), Selection::Hyperslab(h) if h == slab(&[0, 0], &[4, 3])));
        let apart =
            Selection::from_hyperslabs(vec![slab(&[0, 0], &[2, 3]), slab(&[2, 1], &[2, 3])]);
        assert!(matches!(apart.unwrap(), Selection::Union(u) if u.num_cells() == 12));
        assert!(Selection::from_hyperslabs(vec![]).is_err());
        let ranks = Selection::from_hyperslabs(vec![slab(&[0], &[1]), slab(&[0, 0], &[1, 1])]);
        assert!(ranks.unwrap_err().message().contains("1 and of 2"));
        let empty = Selection::from_hyperslabs(vec![slab(&[0], &[0]), slab(&[3], &[0])]).unwrap();
        assert_eq!(empty.num_cells(&Shape::new([2]).unwrap()), 0);
        let scalar = Selection::from_hyperslabs(vec![slab(&[], &[]), slab(&[], &[])]).unwrap();
        assert_eq!(scalar.num_cells(&Shape::new([]).unwrap()), 1);
    }

    #[test]
    fn outer_selections_are_all_combinations() {
        let chosen = Selection::outer(&[vec![1, 5, 6], vec![2, 9]]).unwrap();
        let Selection::Union(union) = &chosen else {
            panic!("{chosen:?}");
        };
        let mut place = 0;
        for i in 0..10 {
            for j in 0..12 {
                let inside = [1, 5, 6].contains(&i) && [2, 9].contains(&j);
                assert_eq!(union.contains_point(&[i, j]), inside);
                if inside {
                    assert_eq!(union.rank_of(&[i, j]), place);
                    place += 1;
                }
            }
        }
        assert_eq!(union.num_cells(), place);
        // Many of each cost their sum.
        let odd: Vec<u64> = (0..3000).map(|k| k * k).collect();
        let wide = Selection::outer(&[odd.clone(), odd]).unwrap();
        assert!(
            matches!(wide, Selection::Union(u) if u.num_spans() < 6001 && u.num_cells() == 9_000_000)
        );
        let regular = Selection::outer(&[vec![3, 4, 5], vec![0, 2, 4]]).unwrap();
        assert!(matches!(regular, Selection::Hyperslab(_)));
        let none = Selection::outer(&[vec![3], vec![]]).unwrap();
        assert_eq!(none.num_cells(&Shape::new([9, 9]).unwrap()), 0);
        assert!(Selection::outer(&[]).is_err());
        for bad in [vec![2, 2], vec![3, 1]] {
            assert!(
                Selection::outer(&[vec![0], bad])
                    .unwrap_err()
                    .message()
                    .contains("dimension 1")
            );
        }
    }

    #[test]
    fn bounds_name_the_dimension_and_the_shape() {
        let shape = Shape::new([10, 20]).unwrap();
        let error = Selection::from(slab(&[0, 15], &[10, 6]))
            .check(&shape)
            .unwrap_err();
        for word in ["21", "dimension 1", "bound 20", "(10, 20)"] {
            assert!(error.message().contains(word), "{error}");
        }
        let error = Selection::points(2, vec![0, 0, 10, 3])
            .unwrap()
            .check(&shape)
            .unwrap_err();
        assert!(error.message().contains("point 1") && error.message().contains("dimension 0"));
        assert!(Selection::from(slab(&[0], &[1])).check(&shape).is_err());
        assert!(
            Selection::from(slab(&[10, 20], &[0, 0]))
                .check(&shape)
                .is_ok()
        );
        let union = vec![slab(&[0, 0], &[2, 3]), slab(&[9, 1], &[2, 3])];
        assert!(
            Selection::from_hyperslabs(union)
                .unwrap()
                .check(&shape)
                .is_err()
        );
        assert!(Selection::All.check(&shape).is_ok());
    }
}
