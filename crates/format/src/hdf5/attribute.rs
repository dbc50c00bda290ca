//! The attributes of an object: in its header while they are few, in a heap when they are many.
//!
//! Sections IV.A.2.m and v of the file format.

use bytes::Bytes;

use super::cursor::{Cursor, text};
use super::datatype::Type;
use super::header::{Context, Header, kind};
use super::message::Space;
use super::tree;
use crate::{Error, Result};

/// An attribute as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) datatype: Type,
    pub(crate) space: Space,
    pub(crate) data: Bytes,
    /// The place in the order of creation, where that is tracked.
    pub(crate) order: Option<u32>,
}

/// All attributes of an object, sorted by name.
pub(crate) fn attributes(context: &Context<'_>, header: &Header) -> Result<Vec<Attribute>> {
    let mut found = Vec::new();
    for message in header.all(kind::ATTRIBUTE) {
        found.push(attribute(context, &message.data)?);
    }
    if let Some(message) = header.find(kind::ATTRIBUTE_INFO) {
        found.extend(dense(context, &mut context.cursor(&message.data))?);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn dense(context: &Context<'_>, cursor: &mut Cursor<'_>) -> Result<Vec<Attribute>> {
    cursor.version(0..=0, "attribute info")?;
    if cursor.u8()? & 1 != 0 {
        cursor.skip(2)?;
    }
    let (Some(heap), Some(names)) = (cursor.address()?, cursor.address()?) else {
        return Ok(Vec::new());
    };
    let (kind, records) = tree::records_2(context, names)?;
    if kind != 8 {
        return Err(Error::data(format!(
            "attributes are in a B-tree of type {kind}"
        )));
    }
    records
        .iter()
        .map(|record| {
            // The place in the heap, flags, the order of creation, and a hash of the name.
            let mut cursor = context.cursor(record);
            let id = cursor.bytes(8)?;
            let shared = cursor.u8()? & 2 != 0;
            let order = cursor.u32()?;
            let data = match shared {
                true => context.shared_in_heap(kind::ATTRIBUTE, id)?,
                false => context.heap_object(heap, id)?,
            };
            let mut found = attribute(context, &data)?;
            found.order = Some(order);
            Ok(found)
        })
        .collect()
}

fn attribute(context: &Context<'_>, data: &Bytes) -> Result<Attribute> {
    let mut cursor = context.cursor(data);
    let version = cursor.version(1..=3, "attribute")?;
    let flags = cursor.u8()?;
    let name = usize::from(cursor.u16()?);
    let datatype = usize::from(cursor.u16()?);
    let space = usize::from(cursor.u16()?);
    if version == 3 {
        cursor.skip(1)?;
    }
    let part = |cursor: &mut Cursor<'_>, length: usize| -> Result<Bytes> {
        let at = cursor.position();
        cursor.skip(match version {
            1 => length.next_multiple_of(8),
            _ => length,
        })?;
        Ok(data.slice(at..at + length))
    };
    let name = part(&mut cursor, name)?;
    let mut datatype = part(&mut cursor, datatype)?;
    let mut space = part(&mut cursor, space)?;
    if version > 1 && flags & 1 != 0 {
        datatype = context.shared(kind::DATATYPE, &datatype, 0)?.data;
    }
    if version > 1 && flags & 2 != 0 {
        space = context.shared(kind::DATASPACE, &space, 0)?.data;
    }
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    let datatype = Type::parse(&mut context.cursor(&datatype))?;
    let space = Space::parse(&mut context.cursor(&space))?;
    let name = text(&name[..end]);
    let length = space
        .elements()
        .and_then(|elements| elements.checked_mul(u64::from(datatype.size)));
    let at = cursor.position();
    // Some writers leave bytes behind the value.
    let length = length
        .and_then(|length| usize::try_from(length).ok())
        .filter(|length| *length <= cursor.remaining())
        .ok_or_else(|| {
            Error::data(format!(
                "the attribute {name:?} is shorter than its type says"
            ))
        })?;
    Ok(Attribute {
        name,
        datatype,
        space,
        data: data.slice(at..at + length),
        order: None,
    })
}
