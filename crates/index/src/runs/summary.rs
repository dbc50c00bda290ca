//! How many runs a part has, without listing them.
//!
//! Under [`crate::Runs`], used by the planner to price a chunk before it decides how to read it.

use crate::axis::Axis;
use crate::part::Body;
use crate::{CellOrder, Part};

/// The runs of a part, in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunSummary {
    /// The number of runs.
    pub runs: u64,
    /// The bytes of all runs.
    pub bytes: u64,
    /// The first byte of the first run.
    pub first: u64,
    /// One past the last byte of the last run.
    pub end: u64,
}

impl RunSummary {
    pub(crate) fn of(part: &Part, order: &CellOrder, cell_bytes: u64) -> RunSummary {
        let cells = match part.body() {
            Body::Regular(slab) => of_axes(&part.axes(slab, order)),
            Body::Union(_, clipped) if order.is_row_major() => RunSummary {
                runs: clipped.runs,
                bytes: clipped.cells,
                first: clipped.first,
                end: clipped.last + 1,
            },
            _ => of_runs(part, order),
        };
        RunSummary {
            runs: cells.runs,
            bytes: cells.bytes.saturating_mul(cell_bytes),
            first: cells.first.saturating_mul(cell_bytes),
            end: cells.end.saturating_mul(cell_bytes),
        }
    }
}

/// In cells. Each dimension multiplies the runs; where a row is selected at both ends, the end of
/// one row and the start of the next join, as often as neighbouring rows are both selected.
fn of_axes(axes: &[Axis]) -> RunSummary {
    let mut all = RunSummary {
        runs: 1,
        bytes: 1,
        first: 0,
        end: 1,
    };
    for axis in axes {
        let joins = match axis.first() == 0 && axis.end() == axis.side() {
            true => all.bytes - all.runs,
            false => 0,
        };
        all = RunSummary {
            runs: all.bytes * axis.intervals() - joins,
            bytes: all.bytes * axis.cells(),
            first: all.first * axis.side() + axis.first(),
            end: (all.end - 1) * axis.side() + axis.end(),
        };
    }
    all
}

fn of_runs(part: &Part, order: &CellOrder) -> RunSummary {
    let mut all = RunSummary {
        runs: 0,
        bytes: 0,
        first: 0,
        end: 0,
    };
    for run in part.runs(order, 1) {
        if all.runs == 0 {
            all.first = run.offset;
        }
        all.runs += 1;
        all.bytes += run.len;
        all.end = run.end();
    }
    all
}
