//! Rechunking in place: the same array at the same URL, with other chunks.
//!
//! New chunks are named by another chunk key encoding of Zarr than the old ones, so both can lie
//! below the array at a time. Invariant: until one conditional put changes the metadata readers see
//! the old array, after it the new one; each is complete. Old chunks go after that. A handle that
//! was opened before still knows the old chunks: its reads find fill values or old cells once they
//! are gone, so readers should open the array again, and writers must be stopped meanwhile.

use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format as format;
use hyperslab_format::{ArrayMeta, ArraySpec, ChunkKeys};

use super::journal::{self, Record};
use super::{RechunkOptions, Rechunked, Work, drop_slabs, needs, pin, resumable, unfinished};
use crate::{Array, Error, Progress, Result};

/// Objects that are removed at a time.
const CONCURRENT: usize = 32;

/// Gives an array the layout of `spec`, which has the same shape, type and fill value.
pub async fn rechunk_in_place(
    array: &Array,
    spec: ArraySpec,
    options: &RechunkOptions,
    progress: &dyn Progress,
) -> Result<Rechunked> {
    array.writable()?;
    if !array.replicas().await?.is_empty() {
        return Err(Error::invalid(format!(
            "{} has replicas, which would not know the new chunks",
            array.url()
        ))
        .with_hint("remove them first with `hyperslab replicas rm`, or rechunk to another place"));
    }
    let session = array.session().within(needs::session_share(options));
    let from = array.in_session(&session);
    let inner = from.inner();
    let (store, path) = (&inner.open.store, &inner.location.path);
    let own = format::load(&**store, path)
        .await?
        .node
        .into_array(from.url())?;
    from.set_state(own.clone())?;
    let mut built = spec.build(&inner.open.policy)?;
    check_cells(&from, &own, &built)?;
    let left = journal::find(store, path).await?;
    let record = match left {
        None => None,
        Some(_) if !options.resume && !options.overwrite => return Err(unfinished(from.url())),
        Some(record) => {
            let switch = Switch::of(&from, &record)?;
            if switch.is_done(&own) {
                // Only the old chunks are left of the earlier run.
                switch.finish(&from, &record).await?;
                array.set_state(own.clone())?;
                if options.resume {
                    return Ok(Rechunked {
                        cells: own.shape.num_cells(),
                        resumed: true,
                        ..Rechunked::default()
                    });
                }
                None
            } else if options.resume {
                built.keys = switch.next.keys;
                let next = relaid(&own, &built);
                Some(resumable(record, &from, &next.to_json(), options).await?)
            } else {
                switch.undo(&from, &record).await?;
                None
            }
        }
    };
    if record.is_none() {
        built.keys = own.keys.clone();
        if relaid(&own, &built) == own {
            return Ok(Rechunked {
                cells: own.shape.num_cells(),
                ..Rechunked::default()
            });
        }
        built.keys = free_keys(&from, &own).await?;
    }
    let next = relaid(&own, &built);
    let to = handle(&from, next.clone())?;
    let work = Work {
        from: &from,
        to: &to,
        record,
        was: Some(own.to_json()),
        options,
    };
    let (done, pinned) = work.run(progress).await?;
    pin::check(&from, &pinned).await?;
    let switch = Switch { was: own, next };
    switch.run(&from).await?;
    array.set_state(from.meta().as_ref().clone())?;
    // Written to by somebody who did not know of the switch: what he wrote is still in the old chunks.
    check_untouched(&from, &switch, &pinned).await?;
    remove_chunks(&handle(&from, switch.was.clone())?).await?;
    work.clear_up().await?;
    Ok(done)
}

/// An array with the same path and other metadata.
fn handle(array: &Array, meta: ArrayMeta) -> Result<Array> {
    let inner = array.inner();
    Array::new(
        &inner.session,
        inner.open.clone(),
        &inner.location,
        meta,
        false,
    )
}

/// The metadata of `own` with the layout of `built`.
fn relaid(own: &ArrayMeta, built: &ArrayMeta) -> ArrayMeta {
    let mut next = own.clone();
    next.chunk_shape = built.chunk_shape.clone();
    next.codecs = built.codecs.clone();
    next.keys = built.keys.clone();
    next
}

fn check_cells(array: &Array, own: &ArrayMeta, built: &ArrayMeta) -> Result<()> {
    if own.shape != built.shape || own.dtype != built.dtype || own.fill != built.fill {
        return Err(Error::invalid(format!(
            "{} keeps its shape, its data type and its fill value when it is rechunked in place",
            array.url()
        ))
        .with_hint("rechunk it to another place, or change them by themselves"));
    }
    Ok(())
}

