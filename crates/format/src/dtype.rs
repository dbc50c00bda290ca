//! Data types of cells, and how Zarr spells them.
//!
//! Sits below metadata and codecs. Invariant: in memory a fixed-size cell is
//! [`DataType::cell_bytes`] little-endian bytes without padding; strings and byte strings of
//! variable length have no fixed size and travel as one byte string per cell.

use std::fmt;

use hyperslab_index::{Error, Result};
use serde_json::{Value, json};

/// The type of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DataType {
    /// One byte, 0 or 1.
    Bool,
    /// Signed integer of so many bytes (1, 2, 4, 8).
    Int(u8),
    /// Unsigned integer of so many bytes (1, 2, 4, 8).
    UInt(u8),
    /// IEEE 754 number of so many bytes (2, 4, 8).
    Float(u8),
    /// Two floats; the number counts the bytes of both (8, 16).
    Complex(u8),
    /// Byte string of a fixed length, padded with zero bytes (NumPy `S`).
    FixedBytes(u32),
    /// Text of a fixed number of UTF-32 code points, padded with zeros (NumPy `U`).
    FixedUtf32(u32),
    /// Opaque bytes, spelled `r8`, `r16`… in bits as the Zarr v3 core has it.
    RawBits(u32),
    /// Opaque bytes, spelled `raw_bytes` as zarr-python has it (NumPy `V`).
    RawBytes(u32),
    /// 64-bit count of time units since 1970.
    DateTime(TimeUnit),
    /// 64-bit count of time units.
    TimeDelta(TimeUnit),
    /// Fields one after another. A field without a name is a hole, as NumPy has it.
    Struct(Vec<Field>),
    /// So many cells of one type along each dimension, as a cell of its own.
    Array(Box<DataType>, Vec<u32>),
    /// UTF-8 text of any length.
    String,
    /// Byte string of any length.
    VarBytes,
}

/// NumPy's time unit: `scale` times `unit`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TimeUnit {
    /// `ns`, `us`, `ms`, `s`, `m`, `h`, `D`, `W`, `M`, `Y`, `ps`, `fs`, `as` or `generic`.
    pub unit: String,
    /// How many units one count is.
    pub scale: u32,
}

/// A field of a structured type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type; never one of variable length.
    pub dtype: DataType,
}

const TIME_UNITS: [&str; 15] = [
    "ns", "us", "μs", "ms", "s", "m", "h", "D", "W", "M", "Y", "ps", "fs", "as", "generic",
];

/// A cell larger than this is taken for corrupt metadata.
pub(crate) const MAX_CELL_BYTES: u64 = 1 << 28;

impl DataType {
    /// The same cells in a type that other readers of Zarr know: holes of structures get names, and
    /// fields that are arrays are bytes.
    #[must_use]
    pub fn storable(&self) -> DataType {
        let DataType::Struct(fields) = self else {
            return self.clone();
        };
        let mut at = 0;
        let field = |field: &Field| {
            let bytes = field.dtype.cell_bytes().unwrap_or(0);
            let name = match field.name.as_str() {
                "" => format!("_hole_{at}"),
                name => name.to_owned(),
            };
            at += bytes;
            let dtype = match &field.dtype {
                DataType::Array(..) => DataType::RawBytes(bytes as u32),
                other => other.storable(),
            };
            Field { name, dtype }
        };
        DataType::Struct(fields.iter().map(field).collect())
    }

    /// Bytes of one cell; `None` for the types of variable length.
    pub fn cell_bytes(&self) -> Option<u64> {
        Some(match self {
            DataType::Bool => 1,
            DataType::Int(n) | DataType::UInt(n) | DataType::Float(n) | DataType::Complex(n) => {
                u64::from(*n)
            }
            DataType::FixedBytes(n) | DataType::RawBits(n) | DataType::RawBytes(n) => u64::from(*n),
            DataType::FixedUtf32(n) => 4 * u64::from(*n),
            DataType::DateTime(_) | DataType::TimeDelta(_) => 8,
            DataType::Struct(fields) => fields
                .iter()
                .map(|f| f.dtype.cell_bytes().unwrap_or(0))
                .sum(),
            DataType::Array(base, dims) => {
                let cells = dims.iter().map(|dim| u64::from(*dim)).product::<u64>();
                base.cell_bytes().unwrap_or(0) * cells
            }
            DataType::String | DataType::VarBytes => return None,
        })
    }

    /// True for strings and byte strings of variable length.
    pub fn is_variable(&self) -> bool {
        matches!(self, DataType::String | DataType::VarBytes)
    }

