//! Growing, shrinking and appending.
//!
//! Growing changes metadata only. Shrinking first removes or clears the cells that are cut off,
//! then changes metadata, so that a later growth shows fill values and not old data. Appending
//! claims its range first, by the conditional change of the shape, so that two writers that append
//! at once get ranges of their own.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format::{ArrayMeta, join};
use hyperslab_index::{Hyperslab, Region, Selection, Shape};
use hyperslab_store::{Entry, Meta};

use crate::array::{Array, State};
use crate::replicas::{self, ABSENT, Change, Noted};
use crate::write;
use crate::{Error, Result};

const CONCURRENT: usize = 32;

impl Array {
    /// Changes the array's shape. Cells beyond it are gone; new cells hold the fill value.
    pub async fn resize(&self, shape: &[u64]) -> Result<()> {
        self.writable()?;
        let new = Shape::new(shape.iter().copied())?;
        let own = self.own_meta().await?;
        self.set_state(own)?;
        let state = self.state();
        let old = state.meta.shape.clone();
        if new.rank() != old.rank() {
            return Err(Error::invalid(format!(
                "{} has the shape {old}; the shape {new} has another number of dimensions",
                self.url()
            )));
        }
        let mut next = (*state.meta).clone();
        next.shape = new.clone();
        State::new(next, "")?;
        let shrinks = new.iter().zip(old.iter()).any(|(n, o)| n < o);
        let (was, next) = (&state, &new);
        let old = &old;
        let reshape = |noted: Option<Noted>| async move {
            if shrinks {
                self.cut_off(was, next, noted).await?;
            }
            self.change(|meta| {
                if meta.shape != *old {
                    return Err(Error::conflict(format!(
                        "another writer changed the shape of {} to {}",
                        self.url(),
                        meta.shape
                    )));
                }
                meta.shape = next.clone();
                Ok(meta.clone())
            })
            .await
        };
        let meta = match self.can_have_replicas() {
            true => replicas::resize(self, &state, &new, reshape).await?,
            false => reshape(None).await?,
        };
        self.set_state(meta)
    }

    /// Appends cells along an axis and returns the index of the first. The other sides must fit.
    pub async fn append(&self, axis: usize, cells: Vec<u8>) -> Result<u64> {
        self.writable()?;
        let state = self.state();
        let rank = state.meta.shape.rank();
        if axis >= rank {
            return Err(Error::invalid(format!(
                "{} has {rank} dimensions, so there is no axis {axis}",
                self.url()
            )));
        }
        let slice: u64 = state
            .meta
            .shape
            .iter()
            .enumerate()
            .filter(|(d, _)| *d != axis)
            .map(|(_, n)| *n)
            .product();
        let slice_bytes = slice * state.cell as u64;
        if slice_bytes == 0 || !(cells.len() as u64).is_multiple_of(slice_bytes) {
            return Err(Error::invalid(format!(
                "{} bytes are not a whole number of slices of {slice_bytes} bytes along axis {axis}",
                cells.len()
            )));
        }
        let count = cells.len() as u64 / slice_bytes;
        let (start, meta) = self
            .change(|meta| {
                let mut sides = meta.shape.to_vec();
                let start = sides[axis];
                sides[axis] = start
                    .checked_add(count)
                    .ok_or_else(|| Error::invalid("the array would become too long"))?;
                meta.shape = Shape::new(sides)?;
                Ok((start, meta.clone()))
            })
            .await?;
        let mut from = vec![0; rank];
        from[axis] = start;
        let mut sides = meta.shape.to_vec();
        sides[axis] = count;
        self.set_state(meta)?;
        let region = Region::new(from, sides)?;
        self.write(&Selection::region(&region), cells).await?;
        Ok(start)
    }

    async fn own_meta(&self) -> Result<ArrayMeta> {
        let inner = self.inner();
        let loaded = hyperslab_format::load(&*inner.open.store, &inner.location.path).await?;
        loaded.node.into_array(self.url())
    }

