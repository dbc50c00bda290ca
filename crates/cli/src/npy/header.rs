//! The header of a `.npy` file.
//!
//! Format (NumPy enhancement proposal 1): `\x93NUMPY`, two bytes of version, the length of the
//! header (two bytes in version 1, four after), and a Python dictionary, Latin-1 before version 3
//! and UTF-8 from there on.

use hyperslab::numpy::{self, Stored};
use hyperslab::{DataType, Error, Result, Shape};
use serde_json::Value;

use super::literal;

const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy itself refuses longer headers by default.
const MAX_HEADER: usize = 1 << 20;
/// NumPy aligns the data to this many bytes.
const ALIGNMENT: usize = 64;

/// What a header says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub(crate) stored: Stored,
    pub(crate) fortran: bool,
    pub(crate) shape: Shape,
    /// Where the cells begin in the file.
    pub(crate) data_start: u64,
}

/// The bytes of a header, as `numpy.save` writes them.
pub(crate) fn render(dtype: &DataType, shape: &[u64]) -> Result<Vec<u8>> {
    let descr = numpy::descr(dtype).ok_or_else(|| {
        Error::invalid(format!("a .npy file cannot hold the data type {dtype}"))
            .with_hint("write .csv or .json instead")
    })?;
    let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
    let tuple = match sides.as_slice() {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    };
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {tuple}, }}");
    let version: u8 = match (text.is_ascii(), text.len() < 60_000) {
        (true, true) => 1,
        (true, false) => 2,
        (false, _) => 3,
    };
    let prefix = if version == 1 { 10 } else { 12 };
    // NumPy leaves room to grow the first side in place: 21 digits, less those that are there.
    let growth = sides
        .first()
        .map_or(0, |side| 21usize.saturating_sub(side.len()));
    let bare = prefix + text.len() + growth + 1;
    let padding = growth + (ALIGNMENT - bare % ALIGNMENT);
    let length = text.len() + padding + 1;
    let mut out = Vec::with_capacity(prefix + length);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[version, 0]);
    match version {
        1 => out.extend_from_slice(&(length as u16).to_le_bytes()),
        _ => out.extend_from_slice(&(length as u32).to_le_bytes()),
    }
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len() + padding, b' ');
    out.push(b'\n');
    Ok(out)
}

/// Reads the header at the start of a file; `name` is for errors.
pub(crate) fn parse(reader: &mut impl std::io::Read, name: &str) -> Result<Header> {
    let bad = |what: &str| {
        Error::data(format!("{name} is not a usable .npy file: {what}"))
            .with_hint("write it with numpy.save, or give raw bytes with --dtype and --shape")
    };
    let mut start = [0; 8];
    reader
        .read_exact(&mut start)
        .map_err(|_| bad("it is too short for a header"))?;
    if &start[..6] != MAGIC {
        return Err(bad("it does not begin with NumPy's mark"));
    }
    let version = start[6];
    if !(1..=3).contains(&version) {
        return Err(bad(&format!("its version {version} is not 1, 2 or 3")));
    }
    let mut width = [0; 4];
    let prefix = if version == 1 { 2 } else { 4 };
    reader
        .read_exact(&mut width[..prefix])
        .map_err(|_| bad("its header is cut off"))?;
    let length = u32::from_le_bytes(width) as usize;
    if length > MAX_HEADER {
        return Err(bad(&format!("its header claims {length} bytes")));
    }
    let mut text = vec![0; length];
    reader
        .read_exact(&mut text)
        .map_err(|_| bad("its header is cut off"))?;
    let text = match version {
        3 => String::from_utf8(text).map_err(|_| bad("its header is not UTF-8"))?,
        _ => text.iter().map(|byte| char::from(*byte)).collect(),
    };
    let fields = literal::parse(&text).ok_or_else(|| bad("its header is malformed"))?;
    let descr = fields
        .get("descr")
        .ok_or_else(|| bad("its header has no descr"))?;
    if is_object(descr) {
        return Err(Error::invalid(format!(
            "{name} holds Python objects, which are not array cells"
        ))
        .with_hint("save it with a fixed type, such as astype('U') for strings"));
    }
    let stored =
        numpy::from_v2(descr).map_err(|e| Error::invalid(format!("{name}: {}", e.message())))?;
    let fortran = fields.get("fortran_order").and_then(Value::as_bool);
    let sides: Option<Vec<u64>> = fields
        .get("shape")
        .and_then(Value::as_array)
        .and_then(|list| list.iter().map(Value::as_u64).collect());
    Ok(Header {
        stored,
        fortran: fortran.ok_or_else(|| bad("its header has no fortran_order"))?,
        shape: Shape::new(sides.ok_or_else(|| bad("its header has no valid shape"))?)?,
        data_start: (8 + prefix + length) as u64,
    })
}

