//! Keeps source and destination apart: one inside the other would eat what it is made of.

use std::path::{Component, Path, PathBuf};

use crate::location::Location;
use crate::{Array, Error, Result};

/// Fails if one of them lies inside the other.
pub(super) fn check(from: &Array, to: &Location) -> Result<()> {
    let source = match from.state().file {
        // All of a file is one object.
        Some(_) => from.inner().location.bare_root().to_owned(),
        None => from.url().to_owned(),
    };
    let (a, b) = (plain(&source), plain(&to.url()));
    if a.starts_with(&b) || b.starts_with(&a) {
        return Err(Error::invalid(format!(
            "{} and {} lie within each other",
            from.url(),
            to.url()
        ))
        .with_hint("choose a place outside the source, or rechunk it in place"));
    }
    Ok(())
}

/// A URL or path as a list of names that is the same for all ways to spell it that we know of.
fn plain(url: &str) -> Vec<String> {
    let local = match url.split_once("://") {
        Some(("file", path)) => path,
        Some((scheme, rest)) => {
            let names = rest.split('/').filter(|name| !name.is_empty());
            return std::iter::once(scheme)
                .chain(names)
                .map(str::to_owned)
                .collect();
        }
        None => url,
    };
    let path = std::path::absolute(local).unwrap_or_else(|_| PathBuf::from(local));
    let names = resolved(&path);
    let names = names.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    std::iter::once("file".to_owned()).chain(names).collect()
}

/// The path behind links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for there in path.ancestors() {
        if let Ok(mut real) = there.canonicalize() {
            real.extend(missing.iter().rev());
            return real;
        }
        missing.extend(there.file_name());
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_place_are_the_same() {
        assert_eq!(plain("s3://b/x//y/"), plain("s3://b/x/y"));
        assert_ne!(plain("s3://b/x"), plain("gs://b/x"));
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        std::fs::create_dir(at("a")).unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        assert_eq!(plain(&at("link/x/y")), plain(&at("a/x/y")));
        assert_eq!(plain(&format!("file://{}", at("a/./x"))), plain(&at("a/x")));
        assert_ne!(plain(&at("a")), plain(&at("ab")));
    }
}
