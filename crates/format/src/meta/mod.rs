//! Metadata of arrays and groups, whichever version of Zarr spelled it.

mod array;
mod group;
mod layout;
mod v2;

pub(crate) use array::HDF5_LAYOUT;
pub use array::{ArrayMeta, ZarrFormat};
pub use group::GroupMeta;
pub use group::without_copy;
pub use layout::{ArraySpec, Compression, StorePolicy};

use hyperslab_index::{Error, Result};
use serde_json::{Map, Value};

/// Parses the bytes of a metadata object.
pub fn parse_json(bytes: &[u8], key: &str) -> Result<Map<String, Value>> {
    let value: Value = serde_json::from_slice(bytes).map_err(|e| {
        Error::data(format!("{key} is not valid JSON: {e}"))
            .with_hint("the object is truncated or was written by something else")
    })?;
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(Error::data(format!("{key} is not a JSON object"))),
    }
}

/// Renders a metadata object the way people read it.
pub fn render_json(value: &Value) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Unknown fields may be ignored only if they say so.
fn check_extra(extra: &Map<String, Value>) -> Result<()> {
    for (name, value) in extra {
        let ignorable = value.get("must_understand") == Some(&Value::Bool(false));
        if !ignorable {
            return Err(Error::data(format!(
                "the metadata field {name:?} is not known and does not say that it may be ignored"
            ))
            .with_hint("a newer tool wrote this array; its extension is not supported"));
        }
    }
    Ok(())
}

fn take_attributes(map: &mut Map<String, Value>) -> Result<Map<String, Value>> {
    match map.remove("attributes") {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(attributes)) => Ok(attributes),
        Some(_) => Err(Error::data("the attributes are not a JSON object")),
    }
}

fn check_format(map: &mut Map<String, Value>, node_type: &str) -> Result<()> {
    match map.remove("zarr_format").and_then(|v| v.as_u64()) {
        Some(3) => {}
        other => {
            let shown = other.map_or("none".to_owned(), |v| v.to_string());
            return Err(Error::data(format!(
                "zarr.json has the zarr_format {shown} instead of 3"
            )));
        }
    }
    match map.remove("node_type") {
        Some(Value::String(s)) if s == node_type => Ok(()),
        other => Err(Error::data(format!(
            "zarr.json has the node_type {} where {node_type:?} belongs",
            other.unwrap_or(Value::Null)
        ))),
    }
}
