//! Fill values: the cells of absent chunks, as Zarr metadata spells them.
//!
//! Invariant: a fill value holds exactly the little-endian bytes of one cell (or the string, for
//! types of variable length), bit for bit, NaN payloads included.

use half::f16;
use hyperslab_index::{Error, Result};
use serde_json::{Value, json};

use crate::DataType;
use crate::base64;

/// The bytes of one fill cell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FillValue(Vec<u8>);

impl FillValue {
    /// All bits zero, or the empty string.
    pub fn zero(dtype: &DataType) -> Self {
        FillValue(vec![0; dtype.cell_bytes().unwrap_or(0) as usize])
    }

    /// The bytes of the cell.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Makes a fill value from the bytes of one cell.
    pub fn from_bytes(dtype: &DataType, bytes: &[u8]) -> Result<Self> {
        match dtype.cell_bytes() {
            Some(n) if n != bytes.len() as u64 => Err(Error::invalid(format!(
                "a fill value of {} bytes does not fit the data type {dtype}",
                bytes.len()
            ))),
            _ => Ok(FillValue(bytes.to_vec())),
        }
    }

    /// Parses the `fill_value` of a Zarr array; `null` is zero.
    pub fn from_json(dtype: &DataType, value: &Value) -> Result<Self> {
        if value.is_null() {
            return Ok(Self::zero(dtype));
        }
        parse(dtype, value).map(FillValue).ok_or_else(|| {
            Error::data(format!(
                "{value} is not a fill value of the data type {dtype}"
            ))
        })
    }

    /// The `fill_value` of a Zarr v3 array.
    pub fn to_json(&self, dtype: &DataType) -> Value {
        render(dtype, &self.0)
    }

    /// True if `cells` holds nothing but this value.
    pub fn fills(&self, cells: &[u8]) -> bool {
        let n = self.0.len();
        if n == 0 {
            return false;
        }
        // Comparing the buffer with itself, shifted by one cell, runs at memory speed.
        cells.len() < n || (cells[..n] == self.0[..] && cells[n..] == cells[..cells.len() - n])
    }

    /// Writes the value into every cell of `cells`.
    pub fn fill(&self, cells: &mut [u8]) {
        let n = self.0.len();
        if n == 0 || cells.is_empty() {
            return;
        }
        if self.0.iter().all(|b| *b == self.0[0]) {
            cells.fill(self.0[0]);
            return;
        }
        let first = n.min(cells.len());
        cells[..first].copy_from_slice(&self.0[..first]);
        let mut done = first;
        while done < cells.len() {
            let (head, tail) = cells.split_at_mut(done);
            let step = done.min(tail.len());
            tail[..step].copy_from_slice(&head[..step]);
            done += step;
        }
    }
}

