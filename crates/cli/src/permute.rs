//! Moves cells in memory: reversed axes and Fortran order.
//!
//! Sits between slices (negative steps), `.npy` files (Fortran order) and the facade, whose
//! buffers are always row-major and ascending.

/// Copies the cells of a row-major buffer so that the marked axes run backwards.
pub(crate) fn flip<T: Clone>(cells: Vec<T>, shape: &[u64], flips: &[bool], width: usize) -> Vec<T> {
    if !flips
        .iter()
        .zip(shape)
        .any(|(flip, side)| *flip && *side > 1)
    {
        return cells;
    }
    // Without the axes behind the last reversed one, which move as whole blocks.
    let last = flips.iter().rposition(|flip| *flip).unwrap_or(0);
    let block = width * shape[last + 1..].iter().product::<u64>() as usize;
    let mut out = Vec::with_capacity(cells.len());
    for_each(&shape[..=last], |at| {
        let from = at
            .iter()
            .zip(&shape[..=last])
            .zip(flips)
            .fold(0, |offset, ((i, side), flip)| {
                offset * side + if *flip { side - 1 - i } else { *i }
            }) as usize;
        out.extend_from_slice(&cells[from * block..(from + 1) * block]);
    });
    out
}

/// Turns cells whose first dimension varies fastest into row-major order.
pub(crate) fn from_fortran(cells: &[u8], shape: &[u64], width: usize) -> Vec<u8> {
    let mut out = vec![0; cells.len()];
    let rank = shape.len();
    if rank < 2 || cells.is_empty() {
        out.copy_from_slice(cells);
        return out;
    }
    // The distance in the source between neighbours along each dimension, in cells.
    let mut strides = vec![1usize; rank];
    for dim in 1..rank {
        strides[dim] = strides[dim - 1] * shape[dim - 1] as usize;
    }
    let row = shape[rank - 1] as usize;
    let stride = strides[rank - 1] * width;
    let mut to = 0;
    for_each(&shape[..rank - 1], |at| {
        let base: usize = at.iter().zip(&strides).map(|(i, s)| *i as usize * s).sum();
        let mut from = base * width;
        for _ in 0..row {
            out[to..to + width].copy_from_slice(&cells[from..from + width]);
            to += width;
            from += stride;
        }
    });
    out
}

/// Visits every coordinate of a shape in row-major order.
pub(crate) fn for_each(shape: &[u64], mut visit: impl FnMut(&[u64])) {
    if shape.contains(&0) {
        return;
    }
    let mut at = vec![0; shape.len()];
    loop {
        visit(&at);
        let Some(dim) = (0..shape.len())
            .rev()
            .find(|dim| at[*dim] + 1 < shape[*dim])
        else {
            return;
        };
        at[dim] += 1;
        at[dim + 1..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_equal_a_naive_model() {
        let shape = [3u64, 2, 4];
        let cells: Vec<u16> = (0..24).collect();
        for bits in 0..8 {
            let flips = [bits & 1 > 0, bits & 2 > 0, bits & 4 > 0];
            let mut expected = Vec::new();
            for_each(&shape, |at| {
                let from = (0..3).fold(0, |o, d| {
                    o * shape[d]
                        + if flips[d] {
                            shape[d] - 1 - at[d]
                        } else {
                            at[d]
                        }
                });
                expected.push(cells[from as usize]);
            });
            assert_eq!(
                flip(cells.clone(), &shape, &flips, 1),
                expected,
                "{flips:?}"
            );
        }
        assert_eq!(flip(vec![1, 2, 3, 4], &[2], &[true], 2), [3, 4, 1, 2]);
        assert!(flip(Vec::<u8>::new(), &[0, 3], &[true, true], 1).is_empty());
    }

    #[test]
    fn fortran_order_is_undone() {
        let shape = [2u64, 3, 4];
        let mut fortran = vec![0u8; 24];
        let mut expected = Vec::new();
        for_each(&shape, |at| {
            let row_major = (at[0] * 12 + at[1] * 4 + at[2]) as u8;
            fortran[(at[0] + at[1] * 2 + at[2] * 6) as usize] = row_major;
            expected.push(row_major);
        });
        assert_eq!(from_fortran(&fortran, &shape, 1), expected);
        assert_eq!(from_fortran(&[1, 2, 3, 4], &[2], 2), [1, 2, 3, 4]);
        assert_eq!(from_fortran(&[7], &[], 1), [7]);
    }
}
