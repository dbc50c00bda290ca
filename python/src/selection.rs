//! Selections, made by the package's own indexing.

use hyperslab::Hyperslab;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::error::exception;

/// Which cells are wanted.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Selection(pub(crate) hyperslab::Selection);

fn selected(py: Python<'_>, made: hyperslab::Result<hyperslab::Selection>) -> PyResult<Selection> {
    made.map(Selection).map_err(|e| exception(py, &e))
}

/// Coordinates that were checked to be inside the array.
pub(crate) fn coordinates(given: &PyReadonlyArray1<'_, i64>) -> Vec<u64> {
    let given = given.as_array();
    given.iter().map(|at| at.cast_unsigned()).collect()
}

#[pymethods]
impl Selection {
    /// Every cell.
    #[staticmethod]
    fn all() -> Self {
        Selection(hyperslab::Selection::All)
    }

    /// Starts, steps and counts along each axis.
    #[staticmethod]
    fn slab(py: Python<'_>, start: Vec<u64>, step: Vec<u64>, count: Vec<u64>) -> PyResult<Self> {
        selected(py, slab(&start, &step, &count).map(Into::into))
    }

    /// Cells by their coordinates, one after another.
    #[staticmethod]
    fn points(
        py: Python<'_>,
        rank: usize,
        coordinates: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Self> {
        let points = hyperslab::Selection::points(rank, self::coordinates(&coordinates));
        selected(py, points)
    }

    /// All combinations of coordinates, which rise along each axis.
    #[staticmethod]
    fn outer(py: Python<'_>, axes: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut lists = Vec::with_capacity(axes.len());
        for axis in &axes {
            lists.push(coordinates(&axis.extract::<PyReadonlyArray1<'_, i64>>()?));
        }
        selected(py, hyperslab::Selection::outer(&lists))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// A hyperslab of single cells.
pub(crate) fn slab(start: &[u64], step: &[u64], count: &[u64]) -> hyperslab::Result<Hyperslab> {
    let block = vec![1; start.len()];
    Hyperslab::new(start, step, count, &block)
}
