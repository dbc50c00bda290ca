//! Refusals: how the function says no, and what the client makes of it.
//!
//! Invariant: a client takes "the object is absent" (which the engine reads as fill values) only
//! from the function itself, never from a gateway that answers 404 for reasons of its own.

use bytes::Bytes;
use hyperslab_index::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::service::{Response, Work};

/// Longest sentence of a server that is repeated.
const LONGEST_SENTENCE: usize = 500;

/// A request that the function does not answer with bytes.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: u16,
    error: Error,
}

/// The body of a refusal.
#[derive(Serialize, Deserialize)]
struct Told {
    error: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Invalid => 400,
            ErrorKind::Denied => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::Conflict => 409,
            ErrorKind::Unavailable => 503,
            _ => 500,
        };
        Refusal { status, error }
    }
}

impl Refusal {
    /// Nobody has shown that the caller may call.
    pub(crate) fn unsigned(error: Error) -> Self {
        Refusal { status: 401, error }
    }

    /// The request is sound, but more than the function can do.
    pub(crate) fn too_large(sentence: impl Into<String>) -> Self {
        let error = Error::invalid(sentence)
            .with_hint("ask for less in one call, or read the object without the function");
        Refusal { status: 413, error }
    }

    /// The same refusal with another sentence.
    pub(crate) fn map(self, change: impl FnOnce(Error) -> Error) -> Self {
        Refusal {
            status: self.status,
            error: change(self.error),
        }
    }

    pub(crate) fn into_response(self) -> Response {
        let told = Told {
            error: self.error.message().to_owned(),
            kind: self.error.kind().as_str().to_owned(),
            hint: self.error.hint().map(str::to_owned),
        };
        let body = serde_json::to_vec(&told).unwrap_or_default();
        Response {
            status: self.status,
            content_type: "application/json",
            headers: Vec::new(),
            body: Bytes::from(body),
            work: Work::default(),
        }
    }
}

/// The error behind an answer that is no success.
pub(crate) fn understand(status: u16, body: &[u8]) -> Error {
    let Ok(told) = serde_json::from_slice::<Told>(body) else {
        return foreign(status);
    };
    let kind = [
        ErrorKind::Invalid,
        ErrorKind::NotFound,
        ErrorKind::Denied,
        ErrorKind::Conflict,
        ErrorKind::Unavailable,
        ErrorKind::Data,
        ErrorKind::Internal,
    ]
    .into_iter()
    .find(|kind| kind.as_str() == told.kind);
    let fits = match kind {
        Some(ErrorKind::NotFound) => status == 404,
        Some(ErrorKind::Conflict) => status == 409,
        Some(_) => true,
        None => false,
    };
    match kind.filter(|_| fits) {
        None => foreign(status),
        Some(kind) => {
            // A defect there is no defect of this program.
            let kind = match kind {
                ErrorKind::Internal => ErrorKind::Unavailable,
                kind => kind,
            };
            let error = Error::new(kind, shortened(told.error)).context("the function");
            match told.hint {
                Some(hint) => error.with_hint(shortened(hint)),
                None => error,
            }
        }
    }
}

/// Somebody before the function answered: a gateway, a login, the cloud itself.
fn foreign(status: u16) -> Error {
    match status {
        401 | 403 => Error::denied(format!(
            "the cloud refused the call before it reached the function ({status})"
        ))
        .with_hint("check who may invoke the function"),
        404 | 405 => Error::unavailable(format!(
            "there is no hyperslab function at this address ({status})"
        ))
        .with_hint("check the function's URL"),
        413 => Error::invalid("the request or the answer is too large for the function (413)"),
        _ => Error::unavailable(format!("the function is not available ({status})")),
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST_SENTENCE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_arrive_as_what_they_were() {
        for (error, status, kind) in [
            (Error::invalid("a"), 400, ErrorKind::Invalid),
            (Error::denied("a"), 403, ErrorKind::Denied),
            (Error::not_found("a"), 404, ErrorKind::NotFound),
            (Error::conflict("a"), 409, ErrorKind::Conflict),
            (Error::unavailable("a"), 503, ErrorKind::Unavailable),
            (Error::data("a"), 500, ErrorKind::Data),
            (Error::internal("a"), 500, ErrorKind::Unavailable),
        ] {
            let response = Refusal::from(error.with_hint("try b")).into_response();
            assert_eq!(response.status, status);
            let seen = understand(status, &response.body);
            assert_eq!(seen.kind(), kind);
            assert_eq!(seen.message(), "the function: a");
            assert_eq!(seen.hint(), Some("try b"));
        }
        assert_eq!(Refusal::too_large("x").into_response().status, 413);
    }

    #[test]
    fn a_stranger_cannot_make_an_object_absent() {
        for (status, body) in [
            (404, "<html>not found</html>"),
            (404, r#"{"Message":null}"#),
            (404, r#"{"error":"no route","kind":"404"}"#),
            (200, r#"{"error":"x","kind":"not-found"}"#),
            (502, r#"{"error":"x","kind":"not-found"}"#),
        ] {
            let kind = understand(status, body.as_bytes()).kind();
            assert_eq!(kind, ErrorKind::Unavailable, "{status} {body}");
        }
        assert_eq!(understand(403, b"").kind(), ErrorKind::Denied);
        assert_eq!(understand(413, b"").kind(), ErrorKind::Invalid);
        let long = understand(
            503,
            &Refusal::from(Error::unavailable("é".repeat(9999)))
                .into_response()
                .body,
        );
        assert!(long.message().len() < 1100);
    }
}
