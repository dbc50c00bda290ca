//! The executor of reads: fetch, decode and scatter, many objects at a time.
//!
//! Sits between the resolvers and the caller's buffer. Fetches run concurrently on the runtime,
//! decoding on as many threads as there are cores; bytes in flight are bounded by the session's
//! memory. Invariant: a read fills every cell of its destination or returns an error that names
//! the array and the object; an unreadable chunk is never read as fill values.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::{try_join, try_join_all};
use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format::{ObjectPieces, Piece, Resolver, Scratch, ShardIndex, Source};
use hyperslab_index::{Selection, Target};
use hyperslab_plan::Method;
use hyperslab_store::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::array::{Array, State};
use crate::buffers::Landing;
use crate::fetch::{Fetched, Prepared};
use crate::plan::{Described, LOCATED, Planned, describe};
use crate::scatter::{Destination, scatter_strings};
use crate::session::MEMORY_UNIT;
use crate::{Error, ErrorKind, Result, Session, call, lanes, ranges, runtime};

/// One array, one selection, one destination.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) array: Array,
    pub(crate) state: Arc<State>,
    pub(crate) selection: Selection,
    pub(crate) destination: Destination,
}

thread_local! {
    /// The decoded unit and what the codecs need, kept by each thread that decodes.
    static BUFFERS: RefCell<(Landing, Vec<u8>, Scratch)> = RefCell::default();
}

/// Reads several selections, of several arrays, as one query.
pub(crate) async fn run(session: &Session, jobs: Vec<Job>) -> Result<()> {
    let arrays: Vec<Array> = jobs.iter().map(|job| job.array.clone()).collect();
    let verify = async {
        for array in &arrays {
            array.verify().await?;
        }
        Ok(())
    };
    let work = try_join(verify, run_jobs(session, jobs));
    let Some(deadline) = session.options().deadline else {
        return work.await.map(drop);
    };
    match tokio::time::timeout(deadline, work).await {
        Ok(done) => done.map(drop),
        Err(_) => Err(Error::unavailable(format!(
            "the read took longer than its deadline of {deadline:?}"
        ))
        .with_hint(
            "allow more time, read less at a time, or see what is slow with `explain --analyze`",
        )),
    }
}

/// Objects that are planned together; a query with more is planned in several steps.
const BATCH: usize = 4096;

async fn run_jobs(session: &Session, jobs: Vec<Job>) -> Result<()> {
    let mut tasks = Tasks::new(session)?.at_most(4 * session.options().concurrency);
    let mut batch = Vec::new();
    for job in jobs {
        let job = Arc::new(job);
        let lazy = job.array.inner().open.lazy;
        if lazy && job.state.meta.codecs.sharding().is_none() {
            run_files(session, &job).await?;
            continue;
        }
        for object in job.state.resolver.objects(&job.selection)? {
            if lazy {
                let permits = tasks
                    .permits(job.array.flight_bytes(&job.state, &object))
                    .await?;
                let job = job.clone();
                tasks.spawn(async move {
                    let named = job.array.name_chunk(&object);
                    read_file(&job, object).await.map_err(named)?;
                    drop(permits);
                    Ok(())
                })?;
                continue;
            }
            batch.push((job.clone(), object));
            if batch.len() == BATCH {
                run_batch(&mut tasks, std::mem::take(&mut batch)).await?;
            }
        }
    }
    run_batch(&mut tasks, batch).await?;
    tasks.finish().await
}

/// Reads the plain chunks of an array on local disk.
async fn run_files(session: &Session, job: &Arc<Job>) -> Result<()> {
    let mut objects = job.state.resolver.objects(&job.selection)?;
    loop {
        let batch: Vec<ObjectPieces> = objects.by_ref().take(lanes::batch(session)).collect();
        if batch.is_empty() {
            return Ok(());
        }
        let flight = job.array.flight_bytes(&job.state, &batch[0]);
        let job = job.clone();
        lanes::run(session, batch, flight, move |object| {
            let job = job.clone();
            async move {
                let fetched = job.array.fetch_file(&object.key).await;
                let done = fetched.and_then(|fetched| {
                    deliver(&job, &object.pieces, &prepare(&job.state, fetched)?)
                });
                done.map_err(job.array.name_chunk(&object))
            }
        })
        .await?;
    }
}

