//! Azure Blob Storage.
//!
//! Between the options and `object_store`'s Azure client. The account comes from the URL, the
//! options, a connection string or the environment; credentials from a key, a SAS token, a service
//! principal, a federated token or a managed identity, in that order. The emulator Azurite is
//! an endpoint like any other, with the account as the first component of its path.

use std::collections::BTreeMap;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};

use crate::location::{Location, StoreKind};
use crate::options::Settings;
use crate::remote::{self, Backend, Endpoint, Handles, Spec, identity};
use crate::{Error, Result};

/// Azurite's well-known account and key, which Microsoft publishes for every installation.
const EMULATOR_ACCOUNT: &str = "devstoreaccount1";
const EMULATOR_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// How to build the client of a container.
pub(crate) struct Recipe {
    builder: MicrosoftAzureBuilder,
    authority: String,
    bucket_url: String,
}

/// The recipe for the container of `location`.
pub(crate) fn spec(location: &Location, settings: &Settings) -> Result<Spec> {
    let environment = &settings.environment;
    let connection = settings
        .get("connection_string")
        .or_else(|| environment.get("AZURE_STORAGE_CONNECTION_STRING"))
        .map(connection_string)
        .transpose()?
        .unwrap_or_default();
    let part = |name: &str| connection.get(name).map(String::as_str);
    let emulator = environment.flag("AZURE_STORAGE_USE_EMULATOR")
        || environment.get("AZURITE_BLOB_STORAGE_URL").is_some()
        || part("usedevelopmentstorage") == Some("true");

    let account = location
        .account
        .as_deref()
        .or_else(|| settings.get("account"))
        .or_else(|| part("accountname"))
        .or_else(|| environment.first(&["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"]))
        .or(emulator.then_some(EMULATOR_ACCOUNT))
        .ok_or_else(|| {
            Error::invalid(format!("{} does not say which Azure account it is in", location.url))
                .with_hint("set AZURE_STORAGE_ACCOUNT, or write abfs://container@account.dfs.core.windows.net/prefix")
        })?;
    let address = settings
        .get("endpoint")
        .or_else(|| part("blobendpoint"))
        .or_else(|| environment.first(&["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"]))
        .map(str::to_owned);
    let address = match address {
        Some(address) => address,
        None if emulator => {
            let base = environment
                .get("AZURITE_BLOB_STORAGE_URL")
                .unwrap_or("http://127.0.0.1:10000");
            format!("{}/{account}", base.trim_end_matches('/'))
        }
        None => {
            let suffix = part("endpointsuffix").unwrap_or("core.windows.net");
            format!("https://{account}.blob.{suffix}")
        }
    };
    let endpoint = Endpoint::parse(&address)?;

    let credentials = credentials(settings, &connection, emulator)?;
    let builder = credentials
        .iter()
        .fold(MicrosoftAzureBuilder::new(), |builder, (key, value)| {
            builder.with_config(*key, value)
        })
        .with_account(account)
        .with_container_name(&location.bucket)
        .with_endpoint(endpoint.url.clone())
        .with_retry(remote::no_retries())
        .with_client_options(remote::client_options(settings, endpoint.plain)?);
    let bucket_url = location.bucket_url();
    Ok(Spec {
        kind: StoreKind::Azure,
        bucket_url: bucket_url.clone(),
        origin: endpoint.origin.clone(),
        identity: identity(&(
            &credentials,
            account,
            &endpoint.url,
            settings.get("timeout"),
            settings.get("connect_timeout"),
        )),
        backend: Backend::Azure(Box::new(Recipe {
            builder,
            authority: endpoint.authority,
            bucket_url,
        })),
    })
}

type Parts = BTreeMap<String, String>;

