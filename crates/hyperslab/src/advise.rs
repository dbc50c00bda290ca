//! How an array had better be laid out, from how it is read.
//!
//! Above `layout`, which searches, and the planner of the array's store, which says what reads cost
//! there. Nothing is written: what is advised is done by [`crate::copy_array`] and its callers.

mod cold;
mod heat;
mod page;
mod reads;
mod report;

use hyperslab_index::Shape;
use hyperslab_layout::{
    Layout, Limits, Sample, Starts, Store, Wishes, best, cheapest_copies, chunk_order,
    expected_blocks, replicas, shards,
};

pub use cold::Colder;
pub use heat::Heat;
pub use hyperslab_layout::{Class, Expected, Pattern};
pub use reads::Reads;

use crate::{Array, Error, Result};

/// Boxes of each class that layouts are costed by, where no real ones are known.
const SPREAD: usize = 4;
/// The same for the figures that are told.
const SPREAD_TOLD: usize = 16;
/// Real boxes that layouts are costed by, at most.
const MOST_SAMPLES: usize = 96;

/// What layouts are compared by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Objective {
    /// What reads cost on the array's store: time and money, as the planner sees them.
    Cost,
    /// Blocks of so many bytes that are touched, as Sarawagi & Stonebraker have it.
    Blocks {
        /// Bytes of a block.
        bytes: u64,
        /// Boxes start with a chunk.
        aligned: bool,
    },
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct AdviceOptions {
    /// What layouts are compared by.
    pub objective: Objective,
    /// Classes of boxes that are told apart, at most.
    pub classes: usize,
    /// Copies of the array, the original among them, at most.
    pub copies: usize,
    /// Bytes that all copies may take together; `None` if that does not matter.
    pub budget: Option<u64>,
    /// Bytes of a decoded chunk, at least and at most.
    pub chunk_bytes: (u64, u64),
    /// Chunks that divide the array evenly.
    pub whole_divisions: bool,
    /// The axis to which cells are appended, and how many at a time.
    pub append: Option<(usize, u64)>,
    /// The axes of the cells in a chunk may be in another order.
    pub any_order: bool,
    /// Bytes of an object that holds many chunks; `None` keeps every chunk an object of its own.
    pub shard_bytes: Option<u64>,
}

impl Default for AdviceOptions {
    fn default() -> Self {
        AdviceOptions {
            objective: Objective::Cost,
            classes: 16,
            copies: 1,
            budget: None,
            chunk_bytes: (64 << 10, 64 << 20),
            whole_divisions: false,
            append: None,
            any_order: true,
            shard_bytes: None,
        }
    }
}

/// A layout, and what reads take with it.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The copies; the first is the array itself.
    pub layouts: Vec<Layout>,
    /// For each class the copy that answers it.
    pub copy_of: Vec<usize>,
    /// What a read takes, on average.
    pub expected: Expected,
    /// The same for each class.
    pub by_class: Vec<Expected>,
    /// Chunks that a read touches, on average.
    pub blocks: f64,
    /// The same for each class.
    pub blocks_by_class: Vec<f64>,
}

/// Advice for an array.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The array.
    pub url: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Bytes that it takes now.
    pub stored: u64,
    /// How it is read.
    pub pattern: Pattern,
    /// How many reads that is known from; `None` where it was told.
    pub reads: Option<u64>,
    /// What layouts were compared by.
    pub objective: Objective,
    /// The array as it is.
    pub today: Choice,
    /// What is advised.
    pub proposed: Choice,
    /// Where it is read.
    pub heat: Heat,
    /// Objects that would cost less in another class of storage, if reads and prices are known.
    pub colder: Option<Colder>,
}

impl Advice {
    /// True if there is something to gain.
    pub fn is_worth_it(&self) -> bool {
        let (now, then) = (self.measure(&self.today), self.measure(&self.proposed));
        then < now * 0.98 && self.proposed.layouts != self.today.layouts
    }

    /// What is compared.
    pub(crate) fn measure(&self, choice: &Choice) -> f64 {
        match self.objective {
            Objective::Cost => choice.expected.cost,
            Objective::Blocks { .. } => choice.blocks,
        }
    }
}

