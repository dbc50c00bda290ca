//! Selections written as NumPy writes them.
//!
//! Sits on [`Selection`]; the command line, SQL and query strings parse with it.
//!
//! Invariant: with [`Bounds::Clip`] the result is the one of NumPy's basic indexing, after the
//! dimensions marked in `flip` are reversed.

use crate::{DimSlab, Dims, Error, Hyperslab, Result, Selection, Shape};

/// What to do with slices that reach beyond the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// An error.
    #[default]
    Strict,
    /// Cut them off, as NumPy does.
    Clip,
}

/// A parsed list of slices.
#[derive(Clone, Debug)]
pub struct Slicing {
    /// The cells, in ascending order along each dimension.
    pub selection: Selection,
    /// The result's shape as NumPy has it: dimensions indexed by an integer are gone.
    pub shape: Shape,
    /// The same with those dimensions as 1, the shape of `selection`.
    pub full_shape: Shape,
    /// Per dimension of `full_shape`: reverse the result along it (a negative step).
    pub flip: Vec<bool>,
}

/// What stands between two commas.
enum Item<'a> {
    Ellipsis,
    Index(i128),
    Slice(&'a str),
}

/// Parses NumPy basic indices without brackets, such as `0:10, :, -1` or `..., ::2`. An empty text
/// is everything; integers out of range are errors whatever the bounds.
pub fn parse_slices(text: &str, shape: &Shape, bounds: Bounds) -> Result<Slicing> {
    let items = items(text)?;
    let given = items
        .iter()
        .filter(|item| !matches!(item, Item::Ellipsis))
        .count();
    if items.len() - given > 1 {
        return Err(
            Error::invalid(format!("the slices '{text}' have more than one '...'"))
                .with_hint("write ':' for single dimensions"),
        );
    }
    let Some(missing) = shape.rank().checked_sub(given) else {
        return Err(Error::invalid(format!(
            "the slices '{text}' have {given} indices, but the array's shape is {shape}"
        ))
        .with_hint(format!("give at most {} indices", shape.rank())));
    };
    let mut dims: Vec<(DimSlab, bool, bool)> = Vec::with_capacity(shape.rank());
    let whole = |dims: &mut Vec<(DimSlab, bool, bool)>, many: usize| {
        for _ in 0..many {
            dims.push((DimSlab::contiguous(0, shape[dims.len()]), false, true));
        }
    };
    for item in &items {
        let dim = dims.len();
        match *item {
            Item::Ellipsis => whole(&mut dims, missing),
            Item::Index(index) => {
                dims.push((
                    DimSlab::contiguous(resolve(index, dim, shape)?, 1),
                    false,
                    false,
                ));
            }
            Item::Slice(slice) => {
                let (slab, flip) = parse_slice(slice, dim, shape, bounds)?;
                dims.push((slab, flip, true));
            }
        }
    }
    // Without an ellipsis the rest is taken whole; with one, nothing is left.
    let rest = shape.rank() - dims.len();
    whole(&mut dims, rest);

    let slab = Hyperslab::from_dims(dims.iter().map(|(slab, ..)| *slab))?;
    let full_shape = Shape::trusted(slab.result_shape());
    let kept = full_shape
        .iter()
        .zip(&dims)
        .filter(|(_, (.., kept))| *kept)
        .map(|(side, _)| *side);
    Ok(Slicing {
        shape: Shape::trusted(kept.collect::<Dims>()),
        flip: dims.iter().map(|(_, flip, _)| *flip).collect(),
        selection: match full_shape == *shape {
            true => Selection::All,
            false => Selection::Hyperslab(slab),
        },
        full_shape,
    })
}

fn items(text: &str) -> Result<Vec<Item<'_>>> {
    if text.contains(['[', ']', '(', ')']) {
        return Err(Error::invalid(format!("the slices '{text}' have brackets"))
            .with_hint("leave the brackets out: 0:10, :, 5"));
    }
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(Vec::new());
    }
    // Python allows one comma after the last index.
    let trimmed = trimmed.strip_suffix(',').unwrap_or(trimmed);
    trimmed
        .split(',')
        .map(|item| parse_item(item.trim(), text))
        .collect()
}

