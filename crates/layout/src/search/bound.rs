//! Branch and bound over the sides, dimension by dimension.
//!
//! What the chosen sides leave, `B` cells, bounds what the others can reach: along each dimension no
//! side is longer than `B`, and a box of `V` cells in what is left of the dimensions touches `V / B`
//! chunks at least, wherever it starts.

use super::Found;
use super::axis::Axes;

/// Partial shapes that are looked at before the best so far has to do.
const MOST_STEPS: u64 = 400_000;

/// The best shape of all, or the best that was found when it took too long; `known` is a shape to
/// begin with. `None` if nothing fits.
pub(super) fn search(axes: &Axes, known: Option<Found>) -> Option<Found> {
    let order = dimension_order(axes);
    // Cells of each class's box in the dimensions that follow each place of the order.
    let rest: Vec<Vec<f64>> = (0..=order.len())
        .map(|place| {
            let boxes = axes.extents.iter().map(|extent| {
                let sides = order[place..].iter().map(|dim| extent[*dim] as f64);
                sides.product()
            });
            boxes.collect()
        })
        .collect();
    let mut search = Search {
        axes,
        order,
        rest,
        chosen: vec![0; axes.axes.len()],
        best: known,
        steps: 0,
    };
    let weights = axes.weights.clone();
    search.branch(0, axes.cells, &weights);
    let complete = search.steps <= MOST_STEPS && axes.axes.iter().all(|axis| axis.complete);
    search.best.map(|found| Found {
        proven: complete,
        ..found
    })
}

/// Dimensions with few sides to choose from come first: they are done with soonest.
fn dimension_order(axes: &Axes) -> Vec<usize> {
    let mut order: Vec<usize> = (0..axes.axes.len()).collect();
    order.sort_by_key(|dim| axes.axes[*dim].sides.len());
    order
}

struct Search<'a> {
    axes: &'a Axes,
    order: Vec<usize>,
    rest: Vec<Vec<f64>>,
    chosen: Vec<usize>,
    best: Option<Found>,
    steps: u64,
}

impl Search<'_> {
    /// Chooses sides from `place` of the order on. `so_far` has, for each class, its weight times the
    /// chunks that it touches along the dimensions before.
    fn branch(&mut self, place: usize, left: u64, so_far: &[f64]) {
        let Some(dim) = self.order.get(place).copied() else {
            if left > 0 {
                self.offer(so_far);
            }
            return;
        };
        let axis = &self.axes.axes[dim];
        let Some(longest) = axis.longest(left) else {
            return;
        };
        let last = place + 1 == self.order.len();
        let shortest = if last { longest } else { 0 };
        for index in (shortest..=longest).rev() {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return;
            }
            let axis = &self.axes.axes[dim];
            let products = so_far.iter().zip(axis.counts(index));
            let products: Vec<f64> = products.map(|(so_far, count)| so_far * count).collect();
            let left = left / axis.sides[index];
            self.chosen[dim] = index;
            if self.can_improve(place + 1, left, &products) {
                self.branch(place + 1, left, &products);
            }
        }
    }

    fn can_improve(&self, place: usize, left: u64, so_far: &[f64]) -> bool {
        let Some(best) = &self.best else {
            return left > 0;
        };
        let mut least = vec![1.0; so_far.len()];
        for dim in &self.order[place..] {
            let axis = &self.axes.axes[*dim];
            let Some(longest) = axis.longest(left) else {
                return false;
            };
            for (least, count) in least.iter_mut().zip(axis.counts(longest)) {
                *least *= count;
            }
        }
        let bound: f64 = so_far
            .iter()
            .zip(&least)
            .zip(&self.rest[place])
            .map(|((so_far, least), cells)| so_far * least.max(cells / left as f64))
            .sum();
        // What is equal may still have fewer cells, but is not worth the search.
        bound < best.blocks * (1.0 - 1e-12)
    }

    fn offer(&mut self, products: &[f64]) {
        let found = Found {
            chunk: self.axes.chunk(&self.chosen),
            blocks: products.iter().sum(),
            proven: false,
        };
        if self.best.as_ref().is_none_or(|best| found.is_better(best)) {
            self.best = Some(found);
        }
    }
}
