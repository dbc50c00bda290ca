//! A result as text, the way NumPy prints it: nested brackets, aligned, with `...` where a large
//! result was cut.

use hyperslab::{Error, Result};

use crate::cell;
use crate::target::Target;

/// Results with more cells are shown by their edges.
const SHOWN: u64 = 1000;
/// Cells that edges may add up to.
const EDGE_CELLS: u64 = 10_000;

/// The text of a result, reading no more than is shown.
pub(crate) async fn render(target: &Target) -> Result<String> {
    let full = &target.full_shape;
    if full.num_cells() == 0 {
        return Ok(format!("[] (shape {}, {})", target.shape, target.dtype));
    }
    let wanted: Vec<Vec<u64>> = match full.num_cells() <= SHOWN {
        true => full.iter().map(|side| (0..*side).collect()).collect(),
        false => {
            let edge = edge(full)?;
            full.iter().map(|side| picked(*side, edge)).collect()
        }
    };
    let cells = match full.num_cells() <= SHOWN {
        true => {
            let block = target.blocks(u64::MAX).next();
            let block = block.ok_or_else(|| Error::internal("a result has no block"))?;
            target.read(&block).await?
        }
        false => target.read_picked(&wanted).await?,
    };
    let width = target.dtype.cell_bytes().unwrap_or(0) as usize;
    let quote = |text: String| match cell::is_number(&target.dtype) {
        true => text,
        false => format!("{text:?}"),
    };
    let texts: Vec<String> = (0..cells.len(width))
        .map(|index| quote(cell::text(&target.dtype, cells.get(index, width))))
        .collect();
    // What is shown of a side follows from its length alone, so dimensions that an integer indexed
    // (one cell, no brackets) need no bookkeeping.
    let sides: Vec<(usize, bool)> = target
        .shape
        .iter()
        .map(|side| {
            let shown = full
                .iter()
                .position(|s| s == side)
                .map_or(0, |dim| wanted[dim].len());
            (shown, (shown as u64) < *side)
        })
        .collect();
    Ok(layout(&texts, &sides))
}

/// How many cells of each end are shown: three as NumPy does, fewer if there are many dimensions.
fn edge(shape: &[u64]) -> Result<u64> {
    for edge in [3, 2, 1] {
        let cells = shape
            .iter()
            .try_fold(1u64, |n, side| n.checked_mul((2 * edge).min(*side)));
        if cells.is_some_and(|n| n <= EDGE_CELLS) {
            return Ok(edge);
        }
    }
    Err(Error::invalid(format!(
        "a result of {} dimensions is too large to print",
        shape.len()
    ))
    .with_hint("select less, or write it to a file with -o"))
}

/// The first and last coordinates of a side.
fn picked(side: u64, edge: u64) -> Vec<u64> {
    match side <= 2 * edge {
        true => (0..side).collect(),
        false => (0..edge).chain(side - edge..side).collect(),
    }
}

/// Nested brackets; each side is (cells shown, whether some were left out in the middle).
fn layout(texts: &[String], sides: &[(usize, bool)]) -> String {
    let wide = texts
        .iter()
        .map(|text| text.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    nest(texts, sides, wide, 0, &mut out);
    out
}

fn nest(texts: &[String], sides: &[(usize, bool)], wide: usize, depth: usize, out: &mut String) {
    let Some(((shown, cut), rest)) = sides.split_first() else {
        if let Some(text) = texts.first() {
            // Alignment is for columns; a scalar stands alone.
            let pad = if depth == 0 {
                0
            } else {
                wide - text.chars().count()
            };
            out.push_str(&" ".repeat(pad));
            out.push_str(text);
        }
        return;
    };
    let size = texts.len() / shown;
    out.push('[');
    for at in 0..*shown {
        if at > 0 {
            separate(rest.len(), depth, out);
        }
        if *cut && at == shown / 2 {
            out.push_str("...");
            separate(rest.len(), depth, out);
        }
        nest(
            &texts[at * size..(at + 1) * size],
            rest,
            wide,
            depth + 1,
            out,
        );
    }
    out.push(']');
}

/// A space within a row; line breaks, one per closed dimension, between rows.
fn separate(inner_rank: usize, depth: usize, out: &mut String) {
    match inner_rank {
        0 => out.push(' '),
        _ => {
            out.push_str(&"\n".repeat(inner_rank));
            out.push_str(&" ".repeat(depth + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(many: usize) -> Vec<String> {
        (0..many).map(|n| n.to_string()).collect()
    }

    #[test]
    fn brackets_nest_as_numpy_prints_them() {
        assert_eq!(layout(&numbers(1), &[]), "0");
        assert_eq!(layout(&numbers(3), &[(3, false)]), "[0 1 2]");
        assert_eq!(
            layout(&numbers(4), &[(2, false), (2, false)]),
            "[[0 1]\n [2 3]]"
        );
        assert_eq!(
            layout(&numbers(8), &[(2, false), (2, false), (2, false)]),
            "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"
        );
        assert_eq!(
            layout(&numbers(12), &[(12, false)]),
            "[ 0  1  2  3  4  5  6  7  8  9 10 11]"
        );
        assert_eq!(layout(&numbers(6), &[(6, true)]), "[0 1 2 ... 3 4 5]");
        assert_eq!(
            layout(&numbers(4), &[(2, true), (2, false)]),
            "[[0 1]\n ...\n [2 3]]"
        );
    }

    #[test]
    fn edges_shrink_with_the_rank() {
        assert_eq!(edge(&[100, 100]).unwrap(), 3);
        assert_eq!(edge(&[9; 6]).unwrap(), 2);
        assert_eq!(edge(&[9; 13]).unwrap(), 1);
        assert!(edge(&[9; 20]).is_err());
        assert_eq!(picked(7, 3), [0, 1, 2, 4, 5, 6]);
        assert_eq!(picked(6, 3), [0, 1, 2, 3, 4, 5]);
    }
}