fn parse(dtype: &DataType, value: &Value) -> Option<Vec<u8>> {
    match dtype {
        DataType::Bool => match value {
            Value::Bool(b) => Some(vec![u8::from(*b)]),
            Value::Number(n) => n.as_u64().filter(|n| *n < 2).map(|n| vec![n as u8]),
            _ => None,
        },
        DataType::Int(n) => {
            let v = integer(value)?;
            let bits = 8 * u32::from(*n) - 1;
            let fits = v >= -(1i128 << bits) && v < (1i128 << bits);
            fits.then(|| v.to_le_bytes()[..usize::from(*n)].to_vec())
        }
        DataType::UInt(n) => {
            let v = integer(value)?;
            (v >= 0 && v < 1i128 << (8 * u32::from(*n)))
                .then(|| v.to_le_bytes()[..usize::from(*n)].to_vec())
        }
        DataType::DateTime(_) | DataType::TimeDelta(_) => match value {
            Value::String(s) if s == "NaT" => Some(i64::MIN.to_le_bytes().to_vec()),
            _ => value.as_i64().map(|v| v.to_le_bytes().to_vec()),
        },
        DataType::Float(n) => float(*n, value),
        DataType::Complex(n) => match value.as_array().map(Vec::as_slice) {
            Some([re, im]) => Some([float(n / 2, re)?, float(n / 2, im)?].concat()),
            _ => {
                // Zarr v2 writers put a plain number where the imaginary part is zero.
                let re = float(n / 2, value)?;
                let zero = vec![0; re.len()];
                Some([re, zero].concat())
            }
        },
        DataType::FixedUtf32(n) => {
            let mut bytes: Vec<u8> = value
                .as_str()?
                .chars()
                .flat_map(|c| u32::from(c).to_le_bytes())
                .collect();
            (bytes.len() <= 4 * *n as usize).then(|| {
                bytes.resize(4 * *n as usize, 0);
                bytes
            })
        }
        DataType::String => value.as_str().map(|s| s.as_bytes().to_vec()),
        DataType::VarBytes => opaque(value),
        DataType::FixedBytes(n) => {
            let mut bytes = opaque(value)?;
            (bytes.len() <= *n as usize).then(|| {
                bytes.resize(*n as usize, 0);
                bytes
            })
        }
        // tensorstore spells the value of each field; zarr-python all bytes at once.
        DataType::Struct(fields) if value.is_object() => {
            let values: Option<Vec<Vec<u8>>> = fields
                .iter()
                .map(|field| parse(&field.dtype, value.get(&field.name)?))
                .collect();
            values.map(|values| values.concat())
        }
        DataType::RawBits(_)
        | DataType::RawBytes(_)
        | DataType::Struct(_)
        | DataType::Array(..) => {
            let size = dtype.cell_bytes()? as usize;
            if value.as_u64() == Some(0) {
                return Some(vec![0; size]);
            }
            opaque(value).filter(|b| b.len() == size)
        }
    }
}

/// Bytes as base64 (zarr-python) or as a list of numbers (the Zarr v3 core's raw bits).
fn opaque(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => base64::decode(text),
        Value::Array(list) => list
            .iter()
            .map(|v| v.as_u64().and_then(|b| u8::try_from(b).ok()))
            .collect(),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i128> {
    let n = value.as_number()?;
    if let Some(v) = n.as_i64() {
        return Some(v.into());
    }
    if let Some(v) = n.as_u64() {
        return Some(v.into());
    }
    // zarr v2 writers put 0.0 for integer types now and then.
    n.as_f64()
        .filter(|v| v.fract() == 0.0 && v.abs() < 1e15)
        .map(|v| v as i128)
}

fn float(width: u8, value: &Value) -> Option<Vec<u8>> {
    let number = match value {
        Value::Number(n) => n.as_f64()?,
        Value::String(s) => match s.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            hex => {
                let digits = hex
                    .strip_prefix("0x")
                    .filter(|d| d.len() == 2 * usize::from(width))?;
                let bits = u64::from_str_radix(digits, 16).ok()?;
                return Some(bits.to_le_bytes()[..usize::from(width)].to_vec());
            }
        },
        _ => return None,
    };
    Some(match width {
        2 => f16::from_f64(number).to_le_bytes().to_vec(),
        4 => (number as f32).to_le_bytes().to_vec(),
        _ => number.to_le_bytes().to_vec(),
    })
}

fn render(dtype: &DataType, b: &[u8]) -> Value {
    let signed = |b: &[u8]| {
        let sign = if b.last().is_some_and(|x| x & 0x80 != 0) {
            0xff
        } else {
            0
        };
        let mut wide = [sign; 8];
        wide[..b.len()].copy_from_slice(b);
        i64::from_le_bytes(wide)
    };
    match dtype {
        DataType::Bool => json!(b[0] != 0),
        DataType::Int(_) | DataType::DateTime(_) | DataType::TimeDelta(_) => json!(signed(b)),
        DataType::UInt(_) => json!(unsigned(b)),
        DataType::Float(_) => render_float(b),
        DataType::Complex(n) => {
            let half = usize::from(*n) / 2;
            json!([render_float(&b[..half]), render_float(&b[half..])])
        }
        DataType::FixedUtf32(_) => {
            let text: String = b
                .chunks_exact(4)
                .map(|c| char::from_u32(unsigned(c) as u32).unwrap_or('\u{fffd}'))
                .collect();
            json!(text.trim_end_matches('\0'))
        }
        DataType::String => json!(String::from_utf8_lossy(b)),
        DataType::FixedBytes(_) => {
            let end = b.iter().rposition(|x| *x != 0).map_or(0, |i| i + 1);
            json!(base64::encode(&b[..end]))
        }
        DataType::VarBytes | DataType::RawBytes(_) | DataType::Struct(_) | DataType::Array(..) => {
            json!(base64::encode(b))
        }
        DataType::RawBits(_) => json!(b),
    }
}

