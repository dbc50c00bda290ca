//! Reads of arrays with replicas: each is answered from the copy that is cheapest by the planner's
//! model, and from the original if that copy turns out to be old.
//!
//! Between the mosaic and the executor of reads. Invariant: cells of a replica are returned only if the
//! manifest, as it was stored at some time after the read began, let the replica answer for them.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, join, join_all, join3};
use hyperslab_index::Selection;
use hyperslab_plan::{Estimate, Object};

use super::copies::{Copies, fits};
use super::ledger::Known;
use super::manifest::Cells;
use crate::array::{Array, State};
use crate::plan::{Described, guessed_shard, wanted};
use crate::read::{self, Job};
use crate::{Result, Session};

/// Objects that an estimate looks at, at most; a larger read is taken for more of the same.
const SAMPLE: usize = 1024;

/// A copy that may answer a read.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// `None` for the original.
    pub(crate) name: Option<String>,
    pub(crate) array: Array,
    pub(crate) state: Arc<State>,
    pub(crate) estimate: Estimate,
    pub(crate) cost: f64,
}

/// A job that a replica is to answer.
struct Picked {
    original: Job,
    job: Job,
    copies: Arc<Copies>,
    known: Known,
    /// Objects of the replica that were absent before this read.
    absences: u64,
}

impl Picked {
    /// True if the replica was current at some time since the read began.
    async fn confirmed(&self) -> bool {
        let fresh = self.copies.session.options().replica_fresh;
        if !fresh.is_zero() && self.known.at.elapsed() <= fresh {
            return true;
        }
        self.still_current().await
    }

    async fn still_current(&self) -> bool {
        let current = self.copies.ledger.is_current(&self.known).await;
        current.unwrap_or_else(|e| {
            tracing::debug!(
                "the manifest of {} was not read: {e}",
                self.original.array.url()
            );
            false
        })
    }

    /// An absent object is the fill value, or one of a replica that was removed just now.
    async fn confirmed_absent(&self) -> bool {
        self.job.array.absences() == self.absences || self.still_current().await
    }
}

/// Reads jobs, some of which are of arrays with replicas.
pub(crate) async fn run(session: &Session, jobs: Vec<Job>) -> Result<()> {
    let (mut plain, mut picked, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        match pick(&job).await {
            Ok(Some((candidate, copies, known))) => {
                let of = |array: &Array, state: &Arc<State>| Job {
                    array: array.clone(),
                    state: state.clone(),
                    selection: job.selection.clone(),
                    destination: job.destination.clone(),
                };
                picked.push(Picked {
                    job: of(&candidate.array, &candidate.state),
                    absences: candidate.array.absences(),
                    original: of(&job.array, &job.state),
                    copies,
                    known,
                });
            }
            Ok(None) => {
                blocked.extend(blocked_by(&job.array, &job.state, &job.selection));
                plain.push(job);
            }
            Err(e) => {
                tracing::debug!("the replicas of {} are not used: {e}", job.array.url());
                plain.push(job);
            }
        }
    }
    let mut looks = Vec::with_capacity(blocked.len());
    for (copies, known) in &blocked {
        looks.push(copies.ledger.is_current(known));
    }
    if picked.is_empty() {
        // Whether the marks are still there the next read will know.
        let (done, _) = join(read::run_plain(session, plain), join_all(looks)).await;
        return done;
    }
    let again = |job: &Job| Job {
        array: job.array.clone(),
        state: job.state.clone(),
        selection: job.selection.clone(),
        destination: job.destination.clone(),
    };
    let chosen = picked
        .iter()
        .map(|p| again(&p.job))
        .chain(plain.iter().map(again));
    let work = read::run_plain(session, chosen.collect());
    // Not an iterator over a closure: what it returns would have to live for any time.
    let mut confirm = Vec::with_capacity(picked.len());
    for one in &picked {
        confirm.push(one.confirmed());
    }
    let (done, confirmed, _) = join3(work, join_all(confirm), join_all(looks)).await;
    if let Err(e) = done {
        tracing::debug!("a read from a replica failed, and is done from the original: {e}");
        let originals = picked.into_iter().map(|p| p.original).chain(plain);
        return read::run_plain(session, originals.collect()).await;
    }
    let mut old = Vec::new();
    for (picked, confirmed) in picked.into_iter().zip(confirmed) {
        if !confirmed || !picked.confirmed_absent().await {
            old.push(picked.original);
        } else {
            session.inner().answered_by_replica();
        }
    }
    match old.is_empty() {
        true => Ok(()),
        false => read::run_plain(session, old).await,
    }
}

