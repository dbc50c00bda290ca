//! What reads cost on a store: the planner's own estimate, for a layout that need not exist yet.
//!
//! Above the samples, below the search for the cheapest layout. A read is described to the planner as
//! the executor would describe it: chunks whose cells are stored as they are by the rows that are
//! wanted, encoded ones as a whole, shards by their inner chunks and their index.

use std::collections::BTreeMap;

use hyperslab_index::{CellOrder, ChunkGrid, Part, Region, Selection, Shape};
use hyperslab_plan::{Mode, Model, Object, Query, Run, plan};

use crate::{Error, Result, Sample};

/// So many runs of a chunk are not told one by one.
const MOST_RUNS: u64 = 1 << 10;
/// Of a box with more chunks so many are costed, and stand for all.
const MOST_CHUNKS: u64 = 1 << 13;
/// Bytes of an inner chunk's place in the index of a shard, and of the index's checksum.
const INDEX_ENTRY: u64 = 16;
const INDEX_CHECKSUM: u64 = 4;

/// How an array is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The sides of what is decoded by itself: a chunk, or an inner chunk of a shard.
    pub chunk: Vec<u64>,
    /// The sides of a shard; `None` if every chunk is an object of its own.
    pub shard: Option<Vec<u64>>,
    /// The axes of the cells in a chunk, the outermost first.
    pub order: Vec<usize>,
    /// The axes of the chunks in a shard, the outermost first.
    pub shard_order: Vec<usize>,
}

impl Layout {
    /// Chunks that are objects, with cells row by row.
    pub fn plain(chunk: &[u64]) -> Layout {
        Layout {
            chunk: chunk.to_vec(),
            shard: None,
            order: (0..chunk.len()).collect(),
            shard_order: (0..chunk.len()).collect(),
        }
    }

    /// The same chunks in shards.
    #[must_use]
    pub fn sharded(mut self, shard: &[u64]) -> Layout {
        self.shard = Some(shard.to_vec());
        self
    }

    /// The same with the chunks of a shard in another order.
    #[must_use]
    pub fn shard_ordered(mut self, order: &[usize]) -> Layout {
        self.shard_order = order.to_vec();
        self
    }

    /// The same chunks with their axes in another order.
    #[must_use]
    pub fn ordered(mut self, order: &[usize]) -> Layout {
        self.order = order.to_vec();
        self
    }
}

/// A store, and how cells are kept there.
#[derive(Debug, Clone)]
pub struct Store<'a> {
    /// What requests take and cost.
    pub model: &'a Model,
    /// Who chooses the requests.
    pub mode: Mode,
    /// Bytes of a cell.
    pub cell_bytes: u64,
    /// Bytes of an encoded chunk ÷ those of its cells; `None` if cells are stored as they are.
    pub encoded: Option<f64>,
}

/// What a read is expected to take, on average.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Expected {
    /// `T + φ·F`, by which layouts are compared.
    pub cost: f64,
    /// Seconds.
    pub seconds: f64,
    /// Dollars.
    pub dollars: f64,
    /// Requests and calls.
    pub requests: f64,
    /// Bytes that reach the client.
    pub bytes: f64,
}

impl Expected {
    /// The mean of several, by their weights.
    pub fn mean<'a>(of: impl IntoIterator<Item = (&'a Expected, f64)>) -> Expected {
        let (mut sum, mut total) = (Expected::default(), 0.0);
        for (one, weight) in of {
            sum.add(one, weight);
            total += weight;
        }
        let mut mean = Expected::default();
        mean.add(&sum, if total > 0.0 { 1.0 / total } else { 0.0 });
        mean
    }

    fn add(&mut self, other: &Expected, weight: f64) {
        self.cost += weight * other.cost;
        self.seconds += weight * other.seconds;
        self.dollars += weight * other.dollars;
        self.requests += weight * other.requests;
        self.bytes += weight * other.bytes;
    }
}

