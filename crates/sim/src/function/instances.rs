//! Which calls find an instance running, and which have to start one.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::FunctionModel;
use crate::sync::lock;

/// The instances of a function, each of which answers one call at a time.
pub(crate) struct Instances {
    most: u32,
    keep_warm: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    busy: u32,
    /// Since when the idle ones are idle, in that order.
    idle: Vec<Instant>,
}

/// An instance that answers a call; idle again when dropped.
pub(crate) struct Instance {
    instances: Arc<Instances>,
    /// It had to be started for this call.
    pub(crate) cold: bool,
}

impl Instances {
    pub(crate) fn new(model: &FunctionModel) -> Self {
        Instances {
            most: model.max_concurrent,
            keep_warm: model.keep_warm(),
            state: Mutex::default(),
        }
    }

    /// An instance for a call at `now`; `None` if as many as allowed are busy.
    pub(crate) fn take(self: &Arc<Self>, now: Instant) -> Option<Instance> {
        let mut state = lock(&self.state);
        if state.busy >= self.most {
            return None;
        }
        let keep_warm = self.keep_warm;
        state
            .idle
            .retain(|since| now.saturating_duration_since(*since) <= keep_warm);
        // The one that was busy last: so the others can grow old, as in the clouds.
        let cold = state.idle.pop().is_none();
        state.busy += 1;
        Some(Instance {
            instances: Arc::clone(self),
            cold,
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let mut state = lock(&self.instances.state);
        state.busy -= 1;
        state.idle.push(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instances(most: u32) -> Arc<Instances> {
        Arc::new(Instances::new(&FunctionModel {
            max_concurrent: most,
            keep_warm_seconds: 100.0,
            ..FunctionModel::default()
        }))
    }

    #[test]
    fn an_idle_instance_is_used_again_until_it_is_too_old() {
        let (all, now) = (instances(10), Instant::now());
        let first = all.take(now).unwrap();
        let second = all.take(now).unwrap();
        assert!(first.cold && second.cold);
        drop(first);
        assert!(!all.take(now).unwrap().cold);
        let later = Instant::now() + Duration::from_secs(101);
        assert!(all.take(later).unwrap().cold);
    }

    #[test]
    fn no_more_run_than_allowed() {
        let (all, now) = (instances(2), Instant::now());
        let both = (all.take(now).unwrap(), all.take(now).unwrap());
        assert!(all.take(now).is_none());
        drop(both);
        assert!(all.take(now).is_some());
    }
}
