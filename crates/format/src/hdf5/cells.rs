//! From HDF5 types to cells: which [`DataType`] an element has in memory, and what has to be done to
//! its stored bytes for that.
//!
//! Between data types and the codec chain. An element keeps its size: a compound's holes stay in its
//! cells as unnamed fields, so that offsets in the file are offsets in memory. Where parts of an
//! element have no fixed length (a compound with texts, sequences of sequences), no cell of ours has
//! room for it, and it is a text in JSON, as attributes are.

use super::datatype::{Bits, Class, Float, Order, Padding, Type};
use crate::codec::{Fix, Swap, Wide, Widen};
use crate::dtype::MAX_CELL_BYTES;
use crate::{DataType, Error, Field, Result, numpy};

/// How elements become cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cells {
    pub(crate) dtype: DataType,
    pub(crate) swap: Swap,
    pub(crate) fixes: Vec<Fix>,
    /// Dimensions of an element that is an array itself; they follow those of the dataset.
    pub(crate) inner: Vec<u64>,
    /// Elements are numbers that no processor has.
    pub(crate) widen: Option<Widen>,
    /// Elements refer to the global heap: the type of what is there, or of the element itself where
    /// only parts of it do.
    pub(crate) heap: Option<Type>,
}

impl Cells {
    pub(crate) fn new(datatype: &Type) -> Result<Cells> {
        if u64::from(datatype.size) > MAX_CELL_BYTES {
            return Err(Error::data(format!(
                "an element has {} bytes, more than the {MAX_CELL_BYTES} that are taken for right",
                datatype.size
            )));
        }
        let mut inner = Vec::new();
        let mut element = datatype;
        while let Class::Array { dims, base } = &element.class {
            inner.extend(dims.iter().map(|dim| u64::from(*dim)));
            element = base;
        }
        let heap = match &element.class {
            Class::VarString { .. } => Some((DataType::String, element.clone())),
            Class::Sequence(base) if !base.is_variable() => {
                Some((DataType::VarBytes, (**base).clone()))
            }
            _ if element.is_variable() => Some((DataType::String, element.clone())),
            _ => None,
        };
        if let Some((dtype, base)) = heap {
            return Ok(Cells {
                dtype,
                swap: Swap::None,
                fixes: Vec::new(),
                inner,
                widen: None,
                heap: Some(base),
            });
        }
        if let Some(widen) = widened(element) {
            return Ok(Cells {
                dtype: widen.dtype(),
                swap: Swap::None,
                fixes: Vec::new(),
                inner,
                widen: Some(widen),
                heap: None,
            });
        }
        let mut walk = Walk::default();
        let dtype = walk.convert(element, 0)?;
        let cell = element.size as usize;
        Ok(Cells {
            dtype,
            swap: Swap::new(cell, &walk.big),
            fixes: walk.fixes,
            inner,
            widen: None,
            heap: None,
        })
    }
}

/// How numbers become ones that there are, if they are none.
pub(crate) fn widened(datatype: &Type) -> Option<Widen> {
    let (order, kind) = match &datatype.class {
        Class::Integer {
            order,
            signed,
            bits,
        } if matches!(datatype.size, 3 | 5 | 6 | 7) => {
            let kind = Wide::Integer {
                shift: u32::from(bits.offset),
                bits: u32::from(bits.precision),
                signed: *signed,
            };
            (order, kind)
        }
        Class::Float { order, float, .. } if datatype.size <= 8 => {
            let field = |(at, bits): (u8, u8)| (u32::from(at), u32::from(bits));
            // Only the layout that IEEE 754 has for all its numbers; and no number that it has.
            if float.normalization != 2 || is_ieee(datatype.size, float) {
                return None;
            }
            let (exponent, mantissa) = (field(float.exponent), field(float.mantissa));
            let sign = u32::from(float.sign);
            let within = |(at, bits): (u32, u32)| bits > 0 && at + bits <= 8 * datatype.size;
            if !within((sign, 1)) || !within(exponent) || !within(mantissa) {
                return None;
            }
            (order, Wide::float(sign, exponent, mantissa, float.bias)?)
        }
        _ => return None,
    };
    (*order != Order::Vax).then(|| Widen {
        from: datatype.size as usize,
        big: *order == Order::Big,
        kind,
    })
}

/// Collects what has to be done while types are converted.
#[derive(Debug, Default)]
struct Walk {
    /// Numbers whose most significant byte comes first: (offset, width).
    big: Vec<(u32, u32)>,
    fixes: Vec<Fix>,
}

