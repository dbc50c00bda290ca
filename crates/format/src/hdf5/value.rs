//! Values as JSON, as users of Zarr expect them: numbers, texts, lists, nested by shape.
//!
//! Between attributes, and elements that have no fixed size, and the hierarchy. What JSON cannot say
//! (references, opaque bytes) is an object that names it; nothing is left out.

use std::collections::HashMap;

use bytes::Bytes;
use half::f16;
use serde_json::{Map, Number, Value, json};

use super::attribute::Attribute;
use super::cells::{is_ieee, widened};
use super::cursor::text;
use super::datatype::{Class, Order, Padding, Type};
use super::header::Context;
use super::heap::{self, Place};
use super::message::Space;
use crate::{Error, Result, base64};

/// Elements of one attribute, at most, that are turned into JSON.
const MOST_ELEMENTS: u64 = 1 << 20;

/// The value of an attribute.
pub(crate) fn json(context: &Context<'_>, attribute: &Attribute) -> Result<Value> {
    let Space::Simple { dims, .. } = &attribute.space else {
        return Ok(Value::Null);
    };
    let elements = attribute.space.elements().unwrap_or(u64::MAX);
    if elements > MOST_ELEMENTS {
        return Err(Error::data(format!(
            "the attribute {:?} has {elements} elements",
            attribute.name
        )));
    }
    let mut reader = Reader::new(context);
    let size = attribute.datatype.size as usize;
    let values = attribute
        .data
        .chunks_exact(size)
        .take(elements as usize)
        .map(|element| reader.value(element, &attribute.datatype))
        .collect::<Result<Vec<_>>>()?;
    Ok(nested(values, dims))
}

/// A flat list as lists in lists; a single value of a scalar.
fn nested(values: Vec<Value>, dims: &[u64]) -> Value {
    let Some((first, rest)) = dims.split_first() else {
        return values.into_iter().next().unwrap_or(Value::Null);
    };
    if rest.is_empty() {
        return Value::Array(values);
    }
    let each = rest.iter().product::<u64>() as usize;
    let mut values = values.into_iter();
    let list = (0..*first).map(|_| nested(values.by_ref().take(each).collect(), rest));
    Value::Array(list.collect())
}

/// Elements as texts in JSON, in their order; those that are equal are read once.
pub(crate) fn texts(
    context: &Context<'_>,
    elements: &[Bytes],
    datatype: &Type,
) -> Result<Vec<Bytes>> {
    let mut reader = Reader::new(context);
    let mut read: HashMap<&Bytes, Result<Bytes>> = HashMap::new();
    // All of them miss what they need before one of them ends this.
    for element in elements {
        read.entry(element).or_insert_with(|| {
            let value = reader.value(element, datatype)?;
            Ok(Bytes::from(value.to_string()))
        });
    }
    let mut texts = HashMap::with_capacity(read.len());
    for (element, text) in read {
        texts.insert(element, text?);
    }
    let known = elements.iter().filter_map(|element| texts.get(element));
    Ok(known.cloned().collect())
}

/// Turns elements into JSON, with the heaps it has read.
struct Reader<'a> {
    context: &'a Context<'a>,
    heaps: HashMap<u64, HashMap<u32, Bytes>>,
    /// Bytes that may still be read from heaps. Every value is somebody's alone, so that all of them
    /// together are no longer than the file; in a damaged one they may contain one another.
    left: u64,
}

impl<'a> Reader<'a> {
    fn new(context: &'a Context<'a>) -> Self {
        Reader {
            context,
            heaps: HashMap::new(),
            left: context.blocks.file_size(),
        }
    }

