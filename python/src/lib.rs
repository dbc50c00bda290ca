//! The native half of the Python package: sessions, groups, arrays and selections for `hyperslab`'s
//! Python files, which make NumPy's conventions of them.
//!
//! Above the facade, beside the command line. Everything here is thin: it turns Python objects into
//! calls of the facade and errors into exceptions.
//!
//! Invariants: the interpreter is never held while anything is read, written or decoded; every blocking
//! call ends within a moment of Ctrl-C; after a fork each object opens itself anew, and never touches
//! its parent's connections. Locks of this crate are held only by threads that hold the interpreter, so
//! a fork finds them free.

mod advice;
mod array;
mod error;
mod group;
mod live;
mod plan;
mod rechunk;
mod selection;
mod session;
mod spec;
mod task;
mod texts;

use pyo3::prelude::*;

/// Bytes, as in `4096` or `256MiB`.
#[pyfunction]
fn bytes_of(py: Python<'_>, text: &str) -> PyResult<u64> {
    hyperslab::settings::positive_bytes(text).map_err(|e| error::exception(py, &e))
}

/// What `import hyperslab._core` loads.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    hyperslab::stop_when(error::check_signals);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("SETTINGS", hyperslab::Options::names().to_vec())?;
    module.add_function(wrap_pyfunction!(bytes_of, module)?)?;
    module.add_function(wrap_pyfunction!(rechunk::rechunk_array, module)?)?;
    module.add_class::<session::Session>()?;
    module.add_class::<group::Group>()?;
    module.add_class::<array::Array>()?;
    module.add_class::<selection::Selection>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<advice::Advice>()?;
    module.add_class::<task::Task>()?;
    Ok(())
}
