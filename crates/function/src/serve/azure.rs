//! Azure's envelope: how the Functions host hands a request to a custom handler when it does not
//! forward it as it came.
//!
//! With `enableForwardingHttpRequest`, which `deploy/azure` sets, there is no envelope and answers
//! stream. Without, the request arrives as `{"Data": {"req": {...}}}` and the answer has to be text,
//! so its bytes are sent as base64 and a header says so.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{ENCODING_HEADER, now_unix};
use crate::{Response, SIGNATURE_HEADER, Service};

/// The request in an envelope, if there is one.
pub(super) fn unwrap(body: &[u8]) -> Option<Value> {
    // Our own requests have no such field, and are not parsed twice for it.
    if !body.windows(6).take(256).any(|six| six == b"\"Data\"") {
        return None;
    }
    let mut envelope: Value = serde_json::from_slice(body).ok()?;
    Some(envelope.get_mut("Data")?.get_mut("req")?.take())
}

/// Answers a request that came in an envelope.
pub(super) async fn answer(service: &Service, request: Value) -> Response {
    let method = request.get("Method").and_then(Value::as_str);
    let response = match method {
        Some("GET") => service.health(),
        _ => {
            // The signature is over these very bytes; a body that the host has parsed is lost.
            let body = request.get("Body").and_then(Value::as_str).unwrap_or("");
            let signature = header(&request, SIGNATURE_HEADER);
            service.handle(body.as_bytes(), signature, now_unix()).await
        }
    };
    wrap(response)
}

/// Header names keep their case here, and values are lists.
fn header<'a>(request: &'a Value, name: &str) -> Option<&'a str> {
    let headers = request.get("Headers")?.as_object()?;
    let (_, value) = headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    match value {
        Value::Array(values) => values.first()?.as_str(),
        value => value.as_str(),
    }
}

fn wrap(response: Response) -> Response {
    let mut headers = serde_json::Map::new();
    headers.insert("content-type".into(), response.content_type.into());
    for (name, value) in &response.headers {
        headers.insert((*name).to_owned(), value.as_str().into());
    }
    let text = match response.content_type {
        "application/json" => String::from_utf8_lossy(&response.body).into_owned(),
        _ => {
            headers.insert(ENCODING_HEADER.into(), "base64".into());
            STANDARD.encode(&response.body)
        }
    };
    let envelope = json!({
        "Outputs": {"res": {"statusCode": response.status, "headers": headers, "body": text}},
        "Logs": [],
        "ReturnValue": null,
    });
    Response {
        status: 200,
        content_type: "application/json",
        headers: Vec::new(),
        body: envelope.to_string().into(),
        work: response.work,
    }
}
