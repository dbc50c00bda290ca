//! The layouts whose reads cost least on a store.
//!
//! Above the searches for shapes that are touched least, which propose, and the store, which decides:
//! request time, bandwidth, fees and compression settle the size of chunks as well as their shape.
//!
//! The cost of a shape has no structure that could be bounded, so this is a descent: from the shapes
//! that are touched least among those of each size, and from those of the boxes themselves, sides are
//! doubled and halved, one or two at a time, as long as that gains. Copies are grouped by the chunks
//! they touch and then weighed by what they cost.

use std::collections::HashMap;

use crate::search::{Limits, best};
use crate::{
    Error, Expected, Layout, Pattern, Result, Sample, Starts, Store, axis_order, replicas,
};

/// Shapes that the descent starts from.
const STARTS: usize = 3;
/// Shapes that are costed in a descent, at most.
const MOST_TRIED: usize = 160;
/// Dimensions up to which every order of axes is costed.
const FEW_AXES: usize = 4;
/// What has to be gained for another shape, so that the search ends.
const WORTH: f64 = 1e-6;

/// What a layout has to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wishes {
    /// Bytes of a decoded chunk, at least and at most.
    pub bytes: (u64, u64),
    /// Every side divides the array's.
    pub whole_divisions: bool,
    /// The least and the greatest side along each dimension, if there are such limits.
    pub sides: Option<Vec<(u64, u64)>>,
    /// The axes of the cells in a chunk may be in any order.
    pub any_order: bool,
}

/// A layout, and what reads take with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The layout.
    pub layout: Layout,
    /// What a read takes, on average over those that it is for.
    pub expected: Expected,
}

/// Several copies, and what reads take when each goes to the cheapest.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposals {
    /// The layout of each copy.
    pub layouts: Vec<Layout>,
    /// For each class the copy that answers it.
    pub copy_of: Vec<usize>,
    /// What a read takes, on average.
    pub expected: Expected,
    /// The same for each class.
    pub by_class: Vec<Expected>,
}

/// The cheapest layout that the search finds.
pub fn cheapest(
    pattern: &Pattern,
    samples: &[Sample],
    store: &Store<'_>,
    wishes: &Wishes,
) -> Result<Proposal> {
    let mut search = Search::new(pattern, samples, store, wishes)?;
    let mut shapes = Vec::new();
    for limits in search.sizes()? {
        // One size may have no shape within the limits while others do.
        if let Ok(found) = best(pattern, Starts::Anywhere, &limits) {
            shapes.push(found.chunk);
        }
        for class in pattern.classes() {
            shapes.extend(search.around(&class.extent, limits.cells));
        }
    }
    shapes.sort();
    shapes.dedup();
    let mut starts: Vec<(f64, Vec<u64>)> = Vec::new();
    for shape in shapes {
        starts.push((search.cost(&shape)?, shape));
    }
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    starts.truncate(STARTS);
    let mut least: Option<(f64, Vec<u64>)> = None;
    for (cost, shape) in starts {
        let found = search.descend(cost, shape)?;
        if least.as_ref().is_none_or(|least| found.0 < least.0) {
            least = Some(found);
        }
    }
    let (_, chunk) = least.ok_or_else(|| nothing_fits(wishes))?;
    search.order(chunk)
}

