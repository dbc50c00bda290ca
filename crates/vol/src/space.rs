//! Dataspaces: the cells of a dataset that a program selected, and where they are in its memory.

use std::ffi::c_int;

use hyperslab::format::hdf5::{Slab, Stored};
use hyperslab::{Error, Hyperslab, Result, Selection, Shape};

use crate::abi::Hid;
use crate::library::Library;

/// A dataspace of everything, as a number (`H5S_ALL`).
pub(crate) const ALL: Hid = 0;

/// Kinds of selections (`H5S_sel_type`).
const NONE: c_int = 0;
const POINTS: c_int = 1;
const HYPERSLABS: c_int = 2;
/// A scalar, and a space without any cell (`H5S_class_t`).
const SCALAR: c_int = 0;
const EMPTY: c_int = 2;
/// Runs of memory that are asked for at a time.
const RUNS: usize = 1024;

/// A dataspace that somebody else closes.
#[derive(Clone, Copy)]
pub(crate) struct Space<'a> {
    library: &'a Library,
    id: Hid,
}

impl<'a> Space<'a> {
    pub(crate) fn new(library: &'a Library, id: Hid) -> Self {
        Space { library, id }
    }

    /// Its sides; none for a scalar.
    pub(crate) fn dims(&self) -> Result<Vec<u64>> {
        let api = &self.library.api;
        // SAFETY: the space is open; asking changes nothing.
        let rank = unsafe { (api.H5Sget_simple_extent_ndims)(self.id) };
        let rank = usize::try_from(rank).map_err(|_| failed("the rank of a dataspace"))?;
        let mut dims = vec![0; rank];
        // SAFETY: there is room for as many sides as it has; the largest ones are not wanted.
        let found = unsafe {
            (api.H5Sget_simple_extent_dims)(self.id, dims.as_mut_ptr(), std::ptr::null_mut())
        };
        match found < 0 {
            true => Err(failed("the sides of a dataspace")),
            false => Ok(dims),
        }
    }

    /// Gives it other sides; how far they may grow stays as it is.
    pub(crate) fn resize(&self, dims: &[u64]) -> Result<()> {
        let api = &self.library.api;
        let mut most = vec![0; dims.len()];
        // SAFETY: as in `dims`; there is room for as many sides as it has.
        let status = unsafe {
            let rank = (api.H5Sget_simple_extent_ndims)(self.id);
            if usize::try_from(rank) != Ok(dims.len()) {
                return Err(failed("the rank of a dataspace"));
            }
            (api.H5Sget_simple_extent_dims)(self.id, std::ptr::null_mut(), most.as_mut_ptr());
            (api.H5Sset_extent_simple)(self.id, rank, dims.as_ptr(), most.as_ptr())
        };
        match status < 0 {
            true => Err(failed("a dataspace its sides")),
            false => Ok(()),
        }
    }

    /// True if a side of it may grow without an end.
    pub(crate) fn is_unlimited(&self) -> Result<bool> {
        let mut most = vec![0; self.dims()?.len()];
        // SAFETY: as in `dims`; there is room for as many sides as it has.
        unsafe {
            let call = self.library.api.H5Sget_simple_extent_dims;
            call(self.id, std::ptr::null_mut(), most.as_mut_ptr());
        }
        Ok(most.contains(&u64::MAX))
    }

