//! Replicas as their owner handles them: made, listed, refreshed and removed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyperslab_format::{self as format, ArraySpec, render_json};
use hyperslab_index::Region;
use hyperslab_store::Put;

use super::copies::{Copies, LOOK, cell_of, fits};
use super::ledger::{now, token};
use super::manifest::{Cells, Manifest, Replica, Work};
use super::states::{Change, Seen};
use super::work::Mark;
use crate::{Array, ArrayMeta, CopyOptions, Error, Progress, Result};

/// How long it takes until every writer has seen that there are replicas.
const SETTLE: Duration = Duration::from_millis(LOOK.as_millis() as u64 + 1000);
/// A mark that is older than this is one of a killed writer, if nothing else is said.
pub(crate) const ABANDONED: Duration = Duration::from_secs(900);

/// A copy of an array, laid out and encoded in its own way.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaInfo {
    /// Its name among the replicas of the array.
    pub name: String,
    /// Where it is: an ordinary Zarr array.
    pub url: String,
    /// False as long as not all cells were copied; it answers no reads until then.
    pub complete: bool,
    /// Cells that it does not answer for, because somebody writes them or they could not be
    /// refreshed; some may be counted twice.
    pub marked: u64,
    /// How it is laid out.
    pub meta: ArrayMeta,
    /// Objects that it had when it was filled.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What refreshing came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Objects of the original that somebody had changed without a mark.
    pub foreign: u64,
    /// Replicas that had not been filled, and now are.
    pub filled: Vec<String>,
    /// No cell of any replica is stale. Otherwise writers kept coming; refresh again.
    pub clean: bool,
}

impl Array {
    /// A spec for a replica: the array's type and shape, with a layout to be chosen.
    pub fn replica_spec(&self) -> ArraySpec {
        let meta = self.meta();
        let mut spec = ArraySpec::new(meta.shape.clone(), meta.dtype.clone());
        spec.fill = Some(meta.fill.clone());
        spec.dimension_names = meta.dimension_names.clone();
        spec
    }

    /// The replicas of the array.
    pub async fn replicas(&self) -> Result<Vec<ReplicaInfo>> {
        if !self.can_have_replicas() {
            return Ok(Vec::new());
        }
        let copies = self.copies();
        let Some(known) = copies.ledger.load().await? else {
            return Ok(Vec::new());
        };
        let manifest = &known.manifest;
        let each = manifest.replicas.iter();
        each.map(|r| copies.info(manifest, r, &self.shape()))
            .collect()
    }

    /// Makes a replica, laid out as `spec` says, and fills it. Other sessions may go on reading and
    /// writing the array. Takes a few seconds at least for the first one: until every writer knows.
    pub async fn create_replica(
        &self,
        name: &str,
        spec: ArraySpec,
        options: &CopyOptions,
        progress: &dyn Progress,
    ) -> Result<ReplicaInfo> {
        self.writable()?;
        check_name(name)?;
        let copies = self.copies();
        let original = copies.current().await?;
        let meta = original.meta();
        let built = ArraySpec {
            shape: meta.shape.clone(),
            dtype: meta.dtype.clone(),
            fill: Some(meta.fill.clone()),
            attributes: Default::default(),
            ..spec
        }
        .build(&copies.open.policy)?;
        let before = copies.ledger.load().await?;
        if let Some(known) = &before
            && !fits(&known.manifest, &meta)
            && !known.manifest.replicas.is_empty()
        {
            return Err(made_anew(self.url()));
        }
        let folder = format!("{name}-{:016x}", token());
        let json = built.to_json();
        let key = format!("{}/zarr.json", copies.ledger.below(&folder));
        let value = vec![Bytes::from(render_json(&json))];
        copies.open.store.put(&key, value, Put::Create).await?;
        let replica = Replica {
            name: name.to_owned(),
            folder,
            complete: false,
            meta: json,
            objects: 0,
            bytes: 0,
        };
        let first = Manifest::new(cell_of(&meta));
        let added = copies.ledger.update(Some(&first), |manifest| {
            if manifest.replica(name).is_some() {
                return Err(
                    Error::conflict(format!("{} has a replica named {name}", self.url()))
                        .with_hint("choose another name, or remove that one first"),
                );
            }
            if manifest.replicas.is_empty() {
                manifest.cell = cell_of(&meta);
            }
            // Once one is complete all writers know of replicas.
            let settled = manifest.replicas.iter().any(|r| r.complete);
            manifest.add_replica(replica.clone());
            Ok(settled)
        });
        if !added.await?.unwrap_or(false) {
            tokio::time::sleep(SETTLE).await;
        }
        self.flag(true).await?;
        copies.fill_replica(name, options, progress).await?;
        copies.heal_all(&()).await?;
        let known = copies.ledger.load().await?;
        let made = known.as_ref().and_then(|known| {
            let replica = known.manifest.replica(name)?;
            Some((known, replica.clone()))
        });
        let (known, made) =
            made.ok_or_else(|| Error::conflict(format!("the replica {name} was removed")))?;
        copies.info(&known.manifest, &made, &meta.shape)
    }

