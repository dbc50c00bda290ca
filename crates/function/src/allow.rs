//! Which objects the function may read.
//!
//! Between the request and the stores; no I/O. An object is named by its URL, and URLs have many
//! spellings: this module accepts one of them and refuses the rest, instead of interpreting.
//!
//! Invariant: a URL that passes is a listed prefix, a slash, and a key of plain segments. What
//! connects later is built from the prefix, which the operator wrote, and the key.

use std::fmt;

use hyperslab_index::{Error, Result};

const SCHEMES: [&str; 8] = ["s3", "gs", "az", "file", "http", "https", "memory", "abfss"];

/// Escapes that could smuggle a separator, a dot segment or the end of a string.
const FORBIDDEN_ESCAPES: [&str; 6] = ["%2e", "%2f", "%5c", "%00", "%3f", "%23"];

/// Longest URL of an object: a key has 1,024 bytes at most.
const LONGEST_URL: usize = 4096;

/// URL prefixes that the function may read below.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    prefixes: Vec<String>,
}

impl AllowList {
    /// Reads comma-separated prefixes such as `s3://bucket/runs,gs://other`.
    pub fn parse(text: &str) -> Result<Self> {
        Self::new(
            text.split(',')
                .map(str::trim)
                .filter(|prefix| !prefix.is_empty()),
        )
    }

    /// Makes a list of prefixes.
    pub fn new<P: AsRef<str>>(prefixes: impl IntoIterator<Item = P>) -> Result<Self> {
        let mut list = AllowList::default();
        for prefix in prefixes {
            let prefix = prefix.as_ref();
            let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
            check_form(prefix).map_err(|why| {
                Error::invalid(format!(
                    "{prefix:?} cannot be a prefix of the allow-list: it {why}"
                ))
                .with_hint("write for example s3://bucket/prefix, without options")
            })?;
            list.prefixes.push(prefix.to_owned());
        }
        // The longest first, so that the most specific one is found.
        list.prefixes
            .sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        list.prefixes.dedup();
        Ok(list)
    }

    /// The prefixes, longest first, without trailing slashes.
    pub fn prefixes(&self) -> &[String] {
        &self.prefixes
    }

    /// True if nothing may be read.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// The number of the prefix that `object` is below, and the rest of its URL.
    pub fn locate<'a>(&self, object: &'a str) -> Result<(usize, &'a str)> {
        // The URL came from outside and goes into an answer, so it is not repeated at length.
        let refused = |why: &str| {
            Err(Error::denied(format!("the object's URL {why}"))
                .with_hint("the function reads only below the prefixes of its allow-list"))
        };
        if object.len() > LONGEST_URL {
            return refused("is too long");
        }
        if let Err(why) = check_form(object) {
            return refused(why);
        }
        for (number, prefix) in self.prefixes.iter().enumerate() {
            let key = object
                .strip_prefix(prefix.as_str())
                .and_then(|rest| rest.strip_prefix('/'));
            if let Some(key) = key.filter(|key| !key.is_empty()) {
                return Ok((number, key));
            }
        }
        refused("is not below an allowed prefix")
    }
}

impl fmt::Debug for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.prefixes).finish()
    }
}

/// Checks that a URL has its one accepted spelling; the error says what it does instead.
fn check_form(url: &str) -> Result<(), &'static str> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("has no scheme");
    };
    if !SCHEMES.contains(&scheme) {
        return Err("has a scheme that the function does not read, or not in lower case");
    }
    // URL parsers drop control characters and take a backslash for a slash.
    if url.chars().any(|c| c.is_control() || c == '\\') {
        return Err("has a control character or a backslash");
    }
    if url.contains(['?', '#']) {
        return Err("has options, a query or a fragment");
    }
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, Some(path)),
        None => (rest, None),
    };
    check_authority(scheme, authority)?;
    if scheme == "file" && path.is_none() {
        return Err("names no directory");
    }
    for segment in path.into_iter().flat_map(|path| path.split('/')) {
        if segment.is_empty() {
            return Err("has an empty segment");
        }
        if segment == "." || segment == ".." {
            return Err("has a segment that is . or ..");
        }
    }
    let lower = url.to_ascii_lowercase();
    if FORBIDDEN_ESCAPES
        .iter()
        .any(|escape| lower.contains(escape))
    {
        return Err("hides a separator or a dot behind a percent sign");
    }
    Ok(())
}

