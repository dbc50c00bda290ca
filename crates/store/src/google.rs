//! Google Cloud Storage.
//!
//! Between the options and `object_store`'s Google client, which speaks the XML API. Credentials:
//! a service-account file, application default credentials, or the instance's own. A
//! service-account file may name another server (`gcs_base_url`) and say that it wants no tokens
//! (`disable_oauth`), as emulators do; `STORAGE_EMULATOR_HOST` says both.

use std::path::Path;
use std::sync::Arc;

use object_store::client::StaticCredentialProvider;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use serde::Deserialize;

use crate::location::{Location, StoreKind};
use crate::options::Settings;
use crate::remote::{self, Backend, Endpoint, Handles, Spec, identity};
use crate::{Error, Result};

const GOOGLE: &str = "https://storage.googleapis.com";

/// How to build the client of a bucket.
pub(crate) struct Recipe {
    builder: GoogleCloudStorageBuilder,
    authority: String,
    bucket_url: String,
}

/// Where the credentials come from.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Credentials {
    Anonymous,
    /// A service-account file's content.
    ServiceAccount(String),
    /// Another kind of credential file.
    ApplicationDefault(String),
    /// Whatever the machine we run on has.
    Machine,
}

/// The parts of a credential file that decide how to use it.
#[derive(Deserialize)]
struct CredentialFile {
    #[serde(rename = "type")]
    kind: Option<String>,
    gcs_base_url: Option<String>,
    private_key: Option<serde::de::IgnoredAny>,
}

/// The recipe for the bucket of `location`.
pub(crate) fn spec(location: &Location, settings: &Settings) -> Result<Spec> {
    let environment = &settings.environment;
    let emulator = environment.get("STORAGE_EMULATOR_HOST").map(|host| {
        if host.contains("://") {
            host.to_owned()
        } else {
            format!("http://{host}")
        }
    });
    let (mut credentials, base_url) = credentials(settings)?;
    if emulator.is_some() && credentials == Credentials::Machine {
        credentials = Credentials::Anonymous;
    }
    let address = settings
        .get("endpoint")
        .map(str::to_owned)
        .or(emulator)
        .or(base_url)
        .unwrap_or_else(|| GOOGLE.to_owned());
    let endpoint = Endpoint::parse(&address)?;

    let builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&location.bucket)
        .with_base_url(&endpoint.url)
        .with_retry(remote::no_retries())
        .with_client_options(remote::client_options(settings, endpoint.plain)?);
    let builder = match &credentials {
        // Writes ask for a token even so; give them an empty one.
        Credentials::Anonymous => builder.with_skip_signature(true).with_credentials(Arc::new(
            StaticCredentialProvider::new(GcpCredential {
                bearer: String::new(),
            }),
        )),
        Credentials::ServiceAccount(text) => builder.with_service_account_key(text),
        Credentials::ApplicationDefault(path) => builder.with_application_credentials(path),
        Credentials::Machine => builder,
    };
    let bucket_url = location.bucket_url();
    Ok(Spec {
        kind: StoreKind::Google,
        bucket_url: bucket_url.clone(),
        origin: endpoint.origin.clone(),
        identity: identity(&(
            &credentials,
            &endpoint.url,
            settings.get("timeout"),
            settings.get("connect_timeout"),
        )),
        backend: Backend::Google(Box::new(Recipe {
            builder,
            authority: endpoint.authority,
            bucket_url,
        })),
    })
}

fn credentials(settings: &Settings) -> Result<(Credentials, Option<String>)> {
    let environment = &settings.environment;
    if settings.flag("anonymous")? || environment.flag("GOOGLE_SKIP_SIGNATURE") {
        return Ok((Credentials::Anonymous, None));
    }
    if let Some(text) = environment
        .get("GOOGLE_SERVICE_ACCOUNT_KEY")
        .filter(|_| settings.get("service_account").is_none())
    {
        return classify(text.to_owned(), "GOOGLE_SERVICE_ACCOUNT_KEY", None);
    }
    let path = settings.get("service_account").or_else(|| {
        environment.first(&[
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
            "SERVICE_ACCOUNT",
        ])
    });
    let Some(path) = path else {
        return Ok((Credentials::Machine, None));
    };
    let text = std::fs::read_to_string(Path::new(path)).map_err(|e| {
        Error::invalid(format!(
            "the Google credential file {path} cannot be read: {e}"
        ))
        .with_hint("check GOOGLE_APPLICATION_CREDENTIALS")
    })?;
    classify(text, path, Some(path))
}

fn classify(text: String, name: &str, path: Option<&str>) -> Result<(Credentials, Option<String>)> {
    // The parser's message could quote the key.
    let file: CredentialFile = serde_json::from_str(&text)
        .map_err(|_| Error::invalid(format!("{name} is not a Google credential file")))?;
    let service_account = file
        .kind
        .as_deref()
        .map_or(file.private_key.is_some(), |kind| kind == "service_account");
    Ok(match path {
        Some(path) if !service_account => (
            Credentials::ApplicationDefault(path.to_owned()),
            file.gcs_base_url,
        ),
        _ => (Credentials::ServiceAccount(text), file.gcs_base_url),
    })
}

impl Recipe {
    pub(crate) fn build(&self) -> Result<Handles> {
        let builder = self
            .builder
            .clone()
            .with_http_connector(remote::Connector::new(self.authority.clone()));
        let store = builder
            .build()
            .map_err(|e| remote::not_built(&self.bucket_url, &e))?;
        Ok(Handles::paged(store))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::location::parse;

    fn built(url: &str, environment: &[(&str, &str)]) -> Result<String> {
        let location = parse(url)?;
        let environment = environment.iter().copied().collect();
        let settings = Settings::resolve(&location, &Options::new().with_environment(environment))?;
        let spec = spec(&location, &settings)?;
        let Backend::Google(recipe) = spec.backend else {
            panic!("not a Google recipe")
        };
        recipe.build()?;
        Ok(spec.origin)
    }

    #[test]
    fn the_server_comes_from_the_usual_places() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sa.json");
        std::fs::write(
            &file,
            r#"{"gcs_base_url":"http://127.0.0.1:4443","disable_oauth":true,"client_email":"",
                "private_key":"","private_key_id":""}"#,
        )
        .unwrap();
        let file = ("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap());
        let emulator = ("STORAGE_EMULATOR_HOST", "127.0.0.1:4444");
        for (url, environment, origin) in [
            ("gs://b?anonymous=true", vec![], GOOGLE),
            ("gs://b", vec![file], "http://127.0.0.1:4443"),
            ("gs://b", vec![emulator], "http://127.0.0.1:4444"),
            (
                "gs://b?endpoint=http://127.0.0.1:4445",
                vec![file, emulator],
                "http://127.0.0.1:4445",
            ),
        ] {
            assert_eq!(built(url, &environment).unwrap(), origin, "{url}");
        }
    }

    #[test]
    fn broken_credential_files_are_named_without_their_content() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sa.json");
        std::fs::write(&file, r#"{"private_key": hunter2"#).unwrap();
        let file = file.to_str().unwrap();
        for environment in [
            ("GOOGLE_APPLICATION_CREDENTIALS", file),
            ("GOOGLE_SERVICE_ACCOUNT", "no/such"),
        ] {
            let error = built("gs://b", &[environment]).unwrap_err();
            assert!(error.message().contains(environment.1), "{error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
