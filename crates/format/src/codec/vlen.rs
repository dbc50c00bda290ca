//! Strings and byte strings of variable length: numcodecs' `vlen-utf8` and `vlen-bytes`.
//!
//! The layout is a 32-bit count, then for each cell a 32-bit length and its bytes, all
//! little-endian.

use bytes::Bytes;
use hyperslab_index::{Error, Result};

/// Packs the cells of a chunk.
pub(crate) fn encode(cells: &[Bytes]) -> Result<Vec<u8>> {
    let count = u32::try_from(cells.len())
        .map_err(|_| Error::invalid("a chunk of strings has more than 2^32 cells"))?;
    let mut out = Vec::with_capacity(4 + cells.iter().map(|c| c.len() + 4).sum::<usize>());
    out.extend_from_slice(&count.to_le_bytes());
    for cell in cells {
        let len = u32::try_from(cell.len())
            .map_err(|_| Error::invalid("a string is longer than 4 GiB"))?;
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(cell);
    }
    Ok(out)
}

/// Unpacks the cells of a chunk that must have `count` of them, without copying.
pub(crate) fn decode(packed: &Bytes, count: usize, utf8: bool) -> Result<Vec<Bytes>> {
    let cut = || Error::data("the strings of the chunk are cut short");
    let word = |at: usize| -> Result<usize> {
        let bytes = packed
            .get(at..)
            .and_then(|b| b.first_chunk::<4>())
            .ok_or_else(cut)?;
        Ok(u32::from_le_bytes(*bytes) as usize)
    };
    let stated = word(0)?;
    if stated != count {
        return Err(Error::data(format!(
            "the chunk holds {stated} strings where {count} belong"
        )));
    }
    let mut cells = Vec::with_capacity(count);
    let mut at = 4;
    for _ in 0..count {
        let len = word(at)?;
        at += 4;
        let end = at
            .checked_add(len)
            .filter(|end| *end <= packed.len())
            .ok_or_else(cut)?;
        let cell = packed.slice(at..end);
        if utf8 && std::str::from_utf8(&cell).is_err() {
            return Err(Error::data("a string of the chunk is not valid UTF-8"));
        }
        cells.push(cell);
        at = end;
    }
    if at != packed.len() {
        return Err(Error::data(
            "bytes are left over after the strings of the chunk",
        ));
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_come_back_and_cut_ones_do_not() {
        let cells: Vec<Bytes> = ["", "a", "päris", "🦀"]
            .iter()
            .map(|s| Bytes::from(*s))
            .collect();
        let packed = Bytes::from(encode(&cells).unwrap());
        assert_eq!(decode(&packed, 4, true).unwrap(), cells);
        assert!(decode(&packed, 3, true).is_err());
        for end in 0..packed.len() {
            assert!(decode(&packed.slice(..end), 4, true).is_err());
        }
        let bad = Bytes::from(encode(&[Bytes::from_static(&[0xff])]).unwrap());
        assert!(decode(&bad, 1, true).is_err() && decode(&bad, 1, false).is_ok());
    }
}
