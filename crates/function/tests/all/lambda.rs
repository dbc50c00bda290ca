//! The binary as a Lambda function, against a small copy of the runtime's interface.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use bytes::Bytes;
use hyperslab_function::{Answer, Secret, sign};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::binary::{Data, Running, SECRET};
use crate::servers::{Asked, start, told};

/// What the function sent to the interface: the path, the headers that matter, the body.
struct Sent {
    path: String,
    mode: Option<String>,
    chunked: bool,
    content_type: Option<String>,
    body: Bytes,
}

/// Starts an interface that hands out `events` and then keeps `next` waiting.
async fn interface(events: Vec<Value>) -> (String, mpsc::UnboundedReceiver<Sent>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let events = Arc::new(Mutex::new(events.into_iter().enumerate()));
    let address = start(move |request: Asked| {
        let (events, sender) = (Arc::clone(&events), sender.clone());
        async move {
            let path = request.uri().path().to_owned();
            if path == "/2018-06-01/runtime/invocation/next" {
                let next = events.lock().unwrap().next();
                let Some((number, event)) = next else {
                    return std::future::pending().await;
                };
                let mut answer = told(200, event.to_string());
                let headers = answer.headers_mut();
                let id = format!("id-{number}").parse().unwrap();
                headers.insert("lambda-runtime-aws-request-id", id);
                headers.insert(
                    "lambda-runtime-deadline-ms",
                    "9999999999999".parse().unwrap(),
                );
                return answer;
            }
            let header = |name: &str| Some(request.headers().get(name)?.to_str().ok()?.to_owned());
            let sent = Sent {
                path,
                mode: header("lambda-runtime-function-response-mode"),
                chunked: header("transfer-encoding").as_deref() == Some("chunked"),
                content_type: header("content-type"),
                body: request.body().clone(),
            };
            sender.send(sent).unwrap();
            told(202, "{}")
        }
    })
    .await;
    (address, receiver)
}

/// Splits what was streamed into prelude and body.
fn split(sent: &Sent) -> (Value, Bytes) {
    let at = sent
        .body
        .windows(8)
        .position(|eight| eight == [0; 8])
        .unwrap();
    let prelude = serde_json::from_slice(&sent.body[..at]).unwrap();
    (prelude, sent.body.slice(at + 8..))
}

fn event(method: &str, path: &str, signature: &str, body: &str, base64: bool) -> Value {
    json!({
        "version": "2.0",
        "rawPath": path,
        "headers": {"x-hyperslab-signature": signature, "content-type": "application/json"},
        "requestContext": {"http": {"method": method, "path": path}},
        "body": body,
        "isBase64Encoded": base64,
    })
}

#[tokio::test]
async fn invocations_are_answered_one_after_another() {
    let data = Data::new();
    let body = data.request("c0").to_bytes().unwrap();
    let text = String::from_utf8(body.clone()).unwrap();
    let expires = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs()
        + 60;
    let signature = sign(&Secret::new(SECRET).unwrap(), &body, expires);
    let encoded = base64::engine::general_purpose::STANDARD.encode(&body);
    let events = vec![
        event("POST", "/", &signature, &text, false),
        event("POST", "/any/path", &signature, &encoded, true),
        event("POST", "/", "v1;expires=1;hmac=00", &text, false),
        event("GET", "/health", "", "", false),
        event("GET", "/", "", "", false),
        json!("not an HTTP event"),
    ];
    let (address, mut sent) = interface(events).await;
    let child = data
        .command()
        .env("AWS_LAMBDA_RUNTIME_API", address)
        .spawn();
    let _child = Running(child.unwrap());
    for (number, status) in [200, 200, 401, 200, 400, 400].into_iter().enumerate() {
        let seen = sent.recv().await.unwrap();
        let path = format!("/2018-06-01/runtime/invocation/id-{number}/response");
        assert_eq!(seen.path, path);
        assert_eq!(seen.mode.as_deref(), Some("streaming"));
        assert!(seen.chunked);
        let integration = "application/vnd.awslambda.http-integration-response";
        assert_eq!(seen.content_type.as_deref(), Some(integration));
        let (prelude, body) = split(&seen);
        assert_eq!(prelude["statusCode"], status, "{prelude} {body:?}");
        if number < 2 {
            assert_eq!(
                prelude["headers"]["content-type"],
                "application/octet-stream"
            );
            assert!(prelude["headers"]["x-hyperslab-etag"].is_string());
            assert_eq!(Answer::parse(body, 4).unwrap(), "1256");
        } else if number == 3 {
            let health: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(health["limits"]["max_answer"], 200 << 20);
        }
    }
}

#[tokio::test]
async fn a_function_that_cannot_start_says_why() {
    let data = Data::new();
    let (address, mut sent) = interface(vec![]).await;
    let child = data
        .command()
        .env("AWS_LAMBDA_RUNTIME_API", address)
        .env_remove("HYPERSLAB_FUNCTION_SECRET")
        .stderr(std::process::Stdio::null())
        .spawn();
    let _child = Running(child.unwrap());
    let seen = sent.recv().await.unwrap();
    assert_eq!(seen.path, "/2018-06-01/runtime/init/error");
    let told: Value = serde_json::from_slice(&seen.body).unwrap();
    assert!(
        told["errorMessage"].as_str().unwrap().contains("no secret"),
        "{told}"
    );
}
