//! Shards: one object that holds many inner chunks and an index of where each of them lies.
//!
//! The `sharding_indexed` codec. Inner chunks are laid out over the shard's *stored* shape (after
//! any transpose). Invariant: every index entry that is used was checked against the size of the
//! object, and an entry of all ones means an absent inner chunk, hence the fill value.

use std::ops::Range;

use bytes::Bytes;
use hyperslab_index::{ChunkGrid, Error, Result, Selection, Shape, StridedCopy, Target};
use serde_json::Value;

use super::{CodecChain, Filter, Scratch, Swap, name_and_config, stored_shape};
use crate::DataType;
use crate::fill::FillValue;

const ABSENT: u64 = u64::MAX;
/// An index of more entries than this (a quarter of a gigabyte) is taken for corrupt metadata.
const MAX_INNER: u64 = 1 << 24;

/// The configuration of `sharding_indexed`.
#[derive(Debug, Clone, PartialEq)]
pub struct Sharding {
    /// Shape of the inner chunks, in stored dimension order.
    pub inner_shape: Shape,
    /// The chain of the inner chunks.
    pub inner: CodecChain,
    /// How many inner chunks along each stored dimension.
    pub counts: Vec<u64>,
    index_swap: Swap,
    index_filters: Vec<Filter>,
    at_start: bool,
    dtype: DataType,
}

/// Where the inner chunks of one shard lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardIndex(Vec<(u64, u64)>);

impl Sharding {
    pub(super) fn from_json(config: &Value, dtype: &DataType, stored: &[u64]) -> Result<Self> {
        let field = |name: &str| {
            config
                .get(name)
                .ok_or_else(|| Error::data(format!("sharding_indexed has no {name}")))
        };
        let bad_shape = || {
            Error::data(format!(
                "the inner chunk shape {} does not divide the shard shape {stored:?}",
                config.get("chunk_shape").unwrap_or(&Value::Null)
            ))
        };
        let inner: Option<Vec<u64>> = field("chunk_shape")?
            .as_array()
            .and_then(|l| l.iter().map(Value::as_u64).collect());
        let inner = inner
            .filter(|s| s.len() == stored.len())
            .ok_or_else(bad_shape)?;
        if inner.iter().zip(stored).any(|(i, s)| *i == 0 || s % i != 0) {
            return Err(bad_shape());
        }
        let counts: Vec<u64> = stored.iter().zip(&inner).map(|(s, i)| s / i).collect();
        if counts
            .iter()
            .try_fold(1u64, |n, c| n.checked_mul(*c))
            .is_none_or(|n| n > MAX_INNER)
        {
            return Err(Error::data(format!(
                "a shard holds more than {MAX_INNER} inner chunks"
            )));
        }
        let list = |name: &str| -> Result<&Vec<Value>> {
            field(name)?
                .as_array()
                .ok_or_else(|| Error::data(format!("{name} is not a list")))
        };
        let (index_swap, index_filters) = index_codecs(list("index_codecs")?)?;
        let at_start = match config.get("index_location").and_then(Value::as_str) {
            Some("start") => true,
            Some("end") | None => false,
            Some(other) => {
                return Err(Error::data(format!(
                    "the index location {other:?} is not known"
                )));
            }
        };
        Ok(Sharding {
            inner: CodecChain::from_json(list("codecs")?, dtype, &inner)?,
            inner_shape: Shape::new(inner)?,
            counts,
            index_swap,
            index_filters,
            at_start,
            dtype: dtype.clone(),
        })
    }

    /// How many inner chunks a shard has.
    pub fn num_inner(&self) -> u64 {
        self.counts.iter().product()
    }

    /// Bytes of the encoded index.
    pub fn index_bytes(&self) -> u64 {
        self.index_filters
            .iter()
            .fold(16 * self.num_inner(), |len, f| f.encoded_len(len).0)
    }

    /// True if the index is the head of the object instead of its tail.
    pub fn index_at_start(&self) -> bool {
        self.at_start
    }

    pub(super) fn encoded_bound(&self, cells: u64) -> u64 {
        if self.dtype.is_variable() {
            return super::MAX_STRINGS as u64;
        }
        let inner = cells / self.num_inner().max(1);
        self.inner.encoded_bound(inner) * self.num_inner() + self.index_bytes()
    }

