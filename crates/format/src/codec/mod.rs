//! Codec chains: how the cells of a chunk become the bytes of an object, and back.
//!
//! Sits between metadata, which spells a chain, and the executor, which runs it. A chain is kept
//! in normal form: one dimension order (all `transpose` codecs combined), one packing of cells
//! into bytes (plain, strings, or a shard of inner chunks), and a list of byte filters.
//! Invariant: for every chain `decode(encode(cells)) == cells`, bit for bit.

mod bitshuffle;
mod blosc2;
mod blosclz;
mod compress;
mod endian;
mod filter;
mod fix;
mod lzf;
mod plugin;
mod shard;
mod vlen;
mod widen;

use bytes::Bytes;
use hyperslab_index::{CellOrder, Error, Result, Shape};
use serde_json::{Value, json};

pub(crate) use endian::Swap;
pub(crate) use filter::{Filter, v3_json};
pub(crate) use fix::Fix;
pub use plugin::HdfFilter;
pub use shard::{ShardIndex, Sharding};
pub(crate) use widen::{Wide, Widen};

use crate::DataType;

/// Strings have no known decoded size; a chunk of them that claims more than this is refused.
const MAX_STRINGS: usize = 1 << 31;

/// A codec chain in normal form.
#[derive(Debug, Clone, PartialEq)]
pub struct CodecChain {
    order: Vec<usize>,
    packing: Packing,
    filters: Vec<Filter>,
    /// What is done to cells after all else, and the bytes of a cell.
    fixes: (Vec<Fix>, usize),
    json: Vec<Value>,
}

/// How cells become bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Packing {
    Cells(Swap),
    /// Numbers that are smaller than in memory.
    Widened(Widen),
    Strings {
        utf8: bool,
    },
    /// References of so many bytes into the heap of an HDF5 file, where the strings are.
    References(usize),
    Shard(Box<Sharding>),
}

/// Buffers that decoding reuses, so that a thread's steady state allocates nothing.
#[derive(Debug, Default)]
pub struct Scratch {
    ping: Vec<u8>,
    pong: Vec<u8>,
}

pub(crate) fn unknown_codec(name: &str) -> Error {
    Error::data(format!("the codec {name:?} is not known")).with_hint(
        "known: bytes, transpose, gzip, zstd, blosc, crc32c, sharding_indexed, vlen-utf8, vlen-bytes, numcodecs.shuffle, numcodecs.zlib, numcodecs.lz4, numcodecs.fletcher32",
    )
}

impl CodecChain {
    /// Parses the `codecs` of a Zarr v3 array (or of a shard) whose chunks have this shape.
    pub fn from_json(list: &[Value], dtype: &DataType, chunk: &[u64]) -> Result<Self> {
        let rank = chunk.len();
        let mut order: Vec<usize> = (0..rank).collect();
        let mut packing = None;
        let mut filters = Vec::new();
        let cell_bytes = dtype.cell_bytes().unwrap_or(1) as usize;
        for codec in list {
            let (name, config) = name_and_config(codec)?;
            match name {
                "transpose" => {
                    if packing.is_some() {
                        return Err(Error::data(
                            "a transpose codec stands after the bytes codec",
                        ));
                    }
                    let next = transpose_order(config, rank)?;
                    order = next.iter().map(|d| order[*d]).collect();
                }
                "bytes" | "vlen-utf8" | "vlen-bytes" | "sharding_indexed" | "vlen_bytes" => {
                    if packing.is_some() {
                        return Err(Error::data("the codecs turn cells into bytes twice"));
                    }
                    packing = Some(match name {
                        "bytes" => bytes_packing(config, dtype)?,
                        "sharding_indexed" => {
                            let stored: Vec<u64> = order.iter().map(|d| chunk[*d]).collect();
                            Packing::Shard(Box::new(Sharding::from_json(config, dtype, &stored)?))
                        }
                        _ => strings_packing(name, dtype)?,
                    });
                }
                _ => match Filter::from_v3(name, config, cell_bytes)? {
                    Some(_) if packing.is_none() => {
                        return Err(Error::data(format!(
                            "the codec {name} stands before any codec that turns cells into bytes"
                        )));
                    }
                    Some(filter) => filters.push(filter),
                    None => return Err(unknown_codec(name)),
                },
            }
        }
        let packing = packing.ok_or_else(|| {
            Error::data("the codecs have none that turns cells into bytes")
                .with_hint("the list needs \"bytes\", \"sharding_indexed\" or \"vlen-utf8\"")
        })?;
        Ok(CodecChain {
            order,
            packing,
            filters,
            fixes: Default::default(),
            json: list.to_vec(),
        })
    }