impl Walk {
    fn convert(&mut self, datatype: &Type, at: u32) -> Result<DataType> {
        let size = datatype.size;
        Ok(match &datatype.class {
            Class::Integer {
                order,
                signed,
                bits,
            } => self.integer(size, at, *order, *signed, *bits),
            Class::Bitfield { order, bits } => self.integer(size, at, *order, false, *bits),
            Class::Float { order, float, .. } => self.float(size, at, *order, float),
            Class::String { padding, .. } => {
                if *padding != Padding::Zeros {
                    self.fixes.push(Fix::Text {
                        at: at as usize,
                        len: size as usize,
                        spaces: *padding == Padding::Spaces,
                    });
                }
                DataType::FixedBytes(size)
            }
            Class::Enumeration { base, members } if is_bool(base, members) => DataType::Bool,
            Class::Enumeration { base, .. } => self.convert(base, at)?,
            Class::Opaque { tag } => named(tag, size).unwrap_or(DataType::RawBytes(size)),
            Class::Compound(_) => self.compound(datatype, at)?,
            Class::Complex(base) => {
                let (one, two) = (self.convert(base, at)?, self.convert(base, at + base.size)?);
                match one {
                    DataType::Float(n @ (4 | 8)) if one == two => DataType::Complex(2 * n),
                    _ => DataType::RawBytes(size),
                }
            }
            Class::Array { dims, base } => {
                let count = dims.iter().product::<u32>();
                let mut element = None;
                for i in 0..count {
                    element = Some(self.convert(base, at + i * base.size)?);
                }
                let element = element.ok_or_else(|| Error::data("an array type is empty"))?;
                DataType::Array(Box::new(element), dims.clone())
            }
            // References mean something in their file only; times have no meaning that is written down.
            Class::Reference(_) | Class::Time { .. } => DataType::RawBytes(size),
            Class::Sequence(_) | Class::VarString { .. } => {
                return Err(Error::internal(
                    "a cell of variable length was given a size",
                ));
            }
        })
    }

    fn integer(&mut self, size: u32, at: u32, order: Order, signed: bool, bits: Bits) -> DataType {
        if !matches!(size, 1 | 2 | 4 | 8) {
            return DataType::RawBytes(size);
        }
        if order == Order::Big && size > 1 {
            self.big.push((at, size));
        }
        if bits.offset != 0 || u32::from(bits.precision) != 8 * size {
            self.fixes.push(Fix::Bits {
                at: at as usize,
                width: size as usize,
                shift: u32::from(bits.offset),
                bits: u32::from(bits.precision),
                signed,
            });
        }
        match signed {
            true => DataType::Int(size as u8),
            false => DataType::UInt(size as u8),
        }
    }

    fn float(&mut self, size: u32, at: u32, order: Order, float: &Float) -> DataType {
        if order == Order::Vax || !is_ieee(size, float) {
            return DataType::RawBytes(size);
        }
        if order == Order::Big {
            self.big.push((at, size));
        }
        DataType::Float(size as u8)
    }

    fn compound(&mut self, datatype: &Type, at: u32) -> Result<DataType> {
        let Class::Compound(members) = &datatype.class else {
            return Err(Error::internal("a type is no compound"));
        };
        let mut members: Vec<_> = members.iter().collect();
        members.sort_by_key(|member| member.offset);
        let mut fields: Vec<Field> = Vec::new();
        let hole = |fields: &mut Vec<Field>, bytes: u32| {
            if bytes > 0 {
                fields.push(Field {
                    name: String::new(),
                    dtype: DataType::RawBytes(bytes),
                });
            }
        };
        let mut end = 0;
        for member in &members {
            let bytes = member.offset.checked_sub(end);
            let bytes = bytes.ok_or_else(|| Error::data("members of a compound overlap"))?;
            hole(&mut fields, bytes);
            fields.push(Field {
                name: member.name.clone(),
                dtype: self.convert(&member.datatype, at + member.offset)?,
            });
            end = member.offset + member.datatype.size;
        }
        hole(&mut fields, datatype.size - end);
        if let [real, imaginary] = fields.as_slice()
            && (real.name.as_str(), imaginary.name.as_str()) == ("r", "i")
            && let DataType::Float(n @ (4 | 8)) = real.dtype
            && real.dtype == imaginary.dtype
        {
            return Ok(DataType::Complex(2 * n));
        }
        Ok(DataType::Struct(fields))
    }
}

/// Whether a number is put together as IEEE 754 has it.
pub(crate) fn is_ieee(size: u32, float: &Float) -> bool {
    let expected = |sign, exponent, mantissa, bias| Float {
        sign,
        exponent,
        mantissa,
        bias,
        normalization: 2,
    };
    *float
        == match size {
            2 => expected(15, (10, 5), (0, 10), 15),
            4 => expected(31, (23, 8), (0, 23), 127),
            8 => expected(63, (52, 11), (0, 52), 1023),
            _ => return false,
        }
}

/// Booleans are an enumeration of two names, as h5py writes them.
fn is_bool(base: &Type, members: &[(String, Vec<u8>)]) -> bool {
    let [first, second] = members else {
        return false;
    };
    let is =
        |member: &(String, Vec<u8>), name: &str, value: u8| member.0 == name && member.1 == [value];
    base.size == 1
        && ((is(first, "FALSE", 0) && is(second, "TRUE", 1))
            || (is(first, "TRUE", 1) && is(second, "FALSE", 0)))
}

/// The type that h5py names in the tag of an opaque type: times, which HDF5 does not have.
fn named(tag: &str, size: u32) -> Option<DataType> {
    let name = tag.strip_prefix("NUMPY:")?;
    let parsed = numpy::parse_dtype(name).ok()?;
    let same = parsed.dtype.cell_bytes() == Some(u64::from(size)) && parsed.big_endian.is_empty();
    same.then_some(parsed.dtype)
}
