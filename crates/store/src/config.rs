//! The configuration file: options for the stores below a URL.
//!
//! ```toml
//! [store."s3://climate"]
//! region = "eu-central-1"
//! profile = "research"
//! ```
//!
//! Between the options and the disk. A section applies to its URL and everything below; where
//! several apply, the longest URL wins option by option.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::environment::Environment;
use crate::location::Location;
use crate::{Error, Result, key};

/// The options that the configuration file has for `location`, least specific first.
pub(crate) fn section(
    location: &Location,
    environment: &Environment,
) -> Result<BTreeMap<String, String>> {
    let Some((path, required)) = file(environment) else {
        return Ok(BTreeMap::new());
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !required => {
            return Ok(BTreeMap::new());
        }
        Err(e) => {
            return Err(Error::invalid(format!(
                "the configuration file {} cannot be read: {e}",
                path.display()
            ))
            .with_hint("check HYPERSLAB_CONFIG"));
        }
    };
    // The parser's own message quotes the line, which may hold a secret: only its place is shown.
    let wrong =
        |what: String| Error::invalid(format!("the configuration file {} {what}", path.display()));
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        let line = e
            .span()
            .map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        wrong(format!("is not valid TOML near line {line}"))
    })?;
    let Some(stores) = table.get("store") else {
        return Ok(BTreeMap::new());
    };
    let stores = stores
        .as_table()
        .ok_or_else(|| wrong("has a \"store\" that is no table".into()))?;

    let mut sections: Vec<_> = stores
        .iter()
        .filter(|(url, _)| applies(url, &location.url))
        .collect();
    sections.sort_by_key(|(url, _)| url.len());
    let mut values = BTreeMap::new();
    for (url, section) in sections {
        let section = section
            .as_table()
            .ok_or_else(|| wrong(format!("has no table at store.\"{url}\"")))?;
        for (name, value) in section {
            let value = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(flag) => flag.to_string(),
                _ => {
                    let what = format!("must give text, a number or true/false for {name}");
                    return Err(wrong(format!("{what} in store.\"{url}\"")));
                }
            };
            values.insert(name.clone(), value);
        }
    }
    Ok(values)
}

fn applies(section: &str, url: &str) -> bool {
    let section = section.strip_suffix('/').unwrap_or(section);
    if section.ends_with(":/") {
        return url
            .strip_prefix(section)
            .is_some_and(|rest| rest.starts_with('/'));
    }
    section == url || key::below(section, url).is_some()
}

/// Where the file is, and whether it has to exist.
fn file(environment: &Environment) -> Option<(PathBuf, bool)> {
    if let Some(path) = environment.get("HYPERSLAB_CONFIG") {
        return Some((PathBuf::from(path), true));
    }
    let below = "hyperslab/config.toml";
    match environment.get("XDG_CONFIG_HOME") {
        Some(dir) => Some((PathBuf::from(dir).join(below), false)),
        None => Some((environment.home(".config")?.join(below), false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::parse;

    fn with_file(text: &str) -> (tempfile::TempDir, Environment) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        let environment = [("HYPERSLAB_CONFIG", path.to_str().unwrap())]
            .into_iter()
            .collect();
        (dir, environment)
    }

    #[test]
    fn the_longest_matching_section_wins() {
        let (_dir, environment) = with_file(
            "other = 1\n[store.\"s3://\"]\nretries = 9\nregion = 'all'\n\
             [store.\"s3://b\"]\nregion = 'b'\nanonymous = true\n\
             [store.\"s3://bb\"]\nregion = 'bb'\n[store.\"s3://b/p\"]\nregion = 'p'\n",
        );
        let get = |url: &str| section(&parse(url).unwrap(), &environment).unwrap();
        assert_eq!(get("s3://b/p/q")["region"], "p");
        assert_eq!(get("s3://b/p/q")["anonymous"], "true");
        assert_eq!(get("s3://b/p/q")["retries"], "9");
        assert_eq!(get("s3://b/pp")["region"], "b");
        assert_eq!(get("s3://bb")["region"], "bb");
        assert_eq!(get("s3://bb").get("anonymous"), None);
        assert!(get("gs://b").is_empty());
    }

    #[test]
    fn broken_files_are_named_without_their_secrets() {
        for text in [
            "[store.\"s3://b\"]\nsecret_access_key = hunter2\n",
            "store = 'hunter2'",
        ] {
            let (_dir, environment) = with_file(text);
            let error = section(&parse("s3://b").unwrap(), &environment).unwrap_err();
            assert!(error.to_string().contains("c.toml"), "{error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
        let gone = [("HYPERSLAB_CONFIG", "no/such/file")].into_iter().collect();
        assert!(section(&parse("s3://b").unwrap(), &gone).is_err());
        let absent = [("XDG_CONFIG_HOME", "no/such/dir")].into_iter().collect();
        assert!(
            section(&parse("s3://b").unwrap(), &absent)
                .unwrap()
                .is_empty()
        );
    }
}