/// The cheapest layouts of at most `copies` copies that the search finds.
pub fn cheapest_copies(
    pattern: &Pattern,
    samples: &[Sample],
    store: &Store<'_>,
    wishes: &Wishes,
    copies: usize,
) -> Result<Proposals> {
    let one = cheapest(pattern, samples, store, wishes)?;
    let mut least = settle(pattern, samples, store, vec![one.layout])?;
    if copies < 2 || pattern.classes().len() < 2 {
        return Ok(least);
    }
    let search = Search::new(pattern, samples, store, wishes)?;
    for limits in search.sizes()? {
        let Ok(found) = replicas(pattern, Starts::Anywhere, &limits, copies) else {
            continue;
        };
        let layouts = found.chunks.iter().map(|chunk| Layout::plain(chunk));
        let settled = settle(pattern, samples, store, layouts.collect())?;
        if settled.expected.cost < least.expected.cost * (1.0 - WORTH) {
            least = settled;
        }
    }
    // Each copy by itself, for the classes that it answers.
    let mut layouts = Vec::new();
    for copy in 0..least.layouts.len() {
        let members: Vec<usize> = (0..least.copy_of.len())
            .filter(|class| least.copy_of[*class] == copy)
            .collect();
        if members.is_empty() {
            continue;
        }
        let place = |class: usize| members.iter().position(|member| *member == class);
        let some: Vec<Sample> = samples
            .iter()
            .filter_map(|sample| {
                let class = place(sample.class)?;
                Some(Sample {
                    class,
                    ..sample.clone()
                })
            })
            .collect();
        layouts.push(cheapest(&pattern.subset(&members), &some, store, wishes)?.layout);
    }
    let refined = settle(pattern, samples, store, layouts)?;
    if refined.expected.cost < least.expected.cost {
        least = refined;
    }
    Ok(least)
}

/// Which copy answers which class, and what that takes.
fn settle(
    pattern: &Pattern,
    samples: &[Sample],
    store: &Store<'_>,
    layouts: Vec<Layout>,
) -> Result<Proposals> {
    let mut by_copy = Vec::new();
    for layout in &layouts {
        by_copy.push(store.expected(pattern.shape(), layout, samples)?.1);
    }
    let classes = 0..pattern.classes().len();
    let copy_of: Vec<usize> = classes
        .clone()
        .map(|class| {
            let cost = |copy: &usize| by_copy[*copy].get(class).map_or(0.0, |e| e.cost);
            let copies = 0..layouts.len();
            copies
                .min_by(|a, b| cost(a).total_cmp(&cost(b)))
                .unwrap_or(0)
        })
        .collect();
    let by_class: Vec<Expected> = classes
        .map(|class| {
            by_copy[copy_of[class]]
                .get(class)
                .copied()
                .unwrap_or_default()
        })
        .collect();
    let mut weights = vec![0.0; by_class.len()];
    for sample in samples {
        weights[sample.class] += sample.weight;
    }
    Ok(Proposals {
        layouts,
        copy_of,
        expected: Expected::mean(by_class.iter().zip(weights)),
        by_class,
    })
}

fn nothing_fits(wishes: &Wishes) -> Error {
    let (least, most) = wishes.bytes;
    Error::invalid(format!(
        "no chunk shape has from {least} to {most} bytes within the other limits"
    ))
    .with_hint("allow more or fewer bytes for a chunk, or other sides")
}

struct Search<'a> {
    pattern: &'a Pattern,
    samples: &'a [Sample],
    store: &'a Store<'a>,
    wishes: &'a Wishes,
    /// The least and the greatest side along each dimension.
    sides: Vec<(u64, u64)>,
    known: HashMap<Vec<u64>, f64>,
}

