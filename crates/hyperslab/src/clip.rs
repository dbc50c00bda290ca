//! Cuts strided copies at the borders of byte ranges: for chunks of which parts are read by several
//! requests.

use std::ops::Range;

use hyperslab_function::StridedRun;
use hyperslab_index::StridedCopy;

use crate::scatter::Placement;

/// The part of a strided copy that lies in a range of stored bytes: whole rows as one strided run,
/// rows that the border cuts by themselves. The border lies between cells.
pub(crate) fn clip(
    copy: &StridedCopy,
    cell: u64,
    within: &Range<u64>,
    mut each: impl FnMut(StridedRun, Placement),
) {
    let (src, dst) = (copy.src * cell, copy.dst * cell);
    let (src_step, dst_step) = (copy.src_step * cell, copy.dst_step * cell);
    let len = copy.len * cell;
    let mut emit = |k: u64, count: u64, from: u64, to: u64| {
        each(
            StridedRun {
                start: src + k * src_step + from,
                len: to - from,
                step: if count > 1 { src_step } else { to - from },
                count,
            },
            Placement {
                at: (dst + k * dst_step + from) as usize,
                len: (to - from) as usize,
                step: dst_step as usize,
                count: count as usize,
            },
        );
    };
    let row = |k: u64| src + k * src_step;
    // Rows that lie in the range as a whole: k with row(k) >= start and row(k) + len <= end.
    let mut whole: Option<(u64, u64)> = None;
    let inside = |k: u64| within.start <= row(k) && row(k) + len <= within.end;
    if copy.count == 1 || src_step == 0 {
        for k in 0..copy.count {
            let from = within.start.saturating_sub(row(k)).min(len);
            let to = within.end.saturating_sub(row(k)).min(len);
            if from < to {
                emit(k, 1, from, to);
            }
        }
        return;
    }
    let first = within
        .start
        .saturating_sub(src)
        .div_ceil(src_step)
        .min(copy.count);
    let last = match within.end.checked_sub(src + len) {
        Some(room) => (room / src_step + 1).min(copy.count),
        None => 0,
    };
    if first < last {
        whole = Some((first, last));
    }
    let (whole_from, whole_to) = whole.unwrap_or((first, first));
    debug_assert!((whole_from..whole_to).all(inside));
    // The rows before and after, as far as they reach into the range: at most one on each side,
    // and those between `last` and `first` if a single row covers the range.
    let low = whole_from.saturating_sub(1);
    let high = (whole_to + 1).min(copy.count);
    for k in low..whole_from {
        cut(k, row(k), len, within, &mut emit);
    }
    if whole_from < whole_to {
        emit(whole_from, whole_to - whole_from, 0, len);
    }
    for k in whole_to..high {
        cut(k, row(k), len, within, &mut emit);
    }
}

fn cut(k: u64, row: u64, len: u64, within: &Range<u64>, emit: &mut impl FnMut(u64, u64, u64, u64)) {
    let from = within.start.saturating_sub(row).min(len);
    let to = within.end.saturating_sub(row).min(len);
    if from < to {
        emit(k, 1, from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn clipped_copies_hold_each_byte_of_the_range_once(
            (len, gap, count) in (1u64..6, 0u64..5, 1u64..12),
            src in 0u64..20, dst in 0u64..20, dst_gap in 0u64..4,
            cuts in proptest::collection::vec(0u64..150, 0..5),
        ) {
            let cell = 2;
            let copy = StridedCopy {
                src, dst, len, count,
                src_step: len + gap,
                dst_step: len + dst_gap,
            };
            let mut borders: Vec<u64> = cuts.into_iter().map(|c| c * cell).collect();
            borders.extend([0, 1000]);
            borders.sort_unstable();
            let mut seen: Vec<(u64, u64)> = Vec::new();
            for pair in borders.windows(2) {
                clip(&copy, cell, &(pair[0]..pair[1]), |run, placement| {
                    assert_eq!(run.count as usize, placement.count);
                    assert_eq!(run.len as usize, placement.len);
                    for k in 0..run.count {
                        for b in 0..run.len {
                            let from = run.start + k * run.step + b;
                            assert!(pair[0] <= from && from < pair[1]);
                            let to = placement.at as u64 + k * placement.step as u64 + b;
                            seen.push((from, to));
                        }
                    }
                });
            }
            seen.sort_unstable();
            let mut expected = Vec::new();
            for k in 0..count {
                for b in 0..len * cell {
                    expected.push((
                        (src + k * copy.src_step) * cell + b,
                        (dst + k * copy.dst_step) * cell + b,
                    ));
                }
            }
            expected.sort_unstable();
            prop_assert_eq!(seen, expected);
        }
    }
}
