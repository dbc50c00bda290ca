//! Metadata of an array.

use hyperslab_index::{CellOrder, ChunkGrid, Error, Result, Shape};
use serde_json::{Map, Value, json};

use super::{check_extra, check_format, take_attributes};
use crate::codec::{CodecChain, name_and_config, stored_shape};
use crate::{ChunkKeys, DataType, FillValue};

/// The key in [`ArrayMeta::extra`] under which a dataset of HDF5 says how it is laid out.
pub(crate) const HDF5_LAYOUT: &str = "hdf5_layout";

/// Which version of Zarr the array is stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZarrFormat {
    /// `.zarray` and `.zattrs`: read only.
    V2,
    /// `zarr.json`.
    V3,
    /// Not Zarr at all: a dataset of an HDF5 file, read only.
    Hdf5,
}

/// Metadata of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayMeta {
    /// The version of Zarr.
    pub format: ZarrFormat,
    /// The array's shape.
    pub shape: Shape,
    /// The shape of what one object holds: a chunk, or a shard.
    pub chunk_shape: Shape,
    /// The type of a cell.
    pub dtype: DataType,
    /// The value of cells in absent chunks.
    pub fill: FillValue,
    /// How chunks are encoded.
    pub codecs: CodecChain,
    /// How chunks are named.
    pub keys: ChunkKeys,
    /// What users say about the array.
    pub attributes: Map<String, Value>,
    /// Names of the dimensions.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Fields that are not ours and may be ignored; they are written back.
    pub(crate) extra: Map<String, Value>,
    pub(crate) spelling: Spelling,
}

/// How another tool spelled data type and fill value. Rewritten metadata keeps the spelling, which
/// that tool may depend on; two arrays that differ in nothing else are equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spelling(Option<Box<(Value, Value)>>);

impl PartialEq for Spelling {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Spelling {
    /// Keeps how a fill value is spelled in a format that is never written.
    pub(super) fn of_fill(fill: &Value) -> Self {
        Spelling(Some(Box::new((Value::Null, fill.clone()))))
    }

    /// The kept spelling, unless it means something else than type and fill value now are.
    fn of(&self, dtype: &DataType, fill: &FillValue) -> Option<(Value, Value)> {
        let (type_json, fill_json) = self.0.as_deref()?;
        let same = DataType::from_json(type_json).is_ok_and(|t| t == *dtype)
            && FillValue::from_json(dtype, fill_json).is_ok_and(|f| f == *fill);
        same.then(|| (type_json.clone(), fill_json.clone()))
    }
}

impl ArrayMeta {
    /// True if the metadata says that there is no fill value, as Zarr v2 may: cells that nobody wrote
    /// read as zeros, and zeros do not mean that nobody wrote them.
    pub fn has_no_fill(&self) -> bool {
        let spelled = self.spelling.0.as_deref();
        spelled.is_some_and(|(_, fill)| fill.is_null())
    }

    /// True for a dataset of HDF5 without chunks: its units are ours, and a copy may have others.
    pub fn has_free_layout(&self) -> bool {
        self.format == ZarrFormat::Hdf5
            && self.extra.get(HDF5_LAYOUT).and_then(Value::as_str) != Some("chunked")
    }

