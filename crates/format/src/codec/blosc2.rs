//! Blosc2, as its HDF5 filter stores it: a frame with one chunk, which has blocks, which have streams.
//!
//! Beside the other filters; decoding only. The C library would bring a build of its own and four
//! codecs that are here already, so the containers are taken apart here: frame (its header, and the
//! optional grid of a multidimensional array), chunk, block, stream.

use hyperslab_index::{Error, Result};

use super::filter::{too_large, unshuffle};
use super::{bitshuffle, blosclz, compress};

const MAGIC: &[u8] = b"b2frame\0";
/// Bytes of a frame's header before its metalayers.
const FRAME: usize = 87;
/// Bytes of a chunk's header.
const HEADER: usize = 32;
/// Filters of a chunk.
const SLOTS: usize = 6;
const SHUFFLE: u8 = 1;
const BITSHUFFLE: u8 = 2;
const DELTA: u8 = 3;
const TRUNCATE: u8 = 4;

fn damaged(what: &str) -> Error {
    Error::data(format!("the Blosc2 data is damaged: {what}"))
}

/// Decodes a frame into the front of `out`; returns how many bytes it wrote.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Result<usize> {
    if data.get(2..2 + MAGIC.len()) != Some(MAGIC) {
        return Chunk::parse(data)?.decode(out);
    }
    let number = |at: usize, len: usize| -> Result<usize> {
        let bytes = data
            .get(at..at + len)
            .ok_or_else(|| damaged("its header is cut"))?;
        let value = bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        usize::try_from(value).map_err(|_| damaged("a length is not possible"))
    };
    let header = number(11, 4)?;
    let (plain, stored) = (number(30, 8)?, number(39, 8)?);
    let chunk = number(58, 4)?;
    if header < FRAME || plain == 0 {
        return match plain {
            0 => Ok(0),
            _ => Err(damaged("its header is too short")),
        };
    }
    if plain > chunk {
        return Err(Error::data(
            "a Blosc2 frame with several chunks is not supported",
        ));
    }
    let content = data
        .get(header..)
        .ok_or_else(|| damaged("it ends in its header"))?;
    let grid = Grid::find(&data[..header])?;
    let padded = grid.as_ref().map_or(plain, Grid::padded_bytes);
    let limit = out.len();
    if stored == 0 {
        // No chunk is stored: the index says what it would have been.
        let place = special(content)?;
        let bytes = grid.as_ref().map_or(plain, Grid::bytes);
        let out = out
            .get_mut(..bytes)
            .ok_or_else(|| too_large("blosc2", bytes, limit))?;
        fill(place, number(48, 4)?, out)?;
        return Ok(bytes);
    }
    let parsed = Chunk::parse(content)?;
    let Some(grid) = grid else {
        return parsed.decode(out);
    };
    if grid.bytes() > limit || parsed.plain > padded.max(4 * limit) {
        return Err(too_large("blosc2", grid.bytes(), limit));
    }
    let mut blocks = vec![0; parsed.plain];
    parsed.decode(&mut blocks)?;
    grid.gather(&blocks, &mut out[..grid.bytes()])?;
    Ok(grid.bytes())
}

/// The kind of values of a chunk that is not stored, from the index behind the chunks.
fn special(index: &[u8]) -> Result<u8> {
    let mut place = [0; 8];
    if Chunk::parse(index)?.decode(&mut place)? != place.len() {
        return Err(damaged("it has no index"));
    }
    match place[7] & 0x80 {
        0 => Err(damaged("a chunk is not where it should be")),
        _ => Ok(place[7] & 7),
    }
}

/// Fills with the values that a chunk is full of.
fn fill(kind: u8, width: usize, out: &mut [u8]) -> Result<()> {
    match (kind, width) {
        (1 | 4, _) => out.fill(0),
        (2, 4) => repeat(&f32::NAN.to_le_bytes(), out),
        (2, 8) => repeat(&f64::NAN.to_le_bytes(), out),
        _ => return Err(damaged("it is full of values that are not known")),
    }
    Ok(())
}

fn repeat(value: &[u8], out: &mut [u8]) {
    out.chunks_mut(value.len())
        .for_each(|cell| cell.copy_from_slice(&value[..cell.len()]));
}

/// The shapes of a multidimensional array, whose blocks are boxes.
struct Grid {
    chunk: Vec<usize>,
    block: Vec<usize>,
    /// Bytes of a cell.
    cell: usize,
}

