//! The rate limit in virtual time: a request above it waits for its token.
//!
//! The objects of one query lie below one prefix, so all requests share one bucket of tokens,
//! whatever the limit's scope.

use crate::network::Network;

#[derive(Debug)]
pub(super) struct Tokens {
    rate: f64,
    burst: f64,
    /// Below zero, requests wait.
    left: f64,
    counted_at: f64,
}

impl Tokens {
    /// The tokens of reads, if they are limited.
    pub(super) fn new(network: &Network) -> Option<Self> {
        let limit = network.rate_limit.as_ref()?;
        Some(Tokens {
            rate: limit.reads_per_second?,
            burst: limit.burst,
            left: limit.burst,
            counted_at: 0.0,
        })
    }

    /// Takes a token for a request that arrives at `now`; returns when there is one.
    pub(super) fn admit(&mut self, now: f64) -> f64 {
        let earned = (now - self.counted_at) * self.rate;
        self.left = (self.left + earned).min(self.burst) - 1.0;
        self.counted_at = now;
        now + (-self.left).max(0.0) / self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{RateLimit, RateScope};

    #[test]
    fn the_burst_then_the_rate() {
        let mut tokens = Tokens::new(&Network {
            rate_limit: Some(RateLimit {
                reads_per_second: Some(10.0),
                writes_per_second: None,
                burst: 5.0,
                scope: RateScope::Bucket,
                retry_after_seconds: None,
            }),
            ..Network::default()
        })
        .unwrap();
        let admitted: Vec<f64> = (0..7).map(|_| tokens.admit(0.0)).collect();
        assert_eq!(admitted, [0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2]);
        // Two tokens were owed; a long rest fills the bucket, but not over its brim.
        assert_eq!(tokens.admit(0.3), 0.3);
        let later: Vec<f64> = (0..6).map(|_| tokens.admit(100.0)).collect();
        assert_eq!(later[4], 100.0);
        assert!((later[5] - 100.1).abs() < 1e-9);
    }
}
