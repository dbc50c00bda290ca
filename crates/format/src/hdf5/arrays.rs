//! The two chunk indexes that are arrays: fixed and extensible.
//!
//! Sections III.I (VII.C and D) of the file format. An array maps the number of a chunk to where it
//! is. Blocks of one kind are asked for together, so that they are missed together.

use bytes::Bytes;

use super::checksum;
use super::cursor::Cursor;
use super::header::{Context, split_sum};
use super::tree::all;
use crate::{Error, Result};

/// Numbers of chunks in an index, at most.
const MOST_ELEMENTS: u64 = 1 << 32;

/// A chunk as an array has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) number: u64,
    pub(crate) address: u64,
    /// Stored bytes and filter mask, where chunks are filtered.
    pub(crate) filtered: Option<(u64, u32)>,
}

/// How elements are stored.
#[derive(Debug, Clone, Copy)]
struct Form {
    filtered: bool,
    bytes: u64,
}

impl Form {
    fn parse(cursor: &mut Cursor<'_>) -> Result<Form> {
        let filtered = match cursor.u8()? {
            0 => false,
            1 => true,
            other => {
                return Err(Error::data(format!(
                    "an array of chunks has client {other}"
                )));
            }
        };
        let bytes = u64::from(cursor.u8()?);
        let least = u64::from(cursor.sizes().offset) + if filtered { 5 } else { 0 };
        match bytes >= least {
            true => Ok(Form { filtered, bytes }),
            false => Err(Error::data(
                "the elements of an array of chunks are too short",
            )),
        }
    }

    /// Adds the elements in `bytes`, of which the first has this number.
    fn read(
        self,
        context: &Context<'_>,
        bytes: &[u8],
        first: u64,
        out: &mut Vec<Element>,
    ) -> Result<()> {
        let offset = u64::from(context.sizes.offset);
        for (number, element) in (first..).zip(bytes.chunks_exact(self.bytes as usize)) {
            let mut cursor = context.cursor(element);
            let Some(address) = cursor.address()? else {
                continue;
            };
            let filtered = match self.filtered {
                true => Some((
                    cursor.uint((self.bytes - offset - 4) as usize)?,
                    cursor.u32()?,
                )),
                false => None,
            };
            out.push(Element {
                number,
                address,
                filtered,
            });
        }
        Ok(())
    }
}

/// Elements in pages, each with a checksum of its own; pages that were never written are left out.
fn pages(
    form: Form,
    start: u64,
    first: u64,
    elements: u64,
    page: u64,
    written: &[u8],
) -> Vec<(u64, u64, u64)> {
    let mut places = Vec::new();
    let (mut at, mut number) = (start, 0);
    for index in 0..elements.div_ceil(page) {
        let count = page.min(elements - number);
        let length = count * form.bytes + 4;
        let bit = written
            .get((index / 8) as usize)
            .map(|byte| byte >> (7 - index % 8) & 1);
        if bit == Some(1) {
            places.push((at, length, first + number));
        }
        at += page * form.bytes + 4;
        number += count;
    }
    places
}

/// Reads pages that [`pages`] found.
fn read_pages(
    context: &Context<'_>,
    form: Form,
    found: &[(u64, u64, u64)],
    out: &mut Vec<Element>,
) -> Result<()> {
    let places: Vec<(u64, u64)> = found.iter().map(|(at, length, _)| (*at, *length)).collect();
    for (bytes, (_, _, first)) in all(context, &places)?.iter().zip(found) {
        let (summed, sum) = split_sum(bytes)?;
        checksum(summed, sum, "page of chunk addresses")?;
        form.read(context, summed, *first, out)?;
    }
    Ok(())
}

/// Splits the checksum off a block and verifies block, signature and version.
fn block<'a>(context: &Context<'_>, bytes: &'a [u8], signature: &[u8; 4]) -> Result<Cursor<'a>> {
    const WHAT: &str = "block of chunk addresses";
    let (summed, sum) = split_sum(bytes)?;
    let mut cursor = Cursor::new(summed, context.sizes);
    cursor.signature(signature, WHAT)?;
    checksum(summed, sum, WHAT)?;
    cursor.version(0..=0, WHAT)?;
    Ok(cursor)
}

