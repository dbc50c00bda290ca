//! Bodies that share the bandwidth: each at most at the speed of a connection, all together at
//! most at the total, max-min fair as the shaper's timelines have it.
//!
//! All flows have the same limit, so at any moment all have the same rate, and one number is
//! enough: the bytes that a flow would have received since the beginning. A flow ends when that
//! number has grown by its length, which is known when it starts. No event touches more than one
//! flow.
//!
//! Invariant: the rate of n flows is min(connection, total ÷ n).

use super::schedule::Schedule;
use crate::network::Network;

/// Flows under way; each ends with something of type `T`.
#[derive(Debug)]
pub(super) struct Sharing<T> {
    connection: f64,
    total: f64,
    /// Bytes that each flow has received which was there from the beginning, at the moment `at`.
    received: f64,
    at: f64,
    /// Flows by what `received` is at their end.
    flows: Schedule<T>,
}

impl<T> Sharing<T> {
    pub(super) fn new(network: &Network) -> Self {
        Sharing {
            connection: network.connection_bandwidth.unwrap_or(f64::INFINITY),
            total: network.total_bandwidth.unwrap_or(f64::INFINITY),
            received: 0.0,
            at: 0.0,
            flows: Schedule::default(),
        }
    }

    fn rate(&self) -> f64 {
        self.connection.min(self.total / self.flows.len() as f64)
    }

    /// A flow of so many bytes begins.
    pub(super) fn start(&mut self, now: f64, bytes: u64, what: T) {
        self.advance(now);
        self.flows.add(self.received + bytes as f64, what);
    }

    /// When the next flow ends, if none begins before.
    pub(super) fn next_end(&self) -> Option<f64> {
        let left = (self.flows.next_at()? - self.received).max(0.0);
        Some(self.at + left / self.rate())
    }

    /// Takes the flow that ends next, at the moment that [`Sharing::next_end`] says.
    pub(super) fn end(&mut self) -> Option<(f64, T)> {
        let now = self.next_end()?;
        let (received, what) = self.flows.take()?;
        // Exactly, and not by a sum that rounds.
        self.received = self.received.max(received);
        self.at = now;
        Some((now, what))
    }

    fn advance(&mut self, now: f64) {
        if self.flows.is_empty() {
            // So that the number stays small and precise.
            self.received = 0.0;
        } else if now > self.at && self.rate().is_finite() {
            self.received += self.rate() * (now - self.at);
        }
        self.at = now.max(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::seeded::uniform;

    fn network(connection: f64, total: f64) -> Network {
        Network {
            connection_bandwidth: Some(connection),
            total_bandwidth: Some(total),
            ..Network::default()
        }
    }

    /// The ends of flows (start, bytes), which are sorted by their start.
    fn ends(network: &Network, flows: &[(f64, u64)]) -> Vec<f64> {
        let mut sharing = Sharing::new(network);
        let mut ends = vec![0.0; flows.len()];
        for (i, (start, bytes)) in flows.iter().enumerate() {
            while sharing.next_end().is_some_and(|end| end <= *start) {
                let (end, which): (f64, usize) = sharing.end().unwrap();
                ends[which] = end;
            }
            sharing.start(*start, *bytes, i);
        }
        while let Some((end, which)) = sharing.end() {
            ends[which] = end;
        }
        ends
    }

    /// Naive: looks at every flow at every event.
    fn naive(connection: f64, total: f64, flows: &[(f64, u64)]) -> Vec<f64> {
        let mut left: Vec<f64> = flows.iter().map(|(_, bytes)| *bytes as f64).collect();
        let mut ends = vec![f64::NAN; flows.len()];
        let mut now = 0.0;
        while ends.iter().any(|end| end.is_nan()) {
            let active = |i: &usize| flows[*i].0 <= now && ends[*i].is_nan();
            let flowing: Vec<usize> = (0..flows.len()).filter(active).collect();
            let rate = connection.min(total / flowing.len().max(1) as f64);
            let first_end = flowing.iter().map(|i| now + left[*i] / rate);
            let next_start = flows.iter().map(|flow| flow.0).filter(|at| *at > now);
            let next = first_end.chain(next_start).fold(f64::INFINITY, f64::min);
            for i in flowing {
                left[i] -= rate * (next - now);
                if left[i] < 1e-6 {
                    ends[i] = next;
                }
            }
            now = next;
        }
        ends
    }

    #[test]
    fn two_flows_share_until_one_ends() {
        // Five each until the first has its ten, then the second alone at eight.
        let ends = ends(&network(8.0, 10.0), &[(0.0, 10), (0.0, 20)]);
        assert_eq!(ends, [2.0, 3.25]);
    }

    #[test]
    fn flows_end_as_in_the_naive_model() {
        for seed in 0..200 {
            let draw = |purpose, i| uniform(seed, purpose, i);
            let mut flows: Vec<(f64, u64)> = (0..1 + seed % 20)
                .map(|i| (draw(1, i), (draw(2, i) * 1000.0) as u64 + 1))
                .collect();
            flows.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (connection, total) = (50.0 + 2000.0 * draw(3, 0), 50.0 + 5000.0 * draw(4, 0));
            let fast = ends(&network(connection, total), &flows);
            let slow = naive(connection, total, &flows);
            for (fast, slow) in fast.iter().zip(&slow) {
                assert!((fast - slow).abs() < 1e-6, "{seed}: {fast} {slow}");
            }
        }
    }

    #[test]
    fn without_limits_a_body_takes_no_time() {
        let ends = ends(&Network::unshaped(), &[(1.0, 1 << 40), (1.0, 0), (2.0, 7)]);
        assert_eq!(ends, [1.0, 1.0, 2.0]);
    }
}
