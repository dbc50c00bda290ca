//! Moves cells between stored chunks and the caller's buffer.
//!
//! The inner loop of every read and write. Decoded chunks are copied cell run by cell run; raw
//! chunks on local disk are read into their place, or through a window that a core's cache holds.

use std::cell::Cell;
use std::ops::Range;

use bytes::Bytes;
use hyperslab_format::CodecChain;
use hyperslab_index::{CellOrder, Part, StridedCopy, Target};
use hyperslab_store::Body;

use crate::buffers::{Landing, collides};
use crate::canvas::{Access, Canvas};
use crate::clip::clip;
use crate::{Error, Result};

/// Files are read through a window of this size, which stays in a core's cache.
const WINDOW: usize = 128 << 10;
/// Pieces at most this far apart are read in one go.
const NEAR: u64 = 8 << 10;

/// Shorter rows are brought together before they are written.
const LEAST_ROW: usize = 1 << 10;

thread_local! {
    /// The window of each thread that reads files.
    static WINDOWS: Cell<Landing> = const { Cell::new(Landing::new()) };
}

/// Where the cells of a query's result lie.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    pub(crate) canvas: Canvas,
    pub(crate) target: Target,
    pub(crate) cell: usize,
}

/// Where pieces of an answer go: `count` of `len` bytes each, `step` bytes apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) at: usize,
    pub(crate) len: usize,
    pub(crate) step: usize,
    pub(crate) count: usize,
}

fn outside() -> Error {
    Error::internal("a cell would land outside the caller's buffer")
}

fn closed() -> Error {
    Error::unavailable("the read was cancelled")
}

