//! Settings as text, for whoever takes them from a command line, a configuration or the environment.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyperslab_function::{FunctionClient, Secret};
use hyperslab_plan::{PriceBook, Profile};
use hyperslab_store::Environment;

use crate::{Consolidated, DiskCacheOptions, Error, Options, Result};

/// Bytes that a cache on disk may take where nobody says.
pub const DISK_CACHE_BYTES: u64 = 1 << 30;
/// The secret that calls of the function are signed with, where no file is named.
const SECRET: &str = "HYPERSLAB_FUNCTION_SECRET";
/// A token for the cloud that stands before the function.
const TOKEN: &str = "HYPERSLAB_FUNCTION_TOKEN";

/// The names that [`Options::set`] knows.
const NAMES: [&str; 22] = [
    "planner",
    "phi",
    "place",
    "profile",
    "prices",
    "frozen",
    "hedge",
    "deadline",
    "function",
    "memory",
    "concurrency",
    "cache",
    "cache_dir",
    "cache_dir_bytes",
    "cache_fresh",
    "replicas",
    "replica_fresh",
    "replica_check",
    "strict_sources",
    "trace",
    "consolidated",
    "write_empty",
];

impl Options {
    /// Sets one setting by its name; false if there is none of that name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        match name {
            "planner" => self.planner = value.parse()?,
            "phi" => self.phi = phi(value)?,
            "place" => self.place = value.parse()?,
            "profile" => self.profile = Some(profile(value)?),
            "prices" => self.prices = Some(prices(value)?),
            "frozen" => self.frozen = yes(name, value)?,
            "hedge" => self.hedge = yes(name, value)?,
            "deadline" => self.deadline = Some(time(value)?),
            "function" => self.function = function(Some(value), None, &Environment::process())?,
            "memory" => self.memory = positive_bytes(value)?,
            "concurrency" => match value.parse() {
                Ok(requests @ 1..=4096) => self.concurrency = requests,
                _ => return Err(wrong(name, value, "a number from 1 to 4096")),
            },
            "cache" => self.cache_bytes = bytes(value)?,
            "cache_dir" => self.disk().dir = value.into(),
            "cache_dir_bytes" => self.disk().bytes = positive_bytes(value)?,
            "cache_fresh" => self.cache_fresh = time(value)?,
            "replicas" => self.replicas = yes(name, value)?,
            "replica_fresh" => self.replica_fresh = time(value)?,
            "replica_check" => self.replica_check = time(value)?,
            "strict_sources" => self.strict_sources = yes(name, value)?,
            "trace" => self.trace = Some(value.into()),
            "consolidated" => {
                self.consolidated = match value {
                    "verify" => Consolidated::Verify,
                    "trust" => Consolidated::Trust,
                    "ignore" => Consolidated::Ignore,
                    _ => return Err(wrong(name, value, "verify, trust or ignore")),
                }
            }
            "write_empty" => self.write_empty = yes(name, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The names of all settings.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    fn disk(&mut self) -> &mut DiskCacheOptions {
        self.disk_cache.get_or_insert_with(|| DiskCacheOptions {
            dir: Default::default(),
            bytes: DISK_CACHE_BYTES,
        })
    }
}

fn wrong(name: &str, value: &str, expected: &str) -> Error {
    Error::invalid(format!("{name} is {value:?}, and has to be {expected}"))
}

/// A switch.
pub fn yes(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => Ok(true),
        "0" | "no" | "false" | "off" => Ok(false),
        _ => Err(wrong(name, value, "1 or 0")),
    }
}

/// φ: a number of seconds, `inf` for money only.
pub fn phi(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(phi) if phi >= 0.0 => Ok(phi),
        _ => Err(wrong("phi", text, "0 or more, or inf")),
    }
}

/// A time such as `30s` or `1h`; a bare number is seconds.
pub fn time(text: &str) -> Result<Duration> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(text)
            .map_err(|_| Error::invalid(format!("{text:?} is not a time such as 30s or 1h"))),
    }
}

/// Bytes, as in `4096`, `64k`, `256MiB`, `1.5GB`. Decimal units are powers of 1000, binary ones (`KiB`)
/// of 1024; case does not matter.
pub fn bytes(text: &str) -> Result<u64> {
    let text = text.trim();
    let wrong = || {
        Error::invalid(format!(
            "{text:?} is not a size; write bytes or a unit, such as 256MiB or 1GB"
        ))
    };
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(wrong);
    }
    let value = number.parse::<f64>().map_err(|_| wrong())? * factor as f64;
    if value.is_finite() && value < 9e18 {
        Ok(value as u64)
    } else {
        Err(wrong())
    }
}

/// Bytes, and not none.
pub fn positive_bytes(text: &str) -> Result<u64> {
    match bytes(text)? {
        0 => Err(Error::invalid("0 bytes are too little")),
        bytes => Ok(bytes),
    }
}

/// A profile by its file or its name.
pub fn profile(text: &str) -> Result<Arc<Profile>> {
    load("profile", text, Profile::built_in, Profile::parse)
}

/// A price book by its file or its name.
pub fn prices(text: &str) -> Result<Arc<PriceBook>> {
    load("price book", text, PriceBook::built_in, PriceBook::parse)
}

fn load<T>(
    what: &str,
    text: &str,
    built_in: fn(&str) -> Result<T>,
    parse: fn(&str) -> Result<T>,
) -> Result<Arc<T>> {
    if let Ok(found) = built_in(text) {
        return Ok(Arc::new(found));
    }
    let content = std::fs::read_to_string(Path::new(text)).map_err(|e| {
        Error::invalid(format!(
            "there is no {what} {text:?} built in, and no such file: {e}"
        ))
    })?;
    parse(&content).map(Arc::new)
}