impl Grid {
    /// The metalayer of a multidimensional array, if the header has one.
    fn find(header: &[u8]) -> Result<Option<Grid>> {
        let key = b"\xa4b2nd\xd2";
        let Some(at) = header.windows(key.len()).position(|part| part == key) else {
            return Ok(None);
        };
        let cut = || damaged("the shape of its blocks is cut");
        let offset = header
            .get(at + key.len()..at + key.len() + 4)
            .ok_or_else(cut)?;
        let offset = offset.iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
        // Behind the type and length of the value: a list, the version, the number of dimensions.
        let layer = header.get(offset + 5..).ok_or_else(cut)?;
        let rank = usize::from(*layer.get(2).ok_or_else(cut)?);
        let list = |at: usize, width: usize| -> Result<Vec<usize>> {
            let entry = |i: usize| {
                let start = at + 1 + i * (1 + width) + 1;
                let bytes = layer.get(start..start + width).ok_or_else(cut)?;
                let value = bytes.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
                match usize::try_from(value) {
                    Ok(value @ 1..) => Ok(value),
                    _ => Err(damaged("a side of its blocks is not possible")),
                }
            };
            (0..rank).map(entry).collect()
        };
        let shapes = 3;
        let chunks = shapes + 1 + 9 * rank;
        let blocks = chunks + 1 + 5 * rank;
        let cell = header.get(48..52).ok_or_else(cut)?;
        let cell = cell.iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
        let grid = Grid {
            chunk: list(chunks, 4)?,
            block: list(blocks, 4)?,
            cell,
        };
        let bytes = grid
            .counted(&grid.chunk)
            .zip(grid.counted(&grid.extended()));
        if rank == 0 || cell == 0 || bytes.is_none() {
            return Err(damaged("the shape of its blocks is not possible"));
        }
        Ok(Some(grid))
    }

    /// The chunk's sides, rounded up to whole blocks.
    fn extended(&self) -> Vec<usize> {
        let sides = self.chunk.iter().zip(&self.block);
        sides
            .map(|(side, block)| side.checked_next_multiple_of(*block).unwrap_or(usize::MAX))
            .collect()
    }

    fn counted(&self, sides: &[usize]) -> Option<usize> {
        let cells = sides
            .iter()
            .try_fold(self.cell, |n, side| n.checked_mul(*side));
        cells.filter(|bytes| *bytes <= isize::MAX as usize)
    }

    fn bytes(&self) -> usize {
        self.counted(&self.chunk).unwrap_or(usize::MAX)
    }

    fn padded_bytes(&self) -> usize {
        self.counted(&self.extended()).unwrap_or(usize::MAX)
    }

    /// Puts the rows of all blocks where they belong in the chunk.
    fn gather(&self, blocks: &[u8], out: &mut [u8]) -> Result<()> {
        let rank = self.chunk.len();
        if blocks.len() < self.padded_bytes() {
            return Err(damaged("it has fewer blocks than its shape"));
        }
        let counts: Vec<usize> = self
            .extended()
            .iter()
            .zip(&self.block)
            .map(|(side, block)| side / block)
            .collect();
        let row = self.block[rank - 1] * self.cell;
        let rows: usize = self.block[..rank - 1].iter().product();
        for (number, stored) in blocks.chunks_exact(rows * row).enumerate() {
            let corner = coordinates(number, &counts);
            for (i, cells) in stored.chunks_exact(row).enumerate() {
                let within = coordinates(i, &self.block[..rank - 1]);
                let mut at = 0;
                let mut inside = true;
                // A row begins at the block's edge in the last dimension.
                let within = within.iter().chain([&0]);
                let sides = self.chunk.iter().zip(&self.block).zip(&corner).zip(within);
                for (((side, block), corner), step) in sides {
                    let place = corner * block + step;
                    inside &= place < *side;
                    at = at * side + place;
                }
                if !inside {
                    continue;
                }
                let first = corner[rank - 1] * self.block[rank - 1];
                let len = self.block[rank - 1].min(self.chunk[rank - 1] - first) * self.cell;
                let at = at * self.cell;
                out[at..at + len].copy_from_slice(&cells[..len]);
            }
        }
        Ok(())
    }
}

/// The place of the nth cell of a box in row-major order.
fn coordinates(mut n: usize, sides: &[usize]) -> Vec<usize> {
    let mut at = vec![0; sides.len()];
    for (place, side) in at.iter_mut().zip(sides).rev() {
        *place = n % side;
        n /= side;
    }
    at
}

