//! The messages that make an object header a dataset: space, layout, filters, fill value.
//!
//! Sections IV.A.2.b to l of the file format. Pure functions from bytes to values.

use super::cursor::{Cursor, text};
use crate::{Error, Result};

/// HDF5 has no more dimensions than this.
const MOST_DIMENSIONS: u8 = 32;

/// The extent of a dataset or attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Space {
    /// No elements at all, and no shape.
    Null,
    /// So many elements along each dimension; none for a scalar.
    Simple {
        dims: Vec<u64>,
        /// How far each dimension may grow (`u64::MAX`: without limit).
        limits: Option<Vec<u64>>,
    },
}

impl Space {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Space> {
        let version = cursor.version(1..=2, "dataspace")?;
        let rank = cursor.u8()?;
        let flags = cursor.u8()?;
        if rank > MOST_DIMENSIONS {
            return Err(Error::data(format!("a dataspace has {rank} dimensions")));
        }
        match version {
            1 => cursor.skip(5)?,
            _ if cursor.u8()? == 2 => return Ok(Space::Null),
            _ => {}
        }
        let sides = |cursor: &mut Cursor<'_>| -> Result<Vec<u64>> {
            (0..rank).map(|_| cursor.length()).collect()
        };
        let dims = sides(cursor)?;
        let limits = match flags & 1 {
            0 => None,
            _ => Some(widened(sides(cursor)?, cursor.sizes().length)),
        };
        Ok(Space::Simple { dims, limits })
    }

    /// Elements in all; `None` if they cannot be counted.
    pub(crate) fn elements(&self) -> Option<u64> {
        match self {
            Space::Null => Some(0),
            Space::Simple { dims, .. } => dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d)),
        }
    }
}

/// "Without limit" is all ones, however few bytes lengths have.
fn widened(limits: Vec<u64>, bytes: u8) -> Vec<u64> {
    let unlimited = match bytes {
        0..8 => (1u64 << (8 * bytes)) - 1,
        _ => u64::MAX,
    };
    let widen = |limit| if limit == unlimited { u64::MAX } else { limit };
    limits.into_iter().map(widen).collect()
}

/// How chunks are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChunkIndex {
    /// There is one chunk. Its stored size and filter mask, if it is filtered.
    Single(Option<(u64, u32)>),
    /// One chunk after another, in order.
    Implicit,
    FixedArray,
    ExtensibleArray,
    BTree1,
    BTree2,
}

/// Where the elements of a dataset are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    /// So many bytes in the message itself, from this offset on.
    Compact {
        at: usize,
        length: usize,
    },
    Contiguous {
        address: Option<u64>,
    },
    Chunked {
        index: ChunkIndex,
        address: Option<u64>,
        chunk: Vec<u64>,
        /// Chunks that reach beyond the dataset are stored without their filters.
        plain_edges: bool,
    },
    /// In other datasets, by the mapping in the global heap.
    Virtual {
        heap: Option<u64>,
        object: u32,
    },
}

impl Layout {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Layout> {
        match cursor.version(1..=5, "data layout")? {
            1 | 2 => old_layout(cursor),
            3 => layout_3(cursor),
            _ => layout_4(cursor),
        }
    }
}

fn old_layout(cursor: &mut Cursor<'_>) -> Result<Layout> {
    let rank = cursor.u8()?;
    let class = cursor.u8()?;
    cursor.skip(5)?;
    let address = match class {
        0 => None,
        _ => cursor.address()?,
    };
    let mut sides = sides(cursor, rank, 4)?;
    match class {
        0 => {
            let length = cursor.u32()? as usize;
            compact(cursor, length)
        }
        1 => Ok(Layout::Contiguous { address }),
        2 => {
            // The last side is the size of an element.
            sides.pop();
            Ok(chunked(ChunkIndex::BTree1, address, sides, false)?)
        }
        other => Err(unknown_class(other)),
    }
}

fn layout_3(cursor: &mut Cursor<'_>) -> Result<Layout> {
    match cursor.u8()? {
        2 => {
            let rank = cursor.u8()?;
            let address = cursor.address()?;
            let mut sides = sides(cursor, rank, 4)?;
            sides.pop();
            chunked(ChunkIndex::BTree1, address, sides, false)
        }
        class => unchunked(cursor, class),
    }
}

fn unchunked(cursor: &mut Cursor<'_>, class: u8) -> Result<Layout> {
    match class {
        0 => {
            let length = usize::from(cursor.u16()?);
            compact(cursor, length)
        }
        1 => Ok(Layout::Contiguous {
            address: cursor.address()?,
        }),
        other => Err(unknown_class(other)),
    }
}

