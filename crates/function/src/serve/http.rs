//! Serves HTTP/1.1: Azure, Cloud Run and loopback.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyperslab_index::Result;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::azure;
use super::stream::Segments;
use crate::client::now_unix;
use crate::{Response, SIGNATURE_HEADER, Service};

/// A client that takes longer to send its headers is cut off.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// The same for its body, which is at most a few MiB.
const BODY_TIME: Duration = Duration::from_secs(20);
/// Connections beyond these are closed at once.
const MOST_CONNECTIONS: usize = 1024;
/// Bodies that are taken in at a time: whoever sends one has not shown yet that he may.
const BODIES: usize = 64;
/// How long calls under way may go on once the server is asked to end.
const LAST_CALLS: Duration = Duration::from_secs(8);

/// Serves until `stop` is ready, and lets the calls under way end.
pub(super) async fn run(
    listener: TcpListener,
    service: Arc<Service>,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let mut stop = std::pin::pin!(stop);
    let mut connections = JoinSet::new();
    let bodies = Arc::new(Semaphore::new(BODIES));
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < MOST_CONNECTIONS => {
                    let (service, bodies) = (Arc::clone(&service), Arc::clone(&bodies));
                    connections.spawn(converse(stream, service, bodies));
                }
                Ok((stream, _)) => drop(stream),
                // Out of file handles, or the client is gone: the next one may be better.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = &mut stop => break,
        }
    }
    drop(listener);
    // Idle connections do not end by themselves, so this waits no longer than it says.
    let _ = tokio::time::timeout(LAST_CALLS, busy(&service)).await;
    Ok(())
}

/// Ready when no call is under way.
async fn busy(service: &Service) {
    while service.calls_under_way() > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn converse(stream: TcpStream, service: Arc<Service>, bodies: Arc<Semaphore>) {
    // Without this, Nagle's algorithm and delayed acknowledgements stall answers by 40 ms.
    let _ = stream.set_nodelay(true);
    let serve = service_fn(move |request| {
        let (service, bodies) = (Arc::clone(&service), Arc::clone(&bodies));
        async move { Ok::<_, Infallible>(answer(&service, &bodies, request).await) }
    });
    // A connection that breaks is the client's business.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .serve_connection(TokioIo::new(stream), serve)
        .await;
}

async fn answer(
    service: &Service,
    bodies: &Semaphore,
    request: Request<Incoming>,
) -> hyper::Response<Segments> {
    let (parts, body) = request.into_parts();
    // A gateway may put something before the path, such as Azure's `/api`.
    let last = parts.uri.path().trim_end_matches('/').rsplit('/').next();
    let response = match (&parts.method, last) {
        (&Method::GET, Some("health")) => service.health(),
        (&Method::POST, Some("slab" | "health")) => {
            // Azure's envelope escapes the body inside it.
            let most = service.limits().max_request.saturating_mul(2);
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            match collect(body, most, bodies).await {
                None => service.body_too_large(),
                Some(body) => match azure::unwrap(&body) {
                    Some(envelope) => azure::answer(service, envelope).await,
                    None => {
                        let signature = parts.headers.get(SIGNATURE_HEADER);
                        let signature = signature.and_then(|value| value.to_str().ok());
                        service.handle(&body, signature, now_unix()).await
                    }
                },
            }
        }
        _ => service.unknown_path(),
    };
    into_http(response)
}

/// The whole body; `None` if it is too long or too slow.
async fn collect(body: Incoming, most: usize, bodies: &Semaphore) -> Option<Bytes> {
    let _one = bodies.acquire().await.ok()?;
    let collected = tokio::time::timeout(BODY_TIME, Limited::new(body, most).collect()).await;
    match collected.ok()? {
        Ok(collected) => Some(collected.to_bytes()),
        Err(e) if e.is::<LengthLimitError>() => None,
        // The client broke off; whatever we answer, it does not read it.
        Err(_) => Some(Bytes::new()),
    }
}

fn into_http(response: Response) -> hyper::Response<Segments> {
    let mut answer = hyper::Response::new(Segments::of([response.body]));
    *answer.status_mut() =
        StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static(response.content_type),
    );
    for (name, value) in response.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    answer
}
