//! Decodes what was fetched of an object, and scatters its cells.
//!
//! After the executor, on threads for work. Invariant: a chunk that decodes to another size, or a
//! shard's piece that was not fetched, is an error.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use hyperslab_format::{Piece, Scratch, ShardIndex, Sharding, Source};
use hyperslab_store::Body;

use crate::array::State;
use crate::buffers::Landing;
use crate::fetch::Fetched;
use crate::read::Job;
use crate::scatter::Destination;
use crate::tasks::on_core;
use crate::{Error, Result};

/// Units of so many bytes, which a core's cache does not hold, are scattered while they are decoded.
const STEPWISE: usize = 2 << 20;

thread_local! {
    /// The decoded unit and what the codecs need, kept by each thread that decodes.
    static BUFFERS: RefCell<(Landing, Vec<u8>, Scratch)> = RefCell::default();
}

/// Decodes and scatters all pieces of an object.
pub(crate) async fn deliver_all(
    job: &Arc<Job>,
    mut pieces: Vec<Piece>,
    fetched: Fetched,
) -> Result<()> {
    let session = &job.array.inner().session;
    // The units of a shard are decoded by all cores; a plain chunk is one unit.
    let lanes = session.options().cores.clamp(1, pieces.len().max(1));
    let fetched = Arc::new(prepare(&job.state, fetched)?);
    if lanes == 1 {
        let job = job.clone();
        return on_core(session, move || deliver(&job, &pieces, &fetched)).await;
    }
    let per_lane = pieces.len().div_ceil(lanes);
    let mut work = Vec::with_capacity(lanes);
    while !pieces.is_empty() {
        let rest = pieces.split_off(per_lane.min(pieces.len()));
        let mine = std::mem::replace(&mut pieces, rest);
        let (job, fetched) = (job.clone(), fetched.clone());
        work.push(on_core(session, move || deliver(&job, &mine, &fetched)));
    }
    try_join_all(work).await.map(drop)
}

/// What decoding starts from.
pub(crate) enum Ready {
    Absent,
    /// A raw chunk, whose cells are scattered straight from the response.
    Raw(Vec<(u64, Body)>),
    /// One encoded unit.
    Unit(Body),
    /// A shard with its index, whole or some ranges of it.
    Shard(Option<ShardIndex>, Vec<(u64, Body)>),
}

pub(crate) fn prepare(state: &State, fetched: Fetched) -> Result<Ready> {
    let sharding = state.meta.codecs.sharding();
    let whole_raw = |len: u64| {
        if len == state.unit_bytes() as u64 {
            Ok(())
        } else {
            Err(Error::data(format!(
                "the object has {len} bytes, but a chunk of shape {} and type {} has {}",
                state.unit,
                state.meta.dtype,
                state.unit_bytes()
            ))
            .with_hint("the object was truncated or written with other metadata"))
        }
    };
    Ok(match (fetched, sharding) {
        (Fetched::Absent, _) if state.file.is_some() => {
            return Err(Error::not_found("the file is gone"));
        }
        (Fetched::Absent, _) => Ready::Absent,
        // Where everything lies in a file is known before it is read.
        (Fetched::Whole(body), _) if state.file.is_some() => Ready::Shard(None, vec![(0, body)]),
        (Fetched::Ranges(bodies), _) if state.file.is_some() => Ready::Shard(None, bodies),
        (Fetched::Whole(body), Some(sharding)) => {
            Ready::Shard(Some(index_of(sharding, &body)?), vec![(0, body)])
        }
        (Fetched::Ranges(bodies), Some(_)) => Ready::Shard(None, bodies),
        (Fetched::Whole(body), None) if state.meta.codecs.is_raw() => {
            whole_raw(body.len())?;
            Ready::Raw(vec![(0, body)])
        }
        (Fetched::Whole(body), None) => Ready::Unit(body),
        (Fetched::Ranges(mut bodies), None) => {
            if !state.meta.codecs.is_raw() {
                for (_, body) in &mut bodies {
                    let mut cells = std::mem::take(body).into_bytes()?.to_vec();
                    state.meta.codecs.fix_order(&mut cells);
                    *body = Bytes::from(cells).into();
                }
            }
            Ready::Raw(bodies)
        }
    })
}

/// The index of a whole shard.
pub(crate) fn index_of(sharding: &Sharding, body: &Body) -> Result<ShardIndex> {
    let (len, n) = (body.len(), sharding.index_bytes());
    if len < n {
        return Err(Error::data(format!(
            "the shard has {len} bytes, fewer than its index alone ({n})"
        )));
    }
    let at = if sharding.index_at_start() {
        0
    } else {
        len - n
    };
    let mut index = vec![0; n as usize];
    body.read_at(at, &mut index)?;
    sharding.decode_index(&index, len)
}

