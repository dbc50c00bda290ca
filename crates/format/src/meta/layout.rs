//! New arrays: from what a user says to complete metadata, with defaults for the rest.
//!
//! Where no chunk shape is given, sides are proportional to the array's (the 1994 rule of
//! Sarawagi and Stonebraker for an unknown access pattern), at a size that suits the store, and
//! small chunks are gathered into shards so that objects do not become many and tiny.

use hyperslab_index::{ChunkGrid, Error, Result, Shape, default_chunks};
use serde_json::{Map, Value, json};

use super::array::Spelling;
use super::{ArrayMeta, ZarrFormat};
use crate::codec::{CodecChain, default_packing, v3_json};
use crate::{ChunkKeys, DataType, FillValue};

/// Codecs that a spec says by other fields.
const PACKING: [&str; 6] = [
    "bytes",
    "transpose",
    "sharding_indexed",
    "vlen-utf8",
    "vlen-bytes",
    "vlen_bytes",
];

/// What sizes suit a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorePolicy {
    /// Bytes of a chunk before compression.
    pub chunk_bytes: u64,
    /// Bytes of an object before compression; chunks smaller than this are gathered in shards.
    pub object_bytes: u64,
    /// Up to so many chunks stay objects of their own.
    pub max_plain_chunks: u64,
}

impl StorePolicy {
    /// Local disk: opening a file is cheap, so chunks stay files until there are very many.
    pub const LOCAL: StorePolicy = StorePolicy {
        chunk_bytes: 1 << 20,
        object_bytes: 32 << 20,
        max_plain_chunks: 10_000,
    };

    /// Object stores: a request costs as much time as a megabyte or more, and providers
    /// recommend requests of 8 to 16 MiB.
    pub const CLOUD: StorePolicy = StorePolicy {
        chunk_bytes: 1 << 20,
        object_bytes: 16 << 20,
        max_plain_chunks: 16,
    };
}

/// How chunks of a new array are compressed.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Compression {
    /// zstd at level 0 (its default), the default of zarr-python too.
    #[default]
    Default,
    /// Not at all: byte ranges of chunks can be read.
    None,
    /// These codecs after the cells were turned into bytes, as Zarr v3 spells them.
    Codecs(Vec<Value>),
    /// The complete chain, as Zarr v3 spells it.
    Chain(Vec<Value>),
}

/// What a user says of a new array; the rest is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ArraySpec {
    /// Its shape.
    pub shape: Shape,
    /// The type of its cells.
    pub dtype: DataType,
    /// Chunk shape (the inner chunks, when sharded).
    pub chunks: Option<Vec<u64>>,
    /// Shard shape; `Some(empty)` asks for none.
    pub shards: Option<Vec<u64>>,
    /// Whether chunks of a given shape are put into shards if they are many and small, and nothing is
    /// said of shards.
    pub may_shard: bool,
    /// Order of dimensions in stored chunks; `None` is row-major.
    pub order: Option<Vec<usize>>,
    /// Order of dimensions in which the chunks of a shard lie one after another; `None` is row-major.
    pub shard_order: Option<Vec<usize>>,
    /// Store numbers big-endian.
    pub big_endian: bool,
    /// Compression.
    pub compression: Compression,
    /// Fill value; `None` is zero.
    pub fill: Option<FillValue>,
    /// Attributes.
    pub attributes: Map<String, Value>,
    /// Names of the dimensions.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// How chunks are named; `None` is `c/0/0`.
    pub keys: Option<ChunkKeys>,
}

impl ArraySpec {
    /// An array with every choice left open.
    pub fn new(shape: Shape, dtype: DataType) -> Self {
        ArraySpec {
            shape,
            dtype,
            chunks: None,
            shards: None,
            may_shard: false,
            order: None,
            shard_order: None,
            big_endian: false,
            compression: Compression::Default,
            fill: None,
            attributes: Map::new(),
            dimension_names: None,
            keys: None,
        }
    }

