//! How a new array is laid out: the options that `create`, `put`, `cp` and `rechunk` share.

use clap::{Args, ValueEnum};
use hyperslab::{Array, ArraySpec, ChunkGrid, Error, FillValue, Result, Shape, default_chunks};
use serde_json::{Map, Value};

use crate::codec_text;
use crate::sides::Extent;

/// What one object should hold when shards are chosen for given chunks: providers recommend
/// requests of 8 to 16 MiB.
const SHARD_BYTES: u64 = 16 << 20;

/// The byte order of stored numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Endian {
    Little,
    Big,
}

/// Options of a new array's layout.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Layout of a new array")]
pub(crate) struct LayoutArguments {
    /// Chunk shape (the inner chunks, when sharded), or auto
    #[arg(long, value_name = "SIDES|auto")]
    pub(crate) chunks: Option<Extent>,
    /// Shard shape: an object holds a shard of many chunks
    #[arg(long, value_name = "SIDES|auto|none")]
    pub(crate) shards: Option<Extent>,
    /// Codecs, such as none, zstd:3, gzip:5, blosc:lz4:5:shuffle, zstd,crc32c, or JSON
    #[arg(long, value_name = "CODECS")]
    pub(crate) codec: Option<String>,
    /// Order of dimensions in stored chunks
    #[arg(long, value_name = "C|F|2,0,1")]
    pub(crate) order: Option<String>,
    /// Order of dimensions in which the chunks of a shard lie one after another
    #[arg(long, value_name = "C|F|2,0,1")]
    pub(crate) shard_order: Option<String>,
    /// Byte order of stored numbers
    #[arg(long, value_enum)]
    pub(crate) endian: Option<Endian>,
    /// Value of cells that were never written
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) fill: Option<String>,
    /// Attribute; what is not valid JSON is taken as text (repeatable)
    #[arg(long = "attr", value_name = "KEY=JSON")]
    pub(crate) attributes: Vec<String>,
    /// Names of the dimensions, such as time,lat,lon
    #[arg(long, alias = "dim-names", value_name = "NAMES")]
    pub(crate) dims: Option<String>,
}

impl LayoutArguments {
    /// True if how cells are stored is to differ, as opposed to what is said about them.
    pub(crate) fn relays(&self) -> bool {
        self.chunks.is_some()
            || self.shards.is_some()
            || self.codec.is_some()
            || self.order.is_some()
            || self.shard_order.is_some()
            || self.endian.is_some()
    }

    /// True if any option was given.
    pub(crate) fn any(&self) -> bool {
        self.relays() || self.fill.is_some() || !self.attributes.is_empty() || self.dims.is_some()
    }

    /// The spec of an array with the cells of another one, laid out like it but for these options.
    pub(crate) fn spec_like(&self, from: &Array) -> Result<ArraySpec> {
        let meta = from.meta();
        let mut spec = match self.relays() {
            true => ArraySpec::piecewise(&meta)?,
            false => ArraySpec::like(&meta)?,
        };
        // Other chunks of a sharded source need other shards.
        if self.chunks.is_some() && self.shards.is_none() && meta.codecs.sharding().is_some() {
            let auto = LayoutArguments {
                shards: Some(Extent::Auto),
                ..self.clone()
            };
            auto.apply(&mut spec)?;
            return Ok(spec);
        }
        self.apply(&mut spec).map_err(|e| e.context(from.url()))?;
        Ok(spec)
    }

    /// Writes the options into the spec of a new array.
    pub(crate) fn apply(&self, spec: &mut ArraySpec) -> Result<()> {
        if let Some(codec) = &self.codec {
            spec.compression = codec_text::parse(codec, &spec.dtype)?;
        }
        if let Some(order) = &self.order {
            spec.order = Some(parse_order(order, spec.shape.rank())?);
        }
        if let Some(order) = &self.shard_order {
            spec.shard_order = Some(parse_order(order, spec.shape.rank())?);
        }
        if let Some(endian) = self.endian {
            spec.big_endian = endian == Endian::Big;
        }
        if let Some(fill) = &self.fill {
            spec.fill = Some(parse_fill(fill, spec)?);
        }
        if let Some(dims) = &self.dims {
            let names: Vec<Option<String>> = dims
                .split(',')
                .map(|n| Some(n.trim().to_owned()).filter(|n| !n.is_empty()))
                .collect();
            if names.len() != spec.shape.rank() {
                return Err(Error::invalid(format!(
                    "{} dimension names were given for {} dimensions",
                    names.len(),
                    spec.shape.rank()
                ))
                .with_hint("give one name per dimension; an empty one leaves it without a name"));
            }
            spec.dimension_names = Some(names);
        }
        spec.attributes.extend(parse_attributes(&self.attributes)?);
        self.apply_grid(spec)
    }

    fn apply_grid(&self, spec: &mut ArraySpec) -> Result<()> {
        match &self.chunks {
            None => {}
            Some(Extent::Auto) => spec.chunks = None,
            Some(Extent::Sides(sides)) => spec.chunks = Some(check_rank(sides, spec, "chunk")?),
            Some(Extent::None) => {
                return Err(Error::invalid("an array cannot go without chunks")
                    .with_hint("give the array's own shape for a single chunk"));
            }
        }
        match &self.shards {
            None => {}
            Some(Extent::None) => spec.shards = Some(Vec::new()),
            Some(Extent::Sides(sides)) => spec.shards = Some(check_rank(sides, spec, "shard")?),
            Some(Extent::Auto) => {
                spec.shards = match &spec.chunks {
                    Some(chunks) => Some(auto_shards(spec, chunks)?),
                    None => None,
                }
            }
        }
        Ok(())
    }
}