    /// A chain as Zarr v2 metadata describes it.
    pub(crate) fn from_v2(
        order: Vec<usize>,
        packing: Packing,
        filters: Vec<Filter>,
        json: Vec<Value>,
    ) -> Self {
        CodecChain {
            order,
            packing,
            filters,
            fixes: Default::default(),
            json,
        }
    }

    /// The chain of an HDF5 dataset.
    pub(crate) fn hdf5(
        rank: usize,
        swap: Swap,
        (fixes, cell): (Vec<Fix>, usize),
        filters: Vec<Filter>,
        json: Vec<Value>,
    ) -> Self {
        CodecChain {
            order: (0..rank).collect(),
            packing: Packing::Cells(swap),
            filters,
            fixes: (fixes, cell),
            json,
        }
    }

    /// The chain of an HDF5 dataset of numbers that no processor has.
    pub(crate) fn widened(
        rank: usize,
        widen: Widen,
        filters: Vec<Filter>,
        json: Vec<Value>,
    ) -> Self {
        CodecChain {
            packing: Packing::Widened(widen),
            ..Self::hdf5(rank, Swap::None, Default::default(), filters, json)
        }
    }

    /// The chain of an HDF5 dataset whose elements refer to the heap of their file.
    pub(crate) fn references(
        rank: usize,
        bytes: usize,
        filters: Vec<Filter>,
        json: Vec<Value>,
    ) -> Self {
        CodecChain {
            packing: Packing::References(bytes),
            ..Self::hdf5(rank, Swap::None, Default::default(), filters, json)
        }
    }

    /// The chain of a chunk for which filters were left out: a bit each, the first one lowest.
    pub fn without(&self, mask: u32) -> CodecChain {
        let mut chain = self.clone();
        let mut number = 0;
        chain.filters.retain(|_| {
            number += 1;
            number > 32 || mask >> (number - 1) & 1 == 0
        });
        chain
    }

    /// The chain as Zarr v3 spells it (for Zarr v2 arrays: their filters and compressor).
    pub fn to_json(&self) -> &[Value] {
        &self.json
    }

    /// Bytes of a stored cell that has so many in memory.
    pub fn stored_cell(&self, cell: u64) -> u64 {
        match &self.packing {
            Packing::Widened(widen) => widen.from as u64,
            _ => cell,
        }
    }

    /// The order of dimensions in the stored chunk.
    pub fn order(&self) -> Result<CellOrder> {
        CellOrder::new(&self.order)
    }

    /// The same for cells of another number of dimensions, in row-major order.
    pub(crate) fn of_rank(mut self, rank: usize) -> Self {
        self.order = (0..rank).collect();
        self
    }

    pub(crate) fn dims(&self) -> &[usize] {
        &self.order
    }

    /// The shard, if chunks of this chain are shards whose inner chunks can be read by range.
    pub fn sharding(&self) -> Option<&Sharding> {
        match &self.packing {
            Packing::Shard(sharding) if self.filters.is_empty() => Some(sharding),
            _ => None,
        }
    }

    /// True if the stored bytes are the cells as they are in memory: byte ranges can be read.
    pub fn is_raw(&self) -> bool {
        self.filters.is_empty()
            && self.fixes.0.is_empty()
            && matches!(&self.packing, Packing::Cells(Swap::None))
    }

    /// True if byte ranges can be read, provided their numbers are then put in order by
    /// [`CodecChain::fix_order`].
    pub fn is_rangeable(&self) -> bool {
        self.filters.is_empty() && matches!(&self.packing, Packing::Cells(_))
    }

    /// Turns whole cells of a [`CodecChain::is_rangeable`] chunk into what they are in memory.
    pub fn fix_order(&self, cells: &mut [u8]) {
        if let Packing::Cells(swap) = &self.packing {
            swap.apply(cells);
        }
        let (fixes, cell) = &self.fixes;
        fixes.iter().for_each(|fix| fix.apply(cells, *cell));
    }

