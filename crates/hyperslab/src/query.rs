//! Queries: several selections of several arrays, read as one.

use hyperslab_index::{Selection, Target};

use crate::canvas::Canvas;
use crate::read::{self, Job};
use crate::scatter::Destination;
use crate::tasks::apart;
use crate::{Array, Result, Session, block_on};

/// A set of (array, selection), answered together: one plan, one window of requests.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(Array, Selection)>);

impl Query {
    /// An empty query.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a selection of an array.
    #[must_use]
    pub fn with(mut self, array: &Array, selection: Selection) -> Self {
        self.0.push((array.clone(), selection));
        self
    }

    /// How many selections it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Session {
    /// Reads a query: the packed cells of each selection, in order.
    pub async fn read(&self, query: &Query) -> Result<Vec<Vec<u8>>> {
        let mut canvases = Vec::with_capacity(query.len());
        let mut jobs = Vec::with_capacity(query.len());
        for (array, selection) in &query.0 {
            let canvas = Canvas::owned(array.result_bytes(selection)?);
            canvases.push(canvas.clone());
            jobs.push(job(array, selection, canvas));
        }
        let session = self.clone();
        apart(async move { read::run(&session, jobs).await }).await?;
        Ok(canvases.into_iter().map(Canvas::into_vec).collect())
    }

    /// Reads a query into buffers, one per selection, each of exactly the result's size. Blocks;
    /// not for async tasks.
    pub fn read_into(&self, query: &Query, out: &mut [&mut [u8]]) -> Result<()> {
        if out.len() != query.len() {
            return Err(crate::Error::invalid(format!(
                "{} buffers were given for {} selections",
                out.len(),
                query.len()
            )));
        }
        let mut guards = Vec::with_capacity(query.len());
        let mut jobs = Vec::with_capacity(query.len());
        for ((array, selection), buffer) in query.0.iter().zip(out.iter_mut()) {
            let want = array.result_bytes(selection)?;
            if buffer.len() != want {
                return Err(crate::Error::invalid(format!(
                    "the buffer for {} has {} bytes, but its selection needs {want}",
                    array.url(),
                    buffer.len()
                )));
            }
            let guard = Canvas::borrow(buffer);
            jobs.push(job(array, selection, guard.canvas()));
            guards.push(guard);
        }
        block_on(read::run(self, jobs))
    }
}

fn job(array: &Array, selection: &Selection, canvas: Canvas) -> Job {
    let state = array.state();
    let target = Target::packed(selection.result_shape(&state.meta.shape));
    let destination = Destination {
        canvas,
        target,
        cell: state.cell,
    };
    Job {
        array: array.clone(),
        state,
        selection: selection.clone(),
        destination,
    }
}
