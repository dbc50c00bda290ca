//! Where profiles are kept, and which endpoint they are of.
//!
//! Beside the measurement. A profile belongs to an endpoint and a bucket as seen from this machine,
//! so its file lies in the user's configuration folder and is named after them. Which endpoint a URL
//! leads to is the stores' business: options, environment and configuration files all have a say.

use std::path::{Path, PathBuf};

use hyperslab_plan::Profile;
use hyperslab_store::{Environment, Options};

use crate::{Error, Result};

/// The longest name of a file, with room for an ending.
const LONGEST_NAME: usize = 200;

/// The endpoint and bucket of a URL, such as `https://s3.eu-west-1.amazonaws.com/climate`: the name
/// of their profile.
pub fn endpoint(url: &str, options: &Options) -> Result<String> {
    hyperslab_store::endpoint(url, options)
}

/// The file that the profile of a URL's endpoint is kept in.
pub fn file_for(url: &str, options: &Options) -> Result<PathBuf> {
    file_in(&endpoint(url, options)?, &Environment::process())
}

/// The measured profile of a URL's endpoint, if there is one.
///
/// Reads one small file, so it can be asked for whenever a store is opened. A file that cannot be
/// read, is no profile, or is one of another endpoint is an error whose hint says what to do about
/// it; a URL that leads nowhere is none, for opening it tells why.
pub fn load_for(url: &str, options: &Options) -> Result<Option<Profile>> {
    load_in(url, options, &Environment::process())
}

/// The profile in a file, which must be one of the URL's endpoint.
pub fn load(path: &Path, url: &str, options: &Options) -> Result<Profile> {
    let found = read(path, &endpoint(url, options)?)?;
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

fn load_in(url: &str, options: &Options, environment: &Environment) -> Result<Option<Profile>> {
    let Ok(name) = endpoint(url, options) else {
        return Ok(None);
    };
    match file_in(&name, environment) {
        Ok(path) => read(&path, &name),
        // Without a home there is no configuration folder, and so no profile in it.
        Err(_) => Ok(None),
    }
}

/// The profile in a file, if the file exists and the profile is one of `name`.
fn read(path: &Path, name: &str) -> Result<Option<Profile>> {
    let shown = path.display();
    let remedy = "remove the file, or measure the endpoint anew with `hyperslab profile URL`";
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => {
            return Err(
                Error::invalid(format!("the profile {shown} cannot be read: {e}"))
                    .with_hint(remedy),
            );
        }
    };
    let profile = Profile::parse(&text).map_err(|e| e.context(path.display()).with_hint(remedy))?;
    if profile.name != name {
        return Err(Error::invalid(format!(
            "the profile {shown} is one of {}, not of {name}",
            profile.name
        ))
        .with_hint(remedy));
    }
    Ok(Some(profile))
}

