//! Brings cells of replicas up to date from the original.
//!
//! Below writes, refreshing and the making of replicas. Invariant: a stale mark goes only after its
//! cells were copied from the original with no writer at work on them meanwhile.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::future::join_all;
use hyperslab_index::{ChunkGrid, Region, Selection, Shape};

use super::copies::{Copies, fits};
use super::ledger::{now, token};
use super::manifest::{Cells, Manifest, Work};
use super::states::{ABSENT, Change};
use super::work::Mark;
use crate::{Array, CopyOptions, Progress, Result, write};

/// Rounds of healing in one go; writers that keep coming make others.
const ROUNDS: usize = 4;
/// More objects than this are listed, and not asked for one by one.
const MANY: usize = 500;
/// Bytes of cells that are copied at a time.
const PIECE: u64 = 32 << 20;

impl Copies {
    /// Heals stale cells among these if nobody else is at work on them; if it fails they stay stale.
    pub(crate) async fn heal_quietly(self: &Arc<Self>, boxes: &[Cells]) {
        let near = |mark: &super::manifest::Mark| {
            mark.boxes
                .iter()
                .any(|b| boxes.iter().any(|other| b.meets(other)))
        };
        for _ in 0..ROUNDS {
            match self.heal_round(near, &()).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(e) => {
                    tracing::warn!(
                        "replicas of {} stay stale in part: {e}",
                        self.location.url()
                    );
                    return;
                }
            }
        }
    }

    /// Heals all stale cells. False if writers kept coming.
    pub(crate) async fn heal_all(self: &Arc<Self>, progress: &dyn Progress) -> Result<bool> {
        for _ in 0..2 * ROUNDS {
            if !self.heal_round(|_| true, progress).await? {
                let known = self.ledger.load().await?;
                return Ok(known.is_none_or(|known| {
                    let mut marks = known.manifest.marks.iter();
                    !marks.any(|mark| mark.work == Work::Stale)
                }));
            }
        }
        Ok(false)
    }

    /// Heals the stale marks that there are. False if there was nothing to do.
    async fn heal_round(
        self: &Arc<Self>,
        wanted: impl Fn(&super::manifest::Mark) -> bool + Send + Sync,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let (mine, began) = (token(), Instant::now());
        let pick = |manifest: &Manifest| {
            let marks = manifest.idle().into_iter().filter(|m| wanted(m));
            let (mut boxes, mut replicas, mut found) = (Vec::new(), Vec::new(), Vec::new());
            for mark in marks {
                found.push(mark.token);
                boxes.extend(
                    mark.boxes
                        .iter()
                        .filter(|b| !boxes.contains(*b))
                        .cloned()
                        .collect::<Vec<_>>(),
                );
                replicas.extend(
                    mark.replicas
                        .iter()
                        .filter(|r| !replicas.contains(*r))
                        .cloned()
                        .collect::<Vec<_>>(),
                );
            }
            (boxes, replicas, found)
        };
        // Looked at before it is put, so that nothing to do costs no request.
        let idle = self.ledger.known().map(|known| pick(&known.manifest));
        if idle.is_none_or(|(boxes, ..)| boxes.is_empty()) {
            return Ok(false);
        }
        let begun = self.ledger.update(None, |manifest| {
            let (boxes, replicas, found) = pick(manifest);
            if !boxes.is_empty() {
                manifest.begin(mine, now(), Work::Copy, boxes.clone(), replicas.clone());
            }
            Ok((boxes, replicas, found))
        });
        let Some((boxes, replicas, found)) = begun.await?.filter(|(boxes, ..)| !boxes.is_empty())
        else {
            return Ok(false);
        };
        let mark = Mark::put(self, mine, &boxes, replicas, found, began);
        let copied = mark
            .hold(self.copy_boxes(&mark.replicas, &boxes, progress))
            .await;
        let (done, states) = match &copied {
            Ok((done, states)) => (done.clone(), states.clone()),
            Err(_) => Default::default(),
        };
        let ended = self.ledger.update(None, |manifest| {
            Ok(manifest.end_copy(mine, now(), &mark.found, &done, &states))
        });
        let clean = ended.await?.unwrap_or_default();
        copied?;
        Ok(!clean.is_empty())
    }

    /// Copies boxes of cells from the original to replicas. Returns those that have them, and the
    /// states of the original's objects before it was read.
    #[allow(clippy::type_complexity)]
    async fn copy_boxes(
        &self,
        replicas: &[String],
        boxes: &[Cells],
        progress: &dyn Progress,
    ) -> Result<(Vec<String>, Vec<(String, Change)>)> {
        let original = self.current().await?;
        let meta = original.meta();
        if let Some(known) = self.ledger.known()
            && !fits(&known.manifest, &meta)
        {
            return Err(super::manage::made_anew(original.url()));
        }
        // Bytes that a cache still holds may be older than the marks.
        self.session.forget_below(&self.open, &self.location);
        let mut indexes: Vec<Vec<u64>> = Vec::new();
        let mut regions = Vec::new();
        for cells in boxes {
            let region = cells.region()?;
            let inside = region.intersect(&Region::whole(&meta.shape));
            // Objects beyond the border, too: that they are gone is a state as well.
            let grid = ChunkGrid::new(&around(&meta.shape, &region)?, &meta.chunk_shape)?;
            let chunks = region.split(&meta.chunk_shape);
            indexes.extend(chunks.map(|chunk| grid.chunk_of(chunk.start()).to_vec()));
            regions.push((region, inside));
        }
        indexes.sort_unstable();
        indexes.dedup();
        let states = match indexes.len() > MANY {
            false => original.states(&indexes).await?,
            true => {
                let listed = original.list_from(None).await?;
                let mut all: HashMap<String, u64> = Default::default();
                all.extend(listed.into_iter().map(|(_, key, state)| (key, state)));
                let of = |index: &Vec<u64>| {
                    let key = meta.keys.key(index);
                    let state = all.get(&key).copied().unwrap_or(ABSENT);
                    (key, state)
                };
                indexes.iter().map(of).collect()
            }
        };
        let cell = meta.dtype.cell_bytes().unwrap_or(32);
        let total: u64 = regions
            .iter()
            .filter_map(|(_, inside)| inside.as_ref().map(Region::num_cells))
            .sum();
        progress.start(total * cell);
        let mut done = replicas.to_vec();
        for (region, inside) in &regions {
            if inside.as_ref() != Some(region) {
                // Cells beyond the border must not come back when the array grows.
                let shape = around(&meta.shape, region)?;
                for name in &done {
                    let replica = self.replica(name, &shape)?;
                    let selection = Selection::region(region);
                    write::run_fill(&replica, replica.state(), &selection, None).await?;
                }
            }
            let Some(inside) = inside else {
                continue;
            };
            for piece in inside.split(&pieces(inside, &meta.chunk_shape, cell)) {
                let selection = Selection::region(&piece);
                done = self.copy_piece(&original, &done, &selection).await?;
                progress.add(piece.num_cells() * cell);
            }
        }
        let states = states
            .into_iter()
            .map(|(key, to)| (key, Change { from: None, to }))
            .collect();
        Ok((done, states))
    }

    /// Copies one piece; the names of the replicas that have it.
    async fn copy_piece(
        &self,
        original: &Array,
        names: &[String],
        selection: &Selection,
    ) -> Result<Vec<String>> {
        let shape = original.shape();
        let strings = match original.dtype().is_variable() {
            true => Some(original.read_strings(selection).await?),
            false => None,
        };
        let cells = match strings {
            Some(_) => Vec::new(),
            None => original.read(selection).await?,
        };
        let mut each = Vec::with_capacity(names.len());
        for name in names {
            each.push(self.put_piece(name, &shape, selection, (&cells, strings.as_deref())));
        }
        Ok(join_all(each).await.into_iter().flatten().collect())
    }

    /// Writes one piece to a replica; its name, unless that failed.
    async fn put_piece(
        &self,
        name: &str,
        shape: &Shape,
        selection: &Selection,
        (cells, strings): (&[u8], Option<&[Bytes]>),
    ) -> Option<String> {
        let write = async {
            let replica = self.replica(name, shape)?;
            match strings {
                Some(strings) => replica.write_strings(selection, strings.to_vec()).await,
                None => replica.write(selection, cells.to_vec()).await,
            }
        };
        match write.await {
            Ok(()) => Some(name.to_owned()),
            Err(e) => {
                self.fell_behind(name, &e);
                None
            }
        }
    }

    /// Copies all cells to a replica that is being filled.
    pub(crate) async fn fill(
        &self,
        name: &str,
        mark: &Mark,
        options: &CopyOptions,
        progress: &dyn Progress,
    ) -> Result<()> {
        let original = self.current().await?;
        self.session.forget_below(&self.open, &self.location);
        let replica = self.replica(name, &original.shape())?;
        let copy = crate::copy_array(&original, &replica, options, progress);
        mark.hold(copy).await
    }
}

/// The smallest shape that holds another and a region.
fn around(shape: &Shape, region: &Region) -> Result<Shape> {
    let sides = shape.iter().enumerate();
    Shape::new(sides.map(|(dim, side)| region.end(dim).max(*side)))
}

/// Sides of the pieces that a region is copied in: whole objects of the original, as many as are good.
fn pieces(region: &Region, chunk: &Shape, cell: u64) -> Vec<u64> {
    let mut sides: Vec<u64> = chunk
        .iter()
        .zip(region.shape())
        .map(|(chunk, side)| (*chunk).min(*side).max(1))
        .collect();
    for dim in (0..sides.len()).rev() {
        let bytes: u64 = sides.iter().product::<u64>().saturating_mul(cell);
        let times = (PIECE / bytes.max(1)).max(1);
        sides[dim] = sides[dim]
            .saturating_mul(times)
            .min(region.shape()[dim].max(1));
    }
    sides
}