fn parse_item<'a>(item: &'a str, text: &str) -> Result<Item<'a>> {
    match item {
        "" => Err(Error::invalid(format!(
            "the slices '{text}' have nothing between two commas"
        ))
        .with_hint("write ':' for a whole dimension")),
        "..." => Ok(Item::Ellipsis),
        "None" | "newaxis" | "np.newaxis" | "numpy.newaxis" => Err(Error::invalid(format!(
            "'{item}' in '{text}' adds a dimension, which is not supported"
        ))
        .with_hint("leave it out and reshape the result")),
        _ if item.contains(':') => Ok(Item::Slice(item)),
        _ => Ok(Item::Index(parse_number(item, item)?)),
    }
}

fn parse_number(number: &str, item: &str) -> Result<i128> {
    let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
    // i128 cannot overflow with 30 digits, and no array needs more than 19.
    if digits.is_empty() || digits.len() > 30 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(
            Error::invalid(format!("'{number}' in '{item}' is not an integer"))
                .with_hint("write an index such as 5, a slice such as 0:10:2, or '...'"),
        );
    }
    number
        .parse()
        .map_err(|_| Error::invalid(format!("'{number}' is not an integer")))
}

/// A coordinate that may count from the end.
fn resolve(index: i128, dim: usize, shape: &Shape) -> Result<u64> {
    let side = i128::from(shape[dim]);
    let from_start = if index < 0 { index + side } else { index };
    if (0..side).contains(&from_start) {
        return Ok(from_start as u64);
    }
    Err(Error::invalid(format!(
        "the index {index} is out of bounds in dimension {dim} of the array's shape {shape}"
    ))
    .with_hint(match side {
        0 => format!("dimension {dim} has no cells"),
        _ => format!("use -{side} to {}", side - 1),
    }))
}

/// The coordinates of a slice in ascending order, and whether the result is to be reversed.
fn parse_slice(item: &str, dim: usize, shape: &Shape, bounds: Bounds) -> Result<(DimSlab, bool)> {
    let mut fields = [None; 3];
    for (at, number) in item.split(':').enumerate() {
        let Some(field) = fields.get_mut(at) else {
            return Err(
                Error::invalid(format!("the slice '{item}' has more than two colons"))
                    .with_hint("write start:stop:step"),
            );
        };
        let number = number.trim();
        if !number.is_empty() {
            *field = Some(parse_number(number, item)?);
        }
    }
    let [start, stop, step] = fields;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(
            Error::invalid(format!("the slice '{item}' has a step of 0"))
                .with_hint("leave the step out or make it 1"),
        );
    }
    let side = i128::from(shape[dim]);
    // Going down, a slice may end before the first cell, and starts at the last one at most.
    let (least, most) = if step > 0 { (0, side) } else { (-1, side - 1) };
    let edge = |given: Option<i128>, default: i128| -> Result<i128> {
        let Some(given) = given else {
            return Ok(default);
        };
        if bounds == Bounds::Strict && !(-side..=side).contains(&given) {
            return Err(Error::invalid(format!(
                "the slice '{item}' reaches beyond dimension {dim} of the array's shape {shape}"
            ))
            .with_hint(format!("stay within -{side} and {side}")));
        }
        Ok((if given < 0 { given + side } else { given }).clamp(least, most))
    };
    let (first, last) = if step > 0 {
        (least, most)
    } else {
        (most, least)
    };
    let (start, stop) = (edge(start, first)?, edge(stop, last)?);
    let distance = if step > 0 { stop - start } else { start - stop };
    if distance <= 0 {
        return Ok((DimSlab::contiguous(0, 0), false));
    }
    let stride = step.abs();
    let count = (distance - 1) / stride + 1;
    let low = if step > 0 {
        start
    } else {
        start - (count - 1) * stride
    };
    // With one cell the step is not used, and it may be larger than any coordinate.
    let stride = if count == 1 { 1 } else { stride };
    let slab = DimSlab {
        start: low as u64,
        stride: stride as u64,
        count: count as u64,
        block: 1,
    };
    Ok((slab, step < 0 && count > 1))
}

#[cfg(test)]
mod tests;
