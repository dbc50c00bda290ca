//! Where a name leads that a program gave for a file: to a local file, or to a store.

use std::path::{Component, Path, PathBuf};

/// Schemes of stores. Local files may have them too, as folders of arrays.
const SCHEMES: [&str; 9] = [
    "s3", "az", "abfs", "abfss", "gs", "memory", "http", "https", "file",
];

/// Names that lead to stores though they do not look like it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names {
    /// Relative names are names in this store.
    pub(crate) root: Option<String>,
    /// Local folders, and what is there instead of them.
    pub(crate) maps: Vec<(PathBuf, String)>,
}

impl Names {
    /// The URL that a name leads to; `None` if it is the name of a local file.
    pub(crate) fn url(&self, name: &str, folder: &Path) -> Option<String> {
        if let Some(url) = with_scheme(name) {
            return Some(url);
        }
        let path = Path::new(name);
        if let (Some(root), true) = (&self.root, path.is_relative()) {
            return Some(below(root, path));
        }
        let whole = folder.join(path);
        let whole = plain(&whole);
        // The longest folder is the one that is meant.
        let mapped = self.maps.iter().filter_map(|(from, to)| {
            let rest = whole.strip_prefix(from).ok()?;
            Some((from.as_os_str().len(), below(to, rest)))
        });
        let mapped = mapped.max_by_key(|(length, _)| *length);
        mapped.map(|(_, url)| url)
    }

    /// Where a file is that the file of this name names; the name itself where it is a local one.
    pub(crate) fn named(&self, file: &str, name: &str) -> String {
        let name = beside(file, name);
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        self.url(&name, &folder).unwrap_or(name)
    }
}

/// A name that has a scheme; pathlib makes one slash of two.
fn with_scheme(name: &str) -> Option<String> {
    let (scheme, rest) = name.split_once(":/")?;
    let known = SCHEMES.contains(&scheme.to_ascii_lowercase().as_str());
    known.then(|| {
        let rest = rest.strip_prefix('/').unwrap_or(rest);
        // A local path begins with a slash of its own.
        let slash = match scheme.eq_ignore_ascii_case("file") && !rest.starts_with('/') {
            true => "/",
            false => "",
        };
        format!("{scheme}://{slash}{rest}")
    })
}

/// The name of a file that another one names: beside it, unless it says where it is.
pub(crate) fn beside(file: &str, name: &str) -> String {
    let is_url = name.split_once(":/").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric())
    });
    if is_url || Path::new(name).is_absolute() {
        return name.to_owned();
    }
    let mut folder = file.rsplit_once('/').map(|(folder, _)| folder);
    let mut name = name;
    loop {
        if let Some(rest) = name.strip_prefix("./") {
            name = rest;
        } else if let (Some(rest), Some((above, _))) = (
            name.strip_prefix("../"),
            folder.and_then(|folder| folder.rsplit_once('/')),
        ) {
            (name, folder) = (rest, Some(above));
        } else {
            break;
        }
    }
    match folder {
        Some(folder) => format!("{folder}/{name}"),
        None => name.to_owned(),
    }
}

fn below(url: &str, path: &Path) -> String {
    let mut url = url.trim_end_matches('/').to_owned();
    for part in plain(path).components() {
        if let Component::Normal(part) = part {
            url.push('/');
            url.push_str(&part.to_string_lossy());
        }
    }
    url
}

/// A path without `.` and `..`, by its letters alone.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            root: None,
            maps: vec![
                (PathBuf::from("/data"), "s3://bucket/all/".into()),
                (PathBuf::from("/data/hot"), "s3://fast".into()),
            ],
        }
    }

    fn url(names: &Names, name: &str) -> Option<String> {
        names.url(name, Path::new("/home/me"))
    }

    #[test]
    fn files_are_beside_those_that_name_them() {
        assert_eq!(beside("s3://b/k/a.h5", "c.h5"), "s3://b/k/c.h5");
        assert_eq!(beside("s3://b/k/a.h5", "./../x/c.h5"), "s3://b/x/c.h5");
        assert_eq!(beside("s3://b/k/a.h5", "gs://x/c.h5"), "gs://x/c.h5");
        assert_eq!(beside("/data/a.h5", "c.h5"), "/data/c.h5");
        assert_eq!(beside("/data/a.h5", "/c.h5"), "/c.h5");
        assert_eq!(beside("a.h5", "c.h5"), "c.h5");
    }

    #[test]
    fn names_with_a_scheme_lead_to_stores() {
        let names = Names::default();
        for (name, expected) in [
            ("s3://bucket/a.h5", "s3://bucket/a.h5"),
            ("s3:/bucket/a.h5", "s3://bucket/a.h5"),
            ("gs://b/x/y.h5", "gs://b/x/y.h5"),
            ("file:///tmp/x.zarr", "file:///tmp/x.zarr"),
            ("file:/tmp/x.zarr", "file:///tmp/x.zarr"),
            ("memory://x", "memory://x"),
        ] {
            assert_eq!(url(&names, name).as_deref(), Some(expected), "{name}");
        }
        for name in ["a.h5", "/tmp/a.h5", "./s3/a.h5", "c:/a.h5", "s3:bucket", ""] {
            assert_eq!(url(&names, name), None, "{name}");
        }
    }

    #[test]
    fn folders_are_mapped_away() {
        let names = names();
        for (name, expected) in [
            ("/data/a.h5", "s3://bucket/all/a.h5"),
            ("/data/hot/b/a.h5", "s3://fast/b/a.h5"),
            ("/data/./x/../a.h5", "s3://bucket/all/a.h5"),
            ("../../data/a.h5", "s3://bucket/all/a.h5"),
        ] {
            assert_eq!(url(&names, name).as_deref(), Some(expected), "{name}");
        }
        for name in ["/database/a.h5", "a.h5", "/data/../a.h5"] {
            assert_eq!(url(&names, name), None, "{name}");
        }
    }

    #[test]
    fn relative_names_are_names_in_the_root() {
        let names = Names {
            root: Some("s3://bucket/run".into()),
            ..names()
        };
        assert_eq!(
            url(&names, "x/a.h5").as_deref(),
            Some("s3://bucket/run/x/a.h5")
        );
        assert_eq!(
            url(&names, "./a.h5").as_deref(),
            Some("s3://bucket/run/a.h5")
        );
        assert_eq!(
            url(&names, "/data/a.h5").as_deref(),
            Some("s3://bucket/all/a.h5")
        );
        assert_eq!(url(&names, "/tmp/a.h5"), None);
    }
}