    /// Decodes an index that was cut out of an object of `object_len` bytes.
    pub fn decode_index(&self, encoded: &[u8], object_len: u64) -> Result<ShardIndex> {
        let mut data = encoded.to_vec();
        for filter in self.index_filters.iter().rev() {
            let mut out = vec![0; data.len()];
            let n = filter
                .decode(&data, &mut out)
                .map_err(|e| e.context("the shard index"))?;
            out.truncate(n);
            data = out;
        }
        if data.len() as u64 != 16 * self.num_inner() {
            return Err(Error::data(format!(
                "the shard index has {} bytes where {} belong",
                data.len(),
                16 * self.num_inner()
            )));
        }
        self.index_swap.apply(&mut data);
        let (words, _) = data.as_chunks::<8>();
        let entries: Vec<(u64, u64)> = words
            .chunks_exact(2)
            .map(|pair| (u64::from_le_bytes(pair[0]), u64::from_le_bytes(pair[1])))
            .collect();
        for (offset, len) in &entries {
            let inside = offset
                .checked_add(*len)
                .is_some_and(|end| end <= object_len);
            if (*offset, *len) != (ABSENT, ABSENT) && !inside {
                return Err(Error::data(format!(
                    "the shard index points at bytes {offset}+{len} of an object of {object_len} bytes"
                )));
            }
        }
        Ok(ShardIndex(entries))
    }

    /// Cuts the index out of a whole shard and decodes it.
    pub fn index_of(&self, shard: &[u8]) -> Result<ShardIndex> {
        let n = self.index_bytes() as usize;
        if shard.len() < n {
            return Err(Error::data(format!(
                "the shard has {} bytes, fewer than its index alone ({n})",
                shard.len()
            )));
        }
        let part = if self.at_start {
            &shard[..n]
        } else {
            &shard[shard.len() - n..]
        };
        self.decode_index(part, shard.len() as u64)
    }

    /// Puts encoded inner chunks (`None` for absent ones, in index order) together with their
    /// index. `None` if all are absent: such a shard is not stored.
    pub fn assemble(&self, inner: &[Option<Bytes>]) -> Result<Option<Vec<Bytes>>> {
        if inner.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut at = if self.at_start { self.index_bytes() } else { 0 };
        let mut index = Vec::with_capacity(16 * inner.len());
        let mut parts = Vec::with_capacity(inner.len() + 1);
        for chunk in inner {
            let (offset, len) = match chunk {
                None => (ABSENT, ABSENT),
                Some(bytes) => {
                    let entry = (at, bytes.len() as u64);
                    at += entry.1;
                    parts.push(bytes.clone());
                    entry
                }
            };
            index.extend_from_slice(&offset.to_le_bytes());
            index.extend_from_slice(&len.to_le_bytes());
        }
        self.index_swap.apply(&mut index);
        for filter in &self.index_filters {
            index = filter.encode(&index)?;
        }
        let place = if self.at_start { 0 } else { parts.len() };
        parts.insert(place, index.into());
        Ok(Some(parts))
    }

    fn grid(&self, stored: &[u64]) -> Result<ChunkGrid> {
        ChunkGrid::new(&Shape::new(stored.iter().copied())?, &self.inner_shape)
    }

    /// The inner chunk's shape in its own stored order.
    fn inner_stored(&self) -> Vec<u64> {
        stored_shape(self.inner.dims(), &self.inner_shape)
    }

    pub(super) fn encode_cells(
        &self,
        cells: &[u8],
        stored: &[u64],
        fill: &[u8],
    ) -> Result<Vec<u8>> {
        let size = fill.len();
        let order = self.inner.order()?;
        let target = Target::packed(stored);
        let fill_value = FillValue::from_bytes(&self.dtype, fill)?;
        let mut inner = Vec::with_capacity(self.num_inner() as usize);
        for part in self.grid(stored)?.parts(&Selection::All)? {
            let mut buffer = vec![0; self.inner_shape.num_cells() as usize * size];
            for copy in part.copies(&order, &target) {
                for k in 0..copy.count {
                    let (src, dst) = offsets(&copy, k, size);
                    let len = copy.len as usize * size;
                    buffer[src..src + len].copy_from_slice(&cells[dst..dst + len]);
                }
            }
            inner.push(if fill_value.fills(&buffer) {
                None
            } else {
                Some(
                    self.inner
                        .encode(&mut buffer, &self.inner_stored(), fill)?
                        .into(),
                )
            });
        }
        self.join(&inner)
    }

    pub(super) fn encode_strings(
        &self,
        cells: &[Bytes],
        stored: &[u64],
        fill: &[u8],
    ) -> Result<Vec<u8>> {
        let order = self.inner.order()?;
        let target = Target::packed(stored);
        let mut inner = Vec::with_capacity(self.num_inner() as usize);
        for part in self.grid(stored)?.parts(&Selection::All)? {
            let mut buffer = vec![Bytes::new(); self.inner_shape.num_cells() as usize];
            for copy in part.copies(&order, &target) {
                for k in 0..copy.count {
                    let (src, dst) = offsets(&copy, k, 1);
                    let len = copy.len as usize;
                    buffer[src..src + len].clone_from_slice(&cells[dst..dst + len]);
                }
            }
            let empty = buffer.iter().all(|cell| cell == fill);
            inner.push(if empty {
                None
            } else {
                Some(
                    self.inner
                        .encode_strings(&buffer, &self.inner_stored(), fill)?
                        .into(),
                )
            });
        }
        self.join(&inner)
    }

