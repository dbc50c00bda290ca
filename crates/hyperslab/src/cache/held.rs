//! What the caches hold of one object, and what that leaves to be fetched.
//!
//! Between the caches and the planner. Invariants: everything held is of one state of the object;
//! what is planned without the held bytes and the held bytes that are needed beside it cover what
//! is wanted.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyperslab_format::Sharding;
use hyperslab_plan::{Object, Run};

use super::disk::{DiskCache, Entry, Part};
use super::memory::{Cached, Span};
use super::ranges::Ranges;

/// Held ranges at most this far apart are loaded in one go, if what is between them is held too.
const NEAR: u64 = 64 << 10;

/// What is held of one state of an object.
#[derive(Debug, Default)]
pub(crate) struct Held {
    etag: Option<String>,
    /// Bytes of the whole object, where that is known.
    size: Option<u64>,
    fresh: bool,
    ranges: Ranges,
    sources: Arc<Sources>,
    /// The function may be called for the object.
    function: bool,
}

/// Where held bytes are.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Sorted and disjoint.
    memory: Vec<(u64, Bytes)>,
    disk: Vec<Entry>,
}

/// Bytes in memory.
pub(crate) type InMemory = (Span, Cached<Bytes>);

impl Held {
    /// Of several states, the one that the store confirmed last. It is fresh if that was less than
    /// `fresh` ago.
    pub(crate) fn new(
        memory: Vec<InMemory>,
        disk: Vec<Entry>,
        fresh: Duration,
        function: bool,
    ) -> Self {
        let now = SystemTime::now();
        // A time that is yet to come was noted by another clock: it says nothing.
        let age = |entry: &Entry| now.duration_since(entry.checked).unwrap_or(Duration::MAX);
        let ages = memory
            .iter()
            .filter_map(|(_, cached)| Some((cached.age, cached.etag.clone()?)))
            .chain(
                disk.iter()
                    .map(|entry| (age(entry), entry.head.etag.clone())),
            );
        let Some((age, etag)) = ages.min() else {
            return Held::default();
        };
        let memory: Vec<InMemory> = memory
            .into_iter()
            .filter(|(_, cached)| cached.etag.as_ref() == Some(&etag))
            .collect();
        let disk: Vec<Entry> = disk
            .into_iter()
            .filter(|entry| entry.head.etag == etag)
            .collect();
        let whole = |(range, cached): &InMemory| match range {
            None => Some(cached.value.len() as u64),
            Some(_) => None,
        };
        let size = disk.first().map(|entry| entry.head.size);
        let size = size.or_else(|| memory.iter().find_map(whole));
        let memory = disjoint(memory);
        let in_memory = memory
            .iter()
            .map(|(start, bytes)| *start..start + bytes.len() as u64);
        Held {
            ranges: in_memory
                .chain(disk.iter().flat_map(Entry::ranges))
                .collect(),
            etag: Some(etag),
            size,
            fresh: age < fresh,
            sources: Arc::new(Sources { memory, disk }),
            function,
        }
    }

    /// True if nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The state that it is of.
    pub(crate) fn etag(&self) -> Option<String> {
        self.etag.clone()
    }

    /// Bytes of the whole object, where that is known.
    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    /// True if the store need not be asked whether the object is still in that state.
    pub(crate) fn fresh(&self) -> bool {
        self.fresh
    }

    /// Where the bytes are.
    pub(crate) fn sources(&self) -> Arc<Sources> {
        self.sources.clone()
    }

    /// Only this state is of use.
    pub(crate) fn pin(&mut self, etag: Option<&str>) {
        if self.etag.as_deref() != etag {
            *self = Held::default();
        }
    }

    /// Where the index of a shard is, if it is held.
    pub(crate) fn index_range(&self, sharding: &Sharding) -> Option<Range<u64>> {
        let (size, n) = (self.size?, sharding.index_bytes());
        let start = match sharding.index_at_start() {
            true => 0,
            false => size.checked_sub(n)?,
        };
        let range = start..start.checked_add(n)?;
        self.ranges.covers(&range).then_some(range)
    }

    /// Takes what is held out of what is wanted of an object, so that it costs nothing.
    pub(crate) fn take_out(&self, object: &mut Object) {
        if self.is_empty() {
            return;
        }
        if !object.splittable {
            if self.size.is_some_and(|size| self.ranges.covers(&(0..size))) {
                object.runs.clear();
            }
            return;
        }
        let missing: Vec<Run> = object
            .runs
            .iter()
            .flat_map(|run| {
                let parts = self.ranges.missing(&(run.start..run.end));
                parts.into_iter().map(|part| share(run, part))
            })
            .collect();
        let (wanted, left) = (bytes(&object.runs), bytes(&missing));
        // The function answers for all wanted cells of an object, or not at all. An object of which
        // little is held is better left to it than fetched without.
        if left == wanted || (left > 0 && self.function && left > wanted / 2) {
            return;
        }
        object.function = false;
        object.runs = missing;
    }

