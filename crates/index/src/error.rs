//! The one public error of the whole system.
//!
//! It lives in the lowest crate so that every layer speaks it. The kind tells a caller what to
//! do; the message is one sentence that names the array, the chunk and the object; the hint says
//! what to try. Detail that a person rarely needs stays behind [`std::error::Error::source`].

use std::fmt;

/// What went wrong, in terms of what the caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong: fix the call (rank, bounds, name, option) and try again.
    Invalid,
    /// The thing that was named does not exist: check the URL and the path.
    NotFound,
    /// The store refuses these credentials (401, 403): check keys, token, clock and permissions.
    Denied,
    /// Somebody else changed the object meanwhile: open it again and repeat the operation.
    Conflict,
    /// The store did not answer properly (5xx, timeout, reset, full disk): try again later.
    Unavailable,
    /// The stored bytes are not what their metadata promises: restore or rewrite them.
    Data,
    /// A defect of this program: please report it.
    Internal,
}

impl ErrorKind {
    /// A lower-case word for logs and `--json` output.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "invalid",
            ErrorKind::NotFound => "not-found",
            ErrorKind::Denied => "denied",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Data => "data",
            ErrorKind::Internal => "internal",
        }
    }
}

/// An error: a kind, one sentence, and where it helps a hint and a cause.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    late: bool,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result type of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error from its kind and one sentence without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            late: false,
            source: None,
        }))
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// The named thing does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The store refuses these credentials.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }

    /// Somebody else changed the object.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// The store did not answer properly.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// The stored bytes are broken.
    pub fn data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    /// A defect of this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Adds what to try, replacing an earlier hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Says that something took longer than it may.
    #[must_use]
    pub fn as_timeout(mut self) -> Self {
        self.0.late = true;
        self
    }

    /// True if something took longer than it may: a request, or a read with a deadline.
    pub fn is_timeout(&self) -> bool {
        self.0.late
    }

    /// Adds the cause. It must hold no credentials: causes are printed at `RUST_LOG=debug`.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Puts `context` and a colon before the message, so that an outer layer can name the array.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence, without the hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to try, if there is something.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// True for [`ErrorKind::NotFound`], which callers handle most often.
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(hint) = &self.0.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.0.kind.as_str())?;
        if let Some(source) = &self.0.source {
            write!(f, " caused by {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}
