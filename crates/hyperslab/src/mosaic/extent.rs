//! How long a virtual dataset is whose mapping has no limit, and which sources it has now.
//!
//! Under [`super`]. A mapping without limit goes as far as its source does; one whose source has a
//! number in its name (`%b`) as far as there are sources with the next number.

use hyperslab_format::hdf5::{Entry, Slab, Stored};
use hyperslab_index::Shape;

use super::Mosaic;
use crate::{Array, Error, Result};

/// Sources of one mapping with numbers, at most.
const MOST_NUMBERED: u64 = 1 << 20;

/// Gives a mosaic its tiles, and returns the shape that it has.
pub(super) async fn settle(
    mosaic: &mut Mosaic,
    entries: Vec<Entry>,
    shape: &Shape,
) -> Result<Shape> {
    let mut sides: Vec<u64> = shape.to_vec();
    let mut unlimited: Vec<Option<u64>> = vec![None; sides.len()];
    let mut least: Vec<u64> = vec![0; sides.len()];
    for entry in entries {
        let Some((dim, slab)) = endless(&entry.place) else {
            bounds(&entry.place, &mut least);
            mosaic.push(entry, None);
            continue;
        };
        let end = if endless(&entry.source).is_some() {
            whole(mosaic, entry, slab).await?
        } else {
            numbered(mosaic, entry, dim, slab).await?
        };
        if let Some(known) = unlimited.get_mut(dim) {
            *known = Some(known.unwrap_or(0).max(end));
        }
    }
    for (dim, end) in unlimited.iter().enumerate() {
        if let Some(end) = end {
            sides[dim] = (*end).max(least[dim]);
        }
    }
    Shape::new(sides)
}

/// The dimension along which a selection has no limit.
fn endless(stored: &Stored) -> Option<(usize, Slab)> {
    let Stored::Regular(slabs) = stored else {
        return None;
    };
    let mut dims = slabs.iter().enumerate();
    dims.find(|(_, slab)| slab.is_unlimited())
        .map(|(dim, slab)| (dim, *slab))
}

/// Notes how far a selection reaches.
fn bounds(stored: &Stored, least: &mut [u64]) {
    let mut reach = |dim: usize, end: u64| {
        if let Some(least) = least.get_mut(dim) {
            *least = (*least).max(end);
        }
    };
    match stored {
        Stored::None | Stored::All => {}
        Stored::Regular(slabs) => {
            for (dim, slab) in slabs.iter().enumerate() {
                reach(dim, slab.end_of(slab.count.saturating_mul(slab.block)));
            }
        }
        Stored::Boxes(boxes) => {
            for corners in boxes {
                for (dim, (_, last)) in corners.iter().enumerate() {
                    reach(dim, last.saturating_add(1));
                }
            }
        }
        Stored::Points(points) => {
            for point in points {
                for (dim, at) in point.iter().enumerate() {
                    reach(dim, at.saturating_add(1));
                }
            }
        }
    }
}

/// A tile that is as long as its source; returns where it ends.
async fn whole(mosaic: &mut Mosaic, entry: Entry, place: Slab) -> Result<u64> {
    let Some(source) = mosaic.source(&entry).await? else {
        return Ok(0);
    };
    let (dim, slab) = match endless(&entry.source) {
        Some(found) => found,
        None => return Err(Error::internal("a source without limit has one")),
    };
    let cells = slab.cells_before(side(&source, dim)?);
    mosaic.push(entry, Some(cells));
    Ok(place.end_of(cells))
}

fn side(source: &Array, dim: usize) -> Result<u64> {
    let shape = source.shape();
    shape.get(dim).copied().ok_or_else(|| {
        Error::data("the mapping of a virtual dataset has more dimensions than its source")
            .context(source.url())
    })
}

/// The tiles whose sources have numbers; returns where the last one ends.
async fn numbered(mosaic: &mut Mosaic, entry: Entry, dim: usize, place: Slab) -> Result<u64> {
    let mut end = 0;
    let has_number = has_number(&entry.file) || has_number(&entry.dataset);
    if !has_number || place.block == u64::MAX {
        return Err(Error::data(
            "a virtual dataset has no limit, but its source has one and no number in its name",
        ));
    }
    for number in 0..MOST_NUMBERED {
        let next = Entry {
            file: with_number(&entry.file, number),
            dataset: with_number(&entry.dataset, number),
            source: entry.source.clone(),
            place: nth(&entry.place, dim, number),
        };
        if mosaic.find(&next).await?.is_none() {
            break;
        }
        end = place.end_of((number + 1).saturating_mul(place.block));
        mosaic.push(next, None);
    }
    Ok(end)
}

fn nth(stored: &Stored, dim: usize, number: u64) -> Stored {
    let Stored::Regular(slabs) = stored else {
        return stored.clone();
    };
    let mut slabs = slabs.clone();
    let slab = &mut slabs[dim];
    slab.start = slab
        .start
        .saturating_add(number.saturating_mul(slab.stride));
    slab.count = 1;
    Stored::Regular(slabs)
}

/// True if a name has a place for a number.
fn has_number(name: &str) -> bool {
    name.replace("%%", "").contains("%b")
}

/// A name with its number; a doubled percent sign is one.
pub(super) fn with_number(name: &str, number: u64) -> String {
    let mut out = String::new();
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('%', Some('b')) => {
                chars.next();
                out.push_str(&number.to_string());
            }
            ('%', Some('%')) => {
                chars.next();
                out.push('%');
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        assert_eq!(with_number("f_%b.h5", 12), "f_12.h5");
        assert_eq!(with_number("100%%_%b%b", 3), "100%_33");
        assert!(has_number("a%b"));
        assert!(!has_number("a%%b"));
    }
}
