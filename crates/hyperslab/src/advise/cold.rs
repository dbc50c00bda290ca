//! Objects that would cost less in another class of storage.

use std::collections::HashMap;

use hyperslab_index::{ChunkGrid, Selection};
use hyperslab_layout::{StorageClass, Use, classes};

use super::Reads;
use crate::{Array, Result, Stored};

const MONTH: f64 = 30.0 * 86_400.0;
/// A shorter trace says little about a month.
const LEAST_SECONDS: f64 = 3600.0;

/// What moving objects to other classes of storage saves.
#[derive(Debug, Clone, PartialEq)]
pub struct Colder {
    /// For each class its name, its objects and their bytes.
    pub classes: Vec<(String, u64, u64)>,
    /// Dollars a month for all objects as they are.
    pub dollars_now: f64,
    /// Dollars a month with every object in its cheapest class.
    pub dollars_then: f64,
    /// The trace is too short to tell much about a month.
    pub short_trace: bool,
}

/// Looks for objects that are read so rarely that another class is cheaper; `None` where reads were not
/// seen, or nothing is known of such prices.
pub(crate) async fn colder(
    array: &Array,
    reads: &Reads,
    stored: &Stored,
) -> Result<Option<Colder>> {
    let Reads::Seen { boxes, seconds } = reads else {
        return Ok(None);
    };
    let meta = array.meta();
    let book = &array.inner().open.planner.prices;
    if book.storage.len() < 2 || stored.objects == 0 || array.state().file.is_some() {
        return Ok(None);
    }
    let known: Vec<StorageClass> = book.storage.iter().map(class).collect();
    let gb = book.egress.bytes_per_gb.value;
    let cell = meta.dtype.cell_bytes().unwrap_or(1);
    let grid = ChunkGrid::new(&meta.shape, &meta.chunk_shape)?;
    let months = seconds.max(1.0) / MONTH;
    let mut read: HashMap<Vec<u64>, (f64, f64)> = HashMap::new();
    for region in boxes {
        for part in grid.parts(&Selection::region(region))? {
            let (bytes, times) = read.entry(part.chunk().to_vec()).or_default();
            *bytes += (part.num_cells() * cell) as f64;
            *times += 1.0;
        }
    }
    let objects: Vec<Use> = array
        .chunk_objects()
        .await?
        .into_iter()
        .map(|(chunk, bytes)| {
            let (wanted, reads) = read.get(&chunk).copied().unwrap_or_default();
            Use {
                bytes,
                // More than an object is not read of it at a time, and encoded ones are read whole.
                read: wanted.min(bytes as f64 * reads).max(0.0) / months,
                reads: reads / months,
            }
        })
        .collect();
    let (chosen, dollars_then) = classes(&objects, &known, gb);
    let (_, dollars_now) = classes(&objects, &known[..1], gb);
    let mut counts: Vec<(String, u64, u64)> =
        known.iter().map(|c| (c.name.clone(), 0, 0)).collect();
    for (object, class) in objects.iter().zip(chosen) {
        counts[class].1 += 1;
        counts[class].2 += object.bytes;
    }
    Ok(Some(Colder {
        classes: counts,
        dollars_now,
        dollars_then,
        short_trace: *seconds < LEAST_SECONDS,
    }))
}

fn class(prices: &crate::planning::StoragePrices) -> StorageClass {
    StorageClass {
        name: prices.name.clone(),
        month_per_gb: prices.month_per_gb.value,
        read_per_gb: prices.read_per_gb.value,
        reads_per_1000: prices.reads_per_1000.value,
        least_bytes: prices.least_bytes.value as u64,
    }
}
