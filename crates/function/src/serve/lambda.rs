//! AWS Lambda: the runtime's interface, which is four HTTP calls.
//!
//! `GET next` waits for an invocation, `POST response` answers it, `POST error` says that it
//! failed, and `POST init/error` that we could not start. An invocation is an event of a function
//! URL (payload format 2.0); the answer is streamed: a JSON prelude with status and headers, eight
//! zero bytes, the body.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyperslab_index::{Error, Result};
use reqwest::{Client, header::HeaderMap};
use serde_json::{Value, json};

use super::stream::Segments;
use crate::client::now_unix;
use crate::{Response, SIGNATURE_HEADER, Service};

const VERSION: &str = "2018-06-01";

/// Time that an answer needs to leave before Lambda ends the call.
const MARGIN: Duration = Duration::from_millis(500);

/// Asks for invocations and answers them, one after another, until the interface goes away.
pub(super) async fn run(api: &str, service: &Service) -> Result<()> {
    let client = client()?;
    let base = format!("http://{api}/{VERSION}/runtime/invocation");
    let gone = |e: reqwest::Error| {
        Error::unavailable("Lambda's runtime interface does not answer").with_source(e)
    };
    loop {
        let next = client.get(format!("{base}/next")).send().await;
        let next = next
            .and_then(reqwest::Response::error_for_status)
            .map_err(gone)?;
        let id = text(next.headers(), "lambda-runtime-aws-request-id")
            .ok_or_else(|| Error::unavailable("Lambda sent an invocation without a number"))?;
        let time = time_left(next.headers());
        let event = next.bytes().await.map_err(gone)?;
        let response = invoke(service, &event, time).await;
        let url = format!("{base}/{id}/response");
        let answer = client
            .post(url)
            .header("lambda-runtime-function-response-mode", "streaming")
            .header(
                "content-type",
                "application/vnd.awslambda.http-integration-response",
            )
            // Without a length the body goes out in chunks, as streaming needs.
            .body(reqwest::Body::wrap(streamed(response)))
            .send()
            .await;
        // The caller may be gone, or the call out of time: the next invocation is another one.
        if let Err(e) = answer {
            let failed = Error::unavailable("the answer could not be handed to Lambda");
            report(
                &client,
                &format!("{base}/{id}/error"),
                &failed.with_source(e),
            )
            .await;
        }
    }
}

/// Tells Lambda why the function cannot start.
pub(super) async fn report_start(api: &str, error: &Error) {
    if let Ok(client) = client() {
        let url = format!("http://{api}/{VERSION}/runtime/init/error");
        report(&client, &url, error).await;
    }
}

async fn report(client: &Client, url: &str, error: &Error) {
    let body = json!({"errorMessage": error.to_string(), "errorType": error.kind().as_str()});
    let _ = client
        .post(url)
        .header("lambda-runtime-function-error-type", error.kind().as_str())
        .header("content-type", "application/json")
        .body(body.to_string())
        .timeout(Duration::from_secs(5))
        .send()
        .await;
}

/// A client without a time limit: `next` waits for as long as nobody calls.
fn client() -> Result<Client> {
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .build()
        .map_err(|e| {
            Error::internal("the client of Lambda's runtime cannot be built").with_source(e)
        })
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// What is left of the time that Lambda gives the call.
fn time_left(headers: &HeaderMap) -> Duration {
    let deadline: Option<u64> =
        text(headers, "lambda-runtime-deadline-ms").and_then(|ms| ms.parse().ok());
    let Some(deadline) = deadline else {
        return Duration::MAX;
    };
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Duration::from_millis(deadline)
        .saturating_sub(now)
        .saturating_sub(MARGIN)
}

async fn invoke(service: &Service, event: &[u8], time: Duration) -> Response {
    let event: Value = serde_json::from_slice(event).unwrap_or_default();
    let http = event.get("requestContext").and_then(|c| c.get("http"));
    let field = |name: &str| http.and_then(|http| http.get(name)).and_then(Value::as_str);
    let path = event.get("rawPath").and_then(Value::as_str);
    match field("method") {
        Some("GET") if path.is_some_and(|path| path.ends_with("/health")) => service.health(),
        Some("POST") => {
            let text = event.get("body").and_then(Value::as_str).unwrap_or("");
            let encoded = event.get("isBase64Encoded").and_then(Value::as_bool);
            let body = match encoded.unwrap_or(false) {
                true => STANDARD.decode(text).unwrap_or_default(),
                false => text.as_bytes().to_vec(),
            };
            let signature = event
                .get("headers")
                .and_then(|headers| headers.get(SIGNATURE_HEADER))
                .and_then(Value::as_str);
            let now = now_unix();
            service.handle_within(&body, signature, now, time).await
        }
        _ => service.unknown_path(),
    }
}

fn streamed(response: Response) -> Segments {
    let mut headers = serde_json::Map::new();
    headers.insert("content-type".into(), response.content_type.into());
    for (name, value) in &response.headers {
        headers.insert((*name).to_owned(), value.as_str().into());
    }
    let prelude = json!({"statusCode": response.status, "headers": headers, "cookies": []});
    let mut head = prelude.to_string().into_bytes();
    head.extend_from_slice(&[0; 8]);
    Segments::of([Bytes::from(head), response.body])
}