    /// True if it has no cells at all, by its kind.
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: as in `dims`.
        unsafe { (self.library.api.H5Sget_simple_extent_type)(self.id) == EMPTY }
    }

    /// How many cells are selected.
    pub(crate) fn selected(&self) -> Result<u64> {
        // SAFETY: as in `dims`.
        let count = unsafe { (self.library.api.H5Sget_select_npoints)(self.id) };
        u64::try_from(count).map_err(|_| failed("the selection of a dataspace"))
    }

    /// The cells that are selected, of an array of this shape. Its last dimensions, as many as `inner`
    /// has sides, are those of the elements, which are taken whole.
    pub(crate) fn selection(&self, shape: &Shape, inner: &[u64]) -> Result<Selection> {
        let api = &self.library.api;
        let rank = shape.rank() - inner.len();
        // SAFETY: as in `dims`.
        if unsafe { (api.H5Sget_simple_extent_type)(self.id) } == SCALAR {
            return match self.selected()? {
                0 => nothing(shape.rank()),
                _ => Ok(Selection::All),
            };
        }
        let dims = self.dims()?;
        if dims.len() != rank {
            return Err(Error::invalid(format!(
                "the dataspace of a selection has {} dimensions, and the dataset has {rank}",
                dims.len()
            )));
        }
        // SAFETY: as in `dims`.
        let selection = match unsafe { (api.H5Sget_select_type)(self.id) } {
            NONE => nothing(shape.rank())?,
            POINTS => self.points(rank, inner)?,
            HYPERSLABS => self.hyperslabs(rank, inner)?,
            // All of its own extent, which may differ from that of the dataset.
            _ if dims[..] == shape[..rank] => Selection::All,
            _ => {
                let (start, one) = (vec![0; rank], vec![1; rank]);
                Selection::Hyperslab(slab(&start, &one, &dims, &one, inner)?)
            }
        };
        selection.check(shape)?;
        Ok(selection)
    }

    /// Moves coordinates, those of one cell after another, by the offset that the selection has
    /// (`H5Soffset_simple`): libhdf5 tells it only by the borders of the whole.
    fn moved(&self, rank: usize, coordinates: &mut [u64]) -> Result<()> {
        let lowest = |dim: usize| coordinates.iter().skip(dim).step_by(rank).min().copied();
        let Some(lowest) = (0..rank).map(lowest).collect::<Option<Vec<u64>>>() else {
            return Ok(());
        };
        let (mut first, mut last) = (vec![0; rank], vec![0; rank]);
        // SAFETY: as in `dims`; there is room for two corners.
        let status = unsafe {
            let (first, last) = (first.as_mut_ptr(), last.as_mut_ptr());
            (self.library.api.H5Sget_select_bounds)(self.id, first, last)
        };
        if status < 0 {
            return Err(Error::invalid("the selection reaches beyond the dataset"));
        }
        if first == lowest {
            return Ok(());
        }
        for cell in coordinates.chunks_exact_mut(rank) {
            for (dim, at) in cell.iter_mut().enumerate() {
                *at = at.wrapping_sub(lowest[dim]).wrapping_add(first[dim]);
            }
        }
        Ok(())
    }

    fn points(&self, rank: usize, inner: &[u64]) -> Result<Selection> {
        let api = &self.library.api;
        // SAFETY: as in `dims`.
        let count = unsafe { (api.H5Sget_select_elem_npoints)(self.id) };
        let count = usize::try_from(count).map_err(|_| failed("the points of a selection"))?;
        let mut coordinates = vec![0; count * rank];
        // SAFETY: there is room for the coordinates of all points.
        let status = unsafe {
            let out = coordinates.as_mut_ptr();
            (api.H5Sget_select_elem_pointlist)(self.id, 0, count as u64, out)
        };
        if status < 0 {
            return Err(failed("the points of a selection"));
        }
        self.moved(rank, &mut coordinates)?;
        if inner.is_empty() {
            return Selection::points(rank, coordinates);
        }
        let inside = cells_of(inner);
        let mut all =
            Vec::with_capacity(count * (inside.len() / inner.len()) * (rank + inner.len()));
        for point in coordinates.chunks_exact(rank) {
            for cell in inside.chunks_exact(inner.len()) {
                all.extend_from_slice(point);
                all.extend_from_slice(cell);
            }
        }
        Selection::points(rank + inner.len(), all)
    }

    /// Starts, strides, counts and blocks of a hyperslab, if it is regular.
    fn regular(&self, rank: usize) -> Option<[Vec<u64>; 4]> {
        let api = &self.library.api;
        let [mut start, mut stride, mut count, mut block] = [(); 4].map(|()| vec![0; rank]);
        // SAFETY: as in `dims`; there is room for the numbers of every dimension.
        let regular = unsafe {
            (api.H5Sis_regular_hyperslab)(self.id) > 0
                && (api.H5Sget_regular_hyperslab)(
                    self.id,
                    start.as_mut_ptr(),
                    stride.as_mut_ptr(),
                    count.as_mut_ptr(),
                    block.as_mut_ptr(),
                ) >= 0
        };
        regular.then_some([start, stride, count, block])
    }

    /// First and last corners of all blocks of a selection.
    fn corners(&self, rank: usize) -> Result<Vec<u64>> {
        let api = &self.library.api;
        // SAFETY: as in `dims`.
        let blocks = unsafe { (api.H5Sget_select_hyper_nblocks)(self.id) };
        let blocks = usize::try_from(blocks).map_err(|_| failed("the blocks of a selection"))?;
        let mut corners = vec![0; 2 * rank * blocks];
        // SAFETY: there is room for two corners of every block.
        let status = unsafe {
            let out = corners.as_mut_ptr();
            (api.H5Sget_select_hyper_blocklist)(self.id, 0, blocks as u64, out)
        };
        match status < 0 {
            true => Err(failed("the blocks of a selection")),
            false => Ok(corners),
        }
    }

    fn hyperslabs(&self, rank: usize, inner: &[u64]) -> Result<Selection> {
        if let Some([mut start, stride, count, block]) = self.regular(rank) {
            self.moved(rank, &mut start)?;
            let one = slab(&start, &stride, &count, &block, inner)?;
            return Ok(Selection::Hyperslab(one));
        }
        let mut corners = self.corners(rank)?;
        self.moved(rank, &mut corners)?;
        let one = vec![1; rank];
        let block = |both: &[u64]| {
            let (first, last) = both.split_at(rank);
            let sides: Vec<u64> = first.iter().zip(last).map(|(a, b)| b - a + 1).collect();
            slab(first, &one, &sides, &one, inner)
        };
        let slabs: Result<Vec<_>> = corners.chunks_exact(2 * rank).map(block).collect();
        Selection::from_hyperslabs(slabs?)
    }

    /// The selection as files store it: hyperslabs may go on without an end.
    pub(crate) fn stored(&self) -> Result<Stored> {
        let api = &self.library.api;
        let rank = self.dims()?.len();
        // SAFETY: as in `dims`.
        Ok(match unsafe { (api.H5Sget_select_type)(self.id) } {
            NONE => Stored::None,
            POINTS => match self.points(rank, &[])? {
                Selection::Points(points) => {
                    Stored::Points(points.iter().map(<[u64]>::to_vec).collect())
                }
                _ => return Err(failed("the points of a selection")),
            },
            HYPERSLABS => match self.regular(rank) {
                Some([start, stride, count, block]) => Stored::Regular(
                    (0..rank)
                        .map(|dim| Slab {
                            start: start[dim],
                            stride: stride[dim],
                            count: count[dim],
                            block: block[dim],
                        })
                        .collect(),
                ),
                None => {
                    let corners = self.corners(rank)?;
                    let boxes = corners.chunks_exact(2 * rank).map(|both| {
                        let (first, last) = both.split_at(rank);
                        first.iter().copied().zip(last.iter().copied()).collect()
                    });
                    Stored::Boxes(boxes.collect())
                }
            },
            _ => Stored::All,
        })
    }

    /// Where the selected cells are in a program's memory, in the order of the selection.
    pub(crate) fn places(&self, cell: usize) -> Result<Places> {
        let api = &self.library.api;
        // SAFETY: the space is open; the iterator is closed below.
        let iterator = unsafe { (api.H5Ssel_iter_create)(self.id, cell, 0) };
        if iterator < 0 {
            return Err(failed("the selection of memory"));
        }
        let mut places = Places::default();
        let (mut offsets, mut lengths) = (vec![0_u64; RUNS], vec![0_usize; RUNS]);
        let done = loop {
            let (mut runs, mut bytes) = (0, 0);
            // SAFETY: there is room for so many runs.
            let status = unsafe {
                (api.H5Ssel_iter_get_seq_list)(
                    iterator,
                    RUNS,
                    usize::MAX / 2,
                    &mut runs,
                    &mut bytes,
                    offsets.as_mut_ptr(),
                    lengths.as_mut_ptr(),
                )
            };
            if status < 0 {
                break Err(failed("the selection of memory"));
            }
            if runs == 0 {
                break Ok(());
            }
            for (offset, length) in offsets[..runs].iter().zip(&lengths[..runs]) {
                places.push(*offset as usize, *length);
            }
        };
        // SAFETY: it was opened above.
        unsafe { (api.H5Ssel_iter_close)(iterator) };
        done.map(|()| places)
    }
}