impl Store<'_> {
    /// What the samples take, on average, with each class by itself.
    pub fn expected(
        &self,
        shape: &[u64],
        layout: &Layout,
        samples: &[Sample],
    ) -> Result<(Expected, Vec<Expected>)> {
        let classes = samples.iter().map(|sample| sample.class + 1).max();
        let mut all = Vec::with_capacity(samples.len());
        for sample in samples {
            let one = self.read(shape, layout, &sample.region)?;
            all.push((sample.class, one, sample.weight));
        }
        let of_class = |class: usize| {
            let members = all.iter().filter(move |(of, ..)| *of == class);
            Expected::mean(members.map(|(_, one, weight)| (one, *weight)))
        };
        let each = (0..classes.unwrap_or(0)).map(of_class).collect();
        Ok((
            Expected::mean(all.iter().map(|(_, one, w)| (one, *w))),
            each,
        ))
    }

    /// What one read takes.
    pub fn read(&self, shape: &[u64], layout: &Layout, region: &Region) -> Result<Expected> {
        let (objects, share) = self.objects(shape, layout, region)?;
        let found = plan(&Query::new(objects)?, self.model, self.mode).estimate;
        // A part of the chunks stands for all of them: requests and bytes add up, and beyond a window
        // of them so does time.
        let (seconds, dollars) = (found.seconds * share, found.dollars * share);
        Ok(Expected {
            cost: self.model.weigh(seconds, dollars),
            seconds,
            dollars,
            requests: (found.requests + found.calls) as f64 * share,
            bytes: found.bytes as f64 * share,
        })
    }

    /// What a box wants of each object that it touches, and how many times as many there are as told.
    fn objects(
        &self,
        shape: &[u64],
        layout: &Layout,
        region: &Region,
    ) -> Result<(Vec<Object>, f64)> {
        let sides = |sides: &[u64]| Shape::new(sides.iter().copied());
        let grid = ChunkGrid::new(&sides(shape)?, &sides(&layout.chunk)?)?;
        let order = CellOrder::new(&layout.order)?;
        let selection = Selection::region(region);
        let parts = grid.parts(&selection)?;
        let touched = (0..grid.rank())
            .map(|dim| {
                let side = layout.chunk[dim];
                (region.end(dim) - 1) / side - region.start()[dim] / side + 1
            })
            .product::<u64>();
        let share = (touched as f64 / MOST_CHUNKS as f64).max(1.0);
        let parts = parts.take(MOST_CHUNKS as usize);
        let objects = match &layout.shard {
            None => {
                let each = parts.map(|part| self.object(&part, &order));
                each.collect()
            }
            Some(shard) => self.shards(parts, &order, layout, shard)?,
        };
        Ok((objects, share))
    }

    /// Bytes of a chunk as it is stored.
    fn stored(&self, part: &Part) -> u64 {
        let cells = part
            .chunk_shape()
            .num_cells()
            .saturating_mul(self.cell_bytes);
        match self.encoded {
            None => cells,
            Some(share) => ((cells as f64 * share).ceil() as u64).max(1),
        }
    }

    /// What is wanted of a chunk, as runs from its first byte on.
    fn runs(&self, part: &Part, order: &CellOrder) -> Vec<Run> {
        let useful = part.num_cells() * self.cell_bytes;
        if self.encoded.is_some() {
            return vec![Run {
                start: 0,
                end: self.stored(part),
                useful,
            }];
        }
        let summary = part.run_summary(order, self.cell_bytes);
        if summary.runs > MOST_RUNS {
            return vec![Run {
                start: summary.first,
                end: summary.end,
                useful,
            }];
        }
        let runs = part.runs(order, self.cell_bytes);
        runs.map(|run| Run::plain(run.offset..run.end())).collect()
    }

    /// A chunk that is an object.
    fn object(&self, part: &Part, order: &CellOrder) -> Object {
        let runs = self.runs(part, order);
        Object {
            size: self.stored(part),
            grain: self.grain(&runs),
            runs,
            function: true,
            // The size of an encoded chunk is not known before it was read.
            splittable: self.encoded.is_none(),
        }
    }

    /// Bytes between which a run may be divided.
    fn grain(&self, runs: &[Run]) -> u64 {
        let whole = runs.iter().all(|run| run.len() == run.useful);
        match whole && self.encoded.is_none() {
            true => self.cell_bytes,
            false => 0,
        }
    }

    /// Shards with their inner chunks in order, all of one size, and the index behind them.
    fn shards(
        &self,
        parts: impl Iterator<Item = Part>,
        order: &CellOrder,
        layout: &Layout,
        shard: &[u64],
    ) -> Result<Vec<Object>> {
        let inner = &layout.chunk;
        let counts: Vec<u64> = shard.iter().zip(inner).map(|(s, i)| s / i).collect();
        if shard.iter().zip(inner).any(|(s, i)| s % i != 0) || counts.contains(&0) {
            return Err(Error::invalid(
                "a shard has to be a whole number of chunks along every dimension",
            ));
        }
        let many: u64 = counts.iter().product();
        let index = many * INDEX_ENTRY + INDEX_CHECKSUM;
        let mut shards: BTreeMap<Vec<u64>, (u64, Vec<Run>)> = BTreeMap::new();
        for part in parts {
            let at: Vec<u64> = part
                .chunk()
                .iter()
                .zip(&counts)
                .map(|(i, n)| i / n)
                .collect();
            let axes = layout.shard_order.iter();
            let number = axes.fold(0, |number, axis| {
                let count = counts[*axis];
                number * count + part.chunk()[*axis] % count
            });
            let size = self.stored(&part);
            let (_, runs) = shards.entry(at).or_insert((size, Vec::new()));
            let shifted = self.runs(&part, order).into_iter().map(|run| Run {
                start: run.start + number * size,
                end: run.end + number * size,
                useful: run.useful,
            });
            runs.extend(shifted);
        }
        let objects = shards.into_values().map(|(size, mut runs)| {
            runs.sort_by_key(|run| run.start);
            let grain = self.grain(&runs);
            let end = many * size;
            runs.push(Run {
                start: end,
                end: end + index,
                useful: 0,
            });
            Object {
                size: end + index,
                runs,
                grain,
                function: true,
                splittable: true,
            }
        });
        Ok(objects.collect())
    }
}

