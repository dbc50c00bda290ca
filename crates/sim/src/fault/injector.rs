//! Decides which request meets which fault, and counts.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use hyperslab_index::Result;

use super::{FaultKind, FaultPlan, FaultRule, Trigger};
use crate::network::seeded;
use crate::sync::lock;
use crate::text::glob_matches;

/// Injected faults by kind.
pub type FaultCounts = BTreeMap<FaultKind, u64>;

/// The fault plan of a running simulator, which can be changed at any time.
#[derive(Default)]
pub struct Faults {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plan: FaultPlan,
    /// How many requests each rule has matched.
    matched: Vec<u64>,
    injected: FaultCounts,
}

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Result<Self> {
        let faults = Faults::default();
        faults.set(plan)?;
        Ok(faults)
    }

    /// Replaces the plan; its rules start to count anew. Counts of injected faults go on.
    pub fn set(&self, plan: FaultPlan) -> Result<()> {
        plan.validate()?;
        let mut state = lock(&self.state);
        state.matched = vec![0; plan.rules.len()];
        state.plan = plan;
        Ok(())
    }

    /// No faults from now on.
    pub fn clear(&self) {
        let mut state = lock(&self.state);
        state.plan = FaultPlan::default();
        state.matched.clear();
    }

    /// The present plan.
    pub fn plan(&self) -> FaultPlan {
        lock(&self.state).plan.clone()
    }

    /// How many faults have been injected, by kind.
    pub fn counts(&self) -> FaultCounts {
        lock(&self.state).injected.clone()
    }

    /// Forgets the counts of injected faults.
    pub fn reset_counts(&self) {
        lock(&self.state).injected.clear();
    }

    pub(crate) fn hang(&self) -> Duration {
        Duration::try_from_secs_f64(lock(&self.state).plan.hang_seconds).unwrap_or_default()
    }

    /// The fault that a request meets. It is counted by [`Faults::injected`], once it happens.
    pub(crate) fn decide(&self, method: &str, target: &str, writes: bool) -> Option<FaultKind> {
        let mut state = lock(&self.state);
        let State { plan, matched, .. } = &mut *state;
        for (index, (rule, count)) in plan.rules.iter().zip(matched).enumerate() {
            let possible = rule.kind != FaultKind::LostResponse || writes;
            if possible && rule.matches(method, target) {
                *count += 1;
                if rule.trigger.fires(plan.seed, index as u64, *count) {
                    return Some(rule.kind);
                }
            }
        }
        None
    }

    pub(crate) fn injected(&self, kind: FaultKind) {
        *lock(&self.state).injected.entry(kind).or_default() += 1;
    }
}

impl FaultRule {
    fn matches(&self, method: &str, target: &str) -> bool {
        let method_matches =
            self.methods.is_empty() || self.methods.iter().any(|m| m.eq_ignore_ascii_case(method));
        method_matches
            && self
                .pattern
                .as_deref()
                .is_none_or(|pattern| glob_matches(pattern, target))
    }
}

impl Trigger {
    /// Whether it fires at the `count`-th matching request.
    fn fires(self, seed: u64, rule: u64, count: u64) -> bool {
        /// Apart from the purpose of the latencies.
        const PURPOSE: u64 = 1 << 32;
        match self {
            Trigger::Probability(p) => seeded::uniform(seed, PURPOSE + rule, count) < p,
            Trigger::Nth(nth) => count == nth,
            Trigger::First(first) => count <= first,
            Trigger::Every(every) => count.is_multiple_of(every),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(rule: FaultRule, requests: &[(&str, &str)]) -> Vec<usize> {
        let faults = Faults::new(FaultPlan::of([rule])).unwrap();
        let decide = |(method, target): &(&str, &str)| {
            faults.decide(method, target, *method == "PUT").is_some()
        };
        requests
            .iter()
            .enumerate()
            .filter(|(_, r)| decide(r))
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn triggers_count_only_what_matches() {
        let requests = [
            ("GET", "b/x"),
            ("PUT", "b/a/1"),
            ("GET", "b/a/2"),
            ("GET", "b/a/3"),
            ("GET", "b/a/4"),
        ];
        let rule = |trigger| {
            FaultRule::new(FaultKind::SlowDown, trigger)
                .method("get")
                .pattern("b/a/*")
        };
        assert_eq!(fired(rule(Trigger::Nth(2)), &requests), [3]);
        assert_eq!(fired(rule(Trigger::First(2)), &requests), [2, 3]);
        assert_eq!(fired(rule(Trigger::Every(2)), &requests), [3]);
        assert_eq!(fired(rule(Trigger::Probability(1.0)), &requests), [2, 3, 4]);
        assert!(fired(rule(Trigger::Probability(0.0)), &requests).is_empty());
        let lost = FaultRule::new(FaultKind::LostResponse, Trigger::Nth(1));
        assert_eq!(
            fired(lost, &requests),
            [1],
            "only writes can lose their answer"
        );
    }

    #[test]
    fn probabilities_are_seeded() {
        let draw = |seed| {
            let rule = FaultRule::new(FaultKind::SlowDown, Trigger::Probability(0.3));
            let faults = Faults::new(FaultPlan {
                seed,
                ..FaultPlan::of([rule])
            })
            .unwrap();
            (0..2000)
                .map(|_| faults.decide("GET", "b/k", false).is_some())
                .collect::<Vec<bool>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let hits = draw(1).into_iter().filter(|hit| *hit).count();
        assert!((520..680).contains(&hits), "{hits}");
    }

    #[test]
    fn nonsense_is_refused() {
        let plan = |trigger| FaultPlan::of([FaultRule::new(FaultKind::Hang, trigger)]);
        assert!(plan(Trigger::Probability(1.5)).validate().is_err());
        assert!(plan(Trigger::Every(0)).validate().is_err());
        assert!(
            FaultPlan {
                hang_seconds: -1.0,
                ..FaultPlan::default()
            }
            .validate()
            .is_err()
        );
    }
}
