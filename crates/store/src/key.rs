//! Which strings are keys.
//!
//! Below everything else in this crate. Invariant: a key that passes here names the same object
//! on every back end, and on local disk a file below the store's root.

use crate::{Error, Result};

/// The longest name in bytes that S3, Azure and Google all accept.
pub(crate) const MAX_KEY_BYTES: usize = 1024;

/// Checks the key of an object.
pub(crate) fn check_key(key: &str) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid("an object's key must not be empty"));
    }
    check_prefix(key)
}

/// Checks a directory prefix, which unlike a key may be empty.
pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
    if prefix.is_empty() {
        return Ok(());
    }
    if prefix.len() > MAX_KEY_BYTES {
        let start: String = prefix.chars().take(40).collect();
        return Err(Error::invalid(format!(
            "the key \"{start}…\" has {} bytes, but object stores allow {MAX_KEY_BYTES}",
            prefix.len()
        ))
        .with_hint("use shorter names or fewer levels"));
    }
    for part in prefix.split('/') {
        let wrong = match part {
            "" => "an empty component (a leading, trailing or double slash)",
            "." | ".." => "a component that is \".\" or \"..\"",
            _ if part.bytes().any(|b| b.is_ascii_control()) => "a control character",
            _ => continue,
        };
        return Err(Error::invalid(format!("the key {prefix:?} has {wrong}"))
            .with_hint("keys are names separated by single slashes, such as a/b/c"));
    }
    Ok(())
}

/// Puts `prefix` before `key`; either may be empty.
pub(crate) fn join(prefix: &str, key: &str) -> String {
    match (prefix.is_empty(), key.is_empty()) {
        (true, _) => key.to_owned(),
        (_, true) => prefix.to_owned(),
        _ => format!("{prefix}/{key}"),
    }
}

/// The part of `key` below the directory `prefix`, or `None` if it is not below it.
pub(crate) fn below<'a>(prefix: &str, key: &'a str) -> Option<&'a str> {
    if prefix.is_empty() {
        return (!key.is_empty()).then_some(key);
    }
    key.strip_prefix(prefix)?
        .strip_prefix('/')
        .filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn good_keys_pass_and_bad_ones_say_what_is_wrong() {
        for good in [
            "a",
            "a/b c/ü%20#?",
            "...",
            ".zarray",
            "a/..b",
            &"x".repeat(1024),
        ] {
            check_key(good).unwrap();
        }
        let long = "é".repeat(513);
        for (bad, word) in [
            ("", "empty"),
            ("/a", "empty component"),
            ("a/", "empty component"),
            ("a//b", "empty component"),
            ("a/../b", "\"..\""),
            (".", "\".\""),
            ("a\nb", "control"),
            ("a\0b", "control"),
            (long.as_str(), "1026 bytes"),
        ] {
            let error = check_key(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(word), "{bad:?}: {error}");
        }
        check_prefix("").unwrap();
    }

    #[test]
    fn below_respects_component_borders() {
        assert_eq!(below("a", "a/b"), Some("b"));
        assert_eq!(below("a", "ab"), None);
        assert_eq!(below("a", "a"), None);
        assert_eq!(below("", "ab"), Some("ab"));
        assert_eq!(join("a", "b"), "a/b");
        assert_eq!(join("", "b"), "b");
        assert_eq!(join("a", ""), "a");
    }
}
