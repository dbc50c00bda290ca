//! Several copies of an array, each laid out for some of the classes.
//!
//! Above the search, which lays out each copy. A read goes to the copy that answers it with fewest
//! blocks, so a grouping of the classes is as good as the sum of what its groups cost by themselves,
//! or better.

use std::collections::HashMap;

use crate::count::class_blocks;
use crate::search::{Found, Limits, best};
use crate::{Pattern, Result, Starts};

/// Classes up to which every grouping is tried.
const FEW: usize = 9;
/// Rounds in which classes go to their cheapest copy and copies are laid out anew, at most.
const MOST_ROUNDS: usize = 16;

/// Copies of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Copies {
    /// The chunk shape of each.
    pub chunks: Vec<Vec<u64>>,
    /// For each class of the pattern the copy that answers it.
    pub copy_of: Vec<usize>,
    /// Chunks that a read touches, on average.
    pub blocks: f64,
}

/// The best layouts of at most so many copies: of all groupings of the classes where these are few;
/// otherwise pairs of groups are merged, always those whose merging costs least, until so many are
/// left. Fewer copies are returned where more gain nothing.
pub fn replicas(
    pattern: &Pattern,
    starts: Starts,
    limits: &Limits,
    copies: usize,
) -> Result<Copies> {
    let mut groups = Groups {
        pattern,
        starts,
        limits,
        known: HashMap::new(),
    };
    let count = pattern.classes().len();
    let members = match count <= FEW {
        true => groups.of_all(copies.clamp(1, count))?,
        false => groups.merged(copies.max(1))?,
    };
    groups.settle(members)
}

struct Groups<'a> {
    pattern: &'a Pattern,
    starts: Starts,
    limits: &'a Limits,
    /// Layouts by members, which are sorted.
    known: HashMap<Vec<usize>, Found>,
}

impl Groups<'_> {
    /// The layout for some classes.
    fn layout(&mut self, members: &[usize]) -> Result<Found> {
        if let Some(found) = self.known.get(members) {
            return Ok(found.clone());
        }
        let found = best(&self.pattern.subset(members), self.starts, self.limits)?;
        self.known.insert(members.to_vec(), found.clone());
        Ok(found)
    }

    /// What a group adds to the blocks of an average read.
    fn cost(&mut self, members: &[usize]) -> Result<f64> {
        let classes = self.pattern.classes();
        let weight: f64 = members.iter().map(|i| classes[*i].weight).sum();
        Ok(weight * self.layout(members)?.blocks)
    }

    /// The cheapest of all groupings: `least[r][set]` is the cost of a set in at most r groups.
    fn of_all(&mut self, copies: usize) -> Result<Vec<Vec<usize>>> {
        let count = self.pattern.classes().len();
        let all = (1_usize << count) - 1;
        let members =
            |set: usize| -> Vec<usize> { (0..count).filter(|i| set >> i & 1 == 1).collect() };
        let mut cost = vec![0.0; all + 1];
        for (set, cost) in cost.iter_mut().enumerate().skip(1) {
            *cost = self.cost(&members(set))?;
        }
        let mut least = vec![cost.clone()];
        let mut split = vec![(0..=all).collect::<Vec<usize>>()];
        for _ in 1..copies {
            let before = &least[least.len() - 1];
            let mut now = before.clone();
            let mut group: Vec<usize> = (0..=all).collect();
            for set in 1..=all {
                // One group holds the lowest member, so that no grouping is looked at twice.
                let lowest = set & set.wrapping_neg();
                let mut part = (set - 1) & set;
                group[set] = 0;
                while part > 0 {
                    let with = cost[part] + before[set ^ part];
                    if part & lowest != 0 && with < now[set] * (1.0 - 1e-12) {
                        now[set] = with;
                        group[set] = part;
                    }
                    part = (part - 1) & set;
                }
            }
            least.push(now);
            split.push(group);
        }
        let mut groups = Vec::new();
        let mut set = all;
        for level in (0..split.len()).rev() {
            // 0 says that one group fewer is as good.
            let group = split[level][set];
            if group != 0 && set != 0 {
                groups.push(members(group));
                set ^= group;
            }
        }
        Ok(groups)
    }

    /// Every class by itself at first; then the pair whose merging costs least becomes one.
    fn merged(&mut self, copies: usize) -> Result<Vec<Vec<usize>>> {
        let mut groups: Vec<Vec<usize>> =
            (0..self.pattern.classes().len()).map(|i| vec![i]).collect();
        while groups.len() > copies {
            let mut least: Option<(f64, usize, usize)> = None;
            for j in 1..groups.len() {
                for i in 0..j {
                    let together = union(&groups[i], &groups[j]);
                    let apart = self.cost(&groups[i])? + self.cost(&groups[j])?;
                    let more = self.cost(&together)? - apart;
                    if least.is_none_or(|(least, ..)| more < least) {
                        least = Some((more, i, j));
                    }
                }
            }
            let Some((_, i, j)) = least else { break };
            let other = groups.swap_remove(j);
            groups[i] = union(&groups[i], &other);
        }
        Ok(groups)
    }

    /// Sends every class to its cheapest copy and lays copies out anew, until nothing changes.
    fn settle(&mut self, mut groups: Vec<Vec<usize>>) -> Result<Copies> {
        let mut best: Option<Copies> = None;
        for _ in 0..MOST_ROUNDS {
            let chunks: Vec<Vec<u64>> = groups
                .iter()
                .map(|members| Ok(self.layout(members)?.chunk))
                .collect::<Result<_>>()?;
            let copies = self.assign(chunks);
            let gains = best
                .as_ref()
                .is_none_or(|best| copies.blocks < best.blocks * (1.0 - 1e-12));
            if !gains {
                break;
            }
            groups = vec![Vec::new(); copies.chunks.len()];
            for (class, copy) in copies.copy_of.iter().enumerate() {
                groups[*copy].push(class);
            }
            best = Some(copies);
        }
        best.ok_or_else(|| {
            crate::Error::internal("an access pattern without classes has no layout")
        })
    }

    /// Copies with these chunks, without those that answer nothing.
    fn assign(&self, chunks: Vec<Vec<u64>>) -> Copies {
        let shape = self.pattern.shape();
        let mut blocks = 0.0;
        let mut copy_of = Vec::new();
        for class in self.pattern.classes() {
            let each = chunks
                .iter()
                .map(|chunk| class_blocks(shape, &class.extent, chunk, self.starts));
            let (copy, least) = each
                .enumerate()
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .unwrap_or((0, f64::INFINITY));
            blocks += class.weight * least;
            copy_of.push(copy);
        }
        let used: Vec<usize> = (0..chunks.len())
            .filter(|copy| copy_of.contains(copy))
            .collect();
        let renamed = |copy: &usize| used.iter().position(|used| used == copy).unwrap_or(0);
        Copies {
            copy_of: copy_of.iter().map(renamed).collect(),
            chunks: used.iter().map(|copy| chunks[*copy].clone()).collect(),
            blocks,
        }
    }
}

