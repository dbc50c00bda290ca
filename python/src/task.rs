//! Work that goes on while Python does something else.

use hyperslab::Result;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;
use tokio::task::AbortHandle;

use crate::error::exception;

/// Work under way.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Task(AbortHandle);

impl Task {
    /// Begins work whose result are buffers.
    pub(crate) fn start(
        py: Python<'_>,
        done: Py<PyAny>,
        work: impl Future<Output = Result<Vec<Vec<u8>>>> + Send + 'static,
    ) -> PyResult<Self> {
        let handle = hyperslab::handle().map_err(|e| exception(py, &e))?;
        let running = handle.spawn(async move {
            let result = work.await;
            // Nobody waits any more where the interpreter is gone.
            let _ = Python::try_attach(|py| tell(py, &done, result));
        });
        Ok(Task(running.abort_handle()))
    }
}

fn tell(py: Python<'_>, done: &Py<PyAny>, result: Result<Vec<Vec<u8>>>) -> PyResult<()> {
    match result {
        Ok(buffers) => {
            let arrays = buffers
                .into_iter()
                .map(|buffer| PyArray1::from_vec(py, buffer));
            done.call1(
                py,
                (PyList::new(py, arrays.collect::<Vec<_>>())?, py.None()),
            )?;
        }
        Err(e) => {
            done.call1(py, (py.None(), exception(py, &e)))?;
        }
    }
    Ok(())
}

#[pymethods]
impl Task {
    /// Stops it: its requests end.
    fn cancel(&self) {
        self.0.abort();
    }
}
