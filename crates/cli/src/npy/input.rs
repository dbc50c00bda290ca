//! A local file as a source of cells, read block by block.
//!
//! Invariant: the file's size is checked against its shape before the first cell is used, so a
//! truncated file changes nothing.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use bytes::Bytes;
use hyperslab::numpy::Stored;
use hyperslab::{DataType, Error, Result, Shape};

use super::header;
use crate::blocks::Block;
use crate::permute;
use crate::target::Cells;

/// Cells in a file.
pub(crate) struct Input {
    file: BufReader<File>,
    name: String,
    pub(crate) shape: Shape,
    pub(crate) stored: Stored,
    pub(crate) fortran: bool,
    data_start: u64,
}

fn unreadable(name: &str, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::not_found(format!("there is no file {name}")),
        std::io::ErrorKind::PermissionDenied => Error::denied(format!("{name} may not be read"))
            .with_hint("check the permissions of the file"),
        _ => Error::unavailable(format!("{name} cannot be read: {error}")),
    }
}

fn open(path: &Path) -> Result<(File, String)> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| unreadable(&name, &e))?;
    if file.metadata().is_ok_and(|meta| !meta.is_file()) {
        return Err(Error::invalid(format!("{name} is not a regular file")));
    }
    Ok((file, name))
}

impl Input {
    /// Opens a `.npy` file.
    pub(crate) fn npy(path: &Path) -> Result<Self> {
        let (file, name) = open(path)?;
        let mut file = BufReader::new(file);
        let header = header::parse(&mut file, &name)?;
        let input = Input {
            file,
            name,
            shape: header.shape,
            stored: header.stored,
            fortran: header.fortran,
            data_start: header.data_start,
        };
        input.checked()
    }

    /// Opens raw cells.
    pub(crate) fn raw(path: &Path, stored: Stored, shape: Shape) -> Result<Self> {
        let (file, name) = open(path)?;
        let file = BufReader::new(file);
        Input {
            file,
            name,
            shape,
            stored,
            fortran: false,
            data_start: 0,
        }
        .checked()
    }

    fn width(&self) -> Result<u64> {
        self.stored.dtype.cell_bytes().ok_or_else(|| {
            Error::invalid(format!(
                "cells of type {} cannot be read from a file",
                self.stored.dtype
            ))
            .with_hint("save strings as a .npy file of type U or S")
        })
    }

    /// Checks that the file holds the cells and nothing else.
    fn checked(self) -> Result<Self> {
        let width = self.width()?;
        let cells = self.shape.num_cells();
        let want = cells
            .checked_mul(width)
            .and_then(|n| n.checked_add(self.data_start));
        let have = self
            .file
            .get_ref()
            .metadata()
            .map_err(|e| unreadable(&self.name, &e))?
            .len();
        if want != Some(have) {
            let want = want.map_or("more than 2^64".to_owned(), |n| n.to_string());
            return Err(Error::data(format!(
                "{} has {have} bytes, but {cells} cells of type {} need {want}",
                self.name, self.stored.dtype
            ))
            .with_hint(
                "the file is truncated, or its type or shape is another; nothing was written",
            ));
        }
        Ok(self)
    }

