//! Arrays.

use std::time::Duration;

use hyperslab::{
    ArrayMeta, CopyOptions, Error, Query, ReplicaInfo, Selection as Cells, ZarrFormat, block_on,
    numpy as dtypes,
};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use serde_json::{Value, json};

use crate::advice::{self, Advice, Asked};
use crate::error::{exception, wait};
use crate::live::Live;
use crate::plan::Plan;
use crate::selection::{Selection, slab};
use crate::session::{Session, attributes};
use crate::{spec, texts};

/// An array in a store or a file.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Array {
    session: Py<Session>,
    url: String,
    live: Live<hyperslab::Array>,
}

impl Array {
    pub(crate) fn new(session: Py<Session>, array: hyperslab::Array) -> Self {
        Array {
            session,
            url: array.url().to_owned(),
            live: Live::new(array),
        }
    }

    /// The engine's array, opened anew after a fork.
    pub(crate) fn live(&self, py: Python<'_>) -> PyResult<hyperslab::Array> {
        self.live.get(|| {
            let session = self.session.get().live();
            wait(py, || block_on(session.open_array(&self.url)))
        })
    }
}

fn format_of(meta: &ArrayMeta) -> &'static str {
    match meta.format {
        ZarrFormat::V2 => "zarr2",
        ZarrFormat::Hdf5 => "hdf5",
        _ => "zarr3",
    }
}

fn replica_json(replica: &ReplicaInfo) -> Value {
    let unit = replica.meta.unit().map(|(unit, _)| unit.to_vec());
    let sharded = replica.meta.codecs.sharding().is_some();
    json!({
        "name": replica.name,
        "url": replica.url,
        "complete": replica.complete,
        "marked": replica.marked,
        "chunks": unit.unwrap_or_default(),
        "shards": sharded.then(|| replica.meta.chunk_shape.to_vec()),
        "codecs": replica.meta.codecs.to_json(),
        "objects": replica.objects,
        "bytes": replica.bytes,
    })
}

