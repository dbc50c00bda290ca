//! A sum over all cells of an array, by which two layouts of the same cells are compared.
//!
//! Each cell adds a number that follows from its place and its bytes, so the order in which cells
//! are read does not matter: each array is read once, in the order that suits its own layout. Two
//! arrays that differ have the same sum about once in 2^64 times.

use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_index::{Region, Selection};

use super::plan::Stage;
use super::rows::rows;
use crate::tasks::on_core;
use crate::{Array, Error, Progress, Result};

/// Odd numbers with bits in no order.
const PLACE: u64 = 0x9e37_79b9_7f4a_7c15;
const VALUE: u64 = 0xd1b5_4a32_d192_ed03;

/// The sum over all cells, in boxes as `stage` says.
pub(super) async fn digest(
    array: &Array,
    stage: &Stage,
    cell: u64,
    progress: &dyn Progress,
) -> Result<u64> {
    let whole = Region::whole(&array.shape());
    let whole = &whole;
    let variable = array.dtype().is_variable();
    stream::iter(whole.split(&stage.sides))
        .map(|region| async move {
            let selection = Selection::region(&region);
            let (bytes, outer) = (region.num_cells() * cell, whole.clone());
            let sum = if variable {
                let cells = array.read_strings(&selection).await?;
                let cells = move || {
                    let texts: Vec<&[u8]> = cells.iter().map(|text| &text[..]).collect();
                    Ok(sum_of(&outer, &region, texts.into_iter()))
                };
                on_core(array.session(), cells).await?
            } else {
                let cells = array.read(&selection).await?;
                let size = cell.max(1) as usize;
                on_core(array.session(), move || {
                    Ok(match size {
                        1 => words::<1>(&outer, &region, &cells),
                        2 => words::<2>(&outer, &region, &cells),
                        4 => words::<4>(&outer, &region, &cells),
                        8 => words::<8>(&outer, &region, &cells),
                        _ => sum_of(&outer, &region, cells.chunks_exact(size)),
                    })
                })
                .await?
            };
            progress.add(bytes);
            Ok::<u64, Error>(sum)
        })
        .buffer_unordered(stage.slots.max(1) as usize)
        .try_fold(0u64, |all, sum| async move { Ok(all.wrapping_add(sum)) })
        .await
}

/// The sum over the cells of a box of `outer`.
fn sum_of<'a>(outer: &Region, region: &Region, mut cells: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut sum = 0u64;
    for (first, len) in rows(outer, region) {
        for (place, cell) in (first..first + len).zip(cells.by_ref().take(len as usize)) {
            let mut value = mix(VALUE, cell.len() as u64);
            for part in cell.chunks(8) {
                let mut word = [0; 8];
                word[..part.len()].copy_from_slice(part);
                value = mix(value, u64::from_le_bytes(word));
            }
            sum = sum.wrapping_add(mix(place.wrapping_mul(PLACE), value));
        }
    }
    sum
}

/// The same for cells of a width that the compiler knows; other sums than those of [`sum_of`].
fn words<const W: usize>(outer: &Region, region: &Region, cells: &[u8]) -> u64 {
    let mut sum = 0u64;
    let mut rest = cells;
    for (first, len) in rows(outer, region) {
        let (row, after) = rest.split_at((len as usize * W).min(rest.len()));
        rest = after;
        for (place, cell) in (first..first + len).zip(row.chunks_exact(W)) {
            let mut word = [0; 8];
            word[..W].copy_from_slice(cell);
            let value = u64::from_le_bytes(word) ^ VALUE;
            sum = sum.wrapping_add(mix(place.wrapping_mul(PLACE), value));
        }
    }
    sum
}

/// Two numbers into one, of which every bit depends on all of theirs.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ VALUE) * u128::from(b ^ PLACE);
    let folded = (product as u64) ^ ((product >> 64) as u64);
    (folded ^ (folded >> 29)).wrapping_mul(PLACE) ^ b.rotate_left(23) ^ a
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_index::Shape;

    #[test]
    fn sums_follow_from_cells_and_places_not_from_the_order() {
        let whole = Region::whole(&Shape::new([6, 5]).unwrap());
        let cell = |y: u64, x: u64| (y * 5 + x) as u8;
        let read = |region: &Region| -> Vec<u8> {
            let each = region.split(&[1, 1]);
            each.map(|c| cell(c.start()[0], c.start()[1])).collect()
        };
        let of = |sides: &[u64], change: fn(&mut Vec<u8>)| {
            whole
                .split(sides)
                .map(|region| {
                    let mut cells = read(&region);
                    change(&mut cells);
                    let fast = words::<1>(&whole, &region, &cells);
                    let slow = sum_of(&whole, &region, cells.chunks_exact(1));
                    (fast, slow)
                })
                .fold((0u64, 0u64), |(a, b), (x, y)| {
                    (a.wrapping_add(x), b.wrapping_add(y))
                })
        };
        let right = of(&[6, 5], |_| {});
        for sides in [[1, 5], [6, 1], [4, 3], [1, 1]] {
            assert_eq!(of(&sides, |_| {}), right);
        }
        let wrong = of(&[6, 5], |cells| cells[7] ^= 1);
        assert!(wrong.0 != right.0 && wrong.1 != right.1);
        let swapped = of(&[6, 5], |cells| cells.swap(3, 4));
        assert!(swapped.0 != right.0 && swapped.1 != right.1);
    }
}
