//! The links of a group, whatever kind of group it is.
//!
//! Old groups keep names in a local heap and addresses in a B-tree; new ones keep link messages in
//! the header while they are few, and in a heap when they are many. Sections III.A to C and
//! IV.A.2.c, g and r of the file format.

use super::cursor::{Cursor, text};
use super::header::{Context, Header, kind};
use super::heap;
use super::tree;
use crate::{Error, Result};

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// To the object at this address.
    Hard(u64),
    /// To whatever is at this path.
    Soft(String),
    /// To what is at a path of another file.
    External { file: String, path: String },
    /// Of a kind that only the program knows that made it.
    User(u8),
}

/// A named link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) order: Option<u64>,
}

/// True if an object with this header is a group.
pub(crate) fn is_group(header: &Header) -> bool {
    [kind::SYMBOL_TABLE, kind::LINK_INFO, kind::GROUP_INFO]
        .iter()
        .any(|kind| header.find(*kind).is_some())
}

/// All links of a group, sorted by name.
pub(crate) fn links(context: &Context<'_>, header: &Header) -> Result<Vec<Link>> {
    let mut links = Vec::new();
    if let Some(message) = header.find(kind::SYMBOL_TABLE) {
        let mut cursor = context.cursor(&message.data);
        let tree = cursor.defined("a group's B-tree")?;
        let heap = cursor.defined("a group's heap")?;
        links.extend(old_links(context, tree, heap)?);
    }
    for message in header.all(kind::LINK) {
        links.push(link(&mut context.cursor(&message.data))?);
    }
    if let Some(message) = header.find(kind::LINK_INFO) {
        links.extend(dense_links(context, &mut context.cursor(&message.data))?);
    }
    links.sort_by(|a, b| a.name.cmp(&b.name));
    match links.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(Error::data(format!(
            "a group has two links {:?}",
            pair[0].name
        ))),
        None => Ok(links),
    }
}

fn old_links(context: &Context<'_>, root: u64, heap: u64) -> Result<Vec<Link>> {
    let names = heap::local(context, heap);
    let leaves = tree::leaves_1(context, root, 0, usize::from(context.sizes.length));
    // Both are missed together.
    let (names, leaves) = (names?, leaves?);
    let offset = u64::from(context.sizes.offset);
    let entry = 2 * offset + 4 + 4 + 16;
    let heads: Vec<(u64, u64)> = leaves.iter().map(|(_, node)| (*node, 8)).collect();
    let mut places = Vec::new();
    for (bytes, (node, _)) in tree::all(context, &heads)?.iter().zip(&heads) {
        let mut cursor = context.cursor(bytes);
        cursor.signature(b"SNOD", "node of a group")?;
        cursor.version(1..=1, "node of a group")?;
        cursor.skip(1)?;
        places.push((node + 8, u64::from(cursor.u16()?) * entry));
    }
    let mut links = Vec::new();
    for bytes in tree::all(context, &places)? {
        for entry in bytes.chunks_exact(entry as usize) {
            let mut cursor = context.cursor(entry);
            let at = cursor.uint(offset as usize)?;
            let address = cursor.address()?;
            let cached = cursor.u32()?;
            cursor.skip(4)?;
            let target = match (cached, address) {
                // The path of a soft link is in the heap too.
                (2, _) => {
                    let path = u64::from(cursor.u32()?);
                    Target::Soft(heap::name(context, &names, path)?)
                }
                (_, Some(address)) => Target::Hard(address),
                (_, None) => return Err(Error::data("a link leads nowhere")),
            };
            links.push(Link {
                name: heap::name(context, &names, at)?,
                target,
                order: None,
            });
        }
    }
    Ok(links)
}

fn dense_links(context: &Context<'_>, cursor: &mut Cursor<'_>) -> Result<Vec<Link>> {
    cursor.version(0..=0, "link info")?;
    if cursor.u8()? & 1 != 0 {
        cursor.skip(8)?;
    }
    let (Some(heap), Some(names)) = (cursor.address()?, cursor.address()?) else {
        return Ok(Vec::new());
    };
    let (kind, records) = tree::records_2(context, names)?;
    if kind != 5 {
        return Err(Error::data(format!("links are in a B-tree of type {kind}")));
    }
    records
        .iter()
        .map(|record| {
            // A hash of the name, then the place in the heap.
            let object = context.heap_object(heap, &record[4.min(record.len())..])?;
            link(&mut context.cursor(&object))
        })
        .collect()
}

fn link(cursor: &mut Cursor<'_>) -> Result<Link> {
    cursor.version(1..=1, "link")?;
    let flags = cursor.u8()?;
    let kind = if flags & 8 != 0 { cursor.u8()? } else { 0 };
    let order = match flags & 4 {
        0 => None,
        _ => Some(cursor.u64()?),
    };
    if flags & 16 != 0 {
        cursor.skip(1)?;
    }
    let length = cursor.uint(1 << (flags & 3))?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let name = text(cursor.bytes(length)?);
    let target = match kind {
        0 => Target::Hard(cursor.defined("a link's object")?),
        1 => {
            let length = usize::from(cursor.u16()?);
            Target::Soft(text(cursor.bytes(length)?))
        }
        64 => {
            let length = usize::from(cursor.u16()?);
            let value = cursor.bytes(length)?;
            let mut value = Cursor::new(value, cursor.sizes());
            value.skip(1)?;
            Target::External {
                file: text(value.terminated()?),
                path: text(value.terminated()?),
            }
        }
        other => Target::User(other),
    };
    Ok(Link {
        name,
        target,
        order,
    })
}
