//! How the wanted bytes of an object are divided among calls of the function.
//!
//! Parts read about equally much; they end in gaps, and between the cells of raw runs. Invariant:
//! the calls of one division hold every wanted byte once, and none of them is empty.

use crate::{Call, Load, Model, Object, Query, Run};

/// More calls for one object are never tried.
const MAX_CALLS: u64 = 4096;

/// The objects of a query with sums that make dividing them cheap, however many runs they have.
pub(crate) struct Division<'a> {
    query: &'a Query,
    /// Useful bytes before each run, and after the last, object by object.
    sums: Vec<u64>,
    /// Where the sums of each object begin.
    first: Vec<usize>,
    /// The fewest calls of each object that keep the function's limits; 0 if there are none.
    fewest: Vec<u64>,
}

impl<'a> Division<'a> {
    pub(crate) fn new(query: &'a Query, model: &Model) -> Self {
        let mut division = Division {
            query,
            sums: Vec::with_capacity(query.num_runs() + query.objects().len()),
            first: Vec::with_capacity(query.objects().len()),
            fewest: Vec::with_capacity(query.objects().len()),
        };
        for object in query.objects() {
            division.first.push(division.sums.len());
            add_sums(object, &mut division.sums);
        }
        for (object, first) in query.objects().iter().zip(&division.first) {
            let sums = &division.sums[*first..];
            division
                .fewest
                .push(fewest(object, sums, model).unwrap_or(0));
        }
        division
    }

    /// The fewest calls of an object that keep the function's limits, if it can be called at all.
    pub(crate) fn fewest(&self, i: usize) -> Option<u64> {
        Some(self.fewest[i]).filter(|count| *count > 0)
    }

    /// True if no object needs several calls.
    pub(crate) fn all_alone(&self) -> bool {
        self.fewest.iter().all(|count| *count <= 1)
    }

    /// The calls of an object that is divided in at most `count` parts.
    pub(crate) fn each_call(&self, i: usize, count: u64, each: impl FnMut(Call)) {
        let object = &self.query.objects()[i];
        let sums = &self.sums[self.first[i]..];
        each_part(object, sums, count, each);
    }

    /// In how many calls that read at most about `most` bytes an object is divided.
    pub(crate) fn count(&self, i: usize, model: &Model, most: u64) -> Option<u64> {
        let fewest = self.fewest(i)?;
        let covering = self.query.objects()[i].covering();
        let wanted = (covering.end - covering.start).div_ceil(most.max(1));
        if wanted <= fewest {
            return Some(fewest);
        }
        let mut allowed = true;
        self.each_call(i, wanted, |call| allowed &= model.allows(&call));
        Some(if allowed { wanted } else { fewest })
    }

    /// The calls of an object, collected.
    pub(crate) fn calls(&self, i: usize, count: u64) -> Vec<Call> {
        let mut calls = Vec::new();
        self.each_call(i, count, |call| calls.push(call));
        calls
    }

    /// What the calls of an object ask for.
    pub(crate) fn load(&self, i: usize, model: &Model, count: u64) -> Load {
        let mut load = Load::default();
        self.each_call(i, count, |call| load.add_call(model, &call));
        load
    }
}

/// The calls of a single object.
pub(crate) fn divide(object: &Object, count: u64) -> Vec<Call> {
    let mut sums = Vec::with_capacity(object.runs.len() + 1);
    add_sums(object, &mut sums);
    let mut calls = Vec::new();
    each_part(object, &sums, count, |call| calls.push(call));
    calls
}

/// The fewest calls of a single object that keep the function's limits.
pub(crate) fn fewest_calls(object: &Object, model: &Model) -> Option<u64> {
    let mut sums = Vec::with_capacity(object.runs.len() + 1);
    add_sums(object, &mut sums);
    fewest(object, &sums, model)
}

fn fewest(object: &Object, sums: &[u64], model: &Model) -> Option<u64> {
    if !object.function || model.function().is_none() {
        return None;
    }
    let mut count = 1;
    while count <= MAX_CALLS {
        let (mut calls, mut allowed) = (0, true);
        each_part(object, sums, count, |call| {
            calls += 1;
            allowed &= model.allows(&call);
        });
        if allowed {
            return Some(count);
        }
        if calls < count {
            return None;
        }
        count *= 2;
    }
    None
}

fn add_sums(object: &Object, sums: &mut Vec<u64>) {
    let mut sum = 0;
    sums.push(0);
    for run in &object.runs {
        sum += run.useful;
        sums.push(sum);
    }
}

/// A place between wanted bytes: a run, and bytes of it that lie before.
type Cut = (usize, u64);

