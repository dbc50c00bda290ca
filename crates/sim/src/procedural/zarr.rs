//! A computed Zarr v3 array: every cell is a closed form of its place in the array.
//!
//! Chunks are raw little-endian (codec `bytes`), keys are `c/i/j`, and `zarr.json` is served
//! beside them. The value of a cell depends on its row-major index in the whole array and not on
//! the chunking, so a client can check what it read with [`ZarrArray::cell`] alone.

use std::cmp::Ordering;

use hyperslab_index::{Error, Result};

use super::Procedural;

/// The type of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellType {
    /// Zarr's `uint8`: the low byte of [`cell_value`].
    UInt8,
    /// Zarr's `int32`: [`cell_value`] in two's complement.
    Int32,
    /// Zarr's `float32`: the upper 24 bits of [`cell_value`] as an integer, divided by 2^24.
    Float32,
}

/// The 32 bits that the cell at a row-major index of the array is made of:
/// `x = low ^ high * 0x85EBCA6B; x = x * 0x9E3779B1; x ^ (x >> 15)`, all modulo 2^32, where `low`
/// and `high` are the halves of the index.
pub fn cell_value(index: u64) -> u32 {
    scramble(index as u32, (index >> 32) as u32)
}

fn scramble(low: u32, high: u32) -> u32 {
    let x = (low ^ high.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
    x ^ (x >> 15)
}

impl CellType {
    /// Bytes of one cell.
    pub fn size(self) -> usize {
        match self {
            CellType::UInt8 => 1,
            CellType::Int32 | CellType::Float32 => 4,
        }
    }

    /// The name that Zarr v3 has for it.
    pub fn zarr_name(self) -> &'static str {
        match self {
            CellType::UInt8 => "uint8",
            CellType::Int32 => "int32",
            CellType::Float32 => "float32",
        }
    }

    /// Writes the cells from row-major index `index` on to `out`, whose length is whole cells.
    fn fill_run(self, index: u64, out: &mut [u8]) {
        let mut done = 0;
        while done < out.len() {
            let first = index + (done / self.size()) as u64;
            // Within one value of the high half the loop below is a straight line over u32, which
            // the compiler vectorises.
            let (low, high) = (first as u32, (first >> 32) as u32);
            let until_wrap = usize::try_from(u64::from(u32::MAX - low) + 1).unwrap_or(usize::MAX);
            let cells = ((out.len() - done) / self.size()).min(until_wrap);
            let run = &mut out[done..done + cells * self.size()];
            let mut at = low;
            let mut next = || {
                let value = scramble(at, high);
                at = at.wrapping_add(1);
                value
            };
            match self {
                CellType::UInt8 => run.iter_mut().for_each(|cell| *cell = next() as u8),
                CellType::Int32 => run
                    .chunks_exact_mut(4)
                    .for_each(|cell| cell.copy_from_slice(&next().to_le_bytes())),
                CellType::Float32 => run
                    .chunks_exact_mut(4)
                    .for_each(|cell| cell.copy_from_slice(&to_float(next()).to_le_bytes())),
            }
            done += cells * self.size();
        }
    }
}

/// 24 bits fill the mantissa of a float exactly, so the division is exact too.
fn to_float(value: u32) -> f32 {
    (value >> 8) as f32 / 16_777_216.0
}

/// A computed array, to be mounted in a bucket.
#[derive(Debug, Clone)]
pub struct ZarrArray {
    cell_type: CellType,
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    /// Chunks per dimension.
    grid: Vec<u64>,
    /// Per dimension the chunk indices in the byte order of their decimal notation.
    sorted: Vec<Vec<u64>>,
    chunk_bytes: u64,
    metadata: String,
}

const METADATA_KEY: &str = "zarr.json";

