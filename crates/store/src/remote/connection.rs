//! The HTTP client behind every remote store.
//!
//! Below the transport, which watches its exchanges. `object_store` would build a client of its
//! own, but one that follows redirects to wherever they lead.
//!
//! Invariant: a request goes to the server that it was made for. A redirect to another host or port
//! is not followed but handed back as the answer that it is, so that neither a client nor a cloud
//! function can be led elsewhere by a server that it may talk to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use object_store::{ClientConfigKey, ClientOptions};
use rand::seq::SliceRandom;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, Url};

/// Redirects of one request that are followed on its own server.
const MOST_HOPS: usize = 5;

/// A client with these options.
pub(crate) fn client(options: &ClientOptions) -> object_store::Result<Client> {
    let text = |key: ClientConfigKey| options.get_config_value(&key);
    let says = |key: ClientConfigKey| text(key).is_some_and(|value| value == "true");
    let mut builder = Client::builder()
        .redirect(Policy::custom(stay))
        .https_only(!says(ClientConfigKey::AllowHttp))
        // Bodies are taken as they are stored: a decoded one would not have the promised length.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate();
    if let Some(agent) = text(ClientConfigKey::UserAgent) {
        builder = builder.user_agent(agent);
    }
    if let Some(time) = duration(text(ClientConfigKey::Timeout))? {
        builder = builder.timeout(time);
    }
    if let Some(time) = duration(text(ClientConfigKey::ConnectTimeout))? {
        builder = builder.connect_timeout(time);
    }
    if let Some(time) = duration(text(ClientConfigKey::PoolIdleTimeout))? {
        builder = builder.pool_idle_timeout(time);
    }
    if let Some(most) = text(ClientConfigKey::PoolMaxIdlePerHost) {
        builder = builder.pool_max_idle_per_host(most.parse::<usize>().map_err(unusable)?);
    }
    if says(ClientConfigKey::Http1Only) {
        builder = builder.http1_only();
    }
    if says(ClientConfigKey::RandomizeAddresses) {
        builder = builder.dns_resolver(Arc::new(Shuffled));
    }
    builder.build().map_err(unusable)
}

fn duration(text: Option<String>) -> object_store::Result<Option<Duration>> {
    text.map(|text| humantime::parse_duration(&text).map_err(unusable))
        .transpose()
}

fn unusable(e: impl std::error::Error + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic {
        store: "HTTP",
        source: Box::new(e),
    }
}

/// Follows a redirect on the same server and hands any other one back.
fn stay(attempt: Attempt<'_>) -> Action {
    let from = attempt.previous().first();
    let same = from.is_some_and(|from| same_server(from, attempt.url()));
    match same && attempt.previous().len() <= MOST_HOPS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}

/// True if both URLs lead to the same server; a web server may also ask for encryption.
fn same_server(from: &Url, to: &Url) -> bool {
    if from.host() != to.host() {
        return false;
    }
    let encrypted = (from.scheme(), to.scheme()) == ("http", "https");
    let usual_ports = from.port().is_none() && to.port().is_none();
    let same_port = from.port_or_known_default() == to.port_or_known_default();
    (from.scheme() == to.scheme() && same_port) || (encrypted && usual_ports)
}

/// Takes the addresses of a name in random order: clouds name many servers, and all of them should
/// get a share of the connections.
struct Shuffled;

impl Resolve for Shuffled {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // The port is the URL's; 0 stands for that.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let mut addresses: Vec<SocketAddr> = found.collect();
            addresses.shuffle(&mut rand::rng());
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_server_is_the_same() {
        for (from, to, expected) in [
            ("http://h:9/a", "http://h:9/b?c", true),
            ("https://h/a", "https://h:443/b", true),
            ("http://h/a", "https://h/a", true),
            ("http://h:9/a", "http://h:8/a", false),
            ("http://h:80/a", "https://h:9/a", false),
            ("https://h/a", "http://h/a", false),
            ("https://h/a", "https://x.h/a", false),
            ("http://127.0.0.1/a", "http://169.254.169.254/a", false),
            ("http://h/a", "http://h@other/a", false),
        ] {
            let parse = |text: &str| Url::parse(text).unwrap();
            assert_eq!(
                same_server(&parse(from), &parse(to)),
                expected,
                "{from} {to}"
            );
        }
    }

    #[test]
    fn the_options_of_a_store_make_a_client() {
        let options = ClientOptions::new()
            .with_http1_only()
            .with_timeout(Duration::from_millis(61_500))
            .with_connect_timeout(Duration::from_secs(5))
            .with_pool_idle_timeout(Duration::from_secs(20))
            .with_pool_max_idle_per_host(7)
            .with_user_agent(http::HeaderValue::from_static("hyperslab/test"));
        client(&options).unwrap();
        let wrong = options.with_config(ClientConfigKey::Timeout, "soon");
        assert!(client(&wrong).is_err());
    }

    #[tokio::test]
    async fn names_resolve_to_addresses() {
        let found = Shuffled.resolve("localhost".parse().unwrap()).await;
        assert!(found.unwrap().count() > 0);
    }
}