    /// How many bytes of what is wanted are held.
    pub(crate) fn wanted_bytes(&self, wanted: &Object) -> u64 {
        if !wanted.splittable {
            let whole = self.size.filter(|size| self.ranges.covers(&(0..*size)));
            return whole.unwrap_or(0);
        }
        let inside = |run: &Run| -> u64 {
            let parts = self.ranges.inside(&(run.start..run.end));
            parts.map(|part| part.end - part.start).sum()
        };
        wanted.runs.iter().map(inside).sum()
    }

    /// The held ranges that are needed beside those that are fetched.
    pub(crate) fn needed(&self, wanted: &Object, fetched: &[Range<u64>]) -> Vec<Range<u64>> {
        if self.is_empty() {
            return Vec::new();
        }
        if !wanted.splittable {
            let whole = self.size.filter(|_| fetched.is_empty());
            return whole.map(|size| 0..size).into_iter().collect();
        }
        let fetched: Ranges = fetched.iter().cloned().collect();
        let mut needed: Vec<Range<u64>> = Vec::new();
        for run in &wanted.runs {
            for part in fetched.missing(&(run.start..run.end)) {
                if let Some(last) = needed.last_mut() {
                    let gap = last.end..part.start;
                    let near = gap.end - gap.start <= NEAR && self.ranges.covers(&gap);
                    if near && fetched.inside(&gap).next().is_none() {
                        last.end = part.end;
                        continue;
                    }
                }
                needed.push(part);
            }
        }
        needed
    }
}

fn bytes(runs: &[Run]) -> u64 {
    runs.iter().map(Run::len).sum()
}

/// A part of a run, with its share of what is useful.
fn share(run: &Run, part: Range<u64>) -> Run {
    let len = u128::from(part.end - part.start);
    let useful = u128::from(run.useful) * len / u128::from(run.len().max(1));
    Run {
        start: part.start,
        end: part.end,
        useful: u64::try_from(useful).unwrap_or(run.useful),
    }
}

/// Bytes in memory by their place in the object, each once.
fn disjoint(memory: Vec<InMemory>) -> Vec<(u64, Bytes)> {
    let mut sorted: Vec<(u64, Bytes)> = memory
        .into_iter()
        .map(|(range, cached)| (range.map_or(0, |(start, _)| start), cached.value))
        .collect();
    sorted.sort_by_key(|(start, _)| *start);
    let mut end = 0;
    let mut out = Vec::with_capacity(sorted.len());
    for (start, mut bytes) in sorted {
        let known = end.max(start) - start;
        if known >= bytes.len() as u64 {
            continue;
        }
        let bytes = bytes.split_off(known as usize);
        end = start + known + bytes.len() as u64;
        out.push((start + known, bytes));
    }
    out
}

impl Sources {
    /// Loads ranges that are held. `None` if some bytes are gone or broken: another process may
    /// have removed them meanwhile. Blocks.
    pub(crate) fn load(
        &self,
        cache: Option<&DiskCache>,
        ranges: &[Range<u64>],
    ) -> Option<Vec<Part>> {
        let mut files: Vec<Option<File>> = self.disk.iter().map(|_| None).collect();
        let mut loaded = Vec::with_capacity(ranges.len());
        for range in ranges {
            let mut segments = Vec::new();
            let mut at = range.start;
            while at < range.end {
                let rest = at..range.end;
                let bytes = match self.in_memory(&rest) {
                    Some(bytes) => bytes,
                    None => self.on_disk(cache?, &mut files, &rest)?,
                };
                at += bytes.len() as u64;
                segments.push(bytes);
            }
            loaded.push((range.start, segments));
        }
        Some(loaded)
    }

    /// The first bytes of a range, if they are in memory.
    fn in_memory(&self, range: &Range<u64>) -> Option<Bytes> {
        let behind = self
            .memory
            .partition_point(|(start, _)| *start <= range.start);
        let (start, bytes) = self.memory.get(behind.checked_sub(1)?)?;
        let from = range.start - start;
        let to = (range.end - start).min(bytes.len() as u64);
        (from < to).then(|| bytes.slice(from as usize..to as usize))
    }

