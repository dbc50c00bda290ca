//! The executor of writes: gather, encode and put, many objects at a time.
//!
//! An object that the selection covers completely is written as it is; one that it covers in part
//! is read, changed and written under the condition that nobody changed it meanwhile, and read
//! again if somebody did. Invariant: an object goes from one complete state to another, and cells
//! that the selection does not name keep the value their last writer gave them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyperslab_format::{ObjectPieces, Piece, Scratch, Sharding, Source};
use hyperslab_index::{Selection, Target};
use hyperslab_store::{Get, Put};

use crate::array::{Array, State};
use crate::read::Job;
use crate::replicas::{self, ABSENT, Change, Noted, state_of_etag};
use crate::scatter::{Destination, gather_strings};
use crate::tasks::{Tasks, on_core};
use crate::{Error, ErrorKind, Result, buffers, lanes};

/// How often a lost race for one object is run again.
const MAX_RACES: u32 = 200;

/// Where the cells of a write come from.
#[derive(Debug, Clone)]
pub(crate) enum Cells {
    /// The caller's buffer.
    Buffer(Destination),
    /// The caller's strings, and how they are laid out.
    Strings(Arc<Vec<Bytes>>, Target),
    /// The fill value: for cells that a smaller shape cuts off.
    Fill,
}

/// The decoded cells of a unit.
enum Unit {
    Cells(Vec<u8>),
    Strings(Vec<Bytes>),
}

/// Writes one selection of one array.
pub(crate) async fn run(job: Job) -> Result<()> {
    let cells = Cells::Buffer(job.destination);
    write_objects(&job.array, job.state, &job.selection, cells).await
}

/// Writes strings.
pub(crate) async fn run_strings(
    array: &Array,
    state: Arc<State>,
    selection: &Selection,
    cells: Vec<Bytes>,
) -> Result<()> {
    let shape = selection.result_shape(&state.meta.shape);
    let cells = Cells::Strings(Arc::new(cells), Target::packed(&shape[..]));
    write_objects(array, state, selection, cells).await
}

/// Sets a selection to the fill value, in objects that exist, and not in replicas.
pub(crate) async fn run_fill(
    array: &Array,
    state: Arc<State>,
    selection: &Selection,
    noted: Option<Noted>,
) -> Result<()> {
    run_plain(array, state, selection, Cells::Fill, noted).await
}

/// Writes to an array, and to its replicas if it has any.
async fn write_objects(
    array: &Array,
    state: Arc<State>,
    selection: &Selection,
    cells: Cells,
) -> Result<()> {
    array.verify().await?;
    if !array.can_have_replicas() {
        return run_plain(array, state, selection, cells, None).await;
    }
    replicas::write(array, state, selection, cells).await
}

/// Writes the objects of an array, and nothing else. What becomes of them is noted if that is asked for.
pub(crate) async fn run_plain(
    array: &Array,
    state: Arc<State>,
    selection: &Selection,
    cells: Cells,
    noted: Option<Noted>,
) -> Result<()> {
    let mut tasks: Tasks = Tasks::new(&array.inner().session)?;
    let session = &array.inner().session;
    let writer = Writer {
        array: array.clone(),
        state: state.clone(),
        cells,
        noted,
    };
    let in_lanes = array.inner().open.lazy && state.meta.codecs.sharding().is_none();
    if array.inner().open.lazy {
        // Encoding runs ahead of the disk; a few chunks ahead is enough, and their buffers stay warm.
        tasks = tasks.at_most(2 * session.options().cores.max(2));
    }
    let mut batch = Vec::new();
    for object in state.resolver.objects(selection)? {
        if in_lanes && writer.replaces(&object) {
            batch.push(object);
            if batch.len() == lanes::batch(session) {
                writer.write_batch(std::mem::take(&mut batch)).await?;
            }
            continue;
        }
        let permits = tasks.permits(array.write_bytes(&state, &object)).await?;
        let writer = writer.clone();
        tasks.spawn(async move {
            let named = writer.array.name_chunk(&object);
            writer.write(object).await.map_err(named)?;
            drop(permits);
            Ok(())
        })?;
    }
    writer.write_batch(batch).await?;
    tasks.finish().await
}

#[derive(Debug, Clone)]
struct Writer {
    array: Array,
    state: Arc<State>,
    cells: Cells,
    noted: Option<Noted>,
}

/// What becomes of an object.
enum Outcome {
    Store(Vec<Bytes>),
    /// Nothing but fill values: no object.
    Remove,
}

impl Writer {
    /// True if the object is replaced whatever it holds.
    fn replaces(&self, object: &ObjectPieces) -> bool {
        object.whole && !matches!(self.cells, Cells::Fill) && self.is_inside(object)
    }

