//! A point of the search, and what it costs.

use std::ops::Range;

use super::lengths::{Class, Lengths};
use crate::division::Division;
use crate::{Load, Method, Model, Object, Query};

/// Requests of less are not worth a connection of their own, however slow it is.
pub(super) const MIN_PART: u64 = 4 << 10;

/// A point of the search.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// Neighbouring runs at most this far apart are joined.
    pub(super) gap: u64,
    /// Ranges longer than this are fetched in parts.
    pub(super) part: u64,
    /// Calls read at most about this much.
    pub(super) call: u64,
    /// Which objects go to the function.
    pub(super) by_function: Vec<bool>,
    /// Objects whose calls travel together.
    pub(super) bundles: Vec<Vec<usize>>,
    /// What the objects that go to the function ask for.
    pub(super) called: Load,
}

impl Setting {
    /// One covering range for each object.
    pub(super) fn ranges(query: &Query) -> Setting {
        Setting {
            gap: u64::MAX,
            part: u64::MAX,
            call: u64::MAX,
            by_function: vec![false; query.objects().len()],
            bundles: Vec::new(),
            called: Load::default(),
        }
    }

    /// The methods that the setting stands for.
    pub(super) fn methods(
        &self,
        query: &Query,
        model: &Model,
        division: Option<&Division<'_>>,
    ) -> Vec<Method> {
        let objects = query.objects().iter().zip(&self.by_function).enumerate();
        objects
            .map(|(i, (object, by_function))| {
                if *by_function
                    && let Some(division) = division
                    && let Some(count) = division.count(i, model, self.call)
                {
                    return Method::Function(division.calls(i, count));
                }
                let mut ranges = Vec::new();
                each_group(object, self.gap, |group| {
                    ranges.extend(split_range(object, &group, part_of(object, self.part)));
                });
                Method::Ranges(ranges)
            })
            .collect()
    }

    /// What an object asks for when it is fetched by ranges.
    pub(super) fn ranged_load(&self, object: &Object, model: &Model) -> Load {
        let mut load = Load::default();
        each_group(object, self.gap, |group| {
            let len = group.end - group.start;
            let parts = len.div_ceil(part_of(object, self.part)).max(1);
            load.add_requests(model, parts, len, len.div_ceil(parts));
        });
        load
    }
}

/// The longest part of an object's ranges.
fn part_of(object: &Object, part: u64) -> u64 {
    if object.splittable {
        part.max(1)
    } else {
        u64::MAX
    }
}

/// Runs joined across gaps of at most `gap`.
fn each_group(object: &Object, gap: u64, mut each: impl FnMut(Range<u64>)) {
    if gap == u64::MAX {
        return each(object.covering());
    }
    let Some(first) = object.runs.first() else {
        return;
    };
    let mut group = first.start..first.end;
    for run in &object.runs[1..] {
        if run.start - group.end <= gap {
            group.end = run.end;
        } else {
            each(std::mem::replace(&mut group, run.start..run.end));
        }
    }
    each(group);
}

/// A range of an object in equal parts of at most about `part` bytes, which end between cells.
pub(super) fn split_range(
    object: &Object,
    range: &Range<u64>,
    part: u64,
) -> impl Iterator<Item = Range<u64>> + use<> {
    let len = range.end - range.start;
    let (start, cell) = (range.start, object.grain.max(1));
    let count = len.div_ceil(part.max(1)).min(len / cell).max(1);
    let border = move |i: u64| {
        let at = (u128::from(len) * u128::from(i) / u128::from(count)) as u64;
        start + if i == count { len } else { at / cell * cell }
    };
    (0..count).map(move |i| border(i)..border(i + 1))
}

/// The groups of all ranged objects at one threshold.
pub(super) struct Tally<'a> {
    model: &'a Model,
    /// What the function is asked, and what is fetched in one piece.
    base: Load,
    /// Bytes of the groups that may be fetched in parts.
    groups: Vec<Class>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(query: &Query, model: &'a Model, setting: &Setting, gap: u64) -> Self {
        let mut groups = Lengths::default();
        let mut base = setting.called;
        for (object, by_function) in query.objects().iter().zip(&setting.by_function) {
            if *by_function {
                continue;
            }
            each_group(object, gap, |group| {
                let len = group.end - group.start;
                if object.splittable {
                    groups.push(len);
                } else {
                    base.add_request(model, len);
                }
            });
        }
        Tally {
            model,
            base,
            groups: groups.into_classes(),
        }
    }

    /// Sizes of parts that are worth trying: halves of the largest group, and their halves.
    pub(super) fn parts(&self) -> Vec<u64> {
        let largest = self.groups.last().map_or(0, |class| class.most);
        let mut parts = vec![u64::MAX];
        // Parts between powers of two matter for a few connections only.
        for count in [
            2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
        ] {
            let part = largest.div_ceil(count);
            if part < MIN_PART {
                break;
            }
            parts.push(part);
        }
        parts
    }

    pub(super) fn load(&self, part: u64) -> Load {
        let mut load = self.base;
        for class in &self.groups {
            let parts = class.most.div_ceil(part.max(1)).max(1);
            let longest = class.most.div_ceil(parts);
            load.add_requests(self.model, class.count * parts, class.sum, longest);
        }
        load
    }
}
