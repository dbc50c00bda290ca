//! Groups.

use hyperslab::{Node, block_on};
use pyo3::prelude::*;
use serde_json::Value;

use crate::error::wait;
use crate::live::Live;
use crate::session::{Session, attributes, node};

/// A group in a store or a file.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Group {
    session: Py<Session>,
    url: String,
    live: Live<hyperslab::Group>,
}

/// Names and nodes for Python.
type Named<'py> = Vec<(String, Bound<'py, PyAny>)>;

impl Group {
    pub(crate) fn new(session: Py<Session>, group: hyperslab::Group) -> Self {
        Group {
            session,
            url: group.url().to_owned(),
            live: Live::new(group),
        }
    }

    fn live(&self, py: Python<'_>) -> PyResult<hyperslab::Group> {
        self.live.get(|| {
            let session = self.session.get().live();
            wait(py, || block_on(session.open_group(&self.url)))
        })
    }

    fn named<'py>(&self, py: Python<'py>, found: Vec<(String, Node)>) -> PyResult<Named<'py>> {
        let session = self.session.bind(py);
        let each = found.into_iter();
        each.map(|(name, found)| Ok((name, node(session, found)?)))
            .collect()
    }
}

#[pymethods]
impl Group {
    #[getter]
    fn session(&self, py: Python<'_>) -> Py<Session> {
        self.session.clone_ref(py)
    }

    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// True if it is in an HDF5 file.
    #[getter]
    fn is_in_file(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.live(py)?.is_in_file())
    }

    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<String> {
        Ok(Value::from(self.live(py)?.attributes().clone()).to_string())
    }

    fn set_attributes(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let group = self.live(py)?;
        wait(py, || block_on(group.set_attributes(attributes(text)?)))
    }

    /// The node at a path below.
    fn node<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let group = self.live(py)?;
        let found = wait(py, || block_on(group.node(path)))?;
        node(self.session.bind(py), found)
    }

    /// Names and nodes directly below.
    fn children<'py>(&self, py: Python<'py>) -> PyResult<Named<'py>> {
        let group = self.live(py)?;
        let found = wait(py, || block_on(group.children()))?;
        self.named(py, found)
    }

    /// Paths and nodes below, at any depth.
    fn walk<'py>(&self, py: Python<'py>) -> PyResult<Named<'py>> {
        let group = self.live(py)?;
        let found = wait(py, || block_on(group.walk()))?;
        self.named(py, found)
    }

    /// Writes the consolidated copy of all metadata anew.
    fn consolidate(&self, py: Python<'_>) -> PyResult<()> {
        let group = self.live(py)?;
        wait(py, || block_on(group.consolidate()))
    }
}
