//! Plans.

use hyperslab::{Explanation, Measured};
use pyo3::prelude::*;

/// What a read would do, and what it took if it was done.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Plan {
    pub(crate) title: String,
    /// The shape of the grid of chunks.
    pub(crate) grid: Vec<u64>,
    pub(crate) explained: Explanation,
    pub(crate) measured: Option<Measured>,
}

#[pymethods]
impl Plan {
    /// A table for people.
    fn text(&self) -> String {
        self.explained.text(self.measured.as_ref())
    }

    /// All of it as JSON.
    fn json(&self) -> String {
        self.explained.json(self.measured.as_ref()).to_string()
    }

    /// Drawings as a page of their own.
    fn page(&self) -> String {
        self.explained.page(&self.title, &self.grid)
    }

    /// Drawings as a part of another page.
    fn part(&self) -> String {
        self.explained.page_part(&self.title, &self.grid)
    }
}