/// A chunk: blocks that are decoded by themselves.
struct Chunk<'a> {
    data: &'a [u8],
    flags: u8,
    width: usize,
    /// Bytes of the chunk when it is decoded.
    plain: usize,
    block: usize,
    filters: [u8; SLOTS],
    filters_meta: [u8; SLOTS],
    special: u8,
    version: u8,
}

impl<'a> Chunk<'a> {
    fn parse(data: &'a [u8]) -> Result<Chunk<'a>> {
        let head = data
            .get(..HEADER)
            .ok_or_else(|| damaged("a chunk has no header"))?;
        let number = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            usize::try_from(i32::from_le_bytes(bytes)).map_err(|_| damaged("a length is negative"))
        };
        let flags = head[2];
        if flags & 5 != 5 {
            return Err(Error::data("this is Blosc1 data in a Blosc2 filter"));
        }
        let (plain, block, stored) = (number(4)?, number(8)?, number(12)?);
        if head[31] & 0x81 != 0 || head[30] & 1 != 0 {
            return Err(Error::data(
                "Blosc2 data with a dictionary or blocks of any length is not supported",
            ));
        }
        let mut chunk = Chunk {
            data: data
                .get(..stored)
                .ok_or_else(|| damaged("a chunk is cut short"))?,
            flags,
            width: usize::from(head[3]).max(1),
            plain,
            block,
            filters: [0; SLOTS],
            filters_meta: [0; SLOTS],
            special: head[31] >> 4 & 7,
            version: head[0],
        };
        chunk.filters.copy_from_slice(&head[16..16 + SLOTS]);
        chunk.filters_meta.copy_from_slice(&head[24..24 + SLOTS]);
        Ok(chunk)
    }

    fn decode(&self, out: &mut [u8]) -> Result<usize> {
        let limit = out.len();
        let out = out
            .get_mut(..self.plain)
            .ok_or_else(|| too_large("blosc2", self.plain, limit))?;
        if self.special == 3 {
            let value = self.data.get(HEADER..HEADER + self.width);
            repeat(value.ok_or_else(|| damaged("a value is missing"))?, out);
            return Ok(self.plain);
        }
        if self.special != 0 {
            fill(self.special, self.width, out)?;
            return Ok(self.plain);
        }
        if self.flags & 2 != 0 {
            let copied = self.data.get(HEADER..HEADER + self.plain);
            out.copy_from_slice(copied.ok_or_else(|| damaged("a chunk is cut short"))?);
            return Ok(self.plain);
        }
        if self.block == 0 {
            return Err(damaged("its blocks are empty"));
        }
        let (mut first, mut second) = (vec![0; self.block], vec![0; self.block]);
        for number in 0..self.plain.div_ceil(self.block) {
            let at = HEADER + 4 * number;
            let start = self
                .data
                .get(at..at + 4)
                .ok_or_else(|| damaged("a block is missing"))?;
            let start = u32::from_le_bytes([start[0], start[1], start[2], start[3]]) as usize;
            let from = number * self.block;
            let len = self.block.min(self.plain - from);
            self.streams(start, len < self.block, &mut first[..len])?;
            let (before, here) = out.split_at_mut(from);
            let here = &mut here[..len];
            self.unfilter(&mut first[..len], &mut second[..len], before)?;
            here.copy_from_slice(&first[..len]);
        }
        Ok(self.plain)
    }

