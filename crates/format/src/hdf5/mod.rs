//! HDF5 files, read in place.
//!
//! Between the store, which fetches ranges of a file, and the resolver, which says where the cells
//! of a dataset are. Metadata is parsed here, from bytes that arrived (`blocks`); raw data never
//! passes through. The structures of the file format are parsed by this module itself, with all
//! nodes of a level asked for at once, because over a network the number of round trips is what
//! opening a file costs; fractal heaps and three rare filters are those of the `hdf5-reader` crate.
//!
//! Invariant: what is damaged or not known is an error that names it; parsing ends for every input,
//! and allocates no more than the file has bytes.

mod arrays;
mod attribute;
mod blocks;
mod cells;
mod chunks;
mod cursor;
mod dataset;
mod datatype;
mod describe;
mod file;
mod header;
mod heap;
mod link;
mod mapping;
mod message;
mod node;
mod resolve;
mod scales;
mod superblock;
mod tree;
mod value;

pub use crate::codec::HdfFilter;
pub use dataset::Segment;
pub use describe::Description;
pub use file::{File, Found};
pub use mapping::{Entry, Slab, Stored};
pub use node::{Elsewhere, FileArray, HeapType, Member, MemberKind, Object};
pub use resolve::FileResolver;
pub use superblock::seal;

use crate::{Error, Result};

/// Fails unless the bytes have this checksum (Jenkins' lookup3).
fn checksum(bytes: &[u8], expected: u32, what: &str) -> Result<()> {
    match hdf5_reader::checksum::jenkins_lookup3(bytes) == expected {
        true => Ok(()),
        false => Err(
            Error::data(format!("the {what} does not have its checksum"))
                .with_hint("the file is damaged: fetch it again or repair it with h5clear"),
        ),
    }
}

/// An error of the `hdf5-reader` crate.
fn foreign(e: hdf5_reader::error::Error) -> Error {
    Error::data(e.to_string())
}