impl ZarrArray {
    /// An array of this shape, cut into chunks of this shape.
    pub fn new(cell_type: CellType, shape: &[u64], chunk_shape: &[u64]) -> Result<Self> {
        /// Keeps the sorted list of chunk indices of a dimension at a few megabytes.
        const MOST_CHUNKS_PER_DIMENSION: u64 = 1 << 20;
        if shape.is_empty() || shape.len() != chunk_shape.len() {
            return Err(Error::invalid(format!(
                "a computed array of {} dimensions cannot have chunks of {}",
                shape.len(),
                chunk_shape.len()
            ))
            .with_hint("give one chunk length for each of one or more dimensions"));
        }
        if shape.iter().chain(chunk_shape).any(|&length| length == 0) {
            return Err(Error::invalid(format!(
                "a computed array of shape {shape:?} in chunks of {chunk_shape:?} has no cells"
            )));
        }
        let product = |lengths: &[u64]| lengths.iter().try_fold(1_u64, |n, &l| n.checked_mul(l));
        let too_large = || {
            Error::invalid(format!(
                "a computed array of shape {shape:?} in chunks of {chunk_shape:?} is too large"
            ))
            .with_hint("an array has at most 2^63 cells, and 2^20 chunks along a dimension")
        };
        product(shape)
            .filter(|&cells| cells <= 1 << 63)
            .ok_or_else(too_large)?;
        let chunk_bytes = product(chunk_shape)
            .and_then(|cells| cells.checked_mul(cell_type.size() as u64))
            .ok_or_else(too_large)?;
        let grid: Vec<u64> = shape
            .iter()
            .zip(chunk_shape)
            .map(|(s, c)| s.div_ceil(*c))
            .collect();
        if grid
            .iter()
            .any(|&chunks| chunks > MOST_CHUNKS_PER_DIMENSION)
        {
            return Err(too_large());
        }
        let sorted = grid
            .iter()
            .map(|&chunks| {
                let mut indices: Vec<u64> = (0..chunks).collect();
                indices.sort_by(|a, b| decimal_order(*a, *b));
                indices
            })
            .collect();
        let metadata = serde_json::json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": cell_type.zarr_name(),
            "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": chunk_shape } },
            "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
            "fill_value": 0,
            "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
            "attributes": {},
        })
        .to_string();
        Ok(ZarrArray {
            cell_type,
            shape: shape.to_vec(),
            chunk_shape: chunk_shape.to_vec(),
            grid,
            sorted,
            chunk_bytes,
            metadata,
        })
    }

    /// The little-endian bytes of the cell at `coordinates`; `None` outside the array.
    pub fn cell(&self, coordinates: &[u64]) -> Option<Vec<u8>> {
        if coordinates.len() != self.shape.len() {
            return None;
        }
        let inside = coordinates
            .iter()
            .zip(&self.shape)
            .all(|(c, length)| c < length);
        inside.then(|| {
            let mut bytes = vec![0; self.cell_type.size()];
            self.cell_type
                .fill_run(self.linear(coordinates), &mut bytes);
            bytes
        })
    }

    /// The type of the cells.
    pub fn cell_type(&self) -> CellType {
        self.cell_type
    }

    /// The shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn linear(&self, coordinates: &[u64]) -> u64 {
        coordinates
            .iter()
            .zip(&self.shape)
            .fold(0, |index, (c, length)| index * length + c)
    }

    /// The grid index of a chunk key such as `c/0/12`.
    fn parse_chunk(&self, key: &str) -> Option<Vec<u64>> {
        let mut parts = key.strip_prefix("c/")?.split('/');
        let index: Vec<u64> = self
            .grid
            .iter()
            .map(|&chunks| {
                let part = parts.next()?;
                // The canonical notation only: `007` and `+7` are other keys.
                let index: u64 = part.parse().ok()?;
                (index < chunks && index.to_string() == part).then_some(index)
            })
            .collect::<Option<_>>()?;
        parts.next().is_none().then_some(index)
    }

    /// Fills `out` with the bytes of a chunk from `offset` on, row by row of the chunk.
    fn fill_chunk(&self, chunk: &[u64], offset: u64, out: &mut [u8]) {
        let cell_size = self.cell_type.size() as u64;
        let row_cells = self.chunk_shape[self.chunk_shape.len() - 1];
        let row_bytes = row_cells * cell_size;
        let mut buffer = Vec::new();
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let (row, within) = (at / row_bytes, at % row_bytes);
            let take = usize::try_from(row_bytes - within)
                .unwrap_or(usize::MAX)
                .min(out.len() - done);
            let part = &mut out[done..done + take];
            let head = within % cell_size;
            let aligned = head == 0 && (take as u64).is_multiple_of(cell_size);
            if aligned {
                self.fill_row(chunk, row, within / cell_size, part);
            } else {
                // Only the ends of a range can cut a cell: compute whole cells and copy.
                let cells = (head + take as u64).div_ceil(cell_size);
                buffer.resize(usize::try_from(cells * cell_size).unwrap_or(0), 0);
                self.fill_row(chunk, row, within / cell_size, &mut buffer);
                let head = usize::try_from(head).unwrap_or(0);
                part.copy_from_slice(&buffer[head..head + take]);
            }
            done += take;
        }
    }

    /// Fills whole cells of row `row` of a chunk from cell `column` on. Cells of an edge chunk
    /// that lie outside the array hold the fill value, zero.
    fn fill_row(&self, chunk: &[u64], row: u64, column: u64, out: &mut [u8]) {
        let last = self.shape.len() - 1;
        let mut coordinates = vec![0; self.shape.len()];
        let mut rest = row;
        for dimension in (0..last).rev() {
            let length = self.chunk_shape[dimension];
            coordinates[dimension] = chunk[dimension] * length + rest % length;
            rest /= length;
        }
        coordinates[last] = chunk[last] * self.chunk_shape[last] + column;
        let inside = (0..last).all(|d| coordinates[d] < self.shape[d]);
        let cells = out.len() / self.cell_type.size();
        let valid = if inside {
            self.shape[last].saturating_sub(coordinates[last])
        } else {
            0
        };
        let valid = usize::try_from(valid).unwrap_or(usize::MAX).min(cells);
        let (values, fill) = out.split_at_mut(valid * self.cell_type.size());
        if !values.is_empty() {
            self.cell_type.fill_run(self.linear(&coordinates), values);
        }
        fill.fill(0);
    }
}

