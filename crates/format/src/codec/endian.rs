//! Byte order: turns big-endian numbers in a buffer of cells into little-endian ones, and back.

/// Which numbers of every cell are stored big-endian.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Swap {
    /// None: the stored form is the form in memory.
    #[default]
    None,
    /// The cell is nothing but numbers of this width.
    Uniform(usize),
    /// (offset, width) of each in a cell of the given size.
    Fields(usize, Vec<(u32, u32)>),
}

impl Swap {
    /// The swap of cells of `cell_bytes` bytes whose big-endian numbers are `numbers`.
    pub(crate) fn new(cell_bytes: usize, numbers: &[(u32, u32)]) -> Self {
        match numbers.first() {
            None => Swap::None,
            Some((_, width)) => {
                let width = *width as usize;
                let tiles = numbers.len() * width == cell_bytes
                    && numbers.iter().all(|(_, w)| *w as usize == width);
                if tiles {
                    Swap::Uniform(width)
                } else {
                    Swap::Fields(cell_bytes, numbers.to_vec())
                }
            }
        }
    }

    #[cfg(test)]
    fn is_none(&self) -> bool {
        *self == Swap::None
    }

    /// Reverses the bytes of the numbers in place; its own inverse.
    pub(crate) fn apply(&self, cells: &mut [u8]) {
        match self {
            Swap::None => {}
            Swap::Uniform(2) => reverse::<2>(cells),
            Swap::Uniform(4) => reverse::<4>(cells),
            Swap::Uniform(8) => reverse::<8>(cells),
            Swap::Uniform(width) => cells.chunks_exact_mut(*width).for_each(<[u8]>::reverse),
            Swap::Fields(size, numbers) => {
                for cell in cells.chunks_exact_mut(*size) {
                    for (offset, width) in numbers {
                        let from = *offset as usize;
                        cell[from..from + *width as usize].reverse();
                    }
                }
            }
        }
    }
}

fn reverse<const W: usize>(cells: &mut [u8]) {
    cells
        .as_chunks_mut::<W>()
        .0
        .iter_mut()
        .for_each(|number| number.reverse());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_turn_round() {
        let mut cells = [1, 2, 3, 4, 5, 6, 7, 8];
        Swap::new(8, &[(0, 4), (4, 4)]).apply(&mut cells);
        assert_eq!(cells, [4, 3, 2, 1, 8, 7, 6, 5]);
        let mut cells = [1, 2, 3, 4, 5, 6];
        Swap::new(3, &[(1, 2)]).apply(&mut cells);
        assert_eq!(cells, [1, 3, 2, 4, 6, 5]);
        assert!(Swap::new(4, &[]).is_none());
    }
}
