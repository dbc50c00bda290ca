//! Amazon S3 and servers that speak its protocol.
//!
//! Between the options and `object_store`'s S3 client. Credentials, first found wins: options; a
//! profile that was asked for by name; `AWS_ACCESS_KEY_ID`; the profile of `AWS_PROFILE` or
//! `default`; a web identity, container or instance role. Region and endpoint: options,
//! environment, profile; a region that nobody names is asked of AWS, or is `us-east-1` elsewhere.

mod process;
mod profile;
mod region;

use std::sync::Arc;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider};
use object_store::client::{CredentialProvider, StaticCredentialProvider};

use self::process::ProcessCredentials;
use self::profile::Profile;
use crate::environment::Environment;
use crate::location::{Location, StoreKind};
use crate::options::{Settings, wrong};
use crate::remote::{self, Backend, Connector, Endpoint, Handles, Spec, identity};
use crate::{Error, Result};

/// How to build the client of a bucket.
pub(crate) struct Recipe {
    bucket: String,
    bucket_url: String,
    builder: AmazonS3Builder,
    client_options: ClientOptions,
    credentials: Credentials,
    region: Option<String>,
    /// Host and port; with AWS's own endpoint it depends on the region.
    authority: Option<String>,
}

/// Where the credentials come from.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Credentials {
    Anonymous,
    Static {
        key_id: String,
        secret: String,
        token: Option<String>,
    },
    Process(Vec<String>),
    /// A web identity, or the role of the container or instance we run on.
    Role(Vec<(AmazonS3ConfigKey, String)>),
    /// There are none, and the instance's metadata service is not to be asked.
    None,
}

/// The recipe for the bucket of `location`.
pub(crate) fn spec(location: &Location, settings: &Settings) -> Result<Spec> {
    let environment = &settings.environment;
    let asked_profile = settings.get("profile");
    let profile = Profile::load(environment, asked_profile)?;

    let endpoint = settings
        .get("endpoint")
        .or_else(|| environment.first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]))
        .or(profile.endpoint_url.as_deref())
        .map(Endpoint::parse)
        .transpose()?;
    let region = settings
        .get("region")
        .or_else(|| environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]))
        .or(profile.region.as_deref())
        .or(endpoint.as_ref().map(|_| "us-east-1"))
        .map(str::to_owned);
    let request_payer = match settings.get("request_payer") {
        None => false,
        Some("requester") => true,
        Some(_) => settings
            .flag("request_payer")
            .map_err(|_| wrong("request_payer", "\"requester\""))?,
    };
    let unsigned_payload = settings.flag("unsigned_payload")?;
    let virtual_hosted = settings.flag("virtual_hosted")?;
    let credentials = credentials(settings, environment, &profile)?;

    let plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.plain);
    let client_options = remote::client_options(settings, plain)?;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&location.bucket)
        .with_retry(remote::no_retries())
        .with_client_options(client_options.clone())
        .with_unsigned_payload(unsigned_payload)
        .with_request_payer(request_payer)
        .with_virtual_hosted_style_request(virtual_hosted);
    if let Some(endpoint) = &endpoint {
        // With the bucket in the host name, `object_store` expects it in the endpoint already.
        builder = builder.with_endpoint(match virtual_hosted {
            true => endpoint
                .url
                .replacen("://", &format!("://{}.", location.bucket), 1),
            false => endpoint.url.clone(),
        });
    }
    let bucket_url = location.bucket_url();
    let origin = endpoint.as_ref().map(|endpoint| endpoint.origin.clone());
    Ok(Spec {
        kind: StoreKind::S3,
        bucket_url: bucket_url.clone(),
        origin: origin.unwrap_or_else(|| {
            format!(
                "https://s3.{}.amazonaws.com",
                region.as_deref().unwrap_or("auto")
            )
        }),
        identity: identity(&(
            &credentials,
            &region,
            (unsigned_payload, request_payer, virtual_hosted),
            settings.get("timeout"),
            settings.get("connect_timeout"),
        )),
        backend: Backend::S3(Box::new(Recipe {
            bucket: location.bucket.clone(),
            bucket_url,
            builder,
            client_options,
            credentials,
            region,
            authority: endpoint.map(|endpoint| endpoint.authority),
        })),
    })
}

