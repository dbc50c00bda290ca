//! The path of a call: an instance, perhaps a failure, the handler, the computed time, the bill.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyperslab_function::{PREAMBLE_BYTES, SIGNATURE_HEADER};

use super::answer::Paced;
use super::{FunctionFailure, SimFunction};
use crate::body::{RequestBody, ResponseBody};
use crate::connection::Connection;
use crate::front::Aborted;
use crate::sync::read;

const PAGE: &str = "<!DOCTYPE html><html><body><h1>Something went wrong</h1></body></html>";

/// Takes one call through the simulated cloud.
pub(crate) async fn serve(
    function: &Arc<SimFunction>,
    connection: &Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Aborted> {
    let arrived = Instant::now();
    let cloud = &function.cloud;
    let (parts, incoming) = request.into_parts();
    if parts.method == Method::GET && parts.uri.path().ends_with("/health") {
        let health = function.service.health();
        return Ok(response(&health).map(|()| ResponseBody::plain(health.body.into())));
    }
    let under_way = cloud.meter.under_way();
    let shaper = cloud.shaper();
    let latency = shaper.latency(cloud.next_request());
    let body = RequestBody::new(
        incoming,
        Arc::clone(&cloud.meter),
        Arc::clone(&shaper),
        Arc::clone(connection),
        arrived,
    );
    let most = usize::try_from(function.service.limits().max_request).unwrap_or(usize::MAX);
    let taken = Limited::new(body.clone(), most.saturating_add(1))
        .collect()
        .await;
    let bytes = taken.map_or_else(|_| Bytes::new(), |taken| taken.to_bytes());
    let ready = body.crossed().max(arrived) + latency;

    let number = function.calls.fetch_add(1, Ordering::Relaxed);
    let failures = read(&function.failures).clone();
    let failure = failures.decide(number);
    let mut start = ready;
    let mut answer = match function.instances.take(Instant::now()) {
        None => {
            cloud.meter.throttled();
            shaper.sleep_until(ready).await;
            refusal(StatusCode::TOO_MANY_REQUESTS)
        }
        Some(instance) => {
            let cold = match instance.cold {
                true => function.model.cold_millis / 1e3,
                false => 0.0,
            };
            if let Some(kind) = failure {
                cloud.meter.call_failed(kind);
            }
            let handled = match failure {
                Some(FunctionFailure::Crash | FunctionFailure::Hang) => None,
                _ => {
                    let signature = parts.headers.get(SIGNATURE_HEADER);
                    let signature = signature.and_then(|value| value.to_str().ok());
                    let handled = function.service.handle(&bytes, signature, now_unix());
                    Some(handled.await)
                }
            };
            let work = handled
                .as_ref()
                .map(|handled| handled.work)
                .unwrap_or_default();
            let busy = cold + function.model.compute_seconds(work.read);
            let paid = match failure {
                Some(FunctionFailure::Hang) => failures.hang().as_secs_f64(),
                _ => busy + function.model.streamed_seconds(work.answered),
            };
            let gigabytes = function.model.gigabytes();
            cloud
                .meter
                .called(instance.cold, paid, gigabytes, work.requests);
            if failure == Some(FunctionFailure::Hang) {
                tokio::time::sleep(failures.hang()).await;
                connection.wire().reset();
                return Err(Aborted);
            }
            let busy = Duration::try_from_secs_f64(busy).unwrap_or_default();
            // The computed moment, so that a late timer does not add up; unless this machine took
            // longer than the model says.
            start = (ready + busy).max(Instant::now());
            shaper.sleep_until(start).await;
            drop(instance);
            match handled {
                None => refusal(StatusCode::BAD_GATEWAY),
                Some(handled) => response(&handled).map(|()| handled.body),
            }
        }
    };
    let success = answer.status() == StatusCode::OK;
    match failure.filter(|_| success) {
        Some(FunctionFailure::WrongBytes) => {
            let wrong = with_a_wrong_byte(answer.body(), number);
            *answer.body_mut() = wrong;
        }
        Some(FunctionFailure::ErrorPage) => {
            *answer.body_mut() = Bytes::from_static(PAGE.as_bytes());
            let html = HeaderValue::from_static("text/html");
            answer.headers_mut().insert(header::CONTENT_TYPE, html);
        }
        _ => {}
    }
    let (meter, connection) = (Arc::clone(&cloud.meter), Arc::clone(connection));
    let model = &function.model;
    Ok(answer.map(|body| {
        let body = match (model.stream_after_bytes, model.stream_bandwidth) {
            (Some(after), Some(speed)) if body.len() as u64 > after => {
                s3s::Body::http_body(Paced::new(body, after, speed, start))
            }
            _ => s3s::Body::from(body),
        };
        ResponseBody::routed(body, meter, shaper, connection, start, None, under_way)
    }))
}

/// Status and headers of what the handler answered.
fn response(handled: &hyperslab_function::Response) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_u16(handled.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static(handled.content_type);
    headers.insert(header::CONTENT_TYPE, kind);
    for (name, value) in &handled.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// What the cloud says where the function says nothing.
fn refusal(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"{\"Message\":null}"));
    *response.status_mut() = status;
    response
}

fn with_a_wrong_byte(body: &Bytes, number: u64) -> Bytes {
    let mut wrong = BytesMut::from(&body[..]);
    let payload = body.len().saturating_sub(PREAMBLE_BYTES);
    if payload > 0 {
        wrong[PREAMBLE_BYTES + number as usize % payload] ^= 0x40;
    }
    wrong.freeze()
}

fn now_unix() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