    /// A spec that makes an array laid out like an existing one.
    pub fn like(meta: &ArrayMeta) -> Result<Self> {
        let (unit, _) = meta.unit()?;
        let sharded = meta.codecs.sharding().is_some();
        let mut spec = ArraySpec::new(meta.shape.clone(), meta.dtype.storable());
        spec.fill = Some(meta.fill.clone());
        spec.attributes = meta.attributes.clone();
        spec.dimension_names = meta.dimension_names.clone();
        if meta.has_free_layout() {
            // Nobody chose the units of a contiguous dataset.
            spec.compression = Compression::None;
            return Ok(spec);
        }
        spec.chunks = Some(unit.to_vec());
        spec.shards = Some(if sharded {
            meta.chunk_shape.to_vec()
        } else {
            Vec::new()
        });
        if meta.format == ZarrFormat::Hdf5 {
            // Chunks of a file are no objects, and may be small.
            spec.shards = None;
            spec.may_shard = true;
            if meta.codecs.to_json().is_empty() {
                spec.compression = Compression::None;
            }
        }
        if meta.format == ZarrFormat::V3 {
            spec.keys = Some(meta.keys.clone());
            let chain = meta.codecs.to_json().to_vec();
            if sharded {
                spec.compression = Compression::Chain(chain);
                spec.chunks = Some(meta.chunk_shape.to_vec());
                spec.shards = Some(Vec::new());
            } else {
                spec.compression = Compression::Chain(chain);
            }
        }
        Ok(spec)
    }

    /// A spec for the cells of an existing array, like it, whose layout can be changed piece by piece:
    /// chunks, shards, order, byte order and the codecs after it.
    pub fn piecewise(meta: &ArrayMeta) -> Result<Self> {
        let (unit, order) = meta.unit()?;
        let mut spec = ArraySpec::new(meta.shape.clone(), meta.dtype.storable());
        spec.fill = Some(meta.fill.clone());
        spec.attributes = meta.attributes.clone();
        spec.dimension_names = meta.dimension_names.clone();
        spec.chunks = Some(unit.to_vec());
        spec.order = Some(order.dims().to_vec());
        spec.shard_order = Some(meta.shard_order());
        spec.shards = Some(match meta.codecs.sharding() {
            Some(_) => meta.chunk_shape.to_vec(),
            None => Vec::new(),
        });
        if meta.format != ZarrFormat::V3 {
            return Ok(spec);
        }
        let name = |codec: &Value| {
            let name = codec.as_str().or_else(|| codec.get("name")?.as_str());
            name.unwrap_or_default().to_owned()
        };
        let chain = meta.unit_codecs().to_json();
        let endian = "/configuration/endian";
        spec.big_endian = chain.iter().any(|codec| {
            let endian = codec.pointer(endian).and_then(Value::as_str);
            name(codec) == "bytes" && endian == Some("big")
        });
        let rest = chain
            .iter()
            .filter(|codec| !PACKING.contains(&&*name(codec)));
        let rest: Vec<Value> = rest.cloned().collect();
        spec.compression = match rest.is_empty() {
            true => Compression::None,
            false => Compression::Codecs(rest),
        };
        Ok(spec)
    }

