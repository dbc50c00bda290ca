//! Sets of bytes of an object, as ranges.
//!
//! Invariant: the ranges are sorted, not empty, disjoint and non-adjacent, so equal sets are equal
//! lists.

use std::ops::Range;

/// A set of byte offsets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<Range<u64>>);

impl FromIterator<Range<u64>> for Ranges {
    /// Ranges in any order, which may overlap or be empty.
    fn from_iter<T: IntoIterator<Item = Range<u64>>>(ranges: T) -> Self {
        let mut sorted: Vec<Range<u64>> = ranges
            .into_iter()
            .filter(|range| range.start < range.end)
            .collect();
        sorted.sort_unstable_by_key(|range| range.start);
        sorted.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
        Ranges(sorted)
    }
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// True if it has every byte of `range`.
    pub(crate) fn covers(&self, range: &Range<u64>) -> bool {
        range.start >= range.end
            || self
                .near(range)
                .first()
                .is_some_and(|held| held.start <= range.start && range.end <= held.end)
    }

    /// The parts of `range` that it has, in order.
    pub(crate) fn inside(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let range = range.clone();
        self.near(&range)
            .iter()
            .map_while(move |held| {
                (held.start < range.end)
                    .then(|| held.start.max(range.start)..held.end.min(range.end))
            })
            .filter(|part| part.start < part.end)
    }

    /// The parts of `range` that it has not, in order.
    pub(crate) fn missing(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut at = range.start;
        for held in self.inside(range) {
            if at < held.start {
                parts.push(at..held.start);
            }
            at = held.end;
        }
        if at < range.end {
            parts.push(at..range.end);
        }
        parts
    }

    /// The ranges from the first that ends behind the start of `range`.
    fn near(&self, range: &Range<u64>) -> &[Range<u64>] {
        let from = self.0.partition_point(|held| held.end <= range.start);
        &self.0[from..]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn bytes<'a>(ranges: impl IntoIterator<Item = &'a Range<u64>>) -> BTreeSet<u64> {
        ranges.into_iter().flat_map(Clone::clone).collect()
    }

    fn range() -> impl Strategy<Value = Range<u64>> {
        (0u64..60, 0u64..20).prop_map(|(start, len)| start..start + len)
    }

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_bytes(
            given in proptest::collection::vec(range(), 0..12),
            asked in range(),
        ) {
            let all = bytes(&given);
            let ranges: Ranges = given.into_iter().collect();
            prop_assert_eq!(bytes(&ranges.0), all.clone());
            prop_assert!(ranges.0.iter().all(|r| r.start < r.end));
            prop_assert!(ranges.0.windows(2).all(|w| w[0].end < w[1].start));
            prop_assert_eq!(ranges.bytes(), all.len() as u64);
            prop_assert_eq!(ranges.is_empty(), all.is_empty());

            let wanted: BTreeSet<u64> = asked.clone().collect();
            prop_assert_eq!(ranges.covers(&asked), wanted.is_subset(&all));
            let inside: Vec<_> = ranges.inside(&asked).collect();
            prop_assert_eq!(bytes(&inside), &wanted & &all);
            let missing = ranges.missing(&asked);
            prop_assert_eq!(bytes(&missing), &wanted - &all);
            let mut both: Vec<_> = inside.into_iter().chain(missing).collect();
            both.sort_by_key(|r| r.start);
            prop_assert!(both.windows(2).all(|w| w[0].end == w[1].start));
        }
    }
}
