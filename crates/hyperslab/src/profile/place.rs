//! Where profiles are kept, and which endpoint they are of.
//!
//! Beside the measurement. A profile belongs to an endpoint and a bucket as seen from this machine,
//! so its file lies in the user's configuration folder and is named after them.
//!
//! The endpoint is what the URL and the environment say. An endpoint that only a configuration file
//! or a credentials file names is not seen here: its profile has the name of the cloud's usual one.

use std::path::{Path, PathBuf};

use hyperslab_plan::Profile;
use hyperslab_store::Environment;

use crate::{Error, Result};

/// The endpoint and bucket of a URL, such as `https://s3.eu-west-1.amazonaws.com/climate`: the name
/// of their profile.
pub fn endpoint(url: &str) -> Result<String> {
    endpoint_in(url, &Environment::process())
}

/// The file that the profile of a URL's endpoint is kept in.
pub fn file_for(url: &str) -> Result<PathBuf> {
    file_in(url, &Environment::process())
}

/// The measured profile of a URL's endpoint, if there is one.
///
/// A file that cannot be read, is no profile, or is one of another endpoint is an error.
pub fn load_for(url: &str) -> Result<Option<Profile>> {
    load_in(url, &Environment::process())
}

/// The profile in a file, which must be one of the URL's endpoint.
pub fn load(path: &Path, url: &str) -> Result<Profile> {
    let found = read(path, &endpoint(url)?)?;
    found.ok_or_else(|| {
        Error::not_found(format!("there is no profile {}", path.display()))
            .with_hint("measure one with `hyperslab profile`")
    })
}

/// Writes a profile, complete or not at all, and makes the folder if need be.
pub fn save(profile: &Profile, path: &Path) -> Result<()> {
    profile.check()?;
    let failed = |e: std::io::Error| {
        Error::unavailable(format!(
            "the profile {} cannot be written: {e}",
            path.display()
        ))
        .with_hint("name another file with -o")
        .with_source(e)
    };
    let text = profile.render()?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
    written.map_err(|e| {
        // Nothing more can be done about a part that cannot be removed.
        let _ = std::fs::remove_file(&part);
        failed(e)
    })
}

fn load_in(url: &str, environment: &Environment) -> Result<Option<Profile>> {
    let name = endpoint_in(url, environment)?;
    match file_in(url, environment) {
        Ok(path) => read(&path, &name),
        // Without a home there is no configuration folder, and so no profile in it.
        Err(_) => Ok(None),
    }
}

/// The profile in a file, if the file exists and the profile is one of `name`.
fn read(path: &Path, name: &str) -> Result<Option<Profile>> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => {
            return Err(
                Error::invalid(format!("the profile {shown} cannot be read: {e}"))
                    .with_hint("mend or remove the file"),
            );
        }
    };
    let profile = Profile::parse(&text).map_err(|e| e.context(path.display()))?;
    if profile.name != name {
        return Err(Error::invalid(format!(
            "the profile {shown} is one of {}, not of {name}",
            profile.name
        ))
        .with_hint("measure this endpoint with `hyperslab profile URL`"));
    }
    Ok(Some(profile))
}

