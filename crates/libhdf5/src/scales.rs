//! Dimension scales, which the high-level part of libhdf5 writes.

use std::ffi::{c_char, c_uint};

use hdf5_metno_sys::h5::herr_t;
use hdf5_metno_sys::h5i::hid_t;
use hyperslab_index::Result;

use crate::handle::{Id, c_name, check};

// The bindings leave them out; the library has them.
unsafe extern "C" {
    fn H5DSset_scale(dataset: hid_t, name: *const c_char) -> herr_t;
    fn H5DSattach_scale(dataset: hid_t, scale: hid_t, dimension: c_uint) -> herr_t;
    fn H5DSset_label(dataset: hid_t, dimension: c_uint, label: *const c_char) -> herr_t;
}

/// Makes a dataset a scale of this name.
pub(crate) fn become_scale(dataset: &Id, name: &str) -> Result<()> {
    let name = c_name(name)?;
    // SAFETY: the identifier is that of a dataset, and the name is a C string.
    check(
        unsafe { H5DSset_scale(dataset.get(), name.as_ptr()) },
        "make a dimension scale",
    )
}

/// Attaches a scale to a dimension of a dataset.
pub(crate) fn attach(dataset: &Id, scale: &Id, dimension: usize) -> Result<()> {
    // SAFETY: both are datasets.
    check(
        unsafe { H5DSattach_scale(dataset.get(), scale.get(), dimension as c_uint) },
        "attach a dimension scale",
    )
}

/// Names a dimension of a dataset.
pub(crate) fn label(dataset: &Id, dimension: usize, name: &str) -> Result<()> {
    let name = c_name(name)?;
    // SAFETY: the identifier is that of a dataset, and the name is a C string.
    check(
        unsafe { H5DSset_label(dataset.get(), dimension as c_uint, name.as_ptr()) },
        "name a dimension",
    )
}
