//! One dimension of a mapping: which places of a query's result are which coordinates of a source.
//!
//! Under [`super`]. Everything is kept as runs and as arithmetic series of runs, so that a box of any
//! size is one piece.

use hyperslab_index::DimSlab;

/// Positions `from..from + len` of a result are the coordinates `to..to + len` of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    from: u64,
    to: u64,
    len: u64,
}

/// The first `cells` coordinates of a regular pattern: blocks of `block`, whose starts are `stride`
/// apart, the first at `start`. The last block may be cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) start: u64,
    pub(super) stride: u64,
    pub(super) block: u64,
    pub(super) cells: u64,
}

impl Axis {
    /// `cells` coordinates in one piece.
    pub(super) fn contiguous(start: u64, cells: u64) -> Axis {
        let block = cells.max(1);
        Axis {
            start,
            stride: block,
            block,
            cells,
        }
    }

    /// The coordinate at a position.
    pub(super) fn at(&self, position: u64) -> u64 {
        let block = (position / self.block).saturating_mul(self.stride);
        self.start
            .saturating_add(block)
            .saturating_add(position % self.block)
    }

    /// One past the last coordinate.
    pub(super) fn end(&self) -> u64 {
        match self.cells {
            0 => self.start,
            cells => self.at(cells - 1).saturating_add(1),
        }
    }

    /// The number of blocks.
    fn blocks(&self) -> u64 {
        self.cells.div_ceil(self.block)
    }

    /// Each block: its first coordinate, and how many it has.
    pub(super) fn block(&self, i: u64) -> (u64, u64) {
        let len = self.block.min(self.cells - i * self.block);
        (self.start + i * self.stride, len)
    }

    /// All blocks.
    pub(super) fn each_block(&self) -> impl Iterator<Item = (u64, u64)> {
        let axis = *self;
        (0..self.blocks()).map(move |i| axis.block(i))
    }
}

impl From<&DimSlab> for Axis {
    fn from(slab: &DimSlab) -> Axis {
        Axis {
            start: slab.start,
            stride: slab.stride.max(1),
            block: slab.block.max(1),
            cells: slab.num_cells(),
        }
    }
}

/// Coordinates of a source, and where the first and each further one is in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) source: DimSlab,
    pub(super) at: u64,
    pub(super) step: u64,
}

/// The coordinates that are both in `query` and in `place`, where the nth of `place` is the nth of
/// `source`.
pub(super) fn pieces(query: &Axis, place: &Axis, source: &Axis) -> Vec<Piece> {
    let both = intersect(query, place);
    series(&at_source(&both, source))
}

/// True if two axes have a coordinate in common.
pub(super) fn meet(one: &Axis, other: &Axis) -> bool {
    !intersect(one, other).is_empty()
}

/// Positions of `query` and of `place` that are the same coordinate.
fn intersect(query: &Axis, place: &Axis) -> Vec<Run> {
    // The one with fewer blocks leads; each of its blocks meets few of the other's.
    let swap = place.blocks() < query.blocks();
    let (lead, other) = if swap { (place, query) } else { (query, place) };
    let mut runs = Vec::new();
    for (i, (start, len)) in (0..).zip(lead.each_block()) {
        let end = start + len;
        let from = start.saturating_sub(other.start) / other.stride;
        for k in from..other.blocks() {
            let (first, len) = other.block(k);
            if first >= end {
                break;
            }
            let (low, high) = (first.max(start), (first + len).min(end));
            if low < high {
                let here = i * lead.block + (low - start);
                let there = k * other.block + (low - first);
                let (from, to) = if swap { (there, here) } else { (here, there) };
                runs.push(Run {
                    from,
                    to,
                    len: high - low,
                });
            }
        }
    }
    runs
}