/// All chunks of a fixed array.
pub(crate) fn fixed(context: &Context<'_>, address: u64) -> Result<Vec<Element>> {
    let sizes = context.sizes;
    let length = 4 + 4 + u64::from(sizes.length) + u64::from(sizes.offset) + 4;
    let header = context.blocks.get(address, length)?;
    let mut cursor = block(context, &header, b"FAHD")?;
    let form = Form::parse(&mut cursor)?;
    let page_bits = u32::from(cursor.u8()?);
    let elements = cursor.length()?;
    let Some(data) = cursor.address()? else {
        return Ok(Vec::new());
    };
    if elements > MOST_ELEMENTS || page_bits > 32 {
        return Err(Error::data("an array of chunks is larger than any file"));
    }
    let page = 1u64 << page_bits;
    let head = 4 + 2 + u64::from(sizes.offset);
    let mut out = Vec::new();
    if elements <= page {
        let bytes = context.blocks.get(data, head + elements * form.bytes + 4)?;
        let mut cursor = block(context, &bytes, b"FADB")?;
        cursor.skip(1 + usize::from(sizes.offset))?;
        form.read(context, cursor.rest(), 0, &mut out)?;
        return Ok(out);
    }
    let bitmap = elements.div_ceil(page).div_ceil(8);
    let bytes = context.blocks.get(data, head + bitmap + 4)?;
    let mut cursor = block(context, &bytes, b"FADB")?;
    cursor.skip(1 + usize::from(sizes.offset))?;
    let start = data + head + bitmap + 4;
    let found = pages(form, start, 0, elements, page, cursor.rest());
    read_pages(context, form, &found, &mut out)?;
    Ok(out)
}

/// What the header of an extensible array says.
struct Extensible {
    form: Form,
    /// Bytes of a block's own number.
    number_bytes: usize,
    direct: u64,
    least: u64,
    pointers: u64,
    page: u64,
    levels: u32,
    index: Option<u64>,
}

/// A super block: so many data blocks of so many elements, the first of which has this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    blocks: u64,
    elements: u64,
    first: u64,
}

impl Extensible {
    fn parse(context: &Context<'_>, address: u64) -> Result<Extensible> {
        let sizes = context.sizes;
        let length = 4 + 8 + 6 * u64::from(sizes.length) + u64::from(sizes.offset) + 4;
        let bytes = context.blocks.get(address, length)?;
        let mut cursor = block(context, &bytes, b"EAHD")?;
        let form = Form::parse(&mut cursor)?;
        let bits = u32::from(cursor.u8()?);
        let direct = u64::from(cursor.u8()?);
        let least = u64::from(cursor.u8()?);
        let pointers = u64::from(cursor.u8()?);
        let page_bits = u32::from(cursor.u8()?);
        cursor.skip(6 * usize::from(sizes.length))?;
        let index = cursor.address()?;
        if !least.is_power_of_two() || !pointers.is_power_of_two() || bits > 63 || page_bits > 32 {
            return Err(Error::data(
                "an extensible array of chunks is put together impossibly",
            ));
        }
        let levels = (1 + bits).saturating_sub(least.trailing_zeros());
        Ok(Extensible {
            form,
            number_bytes: (bits as usize).div_ceil(8),
            direct,
            least,
            pointers,
            page: 1 << page_bits,
            levels,
            index,
        })
    }

    /// The super blocks, of which the first few have no block of their own.
    fn all_levels(&self) -> Vec<Level> {
        let mut first = self.direct;
        let mut levels = Vec::new();
        for level in 0..self.levels {
            let blocks = 1u64 << (level / 2);
            let elements = (1u64 << level.div_ceil(2)).saturating_mul(self.least);
            levels.push(Level {
                blocks,
                elements,
                first,
            });
            first = first.saturating_add(blocks.saturating_mul(elements));
        }
        levels
    }

    /// Pages of a data block on this level; none if it has no pages.
    fn pages(&self, level: Level) -> u64 {
        match level.elements > self.page {
            true => level.elements / self.page,
            false => 0,
        }
    }
}

/// A data block: its address, the level it belongs to, its first number, and which pages it has.
type DataBlock = (u64, Level, u64, Vec<u8>);

