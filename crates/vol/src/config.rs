//! What stands behind the connector's name in `HDF5_VOL_CONNECTOR`: settings, separated by semicolons.

use std::path::PathBuf;

use hyperslab::{Error, Options, Result, settings};

use crate::name::Names;

/// Bytes of changed chunks that are held before they are written, where nobody says.
const WRITE_CACHE: u64 = 256 << 20;
/// The names of settings that are the connector's own.
const NAMES: &str = "root, map, accelerate, write_cache";

/// Settings of the connector.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Settings of the engine.
    pub(crate) options: Options,
    /// Names that lead to stores.
    pub(crate) names: Names,
    /// Read local files with the engine where that is possible.
    pub(crate) accelerate: bool,
    /// Bytes of changed chunks that are held before they are written.
    pub(crate) write_cache: u64,
}

impl Config {
    /// Reads `root=s3://bucket;phi=0`; an empty text is all defaults.
    pub(crate) fn parse(text: &str) -> Result<Config> {
        let mut config = Config {
            options: Options {
                // A chunk that was written is one that programs count.
                write_empty: true,
                ..Options::default()
            },
            names: Names::default(),
            accelerate: false,
            write_cache: WRITE_CACHE,
        };
        for part in text
            .split(';')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                Error::invalid(format!("{part:?} is no setting of the form name=value"))
            })?;
            config.set(name.trim(), value.trim())?;
        }
        Ok(config)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "root" => self.names.root = Some(value.to_owned()),
            "map" => {
                let both = value.split_once('=');
                let both = both.filter(|(from, to)| from.starts_with('/') && to.contains("://"));
                let (from, to) = both.ok_or_else(|| {
                    Error::invalid(format!(
                        "map is {value:?}, and has to be a local folder and a URL"
                    ))
                    .with_hint("write map=/data=s3://bucket/prefix")
                })?;
                self.names.maps.push((PathBuf::from(from), to.to_owned()));
            }
            "accelerate" => self.accelerate = settings::yes(name, value)?,
            "write_cache" => self.write_cache = settings::positive_bytes(value)?,
            _ if self.options.set(name, value)? => {}
            _ => {
                let known = Options::names().join(", ");
                return Err(Error::invalid(format!("there is no setting {name:?}"))
                    .with_hint(format!("the settings are {NAMES}, {known}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let config = Config::parse(
            "planner=paper; phi=2;cache=1GiB;root=s3://b/p;map=/a=s3://c/d;map=/e=gs://f;accelerate=1;",
        )
        .unwrap();
        assert_eq!(config.options.planner.to_string(), "paper");
        assert_eq!(
            (config.options.phi, config.options.cache_bytes),
            (2.0, 1 << 30)
        );
        assert_eq!(config.names.root.as_deref(), Some("s3://b/p"));
        assert_eq!(config.names.maps.len(), 2);
        assert_eq!(config.names.maps[0].1, "s3://c/d");
        assert!(config.accelerate);
        assert_eq!(Config::parse("").unwrap().write_cache, WRITE_CACHE);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for wrong in [
            "fast",
            "colour=red",
            "map=/a",
            "map=a=s3://b",
            "phi=-1",
            "cache=much",
        ] {
            let error = Config::parse(wrong).unwrap_err();
            assert!(!error.message().is_empty(), "{wrong}");
        }
        let hint = Config::parse("colour=red").unwrap_err();
        assert!(hint.hint().is_some_and(|hint| hint.contains("planner")));
    }
}