#[pymethods]
impl Array {
    #[getter]
    pub(crate) fn session(&self, py: Python<'_>) -> Py<Session> {
        self.session.clone_ref(py)
    }

    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let array = self.live(py)?;
        PyTuple::new(py, array.shape().iter().copied())
    }

    /// What its metadata says.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let meta = self.live(py)?.meta();
        let (unit, _) = meta.unit().map_err(|e| exception(py, &e))?;
        let said = PyDict::new(py);
        // `None` for cells of any length.
        said.set_item("descr", dtypes::descr(&meta.dtype))?;
        said.set_item("type", meta.dtype.to_string())?;
        said.set_item("chunks", PyTuple::new(py, unit.iter().copied())?)?;
        let shards = match meta.codecs.sharding() {
            Some(_) => Some(PyTuple::new(py, meta.chunk_shape.iter().copied())?),
            None => None,
        };
        said.set_item("shards", shards)?;
        said.set_item(
            "codecs",
            Value::from(meta.codecs.to_json().to_vec()).to_string(),
        )?;
        said.set_item("fill", PyBytes::new(py, meta.fill.bytes()))?;
        said.set_item("no_fill", meta.has_no_fill())?;
        said.set_item("dimension_names", meta.dimension_names.clone())?;
        said.set_item("format", format_of(&meta))?;
        said.set_item("free_layout", meta.has_free_layout())?;
        Ok(said)
    }

    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<String> {
        Ok(Value::from(self.live(py)?.meta().attributes.clone()).to_string())
    }

    fn set_attributes(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let array = self.live(py)?;
        wait(py, || block_on(array.set_attributes(attributes(text)?)))
    }

    /// Reads a selection into a buffer of the size of its cells.
    fn read_into(
        &self,
        py: Python<'_>,
        selection: &Selection,
        mut out: PyReadwriteArray1<'_, u8>,
    ) -> PyResult<()> {
        let array = self.live(py)?;
        let out = out.as_slice_mut()?;
        wait(py, || array.read_into(&selection.0, out))
    }

    /// Reads a slab into a buffer of the size of its cells.
    fn read_slab(
        &self,
        py: Python<'_>,
        start: Vec<u64>,
        step: Vec<u64>,
        count: Vec<u64>,
        mut out: PyReadwriteArray1<'_, u8>,
    ) -> PyResult<()> {
        let array = self.live(py)?;
        let out = out.as_slice_mut()?;
        wait(py, || {
            let cells = Cells::from(slab(&start, &step, &count)?);
            array.read_into(&cells, out)
        })
    }

    /// Reads boxes of one shape as one query, one after another into the buffer.
    fn read_boxes(
        &self,
        py: Python<'_>,
        starts: PyReadonlyArray2<'_, i64>,
        step: Vec<u64>,
        count: Vec<u64>,
        mut out: PyReadwriteArray1<'_, u8>,
    ) -> PyResult<()> {
        let array = self.live(py)?;
        let starts: Vec<Vec<u64>> = starts
            .as_array()
            .outer_iter()
            .map(|row| row.iter().map(|at| at.cast_unsigned()).collect())
            .collect();
        let out = out.as_slice_mut()?;
        wait(py, || {
            let mut query = Query::new();
            for start in &starts {
                query = query.with(&array, slab(start, &step, &count)?.into());
            }
            let bytes = out.len().checked_div(starts.len()).unwrap_or(0).max(1);
            let mut outs: Vec<&mut [u8]> = out.chunks_mut(bytes).collect();
            array.session().read_into(&query, &mut outs)
        })
    }

    /// Reads cells of any length.
    fn read_texts<'py>(
        &self,
        py: Python<'py>,
        selection: &Selection,
    ) -> PyResult<Bound<'py, PyList>> {
        let array = self.live(py)?;
        let cells = wait(py, || block_on(array.read_strings(&selection.0)))?;
        texts::to_list(py, &array.dtype(), &cells)
    }

    /// Writes cells from a buffer.
    fn write_from(
        &self,
        py: Python<'_>,
        selection: &Selection,
        cells: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let array = self.live(py)?;
        let cells = cells.as_slice()?;
        wait(py, || array.write_from(&selection.0, cells))
    }

    /// Writes cells of any length.
    fn write_texts(
        &self,
        py: Python<'_>,
        selection: &Selection,
        cells: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let array = self.live(py)?;
        let cells = texts::of_list(cells)?;
        wait(py, || block_on(array.write_strings(&selection.0, cells)))
    }

    fn resize(&self, py: Python<'_>, shape: Vec<u64>) -> PyResult<()> {
        let array = self.live(py)?;
        wait(py, || block_on(array.resize(&shape)))
    }

    /// Appends cells along an axis; returns the index of the first.
    fn append(
        &self,
        py: Python<'_>,
        axis: usize,
        cells: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<u64> {
        let array = self.live(py)?;
        let cells = cells.as_slice()?.to_vec();
        wait(py, || block_on(array.append(axis, cells)))
    }

    /// Plans a read, and does it if asked for, throwing the cells away.
    fn explain(
        &self,
        py: Python<'_>,
        selection: &Selection,
        title: String,
        analyze: bool,
    ) -> PyResult<Plan> {
        let array = self.live(py)?;
        wait(py, || {
            let explained = block_on(array.explain(&selection.0))?;
            let measured = match analyze {
                true => Some(block_on(array.measure(&selection.0))?),
                false => None,
            };
            Ok(Plan {
                title,
                grid: array.meta().grid()?.grid_shape().to_vec(),
                explained,
                measured,
            })
        })
    }

    /// Advises on the array's layout.
    fn advise(&self, py: Python<'_>, asked: Asked) -> PyResult<Advice> {
        let array = self.live(py)?;
        wait(py, || advice::advise(&array, asked))
    }

    /// The replicas, each as a JSON object.
    fn replicas(&self, py: Python<'_>) -> PyResult<String> {
        let array = self.live(py)?;
        let found = wait(py, || block_on(array.replicas()))?;
        let each: Vec<Value> = found.iter().map(replica_json).collect();
        Ok(Value::from(each).to_string())
    }

    /// Makes a replica as a JSON object describes it.
    fn create_replica(&self, py: Python<'_>, name: &str, spec: &str) -> PyResult<String> {
        let array = self.live(py)?;
        let made = wait(py, || {
            let mut wanted = array.replica_spec();
            spec::lay_out(&mut wanted, spec)?;
            let options = CopyOptions::default();
            block_on(array.create_replica(name, wanted, &options, &()))
        })?;
        Ok(replica_json(&made).to_string())
    }

    /// Brings all replicas up to date: what came of it, as a JSON object.
    fn refresh_replicas(&self, py: Python<'_>, abandoned: f64) -> PyResult<String> {
        let array = self.live(py)?;
        let done = wait(py, || {
            let abandoned = Duration::try_from_secs_f64(abandoned)
                .map_err(|_| Error::invalid("a time has to be a number of seconds from 0 up"))?;
            let options = CopyOptions::default();
            block_on(array.refresh_replicas(abandoned, &options, &()))
        })?;
        let said = json!({"clean": done.clean, "foreign": done.foreign, "filled": done.filled});
        Ok(said.to_string())
    }

    /// Removes a replica; false if there is none of that name.
    fn remove_replica(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let array = self.live(py)?;
        wait(py, || block_on(array.remove_replica(name, &())))
    }

    /// Objects that exist, their bytes, and how many there could be.
    fn stored(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let array = self.live(py)?;
        let stored = wait(py, || block_on(array.stored()))?;
        Ok((stored.objects, stored.bytes, stored.chunks_total))
    }
}
