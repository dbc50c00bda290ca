//! Descent from several shapes: one side changes, another takes what it leaves, until no such pair
//! gains anything.

use super::Found;
use super::axis::Axes;

/// Rounds of a descent, at most; each gains something, and few are needed.
const MOST_ROUNDS: usize = 200;

/// The best shape that descents find. `None` if nothing fits.
pub(super) fn descend(axes: &Axes) -> Option<Found> {
    let mut best: Option<Found> = None;
    for start in starts(axes) {
        let found = descend_from(axes, start);
        if best.as_ref().is_none_or(|best| found.is_better(best)) {
            best = Some(found);
        }
    }
    best
}

/// The box of each class, cut or grown to what fits; all sides short; each dimension by itself as long
/// as fits.
fn starts(axes: &Axes) -> Vec<Vec<usize>> {
    let shortest = vec![0; axes.axes.len()];
    if !fits(axes, &shortest) {
        return Vec::new();
    }
    let mut starts = vec![shortest.clone()];
    for dim in 0..axes.axes.len() {
        let mut start = shortest.clone();
        refill(axes, &mut start, dim);
        starts.push(start);
    }
    for extent in &axes.extents {
        // Halved along its longest side until it fits.
        let mut sides = extent.clone();
        let at = |sides: &[u64]| -> Vec<usize> {
            let pairs = sides.iter().zip(&axes.axes);
            pairs
                .map(|(side, axis)| axis.longest(*side).unwrap_or(0))
                .collect()
        };
        while !fits(axes, &at(&sides)) {
            let Some(longest) = sides.iter_mut().max() else {
                break;
            };
            *longest /= 2;
        }
        starts.push(at(&sides));
    }
    starts
}

fn descend_from(axes: &Axes, mut chosen: Vec<usize>) -> Found {
    for dim in (0..chosen.len()).rev() {
        refill(axes, &mut chosen, dim);
    }
    let mut blocks = axes.blocks(&chosen);
    for _ in 0..MOST_ROUNDS {
        let mut best: Option<(f64, Vec<usize>)> = None;
        for one in 0..chosen.len() {
            for index in steps(chosen[one], axes.axes[one].sides.len()) {
                for other in (0..chosen.len()).filter(|dim| *dim != one) {
                    let mut next = chosen.clone();
                    next[one] = index;
                    if !shrink(axes, &mut next, other) {
                        continue;
                    }
                    refill(axes, &mut next, other);
                    let blocks = axes.blocks(&next);
                    if best.as_ref().is_none_or(|(least, _)| blocks < *least) {
                        best = Some((blocks, next));
                    }
                }
            }
        }
        match best {
            Some((fewer, next)) if fewer < blocks * (1.0 - 1e-12) => {
                (blocks, chosen) = (fewer, next);
            }
            _ => break,
        }
    }
    Found {
        chunk: axes.chunk(&chosen),
        blocks,
        proven: false,
    }
}

/// Other places in a list of so many: near ones, and ever further ones.
fn steps(from: usize, count: usize) -> impl Iterator<Item = usize> {
    let far = (0..usize::BITS).map(|bit| 1_usize << bit);
    let far = far.take_while(move |step| *step < count.max(2));
    far.flat_map(move |step| [from.checked_sub(step), Some(from + step)])
        .flatten()
        .filter(move |index| *index < count && *index != from)
}

fn cells(axes: &Axes, chosen: &[usize]) -> Option<u64> {
    let sides = chosen.iter().zip(&axes.axes);
    let mut sides = sides.map(|(index, axis)| axis.sides.get(*index).copied());
    sides.try_fold(1_u64, |cells, side| cells.checked_mul(side?))
}

fn fits(axes: &Axes, chosen: &[usize]) -> bool {
    cells(axes, chosen).is_some_and(|cells| cells <= axes.cells)
}

/// Cells that the other dimensions leave to this one.
fn room(axes: &Axes, chosen: &[usize], dim: usize) -> u64 {
    let others = (0..chosen.len()).filter(|other| *other != dim);
    let cells = others
        .map(|other| axes.axes[other].sides[chosen[other]])
        .try_fold(1_u64, |cells, side| cells.checked_mul(side));
    cells.map_or(0, |cells| axes.cells / cells)
}

/// Makes a side as long as fits.
fn refill(axes: &Axes, chosen: &mut [usize], dim: usize) {
    if let Some(index) = axes.axes[dim].longest(room(axes, chosen, dim)) {
        chosen[dim] = index;
    }
}

/// Makes a side so short that all fits; false if it cannot be.
fn shrink(axes: &Axes, chosen: &mut [usize], dim: usize) -> bool {
    if !fits(axes, chosen) {
        match axes.axes[dim].longest(room(axes, chosen, dim)) {
            Some(index) => chosen[dim] = index,
            None => return false,
        }
    }
    fits(axes, chosen)
}