/// Runs of bytes in a program's memory.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    runs: Vec<Run>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Bytes of all runs before this one.
    before: usize,
    offset: usize,
    length: usize,
}

impl Places {
    /// One run.
    pub(crate) fn packed(bytes: usize) -> Self {
        let mut places = Places::default();
        places.push(0, bytes);
        places
    }

    fn push(&mut self, offset: usize, length: usize) {
        let before = match self.runs.last_mut() {
            Some(last) if last.offset + last.length == offset => {
                last.length += length;
                return;
            }
            Some(last) => last.before + last.length,
            None => 0,
        };
        self.runs.push(Run {
            before,
            offset,
            length,
        });
    }

    /// Offset and length, if it is a single run.
    pub(crate) fn single(&self) -> Option<(usize, usize)> {
        match self.runs[..] {
            [run] => Some((run.offset, run.length)),
            _ => None,
        }
    }

    /// The runs of `bytes` bytes after the first `skip`.
    pub(crate) fn part(&self, skip: usize, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
        let end = skip + bytes;
        let first = self
            .runs
            .partition_point(|run| run.before + run.length <= skip);
        let runs = self.runs[first..]
            .iter()
            .take_while(move |run| run.before < end);
        runs.map(move |run| {
            let (from, to) = (skip.max(run.before), end.min(run.before + run.length));
            (run.offset + from - run.before, to - from)
        })
    }
}