/// Plans objects of remote stores together, and starts to read them.
async fn run_batch(tasks: &mut Tasks, batch: Vec<(Arc<Job>, ObjectPieces)>) -> Result<()> {
    let together = batch.len();
    let mut ready = stream::iter(batch.into_iter().map(|(job, object)| async move {
        let named = job.array.name_chunk(&object);
        let prepared = job.array.prepare(&job.state, object, together).await;
        prepared.map(|p| (job, p)).map_err(named)
    }))
    .buffered(LOCATED)
    .try_collect::<Vec<_>>()
    .await?;
    // One plan per store: stores share neither bandwidth nor prices.
    while let Some((first, _)) = ready.first() {
        let store = first.array.inner().open.store.clone();
        let planner = first.array.inner().open.planner.clone();
        let same =
            |(job, _): &(Arc<Job>, Prepared)| Arc::ptr_eq(&job.array.inner().open.store, &store);
        let (now, later): (Vec<_>, Vec<_>) = ready.into_iter().partition(same);
        ready = later;
        let described: Vec<_> = now
            .iter()
            .map(|(job, prepared)| describe(&job.state, prepared))
            .collect();
        let Planned {
            methods, bundles, ..
        } = planner.plan(&described)?;
        let mut waiting: Vec<Option<Waiting>> = now
            .into_iter()
            .zip(methods)
            .map(|((job, prepared), method)| Some((job, prepared, method)))
            .collect();
        for bundle in bundles {
            let objects: Vec<Waiting> = bundle.iter().filter_map(|i| waiting[*i].take()).collect();
            let bytes =
                |(job, prepared, _): &Waiting| job.array.flight_bytes(&job.state, &prepared.object);
            let permit = tasks.memory(objects.iter().map(bytes).sum()).await?;
            tasks.spawn(async move {
                read_bundle(objects).await?;
                drop(permit);
                Ok(())
            })?;
        }
        // Nothing takes as long as a call, so calls start first.
        let (calls, others): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .flatten()
            .partition(|(_, _, method)| matches!(method, Method::Function(_)));
        for (job, mut prepared, method) in calls.into_iter().chain(others) {
            let bytes = job.array.flight_bytes(&job.state, &prepared.object);
            let permit = tasks.memory(bytes).await?;
            tasks.spawn(async move {
                let named = job.array.name_chunk(&prepared.object);
                let read = read_object(&job, &mut prepared, method).await;
                read.map_err(named)?;
                drop(permit);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// An object with its plan.
type Waiting = (Arc<Job>, Prepared, Method);

/// Reads objects whose calls of the function travel together; one by one if that fails.
async fn read_bundle(objects: Vec<Waiting>) -> Result<()> {
    let Some((first, ..)) = objects.first() else {
        return Ok(());
    };
    let session = first.array.inner().session.clone();
    if let Some(client) = &session.options().function
        && objects.iter().all(|(_, prepared, _)| !prepared.is_absent())
    {
        match call::run_bundle(client, &objects).await {
            Ok(()) => return Ok(()),
            Err(e) => tracing::debug!("a call for several objects failed: {e}"),
        }
    }
    let each = objects
        .into_iter()
        .map(|(job, mut prepared, method)| async move {
            let named = job.array.name_chunk(&prepared.object);
            let read = read_object(&job, &mut prepared, method).await;
            read.map_err(named)
        });
    try_join_all(each).await.map(drop)
}

/// A bounded set of tasks; dropping it stops them.
pub(crate) struct Tasks<T = ()> {
    set: JoinSet<Result<T>>,
    handle: tokio::runtime::Handle,
    session: Session,
    done: Vec<T>,
    most: usize,
}

impl<T: Send + 'static> Tasks<T> {
    pub(crate) fn new(session: &Session) -> Result<Self> {
        Ok(Tasks {
            set: JoinSet::new(),
            handle: runtime::handle()?,
            session: session.clone(),
            done: Vec::new(),
            most: usize::MAX,
        })
    }

    /// Runs at most so many at a time, however many requests the session allows.
    pub(crate) fn at_most(mut self, tasks: usize) -> Self {
        self.most = tasks.max(1);
        self
    }

    /// Waits until a request with so many bytes in flight may start.
    pub(crate) async fn permits(
        &mut self,
        bytes: u64,
    ) -> Result<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let request = acquire(&self.session.inner().requests, 1).await?;
        Ok((request, self.memory(bytes).await?))
    }

    /// Waits until a task with so many bytes in flight may start.
    pub(crate) async fn memory(&mut self, bytes: u64) -> Result<OwnedSemaphorePermit> {
        while self.set.len() >= self.most
            && let Some(result) = self.set.join_next().await
        {
            self.done.push(flatten(result)?);
        }
        let inner = self.session.inner();
        let units = bytes
            .div_ceil(MEMORY_UNIT)
            .clamp(1, u64::from(inner.memory_units)) as u32;
        acquire(&inner.memory, units).await
    }

    pub(crate) fn spawn(
        &mut self,
        task: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<()> {
        self.set.spawn_on(task, &self.handle);
        while let Some(result) = self.set.try_join_next() {
            self.done.push(flatten(result)?);
        }
        Ok(())
    }

    pub(crate) async fn finish(self) -> Result<()> {
        self.results().await.map(drop)
    }

    pub(crate) async fn results(mut self) -> Result<Vec<T>> {
        while let Some(result) = self.set.join_next().await {
            self.done.push(flatten(result)?);
        }
        Ok(self.done)
    }
}

fn flatten<T>(result: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    result.unwrap_or_else(|e| {
        Err(if e.is_panic() {
            panicked()
        } else {
            Error::unavailable("the operation was cancelled")
        })
    })
}

pub(crate) async fn acquire(semaphore: &Arc<Semaphore>, n: u32) -> Result<OwnedSemaphorePermit> {
    semaphore
        .clone()
        .acquire_many_owned(n)
        .await
        .map_err(|_| Error::internal("a session's semaphore was closed"))
}

/// Runs work that keeps a core busy, at most as many at a time as there are cores.
pub(crate) async fn on_core<T: Send + 'static>(
    session: &Session,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let permit = acquire(&session.inner().cpu, 1).await?;
    let (send, receive) = tokio::sync::oneshot::channel();
    runtime::workers()?.spawn(move || {
        // A panic must not take the worker with it; the receiver hears of it by the lost sender.
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        drop(permit);
        if let Ok(answer) = answer {
            // Nobody listens any more when the read was cancelled.
            let _ = send.send(answer);
        }
    });
    receive.await.unwrap_or_else(|_| Err(panicked()))
}

pub(crate) fn panicked() -> Error {
    Error::internal("a task panicked").with_hint("please report this")
}

/// Reads a shard on local disk.
async fn read_file(job: &Arc<Job>, object: ObjectPieces) -> Result<()> {
    let fetched = job.array.fetch_file(&object.key).await?;
    deliver_all(job, object.pieces, fetched).await
}

/// Reads an object of a remote store as planned.
async fn read_object(job: &Arc<Job>, prepared: &mut Prepared, mut method: Method) -> Result<()> {
    let session = &job.array.inner().session;
    if let (Method::Function(calls), Some(client)) = (&method, &session.options().function) {
        if !prepared.is_absent() {
            match call::run(job, prepared, client, calls).await {
                Ok(()) => return Ok(()),
                Err(e) => session.inner().fell_back(&e),
            }
        }
        method = without_function(&describe(&job.state, prepared));
    }
    if let Method::Ranges(parts) = &method
        && ranges::can_stream(job, prepared, parts)
    {
        match ranges::stream(job, prepared, parts).await {
            // Somebody replaced the object: below it is read until it stays the same.
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            done => return done,
        }
    }
    let fetched = job.array.fetch(&job.state, prepared, method).await?;
    deliver_all(job, std::mem::take(&mut prepared.object.pieces), fetched).await
}

/// How an object is fetched when the function has failed.
fn without_function(described: &Described) -> Method {
    if described.0.splittable {
        Method::Ranges(vec![described.0.covering()])
    } else {
        Method::Get
    }
}

/// Decodes and scatters all pieces of an object.
async fn deliver_all(job: &Arc<Job>, mut pieces: Vec<Piece>, fetched: Fetched) -> Result<()> {
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
enum Ready {
    Absent,
    /// A raw chunk, whose cells are scattered straight from the response.
    Raw(Vec<(u64, Body)>),
    /// One encoded unit.
    Unit(Body),
    /// A shard with its index, whole or some ranges of it.
    Shard(Option<ShardIndex>, Vec<(u64, Body)>),
}

fn prepare(state: &State, fetched: Fetched) -> Result<Ready> {
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
        (Fetched::Absent, _) => Ready::Absent,
        (Fetched::Whole(body), Some(sharding)) => {
            let n = sharding.index_bytes();
            let len = body.len();
            if len < n {
                return Err(Error::data(format!(
                    "the shard has {len} bytes, fewer than its index alone ({n})"
                )));
            }
            let mut index = vec![0; n as usize];
            let at = if sharding.index_at_start() {
                0
            } else {
                len - n
            };
            body.read_at(at, &mut index)?;
            Ready::Shard(Some(sharding.decode_index(&index, len)?), vec![(0, body)])
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

/// Decodes pieces and scatters their cells. Runs on a thread for work.
fn deliver(job: &Job, pieces: &[Piece], ready: &Ready) -> Result<()> {
    let (state, out) = (&*job.state, &job.destination);
    let fill = state.meta.fill.bytes();
    for piece in pieces {
        match ready {
            Ready::Absent => out.scatter_fill(fill, &piece.part, &state.order)?,
            Ready::Raw(bodies) => out.scatter_body(bodies, &piece.part, &state.order)?,
            Ready::Unit(body) => decode_unit(state, out, piece, body, 0..body.len())?,
            Ready::Shard(index, bodies) => match in_shard(piece, index.as_ref(), bodies)? {
                Some((body, range)) => decode_unit(state, out, piece, body, range)?,
                None => out.scatter_fill(fill, &piece.part, &state.order)?,
            },
        }
    }
    Ok(())
}

/// The response that holds an inner chunk, and its range in there; `None` if it is absent.
fn in_shard<'a>(
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
                encoded.read(other, range.start, len)?;
                encoded.bytes()
            }
        };
        let chain = state.meta.unit_codecs();
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
        grow(cells, want);
        decode(&mut cells[..want], scratch)?;
        out.scatter(&cells[..want], &piece.part, &state.order)
    })
}

/// Buffers only grow, and what is in them is overwritten: no time goes into zeroing them.
fn grow(buffer: &mut Vec<u8>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
}

/// Reads a selection of strings.
pub(crate) async fn run_strings(
    array: &Array,
    state: Arc<State>,
    selection: &Selection,
) -> Result<Vec<Bytes>> {
    array.verify().await?;
    let shape = selection.result_shape(&state.meta.shape);
    let target = Target::packed(&shape[..]);
    let mut tasks: Tasks<Vec<(Piece, Vec<Bytes>)>> = Tasks::new(&array.inner().session)?;
    for object in state.resolver.objects(selection)? {
        let permit = tasks.memory(array.flight_bytes(&state, &object)).await?;
        let (array, state) = (array.clone(), state.clone());
        tasks.spawn(async move {
            let named = array.name_chunk(&object);
            let answer = async {
                let (object, fetched) = if array.inner().open.lazy {
                    let fetched = array.fetch_file(&object.key).await?;
                    (object, fetched)
                } else {
                    array.fetch_alone(&state, object).await?
                };
                let session = array.inner().session.clone();
                on_core(&session, move || strings_of(&state, object, fetched)).await
            };
            let answer = answer.await.map_err(named)?;
            drop(permit);
            Ok(answer)
        })?;
    }
    let mut out = vec![Bytes::new(); shape.num_cells() as usize];
    for (piece, cells) in tasks.results().await?.into_iter().flatten() {
        scatter_strings(&mut out, &target, &cells, &piece.part, &state.order)?;
    }
    Ok(out)
}

fn strings_of(
    state: &State,
    object: ObjectPieces,
    fetched: Fetched,
) -> Result<Vec<(Piece, Vec<Bytes>)>> {
    let fill = state.meta.fill.bytes();
    let chain = state.meta.unit_codecs();
    let count = state.unit.num_cells() as usize;
    let empty = || vec![Bytes::copy_from_slice(fill); count];
    let ready = prepare(state, fetched)?;
    let mut out = Vec::with_capacity(object.pieces.len());
    for piece in object.pieces {
        let cells = match &ready {
            Ready::Absent => empty(),
            Ready::Unit(body) => {
                chain.decode_strings(body.clone().into_bytes()?, &state.stored, fill)?
            }
            Ready::Raw(_) => return Err(Error::internal("strings were read as raw cells")),
            Ready::Shard(index, bodies) => match in_shard(&piece, index.as_ref(), bodies)? {
                None => empty(),
                Some((body, range)) => {
                    let mut bytes = vec![0; (range.end - range.start) as usize];
                    body.read_at(range.start, &mut bytes)?;
                    chain.decode_strings(bytes.into(), &state.stored, fill)?
                }
            },
        };
        out.push((piece, cells));
    }
    Ok(out)
}

impl Array {
    /// Bytes that reading an object holds at a time, roughly: encoded and decoded.
    pub(crate) fn flight_bytes(&self, state: &State, object: &ObjectPieces) -> u64 {
        let unit = state.unit_bytes() as u64;
        if self.inner().open.lazy && state.meta.unit_codecs().is_raw() {
            return MEMORY_UNIT;
        }
        unit.saturating_mul(object.pieces.len() as u64)
            .saturating_add(unit)
    }

    /// Names array, chunk and object in an error.
    pub(crate) fn name_chunk(&self, object: &ObjectPieces) -> impl Fn(Error) -> Error + use<> {
        let name = format!(
            "{}, chunk {:?}, object {}",
            self.url(),
            object.chunk,
            object.key
        );
        move |e| e.context(&name)
    }
}