    /// Parses a `zarr.json`.
    pub fn from_json(value: &Value) -> Result<Self> {
        let Value::Object(map) = value else {
            return Err(Error::data("the metadata is not a JSON object"));
        };
        let mut map = map.clone();
        check_format(&mut map, "array")?;
        let mut take = |name: &str| {
            map.remove(name)
                .ok_or_else(|| Error::data(format!("zarr.json has no {name:?}")))
        };
        let shape = shape_from(&take("shape")?, "shape")?;
        let type_json = take("data_type")?;
        let dtype = DataType::from_json(&type_json)?;
        let grid = take("chunk_grid")?;
        let (grid_name, grid_config) = name_and_config(&grid)?;
        if grid_name != "regular" {
            return Err(
                Error::data(format!("the chunk grid {grid_name:?} is not known"))
                    .with_hint("this version reads regular grids"),
            );
        }
        let chunk_shape = shape_from(
            grid_config.get("chunk_shape").unwrap_or(&Value::Null),
            "chunk_shape",
        )?;
        let keys = ChunkKeys::from_json(&take("chunk_key_encoding")?)?;
        let fill_json = take("fill_value")?;
        let fill = FillValue::from_json(&dtype, &fill_json)?;
        let codecs = take("codecs")?;
        let Value::Array(codecs) = codecs else {
            return Err(Error::data("the codecs are not a list"));
        };
        let dimension_names = match map.remove("dimension_names") {
            None | Some(Value::Null) => None,
            Some(value) => Some(dimension_names(&value, shape.rank())?),
        };
        if let Some(Value::Array(list)) = map.remove("storage_transformers")
            && !list.is_empty()
        {
            return Err(Error::data(
                "the array has storage transformers, which are not supported",
            ));
        }
        let attributes = take_attributes(&mut map)?;
        check_extra(&map)?;
        // The grid checks ranks and zero sides before codecs are measured against the chunk.
        ChunkGrid::new(&shape, &chunk_shape)?;
        let codecs = CodecChain::from_json(&codecs, &dtype, &chunk_shape)?;
        let meta = ArrayMeta {
            format: ZarrFormat::V3,
            shape,
            chunk_shape,
            dtype,
            fill,
            codecs,
            keys,
            attributes,
            dimension_names,
            extra: map,
            spelling: Spelling(Some(Box::new((type_json, fill_json)))),
        };
        meta.check_sizes()?;
        Ok(meta)
    }

    /// Sizes come from a file: they must be small enough to allocate a chunk.
    pub(crate) fn check_sizes(&self) -> Result<()> {
        let cell = self.dtype.cell_bytes().unwrap_or(16);
        let (shape, _) = self.unit()?;
        let unit = shape
            .num_cells()
            .checked_mul(cell)
            .filter(|n| *n <= 1 << 40);
        let all = self.shape.num_cells().checked_mul(cell);
        match (unit, all) {
            (Some(_), Some(_)) => Ok(()),
            (None, _) => Err(Error::data(format!(
                "a chunk of shape {shape} and type {} is larger than a tebibyte",
                self.dtype
            ))),
            (_, None) => Err(Error::data(format!(
                "an array of shape {} and type {} has more than 2^64 bytes",
                self.shape, self.dtype
            ))),
        }
    }

    /// The `zarr.json` of this array.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        let (type_json, fill_json) = self
            .spelling
            .of(&self.dtype, &self.fill)
            .unwrap_or_else(|| (self.dtype.to_json(), self.fill.to_json(&self.dtype)));
        map.insert("zarr_format".into(), json!(3));
        map.insert("node_type".into(), json!("array"));
        map.insert("shape".into(), json!(self.shape[..]));
        map.insert("data_type".into(), type_json);
        map.insert(
            "chunk_grid".into(),
            json!({"name": "regular", "configuration": {"chunk_shape": self.chunk_shape[..]}}),
        );
        map.insert("chunk_key_encoding".into(), self.keys.to_json());
        map.insert("fill_value".into(), fill_json);
        map.insert("codecs".into(), json!(self.codecs.to_json()));
        map.insert("attributes".into(), Value::Object(self.attributes.clone()));
        if let Some(names) = &self.dimension_names {
            map.insert("dimension_names".into(), json!(names));
        }
        map.insert("storage_transformers".into(), json!([]));
        map.extend(self.extra.clone());
        Value::Object(map)
    }

    /// The grid of objects (chunks or shards).
    pub fn grid(&self) -> Result<ChunkGrid> {
        ChunkGrid::new(&self.shape, &self.chunk_shape)
    }

