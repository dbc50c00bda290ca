//! Sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hyperslab::profile::{self, MeasureOptions};
use hyperslab::store::StoreKind;
use hyperslab::{Error, Node, Options, Query, block_on};
use numpy::PyReadwriteArray1;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::array::Array;
use crate::error::{exception, wait};
use crate::group::Group;
use crate::live::Live;
use crate::selection::Selection;
use crate::spec;
use crate::task::Task;

/// Settings, caches and limits that arrays share.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Session {
    options: Options,
    live: Live<hyperslab::Session>,
}

impl Session {
    /// The engine's session, one for each process.
    pub(crate) fn live(&self) -> hyperslab::Session {
        let made = self.live.get(|| {
            Ok::<_, std::convert::Infallible>(hyperslab::Session::new(self.options.clone()))
        });
        match made {
            Ok(session) => session,
            Err(never) => match never {},
        }
    }
}

fn options(
    settings: &BTreeMap<String, String>,
    storage: BTreeMap<String, String>,
) -> hyperslab::Result<Options> {
    let mut options = Options::default();
    for (name, value) in settings {
        if !options.set(name, value)? {
            return Err(Error::invalid(format!("there is no option {name:?}"))
                .with_hint(format!("there are {}", Options::names().join(", "))));
        }
    }
    for (name, value) in storage {
        options.storage = options.storage.with(name, value);
    }
    Ok(options)
}

/// A group or an array for Python.
pub(crate) fn node<'py>(session: &Bound<'py, Session>, node: Node) -> PyResult<Bound<'py, PyAny>> {
    let py = session.py();
    let owner = session.clone().unbind();
    Ok(match node {
        Node::Array(array) => Bound::new(py, Array::new(owner, array))?.into_any(),
        Node::Group(group) => Bound::new(py, Group::new(owner, group))?.into_any(),
    })
}

/// A query of several selections.
fn query(py: Python<'_>, arrays: &[Py<Array>], selections: &[Py<Selection>]) -> PyResult<Query> {
    let mut query = Query::new();
    for (array, selection) in arrays.iter().zip(selections) {
        query = query.with(&array.get().live(py)?, selection.get().0.clone());
    }
    Ok(query)
}

/// Attributes in JSON.
pub(crate) fn attributes(text: &str) -> hyperslab::Result<Map<String, Value>> {
    serde_json::from_str(text)
        .map_err(|e| Error::invalid(format!("the attributes are no JSON object: {e}")))
}

#[pymethods]
impl Session {
    #[new]
    fn new(
        py: Python<'_>,
        settings: BTreeMap<String, String>,
        storage: BTreeMap<String, String>,
    ) -> PyResult<Self> {
        let options = options(&settings, storage).map_err(|e| exception(py, &e))?;
        Ok(Session {
            live: Live::new(hyperslab::Session::new(options.clone())),
            options,
        })
    }

