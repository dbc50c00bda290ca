//! Local heaps, which hold names, and global heaps, which hold values of variable length.
//!
//! Sections III.D and III.E of the file format.

use std::collections::HashMap;

use bytes::Bytes;

use super::cursor::text;
use super::header::Context;
use crate::{Error, Result};

/// The longest name in a local heap.
const LONGEST_HEAP: u64 = 64 << 20;

/// The data segment of the local heap at an address.
pub(crate) fn local(context: &Context<'_>, address: u64) -> Result<Bytes> {
    let sizes = context.sizes;
    let length = 8 + 2 * u64::from(sizes.length) + u64::from(sizes.offset);
    let bytes = context.blocks.get(address, length)?;
    let mut cursor = context.cursor(&bytes);
    cursor.signature(b"HEAP", "heap of names")?;
    cursor.version(0..=0, "heap of names")?;
    cursor.skip(3)?;
    let length = cursor.length()?;
    cursor.length()?;
    let data = cursor.defined("a heap of names")?;
    if length > LONGEST_HEAP {
        return Err(Error::data(format!(
            "a heap of names of {length} bytes is too long"
        )));
    }
    context.blocks.get(data, length)
}

/// The name at an offset of a local heap.
pub(crate) fn name(context: &Context<'_>, heap: &[u8], offset: u64) -> Result<String> {
    let start = usize::try_from(offset)
        .ok()
        .filter(|start| *start < heap.len());
    let start = start.ok_or_else(|| Error::data("a name lies outside its heap"))?;
    context.cursor(&heap[start..]).terminated().map(text)
}

/// The objects of the global heap collection at an address, by their numbers.
pub(crate) fn global(context: &Context<'_>, address: u64) -> Result<HashMap<u32, Bytes>> {
    let head = 8 + u64::from(context.sizes.length);
    let bytes = context.blocks.get(address, head)?;
    let mut cursor = context.cursor(&bytes);
    cursor.signature(b"GCOL", "heap of values")?;
    cursor.version(1..=1, "heap of values")?;
    cursor.skip(3)?;
    let length = cursor.length()?;
    let bytes = context.blocks.get(address, length.max(head))?;
    let mut cursor = context.cursor(&bytes);
    cursor.skip(head as usize)?;
    let mut objects = HashMap::new();
    while cursor.remaining() >= head as usize {
        let number = cursor.u16()?;
        cursor.skip(2 + 4)?;
        let length = cursor.length()?;
        // Number 0 is the free space at the end.
        if number == 0 {
            break;
        }
        let at = cursor.position();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        cursor.skip(length)?;
        objects.insert(u32::from(number), bytes.slice(at..at + length));
        let padding = length.next_multiple_of(8) - length;
        cursor.skip(padding.min(cursor.remaining()))?;
    }
    Ok(objects)
}

/// Where a value of variable length is, and how many elements it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) count: u32,
    pub(crate) heap: u64,
    pub(crate) object: u32,
}

/// The place that an element refers to; `None` if it is empty.
pub(crate) fn reference(context: &Context<'_>, element: &[u8]) -> Result<Option<Place>> {
    let mut cursor = context.cursor(element);
    let count = cursor.u32()?;
    let heap = cursor.address()?.filter(|address| *address != 0);
    let object = cursor.u32()?;
    Ok(heap.filter(|_| count > 0).map(|heap| Place {
        count,
        heap,
        object,
    }))
}