/// Members of both, sorted.
fn union(a: &[usize], b: &[usize]) -> Vec<usize> {
    let mut both = [a, b].concat();
    both.sort_unstable();
    both
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every way to send classes to copies.
    fn naive(pattern: &Pattern, starts: Starts, limits: &Limits, copies: usize) -> f64 {
        let count = pattern.classes().len();
        let ways = copies.pow(count as u32);
        let cost = |way: usize| -> f64 {
            let copy_of = |class: usize| way / copies.pow(class as u32) % copies;
            let groups = (0..copies).map(|copy| -> Vec<usize> {
                (0..count).filter(|class| copy_of(*class) == copy).collect()
            });
            let costs = groups.filter(|members| !members.is_empty()).map(|members| {
                let part = pattern.subset(&members);
                let weight: f64 = members.iter().map(|i| pattern.classes()[*i].weight).sum();
                weight * best(&part, starts, limits).unwrap().blocks
            });
            costs.sum()
        };
        (0..ways).map(cost).fold(f64::INFINITY, f64::min)
    }

    fn patterns(classes: std::ops::Range<usize>) -> impl Strategy<Value = Pattern> {
        prop::collection::vec(2..12_u64, 2..4).prop_flat_map(move |shape| {
            let extent: Vec<_> = shape.iter().map(|side| 1..=*side).collect();
            let often = (1..9_u32).prop_map(f64::from);
            let boxes = prop::collection::vec((extent, often), classes.clone());
            boxes.prop_map(move |boxes| Pattern::new(&shape, boxes).unwrap())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn few_classes_are_grouped_best(pattern in patterns(1..6), cells in 1..40_u64) {
            let limits = Limits::cells(cells);
            for copies in 1..4 {
                let found = replicas(&pattern, Starts::Anywhere, &limits, copies).unwrap();
                let least = naive(&pattern, Starts::Anywhere, &limits, copies);
                prop_assert!((found.blocks - least).abs() < 1e-9 * least, "{:?} {}", found, least);
                prop_assert!(found.chunks.len() <= copies);
            }
        }

        #[test]
        fn many_classes_are_never_worse_off(pattern in patterns(10..16), cells in 2..40_u64) {
            let limits = Limits::cells(cells);
            let one = best(&pattern, Starts::Anywhere, &limits).unwrap().blocks;
            let mut last = one * (1.0 + 1e-9);
            for copies in 1..4 {
                let found = replicas(&pattern, Starts::Anywhere, &limits, copies).unwrap();
                prop_assert!(found.blocks <= one * (1.0 + 1e-9));
                prop_assert!(found.chunks.len() <= copies);
                last = last.min(found.blocks);
            }
            prop_assert!(last <= one * (1.0 + 1e-9));
        }
    }

    #[test]
    fn maps_and_time_series_get_a_copy_each() {
        let boxes = [(vec![1, 100, 100], 1.0), (vec![1000, 1, 1], 1.0)];
        let pattern = Pattern::new(&[1000, 100, 100], boxes).unwrap();
        let limits = Limits::cells(1000);
        let two = replicas(&pattern, Starts::Anywhere, &limits, 2).unwrap();
        assert_eq!(two.blocks, 0.5 * 10.0 + 0.5 * 1.0);
        assert_ne!(two.copy_of[0], two.copy_of[1]);
        let one = replicas(&pattern, Starts::Anywhere, &limits, 1).unwrap();
        assert!(one.blocks > 2.0 * two.blocks);
        assert_eq!(
            replicas(&pattern, Starts::Anywhere, &limits, 5)
                .unwrap()
                .chunks
                .len(),
            2
        );
    }
}
