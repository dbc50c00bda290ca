//! Boxes to cost layouts by: some of those that a pattern means, or that were really read.
//!
//! Below the costs of a store, which are too dear to be taken over every place where a box may lie.

use hyperslab_index::Region;

use crate::{Pattern, Result};

/// A box that is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Which class of the pattern it belongs to.
    pub class: usize,
    /// Its cells.
    pub region: Region,
    /// Its share of all reads.
    pub weight: f64,
}

impl Pattern {
    /// Boxes of every class, `each` of them, spread evenly over the places where they may lie. The
    /// same boxes every time, so that layouts are compared by the same reads.
    pub fn spread(&self, each: usize) -> Result<Vec<Sample>> {
        let each = each.max(1);
        let steps = steps(self.shape().len());
        let mut samples = Vec::with_capacity(each * self.classes().len());
        for (class, of) in self.classes().iter().enumerate() {
            for turn in 0..each {
                // Classes begin at different places, so that short ones do not all lie alike.
                let at = (class * each + turn) as f64 + 0.5;
                let dims = self.shape().iter().zip(&of.extent).zip(&steps);
                let start: Vec<u64> = dims
                    .map(|((side, extent), step)| {
                        let places = side - extent + 1;
                        ((at * step).fract() * places as f64) as u64
                    })
                    .collect();
                samples.push(Sample {
                    class,
                    region: Region::new(start, &of.extent)?,
                    weight: of.weight / each as f64,
                });
            }
        }
        Ok(samples)
    }

    /// The nearest class of a box, by the logarithms of its sides.
    pub fn class_of(&self, extent: &[u64]) -> usize {
        let apart = |class: usize| -> f64 {
            let sides = self.classes()[class].extent.iter().zip(extent);
            sides
                .map(|(a, b)| ((*a).max(1) as f64 / (*b).max(1) as f64).ln().powi(2))
                .sum()
        };
        let classes = 0..self.classes().len();
        classes
            .min_by(|a, b| apart(*a).total_cmp(&apart(*b)))
            .unwrap_or(0)
    }
}

/// A step for each dimension whose multiples, modulo 1, fill the unit cube evenly: powers of the
/// root of x^(d+1) = x + 1, which is the golden ratio for one dimension.
fn steps(dims: usize) -> Vec<f64> {
    let mut root = 2.0_f64;
    for _ in 0..32 {
        root = (1.0 + root).powf(1.0 / (dims as f64 + 1.0));
    }
    (1..=dims).map(|power| root.powi(-(power as i32))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_lie_everywhere_in_the_array() {
        let boxes = [(vec![1, 100], 3.0), (vec![40, 5], 1.0)];
        let pattern = Pattern::new(&[100, 100], boxes).unwrap();
        let samples = pattern.spread(50).unwrap();
        assert_eq!(samples.len(), 100);
        let total: f64 = samples.iter().map(|sample| sample.weight).sum();
        assert!((total - 1.0).abs() < 1e-9);
        let rows: Vec<u64> = samples[..50].iter().map(|s| s.region.start()[0]).collect();
        // Every tenth of the array has its boxes.
        for tenth in 0..10 {
            assert!(rows.iter().any(|row| row / 10 == tenth), "{rows:?}");
        }
        for sample in &samples {
            let extent = &pattern.classes()[sample.class].extent;
            assert_eq!(sample.region.shape(), extent);
            assert_eq!(pattern.class_of(extent), sample.class);
            assert!((0..2).all(|dim| sample.region.end(dim) <= 100));
        }
    }
}
