//! `.npy` files and raw cells.

use std::io::Write;

use hyperslab::{DataType, Error, Result};

use super::{Head, Sink, failed};
use crate::npy::header;
use crate::target::Cells;

/// Bare cells.
pub(crate) struct RawSink;

impl Sink for RawSink {
    fn cells(&mut self, cells: &Cells, out: &mut dyn Write) -> Result<()> {
        match cells {
            Cells::Fixed(bytes) => out.write_all(bytes).map_err(|e| failed(&e)),
            Cells::Strings(_) => Err(Error::internal("strings reached a raw file")),
        }
    }

    fn finish(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}

/// NumPy's format; strings of any length become strings of the longest one's.
pub(crate) struct NpySink {
    /// Characters (or bytes) of a string cell.
    longest: usize,
    text: bool,
}

impl NpySink {
    /// Writes the header.
    pub(crate) fn begin(head: &Head, out: &mut dyn Write) -> Result<Self> {
        let longest = head.longest.unwrap_or(0).max(1);
        let size = u32::try_from(longest)
            .map_err(|_| Error::invalid("a string is too long for a .npy file"))?;
        let text = head.dtype == DataType::String;
        let dtype = match &head.dtype {
            DataType::String => DataType::FixedUtf32(size),
            DataType::VarBytes => DataType::FixedBytes(size),
            other => other.clone(),
        };
        let header = header::render(&dtype, &head.shape)?;
        out.write_all(&header).map_err(|e| failed(&e))?;
        Ok(NpySink { longest, text })
    }

    /// One string as a cell of fixed size.
    fn padded(&self, string: &[u8]) -> Result<Vec<u8>> {
        if string.last() == Some(&0) {
            return Err(Error::invalid(
                "a string ends in a zero byte, which a .npy file would drop",
            )
            .with_hint("write .json or .csv instead"));
        }
        let mut cell: Vec<u8> = match self.text {
            true => String::from_utf8_lossy(string)
                .chars()
                .flat_map(|c| u32::from(c).to_le_bytes())
                .collect(),
            false => string.to_vec(),
        };
        let size = self.longest * if self.text { 4 } else { 1 };
        if cell.len() > size {
            return Err(Error::conflict("the array changed while it was read")
                .with_hint("run the command again"));
        }
        cell.resize(size, 0);
        Ok(cell)
    }
}

impl Sink for NpySink {
    fn cells(&mut self, cells: &Cells, out: &mut dyn Write) -> Result<()> {
        match cells {
            Cells::Fixed(bytes) => out.write_all(bytes).map_err(|e| failed(&e)),
            Cells::Strings(strings) => {
                for string in strings {
                    out.write_all(&self.padded(string)?)
                        .map_err(|e| failed(&e))?;
                }
                Ok(())
            }
        }
    }

    fn finish(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}
