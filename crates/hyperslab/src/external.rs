//! Datasets whose cells lie in files without a structure.
//!
//! Beside [`crate::mosaic`]: such a dataset is a mosaic of arrays that are parts of those files.

use hyperslab_format::ArrayMeta;
use hyperslab_format::hdf5::{FileResolver, Segment, Stored};
use hyperslab_index::Shape;

use crate::array::State;
use crate::file::{FileSource, together};
use crate::mosaic::{Home, Mosaic};
use crate::{Array, Error, Result};

/// The mosaic of a dataset in parts of other files.
pub(crate) async fn mosaic(home: &Home, meta: &ArrayMeta, segments: &[Segment]) -> Result<Mosaic> {
    let cell = meta.dtype.cell_bytes().unwrap_or(1);
    let mut mosaic = Mosaic::empty(home.clone());
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
        let whole = cells == total;
        let shape = match whole {
            true => meta.shape.clone(),
            false => Shape::new([cells])?,
        };
        let array = part(home, meta, shape, segment).await?;
        let place = match whole {
            true => Stored::All,
            false => Stored::Boxes(boxes(&meta.shape, done, done + cells)),
        };
        mosaic.push_source(place, array);
        done += cells;
    }
    Ok(mosaic)
}

/// A part of a file as an array.
async fn part(home: &Home, meta: &ArrayMeta, shape: Shape, segment: &Segment) -> Result<Array> {
    for beside in home.location.beside(&segment.file) {
        let Some((root, key)) = beside.folder() else {
            continue;
        };
        let open = home.session.store(&root).await?;
        let object = match open.store.head(&key).await {
            Ok(object) => object,
            Err(e) if e.is_not_found() => continue,
            Err(e) => return Err(e),
        };
        let (meta, resolver) = FileResolver::contiguous(meta, shape, &key, segment.offset)?;
        let cell = meta.dtype.cell_bytes().unwrap_or(1);
        let end = (meta.shape.num_cells().saturating_mul(cell)).saturating_add(segment.offset);
        if end > object.size {
            return Err(Error::data(format!(
                "{} has {} bytes, but the dataset goes on to {end}",
                beside.bare_root(),
                object.size
            )));
        }
        let resolver = resolver.together(together(&home.session, &open, &meta));
        let source = FileSource::raw(object.size, object.etag);
        let state = State::resolved(meta, &key, Box::new(resolver), Some(source))?;
        let array = Array::with_state(&home.session, open, &beside, state, false);
        return Ok(array);
    }
    Err(Error::not_found(format!(
        "the cells are in {:?}, a file that is not there",
        segment.file
    ))
    .with_hint("put it beside the HDF5 file"))
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
