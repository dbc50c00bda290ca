//! Takes a store's URL apart.
//!
//! Between the caller's string and [`crate::open`]; no I/O. Prefixes of `s3`, `az`, `abfs`, `gs`
//! and `memory` URLs are taken literally, as the clouds' own tools do: `s3://b/a%20b` names the
//! prefix `a%20b`. `file://` and `http(s)://` are percent-decoded, as their standards have it.
//!
//! Invariant: [`Location::url`] never holds the query string, where options and signatures are.

use std::fmt;
use std::path::PathBuf;

use url::{Url, form_urlencoded};

use crate::key::{self, check_prefix};
use crate::{Error, Result};

/// What is behind a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// A directory of this machine.
    File,
    /// A map in this process.
    Memory,
    /// Amazon S3, or a server that speaks its protocol.
    S3,
    /// Azure Blob Storage.
    Azure,
    /// Google Cloud Storage.
    Google,
    /// A plain web server, read only.
    Http,
}

impl StoreKind {
    /// True if requests travel over a network.
    pub fn is_remote(self) -> bool {
        !matches!(self, StoreKind::File | StoreKind::Memory)
    }

    /// A lower-case word for logs and `--json` output.
    pub fn as_str(self) -> &'static str {
        match self {
            StoreKind::File => "file",
            StoreKind::Memory => "memory",
            StoreKind::S3 => "s3",
            StoreKind::Azure => "azure",
            StoreKind::Google => "google",
            StoreKind::Http => "http",
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const SCHEMES: &str = "file, memory, s3, az, abfs, abfss, gs, http and https";

/// A store's URL, taken apart.
#[derive(Clone)]
pub(crate) struct Location {
    pub(crate) kind: StoreKind,
    /// The URL without query and trailing slash.
    pub(crate) url: String,
    /// Bucket, container, memory name, or `scheme://host:port` of a web server.
    pub(crate) bucket: String,
    /// The Azure account, where the URL names it.
    pub(crate) account: Option<String>,
    /// Key prefix inside the bucket; empty for files.
    pub(crate) prefix: String,
    /// Directory of a `file` store.
    pub(crate) path: PathBuf,
    /// Name-value pairs of the query.
    pub(crate) query: Vec<(String, String)>,
}

/// Takes `url` apart and checks its form.
pub(crate) fn parse(url: &str) -> Result<Location> {
    let Some((scheme, rest)) = split_scheme(url) else {
        if url.is_empty() {
            return Err(Error::invalid("the store's URL is empty"));
        }
        return Ok(Location::file(
            url.to_owned(),
            PathBuf::from(url),
            Vec::new(),
        ));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "file" => parse_file(url),
        "http" | "https" => parse_web(url),
        "memory" => {
            let mut location = parse_bucket(StoreKind::Memory, scheme, rest, "a name")?;
            location.account = None;
            Ok(location)
        }
        "s3" => parse_bucket(StoreKind::S3, scheme, rest, "a bucket"),
        "gs" => parse_bucket(StoreKind::Google, scheme, rest, "a bucket"),
        "az" | "abfs" | "abfss" => parse_azure(scheme, rest),
        _ => Err(
            Error::invalid(format!("\"{scheme}\" is not a known URL scheme")).with_hint(format!(
                "known schemes are {SCHEMES}; a path without a scheme is a file"
            )),
        ),
    }
}

impl Location {
    fn file(url: String, path: PathBuf, query: Vec<(String, String)>) -> Self {
        let trimmed = url.trim_end_matches('/');
        let url = if trimmed.is_empty() {
            url.clone()
        } else {
            trimmed.to_owned()
        };
        Location {
            kind: StoreKind::File,
            url,
            bucket: String::new(),
            account: None,
            prefix: String::new(),
            path,
            query,
        }
    }

    /// The URL of the bucket itself.
    pub(crate) fn bucket_url(&self) -> String {
        let prefix_len = if self.prefix.is_empty() {
            0
        } else {
            self.prefix.len() + 1
        };
        match self.kind {
            StoreKind::Http => self.bucket.clone(),
            _ => self.url[..self.url.len() - prefix_len].to_owned(),
        }
    }
}

fn parse_bucket(kind: StoreKind, scheme: &str, rest: &str, what: &str) -> Result<Location> {
    let (path, query) = split_query(rest);
    let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
    let shown = format!("{scheme}://{path}");
    if bucket.is_empty() {
        return Err(Error::invalid(format!("\"{shown}\" does not name {what}"))
            .with_hint(format!("write {scheme}://name/prefix")));
    }
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '$');
    if kind != StoreKind::Memory && !bucket.chars().all(sound) {
        // What is before an @ may be a password.
        let shown = bucket
            .rsplit_once('@')
            .map_or(bucket.to_owned(), |(_, host)| format!("…@{host}"));
        return Err(
            Error::invalid(format!("{shown:?} is not a possible bucket name")).with_hint(
                "credentials do not belong in a URL; use the cloud's environment variables",
            ),
        );
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    check_prefix(prefix)?;
    let url = key::join(&format!("{scheme}://{bucket}"), prefix);
    Ok(Location {
        kind,
        url,
        bucket: bucket.to_owned(),
        account: None,
        prefix: prefix.to_owned(),
        path: PathBuf::new(),
        query,
    })
}

/// `az://container/prefix`, or Hadoop's `abfs://container@account.dfs.core.windows.net/prefix`.
fn parse_azure(scheme: &str, rest: &str) -> Result<Location> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let Some((container, host)) = rest[..end].split_once('@') else {
        return parse_bucket(StoreKind::Azure, scheme, rest, "a container");
    };
    let account = host.split_once('.').filter(|(account, domain)| {
        !account.is_empty() && matches!(*domain, "dfs.core.windows.net" | "blob.core.windows.net")
    });
    let Some((account, _)) = account else {
        return Err(
            Error::invalid(format!("\"{scheme}://…\" does not name an Azure account")).with_hint(
                format!("write {scheme}://container@account.dfs.core.windows.net/prefix"),
            ),
        );
    };
    let mut location = parse_bucket(
        StoreKind::Azure,
        scheme,
        &format!("{container}{}", &rest[end..]),
        "a container",
    )?;
    location.account = Some(account.to_owned());
    location.url = key::join(&format!("{scheme}://{container}@{host}"), &location.prefix);
    Ok(location)
}

fn parse_file(url: &str) -> Result<Location> {
    let wrong = |why: &str| {
        Err(Error::invalid(format!("\"{}\" {why}", split_query(url).0))
            .with_hint("write file:///absolute/path, or a plain path without a scheme"))
    };
    let Ok(parsed) = Url::parse(url) else {
        return wrong("is not a file URL");
    };
    let Ok(path) = parsed.to_file_path() else {
        return wrong("names another machine or no absolute path");
    };
    if parsed.fragment().is_some() {
        return wrong("has a #fragment (write %23 for a # in a name)");
    }
    let query = parsed.query_pairs().into_owned().collect();
    Ok(Location::file(split_query(url).0.to_owned(), path, query))
}

fn parse_web(url: &str) -> Result<Location> {
    let shown = split_query(url).0;
    let wrong = || Error::invalid(format!("\"{shown}\" is not a web address"));
    let parsed = Url::parse(url).map_err(|_| wrong())?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(Error::invalid(
            "a web address must not hold a user name or a password",
        ));
    }
    let origin = parsed.origin().ascii_serialization();
    let mut parts = Vec::new();
    for part in parsed.path_segments().into_iter().flatten() {
        parts.push(percent_decode(part).ok_or_else(wrong)?);
    }
    if parts.last().is_some_and(String::is_empty) {
        parts.pop();
    }
    let prefix = parts.join("/");
    check_prefix(&prefix)?;
    let mut bare = parsed.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    Ok(Location {
        kind: StoreKind::Http,
        url: bare.as_str().trim_end_matches('/').to_owned(),
        bucket: origin,
        account: None,
        prefix,
        path: PathBuf::new(),
        query: parsed.query_pairs().into_owned().collect(),
    })
}