    /// The largest encoded size of a chunk with so many decoded bytes: for sizing and for refusing
    /// objects that cannot be right.
    pub fn encoded_bound(&self, cell_bytes: u64) -> u64 {
        let packed = match &self.packing {
            Packing::Cells(_) | Packing::Widened(_) => cell_bytes,
            Packing::Strings { .. } | Packing::References(_) => MAX_STRINGS as u64,
            Packing::Shard(sharding) => sharding.encoded_bound(cell_bytes),
        };
        self.filters
            .iter()
            .fold(packed, |len, filter| filter.encoded_len(len).0)
    }

    /// Encodes the cells of a whole chunk, in stored order, of the given stored shape.
    ///
    /// Where nothing is compressed the answer is the buffer itself, and `cells` is left empty;
    /// otherwise the caller still has its buffer, for the next chunk.
    pub fn encode(&self, cells: &mut Vec<u8>, stored: &[u64], fill: &[u8]) -> Result<Vec<u8>> {
        let packed = match &self.packing {
            Packing::Cells(swap) => {
                swap.apply(cells);
                match self.filters.split_first() {
                    None => std::mem::take(cells),
                    Some((first, rest)) => return run_filters(rest, first.encode(cells)?),
                }
            }
            Packing::Shard(sharding) => sharding.encode_cells(cells, stored, fill)?,
            Packing::Widened(_) => {
                return Err(Error::internal("numbers of HDF5 are only read"));
            }
            Packing::Strings { .. } | Packing::References(_) => {
                return Err(Error::internal(
                    "strings were encoded as cells of fixed size",
                ));
            }
        };
        run_filters(&self.filters, packed)
    }

    /// Encodes the strings of a whole chunk, in stored order.
    pub fn encode_strings(&self, cells: &[Bytes], stored: &[u64], fill: &[u8]) -> Result<Vec<u8>> {
        let packed = match &self.packing {
            Packing::Strings { .. } => vlen::encode(cells)?,
            Packing::Shard(sharding) => sharding.encode_strings(cells, stored, fill)?,
            Packing::Cells(_) | Packing::Widened(_) | Packing::References(_) => {
                return Err(Error::internal(
                    "cells of fixed size were encoded as strings",
                ));
            }
        };
        run_filters(&self.filters, packed)
    }

