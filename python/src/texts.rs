//! Texts and bytes of any length between Python and the engine.

use bytes::Bytes;
use hyperslab::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

/// A list of `str`, or of `bytes` where cells are those.
pub(crate) fn to_list<'py>(
    py: Python<'py>,
    dtype: &DataType,
    cells: &[Bytes],
) -> PyResult<Bound<'py, PyList>> {
    match dtype {
        DataType::String => {
            let cell = |cell: &Bytes| PyString::from_bytes(py, cell);
            PyList::new(py, cells.iter().map(cell).collect::<PyResult<Vec<_>>>()?)
        }
        _ => PyList::new(py, cells.iter().map(|cell| PyBytes::new(py, cell))),
    }
}

/// Cells out of a list of `str` and `bytes`.
pub(crate) fn of_list(given: &Bound<'_, PyList>) -> PyResult<Vec<Bytes>> {
    let cell = |item: Bound<'_, PyAny>| -> PyResult<Bytes> {
        if let Ok(text) = item.cast::<PyString>() {
            return Ok(Bytes::copy_from_slice(text.to_cow()?.as_bytes()));
        }
        match item.cast::<PyBytes>() {
            Ok(bytes) => Ok(Bytes::copy_from_slice(bytes.as_bytes())),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a cell is {}, and has to be str or bytes",
                item.get_type()
            ))),
        }
    };
    given.iter().map(cell).collect()
}