fn check_rank(sides: &[u64], spec: &ArraySpec, what: &str) -> Result<Vec<u64>> {
    let rank = spec.shape.rank();
    if sides.len() != rank {
        return Err(Error::invalid(format!(
            "the {what} shape has {} dimensions, but the array's shape is {}",
            sides.len(),
            spec.shape
        ))
        .with_hint(format!("give {rank} sides")));
    }
    Ok(sides.to_vec())
}

/// Whole numbers of the given chunks that make about one good request; empty for no shards.
fn auto_shards(spec: &ArraySpec, chunks: &[u64]) -> Result<Vec<u64>> {
    let unit = Shape::new(chunks.iter().copied())?;
    let grid = ChunkGrid::new(&spec.shape, &unit)?;
    let cell = spec.dtype.cell_bytes().unwrap_or(32);
    let per_shard = SHARD_BYTES / unit.num_cells().saturating_mul(cell).max(1);
    if per_shard < 2 || grid.num_chunks() < 2 {
        return Ok(Vec::new());
    }
    let counts = default_chunks(&Shape::new(grid.grid_shape())?, 1, per_shard);
    Ok(unit
        .iter()
        .zip(counts.iter())
        .map(|(side, many)| side * many)
        .collect())
}

fn parse_order(text: &str, rank: usize) -> Result<Vec<usize>> {
    match text.trim() {
        "C" | "c" => return Ok((0..rank).collect()),
        "F" | "f" => return Ok((0..rank).rev().collect()),
        _ => {}
    }
    let order: Option<Vec<usize>> = text.split(',').map(|d| d.trim().parse().ok()).collect();
    let permutes =
        |order: &Vec<usize>| order.len() == rank && (0..rank).all(|dim| order.contains(&dim));
    order.filter(permutes).ok_or_else(|| {
        Error::invalid(format!("{text:?} is not an order of {rank} dimensions"))
            .with_hint("write C, F, or each dimension once, such as 2,0,1")
    })
}

/// A fill value: JSON as in `zarr.json`, or text as people write it (`nan`, `-inf`, a string).
fn parse_fill(text: &str, spec: &ArraySpec) -> Result<FillValue> {
    let value = match text.to_ascii_lowercase().as_str() {
        "nan" => Value::from("NaN"),
        "inf" | "+inf" | "infinity" => Value::from("Infinity"),
        "-inf" | "-infinity" => Value::from("-Infinity"),
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    };
    let parsed = FillValue::from_json(&spec.dtype, &value)
        .or_else(|_| FillValue::from_json(&spec.dtype, &Value::from(text)));
    parsed.map_err(|_| {
        Error::invalid(format!(
            "{text:?} is not a value of the data type {}",
            spec.dtype
        ))
        .with_hint("write the fill value as zarr.json has it, such as 0, -1.5, NaN or \"text\"")
    })
}

/// Attributes from `key=json` texts.
pub(crate) fn parse_attributes(texts: &[String]) -> Result<Map<String, Value>> {
    let mut map = Map::new();
    for text in texts {
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(
                Error::invalid(format!("the attribute {text:?} is not key=value"))
                    .with_hint("write --attr units=K or --attr 'range=[0, 1]'"),
            );
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        map.insert(key.to_owned(), value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab::DataType;

    fn spec(shape: &[u64], dtype: &str) -> ArraySpec {
        let dtype = hyperslab::numpy::parse_dtype(dtype).unwrap().dtype;
        ArraySpec::new(Shape::new(shape.iter().copied()).unwrap(), dtype)
    }

    #[test]
    fn options_reach_the_spec() {
        let mut spec = spec(&[100, 200], "f4");
        let arguments = LayoutArguments {
            chunks: Some(Extent::Sides(vec![10, 20])),
            shards: Some(Extent::Auto),
            order: Some("F".into()),
            endian: Some(Endian::Big),
            fill: Some("nan".into()),
            attributes: vec!["units=K".into(), "n=[1]".into()],
            dims: Some("y,".into()),
            ..LayoutArguments::default()
        };
        arguments.apply(&mut spec).unwrap();
        assert_eq!(spec.order, Some(vec![1, 0]));
        assert!(spec.big_endian);
        assert_eq!(spec.fill.unwrap().bytes(), f32::NAN.to_le_bytes());
        assert_eq!(spec.attributes["units"], "K");
        assert_eq!(spec.attributes["n"][0], 1);
        assert_eq!(spec.dimension_names, Some(vec![Some("y".into()), None]));
        assert_eq!(spec.shards, Some(vec![100, 200]));
    }

    #[test]
    fn mistakes_are_refused() {
        let fails = |change: fn(&mut LayoutArguments)| {
            let mut arguments = LayoutArguments::default();
            change(&mut arguments);
            arguments.apply(&mut spec(&[4, 4], "i2")).unwrap_err();
        };
        fails(|a| a.chunks = Some(Extent::Sides(vec![2])));
        fails(|a| a.chunks = Some(Extent::None));
        fails(|a| a.order = Some("0,0".into()));
        fails(|a| a.fill = Some("70000".into()));
        fails(|a| a.fill = Some("x".into()));
        fails(|a| a.attributes = vec!["x".into()]);
        fails(|a| a.dims = Some("a".into()));
        let mut strings = spec(&[2], "string");
        let arguments = LayoutArguments {
            fill: Some("12".into()),
            ..LayoutArguments::default()
        };
        arguments.apply(&mut strings).unwrap();
        assert_eq!(
            strings.fill.unwrap(),
            FillValue::from_bytes(&DataType::String, b"12").unwrap()
        );
    }
}
