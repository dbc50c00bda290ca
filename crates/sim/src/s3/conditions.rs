//! Conditions and ranges of requests, as S3 and RFC 9110 have them.

use std::ops::Range as Bytes;

use http::{HeaderMap, HeaderValue, header};
use s3s::dto::{ETagCondition, Range, Timestamp};
use s3s::{S3Error, S3Result, s3_error};

use super::refuse;
use crate::objects::{Condition, Entry, Refused};

/// The condition of a write. S3 takes only `*` in `If-None-Match` here.
pub(super) fn write_condition(
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<Condition> {
    match (if_match, if_none_match) {
        (None, None) => Ok(Condition::Always),
        (None, Some(ETagCondition::Any)) => Ok(Condition::Absent),
        (Some(ETagCondition::Any), None) => Ok(Condition::Present),
        (Some(ETagCondition::ETag(etag)), None) => Ok(Condition::Etag(etag.value().to_string())),
        _ => Err(s3_error!(
            NotImplemented,
            "This combination of conditions is not supported"
        )),
    }
}

/// Conditions of a read, in the order of RFC 9110, section 13.2.2.
pub(crate) fn check_read(
    entry: &Entry,
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
    modified_since: Option<&Timestamp>,
    unmodified_since: Option<&Timestamp>,
) -> S3Result<()> {
    let matches = |condition: &ETagCondition| match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(etag) => etag.value() == entry.etag,
    };
    // Header dates have whole seconds.
    let age = entry
        .modified
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let modified: Timestamp =
        (std::time::UNIX_EPOCH + std::time::Duration::from_secs(age.as_secs())).into();
    let unmodified = unmodified_since.is_none_or(|since| modified <= *since);
    if if_match.map_or(!unmodified, |condition| !matches(condition)) {
        return Err(refuse(Refused::PreconditionFailed));
    }
    let unchanged = modified_since.is_some_and(|since| modified <= *since);
    if if_none_match.map_or(unchanged, matches) {
        let mut error = s3_error!(NotModified, "Not Modified");
        let mut headers = HeaderMap::new();
        if let Ok(etag) = HeaderValue::try_from(format!("\"{}\"", entry.etag)) {
            headers.insert(header::ETAG, etag);
        }
        error.set_headers(headers);
        return Err(error);
    }
    Ok(())
}

/// A condition on the source of a copy fails with 412 where a read would say 304.
pub(super) fn not_modified_to_failed(error: S3Error) -> S3Error {
    if *error.code() == s3s::S3ErrorCode::NotModified {
        return refuse(Refused::PreconditionFailed);
    }
    error
}

/// The bytes that a range means, and the Content-Range of the answer.
pub(crate) fn resolve_range(
    range: Option<&Range>,
    size: u64,
) -> S3Result<(Bytes<u64>, Option<String>)> {
    let Some(range) = range else {
        return Ok((0..size, None));
    };
    let unsatisfiable = || {
        let mut error = s3_error!(InvalidRange, "The requested range is not satisfiable");
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::try_from(format!("bytes */{size}")) {
            headers.insert(header::CONTENT_RANGE, value);
        }
        error.set_headers(headers);
        error
    };
    // No range of an empty object can be satisfied, its last bytes included.
    let bytes = match range.check(size) {
        Ok(bytes) if !bytes.is_empty() => bytes,
        _ => return Err(unsatisfiable()),
    };
    let content_range = format!(
        "bytes {}-{}/{size}",
        bytes.start,
        bytes.end.saturating_sub(1)
    );
    Ok((bytes, Some(content_range)))
}
