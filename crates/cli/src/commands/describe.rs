//! How nodes are described to people and machines; shared by `ls`, `tree`, `info` and others.

use hyperslab::{ArrayMeta, Error, Node, Result, ZarrFormat};
use serde_json::{Value, json};

/// Shape and type in a few words: `(100, 200) float32`.
pub(crate) fn brief(meta: &ArrayMeta) -> String {
    format!("{} {}", meta.shape, meta.dtype)
}

/// The names of the codecs, outermost first: `zstd`, `sharding(blosc)`.
pub(crate) fn codecs(meta: &ArrayMeta) -> String {
    let name = |codec: &Value| {
        ["name", "id"]
            .iter()
            .find_map(|key| codec.get(key).and_then(Value::as_str))
            .or(codec.as_str())
            .unwrap_or("?")
            .to_owned()
    };
    let list = |chain: &[Value]| {
        let names: Vec<String> = chain.iter().map(name).filter(|n| n != "bytes").collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    match meta.codecs.sharding() {
        Some(_) => list(meta.unit_codecs().to_json()),
        None => list(meta.codecs.to_json()),
    }
}

/// The shape of a chunk that is decoded by itself, and of a shard if chunks are gathered in them.
pub(crate) fn grids(meta: &ArrayMeta) -> Result<(Vec<u64>, Option<Vec<u64>>)> {
    let unit = meta.unit()?.0.to_vec();
    Ok((
        unit,
        meta.codecs.sharding().map(|_| meta.chunk_shape.to_vec()),
    ))
}

/// Everything the metadata of an array says, as JSON.
pub(crate) fn array_json(meta: &ArrayMeta) -> Result<Value> {
    let (chunks, shards) = grids(meta)?;
    Ok(json!({
        "kind": "array",
        "zarr_format": version(meta),
        "shape": meta.shape[..],
        "dtype": meta.dtype.to_string(),
        "chunks": chunks,
        "shards": shards,
        "codecs": meta.codecs.to_json(),
        "fill_value": meta.fill.to_json(&meta.dtype),
        "dimension_names": meta.dimension_names,
        "attributes": meta.attributes,
    }))
}

/// The version of Zarr that an array is stored in; none for a dataset of an HDF5 file.
pub(crate) fn version(meta: &ArrayMeta) -> Option<u8> {
    match meta.format {
        ZarrFormat::V2 => Some(2),
        ZarrFormat::V3 => Some(3),
        ZarrFormat::Hdf5 => None,
    }
}

/// The format that an array is stored in.
pub(crate) fn format_name(meta: &ArrayMeta) -> String {
    version(meta).map_or_else(|| "HDF5".to_owned(), |version| format!("Zarr v{version}"))
}

/// One node of a list, as JSON.
pub(crate) fn node_json(path: &str, node: &Node) -> Result<Value> {
    let mut value = match node {
        Node::Array(array) => array_json(&array.meta())?,
        Node::Group(group) => json!({"kind": "group", "attributes": group.meta().attributes}),
    };
    value["path"] = json!(path);
    Ok(value)
}

/// Names for several files: what stands before their endings, which has to differ.
pub(super) fn stems(urls: &[String]) -> Result<Vec<String>> {
    let stem = |url: &String| {
        let bare = url.split('?').next().unwrap_or(url).trim_end_matches('/');
        let name = bare.rsplit('/').next().unwrap_or(bare);
        name.rsplit_once('.')
            .map_or(name, |(stem, _)| stem)
            .to_owned()
    };
    let names: Vec<String> = urls.iter().map(stem).collect();
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    match sorted.len() == names.len() {
        true => Ok(names),
        false => Err(Error::invalid("several files have the same name")
            .with_hint("give one of them another name, or make a reference file of each")),
    }
}
