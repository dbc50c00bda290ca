//! Advice on layouts.

use hyperslab::advise::{Advice as Given, AdviceOptions, Objective, Pattern, Reads};
use hyperslab::{Array, Result, Trace, block_on};
use pyo3::prelude::*;

/// How an array had better be laid out.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Advice(pub(crate) Given);

#[pymethods]
impl Advice {
    /// A table for people.
    fn text(&self) -> String {
        self.0.text()
    }

    /// All of it as JSON.
    fn json(&self) -> String {
        self.0.json().to_string()
    }

    /// The layout as JSON, as `rechunk` takes it.
    fn layout(&self) -> String {
        self.0.layout_json().to_string()
    }

    /// A page with drawings.
    fn page(&self) -> String {
        self.0.page()
    }
}

/// What is asked for, as Python's keywords have it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    boxes: Vec<(Vec<u64>, f64)>,
    trace: Option<String>,
    replicas: usize,
    budget: Option<u64>,
    blocks: Option<u64>,
    aligned: bool,
    chunk_bytes: (u64, u64),
    whole: bool,
    append: Option<(usize, u64)>,
    any_order: bool,
    shards: Option<u64>,
    classes: usize,
}

/// Advises on the layout of an array.
pub(crate) fn advise(array: &Array, asked: Asked) -> Result<Advice> {
    let reads = match &asked.trace {
        Some(trace) => Reads::traced(&Trace::load([trace])?, array)?,
        None => Reads::Told(Pattern::new(&array.shape(), asked.boxes)?),
    };
    let options = AdviceOptions {
        objective: match asked.blocks {
            Some(bytes) => Objective::Blocks {
                bytes,
                aligned: asked.aligned,
            },
            None => Objective::Cost,
        },
        classes: asked.classes,
        copies: asked.replicas,
        budget: asked.budget,
        chunk_bytes: asked.chunk_bytes,
        whole_divisions: asked.whole,
        append: asked.append,
        any_order: asked.any_order,
        shard_bytes: asked.shards,
    };
    Ok(Advice(block_on(array.advise(&reads, &options))?))
}
