//! Conditions of writes, checked under the lock of the key map.

use super::{Entry, Refused};

/// What must hold of the present object for a write to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    Always,
    /// `If-None-Match: *`, or generation 0.
    Absent,
    /// `If-Match: *`.
    Present,
    /// `If-Match` with an ETag, without quotes.
    Etag(String),
    /// `x-goog-if-generation-match` with a number other than 0.
    Generation(u64),
}

impl Condition {
    /// Refuses if the condition does not hold. S3 answers an `If-Match` on an absent key with
    /// 404, Google a generation on an absent key with 412.
    pub(crate) fn check(&self, present: Option<&Entry>) -> Result<(), Refused> {
        let holds = match (self, present) {
            (Condition::Always, _) => true,
            (Condition::Absent, present) => present.is_none(),
            (Condition::Present | Condition::Etag(_), None) => return Err(Refused::NoSuchKey),
            (Condition::Present, Some(_)) => true,
            (Condition::Etag(etag), Some(entry)) => entry.etag == *etag,
            (Condition::Generation(generation), present) => {
                present.is_some_and(|entry| entry.generation == *generation)
            }
        };
        if holds {
            Ok(())
        } else {
            Err(Refused::PreconditionFailed)
        }
    }
}
