//! The manifest of an array's replicas, and the changes that it goes through. Pure: no I/O.
//!
//! Below [`super::ledger`], which stores it. The protocol is in `docs/design/012-replicas.md`.
//!
//! Invariant: a cell of a replica that no mark of that replica covers is not older than what the
//! original held when the last write of that cell was acknowledged.

use std::collections::BTreeMap;

use hyperslab_index::{Region, Shape};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::states::Change;
use crate::{Error, Result};

/// The version of manifests.
pub(crate) const VERSION: u32 = 1;
/// So many changes stay signed (design note 006).
const SIGNED: usize = 16;

/// What is known of the replicas of one array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) version: u32,
    /// Grows with every change, so that no two states have the same bytes, nor the same ETag.
    generation: u64,
    /// Who made the last changes, newest first.
    signed: Vec<u64>,
    /// Type and fill value of the original: an array that was made anew may have others.
    pub(crate) cell: Value,
    /// The smallest shape that holds all cells whose objects are listed, or were written since: the
    /// array may have become smaller.
    extent: Vec<u64>,
    /// The object that lists the states of the original's objects, if it was made.
    pub(crate) seen: Option<String>,
    /// Objects that the original had when that list was made, and their bytes.
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    /// What became of objects of the original since that list was made, by key below the array.
    pub(crate) changed: BTreeMap<String, Change>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) marks: Vec<Mark>,
}

/// A copy of the array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Replica {
    pub(crate) name: String,
    /// Its folder beside the manifest; never used again for another.
    pub(crate) folder: String,
    /// False until all cells were copied once.
    pub(crate) complete: bool,
    /// Its metadata.
    pub(crate) meta: Value,
    /// Objects that it had, and their bytes, when it was filled.
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

/// Who is, or was, at work on some cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Work {
    /// Writes the original and the replicas.
    Write,
    /// Copies from the original to replicas.
    Copy,
    /// Nobody is; the cells of the replicas may be old.
    Stale,
}

/// Cells that must not be read from some replicas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) token: u64,
    /// When it was put, in milliseconds since 1970 by the clock of whoever put it.
    pub(crate) since: u64,
    pub(crate) work: Work,
    /// Boxes of cells, aligned to objects of the original.
    pub(crate) boxes: Vec<Cells>,
    /// Names of the replicas that it is about.
    pub(crate) replicas: Vec<String>,
    /// Those of them for which somebody else was at work on the same cells.
    pub(crate) contested: Vec<String>,
    /// Another writer was at work on the same cells.
    pub(crate) shared: bool,
}

/// A box of cells: (start, sides).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cells(Vec<u64>, Vec<u64>);

impl Cells {
    pub(crate) fn of(region: &Region) -> Self {
        Cells(region.start().to_vec(), region.shape().to_vec())
    }

    pub(crate) fn region(&self) -> Result<Region> {
        Region::new(&self.0, &self.1)
    }

    pub(crate) fn meets(&self, other: &Cells) -> bool {
        let mut sides = self.0.iter().zip(&self.1).zip(other.0.iter().zip(&other.1));
        self.0.len() == other.0.len()
            && sides.all(|((a, m), (b, n))| {
                a < &b.saturating_add(*n) && b < &a.saturating_add(*m) && *m > 0 && *n > 0
            })
    }

    fn holds(&self, other: &Cells) -> bool {
        let mut sides = self.0.iter().zip(&self.1).zip(other.0.iter().zip(&other.1));
        self.0.len() == other.0.len()
            && sides.all(|((a, m), (b, n))| a <= b && b.saturating_add(*n) <= a.saturating_add(*m))
    }
}

fn meet(one: &[Cells], other: &[Cells]) -> bool {
    one.iter().any(|a| other.iter().any(|b| a.meets(b)))
}

/// What a writer has to tell when it ends.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The original was not written completely.
    pub(crate) failed: bool,
    /// Replicas that could not be written.
    pub(crate) behind: Vec<String>,
    /// What became of objects of the original.
    pub(crate) changes: Vec<(String, Change)>,
    /// Cells that have to be copied from the original, whatever was written.
    pub(crate) also: Vec<Cells>,
}

