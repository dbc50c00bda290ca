//! Writes of an array that has, or may have, replicas: mark, write, refresh, unmark.
//!
//! Between the array and the executor of writes. Invariant: a write is acknowledged only when every
//! replica has its cells, or a mark over them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, Either, join, join_all, select};
use hyperslab_index::{Selection, Shape};

use super::copies::{Copies, LOOK, touched};
use super::ledger::{now, token};
use super::manifest::{Cells, Work, Written};
use super::states::Change;
use crate::array::State;
use crate::write::{self, Cells as Values};
use crate::{Array, Error, Result};

/// Nobody writes to a replica for longer than this without saying so again.
pub(crate) const LEASE: Duration = Duration::from_secs(300);
/// So many changes of objects are kept in the manifest; more go into the list of states.
const MOST_CHANGES: usize = 2048;

/// Takes down what became of objects of the original.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted(Arc<Mutex<Vec<(String, Change)>>>);

impl Noted {
    pub(crate) fn add(&self, key: &str, change: Change) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((key.to_owned(), change));
    }

    /// What was taken down, by keys below the array.
    pub(crate) fn taken(&self, copies: &Copies) -> Vec<(String, Change)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = all.drain(..);
        each.map(|(key, change)| (copies.short(&key).to_owned(), change))
            .collect()
    }
}

/// Writes a selection to the original, and to all replicas if there are any. In a box, since healing
/// writes, too.
pub(crate) fn run<'a>(
    array: &'a Array,
    state: Arc<State>,
    selection: &'a Selection,
    cells: Values,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(write_all(array, state, selection, cells))
}

async fn write_all(
    array: &Array,
    state: Arc<State>,
    selection: &Selection,
    cells: Values,
) -> Result<()> {
    let copies = array.copies();
    let Some(boxes) = touched(selection, &state.meta)? else {
        return write::run_plain(array, state, selection, cells, None).await;
    };
    let boxes = vec![boxes];
    let none = copies.ledger.none_since().is_some_and(|since| since < LOOK);
    let told = copies.any_known() || (array.is_flagged() && !none);
    if told && copies.manifest().await?.is_some() {
        let original = (array, &state);
        if let Some(done) = marked(&copies, original, &boxes, selection, &cells).await? {
            return done;
        }
    }
    let write = write::run_plain(array, state.clone(), selection, cells, None);
    unmarked(&copies, &boxes, write).await
}

/// A write by somebody who knows of no replicas: whether there are any is looked up beside it. If
/// there are, what was written is stale in them.
pub(crate) async fn unmarked(
    copies: &Arc<Copies>,
    boxes: &[Cells],
    write: impl Future<Output = Result<()>>,
) -> Result<()> {
    let recent = || copies.ledger.none_since().is_some_and(|since| since < LOOK);
    let look = async {
        match recent() {
            true => Ok(()),
            false => copies.ledger.load().await.map(drop),
        }
    };
    let (looked, done) = join(look, write).await;
    looked?;
    if !copies.any_known() && !recent() {
        copies.ledger.load().await?;
    }
    if !copies.any_known() {
        return done;
    }
    let mine = token();
    let stale = copies.ledger.update(None, |manifest| {
        let names = manifest.names();
        manifest.push_stale(mine, now(), boxes.to_vec(), names);
        Ok(())
    });
    stale.await?;
    copies.heal_quietly(boxes).await;
    done
}

/// A write under a mark; `None` if there are no replicas any more.
async fn marked(
    copies: &Arc<Copies>,
    (array, state): (&Array, &Arc<State>),
    boxes: &[Cells],
    selection: &Selection,
    cells: &Values,
) -> Result<Option<Result<()>>> {
    let Some(mark) = Mark::begin(copies, Work::Write, boxes).await? else {
        return Ok(None);
    };
    let noted = Noted::default();
    let original = write::run_plain(
        array,
        state.clone(),
        selection,
        cells.clone(),
        Some(noted.clone()),
    );
    // Not an iterator over a closure: what it returns would have to live for any time.
    let mut each = Vec::with_capacity(mark.replicas.len());
    for name in &mark.replicas {
        let shape = &state.meta.shape;
        each.push(write_replica(copies, &mark, name, shape, selection, cells));
    }
    let (done, behind) = join(original, join_all(each)).await;
    let written = Written {
        failed: done.is_err(),
        behind: behind.into_iter().flatten().collect(),
        changes: noted.taken(copies),
        also: Vec::new(),
    };
    mark.end_write(written).await?;
    Ok(Some(done))
}

/// Writes cells to a replica; its name if that failed.
async fn write_replica(
    copies: &Copies,
    mark: &Mark,
    name: &str,
    shape: &Shape,
    selection: &Selection,
    cells: &Values,
) -> Option<String> {
    let write = async {
        let replica = copies.replica(name, shape)?;
        let state = replica.state();
        write::run_plain(&replica, state, selection, cells.clone(), None).await
    };
    let e = mark.hold(write).await.err()?;
    copies.fell_behind(name, &e);
    Some(name.to_owned())
}

/// Somebody at work on the cells of an array.
#[derive(Debug)]
pub(crate) struct Mark {
    copies: Arc<Copies>,
    pub(crate) token: u64,
    boxes: Vec<Cells>,
    /// The replicas that there were when it was put.
    pub(crate) replicas: Vec<String>,
    /// Stale marks that there were then.
    pub(crate) found: Vec<u64>,
    renewed: Mutex<Instant>,
}

