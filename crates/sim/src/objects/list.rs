//! Listings: keys in byte order, with prefix, delimiter and pages.

use std::ops::Bound;
use std::sync::Arc;

use super::{Bucket, Entry};

/// What to list.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListRequest {
    pub(crate) prefix: String,
    /// Empty for none.
    pub(crate) delimiter: String,
    /// Only keys and common prefixes that sort after this one; empty for all.
    pub(crate) after: String,
    pub(crate) max_keys: usize,
}

/// One page of a listing.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<(String, Arc<Entry>)>,
    pub(crate) common_prefixes: Vec<String>,
    /// The last key or prefix of this page if there is more.
    pub(crate) next: Option<String>,
}

impl Bucket {
    /// Lists one page. Objects that come and go between two steps of a listing may or may not
    /// appear, as on S3.
    pub(crate) fn list(&self, request: &ListRequest) -> Page {
        let mut page = Page::default();
        let mut last = String::new();
        let start = request.after.as_str().max(request.prefix.as_str());
        let mut cursor = if start == request.after && !request.after.is_empty() {
            Bound::Excluded(start.to_string())
        } else {
            Bound::Included(start.to_string())
        };
        while let Some(key) = self.next_key(cursor.as_ref().map(String::as_str)) {
            let Some(rest) = key.strip_prefix(&request.prefix) else {
                break;
            };
            let common = match request.delimiter.as_str() {
                "" => None,
                delimiter => rest
                    .find(delimiter)
                    .map(|at| key[..request.prefix.len() + at + delimiter.len()].to_string()),
            };
            // A common prefix that is not after the marker was on an earlier page.
            let fresh = common
                .as_deref()
                .is_none_or(|common| common > request.after.as_str());
            if fresh && page.objects.len() + page.common_prefixes.len() == request.max_keys {
                page.next = (request.max_keys > 0).then_some(last);
                break;
            }
            match common {
                Some(common) => {
                    // Nothing in a key sorts after the greatest character, so this skips the
                    // whole common prefix.
                    cursor = Bound::Excluded(format!("{common}{}", char::MAX));
                    if fresh {
                        last.clone_from(&common);
                        page.common_prefixes.push(common);
                    }
                }
                None => {
                    // Gone since: no longer part of the listing.
                    if let Ok(entry) = self.get(&key) {
                        last.clone_from(&key);
                        page.objects.push((key.clone(), entry));
                    }
                    cursor = Bound::Excluded(key);
                }
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::seeded::mix;
    use crate::objects::{Condition, ObjectMap};
    use crate::procedural::{CellType, ZarrArray};
    use bytes::Bytes;
    use std::collections::BTreeSet;

    /// All keys and common prefixes in order, from the definition.
    fn naive(keys: &BTreeSet<String>, request: &ListRequest) -> Vec<String> {
        let rolled: BTreeSet<String> = keys
            .iter()
            .filter_map(|key| {
                let rest = key.strip_prefix(&request.prefix)?;
                let cut = match request.delimiter.as_str() {
                    "" => None,
                    delimiter => rest.find(delimiter).map(|at| at + delimiter.len()),
                };
                Some(cut.map_or(key.clone(), |cut| {
                    key[..request.prefix.len() + cut].to_string()
                }))
            })
            .collect();
        rolled
            .into_iter()
            .filter(|item| *item > request.after)
            .collect()
    }

    #[test]
    fn pages_agree_with_the_definition() {
        let map = ObjectMap::open(None).unwrap();
        let bucket = map.create_bucket("bucket").unwrap();
        let array = ZarrArray::new(CellType::UInt8, &[13, 3], &[1, 1]).unwrap();
        let mut keys: BTreeSet<String> = (0..40)
            .map(|p| {
                format!(
                    "b/array/{}",
                    crate::procedural::Procedural::key_at(&array, p)
                )
            })
            .collect();
        bucket.mount("b/array", Arc::new(array));
        let alphabet = ["a", "b", "/", "c", "é"];
        for round in 0..150_u64 {
            let length = 1 + mix(round) % 5;
            let key: String = (0..length)
                .map(|i| alphabet[(mix(round * 7 + i) % 5) as usize])
                .collect();
            let put = bucket.put(
                &key,
                Bytes::new(),
                "e".into(),
                Default::default(),
                &Condition::Always,
            );
            put.unwrap();
            keys.insert(key);
        }
        for (prefix, delimiter, after) in [
            ("", "", ""),
            ("", "/", ""),
            ("a", "/", ""),
            ("b/", "/", ""),
            ("b/array/c/", "/", ""),
            ("b/array/", "", "b/array/c/10/2"),
            ("", "/", "a/"),
            ("", "/", "b/array/c/1"),
            ("a", "a", "ab"),
            ("é", "", ""),
            ("zzz", "/", ""),
        ] {
            for max_keys in [1, 2, 7, 1000] {
                let mut request = ListRequest {
                    prefix: prefix.into(),
                    delimiter: delimiter.into(),
                    after: after.into(),
                    max_keys,
                };
                let expected = naive(&keys, &request);
                let mut seen = Vec::new();
                loop {
                    let page = bucket.list(&request);
                    let mut items: Vec<String> =
                        page.objects.into_iter().map(|(key, _)| key).collect();
                    items.extend(page.common_prefixes);
                    assert!(items.len() <= max_keys);
                    items.sort();
                    seen.extend(items);
                    match page.next {
                        Some(next) => request.after = next,
                        None => break,
                    }
                }
                assert_eq!(
                    seen, expected,
                    "{prefix:?} {delimiter:?} {after:?} {max_keys}"
                );
            }
        }
    }
}
