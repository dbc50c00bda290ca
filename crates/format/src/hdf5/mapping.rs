//! The mapping of a virtual dataset: which parts of it are which parts of other datasets.
//!
//! Section VII.E of the file format (virtual dataset global heap block), and VII.B to D for the
//! encodings of selections.

use super::cursor::{Cursor, text};
use super::header::Context;
use super::{checksum, heap};
use crate::{Error, Result};

/// Blocks of an irregular selection, and points, at most.
const MOST: u64 = 1 << 24;

/// One dimension of a regular hyperslab. A count or block of `u64::MAX` has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slab {
    /// The first coordinate.
    pub start: u64,
    /// From the start of one block to that of the next.
    pub stride: u64,
    /// How many blocks.
    pub count: u64,
    /// Coordinates of a block.
    pub block: u64,
}

impl Slab {
    /// True if it goes on as far as its dataset does.
    pub fn is_unlimited(&self) -> bool {
        self.count == u64::MAX || self.block == u64::MAX
    }

    /// Selected coordinates below `side`.
    pub fn cells_before(&self, side: u64) -> u64 {
        let span = side.saturating_sub(self.start);
        if self.block == u64::MAX {
            return span;
        }
        if self.count == 1 {
            return span.min(self.block);
        }
        let stride = self.stride.max(1);
        let whole = (span / stride).min(self.count);
        let rest = match whole < self.count {
            true => (span - whole * stride).min(self.block),
            false => 0,
        };
        whole.saturating_mul(self.block).saturating_add(rest)
    }

    /// One past the last of so many selected coordinates; 0 if there are none.
    pub fn end_of(&self, cells: u64) -> u64 {
        if cells == 0 {
            return 0;
        }
        let last = cells - 1;
        match self.block {
            u64::MAX => self.start.saturating_add(cells),
            block => {
                let (blocks, within) = (last / block.max(1), last % block.max(1));
                let start = self
                    .start
                    .saturating_add(blocks.saturating_mul(self.stride));
                start.saturating_add(within + 1)
            }
        }
    }
}

/// A selection as files store it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// Nothing.
    None,
    /// Every element.
    All,
    /// A regular hyperslab.
    Regular(Vec<Slab>),
    /// Disjoint boxes: first and last place along each dimension.
    Boxes(Vec<Vec<(u64, u64)>>),
    /// Single elements.
    Points(Vec<Vec<u64>>),
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The source's file; `.` is the file itself.
    pub file: String,
    /// The source's path there.
    pub dataset: String,
    /// Elements of the source.
    pub source: Stored,
    /// The elements of the virtual dataset that they are.
    pub place: Stored,
}

/// The mapping that a virtual layout names.
pub(crate) fn read(context: &Context<'_>, address: u64, object: u32) -> Result<Vec<Entry>> {
    let objects = heap::global(context, address)?;
    let bytes = objects
        .get(&object)
        .ok_or_else(|| Error::data("the mapping of a virtual dataset is missing"))?;
    let (summed, sum) = super::header::split_sum(bytes)?;
    checksum(summed, sum, "mapping of a virtual dataset")?;
    let mut cursor = context.cursor(summed);
    let version = cursor.version(0..=1, "mapping of a virtual dataset")?;
    let count = cursor.length()?;
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let flags = if version == 1 { cursor.u8()? } else { 0 };
        let file = name(&mut cursor, &entries, flags & 1 == 1, flags & 4 != 0, |e| {
            &e.file
        })?;
        let dataset = name(&mut cursor, &entries, flags & 2 != 0, false, |e| &e.dataset)?;
        entries.push(Entry {
            file,
            dataset,
            source: selection(&mut cursor)?,
            place: selection(&mut cursor)?,
        });
    }
    Ok(entries)
}

