//! One tile of a virtual dataset: which of its cells are which cells of a source.
//!
//! Under [`super`]. Selections that are regular on all sides are matched dimension by dimension; any
//! other line by line, which is slower and always possible.

use hyperslab_format::hdf5::{Slab, Stored};
use hyperslab_index::{
    CellOrder, ChunkGrid, DimSlab, Hyperslab, Selection, Shape, StridedCopy, Target,
};

use super::axis::{self, Axis};
use crate::{Error, Result};

/// Lines of an irregular selection, at most.
const MOST_LINES: usize = 1 << 24;

/// Cells of a source, and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patch {
    pub(super) source: Hyperslab,
    pub(super) target: Target,
}

/// The cells that a selection in a file means, in the order that it gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cells {
    Regular(Vec<Axis>),
    Lines(Vec<Line>),
}

/// Neighbouring cells of one row: the number of the first in row-major order, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    start: u64,
    len: u64,
}

impl Cells {
    /// The cells of a selection in a dataset of this shape. `inner` further dimensions, which are
    /// those of its elements, are selected as a whole; `cells` is how many coordinates a dimension
    /// without limit has.
    pub(super) fn new(
        stored: &Stored,
        shape: &Shape,
        inner: usize,
        cells: Option<u64>,
    ) -> Result<Cells> {
        let outer = shape.rank().saturating_sub(inner);
        let whole = |sides: &[u64]| -> Vec<Axis> {
            let sides = sides.iter();
            sides.map(|side| Axis::contiguous(0, *side)).collect()
        };
        match stored {
            Stored::None => Ok(Cells::Lines(Vec::new())),
            Stored::All => Ok(Cells::Regular(whole(&shape[..]))),
            Stored::Regular(slabs) => {
                check_rank(slabs.len(), outer)?;
                let mut dims = Vec::with_capacity(shape.rank());
                for (slab, side) in slabs.iter().zip(&shape[..]) {
                    let dim = limited(slab, *side, cells)?;
                    if dim.end() > *side {
                        return Err(outside());
                    }
                    dims.push(dim);
                }
                dims.extend(whole(&shape[outer..]));
                Ok(Cells::Regular(dims))
            }
            Stored::Boxes(boxes) => {
                let mut lines = Vec::new();
                for corners in boxes {
                    check_rank(corners.len(), outer)?;
                    let mut dims = Vec::with_capacity(shape.rank());
                    for ((first, last), side) in corners.iter().zip(&shape[..]) {
                        if first > last || last >= side {
                            return Err(outside());
                        }
                        dims.push(Axis::contiguous(*first, last - first + 1));
                    }
                    dims.extend(whole(&shape[outer..]));
                    lines_of(&dims, shape, &mut lines)?;
                }
                lines.sort_by_key(|line| line.start);
                Ok(Cells::Lines(lines))
            }
            Stored::Points(points) => {
                let mut lines = Vec::new();
                for point in points {
                    check_rank(point.len(), outer)?;
                    if point.iter().zip(&shape[..]).any(|(at, side)| at >= side) {
                        return Err(outside());
                    }
                    let at = point.iter().map(|at| Axis::contiguous(*at, 1));
                    let dims: Vec<Axis> = at.chain(whole(&shape[outer..])).collect();
                    lines_of(&dims, shape, &mut lines)?;
                }
                Ok(Cells::Lines(lines))
            }
        }
    }

    fn count(&self) -> u64 {
        match self {
            Cells::Regular(dims) => dims
                .iter()
                .fold(1, |n: u64, dim| n.saturating_mul(dim.cells)),
            Cells::Lines(lines) => lines.iter().map(|line| line.len).sum(),
        }
    }

    fn lines(&self, shape: &Shape) -> Result<Vec<Line>> {
        match self {
            Cells::Regular(dims) => {
                let mut lines = Vec::new();
                lines_of(dims, shape, &mut lines)?;
                Ok(lines)
            }
            Cells::Lines(lines) => Ok(lines.clone()),
        }
    }

    /// True unless it is certain that they have no cell in common.
    pub(super) fn may_overlap(&self, other: &Cells) -> bool {
        match (self, other) {
            (Cells::Regular(one), Cells::Regular(other)) => {
                let mut dims = one.iter().zip(other);
                dims.all(|(one, other)| axis::meet(one, other))
            }
            _ => true,
        }
    }

    /// True if there is a chance that a query selects some of them.
    pub(super) fn may_meet(&self, query: &Selection, shape: &Shape) -> bool {
        let Some(bounds) = query.bounding(shape) else {
            return false;
        };
        match self {
            Cells::Regular(dims) => dims.iter().enumerate().all(|(dim, axis)| {
                let (start, end) = (bounds.start()[dim], bounds.end(dim));
                axis.cells > 0 && axis.start < end && axis.end() > start
            }),
            Cells::Lines(lines) => !lines.is_empty(),
        }
    }
}