/// Decodes pieces and scatters their cells. Runs on a thread for work.
pub(crate) fn deliver(job: &Job, pieces: &[Piece], ready: &Ready) -> Result<()> {
    let (state, out) = (&*job.state, &job.destination);
    let fill = state.meta.fill.bytes();
    for piece in pieces {
        match ready {
            Ready::Absent => out.scatter_fill(fill, &piece.part, &state.order)?,
            Ready::Raw(bodies) => out.scatter_body(bodies, &piece.part, &state.order)?,
            Ready::Unit(body) => decode_unit(state, out, piece, body, 0..body.len())?,
            Ready::Shard(None, bodies) if state.has_raw_units() => match &piece.source {
                Source::Range(range) if state.is_unit(range) => {
                    let chain = state.meta.unit_codecs();
                    out.scatter_unit(bodies, range.start, &piece.part, &state.order, chain)?;
                }
                Source::Fill => out.scatter_fill(fill, &piece.part, &state.order)?,
                _ => return Err(not_located(state, piece)),
            },
            Ready::Shard(index, bodies) => match in_shard(piece, index.as_ref(), bodies)? {
                Some((body, range)) => decode_unit(state, out, piece, body, range)?,
                None => out.scatter_fill(fill, &piece.part, &state.order)?,
            },
        }
    }
    Ok(())
}

/// Why a piece of a shard with raw inner chunks cannot be delivered.
fn not_located(state: &State, piece: &Piece) -> Error {
    match &piece.source {
        Source::Range(range) => Error::data(format!(
            "an inner chunk has {} bytes, but one of shape {} and type {} has {}",
            range.end - range.start,
            state.unit,
            state.meta.dtype,
            state.unit_bytes()
        )),
        _ => Error::internal("a shard's piece was not located"),
    }
}

/// The response that holds an inner chunk, and its range in there; `None` if it is absent.
pub(crate) fn in_shard<'a>(
    piece: &Piece,
    index: Option<&ShardIndex>,
    bodies: &'a [(u64, Body)],
) -> Result<Option<(&'a Body, Range<u64>)>> {
    let range = match (&piece.source, index) {
        (Source::Range(range), _) => range.clone(),
        (Source::Fill, _) => return Ok(None),
        (Source::Inner(i), Some(index)) => match index.get(*i) {
            Some(range) => range,
            None => return Ok(None),
        },
        _ => return Err(Error::internal("a shard's piece was not located")),
    };
    let holds =
        |(start, body): &&(u64, Body)| *start <= range.start && range.end <= start + body.len();
    let (start, body) = bodies
        .iter()
        .find(holds)
        .ok_or_else(|| Error::internal("a shard's piece was not fetched"))?;
    Ok(Some((body, range.start - start..range.end - start)))
}

fn decode_unit(
    state: &State,
    out: &Destination,
    piece: &Piece,
    body: &Body,
    range: Range<u64>,
) -> Result<()> {
    BUFFERS.with_borrow_mut(|(encoded, cells, scratch)| {
        let len = (range.end - range.start) as usize;
        let input: &[u8] = match body {
            Body::Memory(segments) if segments.len() == 1 => {
                &segments[0][range.start as usize..range.end as usize]
            }
            other => {
                encoded.read(other, range.start, len, None)?;
                encoded.bytes()
            }
        };
        let chain = state.chain(piece);
        if chain.is_raw() && input.len() == state.unit_bytes() {
            return out.scatter(input, &piece.part, &state.order);
        }
        let want = state.unit_bytes();
        let fill = state.meta.fill.bytes();
        let decode = |cells: &mut [u8], scratch: &mut Scratch| {
            chain.decode(input, cells, &state.stored, fill, scratch)
        };
        if let Some(place) = out.contiguous(&piece.part, &state.order, want) {
            return out.with_slice(place, want, |slice| decode(slice, scratch));
        }
        grow(cells, want)?;
        if want >= STEPWISE
            && chain.decodes_in_steps()
            && out.has_few_pieces(&piece.part, &state.order)
        {
            let (mut placed, cell) = (0, state.cell);
            return chain.decode_in_steps(input, &mut cells[..want], &mut |decoded| {
                let whole = decoded.len() / cell * cell;
                let new = &decoded[placed..whole];
                out.scatter_bytes(placed as u64, new, &piece.part, &state.order)?;
                placed = whole;
                Ok(())
            });
        }
        // Cells behind the last wanted one are not decoded, where that can be left out.
        let end = piece.part.run_summary(&state.order, state.cell as u64).end as usize;
        let front = end < want - want / 8 && chain.decodes_in_steps();
        if front && chain.decode_front(input, &mut cells[..want], end)? {
            return out.scatter(&cells[..end], &piece.part, &state.order);
        }
        decode(&mut cells[..want], scratch)?;
        out.scatter(&cells[..want], &piece.part, &state.order)
    })
}

/// Buffers only grow, and what is in them is overwritten: no time goes into zeroing them.
fn grow(buffer: &mut Vec<u8>, len: usize) -> Result<()> {
    if buffer.len() < len {
        let room = buffer.try_reserve_exact(len - buffer.len());
        room.map_err(|_| Error::data(format!("a chunk of {len} bytes does not fit into memory")))?;
        buffer.resize(len, 0);
    }
    Ok(())
}
