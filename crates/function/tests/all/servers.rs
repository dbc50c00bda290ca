//! Scripted HTTP servers on loopback, and one that nobody should call.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

/// A request with its whole body.
pub(crate) type Asked = Request<Bytes>;
/// An answer.
pub(crate) type Told = Response<Full<Bytes>>;

pub(crate) fn told(status: u16, body: impl Into<Bytes>) -> Told {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status.try_into().unwrap();
    answer
}

/// Starts a server that answers by `script`, and returns its `host:port`.
pub(crate) async fn start<F>(script: impl Fn(Asked) -> F + Send + Sync + 'static) -> String
where
    F: Future<Output = Told> + Send + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let script = Arc::new(script);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let script = Arc::clone(&script);
            let serve = service_fn(move |request: Request<Incoming>| {
                let script = Arc::clone(&script);
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await?.to_bytes();
                    Ok::<_, hyper::Error>(script(Request::from_parts(parts, body)).await)
                }
            });
            tokio::spawn(async move {
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), serve)
                    .await;
            });
        }
    });
    address
}

/// A socket that listens and counts nobody.
pub(crate) struct Trap(std::net::TcpListener);

impl Trap {
    pub(crate) fn set() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Trap(listener)
    }

    pub(crate) fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// The kernel takes connections in before anybody accepts them, so none is missed here.
    pub(crate) fn assert_empty(&self) {
        let error = self.0.accept().expect_err("somebody has connected");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}