fn each_part(object: &Object, sums: &[u64], count: u64, mut each: impl FnMut(Call)) {
    let runs = &object.runs;
    let covering = object.covering();
    let total = u128::from(covering.end - covering.start);
    let mut from: Cut = (0, 0);
    for part in 1..=count {
        let to = if part == count {
            (runs.len(), 0)
        } else {
            let share = (total * u128::from(part) / u128::from(count)) as u64;
            cut(object, from.0, covering.start + share)
        };
        if to <= from {
            continue;
        }
        let read = runs[from.0].start + from.1..match to {
            (run, 0) => runs[run - 1].end,
            (run, before) => runs[run].start + before,
        };
        // Blocks that are decoded by themselves are read one by one, cells with what lies between.
        let (bytes, reads) = match object.grain {
            0 => {
                let blocks = &runs[from.0..to.0];
                (blocks.iter().map(Run::len).sum(), blocks.len() as u64)
            }
            _ => (read.end - read.start, 1),
        };
        each(Call {
            read,
            bytes,
            useful: sums[to.0] + to.1 - sums[from.0] - from.1,
            reads,
        });
        from = to;
    }
}

/// The cut at or before `border`, looking from run `from` on: between cells of a raw run, after a
/// run whose bytes only decode together.
fn cut(object: &Object, from: usize, border: u64) -> Cut {
    let rest = &object.runs[from..];
    let at = from + rest.partition_point(|run| run.end <= border);
    match object.runs.get(at) {
        Some(run) if run.start < border => match (border - run.start).checked_div(object.grain) {
            Some(cells) => (at, cells * object.grain),
            None => (at + 1, 0),
        },
        _ => (at, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Naive: walks over all bytes, and ends a part where the next border is passed.
    fn naive(object: &Object, count: u64) -> Vec<Call> {
        let covering = object.covering();
        let total = covering.end - covering.start;
        let border = |part: u64| covering.start + total * part / count;
        let part_of = |offset: u64| (1..count).filter(|part| border(*part) <= offset).count();
        let mut calls: Vec<(usize, Call)> = Vec::new();
        for run in &object.runs {
            // A cell belongs to the part in which it ends, a run of no cells to where it starts.
            let cell = object.grain.max(1);
            let mut at = run.start;
            while at < run.end {
                let end = if object.grain == 0 {
                    run.end
                } else {
                    at + cell
                };
                let part = if object.grain == 0 {
                    part_of(at)
                } else {
                    part_of_cell(&part_of, at, end)
                };
                match calls.last_mut() {
                    Some((last, call)) if *last == part => {
                        call.read.end = end;
                        call.useful += end - at;
                        call.reads += u64::from(object.grain == 0);
                        call.bytes = match object.grain {
                            0 => call.bytes + end - at,
                            _ => call.read.end - call.read.start,
                        };
                    }
                    _ => calls.push((
                        part,
                        Call {
                            read: at..end,
                            bytes: end - at,
                            useful: end - at,
                            reads: 1,
                        },
                    )),
                }
                at = end;
            }
        }
        calls.into_iter().map(|(_, call)| call).collect()
    }

    /// A cell that a border cuts belongs to the part after the border.
    fn part_of_cell(part_of: &impl Fn(u64) -> usize, _start: u64, end: u64) -> usize {
        part_of(end - 1)
    }

    proptest! {
        #[test]
        fn divided_objects_lose_nothing(
            lens in proptest::collection::vec((1u64..200, 1u64..50), 1..30),
            count in 1u64..12,
            grain in prop_oneof![Just(0u64), Just(1), Just(4)],
        ) {
            let mut at = 3;
            let mut runs = Vec::new();
            for (gap, len) in lens {
                let len = len * grain.max(1);
                runs.push(Run::plain(at..at + len));
                at += len + gap;
            }
            let object = Object { size: at, runs, grain, function: true, splittable: true };
            let calls = divide(&object, count);
            prop_assert_eq!(&calls, &naive(&object, count));
            prop_assert!(calls.len() as u64 <= count);
            prop_assert_eq!(calls.iter().map(|c| c.useful).sum::<u64>(), object.useful());
            prop_assert!(calls.windows(2).all(|w| w[0].read.end <= w[1].read.start));
            let total = object.covering().end - object.covering().start;
            let longest_run = object.runs.iter().map(Run::len).max().unwrap_or(0);
            let slack = if grain == 0 { longest_run } else { grain };
            for call in &calls {
                prop_assert!(call.read.end - call.read.start <= total / count + 1 + 2 * slack);
            }
        }
    }
}
