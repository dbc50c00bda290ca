//! Turns what a remote store answered into our errors.
//!
//! Invariant: no URL query, header value or server document gets into a message, for signatures
//! and keys travel there; of the server's words only its error code is repeated.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};

use super::transport::Exchange;
use crate::location::StoreKind;
use crate::{Error, ErrorKind, RetryAfter};

/// What was asked of the store when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Read,
    Write,
    /// A write that names the state it replaces.
    Update,
    Delete,
    List,
}

/// Where a failure happened.
pub(super) struct Place<'a> {
    pub(super) kind: StoreKind,
    pub(super) asked: Asked,
    /// URL of the object or directory.
    pub(super) name: &'a str,
    /// URL of the bucket.
    pub(super) bucket_url: &'a str,
}

/// The error for a failed request.
pub(super) fn explain(e: &object_store::Error, seen: &Exchange, place: &Place<'_>) -> Error {
    if let Some(ours) = find::<Error>(e) {
        let copy = Error::new(ours.kind(), ours.message()).context(place.name);
        return match ours.hint() {
            Some(hint) => copy.with_hint(hint),
            None => copy,
        };
    }
    if let Some(broken) = find::<HttpError>(e) {
        return if seen.asked_for_credentials && seen.status.is_none() {
            no_credentials(place)
        } else {
            transport(broken, place)
        };
    }
    let text = e.to_string();
    // A bulk delete answers 200 and reports each key's failure inside.
    let inner_code = text
        .rsplit_once("(code: ")
        .and_then(|(_, rest)| rest.split_once(')'));
    let code = seen.code.as_deref().or(inner_code.map(|(code, _)| code));
    match seen.status {
        Some(status) if status >= 300 => by_status(status, code, seen, place),
        _ if inner_code.is_some() => by_status(status_of(code), code, seen, place),
        _ if seen.asked_for_credentials => no_credentials(place),
        None => match e {
            object_store::Error::NotSupported { .. }
            | object_store::Error::NotImplemented { .. }
            | object_store::Error::InvalidPath { .. } => {
                Error::invalid(format!("{}: {}", place.name, scrub(&text)))
            }
            _ => Error::unavailable(format!("{}: {}", place.name, scrub(&text))),
        },
        Some(_) => Error::data(format!(
            "{}: the server's answer was not understood: {}",
            place.name,
            scrub(&text)
        ))
        .with_hint("check that the endpoint is the kind of store that the URL says"),
    }
}

fn find<'a, T: StdError + 'static>(e: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(e);
    while let Some(e) = next {
        if let Some(found) = e.downcast_ref() {
            return Some(found);
        }
        next = e.source();
    }
    None
}

