//! Sees every HTTP exchange of a client.
//!
//! `object_store` reports failures without `Retry-After`, and not always with status or the
//! server's error code. Its requests run inside the task that asked for them, so a task-local
//! record ties each exchange to its request exactly, whatever else runs at the same time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::BytesMut;
use chrono::{DateTime, Utc};
use futures::StreamExt;
use http::{HeaderMap, Uri};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use url::Url;

use super::connection;
use crate::lock;

/// An error document longer than this is not read further.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// What the transport saw while one request ran.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    /// Status of the last response of the store.
    pub(crate) status: Option<u16>,
    /// The store's own error code, such as `NoSuchKey`.
    pub(crate) code: Option<String>,
    /// How long the store asked to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// The region that S3 says the bucket is in.
    pub(crate) region: Option<String>,
    /// Host and port of the other server that the store points to.
    pub(crate) points_to: Option<String>,
    /// Requests went elsewhere than to the store: for credentials.
    pub(crate) asked_for_credentials: bool,
}

tokio::task_local! {
    static EXCHANGE: Arc<Mutex<Exchange>>;
}

/// Runs a request and tells what the transport saw of it.
pub(crate) async fn observe<T>(request: impl Future<Output = T>) -> (T, Exchange) {
    let record = Arc::new(Mutex::new(Exchange::default()));
    let result = EXCHANGE.scope(Arc::clone(&record), request).await;
    let exchange = lock(&record).clone();
    (result, exchange)
}

fn note(write: impl FnOnce(&mut Exchange)) {
    // Outside of `observe` there is nobody to tell.
    let _ = EXCHANGE.try_with(|record| write(&mut lock(record)));
}

/// Makes clients whose exchanges are seen.
#[derive(Debug)]
pub(crate) struct Connector {
    authority: String,
}

impl Connector {
    /// For a store at `authority` (`host:port`).
    pub(crate) fn new(authority: String) -> Self {
        Connector { authority }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Observer {
            client: HttpClient::new(connection::client(options)?),
            authority: self.authority.clone(),
        }))
    }
}

#[derive(Debug)]
struct Observer {
    client: HttpClient,
    authority: String,
}

impl Observer {
    fn is_store(&self, uri: &Uri) -> bool {
        let host = uri.authority().map_or("", |authority| authority.as_str());
        // The bucket may be part of the host name.
        host == self.authority
            || host
                .strip_suffix(&self.authority)
                .is_some_and(|bucket| bucket.ends_with('.'))
    }
}

#[async_trait]
impl HttpService for Observer {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if !self.is_store(request.uri()) {
            note(|seen| seen.asked_for_credentials = true);
            return self.client.execute(request).await;
        }
        note(|seen| *seen = Exchange::default());
        let response = self.client.execute(request).await?;
        let status = response.status();
        note(|seen| seen.status = Some(status.as_u16()));
        if status.is_success() || status.is_informational() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let body = read_error(body).await?;
        let text = |name: &str| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        note(|seen| {
            seen.retry_after = retry_after(&parts.headers, Utc::now());
            seen.code = text("x-ms-error-code")
                .map(str::to_owned)
                .or_else(|| xml_code(&body));
            seen.region = text("x-amz-bucket-region").map(str::to_owned);
            seen.points_to = text("location").and_then(server_of);
        });
        Ok(HttpResponse::from_parts(
            parts,
            HttpResponseBody::from(body.to_vec()),
        ))
    }
}

async fn read_error(body: HttpResponseBody) -> Result<BytesMut, HttpError> {
    let mut all = BytesMut::new();
    let mut stream = body.bytes_stream();
    while let Some(part) = stream.next().await {
        let part = part?;
        let room = MAX_ERROR_BYTES - all.len();
        all.extend_from_slice(&part[..part.len().min(room)]);
        if all.len() == MAX_ERROR_BYTES {
            break;
        }
    }
    Ok(all)
}

/// Host and port of an absolute URL; its path and query may hold what is not for messages.
fn server_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

/// The text of the first `<Code>` of an S3, Google or Azure error document.
fn xml_code(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let (_, rest) = text.split_once("<Code>")?;
    let (code, _) = rest.split_once("</Code>")?;
    let sound =
        !code.is_empty() && code.len() < 100 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    sound.then(|| code.to_owned())
}

/// `Retry-After` in either of its forms: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let value = headers
        .get(http::header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTime::parse_from_rfc2822(value).ok()?;
    (date.with_timezone(&Utc) - now).to_std().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = DateTime::parse_from_rfc3339("2026-01-01T00:00:00Z")
            .unwrap()
            .to_utc();
        for (value, expected) in [
            ("7", Some(7)),
            ("Thu, 01 Jan 2026 00:01:00 GMT", Some(60)),
            ("Thu, 01 Jan 2020 00:01:00 GMT", None),
            ("soon", None),
        ] {
            let headers = [(http::header::RETRY_AFTER, value.parse().unwrap())]
                .into_iter()
                .collect();
            assert_eq!(
                retry_after(&headers, now),
                expected.map(Duration::from_secs),
                "{value}"
            );
        }
    }

    #[test]
    fn codes_come_from_xml_only_if_they_look_like_codes() {
        assert_eq!(
            xml_code(b"<Error><Code>SlowDown</Code>").as_deref(),
            Some("SlowDown")
        );
        assert_eq!(xml_code(b"<Error><Code>a b</Code>"), None);
        assert_eq!(xml_code(b"<html>"), None);
    }

    #[test]
    fn the_store_is_told_from_the_credential_servers() {
        let observer = Observer {
            client: Connector::new(String::new())
                .connect(&ClientOptions::new())
                .unwrap(),
            authority: "s3.eu-west-1.amazonaws.com".to_owned(),
        };
        for (uri, expected) in [
            ("https://s3.eu-west-1.amazonaws.com/b/k", true),
            ("https://b.s3.eu-west-1.amazonaws.com/k", true),
            ("https://evils3.eu-west-1.amazonaws.com/k", false),
            ("http://169.254.169.254/latest", false),
        ] {
            assert_eq!(observer.is_store(&uri.parse().unwrap()), expected, "{uri}");
        }
    }
}