impl Destination {
    fn access(&self) -> Result<Access<'_>> {
        self.canvas.access().ok_or_else(closed)
    }

    /// Copies the selected cells of a decoded chunk to their places.
    pub(crate) fn scatter(&self, cells: &[u8], part: &Part, order: &CellOrder) -> Result<()> {
        let access = self.access()?;
        for copy in part.copies(order, &self.target) {
            let ok = match (copy.len as usize * self.cell, copy.count) {
                (1, 2..) => strided::<1>(&access, cells, &copy),
                (2, 2..) => strided::<2>(&access, cells, &copy),
                (4, 2..) => strided::<4>(&access, cells, &copy),
                (8, 2..) => strided::<8>(&access, cells, &copy),
                (16, 2..) => strided::<16>(&access, cells, &copy),
                (len, _) => pieces(&copy, self.cell).all(|(src, dst)| {
                    cells
                        .get(src..src + len)
                        .is_some_and(|piece| access.put(dst, piece))
                }),
            };
            if !ok {
                return Err(outside());
            }
        }
        Ok(())
    }

    /// Writes one value into all cells of a part.
    pub(crate) fn scatter_fill(&self, fill: &[u8], part: &Part, order: &CellOrder) -> Result<()> {
        let access = self.access()?;
        let value = FillSpan::new(fill);
        for copy in part.copies(order, &self.target) {
            let len = copy.len as usize * self.cell;
            for (_, dst) in pieces(&copy, self.cell) {
                value.write(access.slice_mut(dst, len).ok_or_else(outside)?);
            }
        }
        Ok(())
    }

    /// Copies the selected cells of a raw chunk to their places, straight from the response.
    /// `base` is the offset of the body's first byte in the chunk.
    pub(crate) fn scatter_body(
        &self,
        bodies: &[(u64, Body)],
        part: &Part,
        order: &CellOrder,
    ) -> Result<()> {
        if let [(0, Body::Memory(segments))] = bodies
            && let [only] = segments.as_slice()
        {
            return self.scatter(only, part, order);
        }
        let access = self.access()?;
        let mut reader = PieceReader::new(bodies);
        for copy in part.copies(order, &self.target) {
            let len = copy.len as usize * self.cell;
            for (src, dst) in pieces(&copy, self.cell) {
                reader.read(src as u64, access.slice_mut(dst, len).ok_or_else(outside)?)?;
            }
        }
        Ok(())
    }

    /// Copies the selected cells of a unit that begins at `base` of its object to their places. All
    /// that its codecs do is to change the bytes of each cell.
    pub(crate) fn scatter_unit(
        &self,
        bodies: &[(u64, Body)],
        base: u64,
        part: &Part,
        order: &CellOrder,
        codecs: &CodecChain,
    ) -> Result<()> {
        let access = self.access()?;
        let mut reader = PieceReader::new(bodies);
        let raw = codecs.is_raw();
        for copy in part.copies(order, &self.target) {
            let len = copy.len as usize * self.cell;
            for (src, dst) in pieces(&copy, self.cell) {
                let out = access.slice_mut(dst, len).ok_or_else(outside)?;
                reader.read(base + src as u64, out)?;
                if !raw {
                    codecs.fix_order(out);
                }
            }
        }
        Ok(())
    }

    /// Copies the selected cells in some bytes of a raw chunk to their places. `start` is the offset
    /// of the body's first byte in the chunk; the body begins and ends between cells.
    pub(crate) fn scatter_range(
        &self,
        start: u64,
        body: &Body,
        part: &Part,
        order: &CellOrder,
    ) -> Result<()> {
        let access = self.access()?;
        let within = start..start + body.len();
        let bodies = [(start, body.clone())];
        let mut reader = PieceReader::new(&bodies);
        let mut done = Ok(());
        for copy in part.copies(order, &self.target) {
            clip(&copy, self.cell as u64, &within, |run, place| {
                for k in 0..run.count {
                    let to = place.at + k as usize * place.step;
                    let read = access.slice_mut(to, place.len).ok_or_else(outside);
                    let read = read.and_then(|out| reader.read(run.start + k * run.step, out));
                    if done.is_ok() {
                        done = read;
                    }
                }
            });
        }
        done
    }

    /// True if the cells of a part make so few strided copies that it is nothing to go through them
    /// again and again.
    pub(crate) fn has_few_pieces(&self, part: &Part, order: &CellOrder) -> bool {
        const FEW: usize = 64;
        part.copies(order, &self.target).take(FEW + 1).count() <= FEW
    }

    /// Copies the selected cells in some bytes of a decoded chunk to their places. `start` is their
    /// offset in the chunk; they begin and end between cells.
    pub(crate) fn scatter_bytes(
        &self,
        start: u64,
        bytes: &[u8],
        part: &Part,
        order: &CellOrder,
    ) -> Result<()> {
        let access = self.access()?;
        let within = start..start + bytes.len() as u64;
        let mut inside = true;
        for copy in part.copies(order, &self.target) {
            clip(&copy, self.cell as u64, &within, |run, place| {
                for k in 0..run.count {
                    let from = (run.start + k * run.step - start) as usize;
                    let piece = bytes.get(from..from + place.len);
                    let to = place.at + k as usize * place.step;
                    inside &= piece.is_some_and(|piece| access.put(to, piece));
                }
            });
        }
        match inside {
            true => Ok(()),
            false => Err(outside()),
        }
    }

    /// Puts cells that come in the order of `placements` to their places.
    pub(crate) fn place(&self, cells: &[u8], placements: &[Placement]) -> Result<()> {
        let access = self.access()?;
        let mut rest = cells;
        for placement in placements {
            for k in 0..placement.count {
                let (piece, after) = rest
                    .split_at_checked(placement.len)
                    .ok_or_else(|| Error::data("the function answered too few cells"))?;
                if !access.put(placement.at + k * placement.step, piece) {
                    return Err(outside());
                }
                rest = after;
            }
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(Error::data("the function answered too many cells"))
        }
    }

    /// The cells of a whole chunk where they are, in the order in which the chunk stores them; `None`
    /// if they lie in too many pieces.
    pub(crate) fn in_place(&self, part: &Part, order: &CellOrder) -> Option<Vec<Bytes>> {
        let all = Bytes::from_owner(self.canvas.view()?);
        let mut rows = Vec::new();
        let mut end = 0;
        for copy in part.copies(order, &self.target) {
            let len = copy.len as usize * self.cell;
            if len < LEAST_ROW {
                return None;
            }
            for (src, dst) in pieces(&copy, self.cell) {
                if src != end || dst + len > all.len() {
                    return None;
                }
                rows.push(all.slice(dst..dst + len));
                end = src + len;
            }
        }
        Some(rows)
    }

    /// Copies the selected cells from their places into the buffer of a chunk.
    pub(crate) fn gather(&self, cells: &mut [u8], part: &Part, order: &CellOrder) -> Result<()> {
        let access = self.access()?;
        for copy in part.copies(order, &self.target) {
            let len = copy.len as usize * self.cell;
            for (src, dst) in pieces(&copy, self.cell) {
                let from = access.slice(dst, len).ok_or_else(outside)?;
                cells
                    .get_mut(src..src + len)
                    .ok_or_else(outside)?
                    .copy_from_slice(from);
            }
        }
        Ok(())
    }
}

