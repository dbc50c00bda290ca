//! Tests of the facade on local disk and in memory; servers are the testkit's business.

#![allow(clippy::unwrap_used)]

mod boxes;
mod guesses;
mod metadata;
mod model;
mod rechunk;
mod replicas;
mod skeletons;
mod strings;
mod writers;

use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab::{ArraySpec, Shape, numpy};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// A memory store that no other test uses.
fn fresh() -> String {
    format!("memory://facade-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn spec(shape: &[u64], dtype: &str) -> ArraySpec {
    let dtype = numpy::parse_dtype(dtype).unwrap().dtype;
    ArraySpec::new(Shape::new(shape.iter().copied()).unwrap(), dtype)
}
