//! The executor of reads: fetch, decode and scatter, many objects at a time.
//!
//! Sits between the resolvers and the caller's buffer. Fetches run concurrently on the runtime,
//! decoding on as many threads as there are cores; bytes in flight are bounded by the session's
//! memory. Invariant: a read fills every cell of its destination or returns an error that names
//! the array and the object; an unreadable chunk is never read as fill values.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::{try_join, try_join_all};
use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format::ObjectPieces;
use hyperslab_index::Selection;
use hyperslab_plan::Method;

use crate::array::{Array, State};
use crate::deliver::{deliver, deliver_all, prepare};
use crate::fetch::Prepared;
use crate::mosaic::Round;
use crate::plan::{Described, LOCATED, Planned, describe};
use crate::scatter::Destination;
use crate::session::MEMORY_UNIT;
use crate::tasks::Tasks;
use crate::{
    Error, ErrorKind, Result, Session, call, here, lanes, mosaic, parts, ranges, replicas,
};

/// One array, one selection, one destination.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) array: Array,
    pub(crate) state: Arc<State>,
    pub(crate) selection: Selection,
    pub(crate) destination: Destination,
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
    let traced = session.inner().tracer.as_ref().map(|tracer| {
        let read = |job: &Job| (job.array.clone(), job.state.clone(), job.selection.clone());
        (
            tracer,
            SystemTime::now(),
            jobs.iter().map(read).collect::<Vec<_>>(),
        )
    });
    let work = try_join(verify, run_jobs(session, jobs));
    let done = match session.options().deadline {
        None => work.await.map(drop),
        Some(deadline) => within(deadline, work).await,
    };
    if let (Ok(()), Some((tracer, began, reads))) = (&done, traced) {
        tracer.note(&reads, began);
    }
    done
}

async fn within<T>(deadline: Duration, work: impl Future<Output = Result<T>>) -> Result<()> {
    match tokio::time::timeout(deadline, work).await {
        Ok(done) => done.map(drop),
        Err(_) => Err(Error::unavailable(format!(
            "the read took longer than its deadline of {deadline:?}"
        ))
        .as_timeout()
        .with_hint(
            "allow more time, read less at a time, or see what is slow with `explain --analyze`",
        )),
    }
}

/// Objects that are planned together; a query with more is planned in several steps.
const BATCH: usize = 4096;

async fn run_jobs(session: &Session, mut jobs: Vec<Job>) -> Result<()> {
    for job in jobs.iter_mut().filter(|job| job.state.pending) {
        job.state = job.array.ready().await?;
    }
    if jobs.iter().all(|job| job.state.mosaic.is_none()) {
        return run_round(session, jobs).await;
    }
    for round in mosaic::rounds(jobs).await? {
        let (jobs, conversions) = round.split();
        run_round(session, jobs).await?;
        Round::finish(conversions)?;
    }
    Ok(())
}

/// Reads selections of arrays that have their cells themselves, or in replicas.
async fn run_round(session: &Session, jobs: Vec<Job>) -> Result<()> {
    match jobs.iter().any(|job| job.array.may_have_replicas()) {
        true => replicas::run(session, jobs).await,
        false => run_plain(session, jobs).await,
    }
}

