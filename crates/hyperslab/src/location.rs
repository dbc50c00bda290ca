//! URLs of nodes: the root of a hierarchy, and a path below it.

use crate::{Error, Result};

/// Endings that mark the root of a hierarchy in a URL.
const ROOT_ENDINGS: [&str; 3] = [".zarr", ".zarr3", ".zr"];
/// Endings that mark a file, or the root of a hierarchy that was copied from one.
const FILE_ENDINGS: [&str; 9] = [
    ".h5", ".hdf5", ".hdf", ".he5", ".nc", ".nc4", ".cdf", ".nxs", ".mat",
];

/// Endings that mark a reference file.
const REFERENCE_ENDINGS: [&str; 3] = [".json", ".parq", ".parquet"];

/// Where a node lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// URL of the store at the hierarchy's root, with its options.
    pub(crate) root: String,
    /// Path of the node below the root; empty for the root itself.
    pub(crate) path: String,
}

impl Location {
    /// A URL as the root of a hierarchy.
    pub(crate) fn whole(url: &str) -> Result<Self> {
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
        Ok(Location {
            root: format!("{base}{query}"),
            path: String::new(),
        })
    }

    /// The same place as a path below `root`, if it is there.
    pub(crate) fn within(&self, root: &str) -> Option<Self> {
        let (base, query) = split_query(&self.root);
        let (root_base, root_query) = split_query(root);
        let path = base.strip_prefix(root_base)?;
        let path = match path.strip_prefix('/') {
            Some(path) => path,
            None if path.is_empty() => "",
            None => return None,
        };
        (query == root_query || query.is_empty()).then(|| Location {
            root: root.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Splits a URL at the last component that looks like the root of a hierarchy
    /// (`s3://bucket/sky.zarr/images`). Without one the whole URL is the root.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let whole = Location::whole(url)?;
        let (base, query) = split_query(&whole.root);
        let scheme_end = base.find("://").map_or(0, |i| i + 3);
        let mut root_end = None;
        for (i, _) in base
            .char_indices()
            .filter(|(i, c)| *c == '/' && *i >= scheme_end)
        {
            let ends = |ending: &&str| base[..i].ends_with(*ending);
            let all = ROOT_ENDINGS.iter().chain(&FILE_ENDINGS);
            if all.chain(&REFERENCE_ENDINGS).any(ends) {
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

    /// True if the root's name is that of a file.
    pub(crate) fn may_be_file(&self) -> bool {
        let name = self.bare_root();
        FILE_ENDINGS.iter().any(|ending| name.ends_with(ending))
    }

    /// True if the root's name is that of a reference file.
    pub(crate) fn may_be_references(&self) -> bool {
        let name = self.bare_root();
        REFERENCE_ENDINGS
            .iter()
            .any(|ending| name.ends_with(ending))
    }

    /// True if the root's name is that of a folder of tables of references.
    pub(crate) fn is_table(&self) -> bool {
        self.may_be_references() && !self.bare_root().ends_with(".json")
    }

    /// The URL of the folder that the root is in, and the root's name there; `None` at the top of a
    /// store.
    pub(crate) fn folder(&self) -> Option<(String, String)> {
        let (base, query) = split_query(&self.root);
        let scheme_end = base.find("://").map_or(0, |i| i + 3);
        let (folder, name) = match base.rfind('/').filter(|i| *i > scheme_end) {
            Some(cut) => (&base[..cut], &base[cut + 1..]),
            // A name by itself is in the working directory.
            None if scheme_end == 0 && !base.starts_with('/') => (".", base),
            None if scheme_end == 0 => ("/", base.trim_start_matches('/')),
            None => return None,
        };
        (!name.is_empty()).then(|| (format!("{folder}{query}"), name.to_owned()))
    }

    /// Where a file may be that this one names: beside it, at an absolute path (of which a remote
    /// store knows the last part only), or in the working directory.
    pub(crate) fn beside(&self, name: &str) -> Vec<Location> {
        let at = |root: String| Location {
            root,
            path: String::new(),
        };
        let (base, query) = split_query(&self.root);
        let is_local = !base.contains("://");
        if name.contains("://") {
            // What somebody put into a bucket must not choose files of this machine.
            let leads_home = name.starts_with("file:") && !is_local && !base.starts_with("file:");
            return match leads_home {
                true => Vec::new(),
                false => vec![at(name.to_owned())],
            };
        }
        let folder = self
            .folder()
            .map(|(folder, _)| split_query(&folder).0.to_owned());
        let in_folder = |name: &str| {
            folder
                .as_ref()
                .map(|folder| at(format!("{}/{name}{query}", folder.trim_end_matches('/'))))
        };
        let mut found = Vec::new();
        let last = name.rsplit('/').next().unwrap_or(name);
        if !name.starts_with('/') {
            found.extend(in_folder(name.trim_start_matches("./")));
            if is_local {
                found.push(at(name.to_owned()));
            }
        } else {
            if is_local {
                found.push(at(name.to_owned()));
            } else if base.starts_with("file://") {
                found.push(at(format!("file://{name}{query}")));
            }
            found.extend(in_folder(last));
        }
        found
    }

    /// The node of this path below this one.
    pub(crate) fn below(&self, path: &str) -> Location {
        Location {
            root: self.root.clone(),
            path: hyperslab_format::join(&self.path, path),
        }
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
    fn files_have_a_folder() {
        for (url, folder, name) in [
            ("s3://b/d/x.h5/g/a?region=r", "s3://b/d?region=r", "x.h5"),
            ("s3://b/x.nc", "s3://b", "x.nc"),
            ("x.h5", ".", "x.h5"),
            ("/x.h5/a", "/", "x.h5"),
            ("/tmp/y/x.h5", "/tmp/y", "x.h5"),
        ] {
            let location = Location::parse(url).unwrap();
            assert!(location.may_be_file());
            assert_eq!(
                location.folder(),
                Some((folder.to_owned(), name.to_owned())),
                "{url}"
            );
        }
        let bucket = Location::parse("s3://bucket").unwrap();
        assert_eq!(bucket.folder(), None);
    }

    #[test]
    fn files_name_others() {
        let beside = |url: &str, name: &str| -> Vec<String> {
            let found = Location::parse(url).unwrap().beside(name);
            found.into_iter().map(|location| location.root).collect()
        };
        assert_eq!(
            beside("s3://b/d/x.h5/a?region=r", "y.h5"),
            ["s3://b/d/y.h5?region=r"]
        );
        assert_eq!(beside("s3://b/d/x.h5", "/home/me/y.h5"), ["s3://b/d/y.h5"]);
        assert_eq!(beside("/d/x.h5", "sub/y.h5"), ["/d/sub/y.h5", "sub/y.h5"]);
        assert_eq!(beside("/d/x.h5", "/e/y.h5"), ["/e/y.h5", "/d/y.h5"]);
        assert!(beside("s3://b/d/x.h5", "file:///e/y.h5").is_empty());
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
