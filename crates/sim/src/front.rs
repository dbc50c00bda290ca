//! The path of a request: counted, refused or admitted, answered, delayed, and perhaps cut.
//!
//! Sits between the listener and a front door ([`Door`]), which answers without knowing of any of
//! this. The order is: the fault plan, the rate limit, the body at the speed of the network, the
//! answer, the latency, the body of the answer at the speed of the network.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::admin;
use crate::body::{Cut, RequestBody, ResponseBody};
use crate::cloud::Cloud;
use crate::connection::Connection;
use crate::fault::FaultKind;
use crate::operation::Operation;

/// Answers requests in the language of one kind of store.
#[async_trait]
pub(crate) trait Door: Send + Sync + 'static {
    /// Answers a request.
    async fn answer(&self, request: Request<RequestBody>) -> Response<s3s::Body>;

    /// An error in the language of the store.
    fn refusal(&self, status: StatusCode, code: &'static str, message: &str)
    -> Response<s3s::Body>;
}

/// Ends a connection without an answer.
#[derive(Debug)]
pub(crate) struct Aborted;

impl std::fmt::Display for Aborted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection was cut on purpose")
    }
}

impl std::error::Error for Aborted {}

/// Takes one request through the simulated cloud.
pub(crate) async fn serve(
    cloud: &Arc<Cloud>,
    door: &dyn Door,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Aborted> {
    let arrived = Instant::now();
    if admin::is_admin(request.uri().path()) {
        return Ok(admin::answer(cloud, request).await.map(ResponseBody::plain));
    }
    let uri = request.uri();
    let query = uri.query().unwrap_or_default();
    let operation = Operation::classify(request.method(), uri.path(), query, request.headers());
    let method = request.method().clone();
    let waits_for_continue = request.headers().contains_key(header::EXPECT);
    let under_way = cloud.meter.arrived(&operation);
    let shaper = cloud.shaper();
    let latency = shaper.latency(cloud.next_request());
    let target = format!("{}/{}", operation.bucket, operation.key);
    let fault = cloud
        .faults
        .decide(method.as_str(), &target, operation.writes());
    let admitted = shaper.limiter().is_none_or(|limiter| {
        limiter.admit(
            &operation.bucket,
            &operation.key,
            operation.writes(),
            arrived,
        )
    });

    let body;
    let request = {
        let (parts, incoming) = request.into_parts();
        let meter = Arc::clone(&cloud.meter);
        let (shaper, connection) = (Arc::clone(&shaper), Arc::clone(connection));
        body = RequestBody::new(incoming, meter, shaper, connection, arrived);
        Request::from_parts(parts, body.clone())
    };

    let mut response = match fault {
        Some(kind @ (FaultKind::ResetBeforeHeaders | FaultKind::Hang)) => {
            cloud.meter.not_billed(&operation);
            cloud.faults.injected(kind);
            if kind == FaultKind::Hang {
                tokio::time::sleep(cloud.faults.hang()).await;
            } else if !latency.is_zero() {
                shaper.sleep_until(arrived + latency).await;
            }
            connection.wire().reset();
            return Err(Aborted);
        }
        Some(kind @ (FaultKind::InternalError | FaultKind::SlowDown)) => {
            cloud.meter.not_billed(&operation);
            cloud.faults.injected(kind);
            refuse_on_purpose(door, kind)
        }
        _ if !admitted => {
            cloud.meter.not_billed(&operation);
            let mut response = refuse_on_purpose(door, FaultKind::SlowDown);
            let seconds = shaper
                .limiter()
                .and_then(|limiter| limiter.retry_after_seconds());
            if let Some(seconds) = seconds {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            response
        }
        _ => door.answer(request).await,
    };
    // A client that is still sending may never read an answer that comes with a closed
    // connection, so the rest of the body is taken in; not so a client that waits for leave to
    // send at all.
    if body.touched() || !waits_for_continue {
        body.drain().await;
    } else {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }

    let start = if latency.is_zero() && !shaper.limits_bandwidth() {
        Instant::now()
    } else {
        let start = body.crossed().max(arrived) + latency;
        shaper.sleep_until(start).await;
        start
    };
    let cut = match fault {
        Some(kind @ FaultKind::LostResponse) => {
            cloud.faults.injected(kind);
            connection.wire().reset();
            return Err(Aborted);
        }
        Some(kind @ FaultKind::ResetAfterHeaders) => {
            cloud.faults.injected(kind);
            if body_length(&method, &response) == 0 {
                // Hyper asks for no body, so the cut has to come before the headers.
                connection.wire().reset();
                return Err(Aborted);
            }
            Some(Cut::ResetAtOnce)
        }
        Some(kind @ FaultKind::TruncatedBody) => {
            let length = body_length(&method, &response);
            (length > 0).then(|| {
                cloud.faults.injected(kind);
                Cut::CloseAfter(length / 2)
            })
        }
        _ => None,
    };
    let (meter, connection) = (Arc::clone(&cloud.meter), Arc::clone(connection));
    Ok(response
        .map(|body| ResponseBody::routed(body, meter, shaper, connection, start, cut, under_way)))
}

fn refuse_on_purpose(door: &dyn Door, kind: FaultKind) -> Response<s3s::Body> {
    match kind {
        FaultKind::SlowDown => door.refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "SlowDown",
            "Please reduce your request rate.",
        ),
        _ => door.refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            "We encountered an internal error. Please try again.",
        ),
    }
}

/// How many bytes of a body follow the headers.
fn body_length(method: &Method, response: &Response<s3s::Body>) -> u64 {
    let bodiless = *method == Method::HEAD
        || matches!(
            response.status(),
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
    if bodiless {
        0
    } else {
        response.body().size_hint().exact().unwrap_or(0)
    }
}
