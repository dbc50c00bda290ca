//! Reads a raw chunk by several ranges, whose cells go to their places as each range arrives.
//!
//! Beside the executor, which waits for all of an object. Invariant: if the ranges turn out to be of
//! several states of the object, the error is a `Conflict`, and the caller reads all of it again.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use hyperslab_store::Body;

use crate::cache::Brought;
use crate::fetch::Prepared;
use crate::read::Job;
use crate::tasks::on_core;
use crate::{Error, Result};

/// With more ranges than this, finding the cells of each costs more than waiting for all.
const MAX_RANGES: usize = 64;

/// True if the cells of an object's ranges can be placed range by range.
pub(crate) fn can_stream(job: &Job, prepared: &Prepared, ranges: &[Range<u64>]) -> bool {
    let meta = &job.state.meta;
    let cell = job.state.cell as u64;
    (2..=MAX_RANGES).contains(&ranges.len())
        && !prepared.is_absent()
        // What is cached goes between what is fetched.
        && prepared.held().is_empty()
        && meta.codecs.sharding().is_none()
        && meta.codecs.is_rangeable()
        && !meta.dtype.is_variable()
        // A cell that two ranges share can be placed by neither.
        && ranges.iter().all(|r| r.start % cell == 0 && r.end % cell == 0)
}

/// Fetches ranges of a raw chunk, and places the cells of each when it is there.
pub(crate) async fn stream(
    job: &Arc<Job>,
    prepared: &Prepared,
    ranges: &[Range<u64>],
) -> Result<()> {
    let session = &job.array.inner().session;
    let key = &prepared.object.key;
    let each = ranges.iter().map(|range| async move {
        let got = job.array.get_cached(key, Some(range), prepared.pin());
        let Some(mut brought) = got.await? else {
            return Ok(None);
        };
        let body = match job.array.keeps() {
            true => brought.body.clone(),
            false => std::mem::take(&mut brought.body),
        };
        let (job, pieces) = (job.clone(), prepared.object.pieces.clone());
        let start = range.start;
        on_core(session, move || {
            let body = in_order(&job, body)?;
            let order = &job.state.order;
            pieces.iter().try_for_each(|piece| {
                job.destination
                    .scatter_range(start, &body, &piece.part, order)
            })
        })
        .await?;
        Ok(Some(brought))
    });
    let seen: Vec<Option<Brought>> = try_join_all(each).await?;
    let state = |seen: &Option<Brought>| seen.as_ref().map(|brought| brought.etag.clone());
    let mut pairs = seen.windows(2);
    if pairs.any(|pair| state(&pair[0]) != state(&pair[1])) {
        return Err(Error::conflict(format!(
            "the object {key} changed while it was read"
        )));
    }
    if seen.iter().any(Option::is_none) {
        let fill = job.state.meta.fill.bytes();
        for piece in &prepared.object.pieces {
            let order = &job.state.order;
            job.destination.scatter_fill(fill, &piece.part, order)?;
        }
        return Ok(());
    }
    let brought: Vec<Brought> = seen.into_iter().flatten().collect();
    job.array.keep(key, &brought).await;
    Ok(())
}

/// The cells of a range in this machine's byte order.
fn in_order(job: &Job, body: Body) -> Result<Body> {
    let codecs = &job.state.meta.codecs;
    if codecs.is_raw() {
        return Ok(body);
    }
    let mut cells = body.into_bytes()?.to_vec();
    codecs.fix_order(&mut cells);
    Ok(Bytes::from(cells).into())
}
