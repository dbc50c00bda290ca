//! BloscLZ: literals and references, as FastLZ has them.
//!
//! Under [`super::blosc2`]; decoding only.

use hyperslab_index::{Error, Result};

/// References beyond this distance have two more bytes for it.
const NEAR: usize = 8191;

/// Decodes `data` into the front of `out`; returns how many bytes it wrote.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize> {
    let damaged = || Error::data("the BloscLZ data is damaged");
    let mut input = data.iter().copied();
    let mut at = 0;
    let Some(first) = input.next() else {
        return Ok(0);
    };
    // The first instruction is always literal bytes.
    let mut control = usize::from(first & 31);
    loop {
        if control < 32 {
            let count = control + 1;
            let literal = out.get_mut(at..at + count).ok_or_else(damaged)?;
            for byte in literal {
                *byte = input.next().ok_or_else(damaged)?;
            }
            at += count;
        } else {
            let mut next = || input.next().map(usize::from).ok_or_else(damaged);
            let mut count = (control >> 5) - 1;
            if count == 6 {
                loop {
                    let more = next()?;
                    count += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let high = (control & 31) << 8;
            let low = next()?;
            let distance = match (high, low) {
                (0x1f00, 255) => NEAR + (next()? << 8 | next()?),
                _ => high + low,
            } + 1;
            let end = at + count + 3;
            if distance > at || end > out.len() {
                return Err(damaged());
            }
            // Byte by byte, since a reference may reach into what it writes.
            for to in at..end {
                out[to] = out[to - distance];
            }
            at = end;
        }
        match input.next() {
            Some(byte) => control = usize::from(byte),
            None => return Ok(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_references() {
        let mut out = [0; 32];
        // Three literals, then ten bytes from three before: a length of 7 - 1 and one more byte.
        let data = [2, b'a', b'b', b'c', 7 << 5, 1, 2, 0, b'!'];
        let length = decode(&data, &mut out).unwrap();
        assert_eq!(&out[..length], b"abcabcabcabca!");
    }

    #[test]
    fn damaged_data_is_an_error() {
        let mut out = [0; 8];
        for data in [
            &[5, 1][..],
            &[0, 1, 33, 9, 0, 0],
            &[31; 40],
            &[0, 1, 7 << 5, 255],
        ] {
            assert!(decode(data, &mut out).is_err(), "{data:?}");
        }
        assert_eq!(decode(&[], &mut out).unwrap(), 0);
    }
}