fn layout_4(cursor: &mut Cursor<'_>) -> Result<Layout> {
    match cursor.u8()? {
        2 => {
            let flags = cursor.u8()?;
            let rank = cursor.u8()?;
            let width = usize::from(cursor.u8()?);
            let mut sides = sides(cursor, rank, width)?;
            sides.pop();
            let index = match cursor.u8()? {
                1 if flags & 2 != 0 => ChunkIndex::Single(Some((cursor.length()?, cursor.u32()?))),
                1 => ChunkIndex::Single(None),
                2 => ChunkIndex::Implicit,
                3 => {
                    cursor.skip(1)?;
                    ChunkIndex::FixedArray
                }
                4 => {
                    cursor.skip(5)?;
                    ChunkIndex::ExtensibleArray
                }
                5 => {
                    cursor.skip(6)?;
                    ChunkIndex::BTree2
                }
                other => return Err(Error::data(format!("chunk index {other} is not known"))),
            };
            chunked(index, cursor.address()?, sides, flags & 1 != 0)
        }
        3 => Ok(Layout::Virtual {
            heap: cursor.address()?,
            object: cursor.u32()?,
        }),
        class => unchunked(cursor, class),
    }
}

fn compact(cursor: &mut Cursor<'_>, length: usize) -> Result<Layout> {
    let at = cursor.position();
    cursor.skip(length)?;
    Ok(Layout::Compact { at, length })
}

fn sides(cursor: &mut Cursor<'_>, rank: u8, width: usize) -> Result<Vec<u64>> {
    if rank > MOST_DIMENSIONS + 1 {
        return Err(Error::data(format!("a data layout has {rank} dimensions")));
    }
    (0..rank).map(|_| cursor.uint(width)).collect()
}

fn chunked(
    index: ChunkIndex,
    address: Option<u64>,
    chunk: Vec<u64>,
    plain_edges: bool,
) -> Result<Layout> {
    if chunk.is_empty() || chunk.contains(&0) {
        return Err(Error::data("chunks have no elements"));
    }
    Ok(Layout::Chunked {
        index,
        address,
        chunk,
        plain_edges,
    })
}

fn unknown_class(class: u8) -> Error {
    Error::data(format!("data layout {class} is not known"))
}

/// A filter of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterSpec {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) optional: bool,
    pub(crate) values: Vec<u32>,
}

/// The filters of a dataset, in the order in which a writer applies them.
pub(crate) fn filters(cursor: &mut Cursor<'_>) -> Result<Vec<FilterSpec>> {
    let version = cursor.version(1..=2, "filter pipeline")?;
    let count = cursor.u8()?;
    if count > 32 {
        return Err(Error::data(format!("a pipeline has {count} filters")));
    }
    if version == 1 {
        cursor.skip(6)?;
    }
    (0..count).map(|_| filter(cursor, version)).collect()
}

fn filter(cursor: &mut Cursor<'_>, version: u8) -> Result<FilterSpec> {
    let id = cursor.u16()?;
    let length = match version == 1 || id >= 256 {
        true => usize::from(cursor.u16()?),
        false => 0,
    };
    let flags = cursor.u16()?;
    let count = usize::from(cursor.u16()?);
    let name = cursor.bytes(match version {
        1 => length.next_multiple_of(8),
        _ => length,
    })?;
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    let values = (0..count).map(|_| cursor.u32()).collect::<Result<_>>()?;
    if version == 1 && count % 2 == 1 {
        cursor.skip(4)?;
    }
    Ok(FilterSpec {
        id,
        name: text(&name[..end]),
        optional: flags & 1 != 0,
        values,
    })
}

/// The fill value of a dataset: `None` if it is the default (zeros) or undefined.
pub(crate) fn fill(cursor: &mut Cursor<'_>) -> Result<Option<Vec<u8>>> {
    let defined = match cursor.version(1..=3, "fill value")? {
        version @ (1 | 2) => {
            cursor.skip(2)?;
            cursor.u8()? != 0 || version == 1
        }
        _ => cursor.u8()? & 0x20 != 0,
    };
    match defined && cursor.remaining() >= 4 {
        true => old_fill(cursor),
        false => Ok(None),
    }
}

/// The fill value as the first versions of the library have it.
pub(crate) fn old_fill(cursor: &mut Cursor<'_>) -> Result<Option<Vec<u8>>> {
    let length = cursor.u32()?;
    match i32::try_from(length) {
        // The size is -1 where the value is undefined.
        Ok(0) | Err(_) => Ok(None),
        Ok(_) => Ok(Some(cursor.bytes(length as usize)?.to_vec())),
    }
}

/// A part of a dataset that lies in another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Where its name is in the heap.
    pub(crate) name: u64,
    pub(crate) offset: u64,
    /// Bytes; `u64::MAX` if there is no limit.
    pub(crate) size: u64,
}

/// The local heap with the names, and the parts in their order.
pub(crate) fn external(cursor: &mut Cursor<'_>) -> Result<(u64, Vec<Slot>)> {
    cursor.version(1..=1, "list of external files")?;
    cursor.skip(3 + 2)?;
    let used = cursor.u16()?;
    let heap = cursor.defined("the names of external files")?;
    let slots = (0..used)
        .map(|_| {
            Ok(Slot {
                name: cursor.length()?,
                offset: cursor.length()?,
                size: widened(vec![cursor.length()?], cursor.sizes().length)[0],
            })
        })
        .collect::<Result<_>>()?;
    Ok((heap, slots))
}