fn credentials(
    settings: &Settings,
    connection: &Parts,
    emulator: bool,
) -> Result<Vec<(AzureConfigKey, String)>> {
    let environment = &settings.environment;
    if settings.flag("anonymous")? || environment.flag("AZURE_SKIP_SIGNATURE") {
        return Ok(vec![(AzureConfigKey::SkipSignature, "true".to_owned())]);
    }
    let key = settings
        .get("account_key")
        .or_else(|| connection.get("accountkey").map(String::as_str))
        .or_else(|| {
            environment.first(&[
                "AZURE_STORAGE_KEY",
                "AZURE_STORAGE_ACCOUNT_KEY",
                "AZURE_STORAGE_ACCESS_KEY",
            ])
        });
    let sas = settings
        .get("sas_token")
        .or_else(|| connection.get("sharedaccesssignature").map(String::as_str))
        .or_else(|| environment.first(&["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"]));
    // What was said in the options wins over the environment, whatever its form.
    let explicit_sas = settings.get("sas_token").is_some() && settings.get("account_key").is_none();
    match (key, sas) {
        (Some(key), None) => return Ok(vec![(AzureConfigKey::AccessKey, key.to_owned())]),
        (Some(key), Some(_)) if !explicit_sas => {
            return Ok(vec![(AzureConfigKey::AccessKey, key.to_owned())]);
        }
        (_, Some(sas)) => return Ok(vec![(AzureConfigKey::SasKey, sas.to_owned())]),
        (None, None) if emulator => {
            return Ok(vec![(AzureConfigKey::AccessKey, EMULATOR_KEY.to_owned())]);
        }
        (None, None) => {}
    }
    let named = [
        (AzureConfigKey::Token, "AZURE_STORAGE_TOKEN"),
        (AzureConfigKey::ClientId, "AZURE_CLIENT_ID"),
        (AzureConfigKey::ClientSecret, "AZURE_CLIENT_SECRET"),
        (AzureConfigKey::AuthorityId, "AZURE_TENANT_ID"),
        (AzureConfigKey::AuthorityHost, "AZURE_AUTHORITY_HOST"),
        (
            AzureConfigKey::FederatedTokenFile,
            "AZURE_FEDERATED_TOKEN_FILE",
        ),
        (AzureConfigKey::MsiEndpoint, "IDENTITY_ENDPOINT"),
        (AzureConfigKey::ObjectId, "AZURE_OBJECT_ID"),
        (AzureConfigKey::MsiResourceId, "AZURE_MSI_RESOURCE_ID"),
        (AzureConfigKey::UseAzureCli, "AZURE_USE_AZURE_CLI"),
    ];
    Ok(named
        .into_iter()
        .filter_map(|(key, name)| Some((key, environment.get(name)?.to_owned())))
        .collect())
}

/// The parts of a connection string, with names in lower case.
fn connection_string(text: &str) -> Result<Parts> {
    let mut parts = Parts::new();
    for part in text
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let Some((name, value)) = part.split_once('=') else {
            return Err(
                Error::invalid("the Azure connection string has a part without \"=\"").with_hint(
                    "copy the connection string from the account's \"Access keys\" page",
                ),
            );
        };
        parts.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
    Ok(parts)
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

    fn built(url: &str, environment: &[(&str, &str)]) -> Result<(MicrosoftAzureBuilder, String)> {
        let location = parse(url)?;
        let environment = environment.iter().copied().collect();
        let settings = Settings::resolve(&location, &Options::new().with_environment(environment))?;
        let spec = spec(&location, &settings)?;
        let Backend::Azure(recipe) = spec.backend else {
            panic!("not an Azure recipe")
        };
        recipe.build()?;
        Ok((recipe.builder, spec.origin))
    }

    #[test]
    fn accounts_endpoints_and_keys_come_from_the_usual_places() {
        let azurite = "http://127.0.0.1:10001/devstoreaccount1";
        let connection = format!("AccountName=x;AccountKey=a2V5;BlobEndpoint={azurite};");
        let key = ("AZURE_STORAGE_KEY", "a2V5");
        for (url, environment, account, endpoint, access_key) in [
            (
                "abfs://c@acc.dfs.core.windows.net/p",
                vec![key],
                "acc",
                "https://acc.blob.core.windows.net",
                Some("a2V5"),
            ),
            (
                "az://c",
                vec![key, ("AZURE_STORAGE_ACCOUNT", "acc")],
                "acc",
                "https://acc.blob.core.windows.net",
                Some("a2V5"),
            ),
            (
                "az://c",
                vec![("AZURE_STORAGE_CONNECTION_STRING", connection.as_str())],
                "x",
                azurite,
                Some("a2V5"),
            ),
            (
                "az://c",
                vec![("AZURITE_BLOB_STORAGE_URL", "http://127.0.0.1:10001")],
                "devstoreaccount1",
                azurite,
                Some(EMULATOR_KEY),
            ),
            (
                "az://c?anonymous=true&account=acc",
                vec![key],
                "acc",
                "https://acc.blob.core.windows.net",
                None,
            ),
        ] {
            let (builder, _) = built(url, &environment).unwrap();
            let get = |key| builder.get_config_value(&key);
            assert_eq!(
                get(AzureConfigKey::AccountName).as_deref(),
                Some(account),
                "{url}"
            );
            assert_eq!(
                get(AzureConfigKey::Endpoint).as_deref(),
                Some(endpoint),
                "{url}"
            );
            assert_eq!(
                get(AzureConfigKey::AccessKey).as_deref(),
                access_key,
                "{url}"
            );
        }
    }

    #[test]
    fn what_is_missing_or_broken_is_said() {
        let error = built("az://c", &[]).err().unwrap();
        assert!(
            error.to_string().contains("AZURE_STORAGE_ACCOUNT"),
            "{error}"
        );
        let error = built("az://c", &[("AZURE_STORAGE_CONNECTION_STRING", "hunter2")])
            .err()
            .unwrap();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
