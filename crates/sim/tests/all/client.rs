//! Clients for the tests: object_store, and bare HTTP for what it does not show.

use std::time::Duration;

use hyperslab_sim::{Sim, SimConfig};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ClientOptions, RetryConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) const BUCKET: &str = "bucket";

/// A simulator with one bucket.
pub(crate) async fn start() -> Sim {
    start_with(SimConfig::default()).await
}

/// A simulator with one bucket and more.
pub(crate) async fn start_with(mut config: SimConfig) -> Sim {
    config.buckets.push(BUCKET.to_string());
    Sim::start(config).await.unwrap()
}

/// A client that never retries, so that every fault is seen.
pub(crate) fn builder(sim: &Sim) -> AmazonS3Builder {
    AmazonS3Builder::new()
        .with_endpoint(sim.endpoint())
        .with_region(sim.region())
        .with_bucket_name(BUCKET)
        .with_access_key_id(sim.access_key())
        .with_secret_access_key(sim.secret_key())
        .with_retry(RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        })
        .with_client_options(
            ClientOptions::new()
                .with_allow_http(true)
                .with_timeout(Duration::from_secs(20)),
        )
}

pub(crate) fn client(sim: &Sim) -> AmazonS3 {
    builder(sim).build().unwrap()
}

/// One answer to a bare request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a request without a signature on a connection of its own.
pub(crate) async fn bare(
    endpoint: &str,
    line: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let address = endpoint.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let mut head = format!("{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap()
        + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head,
        body: answer[end..].to_vec(),
    }
}

/// An error with all its causes, as text.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}