fn file_in(url: &str, environment: &Environment) -> Result<PathBuf> {
    let config = match (environment.get("XDG_CONFIG_HOME"), environment.get("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(home).join(".config"),
        (None, None) => {
            return Err(Error::invalid("there is no folder to keep profiles in")
                .with_hint("set HOME or XDG_CONFIG_HOME, or name a file with -o"));
        }
    };
    let name = endpoint_in(url, environment)?;
    let file = format!("{}.toml", file_name(&name));
    Ok(config.join("hyperslab/profiles").join(file))
}

/// A name that every file system takes. Names that differ only in what is replaced share a file;
/// the profile's own name tells them apart.
fn file_name(name: &str) -> String {
    let bare = name.split_once("://").map_or(name, |(_, rest)| rest);
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let replaced: String = bare
        .chars()
        .map(|c| {
            if sound(c) {
                c.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .take(200)
        .collect();
    replaced.trim_matches(['-', '.']).to_owned()
}

fn endpoint_in(url: &str, environment: &Environment) -> Result<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok("local disk".to_owned());
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let bucket = path.split('/').next().unwrap_or("");
    let option = |wanted: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == wanted)?;
        Some(decoded(value))
    };
    let first = |names: &[&str]| {
        let found = names.iter().find_map(|name| environment.get(name));
        found.map(str::to_owned)
    };
    let server = match scheme.to_ascii_lowercase().as_str() {
        "file" => return Ok("local disk".to_owned()),
        "memory" => return Ok("memory".to_owned()),
        "http" | "https" => {
            return Ok(format!("{scheme}://{bucket}").to_ascii_lowercase());
        }
        "s3" => option("endpoint")
            .or_else(|| first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]))
            .unwrap_or_else(|| {
                let region =
                    option("region").or_else(|| first(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
                match region {
                    Some(region) => format!("https://s3.{region}.amazonaws.com"),
                    None => "https://s3.amazonaws.com".to_owned(),
                }
            }),
        "gs" => option("endpoint").unwrap_or_else(|| "https://storage.googleapis.com".to_owned()),
        "az" | "abfs" | "abfss" => azure(bucket, option, first),
        _ => {
            return Err(
                Error::invalid(format!("\"{scheme}\" is not a known URL scheme"))
                    .with_hint("known schemes are s3, az, abfs, abfss, gs, http, https and file"),
            );
        }
    };
    let bucket = bucket.split('@').next().unwrap_or(bucket);
    Ok(format!("{}/{bucket}", server.trim_end_matches('/')))
}

/// The server of an Azure container, which may be `container@account.host`.
fn azure(
    container: &str,
    option: impl Fn(&str) -> Option<String>,
    first: impl Fn(&[&str]) -> Option<String>,
) -> String {
    let account = match container.split_once('@') {
        Some((_, host)) => host.split('.').next().map(str::to_owned),
        None => option("account")
            .or_else(|| first(&["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"])),
    };
    option("endpoint")
        .or_else(|| first(&["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"]))
        .unwrap_or_else(|| match account {
            Some(account) => format!("https://{account}.blob.core.windows.net"),
            None => "https://blob.core.windows.net".to_owned(),
        })
}

/// A query's value with its `%XX` undone; what is no escape stays as it is.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let escaped = tail
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().copied().collect()
    }

    #[test]
    fn endpoints_are_named_after_server_and_bucket() {
        let bare = environment(&[]);
        let set = environment(&[
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/"),
            ("AWS_REGION", "eu-west-1"),
            ("AZURE_STORAGE_ACCOUNT", "acc"),
        ]);
        for (url, environment, name) in [
            ("s3://b/x/y", &bare, "https://s3.amazonaws.com/b"),
            ("s3://b?region=r", &bare, "https://s3.r.amazonaws.com/b"),
            ("s3://b/x", &set, "http://127.0.0.1:9000/b"),
            ("s3://b/x?endpoint=http%3A%2F%2Fh:1", &set, "http://h:1/b"),
            ("gs://b/x", &bare, "https://storage.googleapis.com/b"),
            ("az://c/x", &set, "https://acc.blob.core.windows.net/c"),
            (
                "abfss://c@two.dfs.core.windows.net/x",
                &set,
                "https://two.blob.core.windows.net/c",
            ),
            ("https://Host:8/x?sig=1", &bare, "https://host:8"),
            ("memory://m/x", &bare, "memory"),
            ("file:///a/b", &bare, "local disk"),
            ("a/b c", &bare, "local disk"),
        ] {
            assert_eq!(endpoint_in(url, environment).unwrap(), name, "{url}");
        }
        assert!(endpoint_in("ftp://h/x", &bare).is_err());
    }

    #[test]
    fn file_names_are_sound() {
        assert_eq!(file_name("http://127.0.0.1:9000/b"), "127.0.0.1-9000-b");
        assert_eq!(file_name("local disk"), "local-disk");
        assert_eq!(file_name("https://h/../../x"), "h-..-..-x");
        assert!(file_name(&"é".repeat(999)).len() <= 200);
        let file = file_in("s3://b", &environment(&[("HOME", "/home/me")])).unwrap();
        assert_eq!(
            file,
            Path::new("/home/me/.config/hyperslab/profiles/s3.amazonaws.com-b.toml")
        );
        assert!(file_in("s3://b", &environment(&[])).is_err());
    }

    #[test]
    fn a_profile_is_found_again_and_one_of_another_endpoint_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = [("XDG_CONFIG_HOME", folder.path().to_str().unwrap())];
        let environment = environment(&home);
        let url = "s3://b/x?region=r";
        assert_eq!(load_in(url, &environment).unwrap(), None);
        let mut profile = Profile::built_in("aws").unwrap();
        profile.name = endpoint_in(url, &environment).unwrap();
        let path = file_in(url, &environment).unwrap();
        save(&profile, &path).unwrap();
        assert_eq!(load_in(url, &environment).unwrap(), Some(profile.clone()));
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );

        profile.name = "https://elsewhere/b".into();
        save(&profile, &path).unwrap();
        let error = load_in(url, &environment).unwrap_err();
        assert!(error.message().contains("https://elsewhere/b"), "{error}");
        assert!(error.message().contains("https://s3.r.amazonaws.com/b"));
        assert!(error.hint().is_some());

        std::fs::write(&path, "name = 1").unwrap();
        let error = load_in(url, &environment).unwrap_err();
        assert!(error.message().contains(".toml"), "{error}");
    }

    #[test]
    fn a_profile_that_cannot_be_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        let mut profile = Profile::built_in("aws").unwrap();
        profile.network.bandwidth.clear();
        assert!(save(&profile, &path).is_err());
        assert!(!path.exists());
    }
}