/// True if a type or one of its fields is a Python object.
fn is_object(descr: &Value) -> bool {
    match descr {
        Value::String(text) => text
            .trim_start_matches(['|', '<', '>', '='])
            .starts_with('O'),
        Value::Array(fields) => fields.iter().any(|f| f.get(1).is_some_and(is_object)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dtype(text: &str) -> DataType {
        numpy::parse_dtype(text).unwrap().dtype
    }

    #[test]
    fn headers_come_back_aligned() {
        for shape in [
            vec![],
            vec![5],
            vec![0, 3],
            vec![1 << 40, 7, 9],
            vec![1; 32],
        ] {
            for name in [
                "f4",
                "U3",
                "bool",
                r#"[["é", "<i2"], ["b", "|S3"]]"#,
                "datetime64[ns]",
            ] {
                let bytes = render(&dtype(name), &shape).unwrap();
                assert_eq!(bytes.len() % ALIGNMENT, 0);
                let header = parse(&mut bytes.as_slice(), "x").unwrap();
                assert_eq!(header.stored.dtype, dtype(name));
                assert!(header.stored.big_endian.is_empty() && !header.fortran);
                assert_eq!(header.shape[..], shape);
                assert_eq!(header.data_start, bytes.len() as u64);
            }
        }
        assert!(render(&DataType::String, &[3]).is_err());
    }

    #[test]
    fn the_header_is_the_one_of_numpy() {
        // numpy.save of numpy.zeros((2, 3), '<f4'), NumPy 2.
        let expected =
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
        let bytes = render(&DataType::Float(4), &[2, 3]).unwrap();
        assert_eq!(&bytes[..expected.len()], expected);
        assert_eq!(bytes.len(), 128);
    }

    #[test]
    fn broken_headers_are_named() {
        let good = render(&DataType::Float(4), &[2, 3]).unwrap();
        for cut in [0, 5, 9, 40, 127] {
            let error = parse(&mut &good[..cut], "cut.npy").unwrap_err();
            assert!(error.message().contains("cut.npy"), "{error}");
        }
        let mut other = good.clone();
        other[6] = 9;
        assert!(
            parse(&mut other.as_slice(), "x")
                .unwrap_err()
                .message()
                .contains("version 9")
        );
        let huge = b"\x93NUMPY\x02\x00\xff\xff\xff\x7f";
        assert!(
            parse(&mut huge.as_slice(), "x")
                .unwrap_err()
                .message()
                .contains("claims")
        );
        let replace = |from: &str, to: &str| {
            let text = String::from_utf8_lossy(&good[10..]).replace(from, to);
            let mut bytes = good[..8].to_vec();
            bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
            parse(&mut bytes.as_slice(), "x").unwrap_err()
        };
        assert!(replace("<f4", "|O").message().contains("Python objects"));
        assert!(replace("<f4", "<f3").message().contains("<f3"));
        assert!(replace("(2, 3)", "(2, -3)").message().contains("shape"));
        assert!(
            replace("(2, 3)", "(9999999999999, 99999999999)")
                .message()
                .len()
                > 5
        );
    }
}
