//! One cell as text, as JSON and as a number.
//!
//! Sits under every output that people read. Invariant: numbers are shown with the fewest digits
//! that read back as the same cell.

use half::f16;
use hyperslab::DataType;
use serde_json::{Map, Value, json};

use crate::moment;

/// The cell for people and CSV files. Strings are not quoted.
pub(crate) fn text(dtype: &DataType, cell: &[u8]) -> String {
    match dtype {
        DataType::Bool => if cell.first() == Some(&0) {
            "False"
        } else {
            "True"
        }
        .to_owned(),
        DataType::Int(_) => signed(cell).to_string(),
        DataType::UInt(_) => unsigned(cell).to_string(),
        DataType::Float(_) => float_text(cell),
        DataType::Complex(_) => {
            let (re, im) = cell.split_at(cell.len() / 2);
            let im = float_text(im);
            let plus = if im.starts_with(['-', '+']) { "" } else { "+" };
            format!("{}{plus}{im}j", float_text(re))
        }
        DataType::FixedUtf32(_) => utf32(cell),
        DataType::String => String::from_utf8_lossy(cell).into_owned(),
        DataType::FixedBytes(_) => byte_text(trim_zeros(cell)),
        DataType::VarBytes => byte_text(cell),
        DataType::DateTime(unit) => moment::date(signed(cell) as i64, unit),
        DataType::TimeDelta(unit) => moment::span(signed(cell) as i64, unit),
        DataType::Struct(_) => {
            let fields: Vec<String> = fields(dtype, cell).map(|(_, d, c)| text(d, c)).collect();
            format!("({})", fields.join(", "))
        }
        _ => hex(cell),
    }
}

/// The cell as JSON: numbers where JSON has them, else what Zarr writes (`"NaN"`, `[re, im]`).
pub(crate) fn json(dtype: &DataType, cell: &[u8]) -> Value {
    match dtype {
        DataType::Bool => json!(cell.first() != Some(&0)),
        DataType::Int(_) => json!(signed(cell) as i64),
        DataType::UInt(_) => json!(unsigned(cell)),
        DataType::Float(_) => float_json(cell),
        DataType::Complex(_) => {
            let (re, im) = cell.split_at(cell.len() / 2);
            json!([float_json(re), float_json(im)])
        }
        DataType::Struct(_) => Value::Object(
            fields(dtype, cell)
                .map(|(n, d, c)| (n.to_owned(), json(d, c)))
                .collect::<Map<_, _>>(),
        ),
        _ => json!(text(dtype, cell)),
    }
}

/// The cell as a number, for colours; `None` for cells that are no real numbers.
pub(crate) fn number(dtype: &DataType, cell: &[u8]) -> Option<f64> {
    Some(match dtype {
        DataType::Bool => f64::from(cell.first().copied().unwrap_or(0)),
        DataType::Int(_) | DataType::TimeDelta(_) | DataType::DateTime(_) => signed(cell) as f64,
        DataType::UInt(_) => unsigned(cell) as f64,
        DataType::Float(_) => float(cell),
        _ => return None,
    })
}

/// True if [`number`] has an answer for this type.
pub(crate) fn is_number(dtype: &DataType) -> bool {
    number(dtype, &[0; 8]).is_some()
}

fn signed(cell: &[u8]) -> i128 {
    let value = unsigned(cell);
    let bits = 64 - 8 * cell.len().min(8) as u32;
    i128::from((value << bits).cast_signed() >> bits)
}

fn unsigned(cell: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let len = cell.len().min(8);
    wide[..len].copy_from_slice(&cell[..len]);
    u64::from_le_bytes(wide)
}

fn float(cell: &[u8]) -> f64 {
    match cell.len() {
        2 => f16::from_bits(unsigned(cell) as u16).to_f64(),
        4 => f64::from(f32::from_bits(unsigned(cell) as u32)),
        _ => f64::from_bits(unsigned(cell)),
    }
}