/// The chunks of an extensible array whose numbers are below `end`.
pub(crate) fn extensible(context: &Context<'_>, address: u64, end: u64) -> Result<Vec<Element>> {
    let array = Extensible::parse(context, address)?;
    let Some(index) = array.index else {
        return Ok(Vec::new());
    };
    let offset = u64::from(context.sizes.offset);
    let levels = array.all_levels();
    // So many levels have their data blocks' addresses in the index block.
    let inline = (2 * array.pointers.trailing_zeros() as usize).min(levels.len());
    let inline_blocks: u64 = levels[..inline].iter().map(|level| level.blocks).sum();
    let addresses = inline_blocks + (levels.len() - inline) as u64;
    let head = 4 + 2 + offset;
    let length = head + array.direct * array.form.bytes + addresses * offset + 4;
    let bytes = context.blocks.get(index, length)?;
    let mut cursor = block(context, &bytes, b"EAIB")?;
    cursor.skip(1 + offset as usize)?;
    let mut out = Vec::new();
    let direct = cursor.bytes((array.direct * array.form.bytes) as usize)?;
    array.form.read(context, direct, 0, &mut out)?;
    let mut data = Vec::new();
    for level in &levels[..inline] {
        for number in 0..level.blocks {
            let first = level.first + number * level.elements;
            if let Some(address) = cursor.address()? {
                data.push((address, *level, first, Vec::new()));
            }
        }
    }
    let mut supers = Vec::new();
    for level in &levels[inline..] {
        if let Some(address) = cursor.address()? {
            supers.push((address, *level));
        }
    }
    supers.retain(|(_, level)| level.first < end);
    data.extend(super_blocks(context, &array, &supers)?);
    data.retain(|(_, _, first, _)| *first < end);
    data_blocks(context, &array, &data, &mut out)?;
    out.retain(|element| element.number < end);
    Ok(out)
}

fn super_blocks(
    context: &Context<'_>,
    array: &Extensible,
    supers: &[(u64, Level)],
) -> Result<Vec<DataBlock>> {
    let offset = u64::from(context.sizes.offset);
    let head = 4 + 2 + offset + array.number_bytes as u64;
    let bitmap = |level: Level| array.pages(level).div_ceil(8);
    let mut places = Vec::with_capacity(supers.len());
    for (address, level) in supers {
        let each = bitmap(*level) + offset;
        let length = level
            .blocks
            .checked_mul(each)
            .and_then(|length| length.checked_add(head + 4))
            .ok_or_else(|| Error::data("an array of chunks is larger than any file"))?;
        places.push((*address, length));
    }
    let mut data = Vec::new();
    for (bytes, (_, level)) in all(context, &places)?.iter().zip(supers) {
        let mut cursor = block(context, bytes, b"EASB")?;
        cursor.skip(1 + offset as usize + array.number_bytes)?;
        let bits = bitmap(*level) as usize;
        let written = cursor.bytes(bits * level.blocks as usize)?;
        for number in 0..level.blocks {
            let first = level.first + number * level.elements;
            let bits = written[number as usize * bits..][..bits].to_vec();
            if let Some(address) = cursor.address()? {
                data.push((address, *level, first, bits));
            }
        }
    }
    Ok(data)
}

fn data_blocks(
    context: &Context<'_>,
    array: &Extensible,
    data: &[DataBlock],
    out: &mut Vec<Element>,
) -> Result<()> {
    let head = 4 + 2 + u64::from(context.sizes.offset) + array.number_bytes as u64;
    let mut places = Vec::new();
    let mut found = Vec::new();
    for (address, level, first, written) in data {
        match array.pages(*level) {
            0 => places.push((*address, head + level.elements * array.form.bytes + 4)),
            _ => {
                let start = address + head + 4;
                let (elements, page) = (level.elements, array.page);
                found.extend(pages(array.form, start, *first, elements, page, written));
            }
        }
    }
    let whole = data
        .iter()
        .filter(|(_, level, _, _)| array.pages(*level) == 0);
    let blocks: Vec<Bytes> = all(context, &places)?;
    for (bytes, (_, _, first, _)) in blocks.iter().zip(whole) {
        let mut cursor = block(context, bytes, b"EADB")?;
        cursor.skip(1 + usize::from(context.sizes.offset) + array.number_bytes)?;
        array.form.read(context, cursor.rest(), *first, out)?;
    }
    read_pages(context, array.form, &found, out)
}
