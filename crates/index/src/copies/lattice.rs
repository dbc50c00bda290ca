//! Nested loops with constant steps on both sides.
//!
//! Under [`super::Copies`]; regular selections and the paths of unions both become lattices.
//!
//! Invariant: loops run outermost first in stored order, no loop has one turn only, and no two
//! neighbouring loops could be one.

use smallvec::SmallVec;

use super::StridedCopy;

/// `turns` times, `src` and `dst` cells further each time.
#[derive(Clone, Copy, Debug)]
struct Loop {
    turns: u64,
    src: u64,
    dst: u64,
}

/// Loops around a copy, and where they are.
#[derive(Debug, Default)]
pub(crate) struct Lattice {
    loops: SmallVec<[Loop; 6]>,
    done: SmallVec<[u64; 6]>,
    next: StridedCopy,
    live: bool,
}

impl Lattice {
    /// Starts anew, with the first cell on both sides.
    pub(crate) fn start(&mut self, src: u64, dst: u64) {
        self.loops.clear();
        self.done.clear();
        self.next = StridedCopy {
            src,
            dst,
            count: 1,
            src_step: 0,
            dst_step: 0,
            len: 1,
        };
        self.live = false;
    }

    /// Adds a loop inside those added before.
    pub(crate) fn push(&mut self, turns: u64, src: u64, dst: u64) {
        if turns == 1 {
            return;
        }
        if let Some(outer) = self.loops.last_mut()
            && outer.src == turns * src
            && outer.dst == turns * dst
        {
            *outer = Loop {
                turns: outer.turns * turns,
                src,
                dst,
            };
            return;
        }
        self.loops.push(Loop { turns, src, dst });
    }

    /// Folds the innermost loops into the copy.
    pub(crate) fn finish(&mut self) {
        if let Some(&Loop {
            turns,
            src: 1,
            dst: 1,
        }) = self.loops.last()
        {
            self.next.len = turns;
            self.loops.pop();
        }
        if let Some(Loop { turns, src, dst }) = self.loops.pop() {
            self.next.count = turns;
            self.next.src_step = src;
            self.next.dst_step = dst;
        }
        self.done.resize(self.loops.len(), 0);
        self.live = true;
    }

    /// The stored cells of all copies as half-open intervals, for a lattice made with steps of 0
    /// on the other side.
    pub(crate) fn source_runs(&mut self) -> impl Iterator<Item = (u64, u64)> {
        self.flat_map(|copy| {
            // Without a destination the innermost loop of step 1 is the count, not the length.
            let (count, len) = match copy.src_step {
                1 => (1, copy.count),
                _ => (copy.count, copy.len),
            };
            (0..count).map(move |k| {
                let start = copy.src + k * copy.src_step;
                (start, start + len)
            })
        })
    }
}

impl Iterator for Lattice {
    type Item = StridedCopy;

    #[inline]
    fn next(&mut self) -> Option<StridedCopy> {
        if !self.live {
            return None;
        }
        let copy = self.next;
        self.live = false;
        for (turn, done) in self.loops.iter().zip(&mut self.done).rev() {
            *done += 1;
            if *done < turn.turns {
                self.next.src += turn.src;
                self.next.dst += turn.dst;
                self.live = true;
                break;
            }
            *done = 0;
            self.next.src -= (turn.turns - 1) * turn.src;
            self.next.dst -= (turn.turns - 1) * turn.dst;
        }
        Some(copy)
    }
}