/// Names for chunks under which there is nothing yet, and that are no old ones.
async fn free_keys(array: &Array, own: &ArrayMeta) -> Result<ChunkKeys> {
    let some = vec![1; own.shape.rank()];
    for keys in [
        ChunkKeys::Default('/'),
        ChunkKeys::Default('.'),
        ChunkKeys::V2('.'),
        ChunkKeys::V2('/'),
    ] {
        if keys.key(&some) == own.keys.key(&some) {
            continue;
        }
        let mut meta = own.clone();
        meta.keys = keys.clone();
        if handle(array, meta)?.chunk_entries().await?.is_empty() {
            return Ok(keys);
        }
    }
    Err(Error::conflict(format!(
        "objects that are no chunks of {} have all the names that new chunks could have",
        array.url()
    ))
    .with_hint("remove what does not belong to the array, or rechunk it to another place"))
}

/// From one layout to the other.
struct Switch {
    was: ArrayMeta,
    next: ArrayMeta,
}

impl Switch {
    /// What an earlier run was about to do.
    fn of(array: &Array, record: &Record) -> Result<Self> {
        let Some(was) = &record.was else {
            return Err(Error::conflict(format!(
                "{} is being made by a rechunk from {}",
                array.url(),
                record.source
            ))
            .with_hint("finish that first: run it again with --resume"));
        };
        Ok(Switch {
            was: ArrayMeta::from_json(was)?,
            next: ArrayMeta::from_json(&record.meta)?,
        })
    }

    /// True if the metadata is the new one.
    fn is_done(&self, own: &ArrayMeta) -> bool {
        same_layout(own, &self.next)
    }

    /// Changes the metadata.
    async fn run(&self, array: &Array) -> Result<()> {
        let meta = array
            .change(|meta| {
                if !same_layout(meta, &self.was) {
                    return Err(Error::conflict(format!(
                        "somebody else changed {} while it was rechunked",
                        array.url()
                    ))
                    .with_hint("begin again with --overwrite"));
                }
                *meta = relaid(meta, &self.next);
                Ok(meta.clone())
            })
            .await?;
        array.set_state(meta)
    }

    /// Finishes what an earlier run left after the switch.
    async fn finish(&self, array: &Array, record: &Record) -> Result<()> {
        let inner = array.inner();
        let (store, path) = (&inner.open.store, &inner.location.path);
        let own = format::load(&**store, path).await?;
        format::sync_copies(&**store, &[(path.clone(), Some(own.json))]).await?;
        remove_chunks(&handle(array, self.was.clone())?).await?;
        drop_slabs(&inner.session, &handle(array, self.next.clone())?, record).await?;
        journal::remove(store, path).await
    }

    /// Takes back what an earlier run did before the switch.
    async fn undo(&self, array: &Array, record: &Record) -> Result<()> {
        let inner = array.inner();
        let (store, path) = (&inner.open.store, &inner.location.path);
        let new = handle(array, self.next.clone())?;
        journal::reset(store, path, record).await?;
        remove_chunks(&new).await?;
        drop_slabs(&inner.session, &new, record).await?;
        journal::remove(store, path).await
    }
}

/// True if both find the same cells in the same objects.
fn same_layout(a: &ArrayMeta, b: &ArrayMeta) -> bool {
    a.shape == b.shape
        && a.dtype == b.dtype
        && a.fill == b.fill
        && a.chunk_shape == b.chunk_shape
        && a.keys == b.keys
        && a.codecs.to_json() == b.codecs.to_json()
}

/// Fails if an old chunk changed after the last look at all of them.
async fn check_untouched(array: &Array, switch: &Switch, pinned: &str) -> Result<()> {
    let old = handle(array, switch.was.clone())?;
    if pin::pin_of(&old, old.meta().to_json()).await? == *pinned {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "somebody wrote to {} while its layout changed; its old chunks were kept",
        array.url()
    ))
    .with_hint("stop the writer, write his cells again, and then run this again with --resume"))
}

/// Removes all chunks of an array, and nothing else.
async fn remove_chunks(array: &Array) -> Result<()> {
    let store = &array.inner().open.store;
    let entries = array.chunk_entries().await?;
    stream::iter(entries.iter().map(|(_, entry)| {
        array.forget(&entry.key);
        store.delete(&entry.key)
    }))
    .buffer_unordered(CONCURRENT)
    .try_collect::<Vec<()>>()
    .await
    .map(drop)
}