/// (stored offset, destination offset) of each piece, in bytes.
#[inline]
fn pieces(copy: &StridedCopy, cell: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
    let (src, dst) = (copy.src as usize * cell, copy.dst as usize * cell);
    let (src_step, dst_step) = (copy.src_step as usize * cell, copy.dst_step as usize * cell);
    (0..copy.count as usize).map(move |k| (src + k * src_step, dst + k * dst_step))
}

/// Pieces of a width known to the compiler: single cells of strided or transposed selections.
fn strided<const W: usize>(access: &Access<'_>, cells: &[u8], copy: &StridedCopy) -> bool {
    pieces(copy, W / (copy.len as usize).max(1)).all(|(src, dst)| {
        cells
            .get(src..)
            .and_then(|rest| rest.first_chunk::<W>())
            .is_some_and(|piece| access.put(dst, piece))
    })
}

/// Scatters strings: a cell is one byte string.
pub(crate) fn scatter_strings(
    out: &mut [Bytes],
    target: &Target,
    cells: &[Bytes],
    part: &Part,
    order: &CellOrder,
) -> Result<()> {
    for copy in part.copies(order, target) {
        let len = copy.len as usize;
        for (src, dst) in pieces(&copy, 1) {
            let from = cells.get(src..src + len).ok_or_else(outside)?;
            out.get_mut(dst..dst + len)
                .ok_or_else(outside)?
                .clone_from_slice(from);
        }
    }
    Ok(())
}

/// Gathers strings into the buffer of a chunk.
pub(crate) fn gather_strings(
    cells: &mut [Bytes],
    target: &Target,
    from: &[Bytes],
    part: &Part,
    order: &CellOrder,
) -> Result<()> {
    for copy in part.copies(order, target) {
        let len = copy.len as usize;
        for (src, dst) in pieces(&copy, 1) {
            let source = from.get(dst..dst + len).ok_or_else(outside)?;
            cells
                .get_mut(src..src + len)
                .ok_or_else(outside)?
                .clone_from_slice(source);
        }
    }
    Ok(())
}

/// A run of fill cells that is copied instead of being made anew for every row.
struct FillSpan {
    span: Vec<u8>,
}

impl FillSpan {
    fn new(fill: &[u8]) -> Self {
        let span = if fill.iter().all(|b| *b == fill[0]) {
            fill[..fill.len().min(1)].to_vec()
        } else {
            fill.repeat(4096usize.div_ceil(fill.len().max(1)))
        };
        FillSpan { span }
    }

    fn write(&self, out: &mut [u8]) {
        match self.span.as_slice() {
            [] => {}
            [byte] => out.fill(*byte),
            span => out
                .chunks_mut(span.len())
                .for_each(|c| c.copy_from_slice(&span[..c.len()])),
        }
    }
}

/// Reads pieces of a chunk out of the responses that hold it.
///
/// Long pieces of a file are read straight into their place. Short ones go through a small window that
/// the cache holds, and so do those that the kernel would be slow to copy ([`collides`]).
pub(crate) struct PieceReader<'a> {
    bodies: &'a [(u64, Body)],
    /// The body that served the last piece: the next one is most likely there too.
    at: usize,
    /// Where the segment that served the last piece starts, and which it is.
    segment: (u64, usize),
    window: Landing,
    /// The bytes of the file that the window holds.
    held: Range<u64>,
    /// Where the last piece ended.
    last: u64,
}

impl<'a> PieceReader<'a> {
    pub(crate) fn new(bodies: &'a [(u64, Body)]) -> Self {
        PieceReader {
            bodies,
            at: 0,
            segment: (0, 0),
            window: WINDOWS.take(),
            held: 0..0,
            last: u64::MAX,
        }
    }

