//! Names: where the chunks of an array and the nodes of a hierarchy are stored.

use hyperslab_index::{Error, Result};
use serde_json::{Value, json};

/// How a chunk's index becomes the end of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkKeys {
    /// `c/0/1`, or with another separator `c.0.1`.
    Default(char),
    /// `0.1`, or with another separator `0/1`: what Zarr v2 has.
    V2(char),
}

impl ChunkKeys {
    /// Parses the `chunk_key_encoding` of a Zarr v3 array.
    pub fn from_json(value: &Value) -> Result<Self> {
        let (name, config) = crate::codec::name_and_config(value)?;
        let separator = match config.get("separator") {
            None => None,
            Some(Value::String(s)) if s == "/" => Some('/'),
            Some(Value::String(s)) if s == "." => Some('.'),
            Some(other) => {
                return Err(Error::data(format!(
                    "the chunk key separator {other} is not \"/\" or \".\""
                )));
            }
        };
        match name {
            "default" => Ok(ChunkKeys::Default(separator.unwrap_or('/'))),
            "v2" => Ok(ChunkKeys::V2(separator.unwrap_or('.'))),
            _ => Err(Error::data(format!(
                "the chunk key encoding {name:?} is not known"
            ))),
        }
    }

    /// The `chunk_key_encoding` of a Zarr v3 array.
    pub fn to_json(&self) -> Value {
        let (name, separator) = match self {
            ChunkKeys::Default(s) => ("default", s),
            ChunkKeys::V2(s) => ("v2", s),
        };
        json!({"name": name, "configuration": {"separator": separator.to_string()}})
    }

    /// The key of a chunk, below the array's path.
    pub fn key(&self, chunk: &[u64]) -> String {
        use std::fmt::Write;
        let mut key = String::with_capacity(2 + 4 * chunk.len());
        let separator = match self {
            ChunkKeys::Default(s) => {
                key.push('c');
                *s
            }
            ChunkKeys::V2(s) => {
                if chunk.is_empty() {
                    key.push('0');
                }
                *s
            }
        };
        for index in chunk {
            if !key.is_empty() {
                key.push(separator);
            }
            // Writing to a String cannot fail.
            let _ = write!(key, "{index}");
        }
        key
    }

    /// The chunk that a key (below the array's path) names, if it names one of rank `rank`.
    pub fn parse(&self, key: &str, rank: usize) -> Option<Vec<u64>> {
        let (separator, rest) = match self {
            ChunkKeys::Default(s) => {
                let rest = key.strip_prefix('c')?;
                if rank == 0 {
                    return rest.is_empty().then(Vec::new);
                }
                (*s, rest.strip_prefix(*s)?)
            }
            ChunkKeys::V2(s) => {
                if rank == 0 {
                    return (key == "0").then(Vec::new);
                }
                (*s, key)
            }
        };
        let chunk: Option<Vec<u64>> = rest.split(separator).map(|n| n.parse().ok()).collect();
        chunk.filter(|c| c.len() == rank && self.key(c) == key)
    }
}

/// Joins a node's path and a name below it; either may be empty.
pub fn join(path: &str, name: &str) -> String {
    match (path.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => path.to_owned(),
        _ => format!("{path}/{name}"),
    }
}

/// Checks a path of node names: what Zarr v3 allows, minus what stores cannot hold.
pub fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        return Ok(());
    }
    for name in path.split('/') {
        let problem = if name.is_empty() {
            "has an empty component (a doubled, leading or trailing slash)"
        } else if name.chars().all(|c| c == '.') {
            "has a component made of dots only"
        } else if name.starts_with("__") {
            "has a component that starts with two underscores, which Zarr reserves"
        } else if name == "zarr.json" || name == ".hyperslab" {
            "has a component that is reserved for metadata"
        } else if name.len() > 255 {
            "has a component longer than 255 bytes"
        } else if name.chars().any(char::is_control) {
            "has a control character"
        } else {
            continue;
        };
        let shown: String = path.chars().take(80).collect();
        return Err(Error::invalid(format!("the path {shown:?} {problem}"))
            .with_hint("use names of letters, digits, spaces, '-', '_' and '.', separated by single slashes"));
    }
    if path.len() > 1000 {
        return Err(Error::invalid("the path is longer than 1000 bytes")
            .with_hint("object stores take keys of at most 1024 bytes, chunk index included"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_specification_and_come_back() {
        for (keys, chunk, key) in [
            (ChunkKeys::Default('/'), &[1u64, 23, 45][..], "c/1/23/45"),
            (ChunkKeys::Default('.'), &[1, 2], "c.1.2"),
            (ChunkKeys::Default('/'), &[], "c"),
            (ChunkKeys::V2('.'), &[1, 2], "1.2"),
            (ChunkKeys::V2('/'), &[7], "7"),
            (ChunkKeys::V2('.'), &[], "0"),
        ] {
            assert_eq!(keys.key(chunk), key);
            assert_eq!(keys.parse(key, chunk.len()).unwrap(), chunk);
            assert_eq!(ChunkKeys::from_json(&keys.to_json()).unwrap(), keys);
        }
        for wrong in [
            "c/1",
            "c/1/2/3",
            "c/1/x",
            "c/01/2",
            "zarr.json",
            "c/1/-2",
            "c",
        ] {
            assert!(ChunkKeys::Default('/').parse(wrong, 2).is_none(), "{wrong}");
        }
    }

    #[test]
    fn bad_paths_are_refused() {
        for good in ["", "a", "a/b c/é", "images.v2", "a.b"] {
            check_path(good).unwrap();
        }
        let long = "x".repeat(256);
        for bad in [
            "/",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "a/./b",
            "__x",
            "a/zarr.json",
            "a\nb",
            &long,
        ] {
            assert!(check_path(bad).is_err(), "{bad}");
        }
    }
}
