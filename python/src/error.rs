//! Errors become exceptions, by their kind.

use std::cell::Cell;

use hyperslab::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyModule;

thread_local! {
    /// What a signal handler raised while this thread was in a blocking call.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Runs Python's signal handlers, if this is the thread that does that; an error if one raised.
pub(crate) fn check_signals() -> hyperslab::Result<()> {
    match Python::try_attach(|py| py.check_signals()) {
        Some(Err(raised)) => {
            RAISED.set(Some(raised));
            Err(Error::unavailable("the call was interrupted"))
        }
        _ => Ok(()),
    }
}

/// Does work that blocks, without holding the interpreter.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> hyperslab::Result<T> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|e| exception(py, &e))
}

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    if let Some(raised) = RAISED.take() {
        return raised;
    }
    made(py, error).unwrap_or_else(|failed| failed)
}

fn made(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let name = match error.kind() {
        ErrorKind::Invalid => "InvalidError",
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Denied => "DeniedError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::Unavailable if error.is_timeout() => "DeadlineError",
        ErrorKind::Unavailable => "UnavailableError",
        ErrorKind::Data => "DataError",
        _ => "InternalError",
    };
    let class = PyModule::import(py, "hyperslab._errors")?.getattr(name)?;
    Ok(PyErr::from_value(
        class.call1((error.message(), error.hint()))?,
    ))
}