/// The same runs with coordinates of the source instead of positions.
fn at_source(runs: &[Run], source: &Axis) -> Vec<Run> {
    let mut out = Vec::with_capacity(runs.len());
    for run in runs {
        let mut run = *run;
        while run.len > 0 {
            let len = run.len.min(source.block - run.to % source.block);
            push(
                &mut out,
                Run {
                    from: run.from,
                    to: source.at(run.to),
                    len,
                },
            );
            run = Run {
                from: run.from + len,
                to: run.to + len,
                len: run.len - len,
            };
        }
    }
    out
}

/// Appends a run; one that continues the last becomes a part of it.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.from + last.len == run.from && last.to + last.len == run.to => {
            last.len += run.len;
        }
        _ => runs.push(run),
    }
}

/// Runs of one length with equal distances are one piece.
fn series(runs: &[Run]) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut left = runs;
    while let Some((first, rest)) = left.split_first() {
        let mut count = 1;
        let mut steps = (first.len, first.len);
        if let Some(second) = rest.first().filter(|second| joins(first, second)) {
            steps = (second.from - first.from, second.to - first.to);
            let goes_on = |i: usize| {
                let (last, next) = (&left[i], left.get(i + 1));
                next.is_some_and(|next| {
                    joins(last, next) && (next.from - last.from, next.to - last.to) == steps
                })
            };
            while goes_on(count - 1) {
                count += 1;
            }
        }
        out.push(Piece {
            source: slab(first, count as u64, steps.1),
            at: first.from,
            step: if first.len == 1 { steps.0.max(1) } else { 1 },
        });
        left = &left[count..];
    }
    out
}

/// True if two runs can be one piece: cells of the result are equally far apart.
fn joins(run: &Run, next: &Run) -> bool {
    run.len == next.len
        && next.from > run.from
        && next.to >= run.to + run.len
        && (run.len == 1 || next.from - run.from == run.len)
}

fn slab(run: &Run, count: u64, stride: u64) -> DimSlab {
    match count {
        1 => DimSlab::contiguous(run.to, run.len),
        // Blocks that touch are one box.
        _ if stride == run.len => DimSlab::contiguous(run.to, run.len * count),
        _ => DimSlab {
            start: run.to,
            stride,
            count,
            block: run.len,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coordinates(axis: &Axis) -> Vec<u64> {
        (0..axis.cells).map(|i| axis.at(i)).collect()
    }

    fn naive(query: &Axis, place: &Axis, source: &Axis) -> Vec<(u64, u64)> {
        let (place, source) = (coordinates(place), coordinates(source));
        let mut pairs = Vec::new();
        for (i, coordinate) in coordinates(query).iter().enumerate() {
            if let Some(n) = place.iter().position(|other| other == coordinate) {
                pairs.push((i as u64, source[n]));
            }
        }
        pairs
    }

    fn axis() -> impl Strategy<Value = Axis> {
        (0u64..20, 1u64..6, 0u64..6, 0u64..30).prop_map(|(start, block, gap, cells)| Axis {
            start,
            stride: block + gap,
            block,
            cells,
        })
    }

    proptest! {
        #[test]
        fn pieces_are_what_they_should(
            query in axis(),
            place in axis(),
            source in axis(),
        ) {
            let source = Axis { cells: place.cells, ..source };
            let mut found = Vec::new();
            for piece in pieces(&query, &place, &source) {
                let coordinates = coordinates(&Axis::from(&piece.source));
                for (i, coordinate) in (0..).zip(coordinates) {
                    found.push((piece.at + i * piece.step, coordinate));
                }
            }
            prop_assert_eq!(found, naive(&query, &place, &source));
        }
    }

    #[test]
    fn boxes_and_series_are_one_piece() {
        let whole = Axis::contiguous(0, 1 << 40);
        let half = Axis {
            start: 1,
            stride: 2,
            block: 1,
            cells: 1 << 20,
        };
        assert_eq!(pieces(&whole, &whole, &whole).len(), 1);
        assert_eq!(pieces(&half, &whole, &whole).len(), 1);
        assert_eq!(pieces(&whole, &half, &half).len(), 1);
    }
}
