//! The states of the original's objects that its replicas hold, by which changes of foreign writers
//! are found.
//!
//! Beside the manifest: a list that is made once, and what became of single objects since. Invariant:
//! an object whose state is not accounted for is never taken for unchanged.

use std::collections::{BTreeMap, HashMap};

use hyperslab_store::Meta;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// The state of an object that is not there.
pub(crate) const ABSENT: u64 = 0;
/// A state that no object is ever in.
const NEVER: u64 = u64::MAX;
/// So the stored list begins.
const MAGIC: &[u8; 8] = b"hsseen01";

/// The state of an object as the store tells it, in 64 bits.
pub(crate) fn state_of(meta: &Meta) -> u64 {
    let text = match &meta.etag {
        Some(etag) => etag.clone(),
        None => format!("{} {:?}", meta.size, meta.modified_ms),
    };
    match hash(text.as_bytes()) {
        ABSENT | NEVER => 1,
        state => state,
    }
}

/// The state of an object by its ETag; without one nobody knows it.
pub(crate) fn state_of_etag(etag: Option<&str>) -> u64 {
    match etag {
        Some(etag) => state_of(&Meta {
            size: 0,
            etag: Some(etag.to_owned()),
            modified_ms: None,
        }),
        None => NEVER,
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(first)
}

/// How an object went from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The state before; `None` if it does not matter, since all of it was replaced, or copied.
    pub(crate) from: Option<u64>,
    pub(crate) to: u64,
}

impl Change {
    /// This change and then another, as one. If another began elsewhere than this one ended, somebody
    /// else was there between them.
    pub(crate) fn then(self, next: Change) -> Change {
        match next.from {
            None => next,
            Some(from) if from == self.to => Change {
                from: self.from,
                to: next.to,
            },
            Some(_) => Change {
                from: Some(NEVER),
                to: next.to,
            },
        }
    }

    /// The state that follows from an older list; `None` if somebody else was there. The list may
    /// have been made when the change was done already.
    fn after(self, listed: u64) -> Option<u64> {
        match self.from {
            Some(from) if from != listed && self.to != listed => None,
            _ => Some(self.to),
        }
    }
}

/// The states that objects had when the list was made, by a digest of their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen(HashMap<u64, u64>);

impl Seen {
    pub(crate) fn new<'a>(objects: impl IntoIterator<Item = (&'a str, u64)>) -> Self {
        let pairs = objects.into_iter();
        Seen(
            pairs
                .map(|(key, state)| (hash(key.as_bytes()), state))
                .collect(),
        )
    }

    /// The state that an object should have; `None` if none will do.
    pub(crate) fn expected(&self, key: &str, changed: &BTreeMap<String, Change>) -> Option<u64> {
        let listed = self.0.get(&hash(key.as_bytes())).copied().unwrap_or(ABSENT);
        match changed.get(key) {
            Some(change) => change.after(listed),
            None => Some(listed),
        }
    }

    /// How many of its objects should be there and are none of these.
    pub(crate) fn missing<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a str>,
        changed: &BTreeMap<String, Change>,
    ) -> usize {
        let found: std::collections::HashSet<u64> =
            keys.into_iter().map(|key| hash(key.as_bytes())).collect();
        let known: std::collections::HashSet<u64> =
            changed.keys().map(|key| hash(key.as_bytes())).collect();
        let mut missing = { self.0.iter() }
            .filter(|(key, state)| {
                **state != ABSENT && !found.contains(key) && !known.contains(key)
            })
            .count();
        missing += changed
            .keys()
            .filter(|key| !found.contains(&hash(key.as_bytes())))
            .filter(|key| self.expected(key, changed) != Some(ABSENT))
            .count();
        missing
    }

    /// The list with all changes in it; an object that somebody else changed is in no state.
    pub(crate) fn folded(&self, changed: &BTreeMap<String, Change>) -> Seen {
        let mut next = self.0.clone();
        for key in changed.keys() {
            let state = self.expected(key, changed).unwrap_or(NEVER);
            next.insert(hash(key.as_bytes()), state);
        }
        next.retain(|_, state| *state != ABSENT);
        Seen(next)
    }

    /// Its stored form.
    pub(crate) fn render(&self) -> Vec<u8> {
        let mut pairs: Vec<_> = self.0.iter().collect();
        pairs.sort_unstable();
        let mut bytes = MAGIC.to_vec();
        for (key, state) in pairs {
            bytes.extend(key.to_le_bytes());
            bytes.extend(state.to_le_bytes());
        }
        bytes
    }

    /// Parses a stored list.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::data("the list of states beside the replicas is damaged");
        let pairs = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (pairs, rest) = pairs.as_chunks::<16>();
        if !rest.is_empty() {
            return Err(damaged());
        }
        let number = |bytes: &[u8]| {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            u64::from_le_bytes(eight)
        };
        let each = pairs
            .iter()
            .map(|pair| (number(&pair[..8]), number(&pair[8..])));
        Ok(Seen(each.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_change_below_one_of_ours_is_not_forgotten() {
        let seen = Seen::new([("a", 5)]);
        let ours = |from, to| Change { from, to };
        let expected = |change| seen.expected("a", &BTreeMap::from([("a".to_owned(), change)]));
        assert_eq!(expected(ours(Some(5), 6)), Some(6));
        assert_eq!(expected(ours(Some(5), 6).then(ours(Some(6), 7))), Some(7));
        assert_eq!(expected(ours(Some(9), 6)), None, "somebody made it 9");
        assert_eq!(expected(ours(Some(5), 6).then(ours(Some(9), 7))), None);
        assert_eq!(expected(ours(Some(9), 6).then(ours(None, 7))), Some(7));
        assert_eq!(
            expected(ours(Some(4), 5)),
            Some(5),
            "listed after the change"
        );
    }

    #[test]
    fn lists_come_back_and_fold() {
        let seen = Seen::new([("a", 5), ("b", 6)]);
        assert_eq!(Seen::parse(&seen.render()).unwrap(), seen);
        assert!(Seen::parse(&seen.render()[..20]).is_err());
        let changed = BTreeMap::from([
            (
                "a".to_owned(),
                Change {
                    from: None,
                    to: ABSENT,
                },
            ),
            (
                "c".to_owned(),
                Change {
                    from: Some(8),
                    to: 9,
                },
            ),
        ]);
        let folded = seen.folded(&changed);
        let none = BTreeMap::new();
        assert_eq!(folded.expected("a", &none), Some(ABSENT));
        assert_eq!(folded.expected("b", &none), Some(6));
        assert_eq!(folded.expected("c", &none), Some(NEVER));
        assert_eq!(seen.missing(["b"], &none), 1);
        assert_eq!(seen.missing(["b", "c"], &changed), 0);
        assert_eq!(seen.missing(["c"], &changed), 1);
    }
}
