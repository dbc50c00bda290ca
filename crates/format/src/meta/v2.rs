//! Zarr v2 metadata (`.zarray`, `.zattrs`), read only.

use hyperslab_index::{ChunkGrid, Error, Result, Shape};
use serde_json::{Map, Value};

use super::array::Spelling;
use super::{ArrayMeta, ZarrFormat};
use crate::codec::{CodecChain, Filter, Packing, Swap};
use crate::{ChunkKeys, DataType, FillValue, numpy};

impl ArrayMeta {
    /// Parses a `.zarray` with its `.zattrs`.
    pub fn from_v2(zarray: &Map<String, Value>, attributes: Map<String, Value>) -> Result<Self> {
        let field = |name: &str| {
            zarray
                .get(name)
                .ok_or_else(|| Error::data(format!(".zarray has no {name:?}")))
        };
        if field("zarr_format")?.as_u64() != Some(2) {
            return Err(Error::data(".zarray does not have the zarr_format 2"));
        }
        let shape = sides(field("shape")?)?;
        let chunk_shape = sides(field("chunks")?)?;
        ChunkGrid::new(&shape, &chunk_shape)?;
        let filters = match zarray.get("filters") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) => list.clone(),
            Some(_) => return Err(Error::data("the filters are not a list")),
        };
        let (dtype, packing, rest) = cells(field("dtype")?, &filters)?;
        let cell_bytes = dtype.cell_bytes().unwrap_or(1) as usize;
        let mut chain: Vec<Filter> = rest
            .iter()
            .map(|f| Filter::from_v2(f, cell_bytes))
            .collect::<Result<_>>()?;
        let mut json = filters;
        match zarray.get("compressor") {
            None | Some(Value::Null) => {}
            Some(compressor) => {
                chain.push(Filter::from_v2(compressor, cell_bytes)?);
                json.push(compressor.clone());
            }
        }
        let rank = shape.rank();
        let order: Vec<usize> = match zarray.get("order").and_then(Value::as_str) {
            Some("F") => (0..rank).rev().collect(),
            _ => (0..rank).collect(),
        };
        let separator = match zarray.get("dimension_separator").and_then(Value::as_str) {
            Some("/") => '/',
            _ => '.',
        };
        let fill = v2_fill(&dtype, field("fill_value")?)?;
        let dimension_names = xarray_dimensions(&attributes, rank);
        let meta = ArrayMeta {
            format: ZarrFormat::V2,
            shape,
            chunk_shape,
            fill,
            dtype,
            codecs: CodecChain::from_v2(order, packing, chain, json),
            keys: ChunkKeys::V2(separator),
            attributes,
            dimension_names,
            extra: Map::new(),
            spelling: Spelling::of_fill(field("fill_value")?),
        };
        meta.check_sizes()?;
        Ok(meta)
    }
}

/// The data type, how cells are packed, and the filters that remain: in Zarr v2 the string codecs
/// are filters over NumPy objects.
fn cells(dtype: &Value, filters: &[Value]) -> Result<(DataType, Packing, Vec<Value>)> {
    if dtype.as_str() == Some("|O") {
        let id = filters
            .first()
            .and_then(|f| f.get("id"))
            .and_then(Value::as_str);
        let (dtype, utf8) = match id {
            Some("vlen-utf8") => (DataType::String, true),
            Some("vlen-bytes") => (DataType::VarBytes, false),
            other => {
                return Err(Error::data(format!(
                    "objects encoded with {} are not supported",
                    other.unwrap_or("nothing")
                ))
                .with_hint("vlen-utf8 and vlen-bytes are"));
            }
        };
        return Ok((dtype, Packing::Strings { utf8 }, filters[1..].to_vec()));
    }
    let stored = numpy::from_v2(dtype)?;
    let size = stored.dtype.cell_bytes().unwrap_or(0) as usize;
    let swap = Swap::new(size, &stored.big_endian);
    Ok((stored.dtype, Packing::Cells(swap), filters.to_vec()))
}

fn sides(value: &Value) -> Result<Shape> {
    let list: Option<Vec<u64>> = value
        .as_array()
        .and_then(|l| l.iter().map(Value::as_u64).collect());
    Shape::new(list.ok_or_else(|| {
        Error::data(format!(
            "the shape {value} is not a list of non-negative integers"
        ))
    })?)
}

/// Zarr v2 writers spell the empty fill of strings as 0, and of byte strings as "".
fn v2_fill(dtype: &DataType, value: &Value) -> Result<FillValue> {
    if dtype.is_variable() && value.as_u64() == Some(0) {
        return Ok(FillValue::zero(dtype));
    }
    FillValue::from_json(dtype, value)
}

/// xarray keeps dimension names of Zarr v2 arrays in an attribute.
fn xarray_dimensions(attributes: &Map<String, Value>, rank: usize) -> Option<Vec<Option<String>>> {
    let list = attributes.get("_ARRAY_DIMENSIONS")?.as_array()?;
    let names: Option<Vec<Option<String>>> = list
        .iter()
        .map(|v| v.as_str().map(|s| Some(s.to_owned())))
        .collect();
    names.filter(|n| n.len() == rank)
}