    /// The first bytes of a range, if they are on disk and whole.
    fn on_disk(
        &self,
        cache: &DiskCache,
        files: &mut [Option<File>],
        range: &Range<u64>,
    ) -> Option<Bytes> {
        for (entry, slot) in self.disk.iter().zip(files) {
            if !entry.holds(range.start) {
                continue;
            }
            if slot.is_none() {
                *slot = cache.use_file(entry).ok();
            }
            match entry.read(slot.as_ref()?, range) {
                Ok(Some(bytes)) => return Some(bytes),
                Ok(None) => {}
                Err(_) => cache.discard(&entry.path),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(range: &Range<u64>) -> Bytes {
        range.clone().map(|i| (i % 251) as u8).collect()
    }

    fn held(ranges: &[Range<u64>], function: bool) -> Held {
        let cached = |range: &Range<u64>| Cached {
            value: bytes_of(range),
            etag: Some("e".into()),
            age: Duration::ZERO,
            fresh: false,
        };
        let memory = ranges
            .iter()
            .map(|range| (Some((range.start, range.end)), cached(range)))
            .collect();
        Held::new(memory, Vec::new(), Duration::from_secs(1), function)
    }

    fn object(runs: &Ranges, whole: &Range<u64>) -> Object {
        let runs = runs.inside(whole).map(Run::plain).collect();
        Object::raw(whole.end, runs)
    }

    fn range() -> impl Strategy<Value = Range<u64>> {
        (0u64..300, 1u64..40).prop_map(|(start, len)| start..start + len)
    }

    fn ranges(most: usize) -> impl Strategy<Value = Vec<Range<u64>>> {
        proptest::collection::vec(range(), 0..most)
    }

    proptest! {
        /// Whatever a planner fetches that covers what is missing, and more: it and what is needed
        /// of the held bytes are all that is wanted, and each byte is as it should be.
        #[test]
        fn fetched_and_held_bytes_cover_what_is_wanted(
            held_ranges in ranges(8),
            wanted in ranges(8),
            more in ranges(4),
            function in any::<bool>(),
        ) {
            let wanted: Ranges = wanted.into_iter().collect();
            let full = object(&wanted, &(0..1000));
            let held = held(&held_ranges, function);
            let mut left = full.clone();
            held.take_out(&mut left);
            for run in &left.runs {
                prop_assert!(full.runs.iter().any(|r| r.start <= run.start && run.end <= r.end));
            }
            let fetched: Ranges = left.runs.iter().map(|r| r.start..r.end).chain(more).collect();
            let fetched: Vec<Range<u64>> = fetched.inside(&(0..1000)).collect();
            let needed = held.needed(&full, &fetched);
            let parts = held.sources().load(None, &needed);
            prop_assert!(parts.is_some(), "what is needed is held: {:?}", needed);
            let mut parts = parts.unwrap_or_default();
            parts.extend(fetched.iter().map(|r| (r.start, vec![bytes_of(r)])));
            let mut seen = 0;
            let bodies = crate::cache::join(parts);
            for (start, body) in &bodies {
                prop_assert!(*start >= seen, "bytes are there twice");
                seen = start + body.len();
                let bytes = body.clone().into_bytes().unwrap();
                prop_assert_eq!(bytes, bytes_of(&(*start..seen)));
            }
            for run in &full.runs {
                let one = |(start, body): &(u64, hyperslab_store::Body)| {
                    *start <= run.start && run.end <= start + body.len()
                };
                prop_assert!(bodies.iter().any(one), "{run:?} is not in one piece");
            }
        }
    }

    #[test]
    fn a_whole_object_is_free_only_if_all_of_it_is_held() {
        let cached = |range, len: u64| {
            let value = bytes_of(&(0..len));
            let (etag, age) = (Some("e".into()), Duration::ZERO);
            (
                range,
                Cached {
                    value,
                    etag,
                    age,
                    fresh: false,
                },
            )
        };
        let fresh = Duration::from_secs(1);
        let mut encoded = Object::encoded(50, 100);
        encoded.splittable = false;
        for (memory, free) in [
            (vec![cached(None, 60)], true),
            // Its size is not known.
            (vec![cached(Some((0, 60)), 60)], false),
        ] {
            let held = Held::new(memory, Vec::new(), fresh, false);
            let mut left = encoded.clone();
            held.take_out(&mut left);
            assert_eq!(left.runs.is_empty(), free);
            assert_eq!(held.wanted_bytes(&encoded), if free { 60 } else { 0 });
        }
    }

    #[test]
    fn of_two_states_the_one_confirmed_last_is_held() {
        let of = |etag: &str, seconds| Cached {
            value: Bytes::from_static(b"cells"),
            etag: Some(etag.into()),
            age: Duration::from_secs(seconds),
            fresh: false,
        };
        let memory = vec![(Some((0, 5)), of("old", 9)), (Some((5, 10)), of("new", 2))];
        let mut held = Held::new(memory, Vec::new(), Duration::from_secs(3), false);
        assert_eq!(held.etag().as_deref(), Some("new"));
        assert!(held.fresh() && !held.ranges.covers(&(0..5)));
        held.pin(Some("new"));
        assert!(!held.is_empty());
        held.pin(Some("newer"));
        assert!(held.is_empty());
    }
}
