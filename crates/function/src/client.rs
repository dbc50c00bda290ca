//! The client of the protocol, for the engine.
//!
//! Invariant: a call returns the bytes that were asked for, or an error before its deadline. It
//! follows no redirect, and neither the secret nor the token nor the query of the function's URL (where
//! a cloud's own key may be) gets into an error.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use bytes::{Bytes, BytesMut};
use hyperslab_index::{Error, Result};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Method, Url};
use serde::{Deserialize, Serialize};

use crate::failure::understand;
use crate::{Answer, Limits, PREAMBLE_BYTES, SIGNATURE_HEADER, Secret, SlabRequest, sign};

/// How [`Health`] names the function, so that another server is not taken for it.
pub(crate) const SERVICE_NAME: &str = "hyperslab-function";

/// Set by hosts that can send text only: the body is then base64.
pub(crate) const ENCODING_HEADER: &str = "x-hyperslab-encoding";

/// Tells of which state of the object an answer is.
pub(crate) const ETAG_HEADER: &str = "x-hyperslab-etag";

/// Seconds that a signature is valid: a call's queueing and the clocks' difference.
const VALIDITY: u64 = 300;
/// An error document longer than this is not read further.
const LONGEST_REFUSAL: u64 = 64 << 10;

/// What `GET /health` tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Always `hyperslab-function`.
    pub service: String,
    /// The version of the protocol.
    pub version: u32,
    /// What calls may take.
    pub limits: Limits,
}

/// An answer as it came.
struct Taken {
    body: Bytes,
    /// The body is base64.
    encoded: bool,
    etag: Option<String>,
}

/// Calls one function.
pub struct FunctionClient {
    url: Url,
    secret: Option<Secret>,
    /// What the cloud that stands before the function asks for, as a header says it.
    authorization: Option<HeaderValue>,
    /// The client and the process that made it: connections must not be shared across `fork`.
    client: Mutex<Option<(u32, Client)>>,
}

