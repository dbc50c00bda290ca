//! Stores behind a network, by way of the `object_store` crate.
//!
//! - [`connection`] is the HTTP client, which stays on the server it was pointed at;
//! - [`transport`] sees every HTTP exchange, because `object_store`'s errors do not show enough;
//! - [`failure`] turns those exchanges into our errors;
//! - [`client`] keeps one client per endpoint, bucket and identity in each process;
//! - [`bucket`] is the [`crate::Store`] on top, and [`read`] its reads, with [`whole`] for servers that
//!   know no byte ranges and [`version`] for those that know no ETags.
//!
//! `object_store`'s own retries are off: [`crate::Retry`] does them, so that each attempt is
//! metered and limited.

mod bucket;
mod client;
mod connection;
mod failure;
mod read;
mod transport;
mod version;
mod whole;

pub(crate) use bucket::Bucket;
pub(crate) use client::{Backend, Handles, Spec, identity, limit};
pub(crate) use connection::client as http_client;
pub(crate) use failure::scrub;
pub(crate) use transport::Connector;

use std::time::Duration;

use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use url::Url;

use crate::options::{Settings, wrong};
use crate::{Error, Result};

/// Where requests go.
pub(crate) struct Endpoint {
    /// The address without trailing slash.
    pub(crate) url: String,
    /// `scheme://host:port`.
    pub(crate) origin: String,
    /// Host and port, by which the transport tells requests for data from those for credentials.
    pub(crate) authority: String,
    /// Plain HTTP was asked for.
    pub(crate) plain: bool,
}

impl Endpoint {
    /// Checks an address that a user gave.
    pub(crate) fn parse(address: &str) -> Result<Self> {
        let address = address.trim_end_matches('/');
        let parsed = Url::parse(address).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.host_str().is_some()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
        });
        let Some(parsed) = parsed else {
            return Err(wrong(
                "endpoint",
                "an address such as http://127.0.0.1:9000",
            ));
        };
        let origin = parsed.origin().ascii_serialization();
        let authority = origin
            .split_once("://")
            .map_or("", |(_, host)| host)
            .to_owned();
        Ok(Endpoint {
            url: address.to_owned(),
            authority,
            plain: parsed.scheme() == "http",
            origin,
        })
    }
}

/// The connection settings that every remote back end shares.
pub(crate) fn client_options(settings: &Settings, plain: bool) -> Result<ClientOptions> {
    let timeout = settings.duration("timeout", Duration::from_secs(60))?;
    let connect = settings.duration("connect_timeout", Duration::from_secs(5))?;
    // HTTP/1 throughout: one connection per request in flight beats HTTP/2's shared one for bulk
    // reads. The pool keeps every connection that the limiter may use; TCP_NODELAY is reqwest's
    // default. Servers close idle connections after 20 s or more.
    Ok(ClientOptions::new()
        .with_http1_only()
        .with_timeout(timeout)
        .with_connect_timeout(connect)
        .with_pool_idle_timeout(Duration::from_secs(20))
        .with_pool_max_idle_per_host(concurrency(settings)?)
        .with_allow_http(plain)
        .with_user_agent(http::HeaderValue::from_static(concat!(
            "hyperslab/",
            env!("CARGO_PKG_VERSION")
        ))))
}

/// The most requests in flight per endpoint.
pub(crate) fn concurrency(settings: &Settings) -> Result<usize> {
    match usize::try_from(settings.number("concurrency", 256)?) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(wrong("concurrency", "a whole number above 0")),
    }
}

/// `object_store` must not repeat requests behind our back.
pub(crate) fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        backoff: BackoffConfig::default(),
        ..RetryConfig::default()
    }
}

/// The error for a client that could not be built.
pub(crate) fn not_built(bucket_url: &str, e: &object_store::Error) -> Error {
    Error::invalid(format!(
        "{bucket_url} cannot be opened: {}",
        scrub(&e.to_string())
    ))
}