impl Procedural for ZarrArray {
    fn key_count(&self) -> u64 {
        self.grid.iter().product::<u64>() + 1
    }

    fn key_at(&self, position: u64) -> String {
        // "c/…" sorts before "zarr.json"; among chunks '/' sorts before every digit, so the order
        // of keys is the order of their components, one after the other.
        if position + 1 == self.key_count() {
            return METADATA_KEY.to_string();
        }
        let mut rest = position;
        let mut parts = vec![0; self.grid.len()];
        for dimension in (0..self.grid.len()).rev() {
            let chunks = self.grid[dimension];
            parts[dimension] = self.sorted[dimension][(rest % chunks) as usize];
            rest /= chunks;
        }
        parts
            .iter()
            .fold(String::from("c"), |key, part| format!("{key}/{part}"))
    }

    fn size(&self, key: &str) -> Option<u64> {
        if key == METADATA_KEY {
            return Some(self.metadata.len() as u64);
        }
        self.parse_chunk(key).map(|_| self.chunk_bytes)
    }

    fn fill(&self, key: &str, offset: u64, out: &mut [u8]) {
        if key == METADATA_KEY {
            let start = usize::try_from(offset)
                .unwrap_or(usize::MAX)
                .min(self.metadata.len());
            let bytes = &self.metadata.as_bytes()[start..];
            let take = out.len().min(bytes.len());
            out[..take].copy_from_slice(&bytes[..take]);
        } else if let Some(chunk) = self.parse_chunk(key) {
            self.fill_chunk(&chunk, offset, out);
        }
    }
}

