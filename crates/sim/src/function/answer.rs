//! The body of a call's answer: past a number of bytes it leaves slowly, as Lambda streams.

use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// Bytes that leave at once.
const SEGMENT: usize = 64 << 10;

/// A body that leaves at `speed` from byte `after` on.
pub(crate) struct Paced {
    rest: Bytes,
    sent: u64,
    after: u64,
    speed: f64,
    start: Instant,
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Paced {
    pub(crate) fn new(body: Bytes, after: u64, speed: f64, start: Instant) -> Self {
        Paced {
            rest: body,
            sent: 0,
            after,
            speed,
            start,
            sleep: None,
        }
    }

    /// When the next segment may leave.
    fn due(&self, length: usize) -> Instant {
        let slow = (self.sent + length as u64).saturating_sub(self.after);
        let wait = Duration::try_from_secs_f64(slow as f64 / self.speed).unwrap_or_default();
        self.start + wait
    }
}

impl Body for Paced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(SEGMENT);
        if length == 0 {
            return Poll::Ready(None);
        }
        let due = self.due(length);
        if Instant::now() < due {
            let sleep = self
                .sleep
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due.into())));
            ready!(sleep.as_mut().poll(context));
        }
        self.sleep = None;
        self.sent += length as u64;
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
