//! Runs of regular selections: rows of intervals under an odometer.

use smallvec::SmallVec;

use super::CellRun;
use crate::axis::Axis;

/// Every coordinate of the outer dimensions, and for each the intervals of the inner one.
/// Dimensions below the inner one are whole and count as part of its cells.
#[derive(Debug)]
pub(super) struct Rows {
    outer: SmallVec<[Wheel; 4]>,
    inner: Axis,
    /// Stored cells per coordinate of the inner dimension.
    unit: u64,
    /// The next interval of the inner dimension.
    segment: usize,
    interval: u64,
    /// The offset of the current row.
    row: u64,
    done: bool,
}

/// One outer dimension and the coordinate it is at.
#[derive(Debug)]
struct Wheel {
    axis: Axis,
    stride: u64,
    segment: usize,
    interval: u64,
    within: u64,
}

impl Rows {
    /// Takes the dimensions in stored order.
    pub(super) fn new(axes: &[Axis]) -> Rows {
        let mut unit = 1;
        let mut kept = axes;
        while let Some((last, rest)) = kept.split_last()
            && last.is_full()
        {
            unit *= last.side();
            kept = rest;
        }
        let (inner, outer) = match kept.split_last() {
            Some((inner, outer)) => (*inner, outer),
            None => (Axis::SCALAR, kept),
        };
        let mut stride = unit * inner.side();
        let mut wheels: SmallVec<[Wheel; 4]> = SmallVec::new();
        for axis in outer.iter().rev() {
            wheels.push(Wheel {
                axis: *axis,
                stride,
                segment: 0,
                interval: 0,
                within: 0,
            });
            stride *= axis.side();
        }
        wheels.reverse();
        let row = wheels.iter().map(Wheel::offset).sum();
        Rows {
            outer: wheels,
            inner,
            unit,
            segment: 0,
            interval: 0,
            row,
            done: false,
        }
    }

    pub(super) fn next(&mut self) -> Option<CellRun> {
        if self.done {
            return None;
        }
        let segment = self.inner.segments().get(self.segment)?;
        let start = self.row + (segment.at + self.interval * segment.step) * self.unit;
        let run = CellRun {
            start,
            end: start + segment.block * self.unit,
        };
        self.interval += 1;
        if self.interval == segment.count {
            self.interval = 0;
            self.segment += 1;
            if self.segment == self.inner.segments().len() {
                self.segment = 0;
                self.next_row();
            }
        }
        Some(run)
    }

    fn next_row(&mut self) {
        for wheel in self.outer.iter_mut().rev() {
            self.row -= wheel.offset();
            let turned_over = wheel.advance();
            self.row += wheel.offset();
            if !turned_over {
                return;
            }
        }
        self.done = true;
    }
}

impl Wheel {
    fn offset(&self) -> u64 {
        let segment = &self.axis.segments()[self.segment];
        (segment.at + self.interval * segment.step + self.within) * self.stride
    }

    /// Goes to the next coordinate; true if that is the first one again.
    fn advance(&mut self) -> bool {
        let segment = &self.axis.segments()[self.segment];
        self.within += 1;
        if self.within < segment.block {
            return false;
        }
        self.within = 0;
        self.interval += 1;
        if self.interval < segment.count {
            return false;
        }
        self.interval = 0;
        self.segment += 1;
        if self.segment < self.axis.segments().len() {
            return false;
        }
        self.segment = 0;
        true
    }
}