    /// Removes the chunks beyond a smaller shape and clears what chunks at its border have beyond.
    pub(crate) async fn cut_off(
        &self,
        state: &Arc<State>,
        new: &Shape,
        noted: Option<Noted>,
    ) -> Result<()> {
        let chunk = &state.meta.chunk_shape;
        let outside: Vec<String> = self
            .chunk_objects()
            .await?
            .into_iter()
            .filter(|(index, _)| {
                index
                    .iter()
                    .zip(chunk.iter())
                    .zip(new.iter())
                    .any(|((i, c), n)| i * c >= *n)
            })
            .map(|(index, _)| state.key(&index))
            .collect();
        let store = &self.inner().open.store;
        stream::iter(outside.iter().map(|key| {
            self.forget(key);
            store.delete(key)
        }))
        .buffer_unordered(CONCURRENT)
        .try_collect::<Vec<()>>()
        .await?;
        for key in outside.iter().filter(|_| noted.is_some()) {
            let gone = Change {
                from: None,
                to: ABSENT,
            };
            noted.iter().for_each(|noted| noted.add(key, gone));
        }
        // The border: along each axis, the cells between the new side and the end of its chunk. All
        // in one selection, so that a chunk in a corner goes from one state to the next in one step.
        let mut border = Vec::new();
        for axis in 0..new.rank() {
            let (old_side, new_side) = (state.meta.shape[axis], new[axis]);
            let end = old_side.min(new_side.div_ceil(chunk[axis]) * chunk[axis]);
            if new_side >= end {
                continue;
            }
            let mut start = vec![0; new.rank()];
            start[axis] = new_side;
            let mut sides: Vec<u64> = new
                .iter()
                .zip(state.meta.shape.iter())
                .map(|(n, o)| *n.min(o))
                .collect();
            for (d, side) in sides.iter_mut().enumerate().skip(axis + 1) {
                *side = state.meta.shape[d].min(new[d].div_ceil(chunk[d]) * chunk[d]);
            }
            sides[axis] = end - new_side;
            let region = Region::new(start, sides)?;
            if !region.is_empty() {
                border.push(Hyperslab::from_region(&region));
            }
        }
        if border.is_empty() {
            return Ok(());
        }
        let selection = Selection::from_hyperslabs(border)?;
        write::run_fill(self, state.clone(), &selection, noted).await
    }

    /// The chunk objects that exist: (chunk index, bytes).
    pub async fn chunk_objects(&self) -> Result<Vec<(Vec<u64>, u64)>> {
        let entries = self.chunk_entries().await?.into_iter();
        Ok(entries
            .map(|(index, entry)| (index, entry.meta.size))
            .collect())
    }

    /// The chunk objects that exist, with what the store tells of them.
    pub(crate) async fn chunk_entries(&self) -> Result<Vec<(Vec<u64>, Entry)>> {
        let state = self.state();
        let mut found = Vec::new();
        let mut page = None;
        loop {
            let (objects, next) = self.object_page(page).await?;
            found.extend(objects.into_iter().map(|(index, meta)| {
                let key = state.key(&index);
                (index, Entry { key, meta })
            }));
            page = next;
            if page.is_none() {
                return Ok(found);
            }
        }
    }

    /// A page of the chunk objects that exist, and the token of the next.
    pub(crate) async fn object_page(
        &self,
        page: Option<String>,
    ) -> Result<(Vec<(Vec<u64>, Meta)>, Option<String>)> {
        let state = self.state();
        let inner = self.inner();
        let path = &inner.location.path;
        let rank = state.meta.shape.rank();
        if rank == 0 {
            return match inner.open.store.head(&state.key(&[])).await {
                Ok(meta) => Ok((vec![(Vec::new(), meta)], None)),
                Err(e) if e.is_not_found() => Ok((Vec::new(), None)),
                Err(e) => Err(e),
            };
        }
        let prefix = match &state.meta.keys {
            hyperslab_format::ChunkKeys::Default('/') => join(path, "c"),
            _ => path.clone(),
        };
        let below = if path.is_empty() { 0 } else { path.len() + 1 };
        let (entries, next) = inner.open.store.list(&prefix, page).await?;
        let parse = |key: &str| state.meta.keys.parse(key.get(below..)?, rank);
        let found = entries.into_iter();
        let found = found.filter_map(|entry| Some((parse(&entry.key)?, entry.meta)));
        Ok((found.collect(), next))
    }

    /// What the array takes in its store.
    pub async fn stored(&self) -> Result<Stored> {
        let mut sizes: Vec<u64> = match self.state().file.is_some() {
            true => self.ready().await?.range_sizes()?,
            false => {
                let objects = self.chunk_objects().await?;
                objects.into_iter().map(|(_, n)| n).collect()
            }
        };
        sizes.sort_unstable();
        Ok(Stored {
            objects: sizes.len() as u64,
            bytes: sizes.iter().sum(),
            chunks_total: self.state().meta.grid()?.num_chunks(),
            sizes,
        })
    }
}

/// What an array takes in its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Chunk (or shard) objects that exist.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Chunks (or shards) in the grid, whether they exist or not.
    pub chunks_total: u64,
    /// Bytes of each object, sorted.
    pub sizes: Vec<u64>,
}