impl Manifest {
    pub(crate) fn new(cell: Value) -> Self {
        Manifest {
            version: VERSION,
            generation: 0,
            signed: Vec::new(),
            cell,
            extent: Vec::new(),
            seen: None,
            objects: 0,
            bytes: 0,
            changed: BTreeMap::new(),
            replicas: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Parses a stored manifest.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let manifest: Manifest = serde_json::from_slice(bytes)
            .map_err(|e| Error::data(format!("the manifest of the replicas is damaged: {e}")))?;
        if manifest.version != VERSION {
            return Err(Error::data(format!(
                "the manifest of the replicas has the version {}, and {VERSION} is known",
                manifest.version
            )));
        }
        Ok(manifest)
    }

    /// Its stored form.
    pub(crate) fn render(&self) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
            .map_err(|e| Error::internal(format!("a manifest has no JSON: {e}")))
    }

    /// Signs the next state.
    pub(crate) fn sign(&mut self, signature: u64) {
        self.generation += 1;
        self.signed.insert(0, signature);
        self.signed.truncate(SIGNED);
    }

    /// True if a change was signed so.
    pub(crate) fn is_signed(&self, signature: u64) -> bool {
        self.signed.contains(&signature)
    }

    /// Names of all replicas.
    pub(crate) fn names(&self) -> Vec<String> {
        self.replicas.iter().map(|r| r.name.clone()).collect()
    }

    pub(crate) fn replica(&self, name: &str) -> Option<&Replica> {
        self.replicas.iter().find(|r| r.name == name)
    }

    /// True if a replica may answer for cells, as far as marks tell.
    pub(crate) fn serves(&self, replica: &Replica, cells: &Cells) -> bool {
        let about = |mark: &&Mark| mark.replicas.contains(&replica.name);
        replica.complete
            && !self
                .marks
                .iter()
                .filter(about)
                .any(|mark| mark.boxes.iter().any(|b| b.meets(cells)))
    }

    /// True if any mark covers some of these cells.
    pub(crate) fn is_marked(&self, cells: &Cells) -> bool {
        let mut marks = self.marks.iter();
        marks.any(|mark| mark.boxes.iter().any(|b| b.meets(cells)))
    }

    /// True if somebody is at work on some of these cells.
    fn is_busy(&self, boxes: &[Cells]) -> bool {
        let mut marks = self.marks.iter();
        marks.any(|mark| mark.work != Work::Stale && meet(&mark.boxes, boxes))
    }

    /// Puts the mark of somebody who begins to work, and notes who contests whom.
    pub(crate) fn begin(
        &mut self,
        token: u64,
        now: u64,
        work: Work,
        boxes: Vec<Cells>,
        replicas: Vec<String>,
    ) {
        self.reach(&boxes);
        let mut mark = Mark {
            token,
            since: now,
            work,
            boxes,
            replicas,
            contested: Vec::new(),
            shared: false,
        };
        for other in &mut self.marks {
            let writers = usize::from(other.work == Work::Write) + usize::from(work == Work::Write);
            if other.work == Work::Stale || writers == 0 || !meet(&mark.boxes, &other.boxes) {
                continue;
            }
            for name in mark.replicas.iter().filter(|r| other.replicas.contains(r)) {
                add(&mut other.contested, name);
                add(&mut mark.contested, name);
            }
            mark.shared |= writers == 2;
            other.shared |= writers == 2;
        }
        self.marks.push(mark);
    }

    /// Puts a replica in the list. Writers that are at work do not know of it, so what they write is
    /// stale in it.
    pub(crate) fn add_replica(&mut self, replica: Replica) {
        for mark in self.marks.iter_mut().filter(|m| m.work == Work::Write) {
            add(&mut mark.replicas, &replica.name);
            add(&mut mark.contested, &replica.name);
        }
        self.replicas.push(replica);
    }