/// A slab of a selection; one without limit has so many cells, or ends with the dataset.
fn limited(slab: &Slab, side: u64, cells: Option<u64>) -> Result<Axis> {
    let cells = match slab.is_unlimited() {
        true => cells.unwrap_or_else(|| slab.cells_before(side)),
        false => slab.count.saturating_mul(slab.block),
    };
    Ok(match (slab.count, slab.block) {
        // The stride of a single block means nothing, and may be anything.
        (_, u64::MAX) | (0 | 1, _) => Axis::contiguous(slab.start, cells),
        (_, block) if block == 0 || slab.stride < block => {
            return Err(Error::data("the blocks of a selection overlap"));
        }
        (_, block) => Axis {
            start: slab.start,
            stride: slab.stride,
            block,
            cells,
        },
    })
}

fn check_rank(have: usize, want: usize) -> Result<()> {
    match have == want {
        true => Ok(()),
        false => Err(Error::data(format!(
            "a selection of {have} dimensions is in a dataset of {want}"
        ))),
    }
}

fn outside() -> Error {
    Error::data("the mapping of a virtual dataset leads outside its source")
}

/// Appends the rows of a regular selection.
fn lines_of(dims: &[Axis], shape: &Shape, out: &mut Vec<Line>) -> Result<()> {
    let Some((last, outer)) = dims.split_last() else {
        out.push(Line { start: 0, len: 1 });
        return Ok(());
    };
    if dims.iter().any(|dim| dim.cells == 0) {
        return Ok(());
    }
    let strides = shape.strides();
    let mut at = vec![0; outer.len()];
    loop {
        let row: u64 = outer
            .iter()
            .zip(&at)
            .map(|(dim, position)| dim.at(*position))
            .zip(&strides)
            .map(|(coordinate, stride)| coordinate * stride)
            .sum();
        for (start, len) in last.each_block() {
            if out.len() == MOST_LINES {
                return Err(Error::invalid(
                    "the mapping of a virtual dataset is too irregular to follow",
                ));
            }
            out.push(Line {
                start: row + start,
                len,
            });
        }
        let mut dim = outer.len();
        loop {
            let Some(next) = dim.checked_sub(1) else {
                return Ok(());
            };
            dim = next;
            at[dim] += 1;
            if at[dim] < outer[dim].cells {
                break;
            }
            at[dim] = 0;
        }
    }
}

/// What of a query comes from a source: `place` and `source` are the cells of the tile in the virtual
/// dataset and in its source, which have these shapes, and the result lies as `target` says.
pub(super) fn copies(
    (place, shape): (&Cells, &Shape),
    (source, source_shape): (&Cells, &Shape),
    query: &Selection,
    target: &Target,
) -> Result<Vec<Patch>> {
    let (have, want) = (source.count(), place.count());
    if have != want {
        return Err(Error::data(format!(
            "a tile of a virtual dataset has {want} cells, but its source {have}"
        )));
    }
    if want == 0 {
        return Ok(Vec::new());
    }
    if let (Cells::Regular(place), Cells::Regular(source)) = (place, source)
        && let Some(query) = query.as_hyperslab(shape)
        && let Some(pairs) = pairs(place, source)
    {
        return by_dimension(place, source, &pairs, &query, target);
    }
    by_line(
        (&place.lines(shape)?, shape),
        (&source.lines(source_shape)?, source_shape),
        query,
        target,
    )
}

/// For each dimension of the source the one of the virtual dataset that it is; dimensions with one
/// selected coordinate are none. `None` if cells are not in the same order in both.
fn pairs(place: &[Axis], source: &[Axis]) -> Option<Vec<Option<usize>>> {
    let mut long = (0..place.len()).filter(|dim| place[*dim].cells != 1);
    let mut pairs = Vec::with_capacity(source.len());
    for axis in source {
        pairs.push(match axis.cells {
            1 => None,
            cells => Some(long.next().filter(|dim| place[*dim].cells == cells)?),
        });
    }
    long.next().is_none().then_some(pairs)
}