/// Compares two numbers by the bytes of their decimal notation.
fn decimal_order(a: u64, b: u64) -> Ordering {
    a.to_string().cmp(&b.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::seeded::mix;
    use crate::procedural::position_after;

    /// The chunk, cell by cell from the closed form.
    fn naive_chunk(array: &ZarrArray, chunk: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        let cells: u64 = array.chunk_shape.iter().product();
        for cell in 0..cells {
            let mut rest = cell;
            let mut coordinates = vec![0; chunk.len()];
            for d in (0..chunk.len()).rev() {
                coordinates[d] = chunk[d] * array.chunk_shape[d] + rest % array.chunk_shape[d];
                rest /= array.chunk_shape[d];
            }
            let inside = coordinates.iter().zip(&array.shape).all(|(c, s)| c < s);
            let index = coordinates
                .iter()
                .zip(&array.shape)
                .fold(0, |i, (c, s)| i * s + c);
            let value = if inside { cell_value(index) } else { 0 };
            match array.cell_type {
                CellType::UInt8 => out.push(value as u8),
                CellType::Int32 => out.extend((value as i32).to_le_bytes()),
                CellType::Float32 => out.extend(((value >> 8) as f32 / 16_777_216.0).to_le_bytes()),
            }
        }
        out
    }

    #[test]
    fn any_range_of_any_chunk_equals_the_closed_form() {
        for (cell_type, shape, chunks) in [
            (CellType::Int32, vec![20, 37], vec![8, 10]),
            (CellType::Float32, vec![7], vec![3]),
            (CellType::UInt8, vec![5, 6, 7], vec![2, 6, 3]),
            (CellType::Int32, vec![1 << 33, 3], vec![1 << 13, 2]),
        ] {
            let array = ZarrArray::new(cell_type, &shape, &chunks).unwrap();
            for round in 0..60_u64 {
                let chunk: Vec<u64> = array
                    .grid
                    .iter()
                    .enumerate()
                    .map(|(d, n)| mix(round * 31 + d as u64) % n)
                    .collect();
                let key = chunk
                    .iter()
                    .fold(String::from("c"), |k, c| format!("{k}/{c}"));
                let expected = naive_chunk(&array, &chunk);
                assert_eq!(array.size(&key), Some(expected.len() as u64));
                let start = (mix(round) % expected.len() as u64) as usize;
                let len = (mix(round + 999) % (expected.len() - start) as u64) as usize + 1;
                let mut seen = vec![0xAA; len];
                array.fill(&key, start as u64, &mut seen);
                assert_eq!(seen, expected[start..start + len], "{key} {start}+{len}");
            }
        }
    }

    #[test]
    fn cells_cross_the_32_bit_border() {
        let mut bytes = [0; 16];
        CellType::Int32.fill_run(u64::from(u32::MAX) - 1, &mut bytes);
        for step in 0..4 {
            let expected = cell_value(u64::from(u32::MAX) - 1 + step).to_le_bytes();
            let at = step as usize * 4;
            assert_eq!(bytes[at..at + 4], expected);
        }
        assert_eq!(cell_value(0), 0);
        assert_eq!(cell_value(1), 0x9E37_79B1 ^ (0x9E37_79B1 >> 15));
    }

    #[test]
    fn keys_are_sorted_and_searchable() {
        let array = ZarrArray::new(CellType::UInt8, &[23, 12], &[2, 1]).unwrap();
        let keys: Vec<String> = (0..array.key_count()).map(|p| array.key_at(p)).collect();
        assert_eq!(keys.len(), 12 * 12 + 1);
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(keys.iter().all(|key| array.size(key).is_some()));
        for probe in [
            "",
            "c",
            "c/1",
            "c/1/0",
            "c/10/5",
            "c/9/99",
            "d",
            "zarr.json",
            "zz",
        ] {
            let greater = keys.iter().filter(|key| key.as_str() <= probe).count() as u64;
            assert_eq!(position_after(&array, probe, false), greater, "{probe}");
            let at_least = keys.iter().filter(|key| key.as_str() < probe).count() as u64;
            assert_eq!(position_after(&array, probe, true), at_least, "{probe}");
        }
    }

    #[test]
    fn other_keys_do_not_exist() {
        let array = ZarrArray::new(CellType::UInt8, &[23, 12], &[2, 1]).unwrap();
        for key in [
            "c/12/0", "c/0/12", "c/00/0", "c/0", "c/0/0/0", "c/+1/0", "zarr", "",
        ] {
            assert_eq!(array.size(key), None, "{key}");
        }
    }

    #[test]
    fn impossible_arrays_are_refused() {
        assert!(ZarrArray::new(CellType::UInt8, &[], &[]).is_err());
        assert!(ZarrArray::new(CellType::UInt8, &[4], &[2, 2]).is_err());
        assert!(ZarrArray::new(CellType::UInt8, &[4, 0], &[2, 2]).is_err());
        assert!(ZarrArray::new(CellType::UInt8, &[1 << 40, 1 << 40], &[1 << 30, 1 << 30]).is_err());
        assert!(ZarrArray::new(CellType::UInt8, &[1 << 40], &[1]).is_err());
    }
}