fn unsigned(b: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..b.len()].copy_from_slice(b);
    u64::from_le_bytes(wide)
}

fn render_float(b: &[u8]) -> Value {
    let bits = unsigned(b);
    let (number, canonical_nan) = match b.len() {
        2 => (f16::from_bits(bits as u16).to_f64(), 0x7e00),
        4 => (f64::from(f32::from_bits(bits as u32)), 0x7fc0_0000),
        _ => (f64::from_bits(bits), 0x7ff8_0000_0000_0000),
    };
    if number.is_nan() && bits != canonical_nan {
        json!(format!("0x{bits:0width$x}", width = 2 * b.len()))
    } else if number.is_nan() {
        json!("NaN")
    } else if number.is_infinite() {
        json!(if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        })
    } else {
        json!(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numpy::parse_dtype;

    #[test]
    fn json_forms_come_back() {
        for (dtype, value) in [
            ("bool", json!(true)),
            ("int8", json!(-128)),
            ("uint64", json!(u64::MAX)),
            ("float16", json!(0.5)),
            ("float32", json!("NaN")),
            ("float32", json!("0x7fc00001")),
            ("float64", json!("-Infinity")),
            ("float64", json!(-0.1)),
            ("complex64", json!(["NaN", 1.0])),
            ("U3", json!("aé")),
            ("S5", json!("YWI=")),
            ("V4", json!("AAECAw==")),
            ("r16", json!([1, 255])),
            ("string", json!("fill me")),
            ("bytes", json!("AAE=")),
            ("datetime64[ns]", json!(i64::MIN)),
        ] {
            let dtype = parse_dtype(dtype).unwrap().dtype;
            let fill = FillValue::from_json(&dtype, &value).unwrap();
            assert_eq!(fill.to_json(&dtype), value, "{dtype}");
        }
    }

    #[test]
    fn fields_may_be_spelled_one_by_one() {
        let dtype = parse_dtype("{\"name\": \"struct\", \"configuration\": {\"fields\": [{\"name\": \"x\", \"data_type\": \"int16\"}, {\"name\": \"y\", \"data_type\": \"float32\"}]}}")
            .unwrap()
            .dtype;
        let fill = FillValue::from_json(&dtype, &json!({"x": 300, "y": -0.5})).unwrap();
        assert_eq!(fill.bytes(), [44, 1, 0, 0, 0, 0xbf]);
        assert!(FillValue::from_json(&dtype, &json!({"x": 300})).is_err());
    }

    #[test]
    fn wrong_forms_are_refused() {
        for (dtype, value) in [
            ("int8", json!(128)),
            ("uint8", json!(-1)),
            ("uint64", json!("1")),
            ("bool", json!(2)),
            ("float32", json!("0x7fc0")),
            ("float32", json!("nan")),
            ("U1", json!("ab")),
            ("V4", json!("AAE=")),
            ("r16", json!([1, 256])),
            ("complex64", json!([1, 2, 3])),
            ("int32", json!(1.5)),
        ] {
            let dtype = parse_dtype(dtype).unwrap().dtype;
            assert!(
                FillValue::from_json(&dtype, &value).is_err(),
                "{dtype} {value}"
            );
        }
    }

    #[test]
    fn fill_and_fills_agree() {
        let dtype = parse_dtype("i4").unwrap().dtype;
        let fill = FillValue::from_json(&dtype, &json!(7)).unwrap();
        for cells in [0usize, 1, 2, 3, 17] {
            let mut buffer = vec![9u8; cells * 4];
            fill.fill(&mut buffer);
            assert!(buffer.chunks(4).all(|c| c == [7, 0, 0, 0]));
            assert!(fill.fills(&buffer));
            if let Some(last) = buffer.last_mut() {
                *last = 1;
                assert!(!fill.fills(&buffer));
            }
        }
    }
}
