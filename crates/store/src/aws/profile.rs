//! AWS's shared configuration and credential files.
//!
//! Two files of `[sections]` with `name = value` lines. In the configuration file the section of
//! profile `p` is `[profile p]` (but `[default]`), in the credential file it is `[p]`; the
//! credential file wins. Indented lines belong to the setting above them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Credentials;
use super::process::split_words;
use crate::environment::Environment;
use crate::{Error, Result};
use object_store::aws::AmazonS3ConfigKey;

/// What the files say of one profile. Holds secrets, hence no `Debug`.
#[derive(Default)]
pub(super) struct Profile {
    pub(super) name: String,
    pub(super) region: Option<String>,
    pub(super) endpoint_url: Option<String>,
    settings: BTreeMap<String, String>,
}

type Sections = BTreeMap<String, BTreeMap<String, String>>;

impl Profile {
    /// The profile `asked`, or that of `AWS_PROFILE`, or `default`. One that was named must exist.
    pub(super) fn load(environment: &Environment, asked: Option<&str>) -> Result<Self> {
        let named = asked.or_else(|| environment.first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]));
        let name = named.unwrap_or("default");
        let config = read(environment, "AWS_CONFIG_FILE", ".aws/config")?;
        let shared = read(
            environment,
            "AWS_SHARED_CREDENTIALS_FILE",
            ".aws/credentials",
        )?;

        let in_config = config
            .get(&format!("profile {name}"))
            .or_else(|| (name == "default").then(|| config.get("default")).flatten());
        let in_shared = shared.get(name);
        if named.is_some() && in_config.is_none() && in_shared.is_none() {
            return Err(
                Error::invalid(format!("there is no AWS profile \"{name}\"")).with_hint(
                    "check AWS_PROFILE, AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE",
                ),
            );
        }
        let mut settings = in_config.cloned().unwrap_or_default();
        settings.extend(in_shared.cloned().unwrap_or_default());

        let services = settings
            .get("services")
            .and_then(|s| config.get(&format!("services {s}")));
        let endpoint_url = services
            .and_then(|services| services.get("s3.endpoint_url"))
            .or_else(|| settings.get("s3.endpoint_url"))
            .or_else(|| settings.get("endpoint_url"))
            .cloned();
        let ignored = environment.flag("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
        Ok(Profile {
            name: name.to_owned(),
            region: settings.get("region").cloned(),
            endpoint_url: endpoint_url.filter(|_| !ignored),
            settings,
        })
    }

    /// The profile's credentials, if it has any.
    pub(super) fn credentials(&self) -> Result<Option<Credentials>> {
        let get = |name: &str| {
            self.settings
                .get(name)
                .filter(|value| !value.is_empty())
                .cloned()
        };
        let unfit = |what: &str| {
            Err(Error::invalid(format!("the AWS profile \"{}\" {what}", self.name)).with_hint(
                "run `aws configure export-credentials` and use its output, or set it as the profile's credential_process",
            ))
        };
        match (get("aws_access_key_id"), get("aws_secret_access_key")) {
            (Some(key_id), Some(secret)) => {
                let token = get("aws_session_token");
                return Ok(Some(Credentials::Static {
                    key_id,
                    secret,
                    token,
                }));
            }
            (None, None) => {}
            _ => return unfit("has half a pair of keys"),
        }
        if let Some(command) = get("credential_process") {
            return match split_words(&command) {
                Some(words) if !words.is_empty() => Ok(Some(Credentials::Process(words))),
                _ => unfit("has a credential_process with unbalanced quotes"),
            };
        }
        if let (Some(token_file), Some(role)) = (get("web_identity_token_file"), get("role_arn")) {
            let mut role = vec![
                (AmazonS3ConfigKey::WebIdentityTokenFile, token_file),
                (AmazonS3ConfigKey::RoleArn, role),
            ];
            if let Some(name) = get("role_session_name") {
                role.push((AmazonS3ConfigKey::RoleSessionName, name));
            }
            return Ok(Some(Credentials::Role(role)));
        }
        if get("sso_session").or(get("sso_start_url")).is_some() {
            return unfit("logs in by SSO, which is not supported directly");
        }
        if get("role_arn").is_some() {
            return unfit("assumes a role, which is not supported directly");
        }
        Ok(None)
    }
}