fn credentials(
    settings: &Settings,
    environment: &Environment,
    profile: &Profile,
) -> Result<Credentials> {
    if settings.flag("anonymous")? || environment.flag("AWS_SKIP_SIGNATURE") {
        return Ok(Credentials::Anonymous);
    }
    let given = keys(
        settings.get("access_key_id"),
        settings.get("secret_access_key"),
        settings.get("session_token"),
        "the options access_key_id and secret_access_key",
    )?;
    if let Some(given) = given {
        return Ok(given);
    }
    if settings.get("profile").is_some() {
        return profile.credentials()?.ok_or_else(|| {
            Error::invalid(format!(
                "the AWS profile \"{}\" has no credentials",
                profile.name
            ))
        });
    }
    let given = keys(
        environment.get("AWS_ACCESS_KEY_ID"),
        environment.get("AWS_SECRET_ACCESS_KEY"),
        environment.get("AWS_SESSION_TOKEN"),
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    )?;
    if let Some(given) = given {
        return Ok(given);
    }
    if let Some(found) = profile.credentials()? {
        return Ok(found);
    }
    let role: Vec<_> = [
        (
            AmazonS3ConfigKey::WebIdentityTokenFile,
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        ),
        (AmazonS3ConfigKey::RoleArn, "AWS_ROLE_ARN"),
        (AmazonS3ConfigKey::RoleSessionName, "AWS_ROLE_SESSION_NAME"),
        (AmazonS3ConfigKey::StsEndpoint, "AWS_ENDPOINT_URL_STS"),
        (
            AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        ),
        (
            AmazonS3ConfigKey::ContainerCredentialsFullUri,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ),
        (
            AmazonS3ConfigKey::ContainerAuthorizationTokenFile,
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        ),
        (AmazonS3ConfigKey::MetadataEndpoint, "AWS_METADATA_ENDPOINT"),
    ]
    .into_iter()
    .filter_map(|(key, name)| Some((key, environment.get(name)?.to_owned())))
    .collect();
    if role.is_empty() && environment.flag("AWS_EC2_METADATA_DISABLED") {
        return Ok(Credentials::None);
    }
    Ok(Credentials::Role(role))
}

/// Static keys, which come in pairs.
fn keys(
    key_id: Option<&str>,
    secret: Option<&str>,
    token: Option<&str>,
    names: &str,
) -> Result<Option<Credentials>> {
    match (key_id, secret) {
        (None, None) => Ok(None),
        (Some(key_id), Some(secret)) => Ok(Some(Credentials::Static {
            key_id: key_id.to_owned(),
            secret: secret.to_owned(),
            token: token.map(str::to_owned),
        })),
        _ => {
            Err(Error::invalid(format!("of {names} only one is set")).with_hint("set both or none"))
        }
    }
}

impl Recipe {
    /// True if AWS has to be asked where the bucket is.
    pub(crate) fn needs_region(&self) -> bool {
        self.region.is_none()
    }

    /// Asks AWS which region the bucket is in.
    pub(crate) async fn discover_region(&self) -> Result<String> {
        let address = format!("https://{}.s3.amazonaws.com", self.bucket);
        region::discover(&self.bucket_url, &address, &self.client_options).await
    }

    /// Builds the client, in `region` if none is configured.
    pub(crate) fn build(&self, region: Option<&str>) -> Result<Handles> {
        let region = self.region.as_deref().or(region).unwrap_or("us-east-1");
        let authority = match &self.authority {
            Some(authority) => authority.clone(),
            None => format!("s3.{region}.amazonaws.com"),
        };
        let mut builder = self
            .builder
            .clone()
            .with_region(region)
            .with_http_connector(Connector::new(authority));
        builder = match &self.credentials {
            Credentials::Anonymous => builder.with_skip_signature(true),
            Credentials::Static {
                key_id,
                secret,
                token,
            } => builder.with_credentials(Arc::new(StaticCredentialProvider::new(AwsCredential {
                key_id: key_id.clone(),
                secret_key: secret.clone(),
                token: token.clone(),
            }))),
            Credentials::Process(command) => {
                builder.with_credentials(Arc::new(ProcessCredentials::new(command.clone())))
            }
            Credentials::Role(settings) => {
                settings.iter().fold(builder, |builder, (key, value)| {
                    builder.with_config(*key, value)
                })
            }
            Credentials::None => {
                builder.with_credentials(Arc::new(Nobody) as AwsCredentialProvider)
            }
        };
        let store = builder
            .build()
            .map_err(|e| remote::not_built(&self.bucket_url, &e))?;
        Ok(Handles::paged(store))
    }
}

/// The provider where there are no credentials.
#[derive(Debug)]
struct Nobody;

