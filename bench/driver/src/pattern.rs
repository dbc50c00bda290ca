//! A float32 array whose every cell follows from its place, so that any part of it can be checked
//! without a second copy.
//!
//! Invariant: the value of a cell depends on the array's shape and the cell's coordinates alone,
//! never on chunks or on the order of writing.

use hyperslab::{Array, DataType, Error, Region, Result, Selection, Shape};

/// Boxes of the pattern that are in memory at a time.
const BOXES_AT_ONCE: usize = 8;

/// The value of the cell with this row-major offset: a whole number below 2²⁴, which float32 holds
/// exactly, with the low bits of noise and a slope that compresses.
fn value(offset: u64) -> f32 {
    let noise = offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    (((offset >> 8) & 0xffff) * 256 + noise) as f32
}

fn boxes(array: &Array) -> Result<Vec<Region>> {
    let meta = array.meta();
    if meta.dtype != DataType::Float(4) {
        return Err(Error::invalid(format!(
            "{} does not hold float32",
            array.url()
        )));
    }
    Ok(Region::whole(&meta.shape)
        .split(&meta.chunk_shape)
        .collect())
}

fn cells(shape: &Shape, region: &Region) -> Result<Vec<u8>> {
    let sides = Shape::new(region.shape().iter().copied())?;
    let row = sides.last().copied().unwrap_or(1);
    let mut out = Vec::with_capacity(sides.num_cells() as usize * 4);
    for first in (0..sides.num_cells()).step_by(row.max(1) as usize) {
        let local = sides.coords_of(first);
        let coords: Vec<u64> = local
            .iter()
            .zip(region.start())
            .map(|(l, s)| l + s)
            .collect();
        let start = shape.offset_of(&coords);
        for offset in start..start + row {
            out.extend_from_slice(&value(offset).to_le_bytes());
        }
    }
    Ok(out)
}

/// Writes the pattern into the whole array, a few chunks at a time.
pub(crate) fn fill(array: &Array) -> Result<()> {
    let shape = array.shape();
    let todo = boxes(array)?;
    for group in todo.chunks(BOXES_AT_ONCE) {
        hyperslab::block_on(futures::future::try_join_all(group.iter().map(
            |region| async {
                array
                    .write(&Selection::region(region), cells(&shape, region)?)
                    .await
            },
        )))?;
    }
    Ok(())
}

/// Compares so many boxes (all if 0) with the pattern; returns (cells compared, cells different).
pub(crate) fn check(array: &Array, many: u64, seed: u64) -> Result<(u64, u64)> {
    let shape = array.shape();
    let all = boxes(array)?;
    let chosen: Vec<&Region> = if many == 0 || many >= all.len() as u64 {
        all.iter().collect()
    } else {
        // The first and the last box, and others drawn by a counter that is mixed well.
        let drawn = (0..many.saturating_sub(2)).map(|i| {
            let mixed =
                (seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed >> 20) as usize % all.len()
        });
        drawn
            .chain([0, all.len() - 1])
            .filter_map(|i| all.get(i))
            .collect()
    };
    let (mut compared, mut different) = (0, 0);
    for region in chosen {
        let got = hyperslab::block_on(array.read(&Selection::region(region)))?;
        let want = cells(&shape, region)?;
        compared += region.num_cells();
        if got != want {
            let pairs = got.chunks_exact(4).zip(want.chunks_exact(4));
            different += pairs.filter(|(got, want)| got != want).count() as u64;
        }
    }
    Ok((compared, different))
}