    /// Replaces plain chunks on local disk.
    async fn write_batch(&self, batch: Vec<ObjectPieces>) -> Result<()> {
        let Some(first) = batch.first() else {
            return Ok(());
        };
        let flight = self.array.write_bytes(&self.state, first);
        let session = self.array.inner().session.clone();
        let writer = self.clone();
        lanes::run(&session, batch, flight, move |object| {
            let writer = writer.clone();
            async move {
                let done = match writer.encode_here(&object) {
                    Ok(outcome) => {
                        writer
                            .store(&object.key, outcome, Put::Overwrite, None)
                            .await
                    }
                    Err(e) => Err(e),
                };
                done.map_err(writer.array.name_chunk(&object))
            }
        })
        .await
    }

    async fn write(self, object: ObjectPieces) -> Result<()> {
        let object = Arc::new(object);
        let whole = object.whole && !matches!(self.cells, Cells::Fill);
        if self.replaces(&object) {
            let outcome = self.clone().encode(object.clone(), None).await?;
            return self.store(&object.key, outcome, Put::Overwrite, None).await;
        }
        if whole {
            // A chunk at the array's edge has room for cells that a writer who knows of a larger
            // shape may be appending right now: only an absent one may be written unseen.
            let outcome = self.clone().encode(object.clone(), None).await?;
            if matches!(outcome, Outcome::Store(_)) {
                let from = Some(ABSENT);
                match self.store(&object.key, outcome, Put::Create, from).await {
                    Err(e) if e.kind() == ErrorKind::Conflict => {}
                    other => return other,
                }
            }
        }
        for race in 0..MAX_RACES {
            let old = self.array.get_object(&object.key, Get::default()).await?;
            let (old, mode) = match old {
                None if matches!(self.cells, Cells::Fill) => return Ok(()),
                None => (None, Put::Create),
                Some(got) => {
                    let etag = got.meta.etag.clone().ok_or_else(|| {
                        Error::unavailable("the store gives no ETags, so a part of a chunk cannot be written safely")
                            .with_hint("write whole chunks")
                    })?;
                    (Some(got.body.into_bytes()?), Put::Update(etag))
                }
            };
            let from = match &mode {
                Put::Update(etag) => state_of_etag(Some(etag)),
                _ => ABSENT,
            };
            let outcome = self.clone().encode(object.clone(), old).await?;
            // Removing has no condition on most stores; a chunk of fill values is stored instead.
            let outcome = match (outcome, &mode) {
                (Outcome::Remove, Put::Create) => return Ok(()),
                (Outcome::Remove, _) => self.clone().encode_empty(object.clone()).await?,
                (store, _) => store,
            };
            match self.store(&object.key, outcome, mode, Some(from)).await {
                Err(e) if e.kind() == ErrorKind::Conflict => {
                    tokio::time::sleep(backoff(race)).await;
                }
                other => return other,
            }
        }
        Err(Error::conflict("other writers keep changing this chunk")
            .with_hint("let each writer write whole chunks of its own"))
    }

    /// True if all cells that the object has room for lie inside the array.
    fn is_inside(&self, object: &ObjectPieces) -> bool {
        let meta = &self.state.meta;
        let sides = meta.chunk_shape.iter().zip(meta.shape.iter());
        object
            .chunk
            .iter()
            .zip(sides)
            .all(|(i, (chunk, side))| (i + 1) * chunk <= *side)
    }

    /// Stores what becomes of an object that was in the state `from`, if that matters.
    async fn store(&self, key: &str, outcome: Outcome, mode: Put, from: Option<u64>) -> Result<()> {
        self.array.forget(key);
        let store = &self.array.inner().open.store;
        let done = match outcome {
            Outcome::Store(parts) => {
                let put = store.put(key, parts, mode).await;
                put.map(|meta| state_of_etag(meta.etag.as_deref()))
            }
            Outcome::Remove => store.delete(key).await.map(|()| ABSENT),
        };
        let done = done.map(|to| {
            if let Some(noted) = &self.noted {
                noted.add(key, Change { from, to });
            }
        });
        // A read meanwhile may have cached the old state.
        self.array.forget(key);
        done
    }

    /// Makes the new state of the object, over its old one.
    async fn encode(self, object: Arc<ObjectPieces>, old: Option<Bytes>) -> Result<Outcome> {
        let session = self.array.inner().session.clone();
        if let Some(sharding) = self.state.meta.codecs.sharding() {
            let sharding = sharding.clone();
            return self.encode_shard(&sharding, object, old).await;
        }
        on_core(&session, move || self.encode_plain(&object, old)).await
    }

