//! The records of a trace, as bytes.
//!
//! A trace is a magic line and then records, each with its length before it, so that a record that
//! a killed process left half-written is told from a whole one. Numbers are written seven bits at a
//! time, the lowest first, with the eighth bit set on all but the last byte.

use hyperslab_index::{DimSlab, Hyperslab, MAX_RANK, Region, Selection, Shape};

use super::{Chosen, Process, TracedArray};
use crate::{Error, Result};

/// The first bytes of every trace.
pub(super) const MAGIC: &[u8] = b"hyperslab trace 1\n";

/// Coordinates of the points of one read that are written down; of more, only the box around them is.
const MOST_COORDINATES: usize = 4096;
/// Dimensions of an array, at most.
const MOST_DIMS: u64 = MAX_RANK as u64;
/// Bytes of a record, at most: a longer one is a damaged trace.
const MOST_BYTES: u64 = 1 << 20;

/// Kinds of records.
const PROCESS: u64 = 1;
const ARRAY: u64 = 2;
const READ: u64 = 3;
/// Kinds of selections.
const ALL: u64 = 0;
const SLAB: u64 = 1;
const POINTS: u64 = 2;
const AROUND: u64 = 3;

/// A record.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Record {
    /// A process, which gets the next number.
    Process(Process),
    /// An array, which gets the next number.
    Array(TracedArray),
    /// A read.
    Read(Read),
}

/// A read, with numbers of the process and the array that were recorded before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Read {
    pub(super) process: u64,
    pub(super) array: u64,
    /// Microseconds since 1970.
    pub(super) at: u64,
    /// Microseconds.
    pub(super) took: u64,
    pub(super) chosen: Chosen,
}

impl Chosen {
    /// What is written down of a selection.
    pub(super) fn of(selection: &Selection, shape: &Shape) -> Chosen {
        match selection {
            Selection::All => Chosen::All,
            Selection::Hyperslab(slab) => Chosen::Slab(slab.clone()),
            Selection::Points(points) if points.flat_coords().len() <= MOST_COORDINATES => {
                Chosen::Points {
                    rank: points.rank(),
                    coordinates: points.flat_coords().to_vec(),
                }
            }
            Selection::Union(_) | Selection::Points(_) => Chosen::Around {
                region: selection.bounding(shape),
                cells: selection.num_cells(shape),
            },
        }
    }
}

impl Record {
    /// Appends the record; reads are relative to the time of the last one.
    pub(super) fn write(&self, last: &mut u64, out: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(64);
        match self {
            Record::Process(process) => {
                put(PROCESS, &mut body);
                put_text(&process.host, &mut body);
                put(u64::from(process.pid), &mut body);
                put(process.started, &mut body);
            }
            Record::Array(array) => {
                put(ARRAY, &mut body);
                put_text(&array.url, &mut body);
                put(array.cell_bytes, &mut body);
                put_list(&array.shape, &mut body);
                put_list(&array.chunks, &mut body);
            }
            Record::Read(read) => {
                put(READ, &mut body);
                put(read.process, &mut body);
                put(read.array, &mut body);
                put(zigzag(read.at.wrapping_sub(*last) as i64), &mut body);
                *last = read.at;
                put(read.took, &mut body);
                put_chosen(&read.chosen, &mut body);
            }
        }
        put(body.len() as u64, out);
        out.extend_from_slice(&body);
    }

    /// Takes the next record off `bytes`; `None` if it is not whole. Records of kinds that are not
    /// known are skipped.
    pub(super) fn read(bytes: &mut &[u8], last: &mut u64) -> Result<Option<Record>> {
        loop {
            let mut rest = *bytes;
            let Some(length) = take(&mut rest) else {
                return Ok(None);
            };
            if length > MOST_BYTES {
                return Err(damaged());
            }
            let Some((body, after)) = rest.split_at_checked(length as usize) else {
                return Ok(None);
            };
            *bytes = after;
            if let Some(record) = parse(body, last).ok_or_else(damaged)? {
                return Ok(Some(record));
            }
        }
    }
}

