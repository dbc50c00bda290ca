//! Repetitions beyond a request's own, earned by the requests that succeed.
//!
//! One request in a hundred thousand fails four times in a row where one in twenty fails, so a read
//! of a few thousand objects would fail now and then although its store is well. A store that is
//! down, on the other hand, must not be asked more often than each request's own repetitions allow.
//! So successes earn credit and every further repetition costs some of it: about one for [`COST`]
//! successes in the long run, and at most [`FULL`] ÷ [`COST`] from the moment when all fails.

use std::sync::atomic::{AtomicU32, Ordering};

/// What one further repetition costs; a success earns 1.
const COST: u32 = 10;
/// The most that is kept.
const FULL: u32 = 200;

/// The credit of one store.
#[derive(Debug, Default)]
pub(super) struct Credit(AtomicU32);

impl Credit {
    /// A request has succeeded.
    pub(super) fn earn(&self) {
        let more = |held: u32| (held < FULL).then_some(held + 1);
        // Refused only where there is no room for more.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// Takes the price of one repetition, if there is so much.
    pub(super) fn spend(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_sub(COST)
            })
            .is_ok()
    }
}