    /// Decompresses the streams of a block.
    fn streams(&self, start: usize, is_rest: bool, out: &mut [u8]) -> Result<()> {
        let cut = || damaged("a block is cut short");
        let mut rest = self.data.get(start..).ok_or_else(cut)?;
        let split = self.flags & 0x10 == 0 && !is_rest;
        let count = if split { self.width } else { 1 };
        if !out.len().is_multiple_of(count) {
            return Err(damaged("a block cannot be split"));
        }
        let each = out.len() / count;
        for stream in out.chunks_mut(each.max(1)) {
            let (head, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            let stored = i32::from_le_bytes(*head);
            rest = after;
            match stored {
                0 => stream.fill(0),
                // A run of one byte, behind a token that says so.
                ..0 => {
                    let (token, after) = rest.split_first().ok_or_else(cut)?;
                    if token & 1 == 0 {
                        return Err(damaged("a stream is of a kind that is not known"));
                    }
                    stream.fill(stored.unsigned_abs().to_le_bytes()[0]);
                    rest = after;
                }
                _ => {
                    let (data, after) = rest.split_at_checked(stored as usize).ok_or_else(cut)?;
                    self.decompress(data, stream)?;
                    rest = after;
                }
            }
        }
        Ok(())
    }

    fn decompress(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        if data.len() == out.len() {
            out.copy_from_slice(data);
            return Ok(());
        }
        let got = match self.flags >> 5 {
            0 => blosclz::decode(data, out)?,
            1 => compress::unlz4_block(data, out)?,
            3 => compress::unzlib(data, out)?,
            4 => compress::unzstd(data, out)?,
            other => {
                return Err(Error::data(format!(
                    "the codec {other} of Blosc2 is not supported"
                )));
            }
        };
        match got == out.len() {
            true => Ok(()),
            false => Err(damaged("a stream is shorter than it should be")),
        }
    }

    /// Undoes the filters of a block, the last first. `before` are the blocks that are decoded.
    fn unfilter(&self, block: &mut [u8], scratch: &mut [u8], before: &[u8]) -> Result<()> {
        for slot in (0..SLOTS).rev() {
            let width = match self.filters_meta[slot] {
                0 => self.width,
                width => usize::from(width),
            };
            match self.filters[slot] {
                0 | TRUNCATE => continue,
                SHUFFLE => unshuffle(block, scratch, width),
                BITSHUFFLE => self.unbitshuffle(block, scratch),
                DELTA => {
                    undelta(block, self.width, before);
                    continue;
                }
                other => {
                    return Err(Error::data(format!(
                        "the filter {other} of Blosc2 is not supported"
                    )));
                }
            }
            block.copy_from_slice(scratch);
        }
        Ok(())
    }

    /// Elements that are no full group of eight are not shuffled; in an old version none are then.
    fn unbitshuffle(&self, block: &[u8], out: &mut [u8]) {
        let group = 8 * self.width;
        let whole = match block.len() % group {
            0 => block.len(),
            _ if self.version < 3 => 0,
            left => block.len() - left,
        };
        bitshuffle::unshuffle(&block[..whole], &mut out[..whole], self.width);
        out[whole..].copy_from_slice(&block[whole..]);
    }
}

/// Undoes differences: to the element before in the first block, to the first block in all others.
fn undelta(block: &mut [u8], width: usize, before: &[u8]) {
    let step = match width {
        1 | 2 | 4 | 8 => width,
        _ if width.is_multiple_of(8) => 8,
        _ => 1,
    };
    match before.is_empty() {
        true => (step..block.len()).for_each(|i| block[i] ^= block[i - step]),
        false => block
            .iter_mut()
            .zip(before)
            .for_each(|(byte, first)| *byte ^= first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_frames_are_errors() {
        let mut out = vec![0; 1000];
        for data in [
            &b""[..],
            b"\x9e\xa8b2frame\0",
            &[0; 40],
            &[
                5, 1, 5, 4, 255, 255, 255, 127, 1, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                0, 0, 0, 0, 0, 0, 0,
            ],
        ] {
            assert!(decode(data, &mut out).is_err(), "{data:?}");
        }
    }

    #[test]
    fn differences_are_undone() {
        let mut first = vec![1, 2, 3, 4, 0, 0, 1, 0];
        undelta(&mut first, 4, &[]);
        assert_eq!(first, [1, 2, 3, 4, 1, 2, 2, 4]);
        let mut second = vec![1, 1, 1];
        undelta(&mut second, 1, &first);
        assert_eq!(second, [0, 3, 2]);
    }

    #[test]
    fn blocks_are_put_in_their_places() {
        let grid = Grid {
            chunk: vec![3, 5],
            block: vec![2, 2],
            cell: 1,
        };
        // Two rows of three blocks, the last of each with padding.
        let mut blocks = vec![0xff; 24];
        for (number, block) in blocks.chunks_mut(4).enumerate() {
            for (i, cell) in block.iter_mut().enumerate() {
                let (row, column) = (number / 3 * 2 + i / 2, number % 3 * 2 + i % 2);
                if row < 3 && column < 5 {
                    *cell = (row * 5 + column) as u8;
                }
            }
        }
        let mut out = vec![0; 15];
        grid.gather(&blocks, &mut out).unwrap();
        assert_eq!(out, (0..15).collect::<Vec<u8>>());
    }
}
