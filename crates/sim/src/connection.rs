//! What one client connection carries from request to request.

use std::sync::Arc;

use crate::network::shaper::ConnectionClock;
use crate::wire::WireControl;

/// A connection: its wire, and its place on the timelines of the network.
#[derive(Default)]
pub(crate) struct Connection {
    wire: Arc<WireControl>,
    clock: ConnectionClock,
}

impl Connection {
    pub(crate) fn wire(&self) -> &Arc<WireControl> {
        &self.wire
    }

    pub(crate) fn clock(&self) -> &ConnectionClock {
        &self.clock
    }
}
