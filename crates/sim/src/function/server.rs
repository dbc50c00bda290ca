//! Accepts connections to the function and serves HTTP/1.1 on them.

use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::SimFunction;
use super::call::serve;
use crate::connection::Connection;
use crate::server::accept;
use crate::wire::Wire;

/// Serves until `stop` changes; connections end with it.
pub(crate) async fn run(
    listener: TcpListener,
    function: Arc<SimFunction>,
    stop: watch::Receiver<bool>,
) {
    accept(listener, stop, |stream| {
        converse(stream, Arc::clone(&function))
    })
    .await;
}

async fn converse(stream: TcpStream, function: Arc<SimFunction>) {
    let _ = stream.set_nodelay(true);
    let connection = Arc::new(Connection::default());
    let wire = Wire::new(stream, Arc::clone(connection.wire()));
    let service = service_fn(move |request| {
        let (function, connection) = (Arc::clone(&function), Arc::clone(&connection));
        async move { serve(&function, &connection, request).await }
    });
    let done = http1::Builder::new()
        .serve_connection(TokioIo::new(wire), service)
        .await;
    if let Err(error) = done {
        tracing::debug!(%error, "a connection to the function ended early");
    }
}
