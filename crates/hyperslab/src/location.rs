//! URLs of nodes: the root of a hierarchy, and a path below it.

use crate::{Error, Result};

/// Endings that mark the root of a hierarchy in a URL.
const ROOT_ENDINGS: [&str; 5] = [".zarr", ".zarr3", ".zr", ".h5", ".hdf5"];

/// Where a node lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// URL of the store at the hierarchy's root, with its options.
    pub(crate) root: String,
    /// Path of the node below the root; empty for the root itself.
    pub(crate) path: String,
}

impl Location {
    /// Splits a URL at the last component that looks like the root of a hierarchy
    /// (`s3://bucket/sky.zarr/images`). Without one the whole URL is the root.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let url = url.trim();
        if url.is_empty() {
            return Err(Error::invalid("the URL is empty")
                .with_hint("give a path or a URL such as s3://bucket/name.zarr/array"));
        }
        let (base, query) = split_query(url);
        let trimmed = base.trim_end_matches('/');
        let base = if trimmed.is_empty() || trimmed.ends_with(':') {
            base
        } else {
            trimmed
        };
        let scheme_end = base.find("://").map_or(0, |i| i + 3);
        let mut root_end = None;
        for (i, _) in base
            .char_indices()
            .filter(|(i, c)| *c == '/' && *i >= scheme_end)
        {
            if ROOT_ENDINGS.iter().any(|e| base[..i].ends_with(e)) {
                root_end = Some(i);
            }
        }
        let (root, path) = match root_end {
            Some(end) => (&base[..end], &base[end + 1..]),
            None => (base, ""),
        };
        Ok(Location {
            root: format!("{root}{query}"),
            path: path.to_owned(),
        })
    }

    /// The same node seen from the folder above its root; `None` at the top of the store.
    pub(crate) fn up(&self) -> Option<Self> {
        let (base, query) = split_query(&self.root);
        let scheme_end = base.find("://").map_or(0, |i| i + 3);
        let cut = base.rfind('/').filter(|i| *i > scheme_end)?;
        // A bucket or host is no folder.
        let (parent, name) = (&base[..cut], &base[cut + 1..]);
        if name.is_empty() || parent.len() <= scheme_end {
            return None;
        }
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{name}/{}", self.path)
        };
        Some(Location {
            root: format!("{parent}{query}"),
            path,
        })
    }

    /// URL of the hierarchy's root, without options.
    pub(crate) fn bare_root(&self) -> &str {
        split_query(&self.root).0
    }

    /// The node's URL, without options.
    pub(crate) fn url(&self) -> String {
        let base = self.bare_root();
        if self.path.is_empty() {
            base.to_owned()
        } else {
            format!("{base}/{}", self.path)
        }
    }
}

/// Options stand behind a question mark; a plain path has none.
fn split_query(url: &str) -> (&str, &str) {
    match url.find('?') {
        Some(i) if url.contains("://") => url.split_at(i),
        _ => (url, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_found() {
        for (url, root, path) in [
            ("s3://b/sky.zarr/images", "s3://b/sky.zarr", "images"),
            ("s3://b/sky.zarr", "s3://b/sky.zarr", ""),
            ("s3://b/sky.zarr/", "s3://b/sky.zarr", ""),
            ("s3://b/x/y?region=a/b", "s3://b/x/y?region=a/b", ""),
            (
                "s3://b/s.zarr/g/a?anonymous=true",
                "s3://b/s.zarr?anonymous=true",
                "g/a",
            ),
            ("data/s.zarr/a b/é", "data/s.zarr", "a b/é"),
            ("/tmp/x", "/tmp/x", ""),
            ("memory://m", "memory://m", ""),
        ] {
            let location = Location::parse(url).unwrap();
            assert_eq!(
                (location.root.as_str(), location.path.as_str()),
                (root, path),
                "{url}"
            );
        }
        assert!(Location::parse("  ").is_err());
    }

    #[test]
    fn going_up_stops_at_the_bucket() {
        let location = Location::parse("s3://b/x/y?region=r").unwrap();
        let up = location.up().unwrap();
        assert_eq!(
            up,
            Location {
                root: "s3://b/x?region=r".into(),
                path: "y".into()
            }
        );
        let up = up.up().unwrap();
        assert_eq!(
            up,
            Location {
                root: "s3://b?region=r".into(),
                path: "x/y".into()
            }
        );
        assert!(up.up().is_none());
        assert!(Location::parse("relative").unwrap().up().is_none());
        assert!(Location::parse("memory://m").unwrap().up().is_none());
    }
}
