//! What a caller may say about how to open a store, and from where it may be said.
//!
//! Between the location and the back ends. Precedence: the URL's query, then [`Options`], then
//! the configuration file; what none of them says, a back end takes from the environment.
//!
//! Invariant: a name or value that no back end would understand is refused when the store is
//! opened, never silently dropped.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::environment::Environment;
use crate::location::{Location, StoreKind};
use crate::{Error, Result, config};

/// One option that may be set.
struct Known {
    name: &'static str,
    kinds: &'static [StoreKind],
    /// Secrets are refused in URLs, which end up in logs and shell histories.
    secret: bool,
}

const REMOTE: &[StoreKind] = &[
    StoreKind::S3,
    StoreKind::Azure,
    StoreKind::Google,
    StoreKind::Http,
];
const CLOUD: &[StoreKind] = &[StoreKind::S3, StoreKind::Azure, StoreKind::Google];
const S3: &[StoreKind] = &[StoreKind::S3];
const AZURE: &[StoreKind] = &[StoreKind::Azure];

const KNOWN: &[Known] = &[
    known("access_key_id", S3, true),
    known("account", AZURE, false),
    known("account_key", AZURE, true),
    known("anonymous", CLOUD, false),
    known("concurrency", REMOTE, false),
    known("connect_timeout", REMOTE, false),
    known("connection_string", AZURE, true),
    known("deadline", REMOTE, false),
    known("endpoint", CLOUD, false),
    known("fsync", &[StoreKind::File], false),
    known("profile", S3, false),
    known("region", S3, false),
    known("request_payer", S3, false),
    known("retries", REMOTE, false),
    known("sas_token", AZURE, true),
    known("secret_access_key", S3, true),
    known("service_account", &[StoreKind::Google], false),
    known("session_token", S3, true),
    known("timeout", REMOTE, false),
    known("unsigned_payload", S3, false),
    known("virtual_hosted", S3, false),
];

const fn known(name: &'static str, kinds: &'static [StoreKind], secret: bool) -> Known {
    Known {
        name,
        kinds,
        secret,
    }
}

/// How to open a store: options by name, and the environment to open it under.
///
/// | option | stores | meaning |
/// |---|---|---|
/// | `region`, `profile`, `access_key_id`, `secret_access_key`, `session_token` | S3 | as in AWS's own tools |
/// | `request_payer=requester`, `unsigned_payload`, `virtual_hosted` | S3 | requester pays; do not hash bodies; bucket in the host name |
/// | `account`, `account_key`, `sas_token`, `connection_string` | Azure | as in Azure's own tools |
/// | `service_account` | Google | path of a service-account file |
/// | `endpoint` | S3, Azure, Google | another server; plain `http://` is allowed |
/// | `anonymous` | S3, Azure, Google | send no credentials |
/// | `retries`, `deadline` | remote | so many retries (3), and up to 6 more while other requests succeed; none after so long (`3m`) |
/// | `timeout`, `connect_timeout` | remote | of one request (`60s`), of a connection (`5s`) |
/// | `concurrency` | remote | most requests in flight per endpoint (256) |
/// | `fsync` | file | wait for the disk before a write is reported |
#[derive(Clone, Default)]
pub struct Options {
    values: BTreeMap<String, String>,
    environment: Option<Environment>,
}

impl Options {
    /// No options, under the process's environment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets one option, replacing its earlier value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }

    /// Opens under `environment` instead of the process's own.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    pub(crate) fn environment(&self) -> Environment {
        self.environment
            .clone()
            .unwrap_or_else(Environment::process)
    }
}

/// Shows names and harmless values only.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in &self.values {
            let open = KNOWN
                .iter()
                .any(|known| known.name == name && !known.secret);
            map.entry(name, if open { value } else { &"…" });
        }
        map.finish()
    }
}

/// The options of one store from all places, by precedence.
pub(crate) struct Settings {
    values: BTreeMap<String, String>,
    pub(crate) environment: Environment,
    /// Query pairs that are not options; only a web server may have them.
    pub(crate) foreign_query: Vec<(String, String)>,
}