/// Reads strings from a replica, if that is best and current. In a box, since a replica is read as any
/// array is.
pub(crate) fn read_strings<'a>(
    array: &'a Array,
    state: &'a Arc<State>,
    selection: &'a Selection,
) -> BoxFuture<'a, Result<Option<Vec<Bytes>>>> {
    Box::pin(strings_of_replica(array, state, selection))
}

async fn strings_of_replica(
    array: &Array,
    state: &Arc<State>,
    selection: &Selection,
) -> Result<Option<Vec<Bytes>>> {
    let found = match choose(array, state, selection).await {
        Ok(found) => found,
        Err(e) => {
            tracing::debug!("the replicas of {} are not used: {e}", array.url());
            None
        }
    };
    let Some((candidates, copies, known)) = found else {
        if let Some((copies, known)) = blocked_by(array, state, selection) {
            // If that fails the next read will know no more than this one.
            let _ = copies.ledger.is_current(&known).await;
        }
        return Ok(None);
    };
    let Some(candidate) = best_replica(candidates) else {
        return Ok(None);
    };
    let before = candidate.array.absences();
    let read = crate::strings::run(&candidate.array, candidate.state.clone(), selection);
    let (cells, current) = join(read, copies.ledger.is_current(&known)).await;
    let mut current = current.unwrap_or(false);
    if current && candidate.array.absences() != before {
        current = copies.ledger.is_current(&known).await.unwrap_or(false);
    }
    if current && cells.is_ok() {
        array.session().inner().answered_by_replica();
    }
    Ok(cells.ok().filter(|_| current))
}

async fn pick(job: &Job) -> Result<Option<(Candidate, Arc<Copies>, Known)>> {
    let found = choose(&job.array, &job.state, &job.selection).await?;
    Ok(found
        .and_then(|(candidates, copies, known)| Some((best_replica(candidates)?, copies, known))))
}

/// The replicas that did not answer a read because its cells are marked, as far as is known.
fn blocked_by(array: &Array, state: &State, selection: &Selection) -> Option<(Arc<Copies>, Known)> {
    if !array.may_have_replicas() || !array.session().options().replicas {
        return None;
    }
    let cells = Cells::of(&selection.bounding(&state.meta.shape)?);
    let copies = array.copies();
    let known = copies.ledger.known()?;
    let waits = known
        .manifest
        .replicas
        .iter()
        .any(|replica| !replica.complete || known.manifest.is_marked(&cells));
    waits.then_some((copies, known))
}

/// Which copy is the cheapest; the first of equals.
pub(crate) fn best(candidates: &[Candidate]) -> Option<usize> {
    let costs = candidates
        .iter()
        .map(|candidate| candidate.cost)
        .enumerate();
    let least = costs.reduce(|best, next| if next.1 < best.1 { next } else { best });
    least.map(|(at, _)| at)
}

/// The cheapest replica, if it is cheaper than the original.
fn best_replica(mut candidates: Vec<Candidate>) -> Option<Candidate> {
    let at = best(&candidates)?;
    Some(candidates.swap_remove(at)).filter(|best| best.name.is_some())
}

