//! NumPy's spelling of data types: Zarr v2 metadata, `.npy` headers, and what people type.
//!
//! Big-endian spellings are understood: the answer says which numbers of a cell are stored
//! big-endian, since our cells in memory are always little-endian.

use hyperslab_index::{Error, Result};
use serde_json::{Value, json};

use crate::{DataType, Field, TimeUnit};

/// A data type together with the byte order it is stored in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The type of a cell.
    pub dtype: DataType,
    /// (offset, width) of the numbers that are stored big-endian.
    pub big_endian: Vec<(u32, u32)>,
}

/// Parses what a person types: `f4`, `float32`, `<i8`, `S5`, `U3`, `V4`, `r32`,
/// `datetime64[ns]`, `string`, `bytes`, or the JSON of a Zarr data type.
pub fn parse_dtype(text: &str) -> Result<Stored> {
    let text = text.trim();
    let little = |dtype| Stored {
        dtype,
        big_endian: Vec::new(),
    };
    if text.starts_with('{') || text.starts_with('[') {
        let value: Value = serde_json::from_str(text).map_err(|e| {
            Error::invalid(format!("the data type {text:?} is not valid JSON: {e}"))
        })?;
        return if value.is_array() {
            from_v2(&value)
        } else {
            DataType::from_json(&value).map(little)
        };
    }
    if let Ok(dtype) = DataType::from_json(&json!(text)) {
        return Ok(little(dtype));
    }
    from_text(text).ok_or_else(|| {
        Error::invalid(format!("{text:?} is not a data type"))
            .with_hint("examples: float32, <f4, i8, uint16, bool, complex64, S5, U3, V4, datetime64[ns], string, bytes")
    })
}

/// Parses the `dtype` of Zarr v2: a NumPy type string, or a list of fields.
pub fn from_v2(value: &Value) -> Result<Stored> {
    match value {
        Value::String(text) => from_text(text)
            .ok_or_else(|| Error::data(format!("the data type {text:?} is not known"))),
        Value::Array(list) => {
            let mut fields = Vec::with_capacity(list.len());
            let mut big_endian = Vec::new();
            let mut offset = 0u32;
            for entry in list {
                let (name, inner) = match entry.as_array().map(Vec::as_slice) {
                    Some([Value::String(name), inner]) => (name, inner),
                    Some([_, _, _]) => {
                        return Err(Error::data(format!(
                            "the field {entry} has a shape of its own, which is not supported"
                        )));
                    }
                    _ => {
                        return Err(Error::data(format!(
                            "{entry} is not a field of a data type"
                        )));
                    }
                };
                let inner = from_v2(inner)?;
                let size = inner.dtype.cell_bytes().ok_or_else(|| {
                    Error::data(format!("the field {name:?} has a type of variable length"))
                })?;
                big_endian.extend(inner.big_endian.iter().map(|(o, w)| (o + offset, *w)));
                offset += size as u32;
                fields.push(Field {
                    name: name.clone(),
                    dtype: inner.dtype,
                });
            }
            if fields.is_empty() {
                return Err(Error::data("the structured data type has no fields"));
            }
            Ok(Stored {
                dtype: DataType::Struct(fields),
                big_endian,
            })
        }
        other => Err(Error::data(format!("{other} is not a NumPy data type"))),
    }
}