    /// Takes a replica out of the list; returns it.
    pub(crate) fn drop_replica(&mut self, name: &str) -> Option<Replica> {
        let at = self.replicas.iter().position(|r| r.name == name)?;
        for mark in &mut self.marks {
            mark.replicas.retain(|r| r != name);
            mark.contested.retain(|r| r != name);
        }
        self.tidy();
        if self.replicas.len() == 1 {
            // Nothing is compared any more.
            self.seen = None;
            self.changed.clear();
        }
        Some(self.replicas.remove(at))
    }

    /// Ends a write. Returns true if cells of its boxes are stale now.
    pub(crate) fn end_write(
        &mut self,
        token: u64,
        now: u64,
        boxes: &[Cells],
        told: &Written,
    ) -> bool {
        let all = self.names();
        let at = self
            .marks
            .iter()
            .position(|m| m.token == token && m.work == Work::Write);
        let Some(at) = at else {
            // Somebody took the mark for that of a killed writer, and may have copied too early.
            self.push_stale(token, now, boxes.to_vec(), all);
            return true;
        };
        let mark = &mut self.marks[at];
        let stale: Vec<String> = match told.failed {
            true => mark.replicas.clone(),
            false => mark
                .replicas
                .iter()
                .filter(|r| mark.contested.contains(r) || told.behind.contains(r))
                .cloned()
                .collect(),
        };
        let ordered = !told.failed && !mark.shared;
        mark.work = Work::Stale;
        mark.replicas = stale.clone();
        mark.contested.clear();
        if ordered {
            for (key, change) in &told.changes {
                self.record(key, *change);
            }
        }
        if !told.also.is_empty() {
            self.push_stale(token.wrapping_add(1), now, told.also.clone(), all);
        }
        self.tidy();
        !stale.is_empty() || !told.also.is_empty()
    }

    /// Ends a copy: the stale marks that it found are cleaned for the replicas that it brought up to
    /// date, and the states of objects that it copied from are noted. Returns those that are clean.
    pub(crate) fn end_copy(
        &mut self,
        token: u64,
        now: u64,
        found: &[u64],
        done: &[String],
        states: &[(String, Change)],
    ) -> Vec<String> {
        let at = self
            .marks
            .iter()
            .position(|m| m.token == token && m.work == Work::Copy);
        let Some(at) = at else {
            return Vec::new();
        };
        let mark = self.marks.remove(at);
        let clean: Vec<String> = done
            .iter()
            .filter(|r| mark.replicas.contains(r) && !mark.contested.contains(r))
            .cloned()
            .collect();
        for stale in &mut self.marks {
            let covered = |cells: &Cells| mark.boxes.iter().any(|b| b.holds(cells));
            if stale.work == Work::Stale
                && found.contains(&stale.token)
                && stale.boxes.iter().all(covered)
            {
                stale.replicas.retain(|r| !clean.contains(r));
            }
        }
        if !clean.is_empty() {
            let news: Vec<_> = states
                .iter()
                .filter(|(key, state)| self.changed.get(key).map(|c| c.to) != Some(state.to))
                .collect();
            let others: Vec<String> = self
                .names()
                .into_iter()
                .filter(|r| !clean.contains(r))
                .collect();
            // Of objects whose state nobody had noted, other replicas may have older cells.
            if !news.is_empty() && !others.is_empty() {
                self.push_stale(token, now, mark.boxes.clone(), others);
            }
            for (key, state) in news {
                self.changed.insert(key.clone(), *state);
            }
        }
        self.tidy();
        clean
    }

    /// Declares cells stale in all replicas.
    pub(crate) fn push_stale(
        &mut self,
        token: u64,
        now: u64,
        boxes: Vec<Cells>,
        replicas: Vec<String>,
    ) {
        self.reach(&boxes);
        self.marks.push(Mark {
            token,
            since: now,
            work: Work::Stale,
            boxes,
            replicas,
            contested: Vec::new(),
            shared: false,
        });
        self.tidy();
    }

