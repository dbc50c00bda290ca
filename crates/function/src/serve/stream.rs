//! A body that leaves in segments, without a length in the headers.
//!
//! Lambda's response streaming and Cloud Run stream what comes in chunks, and Cloud Run's limit of
//! 32 MiB is one for answers that say their length. The preamble says it anyway.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

/// Bytes that leave at once.
const SEGMENT: usize = 64 << 10;

/// The body.
pub(super) struct Segments(VecDeque<Bytes>);

impl Segments {
    /// The concatenation of `parts`.
    pub(super) fn of(parts: impl IntoIterator<Item = Bytes>) -> Self {
        Segments(parts.into_iter().filter(|part| !part.is_empty()).collect())
    }
}

impl Body for Segments {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(part) = self.0.front_mut() else {
            return Poll::Ready(None);
        };
        let segment = part.split_to(part.len().min(SEGMENT));
        if part.is_empty() {
            self.0.pop_front();
        }
        Poll::Ready(Some(Ok(Frame::data(segment))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}
