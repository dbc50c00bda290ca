//! Copies of point lists: one per point, neighbours on both sides joined.

use std::ops::Range;
use std::sync::Arc;

use super::StridedCopy;
use crate::parts::{Placement, PointList};
use crate::{CellOrder, Part, Target};

#[derive(Debug)]
pub(super) struct Walk {
    list: Arc<PointList>,
    rest: Range<usize>,
    placement: Placement,
    base: u64,
    step: u64,
}

impl Walk {
    pub(super) fn new(
        part: &Part,
        list: &Arc<PointList>,
        range: Range<usize>,
        order: &CellOrder,
        target: &Target,
    ) -> Walk {
        Walk {
            list: list.clone(),
            rest: range,
            placement: list.placement(part, order),
            base: target.base(),
            step: target.stride(0),
        }
    }

    fn place(&self, at: usize) -> (u64, u64) {
        let entry = &self.list.entries[at];
        (
            self.list.offset(entry, &self.placement),
            self.base + entry.index as u64 * self.step,
        )
    }

    pub(super) fn next(&mut self) -> Option<StridedCopy> {
        let first = self.rest.next()?;
        let (src, dst) = self.place(first);
        let mut copy = StridedCopy {
            src,
            dst,
            count: 1,
            src_step: 0,
            dst_step: 0,
            len: 1,
        };
        while !self.rest.is_empty()
            && self.place(self.rest.start) == (src + copy.len, dst + copy.len)
        {
            copy.len += 1;
            self.rest.next();
        }
        Some(copy)
    }
}