    /// Finds the body that holds the bytes at `offset` of the chunk.
    fn find(&mut self, offset: u64, len: usize) -> Result<(u64, &'a Body)> {
        let holds = |(start, body): &(u64, Body)| {
            *start <= offset && offset + len as u64 <= *start + body.len()
        };
        if !self.bodies.get(self.at).is_some_and(holds) {
            self.segment = (0, 0);
            self.held = 0..0;
            self.last = u64::MAX;
            self.at = self.bodies.iter().position(holds).ok_or_else(|| {
                let have: Vec<String> = self
                    .bodies
                    .iter()
                    .map(|(start, body)| format!("{start}..{}", start + body.len()))
                    .collect();
                Error::data(format!(
                    "the chunk is too short: bytes {offset}..{} are wanted, {} were read",
                    offset + len as u64,
                    have.join(", ")
                ))
            })?;
        }
        let (start, body) = &self.bodies[self.at];
        Ok((offset - start, body))
    }

    /// Fills `out` with the bytes at `offset` of the chunk.
    pub(crate) fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        let (offset, body) = self.find(offset, out.len())?;
        match body {
            Body::Memory(segments) => self.read_segments(segments, offset, out),
            file => self.read_file(file, offset, out),
        }
    }

    fn read_file(&mut self, file: &Body, mut offset: u64, mut out: &mut [u8]) -> Result<()> {
        let near = self.last <= offset && offset - self.last <= NEAR;
        self.last = offset + out.len() as u64;
        if out.len() >= WINDOW && !collides(file, offset, out.as_ptr().addr()) {
            self.held = 0..0;
            return file.read_at(offset, out);
        }
        while !out.is_empty() {
            if !self.held.contains(&offset) {
                // A piece that stands alone is read alone; after its neighbour, more will follow.
                let ahead = if near { WINDOW } else { out.len().min(WINDOW) };
                let len = ahead.min((file.len() - offset) as usize);
                self.held = 0..0;
                let to = out.as_ptr().addr();
                self.window.read(file, offset, len, Some(to))?;
                self.held = offset..offset + len as u64;
            }
            let from = (offset - self.held.start) as usize;
            let n = out.len().min((self.held.end - offset) as usize);
            let (now, rest) = out.split_at_mut(n);
            now.copy_from_slice(&self.window.bytes()[from..from + n]);
            out = rest;
            offset += n as u64;
        }
        Ok(())
    }

    fn read_segments(
        &mut self,
        segments: &[Bytes],
        mut offset: u64,
        mut out: &mut [u8],
    ) -> Result<()> {
        let (mut start, mut i) = self.segment;
        if offset < start {
            (start, i) = (0, 0);
        }
        while let Some(segment) = segments.get(i) {
            let end = start + segment.len() as u64;
            if offset < end {
                let from = (offset - start) as usize;
                let n = out.len().min(segment.len() - from);
                let (now, rest) = out.split_at_mut(n);
                now.copy_from_slice(&segment[from..from + n]);
                out = rest;
                offset += n as u64;
                if out.is_empty() {
                    self.segment = (start, i);
                    return Ok(());
                }
            }
            (start, i) = (end, i + 1);
        }
        if out.is_empty() {
            Ok(())
        } else {
            Err(Error::data("the chunk is too short"))
        }
    }
}

impl Drop for PieceReader<'_> {
    fn drop(&mut self) {
        WINDOWS.set(std::mem::take(&mut self.window));
    }
}

impl Destination {
    /// Where a part lies in the buffer, if it is a whole unit in one piece: such a unit is decoded
    /// straight into its place.
    pub(crate) fn contiguous(
        &self,
        part: &Part,
        order: &CellOrder,
        unit_bytes: usize,
    ) -> Option<usize> {
        let mut copies = part.copies(order, &self.target);
        let first = copies.next()?;
        let one =
            first.count == 1 && first.src == 0 && first.len as usize * self.cell == unit_bytes;
        (one && copies.next().is_none()).then_some(first.dst as usize * self.cell)
    }

    /// Lets `work` fill the bytes at `offset`.
    pub(crate) fn with_slice(
        &self,
        offset: usize,
        len: usize,
        work: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let access = self.access()?;
        work(access.slice_mut(offset, len).ok_or_else(outside)?)
    }
}
