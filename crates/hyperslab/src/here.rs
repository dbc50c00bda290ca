//! Reads of a few cells, done where they are asked for: handing them to other threads, and planning
//! them, would take longer than they do.
//!
//! Beside the executor, which does whatever is not done here. Invariant: nothing here waits, but for
//! the disk where the store is on it.

use std::sync::Arc;

use futures::FutureExt;
use hyperslab_format::ObjectPieces;
use hyperslab_store::{Body, blocking_here};

use crate::Result;
use crate::cache::{Held, join};
use crate::deliver::{deliver, prepare};
use crate::fetch::Fetched;
use crate::plan::wanted;
use crate::read::Job;

/// Bytes that are decoded, at most.
const SMALL: u64 = 128 << 10;
/// Bytes that are copied, at most.
const SMALL_COPY: u64 = 512 << 10;
/// Objects, at most.
const FEW: usize = 4;

/// How much is done here, at most.
fn limit(job: &Job) -> u64 {
    match job.state.has_raw_units() {
        true => SMALL_COPY,
        false => SMALL,
    }
}

/// Bytes that pieces of an object decode to.
fn work(job: &Job, object: &ObjectPieces) -> u64 {
    let cells: u64 = object
        .pieces
        .iter()
        .map(|piece| piece.part.num_cells())
        .sum();
    let unit = job.state.unit_bytes() as u64;
    match job.state.has_raw_units() {
        true => cells.saturating_mul(job.state.cell as u64),
        false => unit.saturating_mul(object.pieces.len() as u64),
    }
}

/// Reads a few cells of local files. `None` if they are many, or if that would have to wait.
pub(crate) fn read_files(job: &Arc<Job>, objects: &[ObjectPieces]) -> Option<Result<()>> {
    let total: u64 = objects
        .iter()
        .take(FEW)
        .map(|object| work(job, object))
        .sum();
    if objects.len() > FEW || total > limit(job) {
        return None;
    }
    for object in objects {
        let read = async {
            let fetched = job.array.fetch_file(&job.state, &object.key).await?;
            deliver(job, &object.pieces, &prepare(&job.state, fetched)?)
        };
        if let Err(e) = blocking_here(|| read.now_or_never())? {
            return Some(Err(job.array.name_chunk(object)(e)));
        }
    }
    Some(Ok(()))
}

/// Reads a few cells of a remote store that are in the session's memory, and need not be asked for
/// again. `None` if they are many, or not all there.
pub(crate) fn read_held(job: &Job) -> Option<Result<()>> {
    let session = job.array.inner().session.inner();
    if session.chunks.is_off()
        || job.state.meta.codecs.sharding().is_some()
        || job.state.file.is_some()
    {
        return None;
    }
    let mut found = Vec::new();
    let mut total = 0;
    for object in job.state.resolver.objects(&job.selection).ok()? {
        total += work(job, &object);
        if found.len() == FEW || total > limit(job) {
            return None;
        }
        let fetched = held(job, &object)?;
        found.push((object, fetched));
    }
    let mut each = found.into_iter();
    Some(each.try_for_each(|(object, fetched)| {
        let ready = prepare(&job.state, fetched);
        let done = ready.and_then(|ready| deliver(job, &object.pieces, &ready));
        done.map_err(job.array.name_chunk(&object))
    }))
}

/// What is wanted of an object, if all of it is in memory and fresh.
fn held(job: &Job, object: &ObjectPieces) -> Option<Fetched> {
    let session = &job.array.inner().session;
    let memory = session
        .inner()
        .chunks
        .of(&job.array.cache_name(&object.key));
    if memory.is_empty() {
        return None;
    }
    let fresh = session.options().cache_fresh;
    let held = Held::new(memory, Vec::new(), fresh, false);
    let wanted = wanted(&job.state, object).0;
    let mut missing = wanted.clone();
    held.take_out(&mut missing);
    if !held.fresh() || !missing.runs.is_empty() {
        return None;
    }
    let parts = held.sources().load(None, &held.needed(&wanted, &[]))?;
    let mut bodies = join(parts);
    Some(match wanted.splittable {
        true => Fetched::Ranges(bodies),
        false => {
            let (_, body): (u64, Body) = bodies.pop()?;
            Fetched::Whole(body)
        }
    })
}
