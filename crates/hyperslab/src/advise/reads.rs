//! How an array is read, as far as it is known.

use hyperslab_index::Region;
use hyperslab_layout::{Pattern, Sample};

use crate::{Array, Error, Result, Trace};

/// The reads that a layout is for.
#[derive(Debug, Clone)]
pub enum Reads {
    /// Classes of boxes that may lie anywhere.
    Told(Pattern),
    /// Boxes that were read.
    Seen {
        /// The boxes, in the order of time.
        boxes: Vec<Region>,
        /// Seconds from the first to the last.
        seconds: f64,
    },
}

impl Reads {
    /// The reads of an array in a trace.
    pub fn traced(trace: &Trace, array: &Array) -> Result<Reads> {
        let shape = array.shape();
        let whole = Region::whole(&shape);
        let of_array = trace
            .reads
            .iter()
            .filter(|read| read.array.url == array.url());
        let mut boxes = Vec::new();
        let (mut first, mut last) = (u64::MAX, 0);
        for read in of_array {
            // An array may have had another shape when it was read.
            let region = read.region().filter(|r| r.rank() == shape.rank());
            if let Some(region) = region.and_then(|region| region.intersect(&whole)) {
                boxes.push(region);
                (first, last) = (first.min(read.at), last.max(read.at + read.took));
            }
        }
        if boxes.is_empty() {
            let mut known: Vec<&str> = trace.reads.iter().map(|r| &*r.array.url).collect();
            known.sort_unstable();
            known.dedup();
            let hint = match known.len() {
                0 => "the trace is empty".to_owned(),
                _ => format!("it has reads of {}", known[..known.len().min(3)].join(", ")),
            };
            return Err(
                Error::invalid(format!("the trace has no reads of {}", array.url()))
                    .with_hint(hint),
            );
        }
        Ok(Reads::Seen {
            boxes,
            seconds: last.saturating_sub(first) as f64 / 1e6,
        })
    }

    /// How many reads there were, if they were seen.
    pub fn count(&self) -> Option<u64> {
        match self {
            Reads::Told(_) => None,
            Reads::Seen { boxes, .. } => Some(boxes.len() as u64),
        }
    }

    /// The classes of boxes.
    pub fn pattern(&self, shape: &[u64]) -> Result<Pattern> {
        match self {
            Reads::Told(pattern) if pattern.shape() == shape => Ok(pattern.clone()),
            Reads::Told(pattern) => Err(Error::invalid(format!(
                "the access pattern is for an array of the shape {:?}, but this one has {shape:?}",
                pattern.shape()
            ))),
            Reads::Seen { boxes, .. } => {
                let each = boxes.iter().map(|region| (region.shape().to_vec(), 1.0));
                Pattern::new(shape, each)
            }
        }
    }

    /// Boxes to cost layouts by: `each` of every class, or at most so many of those that were seen.
    pub(crate) fn samples(
        &self,
        pattern: &Pattern,
        each: usize,
        most: usize,
    ) -> Result<Vec<Sample>> {
        let Reads::Seen { boxes, .. } = self else {
            return pattern.spread(each);
        };
        // Evenly over time.
        let count = boxes.len().min(most.max(1));
        let chosen = (0..count).map(|i| &boxes[i * boxes.len() / count]);
        Ok(chosen
            .map(|region| Sample {
                class: pattern.class_of(region.shape()),
                region: region.clone(),
                weight: 1.0 / count as f64,
            })
            .collect())
    }
}