/// A name, which version 1 may take from an earlier entry or leave out for the file itself.
fn name(
    cursor: &mut Cursor<'_>,
    entries: &[Entry],
    shared: bool,
    itself: bool,
    of: impl Fn(&Entry) -> &String,
) -> Result<String> {
    if itself {
        return Ok(".".to_owned());
    }
    if !shared {
        return cursor.terminated().map(text);
    }
    let at = usize::try_from(cursor.length()?).unwrap_or(usize::MAX);
    match entries.get(at) {
        Some(entry) => Ok(of(entry).clone()),
        None => Err(Error::data(
            "an entry of a virtual dataset shares a name with a later one",
        )),
    }
}

/// Parses a selection.
pub(crate) fn selection(cursor: &mut Cursor<'_>) -> Result<Stored> {
    let kind = cursor.u32()?;
    let version = cursor.u32()?;
    match kind {
        0 | 3 => {
            cursor.skip(8)?;
            Ok(if kind == 0 { Stored::None } else { Stored::All })
        }
        1 => points(cursor, version),
        2 => hyperslab(cursor, version),
        other => Err(Error::data(format!(
            "selections of type {other} are not known"
        ))),
    }
}

fn points(cursor: &mut Cursor<'_>, version: u32) -> Result<Stored> {
    let width = match version {
        1 => {
            cursor.skip(8)?;
            4
        }
        2 => usize::from(cursor.u8()?),
        other => return Err(unknown(other)),
    };
    let rank = rank(cursor)?;
    let count = bounded(cursor.uint(width)?, cursor, rank * width)?;
    let point = |_| (0..rank).map(|_| cursor.uint(width)).collect();
    Ok(Stored::Points(
        (0..count).map(point).collect::<Result<_>>()?,
    ))
}

fn hyperslab(cursor: &mut Cursor<'_>, version: u32) -> Result<Stored> {
    let (regular, width) = match version {
        1 => {
            cursor.skip(8)?;
            (false, 4)
        }
        2 => {
            let flags = cursor.u8()?;
            cursor.skip(4)?;
            (flags & 1 == 1, 8)
        }
        3 => (cursor.u8()? & 1 == 1, usize::from(cursor.u8()?)),
        other => return Err(unknown(other)),
    };
    let rank = rank(cursor)?;
    if regular {
        let unlimited = match width {
            0..8 => (1u64 << (8 * width)) - 1,
            _ => u64::MAX,
        };
        let slab = |_| {
            let limited = |value| if value == unlimited { u64::MAX } else { value };
            Ok(Slab {
                start: cursor.uint(width)?,
                stride: cursor.uint(width)?,
                count: limited(cursor.uint(width)?),
                block: limited(cursor.uint(width)?),
            })
        };
        return Ok(Stored::Regular((0..rank).map(slab).collect::<Result<_>>()?));
    }
    let count = bounded(cursor.uint(width)?, cursor, 2 * rank * width)?;
    let mut boxes = Vec::new();
    for _ in 0..count {
        let starts = (0..rank)
            .map(|_| cursor.uint(width))
            .collect::<Result<Vec<_>>>()?;
        let ends = (0..rank)
            .map(|_| cursor.uint(width))
            .collect::<Result<Vec<_>>>()?;
        boxes.push(starts.into_iter().zip(ends).collect());
    }
    Ok(Stored::Boxes(boxes))
}

fn unknown(version: u32) -> Error {
    Error::data(format!("version {version} of a selection is not known"))
}

fn rank(cursor: &mut Cursor<'_>) -> Result<usize> {
    match cursor.u32()? {
        rank @ 1..=32 => Ok(rank as usize),
        rank => Err(Error::data(format!("a selection has {rank} dimensions"))),
    }
}

/// A number of things of so many bytes, which have to be there.
fn bounded(count: u64, cursor: &Cursor<'_>, bytes: usize) -> Result<u64> {
    match count <= MOST && count.saturating_mul(bytes as u64) <= cursor.remaining() as u64 {
        true => Ok(count),
        false => Err(Error::data("a selection has more parts than bytes")),
    }
}
