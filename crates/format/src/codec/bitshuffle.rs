//! Bitshuffle: the bits of numbers sorted by their significance, block by block, with or without a
//! compressor, as the HDF5 filter 32008 has it.

use hyperslab_index::{Error, Result};

use super::compress;
use super::filter::too_large;

/// Bytes of a block where nothing else is said.
const TARGET: usize = 8192;
/// Elements are shuffled in groups of so many.
const GROUP: usize = 8;
const LEAST: usize = 128;
/// The number of bytes, and that of a block, before the blocks of a compressor.
const HEADER: usize = 12;

/// What stands behind the shuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inner {
    /// Nothing: the shuffled bytes are stored.
    Plain,
    Lz4,
    Zstd,
}

/// Elements of a block of elements of this width, where nothing else is said.
pub(super) fn default_block(width: usize) -> usize {
    (TARGET / width / GROUP * GROUP).max(LEAST)
}

/// Decodes `data` into the front of `out`; returns how many bytes it wrote. `block` is in elements,
/// 0 for the default; compressed data says itself.
pub(super) fn decode(
    data: &[u8],
    out: &mut [u8],
    width: usize,
    block: usize,
    inner: Inner,
) -> Result<usize> {
    let (total, block, mut rest) = match inner {
        Inner::Plain => {
            let block = if block == 0 {
                default_block(width)
            } else {
                block
            };
            (data.len(), block, data)
        }
        _ => header(data, width)?,
    };
    let limit = out.len();
    let out = out
        .get_mut(..total)
        .ok_or_else(|| too_large("bitshuffle", total, limit))?;
    if block == 0 || block % GROUP != 0 {
        return Err(Error::data(
            "bitshuffle has blocks of no multiple of 8 elements",
        ));
    }
    // Elements that are no full group are not shuffled.
    let whole = total / (width * GROUP) * (width * GROUP);
    let (shuffled, left) = out.split_at_mut(whole);
    let mut scratch = vec![0; (block * width).min(whole)];
    for part in shuffled.chunks_mut(block * width) {
        let taken = take_block(rest, &mut scratch[..part.len()], inner)?;
        rest = &rest[taken..];
        unshuffle(&scratch[..part.len()], part, width);
    }
    match rest.len() == left.len() {
        true => left.copy_from_slice(rest),
        false => {
            return Err(Error::data(
                "bitshuffle data has another length than it says",
            ));
        }
    }
    Ok(total)
}

/// Bytes in all, elements of a block, and what follows.
fn header(data: &[u8], width: usize) -> Result<(usize, usize, &[u8])> {
    let cut = || Error::data("the bitshuffle data has no header");
    let (head, rest) = data.split_at_checked(HEADER).ok_or_else(cut)?;
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    let total = usize::try_from(number(&head[..8])).map_err(|_| cut())?;
    let block = number(&head[8..]) as usize / width;
    Ok((total, block, rest))
}

