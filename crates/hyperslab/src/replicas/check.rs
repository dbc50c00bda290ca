//! Finds what foreign writers changed: compares the states of the original's objects with those that
//! the manifest accounts for.
//!
//! Beside the choice of a copy. Invariant: cells of an object that was changed by somebody who puts no
//! marks are not answered from a replica after a comparison that began later than that change.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format::ArrayMeta;
use hyperslab_index::{ChunkGrid, Shape};

use super::copies::Copies;
use super::ledger::Known;
use super::manifest::{Cells, Manifest};
use super::states::{ABSENT, Seen, state_of};
use crate::{Array, Error, Result};

/// Objects that are looked at by themselves, at most; requests at a time.
const SINGLE: usize = 256;
const CONCURRENT: usize = 32;
/// Chunks of a grid that are gone through for objects that are gone, at most.
const MOST_CHUNKS: u64 = 1 << 22;
/// How often what differs is looked at again: one of our own writers may have been faster.
const ROUNDS: usize = 3;

/// What is known of foreign changes.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    found: Mutex<Option<Found>>,
    seen: Mutex<Option<(String, Arc<Seen>)>>,
    /// A comparison goes on in the background.
    running: AtomicBool,
}

/// The result of a comparison.
#[derive(Debug, Clone)]
struct Found {
    /// When it began.
    at: Instant,
    /// The list of states that objects were compared with, and its name.
    seen: Arc<Seen>,
    name: Option<String>,
    /// Objects that were not as they should be: key, cells and state.
    off: Arc<Vec<(String, Cells, u64)>>,
    /// Objects are gone, and it is not known which.
    lost: bool,
}

/// The objects of an array: index, key below the array, state.
type Listed = Vec<(Vec<u64>, String, u64)>;

impl Foreign {
    fn found(&self) -> Option<Found> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.clone()
    }

    /// True if no foreign change of these cells is known.
    pub(crate) fn spares(&self, manifest: &Manifest, cells: &Cells) -> bool {
        let Some(found) = self.found().filter(|found| !found.lost) else {
            return false;
        };
        let expected = |key: &str| found.seen.expected(key, &manifest.changed);
        let mut off = found.off.iter();
        !off.any(|(key, at, state)| at.meets(cells) && expected(key) != Some(*state))
    }

    /// Forgets all comparisons.
    pub(crate) fn forget(&self) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Copies {
    /// Makes sure that a comparison is at most as old as the options say. False if that takes long;
    /// it goes on in the background.
    pub(crate) async fn compared(self: &Arc<Self>, array: &Array, known: &Known) -> Result<bool> {
        let most = self.session.options().replica_check;
        let found = self.foreign.found();
        if found.is_some_and(|f| f.at.elapsed() <= most && f.name == known.manifest.seen) {
            return Ok(true);
        }
        let original = &array.as_plain();
        if self.foreign.running.load(Ordering::Acquire) {
            return Ok(false);
        }
        let at = Instant::now();
        let (listed, page) = original.list_page(None).await?;
        let Some(page) = page else {
            self.compare(original, listed, at).await?;
            return Ok(true);
        };
        if !self.foreign.running.swap(true, Ordering::AcqRel) {
            let (copies, original) = (self.clone(), original.clone());
            crate::handle()?.spawn(async move {
                let compared = copies.compare_pages(&original, listed, page, at).await;
                if let Err(e) = compared {
                    tracing::warn!("the replicas of {} were not checked: {e}", original.url());
                }
                copies.foreign.running.store(false, Ordering::Release);
            });
        }
        Ok(false)
    }

    async fn compare_pages(
        &self,
        original: &Array,
        mut listed: Listed,
        page: String,
        at: Instant,
    ) -> Result<()> {
        listed.extend(original.list_from(Some(page)).await?);
        self.compare(original, listed, at).await
    }

    /// Compares all objects now, and tells which differ: their keys, cells and states.
    pub(crate) async fn compare_now(&self, original: &Array) -> Result<Vec<(String, Cells, u64)>> {
        let at = Instant::now();
        let listed = original.list_from(None).await?;
        self.compare(original, listed, at).await?;
        let Some(found) = self.foreign.found() else {
            return Ok(Vec::new());
        };
        if found.lost {
            return Err(Error::conflict(format!(
                "objects of {} are gone, and it is not known which",
                original.url()
            ))
            .with_hint("remove the replicas and make them again"));
        }
        Ok(found.off.to_vec())
    }

    /// The list of states that a manifest names.
    async fn seen(&self, known: &Known) -> Result<Arc<Seen>> {
        let Some(name) = &known.manifest.seen else {
            return Ok(Arc::default());
        };
        {
            let held = self
                .foreign
                .seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some((_, seen)) = held.as_ref().filter(|(held, _)| held == name) {
                return Ok(seen.clone());
            }
        }
        let seen = Arc::new(self.ledger.load_seen(name).await?);
        *self
            .foreign
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((name.clone(), seen.clone()));
        Ok(seen)
    }

    async fn compare(&self, original: &Array, listed: Listed, at: Instant) -> Result<()> {
        let meta = original.meta();
        let mut states: HashMap<String, u64> = HashMap::new();
        states.extend(listed.iter().map(|(_, key, state)| (key.clone(), *state)));
        let mut again: Option<Vec<Vec<u64>>> = None;
        let mut result = None;
        for round in 0..ROUNDS {
            if let Some(indexes) = &again {
                states.extend(original.states(indexes).await?);
            }
            // Not before the objects were listed: a write since then has left its mark, or its states.
            let Some(known) = self.ledger.load().await? else {
                self.foreign.forget();
                return Ok(());
            };
            let seen = match self.seen(&known).await {
                Ok(seen) => seen,
                // It has been replaced, and the manifest with it.
                Err(e) if e.is_not_found() && round + 1 < ROUNDS => continue,
                Err(e) => return Err(e),
            };
            let manifest = &known.manifest;
            let grid = ChunkGrid::new(&manifest.around(&meta.shape)?, &meta.chunk_shape)?;
            let (suspects, lost) = match again.take() {
                Some(indexes) => (indexes, false),
                None => suspects((&meta, &grid), &states, &seen, manifest)?,
            };
            let off: Vec<(Vec<u64>, String, Cells, u64)> = suspects
                .into_iter()
                .filter_map(|index| {
                    let (key, cells) =
                        (meta.keys.key(&index), Cells::of(&grid.chunk_region(&index)));
                    let state = states.get(&key).copied().unwrap_or(ABSENT);
                    let noted = seen.expected(&key, &manifest.changed) == Some(state);
                    (!noted && !manifest.is_marked(&cells)).then_some((index, key, cells, state))
                })
                .collect();
            let indexes: Vec<Vec<u64>> = off.iter().map(|(index, ..)| index.clone()).collect();
            let off: Vec<_> = off.into_iter().map(|(_, k, c, s)| (k, c, s)).collect();
            let done = indexes.is_empty() || indexes.len() > SINGLE || lost;
            result = Some(Found {
                at,
                seen,
                name: manifest.seen.clone(),
                off: Arc::new(off),
                lost,
            });
            if done {
                break;
            }
            again = Some(indexes);
        }
        *self
            .foreign
            .found
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = result;
        Ok(())
    }
}