    /// Brings all replicas up to date: those that were not filled are, what foreign writers changed is
    /// copied, and so is what writers left behind that were killed. Marks that are older than
    /// `abandoned` are taken for theirs.
    pub async fn refresh_replicas(
        &self,
        abandoned: Duration,
        options: &CopyOptions,
        progress: &dyn Progress,
    ) -> Result<Refreshed> {
        self.writable()?;
        let copies = self.copies();
        let Some(known) = copies.ledger.load().await? else {
            return Ok(Refreshed {
                clean: true,
                ..Refreshed::default()
            });
        };
        let original = copies.current().await?;
        if !fits(&known.manifest, &original.meta()) {
            return Err(made_anew(self.url()));
        }
        let age = u64::try_from(abandoned.as_millis()).unwrap_or(u64::MAX);
        let take = copies.ledger.update(None, |manifest| {
            manifest.take_over(now().saturating_add(1).saturating_sub(age));
            let open = manifest.replicas.iter().filter(|r| !r.complete);
            Ok(open.map(|r| r.name.clone()).collect::<Vec<_>>())
        });
        let unfilled = take.await?.unwrap_or_default();
        let mut out = Refreshed {
            foreign: copies.mark_foreign(&original).await?,
            ..Refreshed::default()
        };
        for name in unfilled {
            if copies.fill_replica(&name, options, progress).await? {
                out.filled.push(name);
            }
        }
        out.clean = copies.heal_all(progress).await?;
        self.flag(true).await?;
        copies.follow_shape(&original).await?;
        Ok(out)
    }

    /// Removes a replica. False if there is none of that name.
    pub async fn remove_replica(&self, name: &str, progress: &dyn Progress) -> Result<bool> {
        self.writable()?;
        let copies = self.copies();
        let dropped = copies.ledger.update(None, |manifest| {
            let seen = manifest.seen.clone();
            let dropped = manifest.drop_replica(name);
            let seen = seen.filter(|_| manifest.seen.is_none());
            Ok((dropped, seen, manifest.replicas.is_empty()))
        });
        let Some((Some(dropped), seen, last)) = dropped.await? else {
            return Ok(false);
        };
        if last {
            self.flag(false).await?;
        }
        if let Some(seen) = seen {
            copies.ledger.discard(&seen).await;
        }
        // Readers that still know it find it gone from the manifest.
        let path = copies.ledger.below(&dropped.folder);
        let mut seen = 0;
        format::remove_node(&*copies.open.store, &path, |removed| {
            progress.add(removed - seen);
            seen = removed;
        })
        .await?;
        Ok(true)
    }

    /// Says in the array's metadata whether there are replicas; readers look for them only then.
    async fn flag(&self, on: bool) -> Result<()> {
        if self.is_flagged() != on {
            let inner = self.inner();
            format::flag_node(&*inner.open.store, &inner.location.path, on).await?;
            self.set_flagged(on);
        }
        Ok(())
    }
}

impl Copies {
    fn info(
        &self,
        manifest: &Manifest,
        replica: &Replica,
        shape: &hyperslab_index::Shape,
    ) -> Result<ReplicaInfo> {
        let array = self.array(replica, shape)?;
        let about = |mark: &&super::manifest::Mark| mark.replicas.contains(&replica.name);
        let boxes = manifest
            .marks
            .iter()
            .filter(about)
            .flat_map(|mark| &mark.boxes);
        let cells = boxes.map(|b| b.region().map_or(0, |region| region.num_cells()));
        Ok(ReplicaInfo {
            name: replica.name.clone(),
            url: array.url().to_owned(),
            complete: replica.complete,
            marked: cells.sum(),
            meta: ArrayMeta::clone(&array.meta()),
            objects: replica.objects,
            bytes: replica.bytes,
        })
    }

