//! Metadata of a group, with the consolidated copy of everything below it.

use std::collections::BTreeMap;

use hyperslab_index::{Error, Result};
use serde_json::{Map, Value, json};

use super::{check_extra, check_format, take_attributes};

/// Metadata of a group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupMeta {
    /// What users say about the group.
    pub attributes: Map<String, Value>,
    /// The metadata of all nodes below, by path, as zarr-python's inline consolidation has it.
    /// A copy: where it disagrees with a node's own `zarr.json`, the node's own wins.
    pub consolidated: Option<BTreeMap<String, Value>>,
    pub(crate) extra: Map<String, Value>,
}

impl GroupMeta {
    /// A group that keeps consolidated metadata, as new hierarchies do.
    pub fn root() -> Self {
        GroupMeta {
            consolidated: Some(BTreeMap::new()),
            ..Default::default()
        }
    }

    /// Parses a `zarr.json`.
    pub fn from_json(value: &Value) -> Result<Self> {
        let Value::Object(map) = value else {
            return Err(Error::data("the metadata is not a JSON object"));
        };
        let mut map = map.clone();
        check_format(&mut map, "group")?;
        let attributes = take_attributes(&mut map)?;
        let consolidated = match map.remove("consolidated_metadata") {
            None | Some(Value::Null) => None,
            Some(value) => consolidated(&value)?,
        };
        check_extra(&map)?;
        Ok(GroupMeta {
            attributes,
            consolidated,
            extra: map,
        })
    }

    /// The `zarr.json` of this group.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("zarr_format".into(), json!(3));
        map.insert("node_type".into(), json!("group"));
        map.insert("attributes".into(), Value::Object(self.attributes.clone()));
        if let Some(nodes) = &self.consolidated {
            map.insert(
                "consolidated_metadata".into(),
                json!({"kind": "inline", "must_understand": false, "metadata": nodes}),
            );
        }
        map.extend(self.extra.clone());
        Value::Object(map)
    }
}

/// A kind of consolidation that we do not know is ignored, as its `must_understand` allows.
fn consolidated(value: &Value) -> Result<Option<BTreeMap<String, Value>>> {
    if value.get("kind").and_then(Value::as_str) != Some("inline") {
        return Ok(None);
    }
    match value.get("metadata") {
        Some(Value::Object(map)) => Ok(Some(
            map.iter()
                .map(|(k, v)| (k.clone(), without_copy(v)))
                .collect(),
        )),
        _ => Err(Error::data(
            "the consolidated metadata is not a JSON object",
        )),
    }
}

/// A node's metadata without the consolidated copy of its own children, which is how nodes are
/// compared and how they stand in their root's copy.
pub fn without_copy(node: &Value) -> Value {
    let mut node = node.clone();
    if let Value::Object(map) = &mut node {
        map.remove("consolidated_metadata");
    }
    node
}
