//! Takes `URL[slices]` apart.
//!
//! Between the arguments and the facade; no I/O. The slices are text until the array's shape is
//! known.

use hyperslab::{Error, Result};

/// A node's URL, and the slices behind it if there are any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The URL without the slices.
    pub(crate) url: String,
    /// What stands between the brackets.
    pub(crate) slices: Option<String>,
}

impl Address {
    /// Splits the brackets off.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let whole = || Address {
            url: text.to_owned(),
            slices: None,
        };
        let Some(inner) = text.strip_suffix(']') else {
            return match text.rfind('[') {
                // A bracket inside a host is an IPv6 address; elsewhere it was left open.
                Some(at) if !text[..at].ends_with('/') && !text[at..].contains(']') => Err(
                    Error::invalid(format!("{text:?} opens a bracket and does not close it"))
                        .with_hint("write the slices as URL[0:10, :, 5], in quotes"),
                ),
                _ => Ok(whole()),
            };
        };
        match inner.rfind('[') {
            Some(at) if inner[..at].ends_with("//") => Ok(whole()),
            Some(at) if at > 0 => Ok(Address {
                url: inner[..at].to_owned(),
                slices: Some(inner[at + 1..].to_owned()),
            }),
            _ => Err(Error::invalid(format!(
                "{text:?} has slices, but names no array before them"
            ))
            .with_hint("write URL[0:10, :, 5], in quotes")),
        }
    }

    /// The URL of a whole node; slices are an error.
    pub(crate) fn whole(text: &str, command: &str) -> Result<String> {
        let address = Self::parse(text)?;
        match address.slices {
            None => Ok(address.url),
            Some(_) => Err(
                Error::invalid(format!("`{command}` takes whole arrays, not slices")).with_hint(
                    format!("leave the brackets out: {}", without_query(&address.url)),
                ),
            ),
        }
    }
}

/// The URL as it may be shown: options behind a question mark can hold signatures.
pub(crate) fn without_query(url: &str) -> &str {
    match url.find('?') {
        Some(at) if url.contains("://") => &url[..at],
        _ => url,
    }
}

/// The URL of something below a node, with the options kept at the end.
pub(crate) fn below(url: &str, path: &str) -> String {
    if path.is_empty() {
        return url.to_owned();
    }
    let (base, query) = url.split_at(without_query(url).len());
    format!("{}/{path}{query}", base.trim_end_matches('/'))
}

/// The last component of a URL, for people.
pub(crate) fn name(url: &str) -> &str {
    let bare = without_query(url).trim_end_matches('/');
    bare.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>) {
        let address = Address::parse(text).unwrap();
        (address.url, address.slices)
    }

    #[test]
    fn slices_stand_at_the_end() {
        assert_eq!(parsed("a.zarr/b"), ("a.zarr/b".into(), None));
        assert_eq!(parsed("a[0:1, 2]"), ("a".into(), Some("0:1, 2".into())));
        assert_eq!(parsed("a[]"), ("a".into(), Some(String::new())));
        assert_eq!(
            parsed("s3://b/a?region=x[...]"),
            ("s3://b/a?region=x".into(), Some("...".into()))
        );
        assert_eq!(
            parsed("http://[::1]:9/a"),
            ("http://[::1]:9/a".into(), None)
        );
        assert_eq!(parsed("http://[::1]"), ("http://[::1]".into(), None));
        assert_eq!(parsed("x[1]/y[2]"), ("x[1]/y".into(), Some("2".into())));
        assert!(
            Address::parse("a[0:1")
                .unwrap_err()
                .message()
                .contains("close")
        );
        assert!(Address::parse("[0:1]").is_err());
        assert!(Address::parse("a]").is_err());
        assert!(
            Address::whole("a[0]", "du")
                .unwrap_err()
                .message()
                .contains("du")
        );
    }

    #[test]
    fn options_stay_at_the_end() {
        assert_eq!(below("s3://b/a?x=1", "c/d"), "s3://b/a/c/d?x=1");
        assert_eq!(below("a/", "c"), "a/c");
        assert_eq!(below("what?", "c"), "what?/c");
        assert_eq!(without_query("s3://b/a?sig=1"), "s3://b/a");
        assert_eq!(name("s3://b/sky.zarr/?x=1"), "sky.zarr");
    }
}
