//! How an array is read: classes of boxes, each with its share of all reads.
//!
//! Above everything else here. A class says how large its boxes are, not where they lie.
//!
//! Invariant: weights are positive and their sum is 1; extents are between 1 and the array's sides;
//! no two classes have the same extents.

mod cluster;
mod text;

use std::collections::BTreeMap;

use crate::{Error, Result};

/// Boxes of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Their sides.
    pub extent: Vec<u64>,
    /// Their share of all reads.
    pub weight: f64,
}

impl Class {
    /// Cells of a box.
    pub fn cells(&self) -> f64 {
        self.extent.iter().map(|side| *side as f64).product()
    }
}

/// The reads of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    shape: Vec<u64>,
    classes: Vec<Class>,
}

impl Pattern {
    /// A pattern of boxes with how often each is read; equal boxes are one class.
    pub fn new(shape: &[u64], boxes: impl IntoIterator<Item = (Vec<u64>, f64)>) -> Result<Pattern> {
        if let Some(dim) = shape.iter().position(|side| *side == 0) {
            return Err(Error::invalid(format!(
                "the array has no cells along dimension {dim}, so nothing can be read of it"
            )));
        }
        let mut sums: BTreeMap<Vec<u64>, f64> = BTreeMap::new();
        for (extent, often) in boxes {
            check_box(shape, &extent)?;
            if !often.is_finite() || often <= 0.0 {
                return Err(Error::invalid(format!(
                    "the box {} is read {often} times, but it has to be more than 0",
                    listed(&extent)
                )));
            }
            *sums.entry(extent).or_default() += often;
        }
        let total: f64 = sums.values().sum();
        if sums.is_empty() || !total.is_finite() {
            return Err(Error::invalid("the access pattern has no boxes")
                .with_hint("record some with --trace, or give boxes such as --box 10,400,10:1"));
        }
        let classes = sums.into_iter().map(|(extent, often)| Class {
            extent,
            weight: often / total,
        });
        Ok(Pattern {
            shape: shape.to_vec(),
            classes: classes.collect(),
        })
    }

    /// The array's shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The classes.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// One of the classes by itself.
    pub fn only(&self, class: usize) -> Pattern {
        self.subset(&[class])
    }

    /// Some of the classes; their weights are shares of them all.
    pub(crate) fn subset(&self, members: &[usize]) -> Pattern {
        let total: f64 = members.iter().map(|i| self.classes[*i].weight).sum();
        let classes = members.iter().map(|i| Class {
            extent: self.classes[*i].extent.clone(),
            weight: self.classes[*i].weight / total,
        });
        Pattern {
            shape: self.shape.clone(),
            classes: classes.collect(),
        }
    }
}

fn check_box(shape: &[u64], extent: &[u64]) -> Result<()> {
    if extent.len() != shape.len() {
        return Err(Error::invalid(format!(
            "the box {} has {} dimensions, but the array {} has {}",
            listed(extent),
            extent.len(),
            listed(shape),
            shape.len()
        )));
    }
    for (dim, (side, all)) in extent.iter().zip(shape).enumerate() {
        if *side == 0 {
            return Err(Error::invalid(format!(
                "the box {} has no cells along dimension {dim}",
                listed(extent)
            )));
        }
        if side > all {
            return Err(Error::invalid(format!(
                "the box {} is larger than the array {} along dimension {dim}",
                listed(extent),
                listed(shape)
            )));
        }
    }
    Ok(())
}

/// Sides as people write them.
pub(crate) fn listed(sides: &[u64]) -> String {
    let sides: Vec<String> = sides.iter().map(u64::to_string).collect();
    format!("({})", sides.join(", "))
}