impl Array {
    /// Advises on the layout of this array.
    pub async fn advise(&self, reads: &Reads, options: &AdviceOptions) -> Result<Advice> {
        let state = self.ready().await?;
        let meta = &state.meta;
        let shape = meta.shape.to_vec();
        let cell_bytes = meta.dtype.cell_bytes().ok_or_else(|| {
            Error::invalid(format!(
                "{} holds {}, whose cells have no fixed size",
                self.url(),
                meta.dtype
            ))
            .with_hint("layouts are advised for cells of fixed size")
        })?;
        let pattern = reads.pattern(&shape)?.condense(options.classes);
        let stored = self.stored().await?;
        let today = Layout {
            chunk: state.unit.to_vec(),
            shard: meta.codecs.sharding().map(|_| meta.chunk_shape.to_vec()),
            order: state.order.dims().to_vec(),
            shard_order: meta.shard_order(),
        };
        let model = self.inner().open.planner.model();
        let store = Store {
            model: &model,
            mode: self.session().options().planner,
            cell_bytes,
            encoded: match state.has_raw_units() {
                true => None,
                false => Some(encoded_share(&stored, &meta.chunk_shape, cell_bytes)),
            },
        };
        let asked = Asked {
            pattern: &pattern,
            samples: reads.samples(&pattern, SPREAD, MOST_SAMPLES)?,
            told: reads.samples(&pattern, SPREAD_TOLD, 4 * MOST_SAMPLES)?,
            store: &store,
            options,
            copies: affordable(options, stored.bytes),
        };
        let today = asked.describe(vec![today])?;
        let mut layouts = asked.search()?;
        if let Some(bytes) = options.shard_bytes {
            for layout in &mut layouts {
                asked.shard(layout, bytes)?;
            }
        }
        let proposed = asked.describe(layouts)?;
        Ok(Advice {
            url: self.url().to_owned(),
            heat: Heat::new(&shape, &meta.chunk_shape, &asked.told)?,
            colder: cold::colder(self, reads, &stored).await?,
            shape,
            stored: stored.bytes,
            reads: reads.count(),
            objective: options.objective,
            today,
            proposed,
            pattern,
        })
    }
}

/// Bytes of an encoded chunk ÷ those of its cells.
fn encoded_share(stored: &crate::Stored, chunk: &Shape, cell_bytes: u64) -> f64 {
    let cells = (chunk.num_cells() * cell_bytes).max(1) as f64;
    match stored.objects {
        0 => 0.5,
        objects => (stored.bytes as f64 / (objects as f64 * cells)).clamp(1e-4, 1.5),
    }
}

/// How many copies the budget allows, the original among them.
fn affordable(options: &AdviceOptions, bytes: u64) -> usize {
    let allowed = match options.budget {
        Some(budget) => (budget / bytes.max(1)).max(1) as usize,
        None => usize::MAX,
    };
    options.copies.clamp(1, allowed)
}

struct Asked<'a> {
    pattern: &'a Pattern,
    samples: Vec<Sample>,
    /// More of them, for what is told.
    told: Vec<Sample>,
    store: &'a Store<'a>,
    options: &'a AdviceOptions,
    copies: usize,
}