fn by_dimension(
    place: &[Axis],
    source: &[Axis],
    pairs: &[Option<usize>],
    query: &Hyperslab,
    target: &Target,
) -> Result<Vec<Patch>> {
    let strides = target.strides();
    let mut base = target.base();
    let asked: Vec<Axis> = query.dims().iter().map(Axis::from).collect();
    let one = Axis::contiguous(0, 1);
    for (dim, here) in place.iter().enumerate() {
        if pairs.contains(&Some(dim)) {
            continue;
        }
        match axis::pieces(&asked[dim], here, &one).first() {
            Some(piece) => base += piece.at * strides[dim],
            None => return Ok(Vec::new()),
        }
    }
    // The pieces along every dimension of the source, all of which meet.
    let mut found: Vec<(u64, Vec<DimSlab>, Vec<u64>)> = vec![(base, Vec::new(), Vec::new())];
    for (there, pair) in source.iter().zip(pairs) {
        let pieces = match pair {
            None => vec![(DimSlab::contiguous(there.start, 1), 0, 0)],
            Some(dim) => axis::pieces(&asked[*dim], &place[*dim], there)
                .into_iter()
                .map(|piece| {
                    let stride = strides[*dim];
                    (piece.source, piece.at * stride, piece.step * stride)
                })
                .collect(),
        };
        let mut next = Vec::with_capacity(found.len() * pieces.len());
        for (base, dims, steps) in &found {
            for (slab, at, step) in &pieces {
                let (mut dims, mut steps) = (dims.clone(), steps.clone());
                dims.push(*slab);
                steps.push(*step);
                next.push((base + at, dims, steps));
            }
        }
        found = next;
    }
    found
        .into_iter()
        .map(|(base, dims, steps)| {
            Ok(Patch {
                source: Hyperslab::from_dims(dims)?,
                target: Target::strided(base, steps),
            })
        })
        .collect()
}

fn by_line(
    (place, shape): (&[Line], &Shape),
    (source, source_shape): (&[Line], &Shape),
    query: &Selection,
    target: &Target,
) -> Result<Vec<Patch>> {
    let places = numbered(place, true);
    let sources = numbered(source, false);
    let grid = ChunkGrid::new(shape, shape)?;
    let order = CellOrder::row_major(shape.rank());
    let mut out = Vec::new();
    for part in grid.parts(query)? {
        for copy in part.copies(&order, target) {
            for (start, at, len) in each(&copy) {
                let first = places.partition_point(|(line, _)| line.start + line.len <= start);
                for (line, number) in &places[first..] {
                    if line.start >= start + len {
                        break;
                    }
                    let low = line.start.max(start);
                    let high = (line.start + line.len).min(start + len);
                    let numbers = number + (low - line.start)..number + (high - line.start);
                    let here = at + (low - start);
                    from_lines(&sources, numbers, source_shape, here, &mut out)?;
                }
            }
        }
    }
    Ok(out)
}

/// The pieces of a copy: where each starts, where it goes, and its length.
fn each(copy: &StridedCopy) -> impl Iterator<Item = (u64, u64, u64)> {
    let copy = *copy;
    (0..copy.count).map(move |k| {
        let (src, dst) = (copy.src + k * copy.src_step, copy.dst + k * copy.dst_step);
        (src, dst, copy.len)
    })
}

/// Lines with the number of their first cell in the selection's order, sorted by place if asked.
fn numbered(lines: &[Line], by_place: bool) -> Vec<(Line, u64)> {
    let mut number = 0;
    let mut all: Vec<(Line, u64)> = lines
        .iter()
        .map(|line| {
            let first = number;
            number += line.len;
            (*line, first)
        })
        .collect();
    if by_place {
        all.sort_by_key(|(line, _)| line.start);
    }
    all
}