    /// Completes the metadata.
    pub fn build(self, policy: &StorePolicy) -> Result<ArrayMeta> {
        let rank = self.shape.rank();
        let cell = self.dtype.cell_bytes().unwrap_or(32);
        let unit = match &self.chunks {
            Some(chunks) => Shape::new(chunks.iter().copied())?,
            None => default_chunks(&self.shape, cell, policy.chunk_bytes),
        };
        ChunkGrid::new(&self.shape, &unit)?;
        let chain_given = matches!(self.compression, Compression::Chain(_));
        let shard = match &self.shards {
            Some(sides) if sides.is_empty() => None,
            Some(sides) => Some(Shape::new(sides.iter().copied())?),
            None if (self.chunks.is_none() || self.may_shard) && !chain_given => {
                self.default_shard(&unit, cell, policy)?
            }
            None => None,
        };
        if let Some(shard) = &shard {
            let fits = shard.rank() == rank
                && shard
                    .iter()
                    .zip(unit.iter())
                    .all(|(s, u)| *s > 0 && s % u == 0);
            if !fits {
                return Err(Error::invalid(format!(
                    "the shard shape {shard} is not a multiple of the chunk shape {unit}"
                )));
            }
        }
        for order in [&self.order, &self.shard_order].into_iter().flatten() {
            if order.len() != rank || (0..rank).any(|dim| !order.contains(&dim)) {
                return Err(Error::invalid(format!(
                    "{order:?} is not an order of {rank} dimensions"
                )));
            }
        }
        let codecs = self.chain(&unit, shard.is_some())?;
        let chunk_shape = shard.unwrap_or(unit);
        let codecs = CodecChain::from_json(&codecs, &self.dtype, &chunk_shape)
            .map_err(|e| Error::invalid(e.message().to_owned()))?;
        if self
            .dimension_names
            .as_ref()
            .is_some_and(|n| n.len() != rank)
        {
            return Err(Error::invalid(format!(
                "the dimension names do not name {rank} dimensions"
            )));
        }
        let meta = ArrayMeta {
            format: ZarrFormat::V3,
            fill: self.fill.unwrap_or_else(|| FillValue::zero(&self.dtype)),
            shape: self.shape,
            chunk_shape,
            dtype: self.dtype,
            codecs,
            keys: self.keys.unwrap_or(ChunkKeys::Default('/')),
            attributes: self.attributes,
            dimension_names: self.dimension_names,
            extra: Map::new(),
            spelling: Spelling::default(),
        };
        meta.check_sizes()
            .map_err(|e| Error::invalid(e.message().to_owned()))?;
        Ok(meta)
    }

    /// Shards of about the store's object size, if there would be too many plain chunks.
    fn default_shard(
        &self,
        unit: &Shape,
        cell: u64,
        policy: &StorePolicy,
    ) -> Result<Option<Shape>> {
        let grid = ChunkGrid::new(&self.shape, unit)?;
        let per_shard = policy.object_bytes / unit.num_cells().saturating_mul(cell).max(1);
        if grid.num_chunks() <= policy.max_plain_chunks || per_shard < 2 {
            return Ok(None);
        }
        let counts = default_chunks(&Shape::new(grid.grid_shape())?, 1, per_shard);
        Ok(Some(Shape::new(
            unit.iter().zip(counts.iter()).map(|(u, n)| u * n),
        )?))
    }

    fn chain(&self, unit: &Shape, sharded: bool) -> Result<Vec<Value>> {
        let mut chain = Vec::new();
        let rows: Vec<usize> = (0..self.shape.rank()).collect();
        let permuted = |order: &&Vec<usize>| **order != rows;
        let outer = self.shard_order.as_ref().filter(|_| sharded);
        let outer = outer.filter(permuted);
        let filters = match &self.compression {
            Compression::Chain(chain) => return Ok(chain.clone()),
            Compression::None => Vec::new(),
            Compression::Default => {
                vec![v3_json("zstd", json!({"level": 0, "checksum": false}))]
            }
            Compression::Codecs(list) => list.clone(),
        };
        // Cells of inner chunks are ordered after those of the shard were.
        let cells = self.order.as_ref().unwrap_or(&rows);
        let order: Vec<usize> = match outer {
            None => cells.clone(),
            Some(outer) => {
                let place = |dim: &usize| outer.iter().position(|at| at == dim);
                cells.iter().filter_map(place).collect()
            }
        };
        if order != rows {
            chain.push(v3_json("transpose", json!({"order": order})));
        }
        chain.push(default_packing(&self.dtype, self.big_endian));
        chain.extend(filters);
        if !sharded {
            return Ok(chain);
        }
        let mut sharded = Vec::new();
        let mut inner = unit.to_vec();
        if let Some(outer) = outer {
            inner = outer.iter().map(|dim| unit[*dim]).collect();
            sharded.push(v3_json("transpose", json!({"order": outer})));
        }
        sharded.push(v3_json(
            "sharding_indexed",
            json!({
                "chunk_shape": inner,
                "codecs": chain,
                "index_codecs": [
                    v3_json("bytes", json!({"endian": "little"})),
                    {"name": "crc32c"},
                ],
                "index_location": "end",
            }),
        ));
        Ok(sharded)
    }
}