    fn value(&mut self, bytes: &[u8], datatype: &Type) -> Result<Value> {
        Ok(match &datatype.class {
            Class::Integer { order, signed, .. } => integer(bytes, *order, *signed),
            Class::Bitfield { order, .. } => integer(bytes, *order, false),
            Class::Float {
                order, float: bits, ..
            } => match widened(datatype) {
                Some(widen) => {
                    let mut cell = vec![0; widen.dtype().cell_bytes().unwrap_or(8) as usize];
                    widen.apply(bytes, &mut cell);
                    float(&cell, Order::Little)
                }
                None if is_ieee(datatype.size, bits) => float(bytes, *order),
                None => json!({"float": base64::encode(bytes)}),
            },
            Class::String { padding, .. } => Value::String(string(bytes, *padding)),
            Class::VarString { .. } => {
                let stored = self.sequence(bytes)?.0;
                let end = stored.iter().position(|b| *b == 0).unwrap_or(stored.len());
                Value::String(text(&stored[..end]))
            }
            Class::Sequence(base) => {
                let (stored, count) = self.sequence(bytes)?;
                let elements = stored.chunks_exact(base.size as usize).take(count as usize);
                let values = elements.map(|element| self.value(element, base));
                Value::Array(values.collect::<Result<_>>()?)
            }
            Class::Array { dims, base } => {
                let elements = bytes.chunks_exact(base.size as usize);
                let values = elements
                    .map(|element| self.value(element, base))
                    .collect::<Result<Vec<_>>>()?;
                let dims: Vec<u64> = dims.iter().map(|dim| u64::from(*dim)).collect();
                nested(values, &dims)
            }
            Class::Compound(members) => {
                let mut map = Map::new();
                for member in members {
                    let at = member.offset as usize;
                    let bytes = &bytes[at..at + member.datatype.size as usize];
                    map.insert(member.name.clone(), self.value(bytes, &member.datatype)?);
                }
                Value::Object(map)
            }
            Class::Complex(base) => {
                let (real, imaginary) = bytes.split_at(base.size as usize);
                json!([self.value(real, base)?, self.value(imaginary, base)?])
            }
            Class::Enumeration { base, members } => {
                let is_bool = members.len() == 2
                    && members
                        .iter()
                        .all(|(name, _)| name == "TRUE" || name == "FALSE");
                match members.iter().find(|(_, value)| value == bytes) {
                    Some((name, _)) if is_bool => Value::Bool(name == "TRUE"),
                    _ => self.value(bytes, base)?,
                }
            }
            Class::Reference(_) => json!({"reference": base64::encode(bytes)}),
            Class::Opaque { tag } => json!({"opaque": base64::encode(bytes), "tag": tag}),
            Class::Time { .. } => json!({"time": base64::encode(bytes)}),
        })
    }

    /// The bytes that an element of variable length refers to, and how many elements they are.
    fn sequence(&mut self, bytes: &[u8]) -> Result<(Bytes, u32)> {
        let Some(Place {
            count,
            heap,
            object,
        }) = heap::reference(self.context, bytes)?
        else {
            return Ok((Bytes::new(), 0));
        };
        if !self.heaps.contains_key(&heap) {
            let objects = heap::global(self.context, heap)?;
            self.heaps.insert(heap, objects);
        }
        let stored = self.heaps.get(&heap).and_then(|heap| heap.get(&object));
        let stored =
            stored.ok_or_else(|| Error::data("a value of variable length is not in its heap"))?;
        let left = self.left.checked_sub(stored.len() as u64);
        self.left = left.ok_or_else(|| {
            Error::data("values of variable length are longer than their file")
                .with_hint("the file is damaged: its values contain one another")
        })?;
        Ok((stored.clone(), count))
    }
}

/// Little-endian, and extended to eight bytes.
fn little(bytes: &[u8], order: Order, signed: bool) -> [u8; 8] {
    let mut bytes = bytes.to_vec();
    if order == Order::Big {
        bytes.reverse();
    }
    let negative = signed && bytes.last().is_some_and(|high| high & 0x80 != 0);
    let mut out = [if negative { 0xff } else { 0 }; 8];
    let count = bytes.len().min(8);
    out[..count].copy_from_slice(&bytes[..count]);
    out
}

fn integer(bytes: &[u8], order: Order, signed: bool) -> Value {
    let bytes = little(bytes, order, signed);
    match signed {
        true => json!(i64::from_le_bytes(bytes)),
        false => json!(u64::from_le_bytes(bytes)),
    }
}

fn float(bytes: &[u8], order: Order) -> Value {
    let le = little(bytes, order, false);
    let number = match bytes.len() {
        2 => f64::from(f16::from_le_bytes([le[0], le[1]])),
        4 => f64::from(f32::from_le_bytes([le[0], le[1], le[2], le[3]])),
        _ => f64::from_le_bytes(le),
    };
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number.is_nan() => json!("NaN"),
        None if number > 0.0 => json!("Infinity"),
        None => json!("-Infinity"),
    }
}

fn string(bytes: &[u8], padding: Padding) -> String {
    let end = match padding {
        Padding::Terminated => bytes.iter().position(|b| *b == 0),
        Padding::Zeros => bytes
            .iter()
            .rposition(|b| *b != 0)
            .map(|i| i + 1)
            .or(Some(0)),
        Padding::Spaces => bytes
            .iter()
            .rposition(|b| *b != b' ')
            .map(|i| i + 1)
            .or(Some(0)),
    };
    text(&bytes[..end.unwrap_or(bytes.len())])
}
