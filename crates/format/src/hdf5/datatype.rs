//! HDF5 data types, in full: everything that a file says of one is kept.
//!
//! Between the cursor and the resolver, which turns them into [`crate::DataType`]. Section IV.A.2.d
//! of the file format.

use super::cursor::{Cursor, text};
use crate::{Error, Result};

/// Types inside types, at most: libhdf5 has no limit, and files have four or five.
const DEEPEST: usize = 64;

/// A data type with its size in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Type {
    /// Bytes of one element.
    pub(crate) size: u32,
    pub(crate) class: Class,
}

/// Whether the most significant byte comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
    Vax,
}

/// Where the bits of a number are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) offset: u16,
    pub(crate) precision: u16,
}

/// How a floating-point number is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Float {
    pub(crate) sign: u8,
    pub(crate) exponent: (u8, u8),
    pub(crate) mantissa: (u8, u8),
    pub(crate) bias: u32,
    /// 0 none, 1 the highest bit is set, 2 it is implied.
    pub(crate) normalization: u8,
}

/// What fills a string up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    Terminated,
    Zeros,
    Spaces,
}

/// What a reference refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference {
    Object,
    Region,
    /// The references of HDF5 1.12 (object, region or attribute).
    Standard(u8),
}

/// A member of a compound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) offset: u32,
    pub(crate) datatype: Type,
}

/// The kinds of types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Class {
    Integer {
        order: Order,
        signed: bool,
        bits: Bits,
    },
    Float {
        order: Order,
        bits: Bits,
        float: Float,
    },
    Time {
        order: Order,
        precision: u16,
    },
    String {
        padding: Padding,
        utf8: bool,
    },
    Bitfield {
        order: Order,
        bits: Bits,
    },
    Opaque {
        tag: String,
    },
    Compound(Vec<Member>),
    Reference(Reference),
    Enumeration {
        base: Box<Type>,
        members: Vec<(String, Vec<u8>)>,
    },
    Sequence(Box<Type>),
    VarString {
        padding: Padding,
        utf8: bool,
    },
    Array {
        dims: Vec<u32>,
        base: Box<Type>,
    },
    Complex(Box<Type>),
}

impl Type {
    /// Parses a datatype message.
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Type> {
        parse(cursor, DEEPEST)
    }

    /// True if some part of an element has no fixed length: it is in the heap of the file.
    pub(crate) fn is_variable(&self) -> bool {
        match &self.class {
            Class::Sequence(_) | Class::VarString { .. } => true,
            Class::Compound(members) => members.iter().any(|m| m.datatype.is_variable()),
            Class::Array { base, .. } => base.is_variable(),
            _ => false,
        }
    }

    /// True if cells hold what means something in their file only: references, and places in its
    /// heap.
    pub(crate) fn has_references(&self) -> bool {
        match &self.class {
            Class::Sequence(_) | Class::VarString { .. } | Class::Reference(_) => true,
            Class::Compound(members) => members.iter().any(|m| m.datatype.has_references()),
            Class::Array { base, .. } => base.has_references(),
            _ => false,
        }
    }
}

fn parse(cursor: &mut Cursor<'_>, depth: usize) -> Result<Type> {
    if depth == 0 {
        return Err(Error::data("a data type is nested too deeply"));
    }
    let first = cursor.u8()?;
    let (class, version) = (first & 15, first >> 4);
    let flags = cursor.uint(3)? as u32;
    let size = cursor.u32()?;
    if !(1..=5).contains(&version) {
        return Err(Error::data(format!(
            "version {version} of a data type is not known"
        )));
    }
    let class = match class {
        0 => Class::Integer {
            order: order(flags & 1),
            signed: flags & 8 != 0,
            bits: bits(cursor, size)?,
        },
        1 => float(cursor, flags, size)?,
        2 => Class::Time {
            order: order(flags & 1),
            precision: cursor.u16()?,
        },
        3 => Class::String {
            padding: padding(flags & 15)?,
            utf8: flags >> 4 & 15 == 1,
        },
        4 => Class::Bitfield {
            order: order(flags & 1),
            bits: bits(cursor, size)?,
        },
        5 => {
            let tag = cursor.bytes((flags & 0xff) as usize)?;
            let end = tag.iter().position(|b| *b == 0).unwrap_or(tag.len());
            Class::Opaque {
                tag: text(&tag[..end]),
            }
        }
        6 => Class::Compound(compound(cursor, version, flags & 0xffff, size, depth)?),
        7 => Class::Reference(match flags & 15 {
            0 => Reference::Object,
            1 => Reference::Region,
            kind @ 2..=4 => Reference::Standard(kind as u8),
            kind => return Err(Error::data(format!("reference type {kind} is not known"))),
        }),
        8 => enumeration(cursor, version, flags & 0xffff, depth)?,
        9 => {
            let base = Box::new(parse(cursor, depth - 1)?);
            match flags & 15 {
                0 => Class::Sequence(base),
                1 => Class::VarString {
                    padding: padding(flags >> 4 & 15)?,
                    utf8: flags >> 8 & 15 == 1,
                },
                kind => return Err(Error::data(format!("variable type {kind} is not known"))),
            }
        }
        10 => array(cursor, version, size, depth)?,
        11 => Class::Complex(Box::new(parse(cursor, depth - 1)?)),
        other => return Err(Error::data(format!("data type class {other} is not known"))),
    };
    if size == 0 {
        return Err(Error::data("a data type has no bytes"));
    }
    Ok(Type { size, class })
}