/// The copies that may answer a read, the original first; `None` if it is the only one.
pub(crate) async fn choose(
    array: &Array,
    state: &Arc<State>,
    selection: &Selection,
) -> Result<Option<(Vec<Candidate>, Arc<Copies>, Known)>> {
    if !array.may_have_replicas() || !array.session().options().replicas {
        return Ok(None);
    }
    let Some(bounding) = selection.bounding(&state.meta.shape) else {
        return Ok(None);
    };
    let copies = array.copies();
    let Some(known) = copies.manifest().await? else {
        return Ok(None);
    };
    let cells = Cells::of(&bounding);
    let serving = |known: &Known| {
        let mut replicas = known.manifest.replicas.iter();
        replicas.any(|replica| known.manifest.serves(replica, &cells))
    };
    if !fits(&known.manifest, &state.meta)
        || !serving(&known)
        || !copies.compared(array, &known).await?
    {
        return Ok(None);
    }
    // A comparison brings the manifest up to date.
    let Some(known) = copies.ledger.known() else {
        return Ok(None);
    };
    if !copies.foreign.spares(&known.manifest, &cells) {
        return Ok(None);
    }
    if let Some(mean) = known.manifest.bytes.checked_div(known.manifest.objects) {
        state.expect_size(mean);
    }
    let mut candidates = vec![Candidate::new(None, array, state.clone(), selection)?];
    for replica in &known.manifest.replicas {
        if known.manifest.serves(replica, &cells) {
            let array = copies.array(replica, &state.meta.shape)?;
            let state = array.state();
            let name = Some(replica.name.clone());
            candidates.push(Candidate::new(name, &array, state, selection)?);
        }
    }
    Ok((candidates.len() > 1).then_some((candidates, copies, known)))
}

impl Candidate {
    fn new(
        name: Option<String>,
        array: &Array,
        state: Arc<State>,
        selection: &Selection,
    ) -> Result<Self> {
        let estimate = estimate(array, &state, selection)?;
        let model = array.inner().open.planner.model();
        Ok(Candidate {
            name,
            array: array.clone(),
            state,
            cost: model.weigh(estimate.seconds, estimate.dollars),
            estimate,
        })
    }
}

/// What reading a selection takes by the planner's model; nothing is asked for.
fn estimate(array: &Array, state: &State, selection: &Selection) -> Result<Estimate> {
    let planner = &array.inner().open.planner;
    let objects: Vec<_> = state.resolver.objects(selection)?.take(SAMPLE).collect();
    let sharded = state.meta.codecs.sharding();
    let locate = match sharded {
        Some(_) => {
            let shards: Vec<_> = objects.iter().map(|object| (state, object)).collect();
            planner.locate(&shards)?
        }
        None => vec![false; objects.len()],
    };
    let mut described = Vec::with_capacity(objects.len());
    for (object, locate) in objects.iter().zip(&locate) {
        if *locate {
            let (located, index) = guessed_shard(state, object);
            described.push(Described(located));
            described.push(Described(Object::encoded(index.max(1), 0)));
        } else {
            described.push(wanted(state, object));
        }
    }
    let mut estimate = planner
        .plan_as(&described, array.session().options().planner)?
        .estimate;
    if locate.contains(&true) {
        // Indexes come first.
        estimate.seconds += planner.model().network().latency_seconds;
    }
    if objects.len() == SAMPLE {
        let looked: u64 = objects
            .iter()
            .flat_map(|object| &object.pieces)
            .map(|piece| piece.part.num_cells())
            .sum();
        let all = selection.num_cells(&state.meta.shape);
        let times = all as f64 / looked.max(1) as f64;
        estimate.seconds *= times;
        estimate.dollars *= times;
        estimate.requests = (estimate.requests as f64 * times) as u64;
        estimate.calls = (estimate.calls as f64 * times) as u64;
        estimate.bytes = (estimate.bytes as f64 * times) as u64;
    }
    Ok(estimate)
}
