//! Object headers: the messages that say what an object is.
//!
//! Section IV.A of the file format. Messages that lie elsewhere (in a continuation, in another
//! object's header or in the heap of shared messages) are brought together here, so that nothing
//! above knows where they were. Checksums are verified.

use std::collections::HashSet;

use bytes::Bytes;
use hdf5_reader::fractal_heap::FractalHeap;

use super::blocks::Blocks;
use super::checksum;
use super::cursor::{Cursor, Sizes};
use crate::{Error, Result};

/// Bytes of a header that are read at first; most headers are shorter.
const FIRST: u64 = 512;
/// The longest header: one attribute may have 64 KiB, and there may be many.
const LONGEST: u64 = 256 << 20;

/// The kinds of messages that are understood.
pub(crate) mod kind {
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL: u16 = 0x04;
    pub(crate) const FILL: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const GROUP_INFO: u16 = 0x0a;
    pub(crate) const FILTERS: u16 = 0x0b;
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    pub(crate) const SHARED_TABLE: u16 = 0x0f;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
}

/// A message of an object header.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    pub(crate) data: Bytes,
    /// Where the data is in the file; 0 for messages that lie in a heap.
    pub(crate) address: u64,
}

/// The message that a cursor has come to, behind its kind, flags and length.
fn taken(
    cursor: &mut Cursor<'_>,
    bytes: &Bytes,
    address: u64,
    (kind, flags, length): (u16, u8, usize),
) -> Result<Raw> {
    let at = cursor.position();
    cursor.skip(length)?;
    Ok(Raw {
        kind,
        flags,
        data: bytes.slice(at..at + length),
        address: address + at as u64,
    })
}

/// All messages of an object, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Header {
    pub(crate) messages: Vec<Message>,
}

impl Header {
    /// The first message of a kind.
    pub(crate) fn find(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|message| message.kind == kind)
    }

    /// All messages of a kind.
    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |m| m.kind == kind)
    }
}

/// What parsers need of the file besides the bytes at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) blocks: &'a Blocks,
    pub(crate) sizes: Sizes,
    /// The heaps of shared messages.
    pub(crate) shared: &'a [SharedIndex],
}