    /// Notes that objects with these cells may be written.
    fn reach(&mut self, boxes: &[Cells]) {
        for Cells(start, sides) in boxes {
            self.extent.resize(start.len(), 0);
            let ends = start.iter().zip(sides).map(|(a, n)| a.saturating_add(*n));
            let sides = self.extent.iter_mut().zip(ends);
            sides.for_each(|(side, end)| *side = end.max(*side));
        }
    }

    /// A shape that holds an array and all cells that were ever written.
    pub(crate) fn around(&self, shape: &Shape) -> Result<Shape> {
        let reached = |dim: usize| self.extent.get(dim).copied().unwrap_or(0);
        let sides = shape.iter().enumerate();
        Shape::new(sides.map(|(dim, side)| reached(dim).max(*side)))
    }

    /// Takes over what others have left, or seem to have left: work that began before `before`.
    /// Returns true if there was any.
    pub(crate) fn take_over(&mut self, before: u64) -> bool {
        let old = |mark: &Mark| mark.work != Work::Stale && mark.since < before;
        let any = self.marks.iter().any(old);
        self.marks.retain(|m| !(old(m) && m.work == Work::Copy));
        for mark in self.marks.iter_mut().filter(|m| old(m)) {
            mark.work = Work::Stale;
            mark.contested.clear();
        }
        self.tidy();
        any
    }

    /// Stale marks with nobody at work on their cells. A copy that began before a write may still bring
    /// old cells, so copies count.
    pub(crate) fn idle(&self) -> Vec<&Mark> {
        self.marks
            .iter()
            .filter(|m| m.work == Work::Stale && !self.is_busy(&m.boxes))
            .collect()
    }

    fn record(&mut self, key: &str, change: Change) {
        let change = match self.changed.get(key) {
            Some(before) => before.then(change),
            None => change,
        };
        self.changed.insert(key.to_owned(), change);
    }

    /// Drops stale marks that are about no replica.
    fn tidy(&mut self) {
        self.marks
            .retain(|m| m.work != Work::Stale || !m.replicas.is_empty());
    }
}

fn add(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|n| n == name) {
        names.push(name.to_owned());
    }
}