/// Chunks that are not as the manifest accounts for, whatever marks say; and whether objects are gone
/// that are none of the grid's.
fn suspects(
    (meta, grid): (&ArrayMeta, &ChunkGrid),
    states: &HashMap<String, u64>,
    seen: &Seen,
    manifest: &Manifest,
) -> Result<(Vec<Vec<u64>>, bool)> {
    let grid = Shape::new(grid.grid_shape())?;
    let rank = grid.rank();
    let expected = |key: &str| seen.expected(key, &manifest.changed);
    let mut found: Vec<Vec<u64>> = states
        .iter()
        .filter(|(key, state)| expected(key) != Some(**state))
        .filter_map(|(key, _)| meta.keys.parse(key, rank))
        .filter(|index| index.iter().zip(grid.iter()).all(|(i, n)| i < n))
        .collect();
    let missing = seen.missing(states.keys().map(String::as_str), &manifest.changed);
    if missing == 0 {
        return Ok((found, false));
    }
    if grid.num_cells() > MOST_CHUNKS {
        return Ok((found, true));
    }
    let listed = found.len();
    for at in 0..grid.num_cells() {
        let index = grid.coords_of(at).to_vec();
        let key = meta.keys.key(&index);
        if !states.contains_key(&key) && expected(&key) != Some(ABSENT) {
            found.push(index);
        }
    }
    let lost = found.len() - listed < missing;
    Ok((found, lost))
}

impl Array {
    /// A page of the array's objects, and the token of the next.
    pub(crate) async fn list_page(&self, page: Option<String>) -> Result<(Listed, Option<String>)> {
        let (found, next) = self.object_page(page).await?;
        let keys = &self.meta().keys;
        let each = found.into_iter().map(|(index, meta)| {
            let key = keys.key(&index);
            (index, key, state_of(&meta))
        });
        Ok((each.collect(), next))
    }

    /// All pages from this one on.
    pub(crate) async fn list_from(&self, mut page: Option<String>) -> Result<Listed> {
        let mut all = Vec::new();
        loop {
            let (listed, next) = self.list_page(page).await?;
            all.extend(listed);
            if next.is_none() {
                return Ok(all);
            }
            page = next;
        }
    }

    /// The states of the objects of some chunks, asked for one by one.
    pub(crate) async fn states(&self, chunks: &[Vec<u64>]) -> Result<Vec<(String, u64)>> {
        let (state, meta) = (self.state(), self.meta());
        let mut each = Vec::with_capacity(chunks.len());
        for index in chunks {
            let (full, key) = (state.key(index), meta.keys.key(index));
            each.push(async move {
                match self.inner().open.store.head(&full).await {
                    Ok(meta) => Ok((key, state_of(&meta))),
                    Err(e) if e.is_not_found() => Ok((key, ABSENT)),
                    Err(e) => Err(e),
                }
            });
        }
        stream::iter(each).buffered(CONCURRENT).try_collect().await
    }
}
