//! Plain chunks of local arrays, read or written by all cores without a task for each.
//!
//! A chunk on local disk is worth some hundred microseconds of work, of which handing it from
//! thread to thread would be a good part. So chunks are taken in batches that the worker threads
//! divide among themselves, each a stretch of neighbours: neighbours lie in one directory, and two
//! threads that make files in one directory wait for each other.
//!
//! Invariant: a batch that is dropped or fails stops at the next chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_format::ObjectPieces;
use hyperslab_store::blocking_here;
use rayon::prelude::*;

use crate::tasks::{acquire, panicked};
use crate::{Result, Session, runtime};

/// Chunks in a batch, per core: enough that cores seldom wait for one another at its end, few enough
/// that other reads of the session get their turn.
const PER_CORE: usize = 128;

/// How many objects make a batch.
pub(crate) fn batch(session: &Session) -> usize {
    PER_CORE * session.options().cores.max(1)
}

/// Stops a batch when nobody waits for it any more.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` for every object, on all cores; it may use the disk where it runs.
/// `flight` is what one of them holds in memory at a time.
pub(crate) async fn run<F, W>(
    session: &Session,
    objects: Vec<ObjectPieces>,
    flight: u64,
    work: W,
) -> Result<()>
where
    F: Future<Output = Result<()>>,
    W: Fn(ObjectPieces) -> F + Send + Sync + 'static,
{
    if objects.is_empty() {
        return Ok(());
    }
    let handle = runtime::handle()?;
    let options = session.options();
    let fitting = usize::try_from(options.memory / flight.max(1)).unwrap_or(usize::MAX);
    let lanes = options.cores.min(fitting).clamp(1, objects.len());
    let permits = acquire(&session.inner().cpu, lanes as u32).await?;
    let stop = Stop(Arc::default());
    let stopped = stop.0.clone();
    let (send, receive) = tokio::sync::oneshot::channel();
    runtime::workers()?.spawn(move || {
        let each = |object: ObjectPieces| {
            if stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            let done = blocking_here(|| handle.block_on(work(object)));
            if done.is_err() {
                stopped.store(true, Ordering::Relaxed);
            }
            done
        };
        // Stretches of neighbours, one for each lane; a lane that is done takes half of another's.
        let all = || {
            let stretch = objects.len().div_ceil(lanes);
            // Where memory allows fewer lanes than cores, stretches must not be divided further.
            let least = if lanes == fitting { stretch } else { 1 };
            objects
                .into_par_iter()
                .with_min_len(least)
                .with_max_len(stretch)
                .try_for_each(each)
        };
        // A panic must not take the worker with it; the receiver hears of it by the lost sender.
        let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(all));
        drop(permits);
        if let Ok(answer) = answer {
            // Nobody listens any more when the operation was cancelled.
            let _ = send.send(answer);
        }
    });
    let answer = receive.await.unwrap_or_else(|_| Err(panicked()));
    drop(stop);
    answer
}
