//! Reference files (kerchunk): a Zarr hierarchy whose chunks are ranges of other objects.
//!
//! Beside the HDF5 resolver, which they are an older answer to: somebody has scanned files before and
//! written down where the chunks are. Keys are those of a Zarr v2 (or v3) store; a value is the bytes
//! themselves, or a range of an object.
//!
//! <https://fsspec.github.io/kerchunk/spec.html>

mod resolver;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

pub use resolver::ReferenceResolver;
pub use write::{ReferenceSet, Skipped};

use crate::{Error, Result, base64};

/// What a key leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The bytes themselves.
    Inline(Bytes),
    /// A range of the object of this number.
    Range(usize, Range<u64>),
    /// All of the object of this number.
    Object(usize),
}

/// All references of a hierarchy.
#[derive(Debug, Clone, Default)]
pub struct References {
    entries: HashMap<String, Reference>,
    /// URLs of objects, each once.
    objects: Vec<String>,
    numbers: HashMap<String, usize>,
}

/// A reference file, version 1; version 0 is the map alone.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default)]
    version: Option<u64>,
    #[serde(default)]
    templates: BTreeMap<String, String>,
    #[serde(default, rename = "gen")]
    generated: Vec<Value>,
    refs: HashMap<String, Raw>,
}

/// A value as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Raw {
    Text(String),
    Whole([String; 1]),
    Part(String, u64, u64),
    Json(Value),
}

impl References {
    /// Parses a reference file of JSON.
    pub fn from_json(bytes: &[u8]) -> Result<References> {
        let no_references = |e: serde_json::Error| {
            Error::data(format!("this is no reference file: {e}")).with_hint(
                "reference files are JSON with the key \"refs\", as kerchunk writes them",
            )
        };
        let is_versioned = Probe::of(bytes).is_some();
        let file: Versioned = match is_versioned {
            true => serde_json::from_slice(bytes).map_err(no_references)?,
            false => Versioned {
                version: Some(0),
                templates: BTreeMap::new(),
                generated: Vec::new(),
                refs: serde_json::from_slice(bytes).map_err(no_references)?,
            },
        };
        if file.version.is_some_and(|version| version > 1) {
            return Err(Error::data(format!(
                "version {} of reference files is not known",
                file.version.unwrap_or_default()
            )));
        }
        if !file.generated.is_empty() {
            return Err(
                Error::invalid("references that are generated are not supported")
                    .with_hint("write them out, with kerchunk's `consolidate`"),
            );
        }
        let mut all = References::default();
        for (key, raw) in file.refs {
            let url = |text: &str| substituted(text, &file.templates);
            let reference = match raw {
                Raw::Text(text) => Reference::Inline(inline(&text)?),
                Raw::Json(value) => Reference::Inline(value.to_string().into()),
                Raw::Whole([object]) => Reference::Object(all.number(&url(&object)?)),
                Raw::Part(object, start, length) => {
                    let end = start.checked_add(length).ok_or_else(|| {
                        Error::data(format!("the reference of {key:?} ends beyond 2^64"))
                    })?;
                    Reference::Range(all.number(&url(&object)?), start..end)
                }
            };
            all.entries.insert(key, reference);
        }
        if !all.entries.keys().any(|key| is_metadata(key)) {
            return Err(Error::data(
                "the reference file has no metadata of groups or arrays",
            ));
        }
        Ok(all)
    }

    /// Adds a reference.
    pub fn insert(&mut self, key: String, reference: Reference) {
        self.entries.insert(key, reference);
    }

    /// The number of an object, which it gets when it is first named.
    pub fn number(&mut self, url: &str) -> usize {
        if let Some(number) = self.numbers.get(url) {
            return *number;
        }
        let number = self.objects.len();
        self.objects.push(url.to_owned());
        self.numbers.insert(url.to_owned(), number);
        number
    }

    /// What a key leads to.
    pub fn get(&self, key: &str) -> Option<&Reference> {
        self.entries.get(key)
    }