fn read(environment: &Environment, variable: &str, default: &str) -> Result<Sections> {
    let named = environment.get(variable).map(PathBuf::from);
    let Some(path) = named.or_else(|| environment.home(default)) else {
        return Ok(Sections::new());
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(parse(&text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Sections::new()),
        Err(e) => Err(
            Error::invalid(format!("{} cannot be read: {e}", path.display()))
                .with_hint(format!("check {variable}")),
        ),
    }
}

/// Sections of settings; the setting `b` indented below `a` is `a.b`.
fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut section: Option<String> = None;
    let mut above = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            let name = name.0.split_whitespace().collect::<Vec<_>>().join(" ");
            sections.entry(name.clone()).or_default();
            section = Some(name);
            above.clear();
            continue;
        }
        let (Some(section), Some((name, value))) = (&section, trimmed.split_once('=')) else {
            continue;
        };
        // AWS's tools take " #" and " ;" for the start of a comment.
        let value = [" #", " ;", "\t#", "\t;"]
            .iter()
            .fold(value, |value, mark| {
                value.split_once(mark).map_or(value, |(value, _)| value)
            });
        let name = name.trim().to_ascii_lowercase();
        let indented = line.starts_with([' ', '\t']) && !above.is_empty();
        let name = if indented {
            format!("{above}.{name}")
        } else {
            above.clone_from(&name);
            name
        };
        let settings = sections.entry(section.clone()).or_default();
        settings.insert(name, value.trim().to_owned());
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(config: &str, shared: &str, asked: Option<&str>) -> Result<Profile> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".aws")).unwrap();
        std::fs::write(dir.path().join(".aws/config"), config).unwrap();
        std::fs::write(dir.path().join(".aws/credentials"), shared).unwrap();
        let environment = [("HOME", dir.path().to_str().unwrap())]
            .into_iter()
            .collect();
        Profile::load(&environment, asked)
    }

    #[test]
    fn both_files_are_read_and_the_credential_file_wins() {
        let config = "# comment\n[default]\nregion = d\n[ profile  p ]\nregion=r # here\n\
                      endpoint_url = http://127.0.0.1:1\naws_access_key_id = C\n[p]\nregion = no\n";
        let shared = "[p]\naws_access_key_id = S\naws_secret_access_key = a=b/c+d\n";
        let profile = load(config, shared, Some("p")).unwrap();
        assert_eq!(profile.region.as_deref(), Some("r"));
        assert_eq!(profile.endpoint_url.as_deref(), Some("http://127.0.0.1:1"));
        let expected = Credentials::Static {
            key_id: "S".to_owned(),
            secret: "a=b/c+d".to_owned(),
            token: None,
        };
        assert!(profile.credentials().unwrap() == Some(expected));
        assert_eq!(
            load(config, shared, None).unwrap().region.as_deref(),
            Some("d")
        );
    }

    #[test]
    fn service_sections_give_the_endpoint() {
        let config = "[profile p]\nservices = mine\nendpoint_url = http://127.0.0.1:1\n\
                      [services mine]\ndynamodb =\n  endpoint_url = http://127.0.0.1:2\ns3 =\n  \
                      endpoint_url = http://127.0.0.1:3\n";
        let profile = load(config, "", Some("p")).unwrap();
        assert_eq!(profile.endpoint_url.as_deref(), Some("http://127.0.0.1:3"));
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        for (config, word) in [
            ("[profile p]\nsso_session = x\n", "SSO"),
            (
                "[profile p]\nrole_arn = x\nsource_profile = y\n",
                "assumes a role",
            ),
            ("[profile p]\naws_access_key_id = x\n", "half a pair"),
            ("[profile p]\ncredential_process = a 'b\n", "unbalanced"),
        ] {
            let error = load(config, "", Some("p"))
                .unwrap()
                .credentials()
                .err()
                .unwrap();
            assert!(error.message().contains(word), "{error}");
        }
        assert!(load("", "", Some("p")).is_err());
        assert!(load("", "", None).unwrap().credentials().unwrap().is_none());
    }
}