impl<'a> Search<'a> {
    fn new(
        pattern: &'a Pattern,
        samples: &'a [Sample],
        store: &'a Store<'a>,
        wishes: &'a Wishes,
    ) -> Result<Search<'a>> {
        let (least, most) = wishes.bytes;
        if most < store.cell_bytes.max(1) || least > most {
            return Err(Error::invalid(format!(
                "a chunk of {least} to {most} bytes cannot hold a cell of {} bytes",
                store.cell_bytes
            )));
        }
        let limits = Limits {
            sides: wishes.sides.clone(),
            ..Limits::cells(1)
        };
        let dims = pattern.shape().iter().enumerate();
        let sides = dims.map(|(dim, side)| limits.range(dim, *side));
        Ok(Search {
            pattern,
            samples,
            store,
            wishes,
            sides: sides.collect::<Result<_>>()?,
            known: HashMap::new(),
        })
    }

    /// The limits of each size, by powers of two.
    fn sizes(&self) -> Result<Vec<Limits>> {
        let (least, most) = self.wishes.bytes;
        let cell = self.store.cell_bytes.max(1);
        let mut bytes = least.max(cell).next_power_of_two().min(most);
        let mut sizes = Vec::new();
        loop {
            sizes.push(Limits {
                cells: (bytes / cell).max(1),
                whole_divisions: self.wishes.whole_divisions,
                sides: self.wishes.sides.clone(),
            });
            if bytes >= most {
                return Ok(sizes);
            }
            bytes = bytes.saturating_mul(2).min(most);
        }
    }

    /// The shape of a box, made larger or smaller until it has about so many cells.
    fn around(&self, extent: &[u64], cells: u64) -> Option<Vec<u64>> {
        let mut shape: Vec<u64> = extent
            .iter()
            .zip(&self.sides)
            .map(|(side, (least, most))| (*side).clamp(*least, *most))
            .collect();
        let count = |shape: &[u64]| shape.iter().map(|side| *side as f64).product::<f64>();
        while count(&shape) > cells as f64 {
            let longest = (0..shape.len())
                .filter(|dim| shape[*dim] > self.sides[*dim].0)
                .max_by_key(|dim| shape[*dim])?;
            shape[longest] = (shape[longest] / 2).max(self.sides[longest].0);
        }
        while let Some(shortest) = (0..shape.len())
            .filter(|dim| shape[*dim] < self.sides[*dim].1)
            .min_by_key(|dim| shape[*dim])
        {
            let before = shape[shortest];
            shape[shortest] = (before * 2).min(self.sides[shortest].1);
            if count(&shape) > cells as f64 {
                shape[shortest] = before;
                break;
            }
        }
        self.fit(shape)
    }

    /// The shape with sides that divide the array's, if they have to; `None` if it breaks a limit.
    fn fit(&self, mut shape: Vec<u64>) -> Option<Vec<u64>> {
        for (dim, side) in shape.iter_mut().enumerate() {
            let (least, most) = self.sides[dim];
            *side = (*side).clamp(least, most);
            if self.wishes.whole_divisions {
                let all = self.pattern.shape()[dim];
                *side = (least..=*side)
                    .rev()
                    .find(|side| all.is_multiple_of(*side))?;
            }
        }
        let bytes = shape
            .iter()
            .try_fold(self.store.cell_bytes.max(1), |n, side| n.checked_mul(*side))?;
        // Arrays smaller than the least chunk are one chunk.
        let whole = shape
            .iter()
            .zip(&self.sides)
            .all(|(side, (_, most))| side == most);
        let (least, most) = self.wishes.bytes;
        (bytes <= most && (bytes >= least || whole)).then_some(shape)
    }

    /// What a read costs with these chunks.
    fn cost(&mut self, chunk: &[u64]) -> Result<f64> {
        if let Some(cost) = self.known.get(chunk) {
            return Ok(*cost);
        }
        let layout = Layout::plain(chunk);
        let (all, _) = self
            .store
            .expected(self.pattern.shape(), &layout, self.samples)?;
        self.known.insert(chunk.to_vec(), all.cost);
        Ok(all.cost)
    }

    /// Doubles and halves sides as long as that gains.
    fn descend(&mut self, mut cost: f64, mut chunk: Vec<u64>) -> Result<(f64, Vec<u64>)> {
        let before = self.known.len();
        loop {
            let mut least: Option<(f64, Vec<u64>)> = None;
            for near in self.neighbours(&chunk) {
                if self.known.len() - before > MOST_TRIED {
                    break;
                }
                let found = self.cost(&near)?;
                if least.as_ref().is_none_or(|(least, _)| found < *least) {
                    least = Some((found, near));
                }
            }
            match least {
                Some((found, near)) if found < cost * (1.0 - WORTH) => {
                    (cost, chunk) = (found, near)
                }
                _ => return Ok((cost, chunk)),
            }
        }
    }

    /// One side doubled or halved, or one doubled and another halved.
    fn neighbours(&self, chunk: &[u64]) -> Vec<Vec<u64>> {
        let dims = chunk.len();
        let mut near = Vec::new();
        for a in 0..dims {
            let longer = self.scaled(chunk, a, true);
            near.extend(longer.clone());
            near.extend(self.scaled(chunk, a, false));
            for b in (0..dims).filter(|b| *b != a) {
                near.extend(
                    longer
                        .as_ref()
                        .and_then(|chunk| self.scaled(chunk, b, false)),
                );
            }
        }
        let mut fitting: Vec<Vec<u64>> = near.into_iter().filter_map(|s| self.fit(s)).collect();
        fitting.sort();
        fitting.dedup();
        fitting.retain(|shape| shape != chunk);
        fitting
    }

    fn scaled(&self, chunk: &[u64], dim: usize, longer: bool) -> Option<Vec<u64>> {
        let (least, most) = self.sides[dim];
        let side = chunk[dim];
        let next = match longer {
            true => side.saturating_mul(2).min(most),
            false => side.div_ceil(2).max(least),
        };
        let next = match (self.wishes.whole_divisions, longer) {
            // `fit` takes the next shorter divisor, which may be the side itself.
            (true, true) => {
                (side + 1..=most).find(|s| self.pattern.shape()[dim].is_multiple_of(*s))?
            }
            _ => next,
        };
        (next != side).then(|| {
            let mut chunk = chunk.to_vec();
            chunk[dim] = next;
            chunk
        })
    }

    /// The best order of axes for these chunks.
    fn order(&self, chunk: Vec<u64>) -> Result<Proposal> {
        let rank = chunk.len();
        let rows: Vec<usize> = (0..rank).collect();
        let mut orders = vec![rows.clone()];
        // Encoded chunks are read whole: the order of their cells changes nothing but compression.
        if self.wishes.any_order && self.store.encoded.is_none() {
            orders.push(axis_order(&chunk, &self.touched(&chunk)));
            if rank <= FEW_AXES {
                orders.extend(permutations(&rows));
            }
        }
        let mut best: Option<Proposal> = None;
        for order in orders {
            let layout = Layout::plain(&chunk).ordered(&order);
            let (expected, _) = self
                .store
                .expected(self.pattern.shape(), &layout, self.samples)?;
            let gains = |best: &Proposal| expected.cost < best.expected.cost * (1.0 - WORTH);
            if best.as_ref().is_none_or(gains) {
                best = Some(Proposal { layout, expected });
            }
        }
        best.ok_or_else(|| Error::internal("an array has no order of axes"))
    }

    /// Cells of a chunk that a read touches along each axis, on average.
    fn touched(&self, chunk: &[u64]) -> Vec<f64> {
        let mut sums = vec![0.0; chunk.len()];
        for class in self.pattern.classes() {
            for (dim, sum) in sums.iter_mut().enumerate() {
                *sum += class.weight * class.extent[dim].min(chunk[dim]) as f64;
            }
        }
        sums
    }
}

