//! What has to be done to stored cells besides the byte order, for types that only HDF5 has.

/// A change of every cell, in place. Numbers are little-endian by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fix {
    /// A number that occupies only some bits of its bytes.
    Bits {
        at: usize,
        width: usize,
        shift: u32,
        bits: u32,
        signed: bool,
    },
    /// A text that ends before its bytes do: with a zero, or with the last byte that is no space.
    Text { at: usize, len: usize, spaces: bool },
}

impl Fix {
    /// Changes all cells of `size` bytes.
    pub(crate) fn apply(&self, cells: &mut [u8], size: usize) {
        for cell in cells.chunks_exact_mut(size) {
            self.one(cell);
        }
    }

    fn one(&self, cell: &mut [u8]) {
        match *self {
            Fix::Bits {
                at,
                width,
                shift,
                bits,
                signed,
            } => {
                let bytes = &mut cell[at..at + width];
                let mut value = [0; 8];
                value[..width].copy_from_slice(bytes);
                let unused = 64 - bits;
                let high = u64::from_le_bytes(value) >> shift << unused;
                let value = match signed {
                    true => ((high as i64) >> unused) as u64,
                    false => high >> unused,
                };
                bytes.copy_from_slice(&value.to_le_bytes()[..width]);
            }
            Fix::Text { at, len, spaces } => {
                let text = &mut cell[at..at + len];
                let end = match spaces {
                    true => text.iter().rposition(|b| *b != b' ').map_or(0, |i| i + 1),
                    false => text.iter().position(|b| *b == 0).unwrap_or(len),
                };
                text[end..].fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fix;

    #[test]
    fn bits_of_numbers_are_moved_and_extended() {
        let fix = |signed, bits, shift| Fix::Bits {
            at: 1,
            width: 2,
            shift,
            bits,
            signed,
        };
        for (stored, signed, bits, shift, expected) in [
            (0x0ffe_u16, true, 12, 0, 0xfffe_u16),
            (0x07fe, true, 12, 0, 0x07fe),
            (0xfffe, false, 12, 0, 0x0ffe),
            (0xabc0, false, 12, 4, 0x0abc),
            (0xabc0, true, 12, 4, 0xfabc),
            (0x8000, true, 16, 0, 0x8000),
        ] {
            let mut cells = [7, 0, 0, 7, 0, 0];
            cells[1..3].copy_from_slice(&stored.to_le_bytes());
            fix(signed, bits, shift).apply(&mut cells, 3);
            assert_eq!(cells[1..3], expected.to_le_bytes());
            assert_eq!((cells[0], cells[3]), (7, 7));
        }
    }

    #[test]
    fn texts_end_where_they_should() {
        for (stored, spaces, expected) in [
            (b"ab\0cd", false, b"ab\0\0\0"),
            (b"abcde", false, b"abcde"),
            (b"a b  ", true, b"a b\0\0"),
            (b"     ", true, b"\0\0\0\0\0"),
            (b"ab\0  ", true, b"ab\0\0\0"),
        ] {
            let mut cells = *stored;
            Fix::Text {
                at: 0,
                len: 5,
                spaces,
            }
            .apply(&mut cells, 5);
            assert_eq!(&cells, expected);
        }
    }
}