impl Mark {
    /// Puts a mark for all replicas; `None` if there are none.
    pub(crate) async fn begin(
        copies: &Arc<Copies>,
        work: Work,
        boxes: &[Cells],
    ) -> Result<Option<Mark>> {
        let (mine, began) = (token(), Instant::now());
        let begun = copies.ledger.update(None, |manifest| {
            let names = manifest.names();
            let found = manifest.marks.iter().map(|m| m.token).collect();
            manifest.begin(mine, now(), work, boxes.to_vec(), names.clone());
            Ok((names, found))
        });
        let begun = begun.await?;
        Ok(begun.map(|(replicas, found)| Mark::put(copies, mine, boxes, replicas, found, began)))
    }

    /// A mark that was put.
    pub(crate) fn put(
        copies: &Arc<Copies>,
        token: u64,
        boxes: &[Cells],
        replicas: Vec<String>,
        found: Vec<u64>,
        began: Instant,
    ) -> Mark {
        Mark {
            copies: copies.clone(),
            token,
            boxes: boxes.to_vec(),
            replicas,
            found,
            renewed: Mutex::new(began),
        }
    }

    /// Runs work on replicas for as long as the mark is sure to be there, and keeps it there. Whoever
    /// takes over old marks waits for longer than that.
    pub(crate) async fn hold<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let work = std::pin::pin!(work);
        let keep = std::pin::pin!(self.keep());
        match select(work, keep).await {
            Either::Left((done, _)) => done,
            Either::Right((e, _)) => Err(e),
        }
    }

    async fn keep(&self) -> Error {
        let renewed = || *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = LEASE.saturating_sub(renewed().elapsed());
            if left.is_zero() {
                return Error::unavailable("the mark of a write could not be renewed in time");
            }
            tokio::time::sleep((LEASE / 5).min(left)).await;
            let at = Instant::now();
            let renew = self.copies.ledger.update(None, |manifest| {
                let mut marks = manifest.marks.iter_mut();
                match marks.find(|m| m.token == self.token && m.work != Work::Stale) {
                    Some(mark) => mark.since = now(),
                    None => return Err(Error::conflict("somebody took the mark of this write")),
                }
                Ok(())
            });
            match tokio::time::timeout(LEASE / 5, renew).await {
                Ok(Ok(Some(()))) => {
                    *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = at;
                }
                Ok(Err(e)) if e.kind() == crate::ErrorKind::Conflict => return e,
                // It is tried again as long as there is time.
                _ => {}
            }
        }
    }

    /// Ends a write. If the manifest cannot be put the mark stays where it is, which is safe.
    pub(crate) async fn end_write(self, written: Written) -> Result<()> {
        let copies = &self.copies;
        let ended = copies.ledger.update(None, |manifest| {
            Ok(manifest.end_write(self.token, now(), &self.boxes, &written))
        });
        match ended.await {
            // Others may have left stale cells here that they could not heal because of this write.
            Ok(_) => {
                let also = written.also.iter().chain(&self.boxes).cloned();
                copies.heal_quietly(&also.collect::<Vec<_>>()).await;
            }
            Err(e) => tracing::warn!("a mark stays on {}: {e}", copies.location.url()),
        }
        copies.fold().await;
        Ok(())
    }
}

impl Copies {
    /// Tells that a replica could not be written.
    pub(crate) fn fell_behind(&self, name: &str, why: &Error) {
        tracing::warn!(
            "the replica {name} of {} is behind: {why}",
            self.location.url()
        );
    }

    /// A replica by name, as an array of this shape.
    pub(crate) fn replica(&self, name: &str, shape: &Shape) -> Result<Array> {
        let known = self.ledger.known();
        let found = known
            .as_ref()
            .and_then(|known| known.manifest.replica(name));
        let found = found.ok_or_else(|| Error::not_found(format!("the replica {name} is gone")))?;
        self.array(found, shape)
    }

    /// Puts changes of objects into the list of states when they have become many.
    async fn fold(&self) {
        let Some(known) = self.ledger.known() else {
            return;
        };
        if known.manifest.changed.len() <= MOST_CHANGES {
            return;
        }
        if let Err(e) = self.try_fold(&known.manifest).await {
            tracing::debug!("states of {} were not gathered: {e}", self.location.url());
        }
    }

    async fn try_fold(&self, manifest: &super::manifest::Manifest) -> Result<()> {
        let Some(old) = &manifest.seen else {
            return Ok(());
        };
        let seen = self.ledger.load_seen(old).await?;
        let name = self
            .ledger
            .save_seen(&seen.folded(&manifest.changed))
            .await?;
        let folded = self.ledger.update(None, |next| {
            if next.seen.as_ref() != Some(old) {
                return Ok(false);
            }
            // What has changed since is a change of what it was folded to.
            next.changed.retain(|key, change| {
                let Some(before) = manifest.changed.get(key).copied() else {
                    return true;
                };
                if before == *change {
                    return false;
                }
                if change.from == before.from {
                    change.from = change.from.map(|_| before.to);
                }
                true
            });
            next.seen = Some(name.clone());
            Ok(true)
        });
        match folded.await? {
            Some(true) => self.ledger.discard(old).await,
            _ => self.ledger.discard(&name).await,
        }
        Ok(())
    }
}