/// Copies the cells with these numbers, which are neighbours in the result.
fn from_lines(
    sources: &[(Line, u64)],
    numbers: std::ops::Range<u64>,
    shape: &Shape,
    at: u64,
    out: &mut Vec<Patch>,
) -> Result<()> {
    let first = sources.partition_point(|(line, number)| number + line.len <= numbers.start);
    for (line, number) in &sources[first..] {
        if *number >= numbers.end {
            break;
        }
        let low = numbers.start.max(*number);
        let high = numbers.end.min(number + line.len);
        let coords = shape.coords_of(line.start + (low - number));
        let last = coords.len().saturating_sub(1);
        let dims = coords.iter().enumerate().map(|(dim, at)| {
            let side = if dim == last { high - low } else { 1 };
            DimSlab::contiguous(*at, side)
        });
        let mut steps = vec![0; coords.len()];
        if let Some(step) = steps.last_mut() {
            *step = 1;
        }
        out.push(Patch {
            source: Hyperslab::from_dims(dims)?,
            target: Target::strided(at + (low - numbers.start), steps),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every selected cell of a box in a dataset, in order.
    fn selected(slabs: &[Slab], shape: &[u64]) -> Vec<u64> {
        let shape = Shape::new(shape.iter().copied()).unwrap();
        let inside = |at: &[u64]| {
            at.iter().zip(slabs).all(|(at, slab)| {
                let past = at.checked_sub(slab.start);
                past.is_some_and(|past| match slab.count {
                    1 => past < slab.block,
                    _ => past / slab.stride < slab.count && past % slab.stride < slab.block,
                })
            })
        };
        let cells = (0..shape.num_cells()).filter(|cell| inside(&shape.coords_of(*cell)));
        cells.collect()
    }

    fn slab(side: u64) -> impl Strategy<Value = Slab> {
        (0..side, 1..4u64, 0..3u64).prop_flat_map(move |(start, block, gap)| {
            let stride = block + gap;
            let most = (side - start + gap) / stride;
            (Just(start), Just(stride), 0..=most, Just(block)).prop_map(
                |(start, stride, count, block)| Slab {
                    start,
                    // Of a single block it means nothing.
                    stride: if count == 1 { 1 } else { stride },
                    count,
                    block,
                },
            )
        })
    }

    /// Where each cell of the result comes from; `None` for those that no tile has.
    fn naive(place: &[u64], source: &[u64], query: &Selection, shape: &Shape) -> Vec<Option<u64>> {
        let grid = ChunkGrid::new(shape, shape).unwrap();
        let order = CellOrder::row_major(shape.rank());
        let target = Target::packed(query.result_shape(shape));
        let mut out = vec![None; query.num_cells(shape) as usize];
        for part in grid.parts(query).unwrap() {
            for copy in part.copies(&order, &target) {
                for (cell, at, len) in each(&copy) {
                    for i in 0..len {
                        let n = place.iter().position(|other| *other == cell + i);
                        out[(at + i) as usize] = n.map(|n| source[n]);
                    }
                }
            }
        }
        out
    }

    fn found(copies: &[Patch], source: &Shape, cells: usize) -> Vec<Option<u64>> {
        let mut out = vec![None; cells];
        for copy in copies {
            let shape = Shape::new(copy.source.result_shape().iter().copied()).unwrap();
            for i in 0..shape.num_cells() {
                let at = shape.coords_of(i);
                let dims = copy.source.dims().iter().zip(&at);
                let coords: Vec<u64> = dims.map(|(dim, at)| Axis::from(dim).at(*at)).collect();
                let strides = copy.target.strides().iter().zip(&at);
                let to: u64 = strides.map(|(stride, at)| stride * at).sum::<u64>();
                let to = (copy.target.base() + to) as usize;
                assert!(out[to].is_none(), "a cell is written twice");
                out[to] = Some(source.offset_of(&coords));
            }
        }
        out
    }

    proptest! {
        #[test]
        fn cells_come_from_where_they_should(
            (place, source, query, listed) in (
                (slab(7), slab(8)), (slab(9), slab(6)), (slab(7), slab(8)), any::<bool>()
            )
        ) {
            let (shape, source_shape) = (Shape::new([7, 8]).unwrap(), Shape::new([9, 6]).unwrap());
            let place = [place.0, place.1];
            let (mut places, mut sources) = (
                selected(&place, &[7, 8]),
                selected(&[source.0, source.1], &[9, 6]),
            );
            let count = places.len().min(sources.len());
            places.truncate(count);
            sources.truncate(count);
            let points = |cells: &[u64], shape: &Shape| {
                Stored::Points(cells.iter().map(|cell| shape.coords_of(*cell).to_vec()).collect())
            };
            // The same as a list of points, which goes another way.
            let regular = listed || count < selected(&place, &[7, 8]).len()
                || count < selected(&[source.0, source.1], &[9, 6]).len();
            let (stored, from) = match regular {
                true => (points(&places, &shape), points(&sources, &source_shape)),
                false => (
                    Stored::Regular(place.to_vec()),
                    Stored::Regular(vec![source.0, source.1]),
                ),
            };
            let here = Cells::new(&stored, &shape, 0, None).unwrap();
            let there = Cells::new(&from, &source_shape, 0, None).unwrap();
            let dims = [query.0, query.1].map(|slab| DimSlab {
                start: slab.start,
                stride: slab.stride.max(slab.block),
                count: slab.count,
                block: slab.block,
            });
            let query = Selection::Hyperslab(Hyperslab::from_dims(dims).unwrap());
            let target = Target::packed(query.result_shape(&shape));
            let made = copies((&here, &shape), (&there, &source_shape), &query, &target).unwrap();
            let expected = naive(&places, &sources, &query, &shape);
            prop_assert_eq!(found(&made, &source_shape, expected.len()), expected.clone());
            if expected.iter().any(Option::is_some) {
                prop_assert!(here.may_meet(&query, &shape));
            }
        }
    }
}