impl<'a> Context<'a> {
    pub(crate) fn cursor<'b>(&self, bytes: &'b [u8]) -> Cursor<'b> {
        Cursor::new(bytes, self.sizes)
    }

    /// The object header at an address.
    pub(crate) fn header(&self, address: u64) -> Result<Header> {
        self.header_within(address, 0)
    }

    fn header_within(&self, address: u64, depth: usize) -> Result<Header> {
        let mut messages = Vec::new();
        let mut queue = vec![];
        let start = self.blocks.up_to(address, FIRST)?;
        let read = match start.starts_with(b"OHDR") {
            true => self.new_header(address, &start, &mut queue),
            false => self.old_header(address, &start, &mut queue),
        };
        let (first, creation_order) = read?;
        messages.extend(first);
        let mut seen = HashSet::from([address]);
        let mut total = 0u64;
        while let Some((address, length)) = queue.pop() {
            total = total.saturating_add(length);
            if !seen.insert(address) || total > LONGEST {
                return Err(Error::data("an object header continues without end"));
            }
            let bytes = self.blocks.get(address, length)?;
            messages.extend(match creation_order {
                None => self.old_messages(address, bytes, &mut queue)?,
                Some(order) => self.new_continuation(address, &bytes, order, &mut queue)?,
            });
        }
        let mut header = Header::default();
        for message in messages {
            header.messages.push(self.resolve(message, depth)?);
        }
        Ok(header)
    }

    fn old_header(
        &self,
        address: u64,
        start: &Bytes,
        queue: &mut Vec<(u64, u64)>,
    ) -> Result<(Vec<Raw>, Option<bool>)> {
        let mut cursor = self.cursor(start);
        cursor.version(1..=1, "object header")?;
        // A reserved byte, the number of messages, and of references.
        cursor.skip(1 + 2 + 4)?;
        let length = u64::from(cursor.u32()?);
        let bytes = self.whole(address, start, 16, length)?;
        Ok((self.old_messages(address + 16, bytes, queue)?, None))
    }

    fn old_messages(
        &self,
        address: u64,
        bytes: Bytes,
        queue: &mut Vec<(u64, u64)>,
    ) -> Result<Vec<Raw>> {
        let mut cursor = self.cursor(&bytes);
        let mut messages = Vec::new();
        while cursor.remaining() >= 8 {
            let kind = cursor.u16()?;
            let length = usize::from(cursor.u16()?);
            let flags = cursor.u8()?;
            cursor.skip(3)?;
            let message = taken(&mut cursor, &bytes, address, (kind, flags, length))?;
            self.keep(message, &mut messages, queue)?;
        }
        Ok(messages)
    }

    /// A header of version 2; also tells whether its messages have a creation order.
    fn new_header(
        &self,
        address: u64,
        start: &Bytes,
        queue: &mut Vec<(u64, u64)>,
    ) -> Result<(Vec<Raw>, Option<bool>)> {
        let mut cursor = self.cursor(start);
        cursor.signature(b"OHDR", "object header")?;
        cursor.version(2..=2, "object header")?;
        let flags = cursor.u8()?;
        // Times, and when attributes move to a heap.
        cursor.skip(if flags & 0x20 != 0 { 16 } else { 0 })?;
        cursor.skip(if flags & 0x10 != 0 { 4 } else { 0 })?;
        let length = cursor.uint(1 << (flags & 3))?;
        let prefix = cursor.position() as u64;
        let whole = self.whole(
            address,
            start,
            0,
            prefix.saturating_add(length).saturating_add(4),
        )?;
        let (bytes, sum) = split_sum(&whole)?;
        checksum(bytes, sum, "object header")?;
        let order = flags & 4 != 0;
        let body = whole.slice(prefix as usize..whole.len() - 4);
        let messages = self.new_messages(address + prefix, body, order, queue)?;
        Ok((messages, Some(order)))
    }

    fn new_continuation(
        &self,
        address: u64,
        bytes: &Bytes,
        order: bool,
        queue: &mut Vec<(u64, u64)>,
    ) -> Result<Vec<Raw>> {
        let (summed, sum) = split_sum(bytes)?;
        self.cursor(summed)
            .signature(b"OCHK", "continuation of an object header")?;
        checksum(summed, sum, "continuation of an object header")?;
        let body = bytes.slice(4..bytes.len() - 4);
        self.new_messages(address + 4, body, order, queue)
    }

    fn new_messages(
        &self,
        address: u64,
        bytes: Bytes,
        order: bool,
        queue: &mut Vec<(u64, u64)>,
    ) -> Result<Vec<Raw>> {
        let mut cursor = self.cursor(&bytes);
        let mut messages = Vec::new();
        let prefix = if order { 6 } else { 4 };
        // Fewer bytes than a message has are a gap.
        while cursor.remaining() >= prefix {
            let kind = u16::from(cursor.u8()?);
            let length = usize::from(cursor.u16()?);
            let flags = cursor.u8()?;
            cursor.skip(prefix - 4)?;
            let message = taken(&mut cursor, &bytes, address, (kind, flags, length))?;
            self.keep(message, &mut messages, queue)?;
        }
        Ok(messages)
    }

    /// Keeps a message; a continuation is queued.
    fn keep(
        &self,
        message: Raw,
        messages: &mut Vec<Raw>,
        queue: &mut Vec<(u64, u64)>,
    ) -> Result<()> {
        match message.kind {
            0 => {}
            kind::CONTINUATION => {
                let mut cursor = self.cursor(&message.data);
                let address = cursor.defined("a continuation")?;
                queue.push((address, cursor.length()?));
            }
            _ => messages.push(message),
        }
        Ok(())
    }

    /// `length` bytes that begin `skip` bytes after the address; `start` holds the first ones.
    fn whole(&self, address: u64, start: &Bytes, skip: u64, length: u64) -> Result<Bytes> {
        if length > LONGEST {
            return Err(Error::data(format!(
                "an object header of {length} bytes is too long"
            )));
        }
        match skip + length <= start.len() as u64 {
            true => Ok(start.slice(skip as usize..(skip + length) as usize)),
            false => self.blocks.get(address + skip, length),
        }
    }

    /// Brings a message here that is shared with other objects.
    fn resolve(&self, message: Raw, depth: usize) -> Result<Message> {
        if message.flags & 2 != 0 {
            return self.shared(message.kind, &message.data, depth);
        }
        Ok(Message {
            kind: message.kind,
            data: message.data,
            address: message.address,
        })
    }

    /// The message that a shared message of this kind stands for.
    pub(crate) fn shared(&self, kind: u16, data: &[u8], depth: usize) -> Result<Message> {
        if depth > 8 {
            return Err(Error::data("a shared message leads to itself"));
        }
        let mut cursor = self.cursor(data);
        let version = cursor.version(1..=3, "shared message")?;
        let place = cursor.u8()?;
        if version == 1 {
            cursor.skip(6)?;
        }
        if version == 3 && place == 1 {
            return Ok(Message {
                kind,
                data: self.shared_in_heap(kind, cursor.bytes(8)?)?,
                address: 0,
            });
        }
        let address = cursor.defined("a committed type")?;
        let header = self.header_within(address, depth + 1)?;
        match header.find(kind) {
            Some(message) => Ok(Message { ..message.clone() }),
            None => Err(Error::data("a shared message is not where it should be")),
        }
    }

    /// A shared message of this kind, by its place in the heap.
    pub(crate) fn shared_in_heap(&self, kind: u16, id: &[u8]) -> Result<Bytes> {
        let index = self.shared.iter().find(|index| index.holds(kind));
        let heap = index
            .and_then(|index| index.heap)
            .ok_or_else(|| Error::data("the heap of a shared message is missing"))?;
        self.heap_object(heap, id)
    }

    /// An object of the fractal heap at an address.
    pub(crate) fn heap_object(&self, heap: u64, id: &[u8]) -> Result<Bytes> {
        let Sizes { offset, length } = self.sizes;
        let heap = FractalHeap::parse_at_storage(self.blocks, heap, offset, length)
            .map_err(super::foreign)?;
        heap.get_object_storage(id, self.blocks, offset, length)
            .map(Bytes::from)
            .map_err(super::foreign)
    }
}

