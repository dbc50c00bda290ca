//! The HDF5 connector: programs that use HDF5 read and write arrays on any store, unchanged.
//!
//! libhdf5 loads this library when `HDF5_PLUGIN_PATH` and `HDF5_VOL_CONNECTOR` say so, and from then on
//! hands every call about files, groups, datasets, attributes and links to the functions of `calls`.
//! Each of them finds out whether the object belongs to a local file, and hands the call on to the
//! native connector as it is, or to a remote one.
//!
//! Nothing of HDF5 is linked: one process may have several libhdf5 (h5py, netCDF4 and PyTables each
//! bring one), and all of them load this one library. What it needs of a library it finds in the one
//! that called (`library`). The native connector is called by its own functions rather than by the
//! public ones for connectors, which forget the errors of a call and cost more than the call.
//!
//! Unsafe code is what this crate is made of. The rules that it relies on are those of the interface:
//! pointers to objects are those that this crate returned and has not been told to close; arguments
//! are what the operation says; and calls come one at a time.

#![allow(unsafe_code)]

mod abi;
mod api;
mod calls;
mod class;
mod config;
mod convert;
mod guard;
mod library;
mod name;
mod native;
mod object;
mod plugin;
mod probe;
mod remote;
mod space;
mod texts;

pub use probe::{Probed, check_settings, probe};