fn percent_decode(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// The scheme and what follows `://`, if `url` has a scheme.
fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let mut chars = scheme.chars();
    let sound = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    sound.then_some((scheme, rest))
}

fn split_query(text: &str) -> (&str, Vec<(String, String)>) {
    match text.split_once('?') {
        Some((path, query)) => (
            path,
            form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
        ),
        None => (text, Vec::new()),
    }
}

/// Splits the URL of one object into the URL of the store that holds it, options included, and
/// the object's key: `s3://b/dir/x.h5?region=r` gives `s3://b/dir?region=r` and `x.h5`.
pub fn split_url(url: &str) -> Result<(String, String)> {
    let location = parse(url)?;
    let (path, query) = match (split_scheme(url), url.split_once('?')) {
        (Some(_), Some((path, query))) => (path, Some(query)),
        _ => (url, None),
    };
    let path = path.trim_end_matches('/');
    let name = match location.kind {
        StoreKind::File => location
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned),
        _ => location
            .prefix
            .rsplit('/')
            .next()
            .filter(|name| !name.is_empty())
            .map(str::to_owned),
    };
    let Some(name) = name else {
        return Err(Error::invalid(format!(
            "\"{}\" names a store, not an object in it",
            location.url
        )));
    };
    let parent = match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((parent, _)) => parent,
        None => ".",
    };
    let parent = match query {
        Some(query) => format!("{parent}?{query}"),
        None => parent.to_owned(),
    };
    Ok((parent, name))
}