/// Decompresses the next block into all of `out`; returns how many bytes of `rest` it took.
fn take_block(rest: &[u8], out: &mut [u8], inner: Inner) -> Result<usize> {
    let cut = || Error::data("the bitshuffle data is cut short");
    if inner == Inner::Plain {
        out.copy_from_slice(rest.get(..out.len()).ok_or_else(cut)?);
        return Ok(out.len());
    }
    let (head, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = u32::from_be_bytes(*head) as usize;
    let data = rest.get(..length).ok_or_else(cut)?;
    let got = match inner {
        Inner::Zstd => compress::unzstd(data, out)?,
        _ => compress::unlz4_block(data, out)?,
    };
    match got == out.len() {
        true => Ok(4 + length),
        false => Err(Error::data(
            "a bitshuffle block is shorter than it should be",
        )),
    }
}

/// Encodes elements of this width in blocks of so many; 0 for the default.
pub(super) fn encode(data: &[u8], width: usize, block: usize, inner: Inner) -> Result<Vec<u8>> {
    let block = if block == 0 {
        default_block(width)
    } else {
        block
    };
    if block % GROUP != 0 {
        return Err(Error::data(
            "bitshuffle has blocks of no multiple of 8 elements",
        ));
    }
    let mut out = Vec::with_capacity(data.len() / 2);
    if inner != Inner::Plain {
        out.extend((data.len() as u64).to_be_bytes());
        out.extend(((block * width) as u32).to_be_bytes());
    }
    let whole = data.len() / (width * GROUP) * (width * GROUP);
    let mut scratch = vec![0; (block * width).min(whole)];
    for part in data[..whole].chunks(block * width) {
        let shuffled = &mut scratch[..part.len()];
        shuffle(part, shuffled, width);
        let packed = match inner {
            Inner::Plain => {
                out.extend_from_slice(shuffled);
                continue;
            }
            Inner::Lz4 => lz4_flex::block::compress(shuffled),
            Inner::Zstd => compress::zstd(shuffled, 3, false)?,
        };
        out.extend((packed.len() as u32).to_be_bytes());
        out.extend(packed);
    }
    out.extend_from_slice(&data[whole..]);
    Ok(out)
}

/// Shuffles a block: row `b` of `out` gets the `b`-th bits of all elements.
fn shuffle(data: &[u8], out: &mut [u8], width: usize) {
    let row = data.len() / width / GROUP;
    for byte in 0..width {
        for group in 0..row {
            let at = |i: usize| u64::from(data[(group * GROUP + i) * width + byte]) << (8 * i);
            let bits = transpose((0..GROUP).map(at).fold(0, |all, bits| all | bits));
            for bit in 0..8 {
                out[(byte * 8 + bit) * row + group] = (bits >> (8 * bit)) as u8;
            }
        }
    }
}

/// Undoes the shuffle of a block: row `b` of `data` has the `b`-th bits of all elements.
pub(super) fn unshuffle(data: &[u8], out: &mut [u8], width: usize) {
    let row = out.len() / width / GROUP;
    for byte in 0..width {
        for group in 0..row {
            let at = |bit: usize| u64::from(data[(byte * 8 + bit) * row + group]) << (8 * bit);
            let bits = transpose((0..8).map(at).fold(0, |all, bits| all | bits));
            for element in 0..GROUP {
                out[(group * GROUP + element) * width + byte] = (bits >> (8 * element)) as u8;
            }
        }
    }
}

/// Transposes 8 × 8 bits: bit `i` of byte `j` becomes bit `j` of byte `i`. Each step swaps the two
/// off-diagonal quarters of squares of half the side.
fn transpose(mut bits: u64) -> u64 {
    for (shift, mask) in [
        (7, 0x00aa_00aa_00aa_00aa),
        (14, 0x0000_cccc_0000_cccc),
        (28, 0x0000_0000_f0f0_f0f0),
    ] {
        let swap = (bits ^ (bits >> shift)) & mask;
        bits ^= swap ^ (swap << shift);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, bit by bit.
    fn defined(cells: &[u8], width: usize) -> Vec<u8> {
        let (elements, bits) = (cells.len() / width, width * 8);
        let mut out = vec![0; cells.len()];
        for element in 0..elements {
            for bit in 0..bits {
                let value = cells[element * width + bit / 8] >> (bit % 8) & 1;
                out[bit * elements / 8 + element / 8] |= value << (element % 8);
            }
        }
        out
    }

    #[test]
    fn a_block_is_what_the_definition_says() {
        for width in [1, 2, 3, 4, 8] {
            let cells: Vec<u8> = (0..64 * width)
                .map(|i| (i * i * 31 + i / 7) as u8)
                .collect();
            let mut out = vec![0; cells.len()];
            unshuffle(&defined(&cells, width), &mut out, width);
            assert_eq!(out, cells, "width {width}");
            shuffle(&cells, &mut out, width);
            assert_eq!(out, defined(&cells, width), "width {width}");
        }
    }

    #[test]
    fn all_blocks_and_what_is_left_over() {
        let width = 4;
        let cells: Vec<u8> = (0..4 * 1003u32).map(|i| (i * 7 % 251) as u8).collect();
        let block = 128;
        let whole = 1003 / 8 * 8 * width;
        let mut stored = Vec::new();
        let mut packed = ((cells.len()) as u64).to_be_bytes().to_vec();
        packed.extend(((block * width) as u32).to_be_bytes());
        for part in cells[..whole].chunks(block * width) {
            let shuffled = defined(part, width);
            let lz4 = lz4_flex::block::compress(&shuffled);
            packed.extend((lz4.len() as u32).to_be_bytes());
            packed.extend(lz4);
            stored.extend(shuffled);
        }
        stored.extend(&cells[whole..]);
        packed.extend(&cells[whole..]);
        for (data, inner) in [(&stored, Inner::Plain), (&packed, Inner::Lz4)] {
            let mut out = vec![0; cells.len() + 5];
            let n = decode(data, &mut out, width, block, inner).unwrap();
            assert_eq!(out[..n], cells);
            assert_eq!(encode(&cells, width, block, inner).unwrap(), *data);
            // Truncated data and a small destination are errors.
            assert!(decode(data, &mut out[..100], width, block, inner).is_err());
            for length in [0, 5, 11, 12, 15, 40, data.len() - 1] {
                let cut = decode(&data[..length], &mut out, width, block, inner);
                assert!(cut.is_err() || inner == Inner::Plain);
            }
        }
    }
}
