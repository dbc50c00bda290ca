//! Between HDF5 files and stores: what Zarr cannot say of a file is kept in its skeleton, and a file is
//! written from a store and its skeleton.
//!
//! Above the facade, which reads, and `hyperslab-libhdf5`, which writes HDF5. Design note 009.

mod export;
mod keep;
mod redraw;

pub use export::{Export, Exported, export};
pub use keep::{Kept, keep_skeleton};
pub use redraw::{Redrawn, redraw};