    /// The URL of an object.
    pub fn object(&self, number: usize) -> Option<&str> {
        self.objects.get(number).map(String::as_str)
    }

    /// The URLs of all objects.
    pub fn objects(&self) -> &[String] {
        &self.objects
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

/// Finds out whether the references are under a key of their own, without keeping them.
#[derive(Deserialize)]
struct Probe {
    #[serde(rename = "refs")]
    _refs: serde::de::IgnoredAny,
}

impl Probe {
    fn of(bytes: &[u8]) -> Option<Probe> {
        serde_json::from_slice(bytes).ok()
    }
}

/// True for the keys of metadata, which say what there is.
pub fn is_metadata(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or(key);
    matches!(
        name,
        "zarr.json" | ".zgroup" | ".zarray" | ".zattrs" | ".zmetadata"
    )
}

/// The bytes of a value that is written out.
fn inline(text: &str) -> Result<Bytes> {
    match text.strip_prefix("base64:") {
        Some(encoded) => base64::decode(encoded.trim())
            .map(Bytes::from)
            .ok_or_else(|| Error::data("a value is not valid base64")),
        None => Ok(Bytes::copy_from_slice(text.as_bytes())),
    }
}

/// A text with its templates filled in: `{{name}}`.
fn substituted(text: &str, templates: &BTreeMap<String, String>) -> Result<String> {
    let mut out = String::new();
    let mut left = text;
    while let Some((before, rest)) = left.split_once("{{") {
        let unknown = || {
            Error::invalid(format!("the template in {text:?} is not known"))
                .with_hint("only plain names are substituted, no expressions")
        };
        let (name, after) = rest.split_once("}}").ok_or_else(unknown)?;
        out.push_str(before);
        out.push_str(templates.get(name.trim()).ok_or_else(unknown)?);
        left = after;
    }
    out.push_str(left);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let old = br#"{".zgroup": "{\"zarr_format\": 2}", "a/0": ["s3://b/x", 10, 20]}"#;
        let new = br#"{"version": 1, "templates": {"u": "s3://b"}, "refs": {
            ".zgroup": {"zarr_format": 2}, "a/0": ["{{u}}/x", 10, 20], "a/1": "base64:AQI=",
            "a/2": ["{{ u }}/y"], "a/3": "plain"}}"#;
        for file in [&old[..], &new[..]] {
            let references = References::from_json(file).unwrap();
            let group = references.get(".zgroup");
            assert!(matches!(group, Some(Reference::Inline(_))), "{group:?}");
            let Some(Reference::Range(number, range)) = references.get("a/0") else {
                panic!("not a range")
            };
            assert_eq!(references.object(*number), Some("s3://b/x"));
            assert_eq!(*range, 10..30);
        }
        let references = References::from_json(new).unwrap();
        let bytes = Bytes::from_static(&[1, 2]);
        assert_eq!(references.get("a/1"), Some(&Reference::Inline(bytes)));
        let Some(Reference::Object(number)) = references.get("a/2") else {
            panic!("not an object")
        };
        assert_eq!(references.object(*number), Some("s3://b/y"));
        let text = Bytes::from_static(b"plain");
        assert_eq!(references.get("a/3"), Some(&Reference::Inline(text)));
    }

    #[test]
    fn what_is_no_reference_file_says_so() {
        for bad in [
            &b"[]"[..],
            b"{}",
            b"{\"refs\": 3}",
            b"{\"a\": 5",
            br#"{"version": 2, "refs": {".zgroup": "{}"}}"#,
            br#"{"version": 1, "gen": [{}], "refs": {".zgroup": "{}"}}"#,
            br#"{".zgroup": "{}", "a/0": ["{{u}}", 1, 2]}"#,
            br#"{".zgroup": "{}", "a/0": "base64:&&&"}"#,
            br#"{".zgroup": "{}", "a/0": ["x", 18446744073709551615, 2]}"#,
        ] {
            assert!(
                References::from_json(bad).is_err(),
                "{}",
                String::from_utf8_lossy(bad)
            );
        }
    }
}
