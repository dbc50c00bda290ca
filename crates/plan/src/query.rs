//! What a planner is asked: the bytes that a query wants, object by object.
//!
//! Invariant of a [`Query`]: runs of an object are not empty, sorted, disjoint and inside it.

use std::ops::Range;

use crate::{Error, Result};

/// Neighbouring bytes of an object that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Bytes of wanted cells that they decode to: what a function would send.
    pub useful: u64,
}

impl Run {
    /// A run of raw cells, which are useful as they are.
    pub fn plain(range: Range<u64>) -> Run {
        Run {
            start: range.start,
            end: range.end,
            useful: range.end.saturating_sub(range.start),
        }
    }

    /// Its number of bytes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }
}

/// What is wanted of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// Bytes of the whole object, or the best guess.
    pub size: u64,
    /// What is wanted: sorted and disjoint.
    pub runs: Vec<Run>,
    /// Bytes of a cell, where runs are raw cells: between cells a run may be divided among function
    /// calls. 0 where the bytes of a run only decode together.
    pub grain: u64,
    /// True if the function can read this object.
    pub function: bool,
    /// True if its size is certain, so that a long range can be fetched in parts.
    pub splittable: bool,
}

impl Object {
    /// A raw chunk with cells of 4 bytes.
    pub fn raw(size: u64, runs: Vec<Run>) -> Object {
        Object {
            size,
            runs,
            grain: 4,
            function: true,
            splittable: true,
        }
    }

    /// An encoded chunk, which is decoded as a whole, and of which `useful` bytes are wanted then.
    pub fn encoded(size: u64, useful: u64) -> Object {
        Object {
            size,
            runs: vec![Run {
                start: 0,
                end: size,
                useful,
            }],
            grain: 0,
            function: true,
            splittable: true,
        }
    }

    /// From the first wanted byte to the last.
    pub fn covering(&self) -> Range<u64> {
        match (self.runs.first(), self.runs.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// Bytes that a function would send.
    pub fn useful(&self) -> u64 {
        self.runs.iter().map(|run| run.useful).sum()
    }
}

/// All that is wanted from one endpoint.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Query {
    objects: Vec<Object>,
}

impl Query {
    /// Checks the runs.
    pub fn new(objects: Vec<Object>) -> Result<Query> {
        for object in &objects {
            let sorted = object.runs.windows(2).all(|w| w[0].end <= w[1].start);
            let inside = object.runs.last().is_some_and(|run| run.end <= object.size);
            if !sorted || !inside || object.runs.iter().any(Run::is_empty) {
                return Err(Error::internal(
                    "the runs of an object are not sorted, disjoint and inside it",
                ));
            }
        }
        Ok(Query { objects })
    }

    /// The objects.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Bytes that are wanted, after decoding.
    pub fn useful(&self) -> u64 {
        self.objects.iter().map(Object::useful).sum()
    }

    /// Number of runs.
    pub fn num_runs(&self) -> usize {
        self.objects.iter().map(|object| object.runs.len()).sum()
    }
}