fn transport(broken: &HttpError, place: &Place<'_>) -> Error {
    let what = match broken.kind() {
        HttpErrorKind::Connect => "the server cannot be reached",
        HttpErrorKind::Timeout => "the request timed out",
        _ => "the connection broke",
    };
    let mut cause = String::new();
    let mut next: Option<&(dyn StdError + 'static)> = broken.source();
    while let Some(e) = next {
        cause = e.to_string();
        next = e.source();
    }
    let message = match cause.is_empty() {
        true => format!("{}: {what}", place.name),
        false => format!("{}: {what} ({})", place.name, scrub(&cause)),
    };
    let error =
        Error::unavailable(message).with_hint("check the endpoint and the network, then try again");
    match broken.kind() {
        HttpErrorKind::Timeout => error.as_timeout(),
        _ => error,
    }
}

fn no_credentials(place: &Place<'_>) -> Error {
    let hint = match place.kind {
        StoreKind::S3 => {
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, or add ?anonymous=true for public data"
        }
        StoreKind::Azure => {
            "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or add ?anonymous=true for public data"
        }
        _ => "set GOOGLE_APPLICATION_CREDENTIALS, or add ?anonymous=true for public data",
    };
    Error::denied(format!("{}: no credentials were found", place.name)).with_hint(hint)
}

/// The status behind an error code that arrives inside a 200: S3 names it, Azure's batches give
/// the number itself.
fn status_of(code: Option<&str>) -> u16 {
    match code {
        Some("AccessDenied") => 403,
        Some("NoSuchKey" | "NoSuchBucket") => 404,
        Some(code) => code
            .parse()
            .ok()
            .filter(|n| (300..=599).contains(n))
            .unwrap_or(503),
        None => 503,
    }
}

fn by_status(status: u16, code: Option<&str>, seen: &Exchange, place: &Place<'_>) -> Error {
    let said = match code {
        Some(code) => format!("{status} {code}"),
        None => status.to_string(),
    };
    let name = place.name;
    match (status, code) {
        (_, Some("NoSuchBucket" | "ContainerNotFound" | "InvalidBucketName")) => no_bucket(place),
        (404, None)
            if matches!(place.asked, Asked::Write | Asked::List)
                && place.kind != StoreKind::Http =>
        {
            no_bucket(place)
        }
        (404, _) if place.asked == Asked::Update => Error::conflict(format!("{name} is gone")),
        (404 | 410, _) => Error::not_found(format!("{name} does not exist")),
        (
            409,
            Some("ConditionalRequestConflict" | "OperationAborted" | "ContainerBeingDeleted"),
        ) => {
            // The store could not decide between writers: nothing was written, asking again helps.
            Error::unavailable(format!("{name}: another request was in the way ({said})"))
        }
        (409 | 412, _) => Error::conflict(match place.asked {
            Asked::Write => format!("{name} exists already"),
            _ => format!("{name} has changed since it was read"),
        }),
        (416, _) => Error::data(format!(
            "{name} is shorter than the byte range that was expected"
        ))
        .with_hint("the object was cut short or replaced; restore or rewrite it"),
        (300..=399, _) | (_, Some("AuthorizationHeaderMalformed" | "PermanentRedirect")) => {
            elsewhere(&said, seen, place)
        }
        (400, Some("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired")) | (401 | 403, _) => {
            Error::denied(format!("{name}: the store refused access ({said})"))
                .with_hint(denied_hint(code, place))
        }
        (408 | 429 | 500.., _) | (400, Some("RequestTimeout")) if status != 501 => {
            let e = Error::unavailable(format!("{name}: the store is not available ({said})"));
            match seen.retry_after {
                Some(after) => e.with_source(RetryAfter(after)),
                None => e,
            }
        }
        (405 | 501, _) => Error::invalid(format!("{name}: the server cannot do this ({said})")),
        _ => Error::invalid(format!("{name}: the store rejected the request ({said})")),
    }
}

/// The store answers that what was asked for is somewhere else, where we do not go unasked.
fn elsewhere(said: &str, seen: &Exchange, place: &Place<'_>) -> Error {
    let name = place.name;
    let (message, hint) = match (&seen.region, &seen.points_to) {
        (Some(region), _) => (
            format!("{name}: the request went to the wrong region ({said})"),
            format!("the bucket is in region {region}: add ?region={region}"),
        ),
        (None, Some(server)) => (
            format!("{name}: the server sends us to {server}, which is not followed ({said})"),
            match place.kind {
                StoreKind::Http => {
                    "if that server is to be trusted, name its address instead".to_owned()
                }
                _ => "check the endpoint; if that server is to be trusted, name it with ?endpoint="
                    .to_owned(),
            },
        ),
        (None, None) if place.kind == StoreKind::S3 => (
            format!("{name}: the request went to the wrong region ({said})"),
            "set the bucket's region, for example ?region=eu-west-1".to_owned(),
        ),
        (None, None) => (
            format!("{name}: the server redirects without an end ({said})"),
            "check the address".to_owned(),
        ),
    };
    Error::invalid(message).with_hint(hint)
}

fn no_bucket(place: &Place<'_>) -> Error {
    let what = if place.kind == StoreKind::Azure {
        "container"
    } else {
        "bucket"
    };
    Error::new(
        ErrorKind::Invalid,
        format!("the {what} {} does not exist", place.bucket_url),
    )
    .with_hint(format!(
        "check the {what}'s name and the endpoint, or create it"
    ))
}

fn denied_hint(code: Option<&str>, place: &Place<'_>) -> &'static str {
    match code {
        Some("RequestTimeTooSkewed") => "set this machine's clock",
        Some("ExpiredToken" | "TokenRefreshRequired") => "the session has expired: log in again",
        Some("InvalidAccessKeyId" | "InvalidToken") => "the store does not know this access key",
        Some("SignatureDoesNotMatch" | "AuthenticationFailed") => {
            "the secret key is wrong, or this machine's clock is"
        }
        _ if place.kind == StoreKind::S3 && place.asked == Asked::Read => {
            "check the credentials; S3 also answers 403 for a key that does not exist when the caller may not list the bucket"
        }
        _ => "check the credentials and what they may do here",
    }
}

/// A text without the query strings of the URLs in it.
pub(crate) fn scrub(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, word) in text.split(' ').enumerate() {
        if i > 0 {
            out.push(' ');
        }
        match word.split_once('?') {
            Some((path, _)) if path.contains("://") || path.starts_with('/') => out.push_str(path),
            _ => out.push_str(word),
        }
    }
    let end = out.char_indices().nth(500).map_or(out.len(), |(at, _)| at);
    out.truncate(end);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn error(status: u16, code: Option<&str>, asked: Asked, kind: StoreKind) -> Error {
        let seen = Exchange {
            status: Some(status),
            code: code.map(str::to_owned),
            retry_after: Some(Duration::from_secs(2)),
            ..Exchange::default()
        };
        let e = object_store::Error::Generic {
            store: "S3",
            source: "GET http://h/b/k?X-Amz-Signature=s3cret failed".into(),
        };
        let place = Place {
            kind,
            asked,
            name: "s3://b/k",
            bucket_url: "s3://b",
        };
        explain(&e, &seen, &place)
    }

    #[test]
    fn statuses_and_codes_become_kinds() {
        use Asked::*;
        use ErrorKind::*;
        for (status, code, asked, kind, hint) in [
            (404, Some("NoSuchKey"), Read, NotFound, ""),
            (404, None, Read, NotFound, ""),
            (404, Some("NoSuchBucket"), Read, Invalid, "bucket"),
            (404, Some("NoSuchBucket"), Update, Invalid, "bucket"),
            (404, None, Asked::Write, Invalid, "bucket"),
            (404, Some("NoSuchKey"), Update, Conflict, ""),
            (403, None, Read, Denied, "may not list"),
            (
                403,
                Some("AccessDenied"),
                Asked::Write,
                Denied,
                "credentials",
            ),
            (
                403,
                Some("SignatureDoesNotMatch"),
                Read,
                Denied,
                "secret key is wrong",
            ),
            (403, Some("RequestTimeTooSkewed"), Read, Denied, "clock"),
            (400, Some("ExpiredToken"), Read, Denied, "expired"),
            (401, None, Read, Denied, "credentials"),
            (412, None, Asked::Write, Conflict, ""),
            (409, Some("BlobAlreadyExists"), Asked::Write, Conflict, ""),
            (
                409,
                Some("ConditionalRequestConflict"),
                Update,
                Unavailable,
                "",
            ),
            (416, Some("InvalidRange"), Read, Data, "cut short"),
            (429, None, Read, Unavailable, ""),
            (500, Some("InternalError"), Read, Unavailable, ""),
            (503, Some("SlowDown"), Read, Unavailable, ""),
            (501, None, List, Invalid, ""),
            (301, Some("PermanentRedirect"), Read, Invalid, "region"),
            (400, Some("MalformedXML"), Read, Invalid, ""),
        ] {
            let e = error(status, code, asked, StoreKind::S3);
            assert_eq!(e.kind(), kind, "{status} {code:?} {asked:?}: {e}");
            assert!(
                e.hint().unwrap_or_default().contains(hint),
                "{status} {code:?}: {e}"
            );
            assert!(!format!("{e:?}").contains("s3cret"), "{e:?}");
        }
    }

    #[test]
    fn retry_after_travels_with_the_error() {
        let e = error(503, Some("SlowDown"), Asked::Read, StoreKind::S3);
        let source = StdError::source(&e).and_then(|s| s.downcast_ref::<RetryAfter>());
        assert_eq!(source, Some(&RetryAfter(Duration::from_secs(2))));
    }

    #[test]
    fn answers_that_make_no_sense_are_data_errors_without_their_query() {
        let e = error(200, None, Asked::Read, StoreKind::S3);
        assert_eq!(e.kind(), ErrorKind::Data);
        assert!(e.message().contains("http://h/b/k failed"), "{e}");
    }

    #[test]
    fn failures_inside_a_bulk_delete_are_found() {
        let place = Place {
            kind: StoreKind::S3,
            asked: Asked::Delete,
            name: "s3://b/k",
            bucket_url: "s3://b",
        };
        let seen = Exchange {
            status: Some(200),
            ..Exchange::default()
        };
        for (code, kind) in [
            ("AccessDenied", ErrorKind::Denied),
            ("NoSuchKey", ErrorKind::NotFound),
            ("InternalError", ErrorKind::Unavailable),
        ] {
            let text = format!("DeleteObjects request failed for key k: m (code: {code})");
            let e = object_store::Error::Generic {
                store: "S3",
                source: text.into(),
            };
            assert_eq!(explain(&e, &seen, &place).kind(), kind);
        }
    }

    #[test]
    fn our_own_errors_pass_through() {
        let place = Place {
            kind: StoreKind::S3,
            asked: Asked::Read,
            name: "s3://b/k",
            bucket_url: "s3://b",
        };
        let ours = Error::denied("the helper failed").with_hint("run it by hand");
        let e = object_store::Error::Generic {
            store: "S3",
            source: Box::new(ours),
        };
        let e = explain(&e, &Exchange::default(), &place);
        assert_eq!(
            (e.kind(), e.hint()),
            (ErrorKind::Denied, Some("run it by hand"))
        );
    }
}