    /// Makes the new state of a chunk that is an object of its own.
    fn encode_plain(&self, object: &ObjectPieces, old: Option<Bytes>) -> Result<Outcome> {
        let [piece] = object.pieces.as_slice() else {
            return Err(Error::internal("a plain chunk has several pieces"));
        };
        Ok(match self.encode_unit(piece, old)? {
            Some(bytes) => Outcome::Store(vec![bytes]),
            None => Outcome::Remove,
        })
    }

    /// Makes the new state of a chunk that is about to be written to local disk: its cells straight
    /// from the caller's buffer, if they are stored as they are.
    fn encode_here(&self, object: &ObjectPieces) -> Result<Outcome> {
        if let (Cells::Buffer(source), [piece]) = (&self.cells, object.pieces.as_slice())
            && self.state.meta.codecs.is_raw()
            && self.covers(piece)
            && let Some(rows) = source.in_place(&piece.part, &self.state.order)
        {
            let fill = &self.state.meta.fill;
            let write_empty = self.array.inner().session.options().write_empty;
            return Ok(
                match write_empty || !rows.iter().all(|row| fill.fills(row)) {
                    true => Outcome::Store(rows),
                    false => Outcome::Remove,
                },
            );
        }
        self.encode_plain(object, None)
    }

    /// The encoded form of an object full of fill values.
    async fn encode_empty(mut self, object: Arc<ObjectPieces>) -> Result<Outcome> {
        if let Some(sharding) = self.state.meta.codecs.sharding() {
            return Ok(Outcome::Store(vec![sharding.empty()?.into()]));
        }
        self.cells = Cells::Fill;
        let session = self.array.inner().session.clone();
        on_core(&session, move || {
            let unit = self.blank();
            drop(object);
            Ok(Outcome::Store(vec![self.pack(unit)?]))
        })
        .await
    }

    async fn encode_shard(
        self,
        sharding: &Sharding,
        object: Arc<ObjectPieces>,
        old: Option<Bytes>,
    ) -> Result<Outcome> {
        let mut inner: Vec<Option<Bytes>> = vec![None; sharding.num_inner() as usize];
        if let Some(old) = &old {
            let index = sharding.index_of(old)?;
            for (i, slot) in inner.iter_mut().enumerate() {
                *slot = index
                    .get(i as u64)
                    .map(|r| old.slice(r.start as usize..r.end as usize));
            }
        }
        let session = self.array.inner().session.clone();
        let lanes = session.options().cores.clamp(1, object.pieces.len().max(1));
        let per_lane = object.pieces.len().div_ceil(lanes).max(1);
        let mut work = Vec::with_capacity(lanes);
        for from in (0..object.pieces.len()).step_by(per_lane) {
            let to = (from + per_lane).min(object.pieces.len());
            let (writer, object) = (self.clone(), object.clone());
            let before: Vec<Option<Bytes>> = object.pieces[from..to]
                .iter()
                .map(|p| inner[inner_of(p)].clone())
                .collect();
            work.push(on_core(&session, move || {
                let pieces = object.pieces[from..to].iter().zip(before);
                pieces
                    .map(|(piece, old)| Ok((inner_of(piece), writer.encode_unit(piece, old)?)))
                    .collect::<Result<Vec<_>>>()
            }));
        }
        for (i, bytes) in futures::future::try_join_all(work)
            .await?
            .into_iter()
            .flatten()
        {
            inner[i] = bytes;
        }
        Ok(match sharding.assemble(&inner)? {
            Some(parts) => Outcome::Store(parts),
            None => Outcome::Remove,
        })
    }

    /// The new encoded form of a unit, over its old one; `None` if it holds only fill values.
    fn encode_unit(&self, piece: &Piece, old: Option<Bytes>) -> Result<Option<Bytes>> {
        let keeps_nothing = self.covers(piece) && !matches!(self.cells, Cells::Fill);
        let mut unit = match old {
            Some(old) if !keeps_nothing => self.unpack(old)?,
            // Cells that the part does not cover (beyond the array's edge too) hold the fill.
            _ => self.blank_for(piece),
        };
        self.overlay(&mut unit, piece)?;
        if !self.array.inner().session.options().write_empty && self.is_empty(&unit) {
            if let Unit::Cells(cells) = unit {
                buffers::give(cells);
            }
            return Ok(None);
        }
        self.pack(unit).map(Some)
    }

    fn blank(&self) -> Unit {
        let fill = &self.state.meta.fill;
        if self.state.meta.dtype.is_variable() {
            let cell = Bytes::copy_from_slice(fill.bytes());
            return Unit::Strings(vec![cell; self.state.unit.num_cells() as usize]);
        }
        let mut cells = vec![0; self.state.unit_bytes()];
        if fill.bytes().iter().any(|b| *b != 0) {
            fill.fill(&mut cells);
        }
        Unit::Cells(cells)
    }

