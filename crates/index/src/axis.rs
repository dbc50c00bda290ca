//! One dimension of a regular selection within one chunk.
//!
//! Sits between [`DimSlab`] and the runs and copies of a part. Chunk borders cut at most the first
//! and the last block, so at most three regular segments describe the dimension exactly.
//!
//! Invariant: the intervals of an axis are sorted, disjoint and not adjacent.

use crate::DimSlab;

/// `count` equal intervals of `block` cells that start `step` apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The first coordinate, counted from the chunk's start.
    pub(crate) at: u64,
    /// Its coordinate in the result, where the intervals follow each other without gaps.
    pub(crate) to: u64,
    pub(crate) count: u64,
    pub(crate) step: u64,
    pub(crate) block: u64,
}

/// The selected coordinates of one dimension of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    segments: [Segment; 3],
    used: u8,
    /// The side of the stored chunk.
    side: u64,
}

impl Axis {
    /// One cell that is all there is, for scalars.
    pub(crate) const SCALAR: Axis = {
        let one = Segment {
            at: 0,
            to: 0,
            count: 1,
            step: 1,
            block: 1,
        };
        Axis {
            segments: [one; 3],
            used: 1,
            side: 1,
        }
    };

    /// The coordinates of `slab` in `low..high`, a chunk that is stored with `side` cells.
    pub(crate) fn cut(slab: &DimSlab, low: u64, high: u64, side: u64) -> Axis {
        let mut axis = Axis {
            segments: [Segment::default(); 3],
            used: 0,
            side,
        };
        if slab.count == 0 || high <= slab.start || slab.end() <= low {
            return axis;
        }
        let DimSlab {
            start,
            stride,
            count,
            block,
        } = *slab;
        // The blocks that reach into the chunk are first..=last, if there are any.
        let begun = low.saturating_sub(start) / stride;
        let first = begun + u64::from(low >= start + begun * stride + block);
        let last = ((high - 1 - start) / stride).min(count - 1);
        if first > last {
            return axis;
        }
        let is_cut = |k: u64| start + k * stride < low || start + k * stride + block > high;
        let clip = |k: u64| {
            let at = start + k * stride;
            let (from, until) = (at.max(low), (at + block).min(high));
            let len = until - from;
            Segment {
                at: from - low,
                to: k * block + from - at,
                count: 1,
                step: len,
                block: len,
            }
        };
        let head = is_cut(first);
        let tail = last > first && is_cut(last);
        let whole = first + u64::from(head)..last + 1 - u64::from(tail);
        if head {
            axis.push(clip(first));
        }
        if whole.start < whole.end {
            axis.push(Segment {
                at: start + whole.start * stride - low,
                to: whole.start * block,
                count: whole.end - whole.start,
                step: stride,
                block,
            });
        }
        if tail {
            axis.push(clip(last));
        }
        axis
    }

    fn push(&mut self, segment: Segment) {
        self.segments[usize::from(self.used)] = segment;
        self.used += 1;
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments[..usize::from(self.used)]
    }

    pub(crate) fn side(&self) -> u64 {
        self.side
    }

    pub(crate) fn intervals(&self) -> u64 {
        self.segments().iter().map(|segment| segment.count).sum()
    }

    pub(crate) fn cells(&self) -> u64 {
        self.segments()
            .iter()
            .map(|segment| segment.count * segment.block)
            .sum()
    }

    /// The first coordinate.
    pub(crate) fn first(&self) -> u64 {
        self.segments[0].at
    }

    /// One past the last coordinate.
    pub(crate) fn end(&self) -> u64 {
        self.segments().last().map_or(0, |last| {
            last.at + (last.count - 1) * last.step + last.block
        })
    }

    /// True if every stored coordinate is selected.
    pub(crate) fn is_full(&self) -> bool {
        self.cells() == self.side
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_equal_counting() {
        let mut seen = [0; 4];
        for bits in 0..4 * 6 * 5 * 5u64 {
            let (start, stride) = (bits % 4, 1 + bits / 4 % 6);
            let (count, block) = (bits / 24 % 5, 1 + bits / 120 % 5);
            let slab = DimSlab {
                start,
                stride,
                count,
                block,
            };
            let Ok(slab) = slab.normalised(0) else {
                continue;
            };
            for low in 0..12 {
                for high in low + 1..low + 14 {
                    let axis = Axis::cut(&slab, low, high, 20);
                    let expected: Vec<(u64, u64)> = (low..high)
                        .filter(|&x| slab.first_from(x) == Some(x))
                        .map(|x| (x - low, slab.cells_below(x)))
                        .collect();
                    let found: Vec<(u64, u64)> = axis
                        .segments()
                        .iter()
                        .flat_map(|s| {
                            (0..s.count * s.block)
                                .map(|i| (s.at + i / s.block * s.step + i % s.block, s.to + i))
                        })
                        .collect();
                    assert_eq!(found, expected, "{slab:?} in {low}..{high}");
                    assert_eq!(axis.cells(), expected.len() as u64);
                    if let (Some(first), Some(last)) = (expected.first(), expected.last()) {
                        assert_eq!((axis.first(), axis.end()), (first.0, last.0 + 1));
                    }
                    seen[axis.segments().len()] += 1;
                }
            }
        }
        assert!(seen.iter().all(|&times| times > 50), "{seen:?}");
    }
}