pub(super) fn damaged() -> Error {
    Error::data("the trace is damaged: a record makes no sense")
}

/// A record, or `None` within if its kind is not known; `None` if it makes no sense.
fn parse(mut body: &[u8], last: &mut u64) -> Option<Option<Record>> {
    let body = &mut body;
    Some(Some(match take(body)? {
        PROCESS => Record::Process(Process {
            host: take_text(body)?,
            pid: take(body)?.try_into().ok()?,
            started: take(body)?,
        }),
        ARRAY => Record::Array(TracedArray {
            url: take_text(body)?,
            cell_bytes: take(body)?,
            shape: take_list(body, MOST_DIMS)?,
            chunks: take_list(body, MOST_DIMS)?,
        }),
        READ => {
            let (process, array) = (take(body)?, take(body)?);
            let at = last.wrapping_add(unzigzag(take(body)?) as u64);
            *last = at;
            Record::Read(Read {
                process,
                array,
                at,
                took: take(body)?,
                chosen: take_chosen(body)?,
            })
        }
        _ => return Some(None),
    }))
}

fn put_chosen(chosen: &Chosen, out: &mut Vec<u8>) {
    match chosen {
        Chosen::All => put(ALL, out),
        Chosen::Slab(slab) => {
            put(SLAB, out);
            put(slab.rank() as u64, out);
            for dim in slab.dims() {
                // One block is what most slabs are.
                let one = dim.count == 1 && dim.stride == dim.block;
                put(dim.start, out);
                put(dim.block << 1 | u64::from(!one), out);
                if !one {
                    put(dim.stride, out);
                    put(dim.count, out);
                }
            }
        }
        Chosen::Points { rank, coordinates } => {
            put(POINTS, out);
            put(*rank as u64, out);
            put_list(coordinates, out);
        }
        Chosen::Around { region, cells } => {
            put(AROUND, out);
            put(*cells, out);
            let corners = region
                .as_ref()
                .map(|region| (region.start(), region.shape()));
            let (start, sides) = corners.unwrap_or_default();
            put_list(start, out);
            put_list(sides, out);
        }
    }
}

fn take_chosen(body: &mut &[u8]) -> Option<Chosen> {
    Some(match take(body)? {
        ALL => Chosen::All,
        SLAB => {
            let rank = take(body).filter(|rank| *rank <= MOST_DIMS)?;
            let dims: Option<Vec<DimSlab>> = (0..rank).map(|_| take_dim(body)).collect();
            Chosen::Slab(Hyperslab::from_dims(dims?).ok()?)
        }
        POINTS => {
            let rank = take(body).filter(|rank| *rank <= MOST_DIMS)? as usize;
            let coordinates = take_list(body, MOST_COORDINATES as u64)?;
            Chosen::Points { rank, coordinates }
        }
        AROUND => {
            let cells = take(body)?;
            let (start, sides) = (take_list(body, MOST_DIMS)?, take_list(body, MOST_DIMS)?);
            let region = match cells {
                0 => None,
                _ => Some(Region::new(start, sides).ok()?),
            };
            Chosen::Around { region, cells }
        }
        _ => return None,
    })
}

fn take_dim(body: &mut &[u8]) -> Option<DimSlab> {
    let (start, block) = (take(body)?, take(body)?);
    let (stride, count) = match block & 1 {
        0 => (block >> 1, 1),
        _ => (take(body)?, take(body)?),
    };
    Some(DimSlab {
        start,
        stride,
        count,
        block: block >> 1,
    })
}

fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f).checked_shl(7 * i as u32)?;
        if byte & 0x80 == 0 {
            *bytes = &bytes[i + 1..];
            return Some(number);
        }
    }
    None
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    put(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(take(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn put_list(list: &[u64], out: &mut Vec<u8>) {
    put(list.len() as u64, out);
    for number in list {
        put(*number, out);
    }
}

fn take_list(bytes: &mut &[u8], most: u64) -> Option<Vec<u64>> {
    let length = take(bytes).filter(|length| *length <= most)?;
    (0..length).map(|_| take(bytes)).collect()
}

/// Small numbers of either sign as small numbers.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
