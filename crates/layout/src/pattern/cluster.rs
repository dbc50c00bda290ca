//! Fewer classes for many, and how far two patterns are from each other.
//!
//! Boxes are compared by the logarithms of their sides: twice as long is as far as half as long.

use super::{Class, Pattern};

impl Pattern {
    /// A pattern with at most so many classes: the two that are nearest to each other, the rarer the
    /// nearer, become one until few enough are left. A merged class has the mean sides of its members.
    pub fn condense(&self, most: usize) -> Pattern {
        let mut groups: Vec<Group> = self.classes.iter().map(Group::of).collect();
        while groups.len() > most.max(1) {
            let Some((i, j)) = nearest(&groups) else {
                break;
            };
            let merged = groups.swap_remove(j);
            groups[i] = groups[i].with(&merged);
        }
        let boxes = groups
            .iter()
            .map(|group| (group.extent(&self.shape), group.weight));
        // Boxes within the array and positive weights stay so, and there is one at least.
        Pattern::new(&self.shape, boxes).unwrap_or_else(|_| self.clone())
    }

    /// How far `later` reads are from this pattern: the mean distance that the weight of its classes
    /// has to be moved to become theirs, where a side of twice the length is 1 away. 0 is the same.
    /// The best move is found greedily, so the result is an upper bound.
    pub fn drift(&self, later: &Pattern) -> f64 {
        let mut left: Vec<f64> = self.classes.iter().map(|class| class.weight).collect();
        let mut wanted: Vec<f64> = later.classes.iter().map(|class| class.weight).collect();
        let mut moves: Vec<(f64, usize, usize)> = Vec::new();
        for (i, from) in self.classes.iter().enumerate() {
            for (j, to) in later.classes.iter().enumerate() {
                moves.push((apart(&logs(&from.extent), &logs(&to.extent)), i, j));
            }
        }
        moves.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut moved = 0.0;
        for (distance, i, j) in moves {
            let weight = left[i].min(wanted[j]);
            left[i] -= weight;
            wanted[j] -= weight;
            moved += weight * distance;
        }
        moved
    }
}

/// Classes that are treated as one.
struct Group {
    /// Mean logarithms of the sides.
    centre: Vec<f64>,
    weight: f64,
}

impl Group {
    fn of(class: &Class) -> Group {
        Group {
            centre: logs(&class.extent),
            weight: class.weight,
        }
    }

    fn with(&self, other: &Group) -> Group {
        let weight = self.weight + other.weight;
        let centres = self.centre.iter().zip(&other.centre);
        Group {
            centre: centres
                .map(|(a, b)| (a * self.weight + b * other.weight) / weight)
                .collect(),
            weight,
        }
    }

    fn extent(&self, shape: &[u64]) -> Vec<u64> {
        let sides = self.centre.iter().zip(shape);
        sides
            .map(|(log, side)| (log.exp2().round() as u64).clamp(1, *side))
            .collect()
    }
}

/// The pair whose merging moves least weight least far: Ward's criterion.
fn nearest(groups: &[Group]) -> Option<(usize, usize)> {
    let mut best = None;
    for j in 1..groups.len() {
        for i in 0..j {
            let (a, b) = (&groups[i], &groups[j]);
            let square = apart(&a.centre, &b.centre).powi(2);
            let cost = square * a.weight * b.weight / (a.weight + b.weight);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, (i, j)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

fn logs(extent: &[u64]) -> Vec<f64> {
    extent.iter().map(|side| (*side as f64).log2()).collect()
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(boxes: &[(&[u64], f64)]) -> Pattern {
        let boxes = boxes
            .iter()
            .map(|(extent, often)| (extent.to_vec(), *often));
        Pattern::new(&[1000, 1000], boxes).unwrap()
    }

    #[test]
    fn near_classes_become_one() {
        let many = pattern(&[
            (&[1, 1000], 5.0),
            (&[1, 900], 5.0),
            (&[2, 1000], 1.0),
            (&[100, 3], 4.0),
            (&[110, 3], 4.0),
        ]);
        let few = many.condense(2);
        assert_eq!(few.classes().len(), 2);
        let [rows, columns] = few.classes() else {
            unreachable!()
        };
        assert!(rows.extent[0] <= 2 && rows.extent[1] > 900);
        assert!((100..=110).contains(&columns.extent[0]) && columns.extent[1] == 3);
        assert!((rows.weight - 11.0 / 19.0).abs() < 1e-12);
        assert_eq!(many.condense(5), many);
        assert_eq!(many.condense(0).classes().len(), 1);
    }

    #[test]
    fn drift_is_how_far_weight_moves() {
        let rows = pattern(&[(&[1, 1024 - 24], 1.0)]);
        let columns = pattern(&[(&[1000, 1], 1.0)]);
        assert_eq!(rows.drift(&rows), 0.0);
        let far = rows.drift(&columns);
        assert!((far - rows.drift(&columns)).abs() < 1e-12 && far > 10.0);
        let half = pattern(&[(&[1, 1000], 1.0), (&[1000, 1], 1.0)]);
        assert!((rows.drift(&half) - far / 2.0).abs() < 1e-9);
        assert!(
            (pattern(&[(&[4, 8], 1.0)]).drift(&pattern(&[(&[8, 8], 1.0)])) - 1.0).abs() < 1e-12
        );
    }
}
