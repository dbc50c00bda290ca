//! Creation properties of datasets.

use std::ffi::c_void;

use hdf5_metno_sys::h5d::{H5D_CONTIGUOUS, H5D_FILL_VALUE_USER_DEFINED, H5D_VIRTUAL};
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5Pcreate, H5Pfill_value_defined, H5Pget_external_count,
    H5Pget_fill_value, H5Pget_layout, H5Pset_chunk, H5Pset_fill_value, H5Pset_layout,
};
use hdf5_metno_sys::h5s::H5Sget_simple_extent_dims;
use hdf5_metno_sys::h5t::H5Tget_size;
use hyperslab_index::{Result, Shape, default_chunks};

use crate::handle::{Id, check, failed, sides};

/// Bytes of a chunk of a dataset that had none.
const CHUNK: u64 = 1 << 20;

/// Creation properties for a dataset that has its cells itself: mappings and other files are left out.
pub(crate) fn own_cells(how: Id, datatype: &Id, space: &Id) -> Result<Id> {
    // SAFETY: the identifier is that of creation properties; the buffer has the size of the type.
    unsafe {
        let elsewhere =
            H5Pget_layout(how.get()) == H5D_VIRTUAL || H5Pget_external_count(how.get()) > 0;
        if !elsewhere {
            return Ok(how);
        }
        let own = Id::new(H5Pcreate(*H5P_CLS_DATASET_CREATE), "make properties")?;
        let (sides, size) = (sides(space)?, H5Tget_size(datatype.get()));
        match can_grow(space, sides.len())? {
            // Only chunks let a dataset grow.
            true => {
                let longest = sides.iter().map(|side| (*side).max(1));
                let shape = Shape::new(longest)?;
                let chunk = default_chunks(&shape, size as u64, CHUNK).to_vec();
                let set = H5Pset_chunk(own.get(), chunk.len() as i32, chunk.as_ptr());
                check(set, "set chunks")?;
            }
            false => check(H5Pset_layout(own.get(), H5D_CONTIGUOUS), "make a layout")?,
        }
        let mut defined = std::mem::zeroed();
        check(
            H5Pfill_value_defined(how.get(), &mut defined),
            "tell a fill value",
        )?;
        if defined == H5D_FILL_VALUE_USER_DEFINED {
            let mut value = vec![0u8; size];
            let room = value.as_mut_ptr().cast::<c_void>();
            check(
                H5Pget_fill_value(how.get(), datatype.get(), room),
                "tell a fill value",
            )?;
            let value = value.as_ptr().cast::<c_void>();
            check(
                H5Pset_fill_value(own.get(), datatype.get(), value),
                "set a fill value",
            )?;
        }
        Ok(own)
    }
}

/// True if a dataset of this shape may become larger.
fn can_grow(space: &Id, rank: usize) -> Result<bool> {
    let (mut sides, mut limits) = (vec![0; rank], vec![0; rank]);
    // SAFETY: both lists have room for as many sides as the space has dimensions.
    let got =
        unsafe { H5Sget_simple_extent_dims(space.get(), sides.as_mut_ptr(), limits.as_mut_ptr()) };
    match got >= 0 {
        true => Ok(sides != limits),
        false => Err(failed("tell the limits of a dataspace")),
    }
}