/// A message as it is stored.
struct Raw {
    kind: u16,
    flags: u8,
    data: Bytes,
    address: u64,
}

/// Splits the checksum off the end.
pub(crate) fn split_sum(bytes: &[u8]) -> Result<(&[u8], u32)> {
    match bytes.split_last_chunk::<4>() {
        Some((bytes, sum)) => Ok((bytes, u32::from_le_bytes(*sum))),
        None => Err(Error::data("a structure is too short for its checksum")),
    }
}

/// An index of messages that objects share.
#[derive(Debug, Clone)]
pub(crate) struct SharedIndex {
    kinds: u16,
    heap: Option<u64>,
}

impl SharedIndex {
    fn holds(&self, kind: u16) -> bool {
        kind < 16 && self.kinds >> kind & 1 == 1
    }

    /// The indexes that the superblock's extension names.
    pub(crate) fn all(context: &Context<'_>, extension: u64) -> Result<Vec<SharedIndex>> {
        let header = context.header(extension)?;
        let Some(message) = header.find(kind::SHARED_TABLE) else {
            return Ok(Vec::new());
        };
        let mut cursor = context.cursor(&message.data);
        cursor.version(0..=0, "table of shared messages")?;
        let address = cursor.defined("the table of shared messages")?;
        let count = u64::from(cursor.u8()?);
        let entry = 1 + 1 + 2 + 4 + 2 + 2 + 2 + 2 * u64::from(context.sizes.offset);
        let bytes = context.blocks.get(address, 4 + count * entry + 4)?;
        let (summed, sum) = split_sum(&bytes)?;
        let mut cursor = context.cursor(summed);
        cursor.signature(b"SMTB", "table of shared messages")?;
        checksum(summed, sum, "table of shared messages")?;
        (0..count)
            .map(|_| {
                cursor.version(0..=0, "index of shared messages")?;
                cursor.skip(1)?;
                let kinds = cursor.u16()?;
                cursor.skip(4 + 2 + 2 + 2)?;
                cursor.address()?;
                let heap = cursor.address()?;
                Ok(SharedIndex { kinds, heap })
            })
            .collect()
    }
}
