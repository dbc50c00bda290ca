//! Accepts connections on the loopback and serves HTTP/1.1 on them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyperslab_index::{Error, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::cloud::Cloud;
use crate::connection::Connection;
use crate::front::{self, Door};
use crate::wire::Wire;

/// A listener on 127.0.0.1; port 0 takes a free one.
pub(crate) async fn bind(port: u16) -> Result<(TcpListener, SocketAddr)> {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let failed = |error: std::io::Error| {
        Error::unavailable(format!("the simulator cannot listen on {wanted}: {error}"))
            .with_hint("choose another port, or 0 for a free one")
    };
    let listener = TcpListener::bind(wanted).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Serves one of the store's doors until `stop` changes.
pub(crate) async fn run(
    listener: TcpListener,
    cloud: Arc<Cloud>,
    door: Arc<dyn Door>,
    stop: watch::Receiver<bool>,
) {
    let each = |stream| converse(stream, Arc::clone(&cloud), Arc::clone(&door));
    accept(listener, stop, each).await;
}

/// Hands connections to `converse` until `stop` changes; they end with it.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    converse: impl Fn(TcpStream) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Out of file handles, or the client is gone: the next one may be better.
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    continue;
                }
            },
            _ = stop.changed() => return,
        };
        let (conversation, mut stop) = (converse(stream), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = conversation => {}
                _ = stop.changed() => {}
            }
        });
    }
}

async fn converse(stream: TcpStream, cloud: Arc<Cloud>, door: Arc<dyn Door>) {
    // Without this, Nagle's algorithm and delayed acknowledgements stall answers by 40 ms.
    let _ = stream.set_nodelay(true);
    cloud.meter.connected();
    let connection = Arc::new(Connection::default());
    let wire = Wire::new(stream, Arc::clone(connection.wire()));
    let service = service_fn(move |request| {
        let (cloud, door, connection) = (
            Arc::clone(&cloud),
            Arc::clone(&door),
            Arc::clone(&connection),
        );
        async move { front::serve(&cloud, door.as_ref(), &connection, request).await }
    });
    let done = http1::Builder::new()
        .serve_connection(TokioIo::new(wire), service)
        .await;
    if let Err(error) = done {
        tracing::debug!(%error, "a connection ended early");
    }
}
