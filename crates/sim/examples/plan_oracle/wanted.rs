//! What a query wants of every object, in the planner's terms: as `hyperslab::plan::describe` says
//! it, and with the preparation that its executor makes.

use hyperslab_index::{CellOrder, ChunkGrid, Part, Result, Selection, Shape};
use hyperslab_plan::{Mode, Model, Object, Run, Unlocated, locate};

use crate::workload::Workload;

/// So many runs of one chunk are wanted as one range; as in the executor.
const MAX_RUNS: u64 = 1 << 16;

/// How chunks are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As they are.
    Raw,
    /// Compressed to half of their size.
    Zstd,
    /// As shards of raw inner chunks.
    Shards,
}

impl Coding {
    pub(crate) const ALL: [Coding; 3] = [Coding::Raw, Coding::Zstd, Coding::Shards];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Coding::Raw => "raw",
            Coding::Zstd => "zstd",
            Coding::Shards => "shards",
        }
    }
}

/// What is wanted of one object.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// In the planner's terms; of a shard, as if its index had been read.
    object: Object,
    /// A shard as it is seen without its index.
    unseen: Option<Object>,
    /// Bytes of the whole object.
    size: u64,
    /// Bytes of a shard's index.
    index: u64,
}

/// The objects of a query as the planner sees them.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    pub(crate) objects: Vec<Object>,
    /// Bytes of the whole objects.
    pub(crate) sizes: Vec<u64>,
    /// Bytes of the indexes that have to be read first.
    pub(crate) indexes: Vec<u64>,
}

/// What a selection wants of an array with chunks of about so many bytes.
pub(crate) fn wanted(
    workload: Workload,
    coding: Coding,
    chunk_bytes: u64,
    selection: &Selection,
) -> Result<Vec<Wanted>> {
    let array = workload.array()?;
    let (chunk, inner) = workload.chunks(chunk_bytes)?;
    let grid = ChunkGrid::new(&array, &chunk)?;
    let finer = ChunkGrid::new(&array, &inner)?;
    let order = CellOrder::row_major(array.rank());
    let cell = workload.cell();
    let size = chunk.num_cells() * cell;
    let parts = grid.parts(selection)?;
    Ok(parts
        .map(|part| match coding {
            Coding::Raw => Wanted::plain(raw(&part, &order, cell, size)),
            Coding::Zstd => {
                let mut object = Object::encoded(size / 2, part.num_cells() * cell);
                object.splittable = false;
                Wanted::plain(object)
            }
            Coding::Shards => shard(&part, &finer, inner.num_cells() * cell, cell, &chunk),
        })
        .collect())
}

impl Wanted {
    fn plain(object: Object) -> Wanted {
        Wanted {
            size: object.size,
            object,
            unseen: None,
            index: 0,
        }
    }
}

/// Makes the objects of a query ready for a planner.
pub(crate) fn prepare(wanted: &[Wanted], mode: Mode, model: &Model) -> Result<Prepared> {
    let shards: Vec<Unlocated> = wanted
        .iter()
        .filter_map(|wanted| {
            Some(Unlocated {
                whole: wanted.unseen.clone()?,
                located: wanted.object.clone(),
                index: wanted.index,
            })
        })
        .collect();
    let mut located = locate(&shards, model, mode)?.into_iter();
    let mut prepared = Prepared::default();
    for wanted in wanted {
        let object = match &wanted.unseen {
            Some(unseen) if located.next() == Some(false) => unseen,
            Some(_) => {
                prepared.indexes.push(wanted.index);
                &wanted.object
            }
            None => &wanted.object,
        };
        prepared.objects.push(object.clone());
        prepared.sizes.push(wanted.size);
    }
    Ok(prepared)
}

fn raw(part: &Part, order: &CellOrder, cell: u64, size: u64) -> Object {
    let summary = part.run_summary(order, cell);
    let mut object = Object::raw(size, Vec::new());
    object.grain = cell;
    if summary.runs > MAX_RUNS {
        object.grain = 0;
        object.runs = vec![Run {
            start: summary.first,
            end: summary.end,
            useful: summary.bytes,
        }];
    } else {
        let runs = part.runs(order, cell);
        object.runs = runs.map(|run| Run::plain(run.offset..run.end())).collect();
    }
    object
}

/// A shard whose inner chunks lie in row-major order, the index last.
fn shard(part: &Part, finer: &ChunkGrid, inner_bytes: u64, cell: u64, chunk: &Shape) -> Wanted {
    let inner = finer.chunk_shape();
    let region = part.region();
    // At the array's border inner chunks are missing, and take no room.
    let counts: Vec<u64> = (0..region.rank())
        .map(|dim| region.shape()[dim].div_ceil(inner[dim]))
        .collect();
    let place = |unit: &Part| -> u64 {
        (0..region.rank()).fold(0, |at, dim| {
            at * counts[dim] + unit.chunk()[dim] - region.start()[dim] / inner[dim]
        })
    };
    let mut runs: Vec<Run> = part
        .refine(finer)
        .iter()
        .map(|unit| {
            let start = place(unit) * inner_bytes;
            Run {
                start,
                end: start + inner_bytes,
                useful: unit.num_cells() * cell,
            }
        })
        .collect();
    runs.sort_by_key(|run| run.start);
    let all: u64 = counts.iter().product();
    let slots: u64 = (0..region.rank())
        .map(|dim| chunk[dim].div_ceil(inner[dim]))
        .product();
    let index = 16 * slots + 4;
    let size = all * inner_bytes + index;
    let mut unseen = Object::encoded(size, part.num_cells() * cell);
    unseen.splittable = false;
    // The function decodes inner chunks, and where they lie is not known yet.
    unseen.function = false;
    Wanted {
        object: Object {
            // All of it is never what is wanted: there is the index, too.
            size: runs.last().map_or(0, |run| size.max(run.end + 1)),
            runs,
            grain: 0,
            function: true,
            splittable: true,
        },
        unseen: Some(unseen),
        size,
        index,
    }
}
