//! Token buckets that refuse requests above a rate, one per storage bucket or key prefix.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use super::{RateLimit, RateScope};
use crate::sync::lock;

/// The token buckets of one [`RateLimit`].
pub(crate) struct Limiter {
    limit: RateLimit,
    tokens: Mutex<HashMap<String, Tokens>>,
}

struct Tokens {
    left: f64,
    counted_at: Instant,
}

impl Limiter {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Limiter {
            limit,
            tokens: Mutex::default(),
        }
    }

    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        self.limit.retry_after_seconds
    }

    /// Takes a token for a request at `now`; false means that there was none.
    pub(crate) fn admit(&self, bucket: &str, key: &str, write: bool, now: Instant) -> bool {
        let rate = if write {
            self.limit.writes_per_second
        } else {
            self.limit.reads_per_second
        };
        let Some(rate) = rate else { return true };
        let name = scope_name(self.limit.scope, bucket, key, write);
        let mut all = lock(&self.tokens);
        let tokens = all.entry(name).or_insert_with(|| Tokens {
            left: self.limit.burst,
            counted_at: now,
        });
        let earned = now
            .saturating_duration_since(tokens.counted_at)
            .as_secs_f64()
            * rate;
        tokens.left = (tokens.left + earned).min(self.limit.burst);
        tokens.counted_at = now;
        let admitted = tokens.left >= 1.0;
        if admitted {
            tokens.left -= 1.0;
        }
        admitted
    }
}

fn scope_name(scope: RateScope, bucket: &str, key: &str, write: bool) -> String {
    let depth = match scope {
        RateScope::Bucket => 0,
        RateScope::Prefix(depth) => depth,
    };
    // The last component names the object itself and is no prefix.
    let folder = key.rfind('/').map_or("", |at| &key[..at]);
    let end = folder
        .match_indices('/')
        .nth(depth.saturating_sub(1))
        .map_or(folder.len(), |(at, _)| at);
    let prefix = if depth == 0 { "" } else { &folder[..end] };
    format!("{}{bucket}/{prefix}", if write { 'w' } else { 'r' })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn limiter(scope: RateScope) -> Limiter {
        Limiter::new(RateLimit {
            reads_per_second: Some(10.0),
            writes_per_second: None,
            burst: 5.0,
            scope,
            retry_after_seconds: None,
        })
    }

    #[test]
    fn the_burst_then_the_rate() {
        let limiter = limiter(RateScope::Bucket);
        let start = Instant::now();
        let mut admitted = 0;
        for step in 0..=200 {
            let now = start + Duration::from_millis(step * 10);
            admitted += usize::from(limiter.admit("b", "k", false, now));
        }
        // Five at once and ten in each of two seconds; the last token may be a rounding away.
        assert!((24..=25).contains(&admitted), "{admitted}");
    }

    #[test]
    fn scopes_and_kinds_are_apart() {
        let limiter = limiter(RateScope::Prefix(1));
        let now = Instant::now();
        let spend = |key: &str| {
            (0..9)
                .filter(|_| limiter.admit("b", key, false, now))
                .count()
        };
        assert_eq!(spend("a/1/x"), 5);
        assert_eq!(spend("a/2/y"), 0, "the same first component");
        assert_eq!(spend("b/1/x"), 5);
        assert!(
            limiter.admit("b", "a/1/x", true, now),
            "writes are without limit"
        );
    }

    #[test]
    fn prefix_names() {
        let name = |depth, key| scope_name(RateScope::Prefix(depth), "b", key, false);
        assert_eq!(name(2, "a/b/c/d"), "rb/a/b");
        assert_eq!(name(1, "a/b/c/d"), "rb/a");
        assert_eq!(name(3, "a/b"), "rb/a");
        assert_eq!(name(1, "a"), "rb/");
        assert_eq!(scope_name(RateScope::Bucket, "b", "a/b", true), "wb/");
    }
}