fn from_text(text: &str) -> Option<Stored> {
    let (big, rest) = match text.as_bytes().first()? {
        b'<' | b'|' | b'=' => (false, &text[1..]),
        b'>' => (true, &text[1..]),
        _ => (false, text),
    };
    let mut chars = rest.chars();
    let kind = chars.next()?;
    let tail = chars.as_str();
    let size = || tail.parse::<u32>().ok();
    let number = |allowed: &[u32]| size().filter(|n| allowed.contains(n)).map(|n| n as u8);
    let time = |tail: &str| -> Option<TimeUnit> {
        let inner = match tail.strip_prefix('8').unwrap_or(tail) {
            "" => return TimeUnit::new("generic", 1).ok(),
            t => t.strip_prefix('[')?.strip_suffix(']')?,
        };
        let digits = inner.find(|c: char| !c.is_ascii_digit())?;
        let scale = if digits == 0 {
            1
        } else {
            inner[..digits].parse().ok()?
        };
        TimeUnit::new(&inner[digits..], scale).ok()
    };
    let dtype = match kind {
        'b' if matches!(tail, "1" | "ool") => DataType::Bool,
        '?' if tail.is_empty() => DataType::Bool,
        'i' => DataType::Int(number(&[1, 2, 4, 8])?),
        'u' => DataType::UInt(number(&[1, 2, 4, 8])?),
        'f' => DataType::Float(number(&[2, 4, 8])?),
        'c' => DataType::Complex(number(&[8, 16])?),
        'S' | 'a' => DataType::FixedBytes(size().filter(|n| *n > 0)?),
        'U' => DataType::FixedUtf32(size().filter(|n| *n > 0 && *n < 1 << 26)?),
        'V' => DataType::RawBytes(size().filter(|n| *n > 0)?),
        'M' => DataType::DateTime(time(tail)?),
        'm' => DataType::TimeDelta(time(tail)?),
        'd' if tail.starts_with("atetime64") => DataType::DateTime(time(&tail[9..])?),
        't' if tail.starts_with("imedelta64") => DataType::TimeDelta(time(&tail[10..])?),
        's' if tail == "tr" => DataType::String,
        _ => return None,
    };
    let big_endian = if big { dtype.numbers() } else { Vec::new() };
    Some(Stored { dtype, big_endian })
}

/// The NumPy `descr` of a type, little-endian, as `.npy` headers have it: a quoted string, or a
/// list of fields. `None` for the types of variable length, which NumPy keeps as objects.
pub fn descr(dtype: &DataType) -> Option<String> {
    Some(match dtype {
        DataType::Struct(fields) => {
            let fields: Option<Vec<String>> = fields
                .iter()
                .map(|field| {
                    let name = quote(&field.name);
                    Some(match &field.dtype {
                        DataType::Array(base, dims) => {
                            let dims: String = dims.iter().map(|dim| format!("{dim},")).collect();
                            format!("({name}, {}, ({dims}))", descr(base)?)
                        }
                        other => format!("({name}, {})", descr(other)?),
                    })
                })
                .collect();
            format!("[{}]", fields?.join(", "))
        }
        simple => format!("'{}'", type_string(simple)?),
    })
}

fn type_string(dtype: &DataType) -> Option<String> {
    let order = |n: u8| if n == 1 { '|' } else { '<' };
    Some(match dtype {
        DataType::Bool => "|b1".into(),
        DataType::Int(n) => format!("{}i{n}", order(*n)),
        DataType::UInt(n) => format!("{}u{n}", order(*n)),
        DataType::Float(n) => format!("<f{n}"),
        DataType::Complex(n) => format!("<c{n}"),
        DataType::FixedBytes(n) => format!("|S{n}"),
        DataType::FixedUtf32(n) => format!("<U{n}"),
        DataType::RawBits(n) | DataType::RawBytes(n) => format!("|V{n}"),
        DataType::DateTime(t) => format!("<M8{t}"),
        DataType::TimeDelta(t) => format!("<m8{t}"),
        DataType::Struct(_) | DataType::Array(..) | DataType::String | DataType::VarBytes => {
            return None;
        }
    })
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_come_back() {
        for text in [
            "bool",
            "int8",
            "uint64",
            "float16",
            "complex128",
            "S5",
            "U3",
            "V4",
            "r24",
            "datetime64[ns]",
            "timedelta64[10s]",
            "string",
            "bytes",
        ] {
            let stored = parse_dtype(text).unwrap();
            assert_eq!(stored.dtype.to_string(), text);
            assert_eq!(
                DataType::from_json(&stored.dtype.to_json()).unwrap(),
                stored.dtype
            );
        }
        assert_eq!(parse_dtype(">c8").unwrap().big_endian, [(0, 4), (4, 4)]);
        for bad in [
            "",
            "f3",
            "i16",
            "U0",
            "x4",
            "r7",
            "datetime64[fortnight]",
            "{",
            "S-1",
        ] {
            assert!(parse_dtype(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fields_keep_their_byte_order() {
        let stored = from_v2(&json!([
            ["a", ">i4"],
            ["b", "|S3"],
            ["n", [["x", ">f2"], ["y", "<u2"]]]
        ]))
        .unwrap();
        assert_eq!(stored.dtype.cell_bytes(), Some(11));
        assert_eq!(stored.big_endian, [(0, 4), (7, 2)]);
        assert_eq!(
            descr(&stored.dtype).unwrap(),
            "[('a', '<i4'), ('b', '|S3'), ('n', [('x', '<f2'), ('y', '<u2')])]"
        );
    }
}