#[cfg(test)]
mod tests {
    use hyperslab_plan::{Place, PriceBook, Profile};

    use super::*;
    use crate::Pattern;

    fn model() -> Model {
        let profile = Profile::built_in("aws").unwrap();
        let prices = PriceBook::built_in("aws").unwrap();
        let mut without = profile.clone();
        without.function = None;
        Model::new(&without, &prices, Place::Internet, 0.0).unwrap()
    }

    fn store(model: &Model, encoded: Option<f64>) -> Store<'_> {
        Store {
            model,
            mode: Mode::Global,
            cell_bytes: 4,
            encoded,
        }
    }

    #[test]
    fn chunks_that_fit_the_reads_cost_less() {
        let model = model();
        let rows = Pattern::new(&[4096, 4096], [(vec![1, 4096], 1.0)]).unwrap();
        let samples = rows.spread(4).unwrap();
        // Of raw chunks only the wanted rows are fetched, all at a time; of others all of it.
        for (encoded, share) in [(None, 1.0), (Some(0.5), 0.5)] {
            let store = store(&model, encoded);
            let cost = |layout: &Layout| store.expected(rows.shape(), layout, &samples).unwrap().0;
            let fit = cost(&Layout::plain(&[64, 4096]));
            let misfit = cost(&Layout::plain(&[4096, 64]));
            assert!(fit.cost < share * misfit.cost, "{fit:?} {misfit:?}");
            assert!(fit.requests < misfit.requests);
        }
        // Of cells that are stored as they are only the rows are fetched; the order of axes decides.
        let raw = store(&model, None);
        let cost = |layout: &Layout| raw.expected(rows.shape(), layout, &samples).unwrap().0;
        let by_rows = cost(&Layout::plain(&[512, 512]));
        let by_columns = cost(&Layout::plain(&[512, 512]).ordered(&[1, 0]));
        assert!(by_rows.bytes < by_columns.bytes && by_rows.cost <= by_columns.cost);
    }

    #[test]
    fn inner_chunks_of_a_shard_are_read_by_themselves() {
        let model = model();
        let store = store(&model, Some(1.0));
        let pattern = Pattern::new(&[4096, 4096], [(vec![10, 10], 1.0)]).unwrap();
        let samples = pattern.spread(4).unwrap();
        let cost = |layout: &Layout| store.expected(pattern.shape(), layout, &samples).unwrap().0;
        let whole = cost(&Layout::plain(&[2048, 2048]));
        let inner = cost(&Layout::plain(&[128, 128]).sharded(&[2048, 2048]));
        assert!(inner.bytes < whole.bytes / 50.0, "{inner:?} {whole:?}");
        // Chunks that are read together cost fewer requests where they lie together.
        let columns = Pattern::new(&[4096, 4096], [(vec![4096, 10], 1.0)]).unwrap();
        let samples = columns.spread(4).unwrap();
        let cost = |layout: &Layout| store.expected(columns.shape(), layout, &samples).unwrap().0;
        let shards = Layout::plain(&[64, 64]).sharded(&[1024, 1024]);
        let (rows, together) = (cost(&shards), cost(&shards.clone().shard_ordered(&[1, 0])));
        assert!(together.cost < rows.cost, "{together:?} {rows:?}");
        let odd = Layout::plain(&[100, 100]).sharded(&[250, 200]);
        assert!(store.expected(pattern.shape(), &odd, &samples).is_err());
    }

    #[test]
    fn boxes_of_very_many_chunks_are_costed_by_a_part_of_them() {
        let model = model();
        let store = store(&model, Some(1.0));
        let shape = [1 << 15, 1 << 15];
        let region = Region::new([0, 0], shape).unwrap();
        let small = store
            .read(&shape, &Layout::plain(&[64, 64]), &region)
            .unwrap();
        assert!((small.requests - (512.0 * 512.0)).abs() < 1.0, "{small:?}");
    }
}
