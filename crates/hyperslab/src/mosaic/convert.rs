//! Cells of a source in the type of a virtual dataset that has another one.
//!
//! Under [`super`]. As libhdf5 has it: integers that do not fit become the nearest that does, and
//! floating-point numbers lose what is behind the point.

use half::f16;
use hyperslab_format::DataType;

use super::places;
use super::tile::Patch;
use crate::canvas::Canvas;
use crate::scatter::{Destination, Placement};
use crate::{Error, Result};

/// Cells that are read in one type and wanted in another.
#[derive(Debug)]
pub(crate) struct Conversion {
    from: DataType,
    to: DataType,
    read: Canvas,
    copy: Patch,
    destination: Destination,
}

/// A number of any type.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Conversion {
    /// A place to read cells to, and what becomes of them.
    pub(super) fn new(
        from: &DataType,
        to: &DataType,
        copy: &Patch,
        destination: &Destination,
    ) -> Result<(Canvas, Conversion)> {
        let bytes = bytes(from).filter(|_| bytes(to).is_some());
        let bytes = bytes.ok_or_else(|| impossible(from, to))?;
        let bytes = copy.source.num_cells().saturating_mul(bytes as u64);
        let bytes = usize::try_from(bytes)
            .map_err(|_| Error::invalid("the selection is larger than memory can be"))?;
        let read = Canvas::owned(bytes);
        let conversion = Conversion {
            from: from.clone(),
            to: to.clone(),
            read: read.clone(),
            copy: copy.clone(),
            destination: destination.clone(),
        };
        Ok((read, conversion))
    }

    /// Converts what was read and puts it where it belongs.
    pub(super) fn finish(self) -> Result<()> {
        let (Some(from), Some(to)) = (bytes(&self.from), bytes(&self.to)) else {
            return Err(impossible(&self.from, &self.to));
        };
        let cells = self.read.into_vec();
        let converted: Vec<u8> = cells
            .chunks_exact(from)
            .flat_map(|cell| write(read(cell, &self.from), &self.to))
            .collect();
        let placements: Vec<Placement> = places(&self.copy.source, &self.copy.target)
            .map(|at| Placement {
                at: at as usize * to,
                len: to,
                step: to,
                count: 1,
            })
            .collect();
        self.destination.place(&converted, &placements)
    }
}

pub(super) fn impossible(from: &DataType, to: &DataType) -> Error {
    Error::invalid(format!(
        "a source of a virtual dataset holds {from}, which does not become {to}"
    ))
}

/// Bytes of a number, if it is one.
fn bytes(dtype: &DataType) -> Option<usize> {
    match dtype {
        DataType::Int(n) | DataType::UInt(n) | DataType::Float(n) => Some(usize::from(*n)),
        _ => None,
    }
}

/// The number in a little-endian cell.
fn read(cell: &[u8], dtype: &DataType) -> Number {
    let mut wide = [0; 16];
    wide[..cell.len()].copy_from_slice(cell);
    let unsigned = u128::from_le_bytes(wide);
    match dtype {
        DataType::Float(2) => Number::Float(f16::from_bits(unsigned as u16).to_f64()),
        DataType::Float(4) => Number::Float(f64::from(f32::from_bits(unsigned as u32))),
        DataType::Float(_) => Number::Float(f64::from_bits(unsigned as u64)),
        DataType::Int(n) => {
            let shift = 128 - 8 * u32::from(*n);
            Number::Integer((unsigned << shift) as i128 >> shift)
        }
        _ => Number::Integer(unsigned as i128),
    }
}

/// A number as a little-endian cell.
fn write(number: Number, dtype: &DataType) -> Vec<u8> {
    let float = match number {
        Number::Integer(i) => i as f64,
        Number::Float(f) => f,
    };
    let integer = match number {
        Number::Integer(i) => i,
        Number::Float(f) => f as i128,
    };
    match dtype {
        DataType::Float(2) => f16::from_f64(float).to_le_bytes().to_vec(),
        DataType::Float(4) => (float as f32).to_le_bytes().to_vec(),
        DataType::Float(_) => float.to_le_bytes().to_vec(),
        DataType::Int(n) => {
            let most = (1i128 << (8 * u32::from(*n) - 1)) - 1;
            let clamped = integer.clamp(-most - 1, most);
            clamped.to_le_bytes()[..usize::from(*n)].to_vec()
        }
        DataType::UInt(n) => {
            let most = (1i128 << (8 * u32::from(*n))) - 1;
            integer.clamp(0, most).to_le_bytes()[..usize::from(*n)].to_vec()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_the_nearest_that_fits() {
        let convert = |cell: &[u8], from, to| write(read(cell, &from), &to);
        let (int, uint, float) = (DataType::Int, DataType::UInt, DataType::Float);
        assert_eq!(convert(&(-5i16).to_le_bytes(), int(2), uint(1)), [0]);
        assert_eq!(convert(&300u16.to_le_bytes(), uint(2), int(1)), [127]);
        assert_eq!(
            convert(&(-7i8).to_le_bytes(), int(1), int(8)),
            (-7i64).to_le_bytes()
        );
        assert_eq!(
            convert(&2.9f64.to_le_bytes(), float(8), int(4)),
            2i32.to_le_bytes()
        );
        assert_eq!(
            convert(&(-3i32).to_le_bytes(), int(4), float(4)),
            (-3f32).to_le_bytes()
        );
        assert_eq!(
            convert(&u64::MAX.to_le_bytes(), uint(8), uint(8)),
            u64::MAX.to_le_bytes()
        );
        assert_eq!(
            convert(&0.5f32.to_le_bytes(), float(4), float(8)),
            0.5f64.to_le_bytes()
        );
    }
}