/// Reads selections from the objects of their own arrays.
pub(crate) async fn run_plain(session: &Session, jobs: Vec<Job>) -> Result<()> {
    if let [job] = &jobs[..]
        && !job.array.inner().open.lazy
        && let Some(done) = here::read_held(job)
    {
        return done;
    }
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
        if let Some(done) = here::read_files(job, &batch) {
            done?;
            continue;
        }
        let job = job.clone();
        lanes::run(session, batch, flight, move |object| {
            let job = job.clone();
            async move {
                let fetched = job.array.fetch_file(&job.state, &object.key).await;
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
    let locate = which_to_locate(&batch)?;
    let batch = batch.into_iter().zip(locate);
    let mut ready = stream::iter(batch.map(|((job, object), locate)| async move {
        let named = job.array.name_chunk(&object);
        let prepared = job.array.prepare(&job.state, object, locate).await;
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
        let longest: Vec<u64> = methods
            .iter()
            .zip(&described)
            .map(|(method, described)| longest(method, described))
            .collect();
        let mut waiting: Vec<Option<Waiting>> = Vec::with_capacity(now.len());
        for ((job, prepared), method) in now.into_iter().zip(methods) {
            waiting.push(Some((job, prepared, method)));
        }
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
        // What takes longest starts first, so that it does not end last; nothing takes as long as a
        // call.
        let mut alone: Vec<(u64, Waiting)> = waiting
            .into_iter()
            .zip(longest)
            .filter_map(|(object, longest)| Some((longest, object?)))
            .collect();
        alone.sort_by_key(|(longest, _)| std::cmp::Reverse(*longest));
        // The pieces of a file are read by themselves, so that few of them are held at a time.
        let alone = alone
            .into_iter()
            .flat_map(|(longest, (job, prepared, method))| {
                let parts = match job.state.file {
                    Some(_) => parts::split(prepared, method),
                    None => vec![(prepared, method)],
                };
                let each = parts.into_iter();
                each.map(move |(prepared, method)| (longest, (job.clone(), prepared, method)))
            });
        for (_, (mut job, mut prepared, mut method)) in alone {
            let bytes = job.array.flight_bytes(&job.state, &prepared.object);
            let permit = tasks.memory(bytes).await?;
            tasks.spawn(async move {
                let named = job.array.name_chunk(&prepared.object);
                if matches!(method, Method::Function(_)) {
                    let mut waiting = (job, prepared, method);
                    settle(&mut waiting).await?;
                    (job, prepared, method) = waiting;
                }
                let read = read_object(&job, &mut prepared, method).await;
                read.map_err(named)?;
                drop(permit);
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Bytes of the longest request for an object; a call counts as longer than any.
fn longest(method: &Method, described: &Described) -> u64 {
    match method {
        Method::Get => described.0.size,
        Method::Ranges(ranges) => {
            let each = ranges.iter().map(|range| range.end - range.start);
            each.max().unwrap_or(0)
        }
        Method::Function(_) => u64::MAX,
    }
}

/// Which objects are shards that had better be located first; decided for each store by itself.
fn which_to_locate(batch: &[(Arc<Job>, ObjectPieces)]) -> Result<Vec<bool>> {
    let mut locate = vec![false; batch.len()];
    let unknown = |i: &usize| {
        let (job, object) = &batch[*i];
        let state = &job.state;
        // What can be guessed need not be located.
        state.meta.codecs.sharding().is_some() && state.guess.of(state, object).is_none()
    };
    let mut left: Vec<usize> = (0..batch.len()).filter(unknown).collect();
    while let Some(first) = left.first() {
        let planner = &batch[*first].0.array.inner().open.planner;
        let same = |i: &usize| {
            let other = &batch[*i].0.array.inner().open.planner;
            Arc::ptr_eq(&other.watch, &planner.watch)
        };
        let (now, later): (Vec<usize>, Vec<usize>) = left.iter().partition(|i| same(i));
        let shards: Vec<_> = now
            .iter()
            .map(|i| (&*batch[*i].0.state, &batch[*i].1))
            .collect();
        for (i, chosen) in now.iter().zip(planner.locate(&shards)?) {
            locate[*i] = chosen;
        }
        left = later;
    }
    Ok(locate)
}

/// An object with its plan.
type Waiting = (Arc<Job>, Prepared, Method);

/// Reads objects whose calls of the function travel together; one by one if that fails.
async fn read_bundle(mut objects: Vec<Waiting>) -> Result<()> {
    let Some((first, ..)) = objects.first() else {
        return Ok(());
    };
    let session = first.array.inner().session.clone();
    let settled = try_join_all(objects.iter_mut().map(settle)).await?;
    if let Some(client) = &session.options().function
        && !settled.contains(&false)
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

/// Makes sure where the pieces of an object lie before the function is told; one that was guessed
/// wrong is not for the function any more. Returns whether it still is.
async fn settle((job, prepared, method): &mut Waiting) -> Result<bool> {
    if !prepared.is_guessed() {
        return Ok(true);
    }
    let named = job.array.name_chunk(&prepared.object);
    let right = job
        .array
        .settle(&job.state, prepared)
        .await
        .map_err(named)?;
    if !right {
        *method = without_function(&describe(&job.state, prepared));
    }
    Ok(right)
}

/// Reads a shard on local disk.
async fn read_file(job: &Arc<Job>, object: ObjectPieces) -> Result<()> {
    let fetched = job.array.fetch_file(&job.state, &object.key).await?;
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

/// How an object is fetched without the function.
fn without_function(described: &Described) -> Method {
    match &described.0 {
        // All that is wanted is cached, or the fill value.
        object if object.runs.is_empty() => Method::Ranges(Vec::new()),
        object if object.splittable => Method::Ranges(vec![object.covering()]),
        _ => Method::Get,
    }
}

impl Array {
    /// Bytes that reading an object holds at a time, roughly: encoded and decoded.
    pub(crate) fn flight_bytes(&self, state: &State, object: &ObjectPieces) -> u64 {
        let unit = state.unit_bytes() as u64;
        if self.inner().open.lazy && state.meta.unit_codecs().is_raw() {
            return MEMORY_UNIT;
        }
        if self.inner().open.lazy && state.file.is_some() {
            // One after another.
            return 2 * unit;
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
