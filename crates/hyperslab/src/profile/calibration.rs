//! A server on this machine that tells how long it held each request back: the rest of what the
//! request took, client and machine have taken for themselves.
//!
//! Beside [`super::requests`], which takes that off what a request to the real store takes. A latency
//! of a millisecond would otherwise be found a fifth too long.
//!
//! Invariant: it listens on the loopback only, answers every request with the same few bytes, knows
//! no credentials, and ends with the measurement.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyperslab_store::{Environment, Options, StoreRef, open_with};

/// The object that every request reads the whole of.
pub(super) const KEY: &str = "k";
/// Its bytes.
pub(super) const BYTES: u64 = 16;
const ANSWER: &[u8] = b"HTTP/1.1 206 Partial Content\r\n\
    Content-Length: 16\r\n\
    Content-Range: bytes 0-15/16\r\n\
    ETag: \"calibration\"\r\n\
    Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n\
    0123456789abcdef";
/// How often an idle connection looks whether the measurement has ended.
const LOOK: Duration = Duration::from_millis(500);
/// Requests are not held back longer than this: machines sleep no deeper.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// What server and measurement tell each other; times are in nanoseconds.
#[derive(Default)]
struct Shared {
    /// How long requests are to be held back.
    pause: AtomicU64,
    /// How long the last request was held back.
    held: AtomicU64,
    ended: AtomicBool,
}

/// The server, and a store at it.
pub(super) struct Calibration {
    store: StoreRef,
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Calibration {
    /// Starts the server; `None` where this machine lets nobody listen.
    ///
    /// It has a thread of its own, for the real server does not share ours either.
    pub(super) fn start() -> Option<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        let address = listener.local_addr().ok()?;
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("calibration".into())
            .spawn(move || serve(&listener, &seen))
            .ok()?;
        // Requests are signed, as those to the real store are.
        let options = Options::new()
            .with_environment(Environment::default())
            .with("access_key_id", "calibration")
            .with("secret_access_key", "calibration");
        let url = format!("s3://calibration?endpoint=http://{address}");
        let store = open_with(&url, &options).ok()?.store;
        Some(Calibration {
            store,
            address,
            shared,
        })
    }

    pub(super) fn store(&self) -> &StoreRef {
        &self.store
    }

    /// Holds requests back for about so many seconds, as the real store does: a machine that has
    /// gone to sleep in between takes longer to notice an answer.
    pub(super) fn set_pause(&self, seconds: f64) {
        let pause = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let nanos = pause.min(LONGEST_PAUSE).as_nanos() as u64;
        self.shared.pause.store(nanos, Ordering::Relaxed);
    }

    /// Tells for how many seconds the last request was held back, even after the server is gone.
    pub(super) fn held(&self) -> impl Fn() -> f64 + Send + Sync + use<> {
        let shared = Arc::clone(&self.shared);
        move || Duration::from_nanos(shared.held.load(Ordering::Acquire)).as_secs_f64()
    }
}

impl Drop for Calibration {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // Wakes a thread that waits for a connection; one that cannot be reached is gone already.
        let _ = TcpStream::connect(self.address);
    }
}

/// Serves one connection after another: requests come one at a time.
fn serve(listener: &TcpListener, shared: &Shared) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.ended.load(Ordering::Relaxed) {
            return;
        }
        // A broken connection is followed by another one.
        let _ = converse(stream, shared);
    }
}

fn converse(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut request = [0; 8192];
    let mut filled = 0;
    while !shared.ended.load(Ordering::Relaxed) && filled < request.len() {
        match stream.read(&mut request[filled..]) {
            Ok(0) => return Ok(()),
            Ok(more) => filled += more,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(e) => return Err(e),
        }
        if request[..filled].ends_with(b"\r\n\r\n") {
            let arrived = Instant::now();
            std::thread::sleep(Duration::from_nanos(shared.pause.load(Ordering::Relaxed)));
            let nanos = arrived.elapsed().as_nanos() as u64;
            shared.held.store(nanos, Ordering::Release);
            stream.write_all(ANSWER)?;
            filled = 0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hyperslab_store::{Get, GetRange};

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn it_answers_until_it_is_dropped() {
        let calibration = Calibration::start().unwrap();
        calibration.set_pause(0.002);
        let held = calibration.held();
        for _ in 0..3 {
            let options = Get {
                range: Some(GetRange::Bounded(0..BYTES)),
                ..Get::default()
            };
            let got = calibration.store().get(KEY, options).await.unwrap();
            assert_eq!(got.body.len(), BYTES);
            assert!(held() >= 0.002);
        }
        let address = calibration.address;
        drop(calibration);
        // The thread ends, and with it the listener.
        while TcpStream::connect(address).is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