/// The box around a region that is a whole number of the original's objects, inside the array.
pub(crate) fn aligned(region: &Region, chunk: &Shape, shape: &Shape) -> Result<Cells> {
    let mut start = Vec::with_capacity(region.rank());
    let mut sides = Vec::with_capacity(region.rank());
    for dim in 0..region.rank() {
        let (side, most) = (chunk[dim].max(1), shape[dim].max(region.end(dim)));
        let from = region.start()[dim] / side * side;
        let to = region
            .end(dim)
            .div_ceil(side)
            .saturating_mul(side)
            .min(most);
        start.push(from);
        sides.push(to - from);
    }
    Ok(Cells(start, sides))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cells(start: u64, side: u64) -> Cells {
        Cells(vec![start], vec![side])
    }

    fn with(names: &[&str]) -> Manifest {
        let mut manifest = Manifest::new(json!({}));
        for name in names {
            manifest.add_replica(Replica {
                name: (*name).to_owned(),
                folder: (*name).to_owned(),
                complete: true,
                meta: json!({}),
                objects: 0,
                bytes: 0,
            });
        }
        manifest
    }

    fn put(to: u64) -> Written {
        Written {
            changes: vec![("c/0".into(), Change { from: None, to })],
            ..Written::default()
        }
    }

    fn begin(m: &mut Manifest, token: u64, work: Work, at: u64) {
        let names = m.names();
        m.begin(token, token, work, vec![cells(at, 10)], names);
    }

    fn serves(m: &Manifest, name: &str, at: u64) -> bool {
        m.serves(m.replica(name).unwrap(), &cells(at, 1))
    }

    #[test]
    fn a_lone_write_leaves_nothing_but_its_states() {
        let mut m = with(&["a"]);
        begin(&mut m, 1, Work::Write, 0);
        assert!(!serves(&m, "a", 5) && serves(&m, "a", 10));
        assert!(!m.end_write(1, 9, &[cells(0, 10)], &put(7)));
        assert!(m.marks.is_empty() && serves(&m, "a", 5));
        assert_eq!(m.changed["c/0"], Change { from: None, to: 7 });
    }

    #[test]
    fn writers_that_meet_leave_their_cells_stale_in_either_order() {
        for order in [[1, 2], [2, 1]] {
            let mut m = with(&["a"]);
            begin(&mut m, 1, Work::Write, 0);
            begin(&mut m, 2, Work::Write, 5);
            assert!(m.end_write(order[0], 9, &[], &put(7)));
            assert!(m.idle().is_empty(), "the other one is still writing");
            assert!(m.end_write(order[1], 9, &[], &put(8)));
            assert!(!serves(&m, "a", 0) && !serves(&m, "a", 14) && serves(&m, "a", 15));
            assert!(m.changed.is_empty(), "nobody knows which put was the last");
            assert_eq!(m.idle().len(), 2);
        }
    }

    #[test]
    fn a_copy_cleans_what_it_found_unless_a_writer_came() {
        for contested in [false, true] {
            let mut m = with(&["a", "b"]);
            m.push_stale(1, 1, vec![cells(0, 10)], vec!["a".into()]);
            m.begin(2, 2, Work::Copy, vec![cells(0, 10)], vec!["a".into()]);
            if contested {
                begin(&mut m, 3, Work::Write, 5);
                assert!(m.end_write(3, 9, &[], &put(4)));
            }
            let clean = m.end_copy(2, 9, &[1], &["a".into()], &[]);
            assert_eq!(clean.is_empty(), contested);
            assert_eq!(serves(&m, "a", 0), !contested);
            assert_eq!(serves(&m, "a", 12), !contested, "the writer's cells");
            assert!(serves(&m, "b", 12), "nobody copied to it meanwhile");
        }
    }

    #[test]
    fn a_new_replica_does_not_have_what_is_being_written() {
        let mut m = with(&["a"]);
        begin(&mut m, 1, Work::Write, 0);
        let added = Replica {
            name: "b".into(),
            ..m.replicas[0].clone()
        };
        m.add_replica(added);
        assert!(m.end_write(1, 9, &[], &put(7)));
        assert!(serves(&m, "a", 0) && !serves(&m, "b", 0));
    }

    #[test]
    fn a_writer_whose_mark_was_taken_leaves_a_stale_one() {
        let mut m = with(&["a"]);
        begin(&mut m, 1, Work::Write, 0);
        assert!(!m.take_over(1), "it is not older");
        assert!(m.take_over(2));
        m.begin(5, 5, Work::Copy, vec![cells(0, 10)], vec!["a".into()]);
        assert_eq!(m.end_copy(5, 6, &[1], &["a".into()], &[]), ["a"]);
        assert!(serves(&m, "a", 0));
        assert!(m.end_write(1, 9, &[cells(0, 10)], &put(7)));
        assert!(!serves(&m, "a", 0));
    }

    #[test]
    fn a_state_that_nobody_had_noted_makes_other_replicas_stale() {
        let mut m = with(&["a", "b"]);
        m.begin(2, 2, Work::Copy, vec![cells(0, 10)], vec!["a".into()]);
        let state = Change { from: None, to: 3 };
        m.end_copy(2, 9, &[], &["a".into()], &[("c/0".into(), state)]);
        assert!(serves(&m, "a", 0) && !serves(&m, "b", 0));
    }

    #[test]
    fn boxes_are_aligned_and_stay_inside() {
        let shape = |n: &[u64]| Shape::new(n.iter().copied()).unwrap();
        let region = Region::new([3, 8], [2, 2]).unwrap();
        let aligned = aligned(&region, &shape(&[4, 4]), &shape(&[10, 10])).unwrap();
        assert_eq!(aligned, Cells(vec![0, 8], vec![8, 2]));
    }
}
