//! Plain web servers, read only.
//!
//! A query string of the URL that is not ours stays with every request, so that signed addresses
//! work; it never shows in [`crate::Store::url`] or in an error.

use object_store::ClientOptions;
use object_store::http::HttpBuilder;
use url::Url;

use crate::location::{Location, StoreKind};
use crate::options::Settings;
use crate::remote::{self, Backend, Endpoint, Handles, Spec, identity};
use crate::{Error, Result};

/// How to build the client of a web server.
pub(crate) struct Recipe {
    /// Address of the server's root, with the foreign query.
    base: String,
    client_options: ClientOptions,
    authority: String,
    origin: String,
}

/// The recipe for the server of `location`.
pub(crate) fn spec(location: &Location, settings: &Settings) -> Result<Spec> {
    let endpoint = Endpoint::parse(&location.bucket)?;
    let mut base = Url::parse(&endpoint.url)
        .map_err(|_| Error::invalid(format!("\"{}\" is not a web address", location.url)))?;
    if !settings.foreign_query.is_empty() {
        base.query_pairs_mut().extend_pairs(&settings.foreign_query);
    }
    Ok(Spec {
        kind: StoreKind::Http,
        bucket_url: endpoint.origin.clone(),
        origin: endpoint.origin.clone(),
        identity: identity(&(
            base.as_str(),
            settings.get("timeout"),
            settings.get("connect_timeout"),
        )),
        backend: Backend::Web(Box::new(Recipe {
            base: base.into(),
            client_options: remote::client_options(settings, endpoint.plain)?,
            authority: endpoint.authority,
            origin: endpoint.origin,
        })),
    })
}

impl Recipe {
    pub(crate) fn build(&self) -> Result<Handles> {
        let store = HttpBuilder::new()
            .with_url(&self.base)
            .with_retry(remote::no_retries())
            .with_client_options(self.client_options.clone())
            .with_http_connector(remote::Connector::new(self.authority.clone()))
            .build()
            .map_err(|e| remote::not_built(&self.origin, &e))?;
        Ok(Handles {
            objects: std::sync::Arc::new(store),
            pages: None,
        })
    }

    /// A recipe for nothing, to stand in for one that a test takes out of its place.
    #[cfg(test)]
    pub(crate) fn hollow() -> Self {
        Recipe {
            base: String::new(),
            client_options: ClientOptions::new(),
            authority: String::new(),
            origin: String::new(),
        }
    }
}
