//! Calls of the function next to the data: what is asked of it, and where its answer lands.
//!
//! The function sends wanted cells only, in the order in which they were asked for, so the
//! placements made with a request say where each run of the answer goes. Invariant: the calls of an
//! object ask for each wanted cell once.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::try_join_all;
use hyperslab_format::{Piece, Source};
use hyperslab_function::{FunctionClient, SlabRequest, StridedRun, Unit, UnitCodecs};
use hyperslab_index::StridedCopy;
use hyperslab_plan::Call;

use crate::array::State;
use crate::fetch::Prepared;
use crate::read::{Job, on_core};
use crate::scatter::Placement;
use crate::{Error, Result};

/// A call that takes longer is given up, and the object is fetched without the function.
const DEADLINE: Duration = Duration::from_secs(60);

/// Fetches the wanted cells of an object by calls of the function, and scatters them.
pub(crate) async fn run(
    job: &Arc<Job>,
    prepared: &Prepared,
    client: &Arc<FunctionClient>,
    calls: &[Call],
) -> Result<()> {
    let open = &job.array.inner().open;
    let window = &open.planner.window;
    let mut pin = prepared.pin();
    if pin.is_none() && calls.len() > 1 {
        // Several calls must not see several states of the object.
        let etag = open.store.head(&prepared.object.key).await?.etag;
        pin = Some(etag.ok_or_else(|| {
            Error::unavailable("the store gives no ETags, so calls cannot be pinned to one state")
        })?);
    }
    let pin = &pin;
    let work = calls.iter().map(|call| async move {
        let (units, placements) = ask(job, &prepared.object.pieces, call)?;
        let url = job.array.object_url(&prepared.object.key);
        let request = SlabRequest::new(url, units)?.pinned(pin.clone());
        let cells = {
            let _slot = window
                .acquire()
                .await
                .map_err(|_| Error::internal("a store's window was closed"))?;
            client.call(&request, Instant::now() + DEADLINE).await?
        };
        let job = job.clone();
        let session = job.array.inner().session.clone();
        on_core(&session, move || deliver(&job, cells, &placements)).await
    });
    try_join_all(work).await.map(drop)
}

fn deliver(job: &Job, cells: Bytes, placements: &[Placement]) -> Result<()> {
    let codecs = &job.state.meta.codecs;
    if codecs.is_rangeable() && !codecs.is_raw() {
        // Raw cells come as they are stored, which may be in the other byte order.
        let mut fixed = cells.to_vec();
        codecs.fix_order(&mut fixed);
        return job.destination.place(&fixed, placements);
    }
    job.destination.place(&cells, placements)
}

/// What a call is asked for, and where its answer goes.
fn ask(job: &Job, pieces: &[Piece], call: &Call) -> Result<(Vec<Unit>, Vec<Placement>)> {
    let state = &*job.state;
    let cell = state.cell as u64;
    let mut units = Vec::new();
    let mut placements = Vec::new();
    let raw = state.meta.codecs.is_rangeable();
    for piece in pieces {
        let within = match &piece.source {
            Source::Fill => {
                job.destination
                    .scatter_fill(state.meta.fill.bytes(), &piece.part, &state.order)?;
                continue;
            }
            Source::Range(range) if !contains(&call.read, range) => continue,
            _ if raw => call.read.clone(),
            _ => 0..u64::MAX,
        };
        let mut runs = Vec::new();
        for copy in piece.part.copies(&state.order, &job.destination.target) {
            clip(&copy, cell, &within, |run, placement| {
                runs.push(StridedRun {
                    start: run.start - if raw { within.start } else { 0 },
                    ..run
                });
                placements.push(placement);
            });
        }
        if runs.is_empty() {
            continue;
        }
        units.push(match &piece.source {
            _ if raw => Unit::raw(runs).at(within),
            Source::Range(range) => Unit::decoded(unit_codecs(state), runs).at(range.clone()),
            _ => Unit::decoded(unit_codecs(state), runs),
        });
    }
    Ok((units, placements))
}

fn contains(outer: &Range<u64>, inner: &Range<u64>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn unit_codecs(state: &State) -> UnitCodecs {
    UnitCodecs {
        codecs: serde_json::Value::Array(state.meta.unit_codecs().to_json().to_vec()),
        data_type: state.meta.dtype.to_json(),
        fill_value: state.meta.fill.to_json(&state.meta.dtype),
        shape: state.unit.to_vec(),
    }
}

/// The part of a strided copy that lies in a range of stored bytes: whole rows as one strided run,
/// rows that the border cuts by themselves. The border lies between cells.
fn clip(
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