impl FunctionClient {
    /// A client of the function at `url`; calls are signed if there is a secret.
    pub fn new(url: &str, secret: Option<Secret>) -> Result<Self> {
        let wrong = |why: &str| {
            Error::invalid(format!("the function's URL {why}"))
                .with_hint("write for example https://function.example/ or http://127.0.0.1:8080")
        };
        let mut url = Url::parse(url).map_err(|_| wrong("is no web address"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(wrong("is no web address"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must not hold a user name or a password"));
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/slab").unwrap_or(path).to_owned();
        url.set_path(&path);
        Ok(FunctionClient {
            url,
            secret,
            authorization: None,
            client: Mutex::default(),
        })
    }

    /// The same with a token that every call bears, such as an identity token for Cloud Run.
    pub fn with_token(mut self, token: &str) -> Result<Self> {
        let header = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
        let mut header = header.map_err(|_| {
            Error::invalid("the token of the function has characters that no token has")
                .with_hint("check HYPERSLAB_FUNCTION_TOKEN")
        })?;
        header.set_sensitive(true);
        self.authorization = Some(header);
        Ok(self)
    }

    /// Where the function is, without the query.
    pub fn url(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.to_string()
    }

    /// Asks for cells; the answer is [`SlabRequest::payload_len`] bytes long.
    pub async fn call(&self, request: &SlabRequest, deadline: Instant) -> Result<Bytes> {
        Ok(self.call_tagged(request, deadline).await?.0)
    }

    /// Asks for cells, and tells of which state of the object they are, if it is one object.
    pub async fn call_tagged(
        &self,
        request: &SlabRequest,
        deadline: Instant,
    ) -> Result<(Bytes, Option<String>)> {
        let expected = request.payload_len()?;
        if expected > request.size_limit {
            return Err(Error::invalid(format!(
                "the call asks for {expected} bytes, but takes only {}",
                request.size_limit
            )));
        }
        let body = request.to_bytes()?;
        let Taken {
            body,
            encoded,
            etag,
        } = self
            .exchange(Method::POST, "slab", body, expected, deadline)
            .await?;
        let body = match encoded {
            false => body,
            true => base64::engine::general_purpose::STANDARD
                .decode(&body)
                .map_err(|_| Error::unavailable("the function's answer is not the base64 it says"))?
                .into(),
        };
        Ok((Answer::parse(body, expected)?, etag))
    }

    /// Asks whether the function is there, and for its limits.
    pub async fn health(&self, deadline: Instant) -> Result<Health> {
        let Taken { body, .. } = self
            .exchange(Method::GET, "health", Vec::new(), LONGEST_REFUSAL, deadline)
            .await?;
        serde_json::from_slice(&body)
            .ok()
            .filter(|health: &Health| health.service == SERVICE_NAME)
            .ok_or_else(|| {
                Error::unavailable("the answer does not come from a hyperslab function")
                    .with_hint("check the function's URL")
            })
            .map_err(|e| e.context(self.url()))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        expected: u64,
        deadline: Instant,
    ) -> Result<Taken> {
        let work = self.send(method, path, body, expected);
        match tokio::time::timeout_at(deadline.into(), work).await {
            Ok(done) => done,
            Err(_) => Err(Error::unavailable("the function did not answer in time")),
        }
        .map_err(|e| e.context(self.url()))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        expected: u64,
    ) -> Result<Taken> {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
        let mut request = self.client()?.request(method, url);
        if let Some(secret) = &self.secret {
            let expires = now_unix().saturating_add(VALIDITY);
            request = request.header(SIGNATURE_HEADER, sign(secret, &body, expires));
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if !body.is_empty() {
            request = request
                .header("content-type", "application/json")
                .body(body);
        }
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status().as_u16();
        let encoded = response
            .headers()
            .get(ENCODING_HEADER)
            .is_some_and(|value| value.as_bytes() == b"base64");
        let etag = response.headers().get(ETAG_HEADER);
        let etag = etag.and_then(|value| value.to_str().ok().map(str::to_owned));
        // Four characters of base64 make three bytes; a byte more shows that there is too much.
        let whole = expected.saturating_add(PREAMBLE_BYTES as u64);
        let most = match (status, encoded) {
            (200, false) => whole.saturating_add(1),
            (200, true) => whole.div_ceil(3).saturating_mul(4).saturating_add(1),
            _ => LONGEST_REFUSAL,
        };
        let mut body = BytesMut::new();
        while let Some(part) = response.chunk().await.map_err(broken)? {
            let room = most.saturating_sub(body.len() as u64);
            let taken = part.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            if body.is_empty() && status == 200 {
                let size = usize::try_from(most).unwrap_or(usize::MAX);
                // Answers are as long as was asked for; only a page is not.
                body.reserve(if part.starts_with(b"HSLB") {
                    size
                } else {
                    taken
                });
            }
            body.extend_from_slice(&part[..taken]);
            if taken < part.len() {
                break;
            }
        }
        match status {
            200 => Ok(Taken {
                body: body.freeze(),
                encoded,
                etag,
            }),
            _ => Err(understand(status, &body)),
        }
    }

    /// This process's client.
    fn client(&self) -> Result<Client> {
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if let Some((owner, client)) = &*slot
            && *owner == process
        {
            return Ok(client.clone());
        }
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .connect_timeout(Duration::from_secs(5))
            .pool_idle_timeout(Duration::from_secs(20))
            .pool_max_idle_per_host(256)
            .user_agent(concat!("hyperslab/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|e| Error::internal("the function's client cannot be built").with_source(e))?;
        *slot = Some((process, client.clone()));
        Ok(client)
    }
}

/// Without the secret and the query.
impl fmt::Debug for FunctionClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionClient")
            .field("url", &self.url())
            .field("signed", &self.secret.is_some())
            .finish_non_exhaustive()
    }
}

fn broken(e: reqwest::Error) -> Error {
    let what = if e.is_connect() {
        "the function cannot be reached"
    } else if e.is_timeout() {
        "the function did not answer in time"
    } else {
        "the connection to the function broke"
    };
    Error::unavailable(what).with_source(e.without_url())
}

/// Seconds since 1970 by this machine's clock.
pub(crate) fn now_unix() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[tokio::test]
    async fn a_token_is_borne_by_every_call_and_never_shown() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", server.local_addr().unwrap());
        let client = FunctionClient::new(&url, None).unwrap();
        assert!(
            FunctionClient::new(&url, None)
                .unwrap()
                .with_token("a\nb")
                .is_err()
        );
        let client = client.with_token("t0ken\n").unwrap();
        assert!(!format!("{client:?}").contains("t0ken"));
        let seen = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let answer = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).unwrap();
            String::from_utf8(head).unwrap()
        });
        let refused = client
            .health(Instant::now() + Duration::from_secs(20))
            .await;
        assert!(!format!("{refused:?}").contains("t0ken"));
        let head = seen.join().unwrap();
        assert!(head.contains("authorization: Bearer t0ken\r\n"), "{head}");
    }

    #[test]
    fn urls_are_checked_and_shown_without_their_query() {
        for bad in ["", "function", "ftp://h/", "https://u:p@h/", "file:///x"] {
            assert!(FunctionClient::new(bad, None).is_err(), "{bad}");
        }
        for (given, shown) in [
            ("https://h", "https://h/"),
            ("https://h/api/slab?code=s3cret", "https://h/api"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/"),
        ] {
            let client = FunctionClient::new(given, None).unwrap();
            assert_eq!(client.url(), shown);
            assert!(!format!("{client:?}").contains("s3cret"));
        }
    }
}
