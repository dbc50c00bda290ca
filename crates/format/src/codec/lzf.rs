//! LZF, as h5py's filter of that name has it: one stream of literals and references.

use hyperslab_index::{Error, Result};

use super::filter::too_large;

/// Decodes `data` into the front of `out`; returns how many bytes it wrote.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize> {
    let cut = || Error::data("the lzf data is cut short");
    let (mut input, mut at) = (data.iter().copied().enumerate(), 0);
    while let Some((place, control)) = input.next() {
        if control < 32 {
            // So many bytes and one more, as they are.
            let length = usize::from(control) + 1;
            let literal = data.get(place + 1..place + 1 + length).ok_or_else(cut)?;
            let limit = out.len();
            let room = out.get_mut(at..at + length);
            room.ok_or_else(|| too_large("lzf", at + length, limit))?
                .copy_from_slice(literal);
            at += length;
            input.nth(length - 1);
            continue;
        }
        let mut length = usize::from(control >> 5) + 2;
        if length == 9 {
            length += usize::from(input.next().ok_or_else(cut)?.1);
        }
        let low = usize::from(input.next().ok_or_else(cut)?.1);
        let back = (usize::from(control & 31) << 8) + low + 1;
        let from = at
            .checked_sub(back)
            .ok_or_else(|| Error::data("the lzf data refers to bytes before its start"))?;
        if at + length > out.len() {
            return Err(too_large("lzf", at + length, out.len()));
        }
        // A reference may reach into what it writes itself.
        match back >= length {
            true => out.copy_within(from..from + length, at),
            false => (0..length).for_each(|i| out[at + i] = out[from + i]),
        }
        at += length;
    }
    Ok(at)
}

/// The longest reference, and the farthest that one leads back.
const LONGEST: usize = 264;
const FARTHEST: usize = 1 << 13;
/// Bits of the table of places that three bytes were seen at.
const TABLE: u32 = 14;

/// Encodes `data`: at every place the last one with the same three bytes is tried.
pub(super) fn encode(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() / 2);
    let mut places = vec![usize::MAX; 1 << TABLE];
    let mut literal = 0;
    let mut at = 0;
    while at + 3 <= data.len() {
        let three = u32::from_le_bytes([data[at], data[at + 1], data[at + 2], 0]);
        let slot = (three.wrapping_mul(0x9e37_79b1) >> (32 - TABLE)) as usize;
        let before = std::mem::replace(&mut places[slot], at);
        let back = at.wrapping_sub(before);
        if before == usize::MAX || back > FARTHEST || data[before..before + 3] != data[at..at + 3] {
            at += 1;
            continue;
        }
        let most = LONGEST.min(data.len() - at);
        let same = (3..most)
            .take_while(|i| data[before + i] == data[at + i])
            .count();
        let length = 3 + same;
        literals(&data[literal..at], &mut out);
        let (high, low) = ((back - 1) >> 8, (back - 1) & 0xff);
        match length - 2 {
            short @ 1..7 => out.push((short << 5 | high) as u8),
            long => out.extend([(7 << 5 | high) as u8, (long - 7) as u8]),
        }
        out.push(low as u8);
        at += length;
        literal = at;
    }
    literals(&data[literal..], &mut out);
    out
}

fn literals(bytes: &[u8], out: &mut Vec<u8>) {
    for some in bytes.chunks(32) {
        out.push((some.len() - 1) as u8);
        out.extend_from_slice(some);
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_come_back(data in prop::collection::vec(0u8..5, 0..3000), repeat in 1usize..5) {
            let data = data.repeat(repeat);
            let mut out = vec![0; data.len()];
            let n = decode(&encode(&data), &mut out).unwrap();
            prop_assert_eq!(&out[..n], &data[..]);
        }
    }

    #[test]
    fn literals_and_references() {
        // "abcd", then 3 bytes from 4 back, then 12 bytes from 1 back.
        let data = [3, b'a', b'b', b'c', b'd', 1 << 5, 3, 7 << 5, 3, 0];
        let mut out = [0; 32];
        let n = decode(&data, &mut out).unwrap();
        assert_eq!(&out[..n], b"abcdabccccccccccccc");
    }

    #[test]
    fn damaged_data_is_an_error() {
        for data in [
            &[3, b'a'][..],
            &[0x20],
            &[0x20, 0],
            &[0xe0, 1],
            &[0, b'a', 0x20, 9],
        ] {
            assert!(decode(data, &mut [0; 8]).is_err(), "{data:?}");
        }
        assert!(decode(&[3, 1, 2, 3, 4], &mut [0; 3]).is_err());
        assert!(decode(&[0, 1, 0x20, 0], &mut [0; 3]).is_err());
    }
}