    /// Decodes a chunk into `out`, which must have exactly the chunk's size; cells come in stored
    /// order, of the given stored shape.
    pub fn decode(
        &self,
        encoded: &[u8],
        out: &mut [u8],
        stored: &[u64],
        fill: &[u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        match &self.packing {
            Packing::Cells(swap) => {
                self.undo_filters(encoded, out, scratch)?;
                swap.apply(out);
                let (fixes, cell) = &self.fixes;
                fixes.iter().for_each(|fix| fix.apply(out, *cell));
                Ok(())
            }
            Packing::Widened(widen) => {
                let cell = widen.dtype().cell_bytes().unwrap_or(1) as usize;
                let want = out.len() / cell * widen.from;
                // A contiguous dataset ends with its last cell, and its last unit with it.
                if self.filters.is_empty() && encoded.len() <= want {
                    widen.apply(encoded, out);
                    return Ok(());
                }
                let mut packed = vec![0; want];
                self.undo_filters(encoded, &mut packed, scratch)?;
                widen.apply(&packed, out);
                Ok(())
            }
            Packing::Shard(sharding) => {
                if self.filters.is_empty() {
                    return sharding.decode_cells(encoded, out, stored, fill);
                }
                let packed = self.undo_filters_bounded(
                    encoded,
                    sharding.encoded_bound(out.len() as u64) as usize,
                )?;
                sharding.decode_cells(&packed, out, stored, fill)
            }
            Packing::Strings { .. } | Packing::References(_) => {
                Err(Error::internal("strings were decoded as cells"))
            }
        }
    }

    /// Decodes a chunk of strings, in stored order.
    pub fn decode_strings(
        &self,
        encoded: Bytes,
        stored: &[u64],
        fill: &[u8],
    ) -> Result<Vec<Bytes>> {
        if let Packing::References(bytes) = &self.packing {
            return self.decode_references(&encoded, stored, *bytes);
        }
        let limit = (encoded.len() + 4096).saturating_mul(2000).min(MAX_STRINGS);
        let packed = if self.filters.is_empty() {
            encoded
        } else {
            Bytes::from(self.undo_filters_bounded(&encoded, limit)?)
        };
        match &self.packing {
            Packing::Strings { utf8 } => {
                let count = stored.iter().product::<u64>() as usize;
                vlen::decode(&packed, count, *utf8)
            }
            Packing::Shard(sharding) => sharding.decode_strings(&packed, stored, fill),
            Packing::Cells(_) | Packing::Widened(_) | Packing::References(_) => {
                Err(Error::internal("cells were decoded as strings"))
            }
        }
    }

    /// The references of a chunk, one for each cell. A contiguous dataset ends with its last cell, so
    /// its last unit may be short; what is missing is outside the array.
    fn decode_references(
        &self,
        encoded: &Bytes,
        stored: &[u64],
        bytes: usize,
    ) -> Result<Vec<Bytes>> {
        let count = stored.iter().product::<u64>() as usize;
        let mut out = vec![0; count * bytes];
        if self.filters.is_empty() && encoded.len() < out.len() {
            out[..encoded.len()].copy_from_slice(encoded);
        } else {
            self.undo_filters(encoded, &mut out, &mut Scratch::default())?;
        }
        let out = Bytes::from(out);
        let each = (0..count).map(|i| out.slice(i * bytes..(i + 1) * bytes));
        Ok(each.collect())
    }

    /// True if [`CodecChain::decode_in_steps`] can decode.
    pub fn decodes_in_steps(&self) -> bool {
        let plain = matches!(&self.packing, Packing::Cells(Swap::None)) && self.fixes.0.is_empty();
        plain && matches!(&self.filters[..], [Filter::Zstd { .. }])
    }

    /// Decodes cells like [`CodecChain::decode`], and tells from time to time how many bytes are there:
    /// `done` is called with all of them. Only for chains that [`CodecChain::decodes_in_steps`].
    pub fn decode_in_steps(
        &self,
        encoded: &[u8],
        out: &mut [u8],
        done: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let want = out.len();
        match compress::unzstd_in_steps(encoded, out, done)? {
            got if got == want => Ok(()),
            got => Err(wrong_size(got, want)),
        }
    }

    /// Decodes the first `enough` bytes of cells into the front of `out`, which has room for all of them;
    /// false if only all of them can be decoded. Only for chains that [`CodecChain::decodes_in_steps`].
    pub fn decode_front(&self, encoded: &[u8], out: &mut [u8], enough: usize) -> Result<bool> {
        compress::unzstd_front(encoded, out, enough)
    }

    /// Undoes the filters when the size of the result is known exactly.
    fn undo_filters(&self, encoded: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
        let want = out.len();
        let Some((first, rest)) = self.filters.split_first() else {
            if encoded.len() != want {
                return Err(wrong_size(encoded.len(), want));
            }
            out.copy_from_slice(encoded);
            return Ok(());
        };
        // sizes[i] bounds what the filters up to and with `i` make of the chunk.
        let mut sizes = Vec::with_capacity(self.filters.len());
        let mut len = want as u64;
        for filter in &self.filters {
            len = filter.encoded_len(len).0;
            sizes.push(len as usize);
        }
        let Scratch { ping, pong } = scratch;
        let (mut from, mut to) = (ping, pong);
        let mut have: Option<usize> = None;
        for (filter, bound) in rest.iter().zip(&sizes).rev() {
            if to.len() < *bound {
                to.resize(*bound, 0);
            }
            let input = have.map_or(encoded, |n| &from[..n]);
            have = Some(filter.decode(input, &mut to[..*bound])?);
            std::mem::swap(&mut from, &mut to);
        }
        let got = first.decode(have.map_or(encoded, |n| &from[..n]), out)?;
        if got != want {
            Err(wrong_size(got, want))
        } else {
            Ok(())
        }
    }

    /// Undoes the filters when only a bound on the size of the result is known.
    fn undo_filters_bounded(&self, encoded: &[u8], limit: usize) -> Result<Vec<u8>> {
        let mut data = encoded.to_vec();
        for filter in self.filters.iter().rev() {
            let guess = filter.decoded_guess(&data, limit)?;
            // A frame that does not state its size: grow step by step, so that a small chunk
            // never costs the whole limit.
            let mut room = guess.min(data.len().saturating_mul(8).max(1 << 16)).max(1);
            loop {
                let mut out = vec![0; room];
                match filter.decode(&data, &mut out) {
                    Ok(n) => {
                        out.truncate(n);
                        data = out;
                        break;
                    }
                    Err(_) if room < guess => room = room.saturating_mul(4).min(guess),
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(data)
    }
}

fn run_filters(filters: &[Filter], mut packed: Vec<u8>) -> Result<Vec<u8>> {
    for filter in filters {
        packed = filter.encode(&packed)?;
    }
    Ok(packed)
}

fn wrong_size(got: usize, want: usize) -> Error {
    Error::data(format!(
        "the chunk decodes to {got} bytes, but its shape needs {want}"
    ))
}

pub(crate) fn name_and_config(codec: &Value) -> Result<(&str, &Value)> {
    match codec {
        Value::String(name) => Ok((name, &Value::Null)),
        Value::Object(map) => {
            let name = map.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| Error::data(format!("{codec} has no name")))?;
            Ok((name, map.get("configuration").unwrap_or(&Value::Null)))
        }
        _ => Err(Error::data(format!(
            "{codec} is neither a name nor an object"
        ))),
    }
}

fn transpose_order(config: &Value, rank: usize) -> Result<Vec<usize>> {
    let bad = || {
        Error::data(format!(
            "the transpose codec's order does not permute {rank} dimensions"
        ))
    };
    match config.get("order") {
        // The letters are what early drafts of Zarr v3 had.
        Some(Value::String(s)) if s == "C" => Ok((0..rank).collect()),
        Some(Value::String(s)) if s == "F" => Ok((0..rank).rev().collect()),
        Some(Value::Array(list)) => {
            let order: Option<Vec<usize>> = list
                .iter()
                .map(|v| v.as_u64().map(|v| v as usize))
                .collect();
            let order = order.ok_or_else(bad)?;
            let mut seen = vec![false; rank];
            for d in &order {
                match seen.get_mut(*d) {
                    Some(s) if !*s => *s = true,
                    _ => return Err(bad()),
                }
            }
            if order.len() == rank {
                Ok(order)
            } else {
                Err(bad())
            }
        }
        _ => Err(bad()),
    }
}

fn bytes_packing(config: &Value, dtype: &DataType) -> Result<Packing> {
    let Some(cell_bytes) = dtype.cell_bytes() else {
        return Err(
            Error::data(format!("the bytes codec cannot hold the data type {dtype}"))
                .with_hint("strings need vlen-utf8, byte strings vlen-bytes"),
        );
    };
    let swap = match config.get("endian").and_then(Value::as_str) {
        // zarr-python, which defines structured types, stores their fields little-endian whatever
        // the codec says.
        Some("big") if matches!(dtype, DataType::Struct(_)) => Swap::None,
        Some("big") => Swap::new(cell_bytes as usize, &dtype.numbers()),
        Some("little") | None => Swap::None,
        Some(other) => return Err(Error::data(format!("the endian {other:?} is not known"))),
    };
    Ok(Packing::Cells(swap))
}

fn strings_packing(name: &str, dtype: &DataType) -> Result<Packing> {
    match (name, dtype) {
        ("vlen-utf8", DataType::String) => Ok(Packing::Strings { utf8: true }),
        ("vlen-bytes" | "vlen_bytes", DataType::VarBytes) => Ok(Packing::Strings { utf8: false }),
        _ => Err(Error::data(format!(
            "the codec {name} cannot hold the data type {dtype}"
        ))),
    }
}

/// The codec that turns cells of this type into bytes, as new arrays write it.
pub(crate) fn default_packing(dtype: &DataType, big_endian: bool) -> Value {
    match dtype {
        DataType::String => json!({"name": "vlen-utf8"}),
        DataType::VarBytes => json!({"name": "vlen-bytes"}),
        _ if dtype.numbers().is_empty() => json!({"name": "bytes"}),
        // zarr-python 3.1 writes structured types without an endian and always little.
        DataType::Struct(_) => json!({"name": "bytes"}),
        _ => v3_json(
            "bytes",
            json!({"endian": if big_endian { "big" } else { "little" }}),
        ),
    }
}

/// The stored shape of a chunk: its sides in the order of the stored dimensions.
pub(crate) fn stored_shape(order: &[usize], shape: &Shape) -> Vec<u64> {
    order.iter().map(|d| shape[*d]).collect()
}
