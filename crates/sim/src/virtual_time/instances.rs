//! Instances of the function in virtual time: as `function::instances`, without a clock.

use std::collections::VecDeque;

use crate::function::FunctionModel;

#[derive(Debug)]
pub(super) struct Instances {
    most: u32,
    keep_warm: f64,
    busy: u32,
    /// Since when the idle ones are idle, in that order.
    idle: VecDeque<f64>,
}

impl Instances {
    /// So many run at the start.
    pub(super) fn new(function: &FunctionModel, warm: u32) -> Self {
        let warm = warm.min(function.max_concurrent);
        Instances {
            most: function.max_concurrent,
            keep_warm: function.keep_warm_seconds,
            busy: 0,
            idle: (0..warm).map(|_| 0.0).collect(),
        }
    }

    /// An instance for a call at `now`: true if it has to start; `None` if all are busy.
    pub(super) fn take(&mut self, now: f64) -> Option<bool> {
        if self.busy >= self.most {
            return None;
        }
        while self
            .idle
            .front()
            .is_some_and(|since| now - since > self.keep_warm)
        {
            self.idle.pop_front();
        }
        self.busy += 1;
        // The one that was busy last: so the others can grow old, as in the clouds.
        Some(self.idle.pop_back().is_none())
    }

    /// A call is done at `now`.
    pub(super) fn release(&mut self, now: f64) {
        self.busy = self.busy.saturating_sub(1);
        self.idle.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_used_again_until_they_are_too_old() {
        let function = FunctionModel {
            max_concurrent: 2,
            keep_warm_seconds: 100.0,
            ..FunctionModel::default()
        };
        let mut instances = Instances::new(&function, 1);
        assert_eq!(instances.take(0.0), Some(false));
        assert_eq!(instances.take(0.0), Some(true));
        assert_eq!(instances.take(0.0), None);
        instances.release(1.0);
        assert_eq!(instances.take(100.0), Some(false));
        instances.release(101.0);
        assert_eq!(instances.take(202.0), Some(true));
    }
}