impl Settings {
    pub(crate) fn resolve(location: &Location, options: &Options) -> Result<Self> {
        let environment = options.environment();
        let mut values = BTreeMap::new();
        for (name, value) in config::section(location, &environment)? {
            check_name(&name, location.kind)?;
            values.insert(name, value);
        }
        for (name, value) in &options.values {
            check_name(name, location.kind)?;
            values.insert(name.clone(), value.clone());
        }
        let mut foreign_query = Vec::new();
        for (name, value) in &location.query {
            let is_option = KNOWN.iter().any(|known| known.name == name);
            if location.kind == StoreKind::Http && !is_option {
                foreign_query.push((name.clone(), value.clone()));
                continue;
            }
            if check_name(name, location.kind)?.secret {
                return Err(Error::invalid(format!(
                    "\"{name}\" is a secret and not allowed in a URL"
                ))
                .with_hint(
                    "use the cloud's environment variables, a profile or the configuration file",
                ));
            }
            values.insert(name.clone(), value.clone());
        }
        Ok(Settings {
            values,
            environment,
            foreign_query,
        })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "0" | "no" | "off") => Ok(false),
            Some("true" | "1" | "yes" | "on") => Ok(true),
            Some(_) => Err(wrong(name, "true or false")),
        }
    }

    pub(crate) fn number(&self, name: &str, default: u64) -> Result<u64> {
        match self.get(name) {
            None => Ok(default),
            Some(value) => value.parse().map_err(|_| wrong(name, "a whole number")),
        }
    }

    /// A duration such as `30s` or `500ms`; a bare number is seconds.
    pub(crate) fn duration(&self, name: &str, default: Duration) -> Result<Duration> {
        let Some(value) = self.get(name) else {
            return Ok(default);
        };
        let parsed = match value.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => humantime::parse_duration(value).ok(),
        };
        parsed
            .filter(|d| !d.is_zero())
            .ok_or_else(|| wrong(name, "a duration such as 30s or 500ms"))
    }
}

/// An option has a value that it cannot have.
pub(crate) fn wrong(name: &str, expected: &str) -> Error {
    Error::invalid(format!("the option \"{name}\" must be {expected}"))
}

fn check_name(name: &str, kind: StoreKind) -> Result<&'static Known> {
    let fits = |known: &&Known| known.kinds.contains(&kind);
    if let Some(known) = KNOWN.iter().filter(fits).find(|known| known.name == name) {
        return Ok(known);
    }
    let names: Vec<_> = KNOWN.iter().filter(fits).map(|known| known.name).collect();
    let known = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    Err(
        Error::invalid(format!("\"{name}\" is not an option of {kind} stores"))
            .with_hint(format!("known options: {known}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::parse;

    fn settings(url: &str, options: &Options) -> Result<Settings> {
        Settings::resolve(&parse(url)?, options)
    }

    fn bare() -> Options {
        Options::new().with_environment(Environment::default())
    }

    #[test]
    fn the_url_wins_over_options() {
        let options = bare().with("region", "from-options").with("retries", "7");
        let settings = settings("s3://b?region=from-url&timeout=1500ms", &options).unwrap();
        assert_eq!(settings.get("region"), Some("from-url"));
        assert_eq!(settings.number("retries", 3).unwrap(), 7);
        assert_eq!(
            settings.duration("timeout", Duration::ZERO).unwrap(),
            Duration::from_millis(1500)
        );
        assert!(!settings.flag("anonymous").unwrap());
    }

    #[test]
    fn unknown_options_and_values_are_refused() {
        for (url, word) in [
            (
                "s3://b?regoin=x",
                "known options: access_key_id, anonymous,",
            ),
            ("file:///x?region=x", "known options: fsync"),
            ("memory://x?fsync=true", "known options: none"),
            ("s3://b?secret_access_key=hunter2", "is a secret"),
        ] {
            let error = settings(url, &bare()).err().unwrap();
            assert!(error.to_string().contains(word), "{error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        let settings = settings("s3://b?anonymous=maybe&retries=-1&timeout=0", &bare()).unwrap();
        assert!(settings.flag("anonymous").is_err());
        assert!(settings.number("retries", 3).is_err());
        assert!(settings.duration("timeout", Duration::ZERO).is_err());
    }

    #[test]
    fn a_web_server_keeps_its_own_query() {
        let settings = settings("https://h/x?sig=abc&retries=1", &bare()).unwrap();
        assert_eq!(
            settings.foreign_query,
            [("sig".to_owned(), "abc".to_owned())]
        );
        assert_eq!(settings.number("retries", 3).unwrap(), 1);
    }

    #[test]
    fn debug_output_hides_secrets() {
        let options = bare()
            .with("secret_access_key", "hunter2")
            .with("region", "r");
        assert_eq!(
            format!("{options:?}"),
            r#"{"region": "r", "secret_access_key": "…"}"#
        );
    }
}