    /// The numbers in a cell whose bytes depend on endianness: (offset, width) of each.
    pub fn numbers(&self) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        self.collect_numbers(0, &mut out);
        out
    }

    fn collect_numbers(&self, base: u32, out: &mut Vec<(u32, u32)>) {
        match self {
            DataType::Int(n) | DataType::UInt(n) | DataType::Float(n) if *n > 1 => {
                out.push((base, u32::from(*n)));
            }
            DataType::Complex(n) => {
                let half = u32::from(*n) / 2;
                out.extend([(base, half), (base + half, half)]);
            }
            DataType::FixedUtf32(n) => out.extend((0..*n).map(|i| (base + 4 * i, 4))),
            DataType::DateTime(_) | DataType::TimeDelta(_) => out.push((base, 8)),
            DataType::Struct(fields) => {
                let mut offset = base;
                for field in fields {
                    field.dtype.collect_numbers(offset, out);
                    offset += field.dtype.cell_bytes().unwrap_or(0) as u32;
                }
            }
            DataType::Array(inner, dims) => {
                let step = inner.cell_bytes().unwrap_or(0) as u32;
                for i in 0..dims.iter().product::<u32>() {
                    inner.collect_numbers(base + i * step, out);
                }
            }
            _ => {}
        }
    }

    /// Parses the `data_type` of a Zarr v3 array.
    pub fn from_json(value: &Value) -> Result<Self> {
        let (name, config) = match value {
            Value::String(name) => (name.as_str(), &Value::Null),
            Value::Object(map) => {
                let name = map
                    .get("name")
                    .and_then(Value::as_str)
                    .ok_or_else(|| Error::data(format!("the data type {value} has no name")))?;
                (name, map.get("configuration").unwrap_or(&Value::Null))
            }
            _ => {
                return Err(Error::data(format!(
                    "the data type {value} is not a name or object"
                )));
            }
        };
        let parsed = Self::from_name(name, config)?;
        if parsed
            .cell_bytes()
            .is_some_and(|n| n == 0 || n > MAX_CELL_BYTES)
        {
            return Err(Error::data(format!(
                "the data type {parsed} has cells of {} bytes, which is outside 1..={MAX_CELL_BYTES}",
                parsed.cell_bytes().unwrap_or(0)
            )));
        }
        Ok(parsed)
    }

    fn from_name(name: &str, config: &Value) -> Result<Self> {
        let length = |divisor: u64| -> Result<u32> {
            config
                .get("length_bytes")
                .and_then(Value::as_u64)
                .filter(|n| n % divisor == 0 && *n <= MAX_CELL_BYTES)
                .map(|n| (n / divisor) as u32)
                .ok_or_else(|| {
                    Error::data(format!("the data type {name} has no valid length_bytes"))
                })
        };
        let time = || -> Result<TimeUnit> {
            let unit = config
                .get("unit")
                .and_then(Value::as_str)
                .unwrap_or("generic");
            let scale = config
                .get("scale_factor")
                .and_then(Value::as_u64)
                .unwrap_or(1);
            TimeUnit::new(unit, scale)
        };
        Ok(match name {
            "bool" => DataType::Bool,
            "int8" => DataType::Int(1),
            "int16" => DataType::Int(2),
            "int32" => DataType::Int(4),
            "int64" => DataType::Int(8),
            "uint8" => DataType::UInt(1),
            "uint16" => DataType::UInt(2),
            "uint32" => DataType::UInt(4),
            "uint64" => DataType::UInt(8),
            "float16" => DataType::Float(2),
            "float32" => DataType::Float(4),
            "float64" => DataType::Float(8),
            "complex64" | "complex_float32" => DataType::Complex(8),
            "complex128" | "complex_float64" => DataType::Complex(16),
            "string" => DataType::String,
            "bytes" | "variable_length_bytes" => DataType::VarBytes,
            "null_terminated_bytes" => DataType::FixedBytes(length(1)?),
            "raw_bytes" => DataType::RawBytes(length(1)?),
            "fixed_length_utf32" => DataType::FixedUtf32(length(4)?),
            "numpy.datetime64" => DataType::DateTime(time()?),
            "numpy.timedelta64" => DataType::TimeDelta(time()?),
            "structured" | "struct" => DataType::Struct(struct_fields(config)?),
            "hyperslab.array" => array_of(config)?,
            _ => match name
                .strip_prefix('r')
                .and_then(|bits| bits.parse::<u64>().ok())
            {
                Some(bits) if bits > 0 && bits % 8 == 0 && bits / 8 <= MAX_CELL_BYTES => {
                    DataType::RawBits((bits / 8) as u32)
                }
                _ => {
                    return Err(Error::data(format!("the data type {name:?} is not known"))
                        .with_hint("this version reads the types of the Zarr v3 core and of zarr-python 3.1"));
                }
            },
        })
    }

    /// The `data_type` of a Zarr v3 array.
    pub fn to_json(&self) -> Value {
        let sized =
            |name: &str, n: u64| json!({"name": name, "configuration": {"length_bytes": n}});
        let time = |name: &str, t: &TimeUnit| json!({"name": name, "configuration": {"unit": t.unit, "scale_factor": t.scale}});
        match self {
            DataType::Bool => json!("bool"),
            DataType::Int(n) => json!(format!("int{}", n * 8)),
            DataType::UInt(n) => json!(format!("uint{}", n * 8)),
            DataType::Float(n) => json!(format!("float{}", n * 8)),
            DataType::Complex(n) => json!(format!("complex{}", n * 8)),
            DataType::FixedBytes(n) => sized("null_terminated_bytes", u64::from(*n)),
            DataType::FixedUtf32(n) => sized("fixed_length_utf32", 4 * u64::from(*n)),
            DataType::RawBits(n) => json!(format!("r{}", u64::from(*n) * 8)),
            DataType::RawBytes(n) => sized("raw_bytes", u64::from(*n)),
            DataType::DateTime(t) => time("numpy.datetime64", t),
            DataType::TimeDelta(t) => time("numpy.timedelta64", t),
            DataType::Struct(fields) => {
                let fields: Vec<Value> = fields
                    .iter()
                    .map(|f| json!([f.name, f.dtype.to_json()]))
                    .collect();
                json!({"name": "structured", "configuration": {"fields": fields}})
            }
            DataType::Array(base, dims) => {
                let config = json!({"data_type": base.to_json(), "shape": dims});
                json!({"name": "hyperslab.array", "configuration": config})
            }
            DataType::String => json!("string"),
            DataType::VarBytes => json!("variable_length_bytes"),
        }
    }
}

