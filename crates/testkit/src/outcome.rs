//! How a suite says that a promise was broken.
//!
//! Suites are library code, which does not panic: a difference is a value that a test turns into a
//! panic, and a program into a line of its table.

use std::fmt;

use hyperslab_index::{Error, ErrorKind};

/// What a suite found wrong: text for people.
pub struct Failure(String);

/// What a check returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Failure(text.into())
    }

    /// Puts what was being checked before the text.
    #[must_use]
    pub fn within(self, what: impl fmt::Display) -> Self {
        Failure(format!("{what}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Any error that a suite did not expect is a failure.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(format!("{error:?}"))
    }
}

/// Fails with `what` unless `holds`.
pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds {
        Ok(())
    } else {
        Err(Failure::new(what()))
    }
}

/// Fails unless both are equal, and shows them.
pub fn same<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    ensure(found == expected, || {
        format!("{what}: found {found:?}, expected {expected:?}")
    })
}

/// Fails unless the result is an error of this kind; returns the error.
pub fn fails<T>(what: &str, result: hyperslab_index::Result<T>, kind: ErrorKind) -> Outcome<Error> {
    match result {
        Ok(_) => Err(Failure::new(format!(
            "{what}: succeeded, expected {}",
            kind.as_str()
        ))),
        Err(e) if e.kind() != kind => Err(Failure::new(format!(
            "{what}: expected {}, found {e:?}",
            kind.as_str()
        ))),
        Err(e) => Ok(e),
    }
}

/// Runs a check and names it in its failure.
pub async fn within(what: impl fmt::Display, check: impl Future<Output = Outcome>) -> Outcome {
    check.await.map_err(|failure| failure.within(what))
}

/// Joins the failures of several checks, so that a suite names every broken promise at once.
pub fn all(checks: impl IntoIterator<Item = Outcome>) -> Outcome {
    let broken: Vec<String> = checks
        .into_iter()
        .filter_map(|check| check.err().map(|failure| failure.to_string()))
        .collect();
    ensure(broken.is_empty(), || broken.join("\n"))
}

/// Runs a suite to its end on the facade's runtime, from a thread that is not part of one.
pub fn run<T>(suite: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    hyperslab::handle()?.block_on(suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_named() {
        assert!(all([Ok(()), Ok(())]).is_ok());
        let failure =
            all([Err(Failure::new("one")), Ok(()), Err(Failure::new("two"))]).unwrap_err();
        assert_eq!(failure.to_string(), "one\ntwo");
    }
}
