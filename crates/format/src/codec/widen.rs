//! Numbers that no processor has, as the next larger one that it has.
//!
//! HDF5 numbers have any size and any layout of bits: integers of three bytes, brain floats, floats of
//! one byte. Such a cell has other bytes in memory than in the file, so its chunks are always decoded
//! as a whole.

use crate::DataType;

/// How stored numbers become larger ones.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Widen {
    /// Bytes of a stored number, at most eight.
    pub(crate) from: usize,
    /// Its most significant byte comes first.
    pub(crate) big: bool,
    pub(crate) kind: Wide,
}

/// What a stored number is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wide {
    /// Some bits of its bytes.
    Integer { shift: u32, bits: u32, signed: bool },
    /// Sign, exponent and mantissa: where they begin and how many bits they have. The highest bit of
    /// the mantissa is implied.
    Float {
        sign: u32,
        exponent: (u32, u32),
        mantissa: (u32, u32),
        bias: u32,
        /// Four or eight.
        bytes: u8,
    },
}

impl Wide {
    /// The float that has a place for every number of this layout; `None` if there is none.
    pub(crate) fn float(
        sign: u32,
        exponent: (u32, u32),
        mantissa: (u32, u32),
        bias: u32,
    ) -> Option<Wide> {
        // The exponents of the smallest number that is not normal, and of the largest one.
        let least = 1 - i64::from(bias) - i64::from(mantissa.1);
        let most = (1i64 << exponent.1.min(32)) - 2 - i64::from(bias);
        let fits =
            |bits: u32, low: i64, high: i64| mantissa.1 <= bits && least >= low && most <= high;
        let bytes = match () {
            () if fits(23, -149, 127) => 4,
            () if fits(52, -1074, 1023) => 8,
            () => return None,
        };
        Some(Wide::Float {
            sign,
            exponent,
            mantissa,
            bias,
            bytes,
        })
    }
}

impl Widen {
    /// The type that it makes.
    pub(crate) fn dtype(&self) -> DataType {
        let bytes = if self.from <= 4 { 4 } else { 8 };
        match &self.kind {
            Wide::Integer { signed: true, .. } => DataType::Int(bytes),
            Wide::Integer { signed: false, .. } => DataType::UInt(bytes),
            Wide::Float { bytes, .. } => DataType::Float(*bytes),
        }
    }

    /// Turns stored numbers into cells; what has no stored number is zero.
    pub(crate) fn apply(&self, stored: &[u8], cells: &mut [u8]) {
        let bytes = self.dtype().cell_bytes().unwrap_or(8) as usize;
        let mut numbers = stored.chunks_exact(self.from);
        for cell in cells.chunks_exact_mut(bytes) {
            let value = numbers.next().map_or([0; 8], |number| self.one(number));
            cell.copy_from_slice(&value[..bytes]);
        }
    }

    fn one(&self, number: &[u8]) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..number.len()].copy_from_slice(number);
        if self.big {
            bytes[..number.len()].reverse();
        }
        let raw = u64::from_le_bytes(bytes);
        match self.kind {
            Wide::Integer {
                shift,
                bits,
                signed,
            } => {
                let unused = 64 - bits;
                let high = raw >> shift << unused;
                match signed {
                    true => ((high as i64) >> unused).to_le_bytes(),
                    false => (high >> unused).to_le_bytes(),
                }
            }
            Wide::Float {
                sign,
                exponent,
                mantissa,
                bias,
                bytes,
            } => {
                let field = |(at, bits): (u32, u32)| raw >> at & ((1 << bits) - 1);
                let value = float(
                    field(exponent),
                    exponent.1,
                    field(mantissa),
                    mantissa.1,
                    bias,
                );
                let value = match raw >> sign & 1 {
                    1 => -value,
                    _ => value,
                };
                match bytes {
                    // Exact: the layout was looked at.
                    4 => u64::from((value as f32).to_bits()).to_le_bytes(),
                    _ => value.to_le_bytes(),
                }
            }
        }
    }
}

/// The value of an exponent and a mantissa of so many bits.
fn float(exponent: u64, exponent_bits: u32, mantissa: u64, mantissa_bits: u32, bias: u32) -> f64 {
    let highest = (1 << exponent_bits) - 1;
    if exponent == highest {
        return match mantissa {
            0 => f64::INFINITY,
            _ => f64::NAN,
        };
    }
    let (number, power) = match exponent {
        0 => (mantissa, 1),
        _ => (mantissa | 1 << mantissa_bits, exponent as i64),
    };
    // In two steps: the power alone may be smaller than any float.
    let power = power - i64::from(bias) - i64::from(mantissa_bits);
    let half = power / 2;
    number as f64 * 2f64.powi(half as i32) * 2f64.powi((power - half) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(widen: &Widen, stored: &[u8], expected: &[u8]) {
        let mut cells = vec![0xa5; expected.len()];
        widen.apply(stored, &mut cells);
        assert_eq!(cells, expected);
    }

    #[test]
    fn integers_of_three_bytes() {
        let widen = |signed, big| Widen {
            from: 3,
            big,
            kind: Wide::Integer {
                shift: 0,
                bits: 24,
                signed,
            },
        };
        assert_eq!(widen(true, false).dtype(), DataType::Int(4));
        let stored = [0xfe, 0xff, 0xff, 1, 2, 0];
        let signed: Vec<u8> = [-2i32, 513].iter().flat_map(|n| n.to_le_bytes()).collect();
        check(&widen(true, false), &stored, &signed);
        let unsigned: Vec<u8> = [0xfffffeu32, 513]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        check(&widen(false, false), &stored, &unsigned);
        check(&widen(false, true), &[0, 2, 1], &513u32.to_le_bytes());
        // A number that is not there is zero.
        check(&widen(true, false), &[1, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn brain_floats_are_the_upper_half_of_floats() {
        let kind = Wide::float(15, (7, 8), (0, 7), 127).unwrap();
        let widen = Widen {
            from: 2,
            big: false,
            kind,
        };
        assert_eq!(widen.dtype(), DataType::Float(4));
        for upper in 0..=u16::MAX {
            let expected = f32::from_bits(u32::from(upper) << 16);
            let mut cells = [0; 4];
            widen.apply(&upper.to_le_bytes(), &mut cells);
            let found = f32::from_le_bytes(cells);
            let same =
                found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(same, "{upper:#x}: {found} is not {expected}");
        }
    }

    #[test]
    fn layouts_that_fit_nowhere_are_refused() {
        // The extended precision of x87, and the quadruple one.
        assert_eq!(Wide::float(79, (64, 15), (0, 63), 16383), None);
        assert_eq!(Wide::float(127, (112, 15), (0, 112), 16383), None);
        // More exponent than single precision has.
        let wide = Wide::float(31, (21, 10), (0, 21), 511).unwrap();
        assert!(matches!(wide, Wide::Float { bytes: 8, .. }));
    }
}
