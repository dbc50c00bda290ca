//! Where the chunks of a dataset are, whatever index the file has for them.
//!
//! Between the indexes and the resolver. Invariant: a table holds each chunk at most once, sorted by
//! its number in row-major order, and only chunks that reach into the dataset's present extent.

use super::arrays::{self, Element};
use super::header::Context;
use super::message::ChunkIndex;
use super::tree;
use crate::{Error, Result};

/// Where a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its number in row-major order.
    pub(crate) number: u64,
    pub(crate) address: u64,
    /// Stored bytes.
    pub(crate) size: u64,
    /// Filters that were left out for it, a bit each.
    pub(crate) mask: u32,
}

/// All chunks of a dataset that are stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChunkTable(Vec<Chunk>);

impl ChunkTable {
    /// The chunk of this number, if it is stored.
    pub(crate) fn get(&self, number: u64) -> Option<&Chunk> {
        // Most datasets have all their chunks.
        if let Some(chunk) = self.0.get(number as usize).filter(|c| c.number == number) {
            return Some(chunk);
        }
        let at = self.0.binary_search_by_key(&number, |chunk| chunk.number);
        at.ok().map(|at| &self.0[at])
    }

    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.0
    }

    fn new(mut chunks: Vec<Chunk>) -> Result<Self> {
        chunks.sort_unstable_by_key(|chunk| chunk.number);
        match chunks
            .windows(2)
            .any(|pair| pair[0].number == pair[1].number)
        {
            true => Err(Error::data("a chunk is stored twice")),
            false => Ok(ChunkTable(chunks)),
        }
    }
}

/// The grid of a dataset's chunks.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    dims: Vec<u64>,
    limits: Vec<u64>,
    chunk: Vec<u64>,
    /// Bytes of a chunk before its filters.
    plain: u64,
}

impl Grid {
    pub(crate) fn new(
        dims: &[u64],
        limits: Option<&[u64]>,
        chunk: &[u64],
        cell: u32,
    ) -> Result<Self> {
        if chunk.len() != dims.len() {
            return Err(Error::data(format!(
                "chunks have {} dimensions and their dataset {}",
                chunk.len(),
                dims.len()
            )));
        }
        let plain = chunk
            .iter()
            .try_fold(u64::from(cell), |bytes, side| bytes.checked_mul(*side))
            .ok_or_else(|| Error::data("a chunk is larger than any file"))?;
        Ok(Grid {
            dims: dims.to_vec(),
            limits: limits.unwrap_or(dims).to_vec(),
            chunk: chunk.to_vec(),
            plain,
        })
    }

    /// Chunks along each dimension.
    /// How many chunks the dataset has, stored or not.
    pub(crate) fn chunks(&self) -> u64 {
        self.counts().into_iter().fold(1, u64::saturating_mul)
    }

    fn counts(&self) -> Vec<u64> {
        let pairs = self.dims.iter().zip(&self.chunk);
        pairs.map(|(dim, side)| dim.div_ceil(*side)).collect()
    }

    /// The number of the chunk at these indexes; `None` if it lies outside.
    fn number(&self, at: &[u64]) -> Option<u64> {
        let mut number = 0u64;
        for (index, count) in at.iter().zip(self.counts()) {
            if *index >= count {
                return None;
            }
            number = number.checked_mul(count)?.checked_add(*index)?;
        }
        Some(number)
    }

    /// How arrays number the chunks: in row-major order of the extent that the dataset may grow to,
    /// the one dimension without limit first.
    fn numbering(&self) -> Numbering {
        let counts: Vec<u64> = self
            .limits
            .iter()
            .zip(&self.chunk)
            .map(|(limit, side)| {
                if *limit == u64::MAX {
                    u64::MAX
                } else {
                    limit.div_ceil(*side)
                }
            })
            .collect();
        let mut order: Vec<usize> = (0..counts.len()).collect();
        if let Some(unlimited) = counts.iter().position(|count| *count == u64::MAX) {
            order.remove(unlimited);
            order.insert(0, unlimited);
        }
        Numbering { counts, order }
    }
}

/// From the number of an array's element to a chunk's indexes.
struct Numbering {
    counts: Vec<u64>,
    order: Vec<usize>,
}

impl Numbering {
    fn indexes(&self, mut number: u64) -> Vec<u64> {
        let mut at = vec![0; self.counts.len()];
        for dim in self.order.iter().skip(1).rev() {
            let count = self.counts[*dim].max(1);
            at[*dim] = number % count;
            number /= count;
        }
        if let Some(first) = self.order.first() {
            at[*first] = number;
        }
        at
    }