impl TimeUnit {
    /// Checks and makes a time unit.
    pub fn new(unit: &str, scale: u64) -> Result<Self> {
        match u32::try_from(scale) {
            Ok(scale) if scale > 0 && TIME_UNITS.contains(&unit) => Ok(TimeUnit {
                unit: unit.to_owned(),
                scale,
            }),
            _ => Err(Error::data(format!(
                "{scale} × {unit:?} is not a time unit of NumPy"
            ))),
        }
    }
}

fn array_of(config: &Value) -> Result<DataType> {
    let bad = || Error::data("the array data type has no valid base and shape");
    let base = DataType::from_json(config.get("data_type").ok_or_else(bad)?)?;
    let dims: Option<Vec<u32>> = config
        .get("shape")
        .and_then(Value::as_array)
        .and_then(|list| {
            list.iter()
                .map(|v| u32::try_from(v.as_u64()?).ok())
                .collect()
        });
    let dims = dims.filter(|dims| !dims.is_empty()).ok_or_else(bad)?;
    let cells = dims
        .iter()
        .try_fold(1u64, |cells, dim| cells.checked_mul(u64::from(*dim)));
    match cells {
        Some(1..=MAX_CELL_BYTES) if !base.is_variable() => {
            Ok(DataType::Array(Box::new(base), dims))
        }
        _ => Err(bad()),
    }
}

fn struct_fields(config: &Value) -> Result<Vec<Field>> {
    let bad = || Error::data("the structured data type has a malformed list of fields");
    let list = config
        .get("fields")
        .and_then(Value::as_array)
        .ok_or_else(bad)?;
    let mut fields = Vec::with_capacity(list.len());
    for entry in list {
        // zarr-python 3.1 writes pairs; the later extension text writes objects.
        let (name, dtype) = match entry {
            Value::Array(pair) if pair.len() == 2 => (&pair[0], &pair[1]),
            Value::Object(map) => (
                map.get("name").ok_or_else(bad)?,
                map.get("data_type").ok_or_else(bad)?,
            ),
            _ => return Err(bad()),
        };
        let name = name.as_str().ok_or_else(bad)?.to_owned();
        let dtype = DataType::from_json(dtype)?;
        if dtype.is_variable() {
            return Err(Error::data(format!(
                "the field {name:?} has a type of variable length"
            )));
        }
        fields.push(Field { name, dtype });
    }
    if fields.is_empty() {
        Err(bad())
    } else {
        Ok(fields)
    }
}

impl fmt::Display for DataType {
    /// A short form for people; [`crate::numpy::parse_dtype`] reads it back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::FixedBytes(n) => write!(f, "S{n}"),
            DataType::FixedUtf32(n) => write!(f, "U{n}"),
            DataType::RawBytes(n) => write!(f, "V{n}"),
            DataType::DateTime(t) => write!(f, "datetime64{t}"),
            DataType::TimeDelta(t) => write!(f, "timedelta64{t}"),
            DataType::VarBytes => f.write_str("bytes"),
            DataType::Struct(fields) => {
                f.write_str("{")?;
                for (i, field) in fields.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(f, "{comma}{}: {}", field.name, field.dtype)?;
                }
                f.write_str("}")
            }
            DataType::Array(base, dims) => {
                let dims: Vec<String> = dims.iter().map(u32::to_string).collect();
                write!(f, "({}){base}", dims.join(","))
            }
            other => f.write_str(other.to_json().as_str().unwrap_or("?")),
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scale, self.unit.as_str()) {
            (1, "generic") => Ok(()),
            (1, unit) => write!(f, "[{unit}]"),
            (scale, unit) => write!(f, "[{scale}{unit}]"),
        }
    }
}
