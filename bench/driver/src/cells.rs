//! Cells on their way between the harness and the facade.
//!
//! Cells of fixed size are a file of little-endian bytes in row-major order; strings are a file of
//! (length as 32-bit little-endian, bytes) in the same order.

use std::borrow::Cow;
use std::fs;
use std::io::{Read, Write};

use bytes::Bytes;
use hyperslab::{Error, Result};

/// Cells in memory.
#[derive(Debug)]
pub(crate) enum Cells {
    Fixed(Vec<u8>),
    Strings(Vec<Bytes>),
}

/// A file that cannot be used, with the reason.
pub(crate) fn file_error(what: &str, path: &str) -> impl FnOnce(std::io::Error) -> Error {
    let message = format!("{path} cannot be {what}");
    move |e| Error::unavailable(format!("{message}: {e}"))
}

impl Cells {
    /// Loads a file of cells.
    pub(crate) fn load(path: &str, variable: bool) -> Result<Self> {
        let data = fs::read(path).map_err(file_error("read", path))?;
        if variable {
            return split_strings(Bytes::from(data)).map(Cells::Strings);
        }
        Ok(Cells::Fixed(data))
    }

    /// The cells as a file has them.
    pub(crate) fn to_bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Cells::Fixed(data) => Cow::Borrowed(data),
            Cells::Strings(cells) => Cow::Owned(join_strings(cells)),
        }
    }

    /// Writes the cells to a file.
    pub(crate) fn dump(&self, path: &str) -> Result<()> {
        let mut file = fs::File::create(path).map_err(file_error("written", path))?;
        file.write_all(&self.to_bytes())
            .map_err(file_error("written", path))
    }

    /// Where the cells first differ from a file; `None` if they are the same bit for bit.
    pub(crate) fn first_difference(&self, path: &str) -> Result<Option<u64>> {
        let all = self.to_bytes();
        let mut mine: &[u8] = &all;
        let mut file = fs::File::open(path).map_err(file_error("read", path))?;
        let mut block = vec![0; 4 << 20];
        let mut at = 0u64;
        loop {
            let n = file.read(&mut block).map_err(file_error("read", path))?;
            if n == 0 {
                return Ok((!mine.is_empty()).then_some(at));
            }
            let have = n.min(mine.len());
            if mine[..have] != block[..have] || have < n {
                let same = mine
                    .iter()
                    .zip(&block[..n])
                    .take_while(|(a, b)| a == b)
                    .count();
                return Ok(Some(at + same as u64));
            }
            mine = &mine[have..];
            at += n as u64;
        }
    }

    /// Bytes of the cells.
    pub(crate) fn num_bytes(&self) -> u64 {
        match self {
            Cells::Fixed(data) => data.len() as u64,
            Cells::Strings(cells) => cells.iter().map(|cell| cell.len() as u64).sum(),
        }
    }
}

fn join_strings(cells: &[Bytes]) -> Vec<u8> {
    let mut out = Vec::new();
    for cell in cells {
        out.extend_from_slice(&(cell.len() as u32).to_le_bytes());
        out.extend_from_slice(cell);
    }
    out
}

fn split_strings(mut data: Bytes) -> Result<Vec<Bytes>> {
    let truncated = || Error::data("the file of strings ends inside a string");
    let mut cells = Vec::new();
    while !data.is_empty() {
        let (length, _) = data.split_first_chunk::<4>().ok_or_else(truncated)?;
        let end = 4 + u32::from_le_bytes(*length) as usize;
        if data.len() < end {
            return Err(truncated());
        }
        cells.push(data.slice(4..end));
        data = data.slice(end..);
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells");
        let path = path.to_str().unwrap();
        let strings: Vec<Bytes> = ["", "a", "longer ü", ""]
            .map(|s| Bytes::from_static(s.as_bytes()))
            .to_vec();
        Cells::Strings(strings.clone()).dump(path).unwrap();
        let Cells::Strings(back) = Cells::load(path, true).unwrap() else {
            panic!("not strings")
        };
        assert_eq!(back, strings);
        assert!(split_strings(Bytes::from_static(&[2, 0, 0, 0, 1])).is_err());
        assert!(split_strings(Bytes::from_static(&[2, 0, 0])).is_err());
    }

    #[test]
    fn the_first_difference_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells");
        fs::write(&path, [1, 2, 3, 4]).unwrap();
        let path = path.to_str().unwrap();
        for (cells, expected) in [
            (vec![1, 2, 3, 4], None),
            (vec![1, 2, 9, 4], Some(2)),
            (vec![1, 2, 3], Some(3)),
            (vec![1, 2, 3, 4, 5], Some(4)),
            (vec![], Some(0)),
        ] {
            assert_eq!(
                Cells::Fixed(cells).first_difference(path).unwrap(),
                expected
            );
        }
    }
}