fn float_json(cell: &[u8]) -> Value {
    let value = float(cell);
    if value.is_nan() {
        return json!("NaN");
    }
    if value.is_infinite() {
        return json!(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    // The shortest digits of the narrow type, not those of the same value widened.
    let digits = float_text(cell);
    serde_json::from_str(&digits).unwrap_or_else(|_| json!(value))
}

/// The fewest digits that read back as the same number, with an exponent where that is shorter.
fn float_text(cell: &[u8]) -> String {
    let value = float(cell);
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = value.abs();
    let plain = size == 0.0 || (1e-4..1e16).contains(&size);
    let digits = match (cell.len(), plain) {
        (2, _) => half_digits(f16::from_f64(value), plain),
        (4, true) => format!("{:?}", value as f32),
        (4, false) => format!("{:e}", value as f32),
        (_, true) => format!("{value:?}"),
        (_, false) => format!("{value:e}"),
    };
    // Debug switches to exponents on its own at 1e16 and 1e-5; below that it writes "1.0".
    digits
}

/// Eleven bits of mantissa need at most five digits.
fn half_digits(value: f16, plain: bool) -> String {
    for digits in 0..5 {
        let text = format!("{:.digits$e}", value.to_f64());
        let parsed = text.parse::<f64>().unwrap_or(f64::NAN);
        if f16::from_f64(parsed) == value {
            return if plain {
                format!("{parsed:?}")
            } else {
                format!("{parsed:e}")
            };
        }
    }
    format!("{:?}", value.to_f64())
}

fn utf32(cell: &[u8]) -> String {
    let text: String = cell
        .chunks_exact(4)
        .map(|c| char::from_u32(unsigned(c) as u32).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.trim_end_matches('\0').to_owned()
}

fn trim_zeros(cell: &[u8]) -> &[u8] {
    let len = cell.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    &cell[..len]
}

/// Byte strings as Python shows them inside quotes, so that nothing is lost.
fn byte_text(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

fn fields<'a>(
    dtype: &'a DataType,
    cell: &'a [u8],
) -> impl Iterator<Item = (&'a str, &'a DataType, &'a [u8])> {
    let list = match dtype {
        DataType::Struct(fields) => fields.as_slice(),
        _ => &[],
    };
    let mut rest = cell;
    list.iter().map(move |field| {
        let size = (field.dtype.cell_bytes().unwrap_or(0) as usize).min(rest.len());
        let (head, tail) = rest.split_at(size);
        rest = tail;
        (field.name.as_str(), &field.dtype, head)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab::numpy::parse_dtype;

    fn dtype(text: &str) -> DataType {
        parse_dtype(text).unwrap().dtype
    }

    #[test]
    fn numbers_have_the_fewest_digits() {
        let f = DataType::Float;
        assert_eq!(text(&f(4), &0.1f32.to_le_bytes()), "0.1");
        assert_eq!(text(&f(8), &1e300f64.to_le_bytes()), "1e300");
        assert_eq!(text(&f(8), &(-2.5f64).to_le_bytes()), "-2.5");
        assert_eq!(text(&f(4), &0f32.to_le_bytes()), "0.0");
        assert_eq!(text(&f(4), &f32::NAN.to_le_bytes()), "nan");
        assert_eq!(json(&f(4), &0.1f32.to_le_bytes()), json!(0.1));
        assert_eq!(
            json(&f(8), &f64::NEG_INFINITY.to_le_bytes()),
            json!("-Infinity")
        );
        assert_eq!(text(&DataType::Int(1), &[0xff]), "-1");
        assert_eq!(
            text(&DataType::UInt(8), &u64::MAX.to_le_bytes()),
            u64::MAX.to_string()
        );
        assert_eq!(
            text(&DataType::Int(8), &i64::MIN.to_le_bytes()),
            i64::MIN.to_string()
        );
        let z: Vec<u8> = [1f32.to_le_bytes(), (-2f32).to_le_bytes()].concat();
        assert_eq!(text(&DataType::Complex(8), &z), "1.0-2.0j");
    }

    #[test]
    fn every_half_reads_back() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            if value.is_finite() {
                let shown = text(&DataType::Float(2), &bits.to_le_bytes());
                let parsed = f16::from_f64(shown.parse::<f64>().unwrap());
                assert_eq!(parsed, value, "{shown}");
                assert!(shown.len() <= 12, "{shown}");
            }
        }
    }

    #[test]
    fn strings_and_structures() {
        assert_eq!(text(&dtype("S4"), b"ab\x00\x00"), "ab");
        assert_eq!(text(&dtype("bytes"), b"a\\\xff\x00"), "a\\\\\\xff\\x00");
        let euro: Vec<u8> = ['€', '\0']
            .iter()
            .flat_map(|c| u32::from(*c).to_le_bytes())
            .collect();
        assert_eq!(text(&dtype("U2"), &euro), "€");
        assert_eq!(text(&dtype("V2"), &[1, 255]), "0x01ff");
        let pair = dtype(r#"[["a", "<i2"], ["b", "|S2"]]"#);
        assert_eq!(text(&pair, &[5, 0, b'x', 0]), "(5, x)");
        assert_eq!(json(&pair, &[5, 0, b'x', 0]), json!({"a": 5, "b": "x"}));
        assert!(is_number(&dtype("bool")) && !is_number(&pair) && !is_number(&dtype("U2")));
    }
}
