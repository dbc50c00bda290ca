//! The simulator's own path, for benchmarks that are not in this process: neither signed nor
//! shaped, metered or subject to faults.
//!
//! - `GET /_sim/meter`: the meter as JSON; `POST /_sim/reset`: count from zero.
//! - `GET`, `PUT /_sim/network`: the network as JSON; `PUT` also takes `?preset=name`.
//! - `GET`, `PUT /_sim/faults`: the fault plan as JSON.
//!
//! No bucket can be named `_sim`, so nothing is hidden.

use std::sync::Arc;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyperslab_index::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cloud::Cloud;
use crate::network::Network;

const PREFIX: &str = "/_sim/";

/// Largest description of a network or fault plan.
const MOST_BYTES: usize = 1 << 20;

pub(crate) fn is_admin(path: &str) -> bool {
    path.starts_with(PREFIX)
}

pub(crate) async fn answer(cloud: &Arc<Cloud>, request: Request<Incoming>) -> Response<s3s::Body> {
    let (status, text) = match handle(cloud, request).await {
        Ok(text) => (StatusCode::OK, text),
        Err(error) => {
            let status = match error.kind() {
                ErrorKind::NotFound => StatusCode::NOT_FOUND,
                ErrorKind::Invalid => StatusCode::BAD_REQUEST,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            let body = serde_json::json!({ "error": error.message(), "hint": error.hint() });
            (status, body.to_string())
        }
    };
    let mut response = Response::new(s3s::Body::from(text));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

async fn handle(cloud: &Arc<Cloud>, request: Request<Incoming>) -> Result<String> {
    let (parts, body) = request.into_parts();
    let name = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default();
    match (&parts.method, name) {
        (&Method::GET, "meter") => json(&cloud.snapshot()),
        (&Method::POST, "reset") => {
            cloud.reset_meter();
            json(&cloud.snapshot())
        }
        (&Method::GET, "network") => json(cloud.shaper().network()),
        (&Method::PUT, "network") => {
            let query = parts.uri.query().unwrap_or_default();
            let preset = url::form_urlencoded::parse(query.as_bytes())
                .find(|(key, _)| key == "preset")
                .map(|(_, value)| value.into_owned());
            let network = match preset {
                Some(name) => Network::preset(&name)?,
                None => parse(body, "network").await?,
            };
            cloud.set_network(network)?;
            json(cloud.shaper().network())
        }
        (&Method::GET, "faults") => json(&cloud.faults.plan()),
        (&Method::PUT, "faults") => {
            cloud.faults.set(parse(body, "fault plan").await?)?;
            json(&cloud.faults.plan())
        }
        (method, _) => Err(Error::not_found(format!(
            "the simulator has no {method} {PREFIX}{name}"
        ))
        .with_hint("GET meter, POST reset, GET or PUT network, GET or PUT faults")),
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::internal("the answer is no JSON").with_source(error))
}

async fn parse<T: DeserializeOwned>(body: Incoming, what: &str) -> Result<T> {
    let bytes = Limited::new(body, MOST_BYTES)
        .collect()
        .await
        .map_err(|error| Error::invalid(format!("the {what} could not be received: {error}")))?
        .to_bytes();
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::invalid(format!("this is no {what}: {error}")))
}
