//! Datasets whose cells lie in files without a structure.
//!
//! Beside [`crate::mosaic`]: such a dataset is a mosaic of arrays that are parts of those files.

use hyperslab_format::hdf5::{FileResolver, Segment, Stored};
use hyperslab_format::{ArrayMeta, FillValue};
use hyperslab_index::Shape;
use hyperslab_store::Meta;

use crate::array::State;
use crate::file::{FileSource, Home, together};
use crate::location::Location;
use crate::mosaic::Mosaic;
use crate::session::OpenStore;
use crate::{Array, Error, Result};

/// The mosaic of a dataset in parts of other files.
pub(crate) async fn mosaic(home: &Home, meta: &ArrayMeta, segments: &[Segment]) -> Result<Mosaic> {
    let cell = stored_cell(meta);
    let mut mosaic = Mosaic::empty(home.of_mosaic());
    let total = meta.shape.num_cells();
    let mut done = 0;
    for segment in segments {
        if done == total {
            break;
        }
        let cells = match segment.size {
            u64::MAX => total - done,
            size if size % cell != 0 => {
                return Err(Error::invalid(format!(
                    "a cell lies partly in {:?} and partly in another file",
                    segment.file
                )));
            }
            size => (size / cell).min(total - done),
        };
        let file = find(home, &segment.file).await?;
        let there = file.cells(segment.offset, cell, cells)?;
        for (from, to, source) in [
            (done, done + there, Some(&file)),
            (done + there, done + cells, None),
        ] {
            if from < to {
                let (place, shape) = place(&meta.shape, from, to)?;
                let array = file.part(home, meta, shape, source.map(|_| segment.offset))?;
                mosaic.push_source(place, array);
            }
        }
        done += cells;
    }
    Ok(mosaic)
}

/// Bytes of a cell in its file.
fn stored_cell(meta: &ArrayMeta) -> u64 {
    meta.codecs
        .stored_cell(meta.dtype.cell_bytes().unwrap_or(1))
}

/// Where the cells with these numbers are in the dataset, and the shape of the array that they are.
fn place(shape: &Shape, from: u64, to: u64) -> Result<(Stored, Shape)> {
    Ok(match to - from == shape.num_cells() {
        true => (Stored::All, shape.clone()),
        false => (
            Stored::Boxes(boxes(shape, from, to)),
            Shape::new([to - from])?,
        ),
    })
}

/// A file with cells.
struct Raw {
    open: OpenStore,
    location: Location,
    key: String,
    object: Meta,
}

/// Finds a file that has cells.
async fn find(home: &Home, name: &str) -> Result<Raw> {
    for location in home.location.beside(name) {
        let Some((root, key)) = location.folder() else {
            continue;
        };
        let open = home.session.store(&root).await?;
        match open.store.head(&key).await {
            Ok(object) => {
                return Ok(Raw {
                    open,
                    location,
                    key,
                    object,
                });
            }
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e),
        }
    }
    Err(Error::not_found(format!(
        "the cells are in {name:?}, a file that is not there"
    ))
    .with_hint("put it beside the HDF5 file"))
}

impl Raw {
    /// How many of the wanted cells it has from an offset on.
    fn cells(&self, offset: u64, cell: u64, wanted: u64) -> Result<u64> {
        let bytes = self.object.size.saturating_sub(offset);
        match bytes % cell {
            _ if bytes / cell >= wanted => Ok(wanted),
            0 => Ok(bytes / cell),
            _ => Err(Error::data(format!(
                "{} ends within a cell",
                self.location.bare_root()
            ))),
        }
    }

    /// A part of it as an array; without an offset, the zeros that HDF5 reads behind its end.
    fn part(
        &self,
        home: &Home,
        meta: &ArrayMeta,
        shape: Shape,
        offset: Option<u64>,
    ) -> Result<Array> {
        let (mut meta, resolver) =
            FileResolver::contiguous(meta, shape, &self.key, offset.unwrap_or(0))?;
        let resolver = match offset {
            Some(_) => resolver,
            None => {
                meta.fill = FillValue::zero(&meta.dtype);
                resolver.without_cells()
            }
        };
        let resolver = resolver.together(together(&home.session, &self.open, &meta));
        let source = FileSource::raw(self.object.size, self.object.etag.clone());
        let state = State::resolved(meta, &self.key, Box::new(resolver), Some(source))?;
        let open = self.open.clone();
        Ok(Array::with_state(
            &home.session,
            open,
            &self.location,
            state,
            false,
        ))
    }
}

/// The cells with these numbers in row-major order, as boxes: first and last place along each
/// dimension.
fn boxes(shape: &Shape, start: u64, end: u64) -> Vec<Vec<(u64, u64)>> {
    let mut out = Vec::new();
    let sides: Vec<u64> = shape.to_vec();
    slice(&sides, start, end, &mut Vec::new(), &mut out);
    out
}

fn slice(
    sides: &[u64],
    start: u64,
    end: u64,
    before: &mut Vec<(u64, u64)>,
    out: &mut Vec<Vec<(u64, u64)>>,
) {
    let Some((side, rest)) = sides.split_first() else {
        out.push(before.clone());
        return;
    };
    let row: u64 = rest.iter().product();
    let mut at = start;
    while at < end {
        let first = at / row;
        // Whole rows together; otherwise what lies in one row.
        let (last, stop) = match at.is_multiple_of(row) && end - at >= row {
            true => (end / row - 1, end / row * row),
            false => (first, end.min((first + 1) * row)),
        };
        debug_assert!(last < *side);
        before.push((first, last));
        if last > first || stop - at == row {
            let whole = rest.iter().map(|side| (0, side - 1));
            let all = before.iter().copied().chain(whole);
            out.push(all.collect());
        } else {
            slice(rest, at - first * row, stop - first * row, before, out);
        }
        before.pop();
        at = stop;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn boxes_hold_the_cells_in_order(
            sides in proptest::collection::vec(1u64..5, 1..4),
            (a, b) in (0u64..70, 0u64..70),
        ) {
            let shape = Shape::new(sides.clone()).unwrap();
            let total = shape.num_cells();
            let (start, end) = (a.min(b).min(total), a.max(b).min(total));
            let mut cells = Vec::new();
            for corners in boxes(&shape, start, end) {
                let counts: Vec<u64> = corners.iter().map(|(first, last)| last - first + 1).collect();
                let counts = Shape::new(counts).unwrap();
                for i in 0..counts.num_cells() {
                    let at: Vec<u64> = counts
                        .coords_of(i)
                        .iter()
                        .zip(&corners)
                        .map(|(at, (first, _))| at + first)
                        .collect();
                    cells.push(shape.offset_of(&at));
                }
            }
            prop_assert_eq!(cells, (start..end).collect::<Vec<_>>());
        }
    }
}
