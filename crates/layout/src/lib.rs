//! How an array had better be laid out, from how it is read.
//!
//! Sits beside the planner: what it decides (chunk shape, order of axes, copies, units of media) is
//! carried out by `hyperslab`'s copies. Everything here is a pure function of the access pattern, its
//! limits and, where layouts are weighed by what reads cost, the planner's model. The model is that of Sarawagi & Stonebraker,
//! *Efficient Organization of Large Multidimensional Arrays* (1994), with boxes that start anywhere.
//!
//! Invariant: a chunk shape that is returned has a side between 1 and the array's along every
//! dimension, and no more cells than allowed.
//!
//! ```
//! use hyperslab_layout::{Limits, Pattern, Starts, best, linear_blocks};
//!
//! // The paper's example: bytes, in blocks of 8,000.
//! let pattern = Pattern::parse("2\n10 400 10 1\n20 5 400 1\n", &[100, 2000, 8000])?;
//! assert_eq!(linear_blocks(&pattern, Starts::Aligned, 8000), 2050.0);
//! let found = best(&pattern, Starts::Aligned, &Limits::cells(8000))?;
//! assert_eq!(found.blocks, 20.0);
//! # Ok::<(), hyperslab_layout::Error>(())
//! ```

mod cheapest;
mod cold;
mod count;
mod media;
mod order;
mod pattern;
mod replicas;
mod sample;
mod search;
mod shards;
mod store;

pub use cheapest::{Proposal, Proposals, Wishes, cheapest, cheapest_copies};
pub use cold::{StorageClass, Use, classes};
pub use count::{Starts, chunks_along, expected_blocks, linear_blocks};
pub use hyperslab_index::{Error, ErrorKind, Result};
pub use media::{Media, partition, switches};
pub use order::{axis_order, chunk_order, seek_distance};
pub use pattern::{Class, Pattern};
pub use replicas::{Copies, replicas};
pub use sample::Sample;
pub use search::{Found, Limits, best, exhaustive, powers_of_two};
pub use shards::shards;
pub use store::{Expected, Layout, Store};