    /// The smallest block that is decoded by itself (a chunk, or a shard's inner chunk): its shape
    /// in array dimensions and the order its cells are stored in.
    pub fn unit(&self) -> Result<(Shape, CellOrder)> {
        let outer = self.codecs.dims();
        let Some(sharding) = self.codecs.sharding() else {
            return Ok((self.chunk_shape.clone(), self.codecs.order()?));
        };
        let mut shape = vec![0; self.shape.rank()];
        for (stored, dim) in outer.iter().enumerate() {
            shape[*dim] = sharding.inner_shape[stored];
        }
        let order: Vec<usize> = sharding.inner.dims().iter().map(|d| outer[*d]).collect();
        Ok((Shape::new(shape)?, CellOrder::new(&order)?))
    }

    /// The dimensions of the chunks in a shard as they lie one after another, the outermost first.
    pub fn shard_order(&self) -> Vec<usize> {
        match self.codecs.sharding() {
            Some(_) => self.codecs.dims().to_vec(),
            None => (0..self.shape.rank()).collect(),
        }
    }

    /// The chain that decodes a unit.
    pub fn unit_codecs(&self) -> &CodecChain {
        self.codecs.sharding().map_or(&self.codecs, |s| &s.inner)
    }

    /// The stored shape of a unit: its sides in the order they are stored.
    pub fn unit_stored_shape(&self) -> Vec<u64> {
        match self.codecs.sharding() {
            Some(sharding) => stored_shape(sharding.inner.dims(), &sharding.inner_shape),
            None => stored_shape(self.codecs.dims(), &self.chunk_shape),
        }
    }

    /// Which inner chunk of its shard holds the unit with this index of the unit grid.
    pub fn inner_index(&self, unit: &[u64]) -> Option<u64> {
        let sharding = self.codecs.sharding()?;
        let mut index = 0;
        for (stored, dim) in self.codecs.dims().iter().enumerate() {
            let count = sharding.counts[stored];
            index = index * count + unit[*dim] % count;
        }
        Some(index)
    }
}

fn shape_from(value: &Value, name: &str) -> Result<Shape> {
    let sides: Option<Vec<u64>> = value
        .as_array()
        .and_then(|list| list.iter().map(Value::as_u64).collect());
    let sides = sides.ok_or_else(|| {
        Error::data(format!(
            "the {name} {value} is not a list of non-negative integers"
        ))
    })?;
    Shape::new(sides)
}

fn dimension_names(value: &Value, rank: usize) -> Result<Vec<Option<String>>> {
    let names: Option<Vec<Option<String>>> = value.as_array().and_then(|list| {
        list.iter()
            .map(|v| match v {
                Value::Null => Some(None),
                Value::String(s) => Some(Some(s.clone())),
                _ => None,
            })
            .collect()
    });
    names.filter(|n| n.len() == rank).ok_or_else(|| {
        Error::data(format!(
            "the dimension names {value} do not name {rank} dimensions"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewritten_metadata_keeps_the_spelling_of_its_writer() {
        let written = json!({
            "zarr_format": 3, "node_type": "array", "shape": [4], "attributes": {},
            "data_type": {"name": "struct", "configuration": {"fields": [
                {"name": "x", "data_type": "int16"}, {"name": "z", "data_type": "complex_float32"}
            ]}},
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": {"x": 7, "z": [1.0, "NaN"]},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]
        });
        let mut meta = ArrayMeta::from_json(&written).unwrap();
        meta.shape = Shape::new([8]).unwrap();
        let json = meta.to_json();
        assert_eq!(json["data_type"], written["data_type"]);
        assert_eq!(json["fill_value"], written["fill_value"]);
        let again = ArrayMeta::from_json(&json).unwrap();
        assert_eq!(again, meta);

        meta.fill = FillValue::zero(&meta.dtype);
        let json = meta.to_json();
        assert_eq!(ArrayMeta::from_json(&json).unwrap().fill, meta.fill);
        assert_eq!(json["data_type"]["name"], "structured");
    }
}