fn file_in(name: &str, environment: &Environment) -> Result<PathBuf> {
    let config = match (environment.get("XDG_CONFIG_HOME"), environment.get("HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(home)) => Path::new(home).join(".config"),
        (None, None) => {
            return Err(Error::invalid("there is no folder to keep profiles in")
                .with_hint("set HOME or XDG_CONFIG_HOME, or name a file with -o"));
        }
    };
    let file = format!("{}.toml", file_name(name));
    Ok(config.join("hyperslab/profiles").join(file))
}

/// A name that every file system takes, and no two endpoints share: a profile of one must not be in
/// the way of another.
fn file_name(name: &str) -> String {
    let mut file = String::with_capacity(name.len());
    for c in name.replacen("://", "-", 1).chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => file.push(c),
            '/' => file.push('+'),
            ':' => file.push('='),
            ' ' => file.push('-'),
            c => file.push_str(&format!("%{:x}", u32::from(c))),
        }
    }
    file.truncate(LONGEST_NAME);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().copied().collect()
    }

    fn options(environment: &Environment) -> Options {
        Options::new().with_environment(environment.clone())
    }

    fn load_in(url: &str, environment: &Environment) -> Result<Option<Profile>> {
        super::load_in(url, &options(environment), environment)
    }

    #[test]
    fn file_names_are_sound_and_differ() {
        let names = [
            ("http://127.0.0.1:9000/b", "http-127.0.0.1=9000+b"),
            ("https://127.0.0.1:9000/b", "https-127.0.0.1=9000+b"),
            ("http://127.0.0.1/9000-b", "http-127.0.0.1+9000-b"),
            ("https://h/a-b", "https-h+a-b"),
            ("https://h-a/b", "https-h-a+b"),
            ("https://h/../../x", "https-h+..+..+x"),
            ("https://h/\u{e9}", "https-h+%e9"),
            ("local disk", "local-disk"),
        ];
        for (name, file) in names {
            assert_eq!(file_name(name), file);
        }
        assert!(file_name(&"é".repeat(999)).len() <= LONGEST_NAME);
        let name = "https://s3.r.amazonaws.com/b";
        let file = file_in(name, &environment(&[("HOME", "/home/me")])).unwrap();
        assert_eq!(
            file,
            Path::new("/home/me/.config/hyperslab/profiles/https-s3.r.amazonaws.com+b.toml")
        );
        assert!(file_in(name, &environment(&[])).is_err());
    }

    #[test]
    fn a_profile_is_found_again_and_one_of_another_endpoint_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let home = [("XDG_CONFIG_HOME", folder.path().to_str().unwrap())];
        let environment = environment(&home);
        let url = "s3://b/x?region=r";
        assert_eq!(load_in(url, &environment).unwrap(), None);
        let mut profile = Profile::built_in("aws").unwrap();
        profile.name = endpoint(url, &options(&environment)).unwrap();
        let path = file_in(&profile.name, &environment).unwrap();
        save(&profile, &path).unwrap();
        assert_eq!(load_in(url, &environment).unwrap(), Some(profile.clone()));
        // Another prefix of the bucket is the same endpoint, another bucket is not.
        let other = load_in("s3://b/y/z.zarr?region=r&retries=1", &environment).unwrap();
        assert_eq!(other, Some(profile.clone()));
        assert_eq!(load_in("s3://c/x?region=r", &environment).unwrap(), None);
        assert_eq!(
            std::fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1
        );

        profile.name = "https://elsewhere/b".into();
        save(&profile, &path).unwrap();
        let error = load_in(url, &environment).unwrap_err();
        assert!(error.message().contains("https://elsewhere/b"), "{error}");
        assert!(error.message().contains("https://s3.r.amazonaws.com/b"));
        assert!(error.hint().unwrap().contains("remove the file"));
    }

    #[test]
    fn broken_profiles_are_one_sentence_and_say_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let home = [("XDG_CONFIG_HOME", folder.path().to_str().unwrap())];
        let environment = environment(&home);
        let url = "s3://b/x?region=r";
        let name = endpoint(url, &options(&environment)).unwrap();
        let path = file_in(&name, &environment).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut contradictory = Profile::built_in("aws").unwrap();
        contradictory.name = name;
        contradictory.network.bandwidth[0].bytes_per_second = -1.0;
        let contradictory = contradictory.render().unwrap();
        for text in ["", "name = 1", "\u{0}", &contradictory] {
            std::fs::write(&path, text).unwrap();
            let error = load_in(url, &environment).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(error.message().contains(".toml"), "{error}");
            assert!(!error.message().contains('\n'), "{error}");
            assert!(error.hint().unwrap().contains("remove the file"));
        }
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(load_in(url, &environment).is_err());
    }

    #[test]
    fn what_cannot_be_opened_has_no_profile() {
        for url in ["ftp://h/x", "", "s3://", "az://c/x", "s3://b?nonsense=1"] {
            assert_eq!(load_in(url, &environment(&[])).unwrap(), None, "{url}");
        }
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
