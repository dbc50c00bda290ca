//! Large multi-dimensional arrays on any object store: open, read, write.
//!
//! The facade of the system, above `index`, `store` and `format`. It owns the executor, the
//! caches and the runtime. Calls are async, on tokio; those that fill or take a borrowed buffer
//! block, and [`block_on`] runs any of them from ordinary code.
//!
//! Invariant: a read returns every cell or an error that names the array and the object, never
//! fill values in place of an unreadable chunk; a write takes each object from one complete state
//! to another.
//!
//! ```
//! use hyperslab::{ArraySpec, Bounds, Session, Shape, numpy, parse_slices};
//!
//! # fn main() -> hyperslab::Result<()> {
//! let session = Session::default();
//! hyperslab::block_on(async {
//!     let shape = Shape::new([100, 200])?;
//!     let dtype = numpy::parse_dtype("uint8")?.dtype;
//!     let spec = ArraySpec::new(shape.clone(), dtype);
//!     let array = session.create_array("memory://tour/sky.zarr/image", spec, false).await?;
//!
//!     let rows = parse_slices("10:12, :", &shape, Bounds::Strict)?;
//!     array.write(&rows.selection, vec![7; 400]).await?;
//!     let column = parse_slices("8:14, 5", &shape, Bounds::Strict)?;
//!     assert_eq!(array.read(&column.selection).await?, [0, 0, 7, 7, 0, 0]);
//!     Ok(())
//! })
//! # }
//! ```

pub mod advise;
mod array;
mod buffers;
mod cache;
mod call;
mod canvas;
mod clip;
mod copy;
mod deliver;
mod explain;
mod external;
mod fetch;
mod file;
mod group;
mod guess;
mod here;
mod lanes;
mod location;
mod mosaic;
mod options;
mod outline;
mod parts;
mod plan;
pub mod profile;
mod publish;
mod query;
mod ranges;
mod read;
mod rechunk;
mod references;
mod replicas;
mod resize;
mod runtime;
mod scatter;
mod session;
pub mod settings;
mod skeleton;
mod stream;
mod strings;
mod tasks;
pub mod text;
mod trace;
mod watch;
mod write;

pub use array::Array;
pub use cache::{CachedObject, DiskCache};
pub use copy::{Comparison, CopyOptions, compare_arrays, copy_array};
pub use explain::{ChunkPlan, CopyPlan, Explanation, Measured};
pub use group::{Group, Node};
pub use hyperslab_format::references::{ReferenceSet, Skipped};
pub use hyperslab_format::{
    self as format, ArrayMeta, ArraySpec, ChunkKeys, CodecChain, Compression, DataType, FillValue,
    GroupMeta, StorePolicy, ZarrFormat, numpy,
};
pub use hyperslab_function::{FunctionClient, Secret};
pub use hyperslab_index::{
    Bounds, CellOrder, ChunkGrid, Error, ErrorKind, Hyperslab, Region, Result, Selection, Shape,
    Slicing, Target, default_chunks, parse_slices,
};
pub use hyperslab_plan::{self as planning, Mode, Place, PriceBook, Profile};
pub use hyperslab_store as store;
pub use options::{Consolidated, DiskCacheOptions, Options, Progress};
pub use outline::{Beside, Noted, Outline, objects_in};
pub use query::Query;
pub use rechunk::{RechunkOptions, Rechunked, rechunk, rechunk_in_place};
pub use replicas::{ABANDONED, Refreshed, ReplicaInfo};
pub use resize::Stored;
pub use runtime::{block_on, handle, stop_when};
pub use session::Session;
pub use skeleton::{Skeleton, SkeletonState};
pub use stream::{ArrayBox, BoxOptions};
pub use trace::{Access, Chosen, Process, Trace, TracedArray};
