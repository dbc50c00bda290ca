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
    /// The virtual moment at which the last piece had crossed the network.
    crossed: Instant,
    /// When the last frame came from the client, who may be slower than the network.
    came: Instant,
    /// What has come and the network has not yet carried.
    rest: Bytes,
    delayed: Option<(Sleep, Bytes)>,
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
            came: arrived,
            rest: Bytes::new(),
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
        let shared = lock(&self.shared);
        shared.crossed.max(shared.came)
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

impl Shared {
    /// Sends one piece on its way: returned if it may be handed on now, else left to wait. Pieces
    /// are of one size for all connections, or the total bandwidth would not be shared evenly.
    fn carry(&mut self) -> Option<Bytes> {
        let length = self.rest.len().min(self.shaper.piece());
        let piece = self.rest.split_to(length);
        let clock = self.connection.clock();
        self.crossed = self
            .shaper
            .reserve(clock, Direction::Up, self.crossed, length);
        let early = self.crossed.checked_sub(AHEAD).unwrap_or(self.crossed);
        if early <= Instant::now() {
            return Some(piece);
        }
        self.delayed = Some((self.shaper.sleep_until(early), piece));
        None
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
                let piece = shared.delayed.take().map(|(_, piece)| piece);
                return Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))));
            }
            if !shared.rest.is_empty() {
                if let Some(piece) = shared.carry() {
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                continue;
            }
            let Some(frame) = ready!(Pin::new(&mut shared.incoming).poll_frame(context)) else {
                return Poll::Ready(None);
            };
            shared.came = Instant::now();
            match frame
                .map_err(|error| Box::new(error) as StdError)?
                .into_data()
            {
                Ok(data) => {
                    shared.meter.received(data.len());
                    if !shared.shaper.limits_bandwidth() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                    shared.rest = data;
                }
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}