    /// Opens the array or group at a URL.
    fn open<'py>(slf: &Bound<'py, Self>, url: &str) -> PyResult<Bound<'py, PyAny>> {
        let session = slf.get().live();
        let opened = wait(slf.py(), || block_on(session.open(url)))?;
        node(slf, opened)
    }

    /// Makes an array as a JSON object says; `fill` is one cell.
    fn create_array<'py>(
        slf: &Bound<'py, Self>,
        url: &str,
        spec: &str,
        fill: Option<Vec<u8>>,
        overwrite: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let session = slf.get().live();
        let array = wait(slf.py(), || {
            let spec = spec::parse(spec, fill.as_deref())?;
            block_on(session.create_array(url, spec, overwrite))
        })?;
        node(slf, Node::Array(array))
    }

    /// Makes a group, or opens the one that is there.
    fn create_group<'py>(
        slf: &Bound<'py, Self>,
        url: &str,
        attributes: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let session = slf.get().live();
        let group = wait(slf.py(), || {
            let attributes = self::attributes(attributes)?;
            block_on(session.create_group(url, attributes))
        })?;
        node(slf, Node::Group(group))
    }

    /// Removes a node and all below it; returns how many objects went.
    fn remove(&self, py: Python<'_>, url: &str) -> PyResult<u64> {
        let session = self.live();
        wait(py, || block_on(session.remove(url, &())))
    }

    /// Reads several selections as one query, each into a buffer of its own.
    fn read_many(
        &self,
        py: Python<'_>,
        arrays: Vec<Py<Array>>,
        selections: Vec<Py<Selection>>,
        outs: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let session = self.live();
        let query = query(py, &arrays, &selections)?;
        let mut borrowed = Vec::with_capacity(outs.len());
        for out in &outs {
            borrowed.push(out.extract::<PyReadwriteArray1<'_, u8>>()?);
        }
        let mut buffers = Vec::with_capacity(outs.len());
        for out in &mut borrowed {
            buffers.push(out.as_slice_mut()?);
        }
        wait(py, || session.read_into(&query, &mut buffers))
    }

    /// Begins to read several selections as one query. When that is done, `done` is called from another
    /// thread, with a list of buffers and `None`, or with `None` and an exception.
    fn start_read(
        &self,
        py: Python<'_>,
        arrays: Vec<Py<Array>>,
        selections: Vec<Py<Selection>>,
        done: Py<PyAny>,
    ) -> PyResult<Task> {
        let session = self.live();
        let query = query(py, &arrays, &selections)?;
        Task::start(py, done, async move { session.read(&query).await })
    }

    /// What was asked of stores so far: requests, bytes that came, bytes that went.
    fn meter(&self) -> (u64, u64, u64) {
        let meters = self.live().meters();
        meters
            .iter()
            .fold((0, 0, 0), |(requests, read, written), (_, meter)| {
                (
                    requests + meter.total(),
                    read + meter.bytes_in,
                    written + meter.bytes_out,
                )
            })
    }

    /// How many objects were planned for the function and fetched without it.
    fn fallbacks(&self) -> u64 {
        self.live().fallbacks()
    }

    /// Writes down reads that are traced.
    fn flush_trace(&self) {
        self.live().flush_trace();
    }

    /// Measures an endpoint and keeps its profile; returns it, and the file that it is in, as JSON.
    fn profile(
        &self,
        py: Python<'_>,
        url: &str,
        bytes: u64,
        seconds: f64,
        output: Option<PathBuf>,
    ) -> PyResult<String> {
        let session = self.live();
        wait(py, || {
            let storage = &session.options().storage;
            let opened = hyperslab::store::open_with(url, storage)?;
            if opened.kind == StoreKind::Http {
                return Err(Error::invalid("a web server cannot be written to")
                    .with_hint("name a place in a bucket or on a disk"));
            }
            let name = profile::endpoint(url, storage)?;
            let file = match &output {
                Some(file) => file.clone(),
                None => profile::file_for(url, storage)?,
            };
            let allowed = opened
                .limit
                .as_ref()
                .map_or(usize::MAX, |limit| limit.current());
            let most = session.options().concurrency.min(allowed).clamp(1, 256);
            let how = MeasureOptions {
                bytes,
                time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
                most_requests: most as u32,
            };
            block_on(async {
                let function = session.options().function.as_deref();
                let limits = match function {
                    Some(function) => Some(profile::function_limits(function).await?),
                    None => None,
                };
                let never = std::future::pending();
                let measured = profile::measure(opened.store, &how, function, &(), never).await?;
                let measured =
                    measured.ok_or_else(|| Error::internal("a measurement stopped by itself"))?;
                let date = chrono::Utc::now().format("%Y-%m-%d").to_string();
                let found = measured.profile(&name, &date, limits.as_ref())?;
                profile::save(&found, &file)?;
                let file = file.display().to_string();
                Ok(json!({"profile": found, "file": file}).to_string())
            })
        })
    }
}