    /// One more than the largest number of a chunk in the present extent.
    fn end(&self, counts: &[u64]) -> Option<u64> {
        let mut last = 0u64;
        for dim in &self.order {
            let most = counts[*dim].checked_sub(1)?;
            let factor = if Some(dim) == self.order.first() {
                1
            } else {
                self.counts[*dim]
            };
            last = last.checked_mul(factor)?.checked_add(most)?;
        }
        last.checked_add(1)
    }
}

/// Reads the index at an address.
pub(crate) fn read(
    context: &Context<'_>,
    index: &ChunkIndex,
    address: Option<u64>,
    grid: &Grid,
) -> Result<ChunkTable> {
    let Some(address) = address else {
        return Ok(ChunkTable::default());
    };
    let chunks = match index {
        ChunkIndex::Single(filtered) => {
            let element = Element {
                number: 0,
                address,
                filtered: *filtered,
            };
            numbered(grid, vec![element])
        }
        ChunkIndex::Implicit => implicit(context, grid, address)?,
        ChunkIndex::FixedArray => numbered(grid, arrays::fixed(context, address)?),
        ChunkIndex::ExtensibleArray => {
            let end = grid.numbering().end(&grid.counts()).unwrap_or(0);
            numbered(grid, arrays::extensible(context, address, end)?)
        }
        ChunkIndex::BTree1 => tree_1(context, address, grid)?,
        ChunkIndex::BTree2 => tree_2(context, address, grid)?,
    };
    ChunkTable::new(chunks)
}

/// Chunks that an array numbers.
fn numbered(grid: &Grid, elements: Vec<Element>) -> Vec<Chunk> {
    let numbering = grid.numbering();
    let chunk = |element: Element| {
        let (size, mask) = element.filtered.unwrap_or((grid.plain, 0));
        Some(Chunk {
            number: grid.number(&numbering.indexes(element.number))?,
            address: element.address,
            size,
            mask,
        })
    };
    elements.into_iter().filter_map(chunk).collect()
}

/// Chunks one after another.
fn implicit(context: &Context<'_>, grid: &Grid, address: u64) -> Result<Vec<Chunk>> {
    let numbering = grid.numbering();
    let Some(end) = numbering.end(&grid.counts()) else {
        return Ok(Vec::new());
    };
    // The file has all of them, so their number is bounded by its size; check before counting.
    let bytes = end
        .checked_mul(grid.plain)
        .and_then(|bytes| bytes.checked_add(address));
    if bytes.is_none_or(|bytes| bytes > context.blocks.file_size()) {
        return Err(Error::data("chunks lie beyond the end of the file"));
    }
    let elements = (0..end).map(|number| Element {
        number,
        address: address + number * grid.plain,
        filtered: None,
    });
    Ok(numbered(grid, elements.collect()))
}

fn tree_1(context: &Context<'_>, address: u64, grid: &Grid) -> Result<Vec<Chunk>> {
    let rank = grid.chunk.len();
    let mut chunks = Vec::new();
    for (key, address) in tree::leaves_1(context, address, 1, 8 + 8 * (rank + 1))? {
        let mut cursor = context.cursor(&key);
        let size = u64::from(cursor.u32()?);
        let mask = cursor.u32()?;
        let mut at = Vec::with_capacity(rank);
        for side in &grid.chunk {
            let offset = cursor.u64()?;
            if offset % side != 0 {
                return Err(Error::data("a chunk begins between two places of its grid"));
            }
            at.push(offset / side);
        }
        if let Some(number) = grid.number(&at) {
            chunks.push(Chunk {
                number,
                address,
                size,
                mask,
            });
        }
    }
    Ok(chunks)
}

fn tree_2(context: &Context<'_>, address: u64, grid: &Grid) -> Result<Vec<Chunk>> {
    let rank = grid.chunk.len();
    let (kind, records) = tree::records_2(context, address)?;
    let mut chunks = Vec::new();
    for record in records {
        let mut cursor = context.cursor(&record);
        let address = cursor.address()?;
        let (size, mask) = match kind {
            10 => (grid.plain, 0),
            11 => {
                let known = usize::from(context.sizes.offset) + 4 + 8 * rank;
                let width = record.len().checked_sub(known);
                let width = width.ok_or_else(|| Error::data("a record of a chunk is too short"))?;
                (cursor.uint(width)?, cursor.u32()?)
            }
            other => {
                return Err(Error::data(format!(
                    "chunks are in a B-tree of type {other}"
                )));
            }
        };
        let at = (0..rank)
            .map(|_| cursor.u64())
            .collect::<Result<Vec<_>>>()?;
        if let (Some(address), Some(number)) = (address, grid.number(&at)) {
            chunks.push(Chunk {
                number,
                address,
                size,
                mask,
            });
        }
    }
    Ok(chunks)
}