/// A hyperslab, and all cells of its elements.
fn slab(
    start: &[u64],
    stride: &[u64],
    count: &[u64],
    block: &[u64],
    inner: &[u64],
) -> Result<Hyperslab> {
    let with = |outer: &[u64], value: &dyn Fn(u64) -> u64| -> Vec<u64> {
        let inner = inner.iter().map(|side| value(*side));
        outer.iter().copied().chain(inner).collect()
    };
    Hyperslab::new(
        &with(start, &|_| 0),
        &with(stride, &|_| 1),
        &with(count, &|side| side),
        &with(block, &|_| 1),
    )
}

/// The coordinates of all cells of a box, one after another.
fn cells_of(sides: &[u64]) -> Vec<u64> {
    let count: u64 = sides.iter().product();
    let mut all = Vec::new();
    for i in 0..count {
        let mut left = i;
        let at = all.len();
        all.resize(at + sides.len(), 0);
        for (place, side) in all[at..].iter_mut().zip(sides).rev() {
            *place = left % side;
            left /= side;
        }
    }
    all
}

fn nothing(rank: usize) -> Result<Selection> {
    let (zero, one) = (vec![0; rank], vec![1; rank]);
    Ok(Selection::Hyperslab(Hyperslab::new(
        &zero, &one, &zero, &one,
    )?))
}

fn failed(what: &str) -> Error {
    Error::invalid(format!("libhdf5 does not tell {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_whole() {
        assert_eq!(cells_of(&[2, 3]), [0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2]);
        let one = slab(&[4], &[3], &[2], &[1], &[5, 6]).unwrap();
        assert_eq!(&one.result_shape()[..], [2, 5, 6]);
        assert!(one.contains_point(&[7, 4, 5]) && !one.contains_point(&[5, 0, 0]));
    }

    #[test]
    fn neighbours_are_one_run() {
        let mut places = Places::default();
        for (offset, length) in [(10, 5), (15, 5), (30, 1), (29, 1)] {
            places.push(offset, length);
        }
        let all: Vec<_> = places.part(0, 12).collect();
        assert_eq!(all, [(10, 10), (30, 1), (29, 1)]);
        assert_eq!(places.single(), None);
        assert_eq!(Places::packed(7).single(), Some((0, 7)));
    }

    #[test]
    fn parts_are_the_bytes_in_between() {
        let mut places = Places::default();
        for (offset, length) in [(10, 10), (30, 2), (50, 8)] {
            places.push(offset, length);
        }
        let flat = |part: Vec<(usize, usize)>| -> Vec<usize> {
            part.into_iter().flat_map(|(at, n)| at..at + n).collect()
        };
        let all = flat(places.part(0, 20).collect());
        assert_eq!(all.len(), 20);
        for skip in 0..20 {
            for bytes in 0..=20 - skip {
                let part = flat(places.part(skip, bytes).collect());
                assert_eq!(part, all[skip..skip + bytes]);
            }
        }
    }
}
