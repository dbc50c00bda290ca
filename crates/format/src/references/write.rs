//! Writes reference files of HDF5 files, for those who read them with zarr-python.
//!
//! Metadata is Zarr v2, as kerchunk writes it. A dataset that Zarr v2 or the codecs of zarr-python
//! cannot say is left out, with the reason.

use hyperslab_index::Shape;
use serde_json::{Map, Value, json};

use crate::hdf5::FileArray;
use crate::{ArrayMeta, DataType, GroupMeta, numpy};

/// A dataset that references cannot say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// A reference file in the making.
#[derive(Debug, Default)]
pub struct ReferenceSet {
    refs: Map<String, Value>,
    skipped: Vec<Skipped>,
}

impl ReferenceSet {
    /// Adds a root without attributes.
    pub fn root(&mut self) {
        self.text("", ".zgroup", &json!({"zarr_format": 2}));
    }

    /// How many references there are.
    pub fn len(&self) -> usize {
        self.refs.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.refs.is_empty()
    }

    /// Adds a group.
    pub fn group(&mut self, path: &str, meta: &GroupMeta) {
        self.text(path, ".zgroup", &json!({"zarr_format": 2}));
        self.text(path, ".zattrs", &Value::Object(meta.attributes.clone()));
    }

    /// Adds a dataset of the file at `url`.
    pub fn dataset(&mut self, path: &str, array: &FileArray, url: &str) {
        match self.try_dataset(path, array, url) {
            Ok(()) => {}
            Err(reason) => self.skipped.push(Skipped {
                path: path.to_owned(),
                reason,
            }),
        }
    }

    fn try_dataset(&mut self, path: &str, array: &FileArray, url: &str) -> Result<(), String> {
        let resolver = array.resolver.as_ref();
        let resolver = resolver.ok_or("its cells are in other files")?;
        let meta = &array.meta;
        let whole: Vec<u64> = meta.shape.iter().map(|side| (*side).max(1)).collect();
        let chunks = match resolver.is_contiguous() {
            true => whole,
            false => meta.chunk_shape.to_vec(),
        };
        let filters = filters(array)?;
        if resolver.has_plain_edges() && !filters.is_empty() && has_edges(&meta.shape, &chunks) {
            return Err("its chunks at the edge have no filters".to_owned());
        }
        let stored = resolver.stored();
        if stored.iter().any(|(_, _, mask)| *mask != 0) {
            return Err("filters were left out for some of its chunks".to_owned());
        }
        let zarray = json!({
            "zarr_format": 2,
            "shape": &meta.shape[..],
            "chunks": chunks,
            "dtype": dtype(array)?,
            "fill_value": fill(meta),
            "order": "C",
            "filters": if filters.is_empty() { Value::Null } else { Value::Array(filters) },
            "compressor": Value::Null,
        });
        let mut attributes = meta.attributes.clone();
        let names = meta.dimension_names.clone().unwrap_or_default();
        let name = |dim: usize| match names.get(dim) {
            Some(Some(name)) => name.clone(),
            _ => format!("phony_dim_{dim}"),
        };
        let dims: Vec<String> = (0..meta.shape.rank()).map(name).collect();
        attributes.insert("_ARRAY_DIMENSIONS".to_owned(), json!(dims));
        self.text(path, ".zarray", &zarray);
        self.text(path, ".zattrs", &Value::Object(attributes));
        for (index, range, _) in stored {
            let index: Vec<String> = index.iter().map(u64::to_string).collect();
            let name = match index.is_empty() {
                true => "0".to_owned(),
                false => index.join("."),
            };
            let place = json!([url, range.start, range.end - range.start]);
            self.refs.insert(crate::join(path, &name), place);
        }
        Ok(())
    }

    fn text(&mut self, path: &str, name: &str, value: &Value) {
        self.refs
            .insert(crate::join(path, name), Value::String(value.to_string()));
    }

    /// What was left out.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The reference file.
    pub fn to_json(&self) -> Value {
        json!({"version": 1, "refs": self.refs})
    }
}

fn has_edges(shape: &Shape, chunks: &[u64]) -> bool {
    shape
        .iter()
        .zip(chunks)
        .any(|(side, chunk)| side % chunk != 0)
}

/// The filters of a dataset as numcodecs has them, in the order in which they were applied.
fn filters(array: &FileArray) -> Result<Vec<Value>, String> {
    let filters = array.filter_specs().iter().map(|filter| {
        let value = |i: usize| filter.values.get(i).copied().unwrap_or(0);
        Ok(match filter.id {
            1 => json!({"id": "zlib", "level": value(0)}),
            2 => json!({"id": "shuffle", "elementsize": value(0).max(1)}),
            3 => json!({"id": "fletcher32"}),
            32001 => json!({
                "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0,
            }),
            32015 => json!({"id": "zstd", "level": 3}),
            id => {
                let name = &filter.name;
                return Err(format!(
                    "zarr-python has no codec for the HDF5 filter {id} {name:?}"
                ));
            }
        })
    });
    filters.collect()
}

/// The type of stored cells as Zarr v2 spells it.
fn dtype(array: &FileArray) -> Result<Value, String> {
    let dtype = &array.meta.dtype;
    let none = || format!("Zarr v2 has no type for {dtype}");
    if array.has_fixes() || dtype.is_variable() {
        return Err(none());
    }
    if let DataType::Struct(_) = dtype {
        return Err(none());
    }
    // NumPy spells it as a literal, with quotation marks.
    let text = numpy::descr(dtype).ok_or_else(none)?;
    let text = text.trim_matches('\'').to_owned();
    Ok(Value::String(match array.is_swapped() {
        true => text.replacen('<', ">", 1),
        false => text,
    }))
}

/// The fill value; what JSON cannot say is none.
fn fill(meta: &ArrayMeta) -> Value {
    match meta.dtype {
        DataType::Bool | DataType::Int(_) | DataType::UInt(_) | DataType::Float(_) => {
            meta.fill.to_json(&meta.dtype)
        }
        _ => Value::Null,
    }
}