/// The URL of the store below `url` at `key`, options included.
pub fn join_url(url: &str, key: &str) -> Result<String> {
    let location = parse(url)?;
    check_prefix(key)?;
    if key.is_empty() {
        return Ok(url.to_owned());
    }
    let (path, query) = match (split_scheme(url), url.split_once('?')) {
        (Some(_), Some((path, query))) => (path, format!("?{query}")),
        _ => (url, String::new()),
    };
    let encoded = match (split_scheme(url), location.kind) {
        (Some(_), StoreKind::File | StoreKind::Http) => encode_path(key),
        _ => key.to_owned(),
    };
    Ok(format!("{}/{encoded}{query}", path.trim_end_matches('/')))
}

fn encode_path(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn urls_come_apart_as_the_table_says() {
        use StoreKind::*;
        // (url, kind, bucket, prefix, shown)
        for (url, kind, bucket, prefix, shown) in [
            ("s3://b", S3, "b", "", "s3://b"),
            ("s3://b/", S3, "b", "", "s3://b"),
            ("s3://b/p/q/?region=x", S3, "b", "p/q", "s3://b/p/q"),
            ("s3://b/a%20b ü#x", S3, "b", "a%20b ü#x", "s3://b/a%20b ü#x"),
            ("S3://b/p", S3, "b", "p", "S3://b/p"),
            ("gs://b/p", Google, "b", "p", "gs://b/p"),
            ("az://c/p", Azure, "c", "p", "az://c/p"),
            ("abfs://c/p", Azure, "c", "p", "abfs://c/p"),
            ("memory://n/p", Memory, "n", "p", "memory://n/p"),
            (
                "http://127.0.0.1:80/a%20b/c",
                Http,
                "http://127.0.0.1",
                "a b/c",
                "http://127.0.0.1/a%20b/c",
            ),
            (
                "https://h/d/?sig=s3cret",
                Http,
                "https://h",
                "d",
                "https://h/d",
            ),
        ] {
            let location = parse(url).unwrap();
            assert_eq!(
                (
                    location.kind,
                    &*location.bucket,
                    &*location.prefix,
                    &*location.url
                ),
                (kind, bucket, prefix, shown),
                "{url}"
            );
        }
    }

    #[test]
    fn azure_accounts_come_from_the_host() {
        let url = "abfss://c@acc.dfs.core.windows.net/p/q?anonymous=true";
        let location = parse(url).unwrap();
        assert_eq!(location.account.as_deref(), Some("acc"));
        assert_eq!(location.bucket, "c");
        assert_eq!(location.prefix, "p/q");
        assert_eq!(location.url, "abfss://c@acc.dfs.core.windows.net/p/q");
        assert_eq!(location.bucket_url(), "abfss://c@acc.dfs.core.windows.net");
        assert_eq!(
            location.query,
            [("anonymous".to_owned(), "true".to_owned())]
        );
    }

    #[test]
    fn files_are_urls_or_plain_paths() {
        for (url, path, shown) in [
            ("data/x?y#z", "data/x?y#z", "data/x?y#z"),
            ("/a/b/", "/a/b/", "/a/b"),
            ("/", "/", "/"),
            ("a:b", "a:b", "a:b"),
            ("file:///a%20b/c?fsync=true", "/a b/c", "file:///a%20b/c"),
        ] {
            let location = parse(url).unwrap();
            assert_eq!(location.kind, StoreKind::File);
            assert_eq!(location.path, PathBuf::from(path), "{url}");
            assert_eq!(location.url, shown);
        }
    }

    #[test]
    fn wrong_urls_say_what_is_wrong() {
        for (url, word) in [
            ("", "empty"),
            ("ftp://h/x", "known schemes are"),
            ("s3://", "does not name a bucket"),
            ("s3:///p", "does not name a bucket"),
            ("s3://b//p", "empty component"),
            ("s3://b/../p", "\"..\""),
            ("s3://key:secret@b/p", "credentials do not belong"),
            ("az://?x=1", "does not name a container"),
            ("abfs://c@acc.example.com/p", "Azure account"),
            ("memory://", "does not name a name"),
            ("http://", "not a web address"),
            ("https://u:p@h/x", "user name or a password"),
            ("file://host/x", "another machine"),
        ] {
            let error = parse(url).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(word), "{url}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn objects_split_from_their_store_and_join_again() {
        for (url, store, key) in [
            ("s3://b/dir/x.h5?region=r", "s3://b/dir?region=r", "x.h5"),
            ("s3://b/x.h5", "s3://b", "x.h5"),
            ("x.h5", ".", "x.h5"),
            ("/x.h5", "/", "x.h5"),
            ("/data/x y.h5", "/data", "x y.h5"),
            ("file:///data/x%20y.h5", "file:///data", "x y.h5"),
            ("https://h/d/x.h5?sig=1", "https://h/d?sig=1", "x.h5"),
        ] {
            assert_eq!(
                split_url(url).unwrap(),
                (store.to_owned(), key.to_owned()),
                "{url}"
            );
            if store != "." {
                assert_eq!(join_url(store, key).unwrap(), url);
            }
        }
        assert_eq!(split_url("s3://b").unwrap_err().kind(), ErrorKind::Invalid);
    }
}