    /// True if a part covers every cell of its unit, beyond the array's edge too. Points may name
    /// one cell twice, so the number of cells says nothing.
    fn covers(&self, piece: &Piece) -> bool {
        let inside = piece.part.region().num_cells() == self.state.unit.num_cells();
        inside && piece.part.is_whole()
    }

    /// A blank unit; one that is about to be overwritten completely need not be filled.
    fn blank_for(&self, piece: &Piece) -> Unit {
        if self.covers(piece) && !self.state.meta.dtype.is_variable() {
            return Unit::Cells(buffers::take(self.state.unit_bytes()));
        }
        self.blank()
    }

    fn unpack(&self, old: Bytes) -> Result<Unit> {
        let state = &*self.state;
        let (chain, fill) = (state.meta.unit_codecs(), state.meta.fill.bytes());
        if state.meta.dtype.is_variable() {
            return Ok(Unit::Strings(chain.decode_strings(
                old,
                &state.stored,
                fill,
            )?));
        }
        let mut cells = buffers::take(state.unit_bytes());
        chain.decode(
            &old,
            &mut cells,
            &state.stored,
            fill,
            &mut Scratch::default(),
        )?;
        Ok(Unit::Cells(cells))
    }

    fn pack(&self, unit: Unit) -> Result<Bytes> {
        let state = &*self.state;
        let (chain, fill) = (state.meta.unit_codecs(), state.meta.fill.bytes());
        Ok(match unit {
            Unit::Cells(mut cells) => {
                let packed = chain.encode(&mut cells, &state.stored, fill)?;
                if cells.is_empty() {
                    return Ok(buffers::lend(packed));
                }
                buffers::give(cells);
                packed.into()
            }
            Unit::Strings(cells) => chain.encode_strings(&cells, &state.stored, fill)?.into(),
        })
    }

    /// Puts the new cells over the old ones.
    fn overlay(&self, unit: &mut Unit, piece: &Piece) -> Result<()> {
        let order = &self.state.order;
        match (unit, &self.cells) {
            (Unit::Cells(cells), Cells::Buffer(source)) => source.gather(cells, &piece.part, order),
            (Unit::Strings(cells), Cells::Strings(from, target)) => {
                gather_strings(cells, target, from, &piece.part, order)
            }
            (unit, Cells::Fill) => self.overlay_fill(unit, piece),
            _ => Err(Error::internal(
                "strings and cells of fixed size were mixed up",
            )),
        }
    }

    fn overlay_fill(&self, unit: &mut Unit, piece: &Piece) -> Result<()> {
        let fill = self.state.meta.fill.bytes();
        // Only where the cells are in the chunk matters. Strides of 1 keep runs whole along any
        // dimension, and offsets small for a union too, whose result has one dimension.
        let target = Target::strided(0, vec![1; self.state.meta.shape.rank()]);
        for copy in piece.part.copies(&self.state.order, &target) {
            for k in 0..copy.count {
                let from = (copy.src + k * copy.src_step) as usize;
                let to = from + copy.len as usize;
                match unit {
                    Unit::Strings(cells) => cells[from..to].fill(Bytes::copy_from_slice(fill)),
                    Unit::Cells(cells) => {
                        let size = self.state.cell;
                        self.state
                            .meta
                            .fill
                            .fill(&mut cells[from * size..to * size]);
                    }
                }
            }
        }
        Ok(())
    }

    fn is_empty(&self, unit: &Unit) -> bool {
        let fill = &self.state.meta.fill;
        match unit {
            Unit::Cells(cells) => fill.fills(cells),
            Unit::Strings(cells) => cells.iter().all(|cell| cell == fill.bytes()),
        }
    }
}

fn inner_of(piece: &Piece) -> usize {
    match piece.source {
        Source::Inner(i) => i as usize,
        _ => 0,
    }
}

/// Racing writers spread out, the more the longer they race.
fn backoff(race: u32) -> Duration {
    let spread = u64::from(std::process::id()) ^ u64::from(race).wrapping_mul(0x9e37_79b9);
    let jitter = spread.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 54;
    Duration::from_micros((jitter + 50) * u64::from(race.min(20) + 1))
}

impl Array {
    /// Bytes that writing an object holds at a time, roughly: old, decoded and new.
    fn write_bytes(&self, state: &State, object: &ObjectPieces) -> u64 {
        let unit = state.unit_bytes() as u64;
        let units = if object.whole { 2 } else { 3 } * object.pieces.len() as u64;
        unit.saturating_mul(units)
    }
}