fn permutations(of: &[usize]) -> Vec<Vec<usize>> {
    let Some((first, rest)) = of.split_first() else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for shorter in permutations(rest) {
        for place in 0..=shorter.len() {
            let mut order = shorter.clone();
            order.insert(place, *first);
            all.push(order);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use hyperslab_plan::{Mode, Model, Place, PriceBook, Profile};
    use proptest::prelude::*;

    use super::*;

    fn model() -> Model {
        let mut profile = Profile::built_in("aws").unwrap();
        profile.function = None;
        let prices = PriceBook::built_in("aws").unwrap();
        Model::new(&profile, &prices, Place::Internet, 0.0).unwrap()
    }

    fn store(model: &Model, encoded: Option<f64>) -> Store<'_> {
        Store {
            model,
            mode: Mode::Global,
            cell_bytes: 4,
            encoded,
        }
    }

    fn wishes(least: u64, most: u64) -> Wishes {
        Wishes {
            bytes: (least, most),
            whole_divisions: false,
            sides: None,
            any_order: true,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Against every shape of powers of two: the descent may find better ones between them, and
        /// must not be much worse than the best of them.
        #[test]
        fn few_shapes_are_cheaper_than_what_is_found(
            a in (0..8_u32, 0..8_u32),
            b in (0..8_u32, 0..8_u32),
            often in 1..5_u32,
        ) {
            let shape = [1 << 8, 1 << 8];
            let boxes = [
                (vec![1 << a.0, 1 << a.1], 1.0),
                (vec![1 << b.0, 1 << b.1], f64::from(often)),
            ];
            let pattern = Pattern::new(&shape, boxes).unwrap();
            let samples = pattern.spread(2).unwrap();
            let model = model();
            let store = store(&model, Some(0.5));
            let (least, most) = (1 << 10, 1 << 18);
            let found = cheapest(&pattern, &samples, &store, &wishes(least, most)).unwrap();
            let mut naive = f64::INFINITY;
            for i in 0..=8 {
                for j in 0..=8 {
                    let bytes = 4_u64 << (i + j);
                    if (least..=most).contains(&bytes) {
                        let layout = Layout::plain(&[1 << i, 1 << j]);
                        let cost = store.expected(&shape, &layout, &samples).unwrap().0.cost;
                        naive = naive.min(cost);
                    }
                }
            }
            prop_assert!(found.expected.cost <= naive * 1.02, "{:?} {}", found, naive);
        }
    }

    #[test]
    fn rows_of_raw_cells_are_stored_as_rows() {
        let model = model();
        let store = store(&model, None);
        let pattern = Pattern::new(&[2048, 2048], [(vec![2048, 1], 1.0)]).unwrap();
        let samples = pattern.spread(3).unwrap();
        let square = Wishes {
            sides: Some(vec![(512, 512), (512, 512)]),
            ..wishes(1 << 20, 1 << 20)
        };
        let found = cheapest(&pattern, &samples, &store, &square).unwrap();
        assert_eq!(
            (found.layout.chunk, found.layout.order),
            (vec![512, 512], vec![1, 0])
        );
    }

    #[test]
    fn maps_and_series_get_a_copy_each() {
        let model = model();
        let store = store(&model, Some(0.5));
        let boxes = [(vec![1, 512, 512], 1.0), (vec![1024, 1, 1], 1.0)];
        let pattern = Pattern::new(&[1024, 512, 512], boxes).unwrap();
        let samples = pattern.spread(3).unwrap();
        let limits = wishes(1 << 16, 1 << 22);
        let one = cheapest_copies(&pattern, &samples, &store, &limits, 1).unwrap();
        let two = cheapest_copies(&pattern, &samples, &store, &limits, 2).unwrap();
        assert_eq!(two.layouts.len(), 2);
        assert_ne!(two.copy_of[0], two.copy_of[1]);
        assert!(
            two.expected.cost < 0.8 * one.expected.cost,
            "{two:?} {one:?}"
        );
    }

    #[test]
    fn limits_hold() {
        let model = model();
        let store = store(&model, Some(1.0));
        let pattern = Pattern::new(&[1000, 600], [(vec![7, 600], 1.0)]).unwrap();
        let samples = pattern.spread(2).unwrap();
        let whole = Wishes {
            whole_divisions: true,
            sides: Some(vec![(1, 1), (1, 600)]),
            ..wishes(1, 1 << 20)
        };
        let found = cheapest(&pattern, &samples, &store, &whole).unwrap();
        assert_eq!(found.layout.chunk[0], 1);
        assert_eq!(600 % found.layout.chunk[1], 0);
        for impossible in [wishes(1, 3), wishes(1 << 20, 1 << 10)] {
            assert!(cheapest(&pattern, &samples, &store, &impossible).is_err());
        }
    }
}
