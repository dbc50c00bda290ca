//! The body of a request, slowed down to the bandwidth of the network.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use s3s::StdError;

use crate::connection::Connection;
use crate::meter::Meter;
use crate::network::shaper::{Direction, Shaper};
use crate::network::timer::Sleep;
use crate::sync::lock;

/// How much earlier than the network would have carried it a frame may be handed on. Nobody can
/// tell, because the answer waits for the last byte to have crossed, and it saves a wake-up for
/// every small frame.
const AHEAD: Duration = Duration::from_millis(2);

/// A body that several owners can go on reading: the handler, and after it the drain that lets a
/// refused client finish sending.
#[derive(Clone)]
pub(crate) struct RequestBody {
    shared: Arc<Mutex<Shared>>,
    size: SizeHint,
}

struct Shared {
    incoming: Incoming,
    meter: Arc<Meter>,
    shaper: Arc<Shaper>,
    connection: Arc<Connection>,
    /// The virtual moment at which the last frame had crossed the network.
    crossed: Instant,
    delayed: Option<(Sleep, Frame<Bytes>)>,
    touched: bool,
}

impl RequestBody {
    pub(crate) fn new(
        incoming: Incoming,
        meter: Arc<Meter>,
        shaper: Arc<Shaper>,
        connection: Arc<Connection>,
        arrived: Instant,
    ) -> Self {
        let size = incoming.size_hint();
        let shared = Shared {
            incoming,
            meter,
            shaper,
            connection,
            crossed: arrived,
            delayed: None,
            touched: false,
        };
        RequestBody {
            shared: Arc::new(Mutex::new(shared)),
            size,
        }
    }

    /// When the last byte that has been read has crossed the network; it may lie ahead.
    pub(crate) fn crossed(&self) -> Instant {
        lock(&self.shared).crossed
    }

    /// True if somebody has begun to read.
    pub(crate) fn touched(&self) -> bool {
        lock(&self.shared).touched
    }

    /// Reads and forgets the rest, so that the client can finish sending and read the answer.
    pub(crate) async fn drain(&self) {
        let mut rest = self.clone();
        while let Some(Ok(_)) =
            std::future::poll_fn(|context| Pin::new(&mut rest).poll_frame(context)).await
        {}
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let mut shared = lock(&self.shared);
        shared.touched = true;
        loop {
            if let Some((sleep, _)) = &mut shared.delayed {
                ready!(Pin::new(sleep).poll(context));
                return Poll::Ready(shared.delayed.take().map(|(_, frame)| Ok(frame)));
            }
            let Some(frame) = ready!(Pin::new(&mut shared.incoming).poll_frame(context)) else {
                return Poll::Ready(None);
            };
            let frame = frame.map_err(|error| Box::new(error) as StdError)?;
            let Some(length) = frame.data_ref().map(Bytes::len) else {
                return Poll::Ready(Some(Ok(frame)));
            };
            shared.meter.received(length);
            if !shared.shaper.limits_bandwidth() {
                shared.crossed = Instant::now();
                return Poll::Ready(Some(Ok(frame)));
            }
            let Shared {
                shaper,
                connection,
                crossed,
                ..
            } = &*shared;
            let end = shaper.reserve(connection.clock(), Direction::Up, *crossed, length);
            let early = end.checked_sub(AHEAD).unwrap_or(end);
            let sleep = (early > Instant::now()).then(|| shaper.sleep_until(early));
            shared.crossed = end;
            let Some(sleep) = sleep else {
                return Poll::Ready(Some(Ok(frame)));
            };
            shared.delayed = Some((sleep, frame));
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}
