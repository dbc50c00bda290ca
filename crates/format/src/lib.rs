//! Data types, codecs, metadata and hierarchies: what the bytes in a store mean.
//!
//! Sits between [`hyperslab_store`], which moves bytes, and the facade, which moves cells. It may
//! use `index`, `store` and the Blosc front; it starts no task and spawns no thread.
//!
//! The stored form is Zarr v3 (read and write) and Zarr v2 (read). Invariant: what cannot be
//! understood completely is an error that names it; it is never read as something else.
//!
//! ```
//! use hyperslab_format::{ArraySpec, StorePolicy, numpy};
//! use hyperslab_index::Shape;
//!
//! let dtype = numpy::parse_dtype("float32")?.dtype;
//! let spec = ArraySpec::new(Shape::new([4096, 4096])?, dtype);
//! let meta = spec.build(&StorePolicy::LOCAL)?;
//! assert_eq!(meta.chunk_shape[..], [512, 512]);
//! # Ok::<(), hyperslab_index::Error>(())
//! ```

mod base64;
mod codec;
mod dtype;
mod fill;
pub mod hdf5;
mod hierarchy;
mod keys;
mod meta;
pub mod numpy;
pub mod references;
mod resolve;
mod signature;

pub use codec::{CodecChain, Scratch, ShardIndex, Sharding};
pub use dtype::{DataType, Field, TimeUnit};
pub use fill::FillValue;
pub use hierarchy::{
    Loaded, Node, child_names, disagreements, flag_node, load, remove_node, save_group, save_node,
    sync_copies, update_node, walk,
};
pub use hyperslab_index::{Error, ErrorKind, Result};
pub use keys::{ChunkKeys, check_path, join};
pub use meta::{
    ArrayMeta, ArraySpec, Compression, GroupMeta, StorePolicy, ZarrFormat, parse_json, render_json,
    without_copy,
};
pub use resolve::{ObjectPieces, Piece, Resolver, Source, ZarrResolver, object_region};
