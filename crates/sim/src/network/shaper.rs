//! Turns bytes into deadlines: when would the last of these bytes have crossed the network?
//!
//! Each connection has a virtual clock per direction, and all connections share one timeline per
//! direction. A piece of a body reserves its slot on both, beginning at the virtual moment at
//! which the piece before it had crossed, and is handed on at the later end. Because the clocks
//! are virtual, a timer that wakes late does not slow the transfer down: the pieces after it are
//! due sooner. Pieces are small and one per connection is under way, so the shared timeline is
//! shared fairly.
//!
//! Invariant: over any stretch in which a connection (or all together) has data to send, it sends
//! its bandwidth times the length of the stretch, give or take one piece.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Network;
use super::limit::Limiter;
use super::timer::{Sleep, Timer};
use crate::sync::lock;

/// How far a virtual clock may fall behind the real one before time is lost for good. It covers
/// late timers and a busy machine, while a client that stops reading cannot save up bandwidth.
const PATIENCE: Duration = Duration::from_millis(50);

/// Largest and smallest piece of a shaped body.
const LARGEST_PIECE: usize = 64 << 10;
const SMALLEST_PIECE: usize = 16 << 10;

/// One network in action.
pub(crate) struct Shaper {
    network: Network,
    timer: Timer,
    total: [Mutex<Timeline>; 2],
    sending: AtomicUsize,
    limiter: Option<Limiter>,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the client to the store.
    Up,
    /// From the store to the client.
    Down,
}

/// The virtual clocks of one connection.
#[derive(Default)]
pub(crate) struct ConnectionClock {
    lines: [Mutex<Timeline>; 2],
}

#[derive(Default)]
struct Timeline {
    free_at: Option<Instant>,
}

impl Timeline {
    /// Reserves the time for `bytes` from `ready` on and returns its end.
    fn reserve(&mut self, ready: Instant, bytes: usize, bandwidth: f64) -> Instant {
        let start = self.free_at.map_or(ready, |free_at| free_at.max(ready));
        let end = start + Duration::from_secs_f64(bytes as f64 / bandwidth);
        self.free_at = Some(end);
        end
    }
}

impl Shaper {
    pub(crate) fn new(network: Network) -> Self {
        Shaper {
            limiter: network.rate_limit.clone().map(Limiter::new),
            network,
            timer: Timer::new(),
            total: Default::default(),
            sending: AtomicUsize::new(0),
        }
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    pub(crate) fn limiter(&self) -> Option<&Limiter> {
        self.limiter.as_ref()
    }

    /// True if bodies have to be cut into pieces and delayed.
    pub(crate) fn limits_bandwidth(&self) -> bool {
        self.network.connection_bandwidth.is_some() || self.network.total_bandwidth.is_some()
    }

    /// The first-byte latency of the `number`-th request.
    pub(crate) fn latency(&self, number: u64) -> Duration {
        self.network.latency.sample(self.network.seed, number)
    }

    /// How many bytes of a body to hand on at once: little enough that a small answer does not
    /// wait long behind the pieces of large ones.
    pub(crate) fn piece(&self) -> usize {
        const TURN_SECONDS: f64 = 0.01;
        let sending = self.sending.load(Ordering::Relaxed).max(1);
        match self.network.total_bandwidth {
            Some(total) => ((total * TURN_SECONDS / sending as f64) as usize)
                .clamp(SMALLEST_PIECE, LARGEST_PIECE),
            None => LARGEST_PIECE,
        }
    }

    /// When `bytes` that could start to cross at `ready` have crossed.
    pub(crate) fn reserve(
        &self,
        connection: &ConnectionClock,
        direction: Direction,
        ready: Instant,
        bytes: usize,
    ) -> Instant {
        let earliest = Instant::now().checked_sub(PATIENCE).unwrap_or(ready);
        let ready = ready.max(earliest);
        let mut end = ready;
        if let Some(bandwidth) = self.network.connection_bandwidth {
            let mut line = lock(&connection.lines[direction as usize]);
            end = end.max(line.reserve(ready, bytes, bandwidth));
        }
        if let Some(bandwidth) = self.network.total_bandwidth {
            end = end.max(lock(&self.total[direction as usize]).reserve(ready, bytes, bandwidth));
        }
        end
    }

    pub(crate) fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.timer.sleep_until(deadline)
    }

    pub(crate) fn begin_sending(&self) {
        self.sending.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_sending(&self) {
        self.sending.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(connection: Option<f64>, total: Option<f64>) -> Network {
        Network {
            connection_bandwidth: connection,
            total_bandwidth: total,
            ..Network::default()
        }
    }

    /// Sends `bytes` on each of `connections` in turn, piece by piece, and returns the end of
    /// the last piece in seconds after the start.
    fn send(shaper: &Shaper, connections: usize, bytes: usize) -> f64 {
        let start = Instant::now();
        let clocks: Vec<ConnectionClock> = (0..connections).map(|_| Default::default()).collect();
        let mut at = vec![start; connections];
        let piece = 50_000;
        for _ in 0..bytes / piece {
            for (clock, at) in clocks.iter().zip(&mut at) {
                *at = shaper.reserve(clock, Direction::Down, *at, piece);
            }
        }
        at.iter()
            .max()
            .map_or(0.0, |end| (*end - start).as_secs_f64())
    }

    #[test]
    fn one_connection_gets_its_own_bandwidth() {
        let seconds = send(&Shaper::new(network(Some(1e6), Some(4e6))), 1, 2_000_000);
        assert!((seconds - 2.0).abs() < 1e-3, "{seconds}");
    }

    #[test]
    fn many_connections_share_the_total_exactly() {
        let seconds = send(&Shaper::new(network(Some(1e6), Some(4e6))), 10, 2_000_000);
        assert!((seconds - 5.0).abs() < 0.02, "{seconds}");
    }

    #[test]
    fn an_idle_connection_saves_up_nothing_beyond_the_patience() {
        let shaper = Shaper::new(network(Some(1e6), None));
        let clock = ConnectionClock::default();
        let now = Instant::now();
        let Some(long_ago) = now.checked_sub(Duration::from_secs(10)) else {
            return;
        };
        let end = shaper.reserve(&clock, Direction::Down, long_ago, 1_000_000);
        assert!(end + PATIENCE >= now + Duration::from_secs(1));
    }

    #[test]
    fn directions_do_not_share() {
        let shaper = Shaper::new(network(Some(1e6), Some(1e6)));
        let clock = ConnectionClock::default();
        let now = Instant::now();
        let down = shaper.reserve(&clock, Direction::Down, now, 1_000_000);
        let up = shaper.reserve(&clock, Direction::Up, now, 1_000_000);
        assert_eq!(down, up);
    }

    #[test]
    fn pieces_shrink_when_many_send() {
        let shaper = Shaper::new(network(None, Some(125e6)));
        assert_eq!(shaper.piece(), LARGEST_PIECE);
        (0..50).for_each(|_| shaper.begin_sending());
        assert_eq!(shaper.piece(), 25_000);
        (0..500).for_each(|_| shaper.begin_sending());
        assert_eq!(shaper.piece(), SMALLEST_PIECE);
    }
}