    /// Fills a replica from the original; false if somebody else is doing that.
    async fn fill_replica(
        self: &Arc<Self>,
        name: &str,
        options: &CopyOptions,
        progress: &dyn Progress,
    ) -> Result<bool> {
        let original = self.current().await?;
        let shape = original.shape();
        let boxes = [Cells::of(&Region::whole(&shape))];
        let (mine, began) = (token(), Instant::now());
        let names = vec![name.to_owned()];
        let begun = self.ledger.update(None, |manifest| {
            let mut marks = manifest.marks.iter();
            if marks.any(|m| m.work == Work::Copy && m.replicas == names) {
                return Ok(false);
            }
            manifest.begin(mine, now(), Work::Copy, boxes.to_vec(), names.clone());
            Ok(true)
        });
        if !begun.await?.unwrap_or(false) {
            return Ok(false);
        }
        // Before anything is copied: what a foreign writer changes from here on differs from it.
        let list = async {
            let known = self.ledger.known();
            if known.is_some_and(|known| known.manifest.seen.is_some()) {
                return Ok(None);
            }
            let listed = original.list_from(None).await?;
            // What lies beyond the border is nobody's, and foreign if it ever comes into sight.
            let grid = original.meta().grid()?.grid_shape().to_vec();
            let inside = |index: &[u64]| index.iter().zip(&grid).all(|(i, n)| i < n);
            let pairs = listed.iter().filter(|(index, ..)| inside(index));
            let pairs = pairs.map(|(_, key, state)| (key.as_str(), *state));
            let name = self.ledger.save_seen(&Seen::new(pairs)).await?;
            Ok(Some((name, original.stored().await?)))
        };
        let listed: Result<Option<(String, crate::Stored)>> = list.await;
        let mark = Mark::put(self, mine, &boxes, names.clone(), Vec::new(), began);
        let options = CopyOptions {
            // What is there may be older than the marks that guarded it.
            resume: false,
            ..options.clone()
        };
        let filled = match &listed {
            Ok(_) => self.fill(name, &mark, &options, progress).await,
            Err(e) => Err(Error::unavailable(e.to_string())),
        };
        let stored = match &filled {
            Ok(()) => self.replica(name, &shape)?.stored().await?,
            Err(_) => crate::Stored {
                objects: 0,
                bytes: 0,
                chunks_total: 0,
                sizes: Vec::new(),
            },
        };
        let ended = self.ledger.update(None, |manifest| {
            let count = manifest.marks.len();
            manifest.marks.retain(|m| m.token != mine);
            if filled.is_err() {
                return Ok(true);
            }
            if manifest.marks.len() == count {
                return Ok(false);
            }
            if manifest.seen.is_none()
                && let Ok(Some((name, stored))) = &listed
            {
                manifest.seen = Some(name.clone());
                (manifest.objects, manifest.bytes) = (stored.objects, stored.bytes);
            }
            let mut replicas = manifest.replicas.iter_mut();
            if let Some(replica) = replicas.find(|r| r.name == name) {
                replica.complete = true;
                (replica.objects, replica.bytes) = (stored.objects, stored.bytes);
            }
            Ok(true)
        });
        let ended = ended.await;
        listed?;
        filled?;
        match ended? {
            Some(true) => Ok(true),
            _ => Err(Error::conflict(format!(
                "somebody took the mark under which the replica {name} was filled"
            ))
            .with_hint("refresh the replicas again")),
        }
    }

    /// Makes stale marks of what foreign writers changed; how many objects that is.
    async fn mark_foreign(self: &Arc<Self>, original: &Array) -> Result<u64> {
        let off = self.compare_now(original).await?;
        if off.is_empty() {
            return Ok(0);
        }
        let Some(compared) = self.ledger.known() else {
            return Ok(0);
        };
        let mine = token();
        let marked = self.ledger.update(None, |manifest| {
            let names = manifest.names();
            let mut boxes = Vec::new();
            for (key, cells, state) in &off {
                // Unless one of ours has been there since.
                let same = manifest.changed.get(key) == compared.manifest.changed.get(key);
                if same && !manifest.is_marked(cells) {
                    let change = Change {
                        from: None,
                        to: *state,
                    };
                    manifest.changed.insert(key.clone(), change);
                    boxes.push(cells.clone());
                }
            }
            let count = boxes.len() as u64;
            if count > 0 {
                manifest.push_stale(mine, now(), boxes, names);
            }
            Ok(count)
        });
        Ok(marked.await?.unwrap_or(0))
    }

    /// Gives replicas the original's shape, for those who read them as arrays of their own.
    pub(crate) async fn follow_shape(&self, original: &Array) -> Result<()> {
        let shape = original.shape();
        let Some(known) = self.ledger.known() else {
            return Ok(());
        };
        for replica in &known.manifest.replicas {
            let path = self.ledger.below(&replica.folder);
            let loaded = format::load(&*self.open.store, &path).await?;
            if loaded.node.into_array(&path)?.shape != shape {
                self.array(replica, &shape)?
                    .change(|meta| {
                        meta.shape = shape.clone();
                        Ok(())
                    })
                    .await?;
            }
        }
        Ok(())
    }
}

/// The array is not the one that its replicas are replicas of.
pub(crate) fn made_anew(url: &str) -> Error {
    Error::conflict(format!(
        "{url} was made anew with another type or other chunks since its replicas were made"
    ))
    .with_hint("remove the replicas with `hyperslab replicas rm`, and make them again")
}

fn check_name(name: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let good = (1..=64).contains(&name.len()) && name.chars().all(fine) && !name.starts_with('.');
    match good {
        true => Ok(()),
        false => Err(Error::invalid(format!("{name:?} is no name for a replica"))
            .with_hint("use up to 64 letters, digits, '-', '_' and '.'")),
    }
}
