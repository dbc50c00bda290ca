//! NumPy's `.npy` files.
//!
//! [`header`] reads and writes the header, [`literal`] the Python literal in it, and [`input`] is a
//! file (or raw bytes) as a source of cells.

pub(crate) mod header;
pub(crate) mod input;
mod literal;
