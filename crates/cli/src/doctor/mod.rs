//! The checks behind `hyperslab doctor`, and the list of what they found.
//!
//! [`settings`] looks at the environment, [`endpoint`] at the network, [`clock`] at the server's
//! clock and [`requests`] at what the store allows.
//!
//! Invariant: names of settings are shown, never their values.

pub(crate) mod clock;
pub(crate) mod endpoint;
pub(crate) mod requests;
pub(crate) mod settings;

use hyperslab::Error;
use serde_json::{Value, json};

use crate::report::one_line;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Passed,
    Failed,
    /// It does not apply, or an earlier failure leaves nothing to look at.
    Skipped,
}

impl Status {
    fn mark(self) -> &'static str {
        match self {
            Status::Passed => "✓",
            Status::Failed => "✗",
            Status::Skipped => "–",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// One check.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) status: Status,
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
}

impl Step {
    pub(crate) fn passed(name: &'static str, detail: impl Into<String>) -> Self {
        Step {
            name,
            status: Status::Passed,
            detail: detail.into(),
            hint: None,
        }
    }

    pub(crate) fn skipped(name: &'static str, detail: impl Into<String>) -> Self {
        Step {
            name,
            status: Status::Skipped,
            detail: detail.into(),
            hint: None,
        }
    }

    pub(crate) fn failed(name: &'static str, detail: impl Into<String>, hint: &str) -> Self {
        Step {
            name,
            status: Status::Failed,
            detail: detail.into(),
            hint: Some(hint.to_owned()),
        }
    }

    pub(crate) fn error(name: &'static str, error: &Error) -> Self {
        Step {
            name,
            status: Status::Failed,
            detail: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
        }
    }

    /// The step as lines of text.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{} {}: {}",
            self.status.mark(),
            self.name,
            one_line(&self.detail)
        );
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n    hint: {}", one_line(hint)));
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        json!({"check": self.name, "status": self.status.word(), "detail": self.detail, "hint": self.hint})
    }
}

/// One sentence that says what is wrong, if anything is.
pub(crate) fn verdict(steps: &[Step]) -> String {
    let mut failed = steps.iter().filter(|step| step.status == Status::Failed);
    match failed.next() {
        None => "All is well.".to_owned(),
        Some(step) => {
            let more = match failed.count() {
                0 => String::new(),
                1 => " (and one more check failed)".to_owned(),
                many => format!(" (and {many} more checks failed)"),
            };
            format!(
                "The check \"{}\" failed: {}{more}.",
                step.name,
                one_line(&step.detail)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_names_the_first_failure() {
        let mut steps = vec![Step::passed("a", "x"), Step::skipped("b", "y")];
        assert_eq!(verdict(&steps), "All is well.");
        steps.push(Step::failed("c", "it broke", "mend it"));
        assert_eq!(verdict(&steps), "The check \"c\" failed: it broke.");
        steps.push(Step::failed("d", "too", ""));
        assert!(verdict(&steps).contains("one more"));
        assert_eq!(steps[2].text(), "✗ c: it broke\n    hint: mend it");
    }
}