    /// Reads the cells of a block, in row-major order and little-endian. For files in Fortran
    /// order the block must be contiguous with its dimensions reversed.
    pub(crate) fn read(&mut self, block: &Block) -> Result<Vec<u8>> {
        let width = self.width()? as usize;
        let offset = match self.fortran {
            false => self.shape.offset_of(&block.start),
            true => {
                let mut sides: Vec<u64> = self.shape.to_vec();
                let mut start = block.start.clone();
                sides.reverse();
                start.reverse();
                Shape::new(sides)?.offset_of(&start)
            }
        };
        let mut cells = vec![0; block.cells() as usize * width];
        let at = self.data_start + offset * width as u64;
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.read_exact(&mut cells))
            .map_err(|e| unreadable(&self.name, &e))?;
        swap(&mut cells, width, &self.stored.big_endian);
        Ok(match self.fortran {
            true => permute::from_fortran(&cells, &block.shape, width),
            false => cells,
        })
    }

    /// Reads a block as the array's type wants it: strings of a fixed size become those of any.
    pub(crate) fn read_as(&mut self, block: &Block, wanted: &DataType) -> Result<Cells> {
        let cells = self.read(block)?;
        if !wanted.is_variable() {
            return Ok(Cells::Fixed(cells));
        }
        let width = self.width()? as usize;
        let text = matches!(self.stored.dtype, DataType::FixedUtf32(_));
        Ok(Cells::Strings(
            cells
                .chunks_exact(width)
                .map(|cell| match text {
                    true => Bytes::from(crate::cell::text(&self.stored.dtype, cell)),
                    false => {
                        let len = cell.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
                        Bytes::copy_from_slice(&cell[..len])
                    }
                })
                .collect(),
        ))
    }
}

/// True if cells of a file's type can become cells of an array's type without any change.
pub(crate) fn fits(file: &DataType, array: &DataType) -> bool {
    use DataType::{FixedBytes, FixedUtf32, RawBits, RawBytes, String, VarBytes};
    match (file, array) {
        (FixedUtf32(_), String) | (FixedBytes(_), VarBytes) => true,
        // Both are opaque bytes; only Zarr's spelling differs.
        (RawBits(a) | RawBytes(a), RawBits(b) | RawBytes(b)) => a == b,
        (a, b) => a == b,
    }
}

fn swap(cells: &mut [u8], width: usize, numbers: &[(u32, u32)]) {
    if numbers.is_empty() || width == 0 {
        return;
    }
    for cell in cells.chunks_exact_mut(width) {
        for (offset, size) in numbers {
            cell[*offset as usize..(*offset + *size) as usize].reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab::numpy::parse_dtype;

    fn write(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    #[test]
    fn big_endian_and_fortran_files_are_turned() {
        // [[0, 1, 2], [3, 4, 5]] as big-endian int16 in Fortran order.
        let mut bytes = header::render(&DataType::Int(2), &[2, 3]).unwrap();
        let text = String::from_utf8_lossy(&bytes[10..]).into_owned();
        let text = text.replace("<i2", ">i2").replace("False", "True ");
        bytes.truncate(10);
        bytes.extend_from_slice(text.as_bytes());
        for value in [0i16, 3, 1, 4, 2, 5] {
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        let (_dir, path) = write("f.npy", &bytes);
        let mut input = Input::npy(&path).unwrap();
        assert!(input.fortran);
        let all = Block {
            start: vec![0, 0],
            shape: vec![2, 3],
        };
        let expected: Vec<u8> = (0i16..6).flat_map(i16::to_le_bytes).collect();
        assert_eq!(input.read(&all).unwrap(), expected);
        let column = Block {
            start: vec![0, 1],
            shape: vec![2, 2],
        };
        let expected: Vec<u8> = [1i16, 2, 4, 5]
            .into_iter()
            .flat_map(i16::to_le_bytes)
            .collect();
        assert_eq!(input.read(&column).unwrap(), expected);
    }

    #[test]
    fn sizes_are_checked_first() {
        let mut bytes = header::render(&DataType::Int(2), &[3]).unwrap();
        bytes.extend_from_slice(&[0; 5]);
        let (_dir, path) = write("t.npy", &bytes);
        let error = Input::npy(&path).err().unwrap();
        assert_eq!(error.kind(), hyperslab::ErrorKind::Data);
        assert!(
            error.hint().unwrap().contains("nothing was written"),
            "{error}"
        );
        let stored = parse_dtype("i2").unwrap();
        assert!(Input::raw(&path, stored.clone(), Shape::new([7]).unwrap()).is_err());
        let gone = Input::raw(&path.with_extension("no"), stored, Shape::new([7]).unwrap());
        assert!(gone.err().unwrap().is_not_found());
    }
}
