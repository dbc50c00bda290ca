//! Between HDF5 files and stores: what Zarr cannot say of a file is kept in its skeleton, and a file is
//! written from a store and its skeleton.
//!
//! Above the facade, which reads, and `hyperslab-libhdf5`, which writes HDF5. Design note 009.

mod export;
mod keep;

pub use export::{Export, Exported, export};
pub use keep::{Kept, keep_skeleton};

use serde::{Deserialize, Serialize};

/// The skeleton, beside a hierarchy.
const SKELETON: &str = "skeleton.h5";
/// What belongs to it.
const RECORD: &str = "skeleton.json";

/// What is known of a skeleton.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    version: u32,
    /// Bytes of the skeleton that this belongs to.
    bytes: u64,
    /// Paths of datasets whose cells are in arrays of the same path.
    arrays: Vec<String>,
}