fn order(big: u32) -> Order {
    if big == 0 { Order::Little } else { Order::Big }
}

fn bits(cursor: &mut Cursor<'_>, size: u32) -> Result<Bits> {
    let (offset, precision) = (cursor.u16()?, cursor.u16()?);
    if u64::from(offset) + u64::from(precision) > 8 * u64::from(size) || precision == 0 {
        return Err(Error::data("the bits of a number lie outside it"));
    }
    Ok(Bits { offset, precision })
}

fn float(cursor: &mut Cursor<'_>, flags: u32, size: u32) -> Result<Class> {
    let bits = bits(cursor, size)?;
    let exponent = (cursor.u8()?, cursor.u8()?);
    let mantissa = (cursor.u8()?, cursor.u8()?);
    let bias = cursor.u32()?;
    let order = match (flags & 1, flags >> 6 & 1) {
        (0, 0) => Order::Little,
        (1, 0) => Order::Big,
        (1, 1) => Order::Vax,
        _ => return Err(Error::data("a number has a byte order that is not known")),
    };
    Ok(Class::Float {
        order,
        bits,
        float: Float {
            sign: (flags >> 8) as u8,
            exponent,
            mantissa,
            bias,
            normalization: (flags >> 4 & 3) as u8,
        },
    })
}

fn padding(value: u32) -> Result<Padding> {
    match value {
        0 => Ok(Padding::Terminated),
        1 => Ok(Padding::Zeros),
        2 => Ok(Padding::Spaces),
        other => Err(Error::data(format!("string padding {other} is not known"))),
    }
}

/// A name; before version 3 it is filled up to a multiple of 8 bytes.
fn name(cursor: &mut Cursor<'_>, version: u8) -> Result<String> {
    let start = cursor.position();
    let name = text(cursor.terminated()?);
    if version < 3 {
        cursor.align(start, 8)?;
    }
    Ok(name)
}

fn compound(
    cursor: &mut Cursor<'_>,
    version: u8,
    count: u32,
    size: u32,
    depth: usize,
) -> Result<Vec<Member>> {
    // From version 3 on, offsets have as many bytes as the compound's size needs.
    let offset_bytes = (4 - size.leading_zeros() as usize / 8).max(1);
    let mut members = Vec::new();
    for _ in 0..count {
        let name = name(cursor, version)?;
        let offset = match version {
            1 | 2 => cursor.u32()?,
            _ => cursor.uint(offset_bytes)? as u32,
        };
        let dims = match version {
            1 => old_dims(cursor)?,
            _ => Vec::new(),
        };
        let mut datatype = parse(cursor, depth - 1)?;
        if !dims.is_empty() {
            datatype = arrayed(dims, datatype)?;
        }
        if u64::from(offset) + u64::from(datatype.size) > u64::from(size) {
            return Err(Error::data(format!(
                "the member {name:?} lies outside its compound"
            )));
        }
        members.push(Member {
            name,
            offset,
            datatype,
        });
    }
    if members.is_empty() {
        return Err(Error::data("a compound has no members"));
    }
    Ok(members)
}

/// The dimensions that members had before there were array types.
fn old_dims(cursor: &mut Cursor<'_>) -> Result<Vec<u32>> {
    let rank = usize::from(cursor.u8()?);
    cursor.skip(3 + 4 + 4)?;
    let all = [cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?];
    match all.get(..rank) {
        Some(dims) => Ok(dims.to_vec()),
        None => Err(Error::data("a compound's member has too many dimensions")),
    }
}

fn arrayed(dims: Vec<u32>, base: Type) -> Result<Type> {
    let size = dims
        .iter()
        .try_fold(base.size, |size, dim| size.checked_mul(*dim))
        .filter(|size| *size > 0)
        .ok_or_else(|| Error::data("an array type is empty or too large"))?;
    Ok(Type {
        size,
        class: Class::Array {
            dims,
            base: Box::new(base),
        },
    })
}

fn array(cursor: &mut Cursor<'_>, version: u8, size: u32, depth: usize) -> Result<Class> {
    let rank = usize::from(cursor.u8()?);
    if version < 3 {
        cursor.skip(3)?;
    }
    let dims = (0..rank)
        .map(|_| cursor.u32())
        .collect::<Result<Vec<_>>>()?;
    if version < 3 {
        cursor.skip(4 * rank)?;
    }
    let array = arrayed(dims, parse(cursor, depth - 1)?)?;
    if array.size != size {
        return Err(Error::data(
            "an array type has another size than its elements",
        ));
    }
    Ok(array.class)
}

fn enumeration(cursor: &mut Cursor<'_>, version: u8, count: u32, depth: usize) -> Result<Class> {
    let base = Box::new(parse(cursor, depth - 1)?);
    let names = (0..count)
        .map(|_| name(cursor, version))
        .collect::<Result<Vec<_>>>()?;
    let mut members = Vec::with_capacity(names.len());
    for name in names {
        members.push((name, cursor.bytes(base.size as usize)?.to_vec()));
    }
    Ok(Class::Enumeration { base, members })
}
