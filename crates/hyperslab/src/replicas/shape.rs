//! Changes of shape of an array that has, or may have, replicas.

use std::sync::Arc;

use futures::future::join_all;
use hyperslab_format::ArrayMeta;
use hyperslab_index::{Region, Shape};

use super::copies::Copies;
use super::manifest::{Cells, Work, Written, aligned};
use super::work::{Mark, Noted, unmarked};
use crate::array::State;
use crate::{Array, Result};

/// Changes the shape of the original by `reshape`, and that of all replicas with it.
pub(crate) async fn resize<F, T>(
    array: &Array,
    state: &Arc<State>,
    new: &Shape,
    reshape: F,
) -> Result<ArrayMeta>
where
    F: Fn(Option<Noted>) -> T,
    T: Future<Output = Result<ArrayMeta>>,
{
    let copies = array.copies();
    let old = &state.meta.shape;
    let boxes = vec![Cells::of(&Region::whole(&largest(old, new)?))];
    // Not so often that a look at the manifest would matter.
    if copies
        .ledger
        .load()
        .await?
        .is_none_or(|known| known.manifest.replicas.is_empty())
    {
        let mut meta = None;
        let write = async {
            meta = Some(reshape(None).await?);
            Ok(())
        };
        unmarked(&copies, &boxes, write).await?;
        return meta.ok_or_else(|| crate::Error::internal("an array has no shape"));
    }
    let Some(mark) = Mark::begin(&copies, Work::Write, &boxes).await? else {
        return reshape(None).await;
    };
    let noted = Noted::default();
    let done = reshape(Some(noted.clone())).await;
    let mut behind = Vec::new();
    if done.is_ok() {
        let mut each = Vec::with_capacity(mark.replicas.len());
        for name in &mark.replicas {
            each.push(cut_replica(&copies, &mark, name, (old, new)));
        }
        behind = join_all(each).await.into_iter().flatten().collect();
    }
    let written = Written {
        failed: done.is_err(),
        behind,
        changes: noted.taken(&copies),
        also: border(&state.meta, new)?,
    };
    mark.end_write(written).await?;
    if let Ok(meta) = &done {
        let followed = copies.follow_shape(&copies.original(meta.clone())?).await;
        if let Err(e) = followed {
            tracing::warn!("replicas of {} keep their shape: {e}", array.url());
        }
    }
    done
}

/// Cuts off the cells of a replica beyond a new shape; its name if that failed.
async fn cut_replica(
    copies: &Copies,
    mark: &Mark,
    name: &str,
    (old, new): (&Shape, &Shape),
) -> Option<String> {
    let cut = async {
        let replica = copies.replica(name, old)?;
        replica.cut_off(&replica.state(), new, None).await
    };
    let e = mark.hold(cut).await.err()?;
    copies.fell_behind(name, &e);
    Some(name.to_owned())
}

fn largest(one: &Shape, other: &Shape) -> Result<Shape> {
    Shape::new(one.iter().zip(other.iter()).map(|(a, b)| *a.max(b)))
}

/// Cells that come into sight when an array grows, and are in objects that it has: who wrote those may
/// have left anything there.
fn border(meta: &ArrayMeta, new: &Shape) -> Result<Vec<Cells>> {
    let (old, chunk) = (&meta.shape, &meta.chunk_shape);
    let mut boxes = Vec::new();
    for axis in 0..new.rank() {
        let end = new[axis].min(old[axis].div_ceil(chunk[axis]) * chunk[axis]);
        if end <= old[axis] {
            continue;
        }
        let mut start = vec![0; new.rank()];
        let mut sides = new.to_vec();
        (start[axis], sides[axis]) = (old[axis], end - old[axis]);
        let region = Region::new(start, sides)?;
        if !region.is_empty() {
            boxes.push(aligned(&region, chunk, new)?);
        }
    }
    Ok(boxes)
}