impl Asked<'_> {
    fn sides(&self) -> Result<Option<Vec<(u64, u64)>>> {
        let Some((axis, cells)) = self.options.append else {
            return Ok(None);
        };
        let shape = self.pattern.shape();
        if axis >= shape.len() {
            return Err(Error::invalid(format!(
                "the array has {} dimensions, so there is no axis {axis} to append to",
                shape.len()
            )));
        }
        let mut sides: Vec<(u64, u64)> = shape.iter().map(|side| (1, *side)).collect();
        sides[axis] = (1, cells.clamp(1, shape[axis]));
        Ok(Some(sides))
    }

    /// The best layouts of as many copies as are allowed.
    fn search(&self) -> Result<Vec<Layout>> {
        match self.options.objective {
            Objective::Cost => {
                let wishes = Wishes {
                    bytes: self.options.chunk_bytes,
                    whole_divisions: self.options.whole_divisions,
                    sides: self.sides()?,
                    any_order: self.options.any_order,
                };
                let found = cheapest_copies(
                    self.pattern,
                    &self.samples,
                    self.store,
                    &wishes,
                    self.copies,
                )?;
                Ok(found.layouts)
            }
            Objective::Blocks { bytes, aligned } => self.fewest_blocks(bytes, aligned),
        }
    }

    fn fewest_blocks(&self, bytes: u64, aligned: bool) -> Result<Vec<Layout>> {
        let cells = bytes / self.store.cell_bytes.max(1);
        if cells == 0 {
            return Err(Error::invalid(format!(
                "a block of {bytes} bytes has no room for a cell of {} bytes",
                self.store.cell_bytes
            )));
        }
        let limits = Limits {
            cells,
            whole_divisions: self.options.whole_divisions,
            sides: self.sides()?,
        };
        let starts = starts(aligned);
        let chunks = match self.copies {
            1 => vec![best(self.pattern, starts, &limits)?.chunk],
            copies => replicas(self.pattern, starts, &limits, copies)?.chunks,
        };
        Ok(chunks.iter().map(|chunk| Layout::plain(chunk)).collect())
    }

    /// Puts the chunks of a layout into shards, if several of them fit into one, in the order that lemma 2
    /// names if that costs less.
    fn shard(&self, layout: &mut Layout, bytes: u64) -> Result<()> {
        let cells = bytes / self.store.cell_bytes.max(1);
        let of_chunk: u64 = layout.chunk.iter().product();
        if cells < 2 * of_chunk {
            return Ok(());
        }
        let found = shards(self.pattern, Starts::Anywhere, &layout.chunk, cells)?;
        if found.chunk == layout.chunk {
            return Ok(());
        }
        layout.shard = Some(found.chunk);
        let order = chunk_order(self.pattern, &layout.chunk, Starts::Anywhere);
        let other = layout.clone().shard_ordered(&order);
        let cost = |layout: &Layout| {
            let of = self
                .store
                .expected(self.pattern.shape(), layout, &self.samples);
            of.map(|(expected, _)| expected.cost)
        };
        if cost(&other)? < cost(layout)? * (1.0 - 1e-6) {
            *layout = other;
        }
        Ok(())
    }

    /// What reads take with these copies, each answered by the one that is best for it.
    fn describe(&self, layouts: Vec<Layout>) -> Result<Choice> {
        let starts = match self.options.objective {
            Objective::Blocks { aligned, .. } => starts(aligned),
            Objective::Cost => Starts::Anywhere,
        };
        let shape = self.pattern.shape();
        let classes = self.pattern.classes();
        let mut costs = Vec::new();
        let mut blocks = Vec::new();
        for layout in &layouts {
            costs.push(self.store.expected(shape, layout, &self.told)?.1);
            let touched = (0..classes.len()).map(|class| {
                let alone = self.pattern.only(class);
                expected_blocks(&alone, &layout.chunk, starts)
            });
            blocks.push(touched.collect::<Vec<f64>>());
        }
        let by_blocks = matches!(self.options.objective, Objective::Blocks { .. });
        let copy_of: Vec<usize> = (0..classes.len())
            .map(|class| {
                let of = |copy: &usize| match by_blocks {
                    true => blocks[*copy][class],
                    false => costs[*copy].get(class).map_or(0.0, |e| e.cost),
                };
                let copies = 0..layouts.len();
                copies.min_by(|a, b| of(a).total_cmp(&of(b))).unwrap_or(0)
            })
            .collect();
        let pick = copy_of.iter().enumerate();
        let by_class: Vec<Expected> = pick
            .clone()
            .map(|(class, copy)| costs[*copy].get(class).copied().unwrap_or_default())
            .collect();
        let blocks_by_class: Vec<f64> = pick.map(|(class, copy)| blocks[*copy][class]).collect();
        let weights = classes.iter().map(|class| class.weight);
        Ok(Choice {
            expected: Expected::mean(by_class.iter().zip(weights.clone())),
            blocks: blocks_by_class
                .iter()
                .zip(weights)
                .map(|(b, w)| b * w)
                .sum(),
            layouts,
            copy_of,
            by_class,
            blocks_by_class,
        })
    }
}

fn starts(aligned: bool) -> Starts {
    match aligned {
        true => Starts::Aligned,
        false => Starts::Anywhere,
    }
}