    /// A shard in one piece; one without any inner chunk still has its index.
    fn join(&self, inner: &[Option<Bytes>]) -> Result<Vec<u8>> {
        self.assemble(inner)?
            .map_or_else(|| self.empty(), |parts| Ok(parts.concat()))
    }

    /// A shard without any inner chunk: nothing but its index.
    pub fn empty(&self) -> Result<Vec<u8>> {
        let mut index = vec![0xff; 16 * self.num_inner() as usize];
        for filter in &self.index_filters {
            index = filter.encode(&index)?;
        }
        Ok(index)
    }

    pub(super) fn decode_cells(
        &self,
        shard: &[u8],
        out: &mut [u8],
        stored: &[u64],
        fill: &[u8],
    ) -> Result<()> {
        let size = fill.len();
        let index = self.index_of(shard)?;
        let order = self.inner.order()?;
        let target = Target::packed(stored);
        let fill_value = FillValue::from_bytes(&self.dtype, fill)?;
        let mut scratch = Scratch::default();
        let mut buffer = vec![0; self.inner_shape.num_cells() as usize * size];
        for (i, part) in self.grid(stored)?.parts(&Selection::All)?.enumerate() {
            match index.get(i as u64) {
                None => fill_value.fill(&mut buffer),
                Some(range) => {
                    let bytes = &shard[range.start as usize..range.end as usize];
                    self.inner.decode(
                        bytes,
                        &mut buffer,
                        &self.inner_stored(),
                        fill,
                        &mut scratch,
                    )?;
                }
            }
            for copy in part.copies(&order, &target) {
                for k in 0..copy.count {
                    let (src, dst) = offsets(&copy, k, size);
                    let len = copy.len as usize * size;
                    out[dst..dst + len].copy_from_slice(&buffer[src..src + len]);
                }
            }
        }
        Ok(())
    }

    pub(super) fn decode_strings(
        &self,
        shard: &Bytes,
        stored: &[u64],
        fill: &[u8],
    ) -> Result<Vec<Bytes>> {
        let index = self.index_of(shard)?;
        let order = self.inner.order()?;
        let target = Target::packed(stored);
        let fill_cell = Bytes::copy_from_slice(fill);
        let mut out = vec![fill_cell; stored.iter().product::<u64>() as usize];
        for (i, part) in self.grid(stored)?.parts(&Selection::All)?.enumerate() {
            let Some(range) = index.get(i as u64) else {
                continue;
            };
            let bytes = shard.slice(range.start as usize..range.end as usize);
            let cells = self
                .inner
                .decode_strings(bytes, &self.inner_stored(), fill)?;
            for copy in part.copies(&order, &target) {
                for k in 0..copy.count {
                    let (src, dst) = offsets(&copy, k, 1);
                    let len = copy.len as usize;
                    out[dst..dst + len].clone_from_slice(&cells[src..src + len]);
                }
            }
        }
        Ok(out)
    }
}

impl ShardIndex {
    /// Where inner chunk `i` lies; `None` if it is absent.
    pub fn get(&self, i: u64) -> Option<Range<u64>> {
        match self.0.get(i as usize) {
            Some(&(offset, len)) if (offset, len) != (ABSENT, ABSENT) => Some(offset..offset + len),
            _ => None,
        }
    }

    /// How many inner chunks are present.
    pub fn present(&self) -> usize {
        self.0.iter().filter(|e| **e != (ABSENT, ABSENT)).count()
    }

    /// Bytes that the index takes in a cache.
    pub fn bytes(&self) -> usize {
        16 * self.0.len()
    }
}

/// (offset in the inner chunk, offset in the shard) of piece `k`, in bytes.
fn offsets(copy: &StridedCopy, k: u64, size: usize) -> (usize, usize) {
    let (src, dst) = (copy.src + k * copy.src_step, copy.dst + k * copy.dst_step);
    (src as usize * size, dst as usize * size)
}

/// The index chain must keep the size of what it encodes predictable, or nobody could find the
/// index in the object.
fn index_codecs(list: &[Value]) -> Result<(Swap, Vec<Filter>)> {
    let mut swap = None;
    let mut filters = Vec::new();
    for codec in list {
        let (name, config) = name_and_config(codec)?;
        if name == "bytes" {
            let big = config.get("endian").and_then(Value::as_str) == Some("big");
            swap = Some(if big { Swap::Uniform(8) } else { Swap::None });
            continue;
        }
        match Filter::from_v3(name, config, 8)? {
            Some(filter) if filter.encoded_len(16).1 => filters.push(filter),
            Some(_) => {
                return Err(Error::data(format!(
                    "a shard index cannot be encoded with {name}"
                )));
            }
            None => return Err(super::unknown_codec(name)),
        }
    }
    let swap = swap.ok_or_else(|| Error::data("the index codecs have no bytes codec"))?;
    Ok((swap, filters))
}
