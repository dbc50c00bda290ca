//! Which server a store talks to, whether its name resolves and whether it accepts connections.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use hyperslab::store::{Environment, StoreKind};
use url::Url;

use super::Step;

const NAME: &str = "endpoint";
const PATIENCE: Duration = Duration::from_secs(5);

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) encrypted: bool,
    /// From where it is known.
    source: String,
}

/// The server that the URL, the environment or the cloud's custom names; `None` for local stores
/// and where only the store itself knows.
pub(crate) fn find(kind: StoreKind, url: &str, environment: &Environment) -> Option<Endpoint> {
    let option = |wanted: &str| {
        let query = url.split_once('?')?.1;
        let found =
            url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == wanted)?;
        Some(found.1.into_owned())
    };
    let variable = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| Some((environment.get(name)?.to_owned(), (*name).to_owned())))
    };
    let variables: &[&str] = match kind {
        StoreKind::S3 => &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
        StoreKind::Azure => &["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"],
        StoreKind::Google => &[],
        StoreKind::Http => {
            return parse(url.split_once('?').map_or(url, |(base, _)| base), "the URL");
        }
        StoreKind::File | StoreKind::Memory => return None,
    };
    if let Some(endpoint) = option("endpoint") {
        return parse(&endpoint, "the URL");
    }
    if let Some((endpoint, name)) = variable(variables) {
        return parse(&endpoint, &name);
    }
    let usual = match kind {
        StoreKind::S3 => {
            let region = option("region").or_else(|| {
                variable(&["AWS_REGION", "AWS_DEFAULT_REGION"]).map(|(region, _)| region)
            });
            format!(
                "https://s3.{}.amazonaws.com",
                region.as_deref().unwrap_or("us-east-1")
            )
        }
        StoreKind::Azure => {
            let account = option("account").or_else(|| {
                variable(&["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"])
                    .map(|(name, _)| name)
            });
            format!("https://{}.blob.core.windows.net", account?)
        }
        _ => "https://storage.googleapis.com".to_owned(),
    };
    parse(&usual, "the cloud's usual address")
}

fn parse(url: &str, source: &str) -> Option<Endpoint> {
    let parsed = Url::parse(url).ok()?;
    Some(Endpoint {
        host: parsed.host_str()?.trim_matches(['[', ']']).to_owned(),
        port: parsed.port_or_known_default()?,
        encrypted: parsed.scheme() == "https",
        source: source.to_owned(),
    })
}

/// Resolves the name and connects. The address is given back for the checks that follow.
pub(crate) async fn check(endpoint: Option<&Endpoint>) -> (Step, Option<SocketAddr>) {
    let Some(endpoint) = endpoint.cloned() else {
        return (
            Step::skipped(
                NAME,
                "the store is on this machine, or only it knows its server",
            ),
            None,
        );
    };
    let shown = format!(
        "{}:{} (from {})",
        endpoint.host, endpoint.port, endpoint.source
    );
    let work = tokio::task::spawn_blocking(move || connect(&endpoint.host, endpoint.port));
    match tokio::time::timeout(2 * PATIENCE, work).await {
        Ok(Ok(Ok((address, took)))) => {
            let millis = took.as_secs_f64() * 1e3;
            (
                Step::passed(
                    NAME,
                    format!("{shown} resolves and connects in {millis:.1} ms"),
                ),
                Some(address),
            )
        }
        Ok(Ok(Err(reason))) => (
            Step::failed(
                NAME,
                format!("{shown} {reason}"),
                "check the endpoint's address, the network and proxies",
            ),
            None,
        ),
        _ => (
            Step::failed(
                NAME,
                format!("{shown} does not answer"),
                "check the network and proxies",
            ),
            None,
        ),
    }
}

fn connect(host: &str, port: u16) -> Result<(SocketAddr, Duration), String> {
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|e| format!("does not resolve: {e}"))?;
    let mut last = "resolves to no address".to_owned();
    for address in addresses {
        let begun = Instant::now();
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return Ok((address, begun.elapsed())),
            Err(error) => last = format!("refuses connections: {error}"),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_found() {
        let environment: Environment = [
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000"),
            ("AZURE_STORAGE_ACCOUNT", "acc"),
        ]
        .into_iter()
        .collect();
        let host =
            |kind, url: &str| find(kind, url, &environment).map(|e| (e.host, e.port, e.encrypted));
        assert_eq!(
            host(StoreKind::S3, "s3://b/a"),
            Some(("127.0.0.1".into(), 9000, false))
        );
        assert_eq!(
            host(StoreKind::S3, "s3://b/a?endpoint=http://[::1]:8"),
            Some(("::1".into(), 8, false))
        );
        assert_eq!(
            host(StoreKind::Azure, "az://c/a"),
            Some(("acc.blob.core.windows.net".into(), 443, true))
        );
        assert_eq!(
            host(StoreKind::Http, "http://h/x?sig=1"),
            Some(("h".into(), 80, false))
        );
        assert_eq!(host(StoreKind::File, "x"), None);
        let bare = find(
            StoreKind::S3,
            "s3://b?region=eu-west-1",
            &Environment::default(),
        )
        .unwrap();
        assert_eq!(bare.host, "s3.eu-west-1.amazonaws.com");
    }
}
