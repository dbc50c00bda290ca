//! Carries boxes: reads one while another is written, and marks what is stored.
//!
//! Between the plan and the executors of reads and writes. Invariant: as many boxes are in memory as
//! their stage has slots; a box is marked after its last object is stored.

use std::sync::Mutex;

use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_index::{Region, Selection, Target};

use super::journal::Journal;
use super::plan::{Plan, Stage};
use super::slabs::Slabs;
use crate::canvas::Canvas;
use crate::read::{self, Job};
use crate::scatter::Destination;
use crate::{Array, Error, Progress, Result, write};

/// Moves the cells of one array into another.
pub(super) struct Carrier<'a> {
    pub(super) from: &'a Array,
    pub(super) to: &'a Array,
    /// Bytes of a cell, or what a string is taken for.
    pub(super) cell: u64,
    pub(super) journal: &'a Journal,
    pub(super) progress: &'a dyn Progress,
    pub(super) buffers: Buffers,
}

/// What becomes of a box.
enum Step<'a> {
    /// From the source to the destination.
    Straight,
    /// From the source to the third place.
    Keep(&'a Slabs),
    /// From the third place to the destination.
    Fetch(&'a Slabs),
}

/// Buffers of boxes that are used again: fresh memory costs more than the cells that go into it.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// A buffer of this length with any content. One of another length is dropped for it, so that
    /// there are never more than boxes in flight.
    fn take(&self, len: usize) -> Canvas {
        let idle = self.0.lock().ok().and_then(|mut idle| {
            let same = idle.iter().position(|buffer| buffer.len() == len);
            match same {
                Some(at) => Some(idle.swap_remove(at)),
                None => {
                    idle.pop();
                    None
                }
            }
        });
        match idle {
            Some(buffer) => Canvas::from_vec(buffer),
            None => Canvas::owned(len),
        }
    }

    fn give(&self, canvas: Canvas) {
        let buffer = canvas.into_vec();
        if let Ok(mut idle) = self.0.lock() {
            idle.push(buffer);
        }
    }

    /// Gives all memory back.
    fn clear(&self) {
        if let Ok(mut idle) = self.0.lock() {
            idle.clear();
        }
    }
}

impl Carrier<'_> {
    /// Moves everything that is not marked.
    pub(super) async fn run(&self, plan: &Plan, slabs: Option<&Slabs>) -> Result<()> {
        match (plan, slabs) {
            (Plan::Direct(stage), _) => self.pass(0, stage, Step::Straight).await?,
            (
                Plan::Staged {
                    slabs: first,
                    boxes,
                },
                Some(slabs),
            ) => {
                self.pass(0, first, Step::Keep(slabs)).await?;
                self.buffers.clear();
                self.pass(1, boxes, Step::Fetch(slabs)).await?;
            }
            _ => return Err(Error::internal("a plan in two passes has no third place")),
        }
        self.buffers.clear();
        self.journal.flush().await
    }

    async fn pass(&self, pass: usize, stage: &Stage, step: Step<'_>) -> Result<()> {
        let whole = Region::whole(&self.to.shape());
        let step = &step;
        stream::iter(whole.split(&stage.sides).enumerate())
            .map(|(item, region)| async move {
                if !self.journal.is_done(pass, item).await {
                    self.carry(&region, step).await?;
                    self.journal.mark(pass, item).await?;
                }
                self.progress.add(region.num_cells() * self.cell);
                Ok::<(), Error>(())
            })
            .buffer_unordered(stage.slots.max(1) as usize)
            .try_collect()
            .await
    }

    async fn carry(&self, region: &Region, step: &Step<'_>) -> Result<()> {
        let selection = Selection::region(region);
        if self.from.dtype().is_variable() {
            let cells = self.from.read_strings(&selection).await?;
            return self.to.write_strings(&selection, cells).await;
        }
        let canvas = self.buffers.take((region.num_cells() * self.cell) as usize);
        let job = |array: &Array| Job {
            array: array.clone(),
            state: array.state(),
            selection: selection.clone(),
            destination: Destination {
                canvas: canvas.clone(),
                target: Target::packed(region.shape()),
                cell: self.cell as usize,
            },
        };
        let session = self.from.session();
        match step {
            Step::Fetch(slabs) => slabs.fetch(session, &canvas, region).await?,
            _ => read::run(session, vec![job(self.from)]).await?,
        }
        match step {
            Step::Keep(slabs) => slabs.keep(session, &canvas, region).await?,
            _ => write::run(job(self.to)).await?,
        }
        self.buffers.give(canvas);
        Ok(())
    }
}
