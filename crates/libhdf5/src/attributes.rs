//! Copies attributes: any type, any shape; references lead to the same objects of the new file.

use std::ffi::c_void;

use hdf5_metno_sys::h5::{H5_INDEX_CRT_ORDER, H5_INDEX_NAME, H5_ITER_INC, hsize_t};
use hdf5_metno_sys::h5a::{
    H5Acreate2, H5Aget_create_plist, H5Aget_name, H5Aget_space, H5Aget_type, H5Aopen_by_idx,
    H5Aread, H5Awrite,
};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5t::{H5Tget_size, H5Treclaim};
use hyperslab_index::{Error, Result};

use crate::handle::{Id, c_name, check, elements, failed, info};
use crate::references;

/// Copies all attributes of one object to another; returns what was lost, in sentences.
pub(crate) fn copy(
    files: (hid_t, hid_t),
    (from, to): (&Id, &Id),
    matching_type: &mut dyn FnMut(Id) -> Result<Id>,
) -> Result<Vec<String>> {
    let mut lost = Vec::new();
    for n in 0..info(from)?.num_attrs {
        let attribute = nth(from, n)?;
        let name = name(&attribute)?;
        let what = one(files, &attribute, &name, to, matching_type);
        lost.extend(what.map_err(|e| e.context(format!("the attribute {name:?}")))?);
    }
    Ok(lost)
}

/// The nth attribute in the order of creation, or of names where that was not tracked.
fn nth(object: &Id, n: hsize_t) -> Result<Id> {
    let here = c".".as_ptr();
    let open = |index| {
        // SAFETY: the name is a C string.
        unsafe {
            H5Aopen_by_idx(
                object.get(),
                here,
                index,
                H5_ITER_INC,
                n,
                H5P_DEFAULT,
                H5P_DEFAULT,
            )
        }
    };
    Id::new(open(H5_INDEX_CRT_ORDER), "open an attribute")
        .or_else(|_| Id::new(open(H5_INDEX_NAME), "open an attribute"))
}

fn name(attribute: &Id) -> Result<String> {
    // SAFETY: the buffer has the size that the library asks for, and one byte for its end.
    unsafe {
        let length = H5Aget_name(attribute.get(), 0, std::ptr::null_mut());
        let length = usize::try_from(length).map_err(|_| failed("name an attribute"))?;
        let mut bytes = vec![0u8; length + 1];
        H5Aget_name(attribute.get(), bytes.len(), bytes.as_mut_ptr().cast());
        bytes.truncate(length);
        String::from_utf8(bytes).map_err(|_| Error::data("the name of an attribute is no text"))
    }
}

fn one(
    (source, target): (hid_t, hid_t),
    attribute: &Id,
    name: &str,
    to: &Id,
    matching_type: &mut dyn FnMut(Id) -> Result<Id>,
) -> Result<Option<String>> {
    let c_name = c_name(name)?;
    // SAFETY: the identifier is that of an attribute.
    let (datatype, space, how) = unsafe {
        (
            Id::new(H5Aget_type(attribute.get()), "tell a type")?,
            Id::new(H5Aget_space(attribute.get()), "tell a shape")?,
            Id::new(
                H5Aget_create_plist(attribute.get()),
                "tell how an attribute was made",
            )?,
        )
    };
    let datatype = matching_type(datatype)?;
    // SAFETY: all identifiers are open.
    let made = unsafe {
        H5Acreate2(
            to.get(),
            c_name.as_ptr(),
            datatype.get(),
            space.get(),
            how.get(),
            H5P_DEFAULT,
        )
    };
    let made = Id::new(made, "make it")?;
    let count = elements(&space)?;
    if count == 0 {
        return Ok(None);
    }
    // SAFETY: the identifier is that of a type.
    let size = unsafe { H5Tget_size(datatype.get()) };
    let bytes = usize::try_from(count)
        .ok()
        .and_then(|count| count.checked_mul(size));
    let bytes = bytes.ok_or_else(|| Error::data("it is larger than memory can be"))?;
    let mut cells = vec![0u8; bytes];
    let room = cells.as_mut_ptr().cast::<c_void>();
    // SAFETY: the buffer has room for all elements; what the library allocates for them is given
    // back to it.
    unsafe {
        check(H5Aread(attribute.get(), datatype.get(), room), "read it")?;
        let lost = references::translate((source, target), &datatype, &mut cells);
        let written = match lost {
            Ok(_) => check(H5Awrite(made.get(), datatype.get(), room), "write it"),
            Err(_) => Ok(()),
        };
        H5Treclaim(datatype.get(), space.get(), H5P_DEFAULT, room);
        written?;
        lost
    }
}
