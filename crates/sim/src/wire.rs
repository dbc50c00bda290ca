//! A TCP stream that can be cut on purpose.
//!
//! Sits below hyper. The request path holds a [`WireControl`] of the connection and can ask for a
//! reset (RST instead of an orderly end) and wait until everything written so far has been
//! flushed, so that a fault "after the headers" comes after the headers.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::sync::lock;

/// What the request path can do to a connection.
#[derive(Default)]
pub(crate) struct WireControl {
    reset: AtomicBool,
    flushes: AtomicU64,
    waiting: Mutex<Option<Waker>>,
}

impl WireControl {
    /// The connection will end with a reset as soon as hyper lets go of it.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Ordering::SeqCst);
    }

    /// How often all that was written has been flushed.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::SeqCst)
    }

    /// Ready once a flush has ended after the count was `seen`.
    pub(crate) fn poll_flushed(&self, seen: u64, context: &mut Context<'_>) -> Poll<()> {
        *lock(&self.waiting) = Some(context.waker().clone());
        if self.flushes() > seen {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

/// The stream that hyper sees.
pub(crate) struct Wire {
    stream: TcpStream,
    control: Arc<WireControl>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, control: Arc<WireControl>) -> Self {
        Wire { stream, control }
    }

    fn check(&self) -> io::Result<()> {
        if self.control.reset.load(Ordering::SeqCst) {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "reset on purpose",
            ));
        }
        Ok(())
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.control.reset.load(Ordering::SeqCst) {
            // Without lingering, close sends RST and drops what is unsent.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Hyper calls this when its own buffer is empty.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        if done.is_ready() {
            self.control.flushes.fetch_add(1, Ordering::SeqCst);
            if let Some(waker) = lock(&self.control.waiting).take() {
                waker.wake();
            }
        }
        done
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