fn check_authority(scheme: &str, authority: &str) -> Result<(), &'static str> {
    if scheme == "file" {
        return match authority.is_empty() {
            true => Ok(()),
            false => Err("names another machine"),
        };
    }
    if authority.is_empty() {
        return Err("names no bucket or host");
    }
    let (container, host) = match (scheme, authority.split_once('@')) {
        ("abfss", Some((container, host))) => (container, host),
        (_, Some(_)) => return Err("has a user name or a password"),
        (_, None) => ("", authority),
    };
    let sound =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '_');
    let web = matches!(scheme, "http" | "https");
    let plain = |text: &str| text.chars().all(|c| sound(c) || (web && c == ':'));
    match plain(host) && plain(container) {
        true => Ok(()),
        false => Err("has a host or bucket that is not plain lower-case text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> AllowList {
        AllowList::parse("s3://b/runs, s3://whole/,file:///data/x,http://127.0.0.1:81/pub,")
            .unwrap()
    }

    #[test]
    fn objects_below_a_prefix_pass() {
        for (object, prefix, key) in [
            ("s3://b/runs/a/c0", "s3://b/runs", "a/c0"),
            ("s3://b/runs/a b+ü%20", "s3://b/runs", "a b+ü%20"),
            ("s3://whole/k", "s3://whole", "k"),
            ("file:///data/x/..k/.z", "file:///data/x", "..k/.z"),
            ("http://127.0.0.1:81/pub/k", "http://127.0.0.1:81/pub", "k"),
        ] {
            let list = list();
            let (number, rest) = list.locate(object).unwrap();
            assert_eq!((list.prefixes()[number].as_str(), rest), (prefix, key));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for object in [
            "",
            "k",
            "/data/x/k",
            "s3:/b/runs/k",
            "S3://b/runs/k",
            "s3://b/runs",
            "s3://b/runs/",
            "s3://b/runs2/k",
            "s3://b/run/k",
            "s3://b2/runs/k",
            "s3://b/runs/../secret/k",
            "s3://b/runs/./k",
            "s3://b/runs//k",
            "s3://b//runs/k",
            "s3://b/runs/%2e%2e/k",
            "s3://b/runs/.%2E/k",
            "s3://b/runs%2fk",
            "s3://b/runs/a%2Fk",
            "s3://b/runs/k?endpoint=http://127.0.0.1:1",
            "s3://b/runs/k#x",
            "s3://u:p@b/runs/k",
            "s3://b/runs/\\..\\k",
            "s3://b/runs/a\nb",
            "s3://b:80/runs/k",
            "gs://b/runs/k",
            "memory://b/runs/k",
            "ftp://b/runs/k",
            "file://host/data/x/k",
            "file:///data/x/../y",
            "file:///data/xy/k",
            "http://127.0.0.1:81@evil.example/pub/k",
            "http://evil.example#127.0.0.1:81/pub/k",
            "http://127.0.0.1:82/pub/k",
            "http://127.0.0.1/pub/k",
            "https://127.0.0.1:81/pub/k",
            "http://127.1:81/pub/k",
            "http://169.254.169.254/latest/meta-data",
        ] {
            let error = list().locate(object).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Denied, "{object}");
        }
        let long = format!("s3://b/runs/{}", "x".repeat(LONGEST_URL));
        assert!(list().locate(&long).is_err());
        assert!(AllowList::default().locate("s3://b/runs/k").is_err());
    }

    #[test]
    fn prefixes_that_are_too_wide_or_odd_are_refused() {
        for prefix in [
            "s3://",
            "s3",
            "file://",
            "file:///",
            "/data",
            "s3://b?endpoint=x",
            "s3://b/../c",
            "http://",
            "https://u:p@h/x",
            "*",
        ] {
            assert!(AllowList::parse(prefix).is_err(), "{prefix}");
        }
        assert!(AllowList::parse("").unwrap().is_empty());
    }

    #[test]
    fn the_most_specific_prefix_is_found() {
        let list = AllowList::parse("s3://b,s3://b/runs").unwrap();
        assert_eq!(list.locate("s3://b/runs/k").unwrap(), (0, "k"));
        assert_eq!(list.locate("s3://b/other").unwrap(), (1, "other"));
    }
}
