//! What tells one state of an object from another: its ETag or, where a server has none, the time of
//! its last change together with its size.
//!
//! Between the rest of this crate, which knows ETags only, and HTTP. A tag that is made here is turned
//! into conditions on time when it goes to the server, and what comes back is compared with it, since
//! servers may ignore such conditions.

use chrono::{DateTime, Utc};
use object_store::{GetOptions, ObjectMeta};

use crate::{Get, Meta};

/// How the tags that are made here begin.
const MADE: &str = "unmodified-since-";
/// The time of a change says nothing if the object was read so soon after: it has whole seconds.
const SETTLED: i64 = 2;

/// What a server said of an object.
pub(super) fn meta(found: &ObjectMeta) -> Meta {
    let modified = found.last_modified;
    let millis = modified.timestamp_millis();
    Meta {
        size: found.size,
        etag: found
            .e_tag
            .clone()
            .or_else(|| made(modified, found.size, Utc::now())),
        modified_ms: (millis != 0).then_some(millis),
    }
}

/// The tag of an object that has none; also none if it may change again without a change of its time.
fn made(modified: DateTime<Utc>, size: u64, now: DateTime<Utc>) -> Option<String> {
    let seconds = modified.timestamp();
    let settled = seconds != 0 && now.timestamp() - seconds >= SETTLED;
    settled.then(|| format!("{MADE}{seconds}-{size}"))
}

/// The time in a tag that was made here.
fn time(tag: &str) -> Option<DateTime<Utc>> {
    let (seconds, _) = tag.strip_prefix(MADE)?.split_once('-')?;
    DateTime::from_timestamp(seconds.parse().ok()?, 0)
}

/// The conditions of a read as HTTP has them.
pub(super) fn conditions(options: &Get) -> GetOptions {
    let (mut sent, tags) = (GetOptions::default(), options.clone());
    match tags.if_match.as_deref().and_then(time) {
        Some(time) => sent.if_unmodified_since = Some(time),
        None => sent.if_match = tags.if_match,
    }
    match tags.if_none_match.as_deref().and_then(time) {
        Some(time) => sent.if_modified_since = Some(time),
        None => sent.if_none_match = tags.if_none_match,
    }
    sent
}

/// True if what came is in another state than what was asked for; the server may have overlooked it.
pub(super) fn is_other(options: &Get, came: &Meta) -> bool {
    let asked = options.if_match.as_deref();
    asked.is_some_and(|tag| time(tag).is_some() && came.etag.as_deref() != Some(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn objects_without_etag_are_told_apart_by_time_and_size() {
        let tag = made(at(1000), 7, at(5000)).unwrap();
        assert_eq!(time(&tag), Some(at(1000)));
        assert_ne!(Some(&tag), made(at(1001), 7, at(5000)).as_ref());
        assert_ne!(Some(&tag), made(at(1000), 8, at(5000)).as_ref());
        assert_eq!(Some(tag), made(at(1000), 7, at(9000)));
    }

    #[test]
    fn times_that_say_nothing_make_no_tag() {
        assert_eq!(made(at(5000), 7, at(5001)), None);
        assert_eq!(made(at(0), 7, at(5000)), None);
        assert_eq!(time("\"0x8DD\""), None);
        assert_eq!(time("unmodified-since-x-7"), None);
    }

    #[test]
    fn conditions_are_those_that_the_server_understands() {
        let tag = made(at(1000), 7, at(5000));
        let sent = conditions(&Get {
            if_match: tag.clone(),
            if_none_match: Some("\"e\"".into()),
            range: None,
        });
        assert_eq!(
            (sent.if_unmodified_since, sent.if_match),
            (Some(at(1000)), None)
        );
        assert_eq!(sent.if_none_match.as_deref(), Some("\"e\""));
        let sent = conditions(&Get {
            if_none_match: tag,
            ..Get::default()
        });
        assert_eq!(sent.if_modified_since, Some(at(1000)));
        assert_eq!((sent.if_match, sent.if_none_match), (None, None));
    }
}
