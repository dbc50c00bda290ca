//! Rechunking: what Python asks for is a JSON object.

use hyperslab::{
    ArraySpec, Compression, Error, Node, RechunkOptions, Result, block_on, rechunk,
    rechunk_in_place,
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::array::Array;
use crate::error::wait;
use crate::session::node;
use crate::spec::{codecs, sides};

/// Makes an array at `url` with the cells of another, or changes that one if there is no URL. Returns
/// the array, and what was done as JSON.
#[pyfunction]
pub(crate) fn rechunk_array<'py>(
    py: Python<'py>,
    array: &Bound<'py, Array>,
    url: Option<&str>,
    how: &str,
) -> PyResult<(Bound<'py, PyAny>, String)> {
    let from = array.get().live(py)?;
    let (made, done) = wait(py, || {
        let how: Value = serde_json::from_str(how)
            .map_err(|e| Error::internal(format!("a layout is no JSON: {e}")))?;
        let (spec, options) = (spec(&from, &how)?, options(&how));
        match url {
            Some(url) => block_on(rechunk(&from, url, spec, &options, &())),
            None => {
                let done = block_on(rechunk_in_place(&from, spec, &options, &()))?;
                Ok((from.clone(), done))
            }
        }
    })?;
    let session = array.get().session(py);
    let made = node(session.bind(py), Node::Array(made))?;
    Ok((made, json!(done).to_string()))
}

/// The layout of an array with some of it changed.
fn spec(from: &hyperslab::Array, how: &Value) -> Result<ArraySpec> {
    let meta = from.meta();
    let mut spec = ArraySpec::piecewise(&meta)?;
    if let Some(chunks) = sides(how, "chunks")? {
        spec.chunks = Some(chunks);
        // Shards of other chunks do not fit: they are chosen anew where there were some.
        spec.may_shard = meta.codecs.sharding().is_some();
        spec.shards = (!spec.may_shard).then(Vec::new);
    }
    if let Some(shards) = sides(how, "shards")? {
        spec.shards = Some(shards);
    }
    if let Some(order) = sides(how, "order")? {
        spec.order = Some(order.iter().map(|dim| *dim as usize).collect());
    }
    match codecs(how.get("compression"))? {
        Compression::Default => {}
        given => spec.compression = given,
    }
    Ok(spec)
}

fn options(how: &Value) -> RechunkOptions {
    let flag = |name: &str| how.get(name).and_then(Value::as_bool).unwrap_or(false);
    let temp = how.get("temp").and_then(Value::as_str);
    let options = RechunkOptions::default();
    RechunkOptions {
        memory: how
            .get("memory")
            .and_then(Value::as_u64)
            .unwrap_or(options.memory),
        temp: temp.map(str::to_owned),
        resume: flag("resume"),
        overwrite: flag("overwrite"),
        verify: flag("verify"),
        ..options
    }
}
