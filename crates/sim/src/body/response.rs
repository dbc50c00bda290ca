//! The body of an answer: cut into pieces that leave when the network would have carried them.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use s3s::StdError;

use crate::connection::Connection;
use crate::meter::{Meter, UnderWay};
use crate::network::shaper::{Direction, Shaper};
use crate::network::timer::Sleep;

/// How a fault ends a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Reset once the headers are out.
    ResetAtOnce,
    /// Orderly close after so many bytes.
    CloseAfter(u64),
}

/// A body on its way to the client. While it lives, its request is under way.
pub(crate) struct ResponseBody {
    inner: s3s::Body,
    route: Option<Route>,
    cut: Option<Cut>,
    /// The flush count when everything before the cut had been handed to hyper.
    cut_at_flush: Option<u64>,
    /// Bytes still to come, as promised to the client.
    size: SizeHint,
    sent: u64,
}

/// What a metered body passes through; answers of the admin path have none.
struct Route {
    meter: Arc<Meter>,
    shaper: Arc<Shaper>,
    connection: Arc<Connection>,
    /// The virtual moment at which the last piece had crossed the network.
    crossed: Instant,
    /// What the source gave and the network has not yet carried.
    rest: Bytes,
    delayed: Option<(Sleep, Bytes)>,
    _under_way: UnderWay,
}

impl ResponseBody {
    /// A body without network and meter.
    pub(crate) fn plain(body: s3s::Body) -> Self {
        Self::new(body, None, None)
    }

    /// A body whose first byte leaves at `start`.
    pub(crate) fn routed(
        body: s3s::Body,
        meter: Arc<Meter>,
        shaper: Arc<Shaper>,
        connection: Arc<Connection>,
        start: Instant,
        cut: Option<Cut>,
        under_way: UnderWay,
    ) -> Self {
        shaper.begin_sending();
        let route = Route {
            meter,
            shaper,
            connection,
            crossed: start,
            rest: Bytes::new(),
            delayed: None,
            _under_way: under_way,
        };
        Self::new(body, Some(route), cut)
    }

    fn new(inner: s3s::Body, route: Option<Route>, cut: Option<Cut>) -> Self {
        let size = inner.size_hint();
        ResponseBody {
            inner,
            route,
            cut,
            cut_at_flush: None,
            size,
            sent: 0,
        }
    }

    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StdError>>> {
        loop {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    /// The next piece that the network has carried.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StdError>>> {
        loop {
            let Some(route) = &mut self.route else {
                return self.poll_source(context);
            };
            if let Some((sleep, _)) = &mut route.delayed {
                ready!(Pin::new(sleep).poll(context));
                let piece = route.delayed.take().map(|(_, piece)| piece);
                return Poll::Ready(piece.map(Ok));
            }
            if route.rest.is_empty() {
                match ready!(self.poll_source(context)) {
                    Some(Ok(bytes)) if !self.limits_bandwidth() => {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                    Some(Ok(bytes)) => {
                        if let Some(route) = &mut self.route {
                            route.rest = bytes;
                        }
                    }
                    end => return Poll::Ready(end),
                }
                continue;
            }
            let length = route.rest.len().min(route.shaper.piece());
            let piece = route.rest.split_to(length);
            let clock = route.connection.clock();
            route.crossed = route
                .shaper
                .reserve(clock, Direction::Down, route.crossed, length);
            route.delayed = Some((route.shaper.sleep_until(route.crossed), piece));
        }
    }

    fn limits_bandwidth(&self) -> bool {
        self.route
            .as_ref()
            .is_some_and(|route| route.shaper.limits_bandwidth())
    }

    /// Waits for what was sent to be flushed, then fails, which makes hyper close.
    fn poll_cut(&mut self, context: &mut Context<'_>) -> Poll<StdError> {
        if let Some(route) = &self.route {
            let wire = route.connection.wire();
            let seen = *self.cut_at_flush.get_or_insert_with(|| wire.flushes());
            ready!(wire.poll_flushed(seen, context));
            if self.cut == Some(Cut::ResetAtOnce) {
                wire.reset();
            }
        }
        Poll::Ready("cut on purpose".into())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let left = match self.cut {
            None => u64::MAX,
            Some(Cut::ResetAtOnce) => 0,
            Some(Cut::CloseAfter(bytes)) => bytes.saturating_sub(self.sent),
        };
        if left == 0 {
            return Poll::Ready(Some(Err(ready!(self.poll_cut(context)))));
        }
        Poll::Ready(match ready!(self.poll_piece(context)) {
            Some(Ok(mut piece)) => {
                piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                self.sent += piece.len() as u64;
                if let Some(route) = &self.route {
                    route.meter.sent(piece.len());
                }
                Some(Ok(Frame::data(piece)))
            }
            Some(Err(error)) => Some(Err(error)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        let drained = self
            .route
            .as_ref()
            .is_none_or(|route| route.rest.is_empty() && route.delayed.is_none());
        self.cut.is_none() && drained && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.shaper.end_sending();
    }
}