/// The function next to the data, if one is named. Its secret is in the file, or else in the
/// environment; without one, calls are not signed.
pub fn function(
    url: Option<&str>,
    secret_file: Option<&Path>,
    environment: &Environment,
) -> Result<Option<Arc<FunctionClient>>> {
    // An empty variable is one that is not set.
    let Some(url) = url.filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let secret = match secret_file.filter(|file| !file.as_os_str().is_empty()) {
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|e| {
                let shown = file.display();
                Error::invalid(format!("the secret in {shown} cannot be read: {e}"))
                    .with_hint("check --function-secret-file")
            })?;
            Some(Secret::new(text.trim())?)
        }
        None => environment.get(SECRET).map(Secret::new).transpose()?,
    };
    let mut client = FunctionClient::new(url, secret)?;
    if let Some(token) = environment.get(TOKEN) {
        client = client.with_token(token)?;
    }
    Ok(Some(Arc::new(client)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_value_that_is_taken_and_one_that_is_not() {
        for (name, right, wrong) in [
            ("planner", "paper", Some("best")),
            ("phi", "inf", Some("-1")),
            ("place", "internet", Some("mars")),
            ("profile", "aws", Some("no/such/file")),
            ("prices", "none", Some("no/such/file")),
            ("frozen", "1", Some("maybe")),
            ("hedge", "yes", Some("")),
            ("deadline", "30s", Some("soon")),
            ("function", "http://127.0.0.1:1/", Some("mars")),
            ("memory", "1GiB", Some("0")),
            ("concurrency", "64", Some("0")),
            ("cache", "0", Some("-1")),
            ("cache_dir", "x", None),
            ("cache_dir_bytes", "7k", Some("0")),
            ("cache_fresh", "10m", Some("?")),
            ("replicas", "no", Some("some")),
            ("replica_fresh", "1s", Some("?")),
            ("replica_check", "5m", Some("?")),
            ("strict_sources", "off", Some("2")),
            ("trace", "folder", None),
            ("consolidated", "trust", Some("maybe")),
            ("write_empty", "1", Some("perhaps")),
        ] {
            assert!(Options::names().contains(&name), "{name}");
            let mut options = Options::default();
            assert!(options.set(name, right).unwrap(), "{name}");
            if let Some(wrong) = wrong {
                assert!(options.set(name, wrong).is_err(), "{name}");
            }
        }
        assert!(!Options::default().set("colour", "red").unwrap());
    }

    #[test]
    fn settings_of_the_disk_cache_come_in_any_order() {
        let mut options = Options::default();
        options.set("cache_dir_bytes", "7").unwrap();
        options.set("cache_dir", "x").unwrap();
        let disk = options.disk_cache.unwrap();
        assert_eq!((disk.dir.to_str(), disk.bytes), (Some("x"), 7));
    }

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 64_000),
            ("256MiB", 256 << 20),
            ("1GB", 1_000_000_000),
            ("1.5 GiB", 3 << 29),
            ("7b", 7),
        ] {
            assert_eq!(bytes(text).unwrap(), expected, "{text}");
        }
        for bad in [
            "",
            "MiB",
            "1XB",
            "-1",
            "1..2",
            "99999999999TB",
            "1e400",
            "nan",
        ] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        assert!(positive_bytes("0").is_err());
    }

    #[test]
    fn times_are_read() {
        assert_eq!(time("90").unwrap(), Duration::from_secs(90));
        assert_eq!(time("0").unwrap(), Duration::ZERO);
        assert_eq!(time("1h 30m").unwrap(), Duration::from_secs(5400));
        for wrong in ["", "-1", "soon"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_of_the_planner_are_checked() {
        assert_eq!(phi("inf").unwrap(), f64::INFINITY);
        assert_eq!(phi("0").unwrap(), 0.0);
        for wrong in ["-1", "nan", "much", ""] {
            assert!(phi(wrong).is_err(), "{wrong}");
        }
        assert_eq!(profile("gcp").unwrap().name, "gcp");
        let error = profile("no/such/file").unwrap_err();
        assert!(error.message().contains("no such file"));
        assert_eq!(prices("none").unwrap().name, "none");
    }

    #[test]
    fn a_function_has_a_url_and_perhaps_a_secret() {
        let bare = Environment::default();
        assert!(function(None, None, &bare).unwrap().is_none());
        assert!(function(Some(""), None, &bare).unwrap().is_none());
        let shown = |client: Option<Arc<FunctionClient>>| format!("{:?}", client.unwrap());
        let url = Some("https://f.example/?code=s3cret");
        let unsigned = shown(function(url, None, &bare).unwrap());
        assert!(unsigned.contains("signed: false"), "{unsigned}");
        assert!(!unsigned.contains("s3cret"));

        let secret = "0123456789abcdef-secret";
        let set: Environment = [(SECRET, secret)].into_iter().collect();
        let signed = shown(function(url, None, &set).unwrap());
        assert!(signed.contains("signed: true") && !signed.contains(secret));

        let token: Environment = [(TOKEN, "no\ntoken")].into_iter().collect();
        assert!(function(url, None, &token).is_err());

        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        std::fs::write(&file, format!("{secret}\n")).unwrap();
        let signed = shown(function(url, Some(&file), &bare).unwrap());
        assert!(signed.contains("signed: true"), "{signed}");

        std::fs::write(&file, "short").unwrap();
        let absent = dir.path().join("absent");
        for (url, file) in [
            (url, Some(&file)),
            (url, Some(&absent)),
            (Some("mars"), None),
        ] {
            let error = function(url, file.map(|f| f.as_path()), &bare).unwrap_err();
            assert!(error.hint().is_some(), "{error}");
            assert!(!error.to_string().contains("s3cret"));
        }
    }
}
