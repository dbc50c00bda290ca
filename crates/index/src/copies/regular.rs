//! Copies of regular selections.
//!
//! Each dimension has one to three regular segments; each choice of one segment per dimension is
//! a lattice. Nearly always there is one choice.

use smallvec::SmallVec;

use super::Lattice;
use crate::axis::Axis;
use crate::{CellOrder, Target};

#[derive(Debug)]
pub(super) struct Choices {
    /// In stored order.
    dims: SmallVec<[Dim; 4]>,
    base: u64,
    done: bool,
}

#[derive(Debug)]
struct Dim {
    axis: Axis,
    src_stride: u64,
    dst_stride: u64,
    /// The segment chosen next.
    choice: usize,
}

impl Choices {
    /// Takes the dimensions in stored order.
    pub(super) fn new(axes: &[Axis], order: &CellOrder, target: &Target) -> Choices {
        let mut src_stride = 1;
        let mut dims: SmallVec<[Dim; 4]> = SmallVec::new();
        for (axis, &dim) in axes.iter().zip(order.dims()).rev() {
            dims.push(Dim {
                axis: *axis,
                src_stride,
                dst_stride: target.stride(dim),
                choice: 0,
            });
            src_stride *= axis.side();
        }
        dims.reverse();
        let done = axes.iter().any(|axis| axis.segments().is_empty());
        Choices {
            dims,
            base: target.base(),
            done,
        }
    }

    pub(super) fn next(&mut self, lattice: &mut Lattice) -> bool {
        if self.done {
            return false;
        }
        let (mut src, mut dst) = (0, self.base);
        for dim in &self.dims {
            let segment = &dim.axis.segments()[dim.choice];
            src += segment.at * dim.src_stride;
            dst += segment.to * dim.dst_stride;
        }
        lattice.start(src, dst);
        for dim in &self.dims {
            let segment = &dim.axis.segments()[dim.choice];
            let (src, dst) = (dim.src_stride, dim.dst_stride);
            if segment.count > 1 {
                lattice.push(segment.count, segment.step * src, segment.block * dst);
            }
            lattice.push(segment.block, src, dst);
        }
        lattice.finish();
        self.done = true;
        for dim in self.dims.iter_mut().rev() {
            dim.choice += 1;
            if dim.choice < dim.axis.segments().len() {
                self.done = false;
                break;
            }
            dim.choice = 0;
        }
        true
    }
}