#[async_trait]
impl CredentialProvider for Nobody {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let e = Error::denied("no AWS credentials were found").with_hint(
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or add ?anonymous=true",
        );
        Err(object_store::Error::Generic {
            store: "S3",
            source: Box::new(e),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::location::parse;

    fn recipe(url: &str, environment: &[(&str, &str)]) -> Result<(Recipe, Spec)> {
        let environment = environment.iter().copied().collect();
        let location = parse(url)?;
        let settings = Settings::resolve(&location, &Options::new().with_environment(environment))?;
        let mut spec = spec(&location, &settings)?;
        let hollow = crate::web::Recipe::hollow();
        match std::mem::replace(&mut spec.backend, Backend::Web(Box::new(hollow))) {
            Backend::S3(recipe) => Ok((*recipe, spec)),
            _ => panic!("not an S3 recipe"),
        }
    }

    #[test]
    fn region_and_endpoint_have_their_precedence() {
        for (url, environment, region, origin) in [
            ("s3://b", &[][..], None, "https://s3.auto.amazonaws.com"),
            (
                "s3://b?region=u",
                &[("AWS_REGION", "e")],
                Some("u"),
                "https://s3.u.amazonaws.com",
            ),
            (
                "s3://b",
                &[("AWS_DEFAULT_REGION", "e")],
                Some("e"),
                "https://s3.e.amazonaws.com",
            ),
            (
                "s3://b",
                &[("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/")],
                Some("us-east-1"),
                "http://127.0.0.1:9000",
            ),
            (
                "s3://b?endpoint=http://127.0.0.1:9001",
                &[
                    ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9000"),
                    ("AWS_REGION", "e"),
                ],
                Some("e"),
                "http://127.0.0.1:9001",
            ),
        ] {
            let (recipe, spec) = recipe(url, environment).unwrap();
            assert_eq!(recipe.region.as_deref(), region, "{url}");
            assert_eq!(spec.origin, origin, "{url}");
            assert_eq!(recipe.needs_region(), region.is_none());
        }
        let error = recipe("s3://b?endpoint=localhost:9000", &[]).err().unwrap();
        assert!(error.message().contains("http://127.0.0.1:9000"), "{error}");
    }

    #[test]
    fn credentials_have_their_precedence() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("credentials");
        std::fs::write(
            &file,
            "[default]\naws_access_key_id=D\naws_secret_access_key=s\n\
             [p]\naws_access_key_id=P\naws_secret_access_key=s\naws_session_token=t\n",
        )
        .unwrap();
        let file = ("AWS_SHARED_CREDENTIALS_FILE", file.to_str().unwrap());
        let keys = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let found = |url: &str, environment: &[(&str, &str)]| match recipe(url, environment)
            .unwrap()
            .0
            .credentials
        {
            Credentials::Static { key_id, token, .. } => {
                format!("{key_id}{}", token.unwrap_or_default())
            }
            Credentials::Anonymous => "anonymous".to_owned(),
            Credentials::None => "none".to_owned(),
            Credentials::Role(parts) => format!("role {}", parts.len()),
            Credentials::Process(_) => "process".to_owned(),
        };
        assert_eq!(found("s3://b", &[file]), "D");
        assert_eq!(found("s3://b", &[file, ("AWS_PROFILE", "p")]), "Pt");
        assert_eq!(
            found("s3://b", &[file, keys[0], keys[1], ("AWS_PROFILE", "p")]),
            "E"
        );
        assert_eq!(found("s3://b?profile=p", &[file, keys[0], keys[1]]), "Pt");
        assert_eq!(found("s3://b?anonymous=true", &keys), "anonymous");
        assert_eq!(
            found("s3://b", &[("AWS_EC2_METADATA_DISABLED", "true")]),
            "none"
        );
        assert_eq!(found("s3://b", &[("AWS_ROLE_ARN", "arn")]), "role 1");
        assert!(recipe("s3://b", &keys[..1]).is_err());
        assert!(recipe("s3://b?profile=absent", &[file]).is_err());
        assert!(recipe("s3://b?request_payer=me", &[]).is_err());
        recipe("s3://b?request_payer=requester", &[]).unwrap();
    }

    #[test]
    fn different_credentials_do_not_share_a_client() {
        let with = |key| {
            let environment = [("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", "s")];
            recipe("s3://b?region=r", &environment).unwrap().1.identity
        };
        assert_eq!(with("a"), with("a"));
        assert_ne!(with("a"), with("b"));
    }
}
