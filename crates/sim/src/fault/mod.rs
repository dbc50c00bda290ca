//! Faults on purpose: which requests fail, and how.
//!
//! A [`FaultPlan`] is plain data: rules, tried in order, of which the first that fires decides.
//! Everything is drawn from the plan's seed and the number of the request among those a rule
//! matches, so the same order of requests meets the same faults.

mod injector;

use hyperslab_index::{Error, Result};
use serde::{Deserialize, Serialize};

pub use injector::{FaultCounts, Faults};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The connection is reset before any answer; the request has no effect.
    ResetBeforeHeaders,
    /// The connection is reset after the headers of the answer; the request has its effect.
    ResetAfterHeaders,
    /// The connection closes after half of the body that Content-Length promised. Answers
    /// without a body are left alone.
    TruncatedBody,
    /// No answer until the client gives up or [`FaultPlan::hang_seconds`] have passed; the
    /// request has no effect.
    Hang,
    /// 500 InternalError; the request has no effect.
    InternalError,
    /// 503 SlowDown; the request has no effect.
    SlowDown,
    /// The connection is reset after a write has taken effect. Reads are left alone.
    LostResponse,
}

/// When a rule fires, among the requests that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Each time with this probability.
    Probability(f64),
    /// At this one, counted from 1.
    Nth(u64),
    /// At each of the first so many.
    First(u64),
    /// At every so-manieth.
    Every(u64),
}

/// One way of failing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// What goes wrong.
    pub kind: FaultKind,
    /// When.
    pub trigger: Trigger,
    /// Only these HTTP methods; empty for all.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Only requests whose `bucket/key` matches, where `*` stands for any run of characters;
    /// `None` for all.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// All rules, the seed and how long a hang lasts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultPlan {
    /// Tried in order; the first that fires decides.
    pub rules: Vec<FaultRule>,
    /// Seed of the probabilities.
    pub seed: u64,
    /// How long a [`FaultKind::Hang`] lasts at most.
    pub hang_seconds: f64,
}

impl Default for FaultPlan {
    fn default() -> Self {
        FaultPlan {
            rules: Vec::new(),
            seed: 0,
            hang_seconds: 60.0,
        }
    }
}

impl FaultRule {
    /// A rule for all methods and keys.
    pub fn new(kind: FaultKind, trigger: Trigger) -> Self {
        FaultRule {
            kind,
            trigger,
            methods: Vec::new(),
            pattern: None,
        }
    }

    /// Restricts the rule to an HTTP method; call again for more.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.methods.push(method.to_string());
        self
    }

    /// Restricts the rule to requests whose `bucket/key` matches the pattern.
    #[must_use]
    pub fn pattern(mut self, pattern: &str) -> Self {
        self.pattern = Some(pattern.to_string());
        self
    }
}

impl FaultPlan {
    /// A plan of these rules.
    pub fn of(rules: impl IntoIterator<Item = FaultRule>) -> Self {
        FaultPlan {
            rules: rules.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Checks that every number makes sense.
    pub fn validate(&self) -> Result<()> {
        const LONGEST_HANG: f64 = 3600.0;
        if !(0.0..=LONGEST_HANG).contains(&self.hang_seconds) {
            return Err(Error::invalid(format!(
                "a hang of {} seconds is outside 0 to {LONGEST_HANG}",
                self.hang_seconds
            )));
        }
        for rule in &self.rules {
            let sane = match rule.trigger {
                Trigger::Probability(p) => (0.0..=1.0).contains(&p),
                Trigger::Nth(n) | Trigger::First(n) | Trigger::Every(n) => n > 0,
            };
            if !sane {
                return Err(Error::invalid(format!(
                    "a fault cannot be triggered by {:?}",
                    rule.trigger
                ))
                .with_hint("probabilities are 0 to 1, and requests are counted from 1"));
            }
        }
        Ok(())
    }
}
