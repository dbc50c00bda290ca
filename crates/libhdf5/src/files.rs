//! Files in memory and on disk, as skeletons are made in and files are written to.

use std::ffi::c_void;
use std::path::Path;

use hdf5_metno_sys::h5f::{
    H5F_ACC_RDONLY, H5F_ACC_RDWR, H5F_ACC_TRUNC, H5F_LIBVER_V18, H5F_LIBVER_V114, H5F_SCOPE_LOCAL,
    H5Fcreate, H5Fflush, H5Fget_create_plist, H5Fget_file_image, H5Fopen,
};
use hdf5_metno_sys::h5g::H5Gget_create_plist;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5o::H5Oopen;
use hdf5_metno_sys::h5p::{
    H5P_CLS_FILE_ACCESS, H5P_DEFAULT, H5Pcreate, H5Pget_attr_creation_order,
    H5Pget_link_creation_order, H5Pset_attr_creation_order, H5Pset_fapl_core, H5Pset_file_image,
    H5Pset_libver_bounds, H5Pset_link_creation_order,
};
use hyperslab_index::Result;

use crate::handle::{Id, c_name, check, failed};

/// Bytes by which a file in memory grows.
const GROWTH: usize = 1 << 20;

/// Opens a skeleton.
pub(crate) fn open_image(image: &mut [u8]) -> Result<Id> {
    open_in_memory(image, H5F_ACC_RDONLY)
}

/// Opens a copy of a skeleton, to change it.
pub(crate) fn open_image_to_change(image: &mut [u8]) -> Result<Id> {
    open_in_memory(image, H5F_ACC_RDWR)
}

fn open_in_memory(image: &mut [u8], flags: u32) -> Result<Id> {
    // SAFETY: the image is copied by the call that is given it.
    unsafe {
        let access = access()?;
        check(
            H5Pset_fapl_core(access.get(), GROWTH, 0),
            "keep a file in memory",
        )?;
        let bytes = image.as_mut_ptr().cast::<c_void>();
        check(
            H5Pset_file_image(access.get(), bytes, image.len()),
            "take a file in memory",
        )?;
        let name = c_name("skeleton.h5")?;
        let file = H5Fopen(name.as_ptr(), flags, access.get());
        Id::new(file, "open the skeleton")
    }
}

/// Makes a file on disk with the properties of another one.
pub(crate) fn file_on_disk(source: &Id, path: &Path) -> Result<Id> {
    let name = c_name(&path.to_string_lossy())?;
    // SAFETY: identifiers are checked, and the name is a C string.
    unsafe {
        let creation = creation_of(source)?;
        let access = access()?;
        let made = H5Fcreate(name.as_ptr(), H5F_ACC_TRUNC, creation.get(), access.get());
        Id::new(made, &format!("make {}", path.display()))
    }
}

/// A new file in memory with the properties of another one.
pub(crate) fn file_in_memory(source: &Id) -> Result<Id> {
    let creation = creation_of(source)?;
    memory_file(creation.get())
}

/// A new file in memory.
pub(crate) fn new_in_memory() -> Result<Id> {
    memory_file(H5P_DEFAULT)
}

fn memory_file(creation: hid_t) -> Result<Id> {
    // SAFETY: classes are open as long as the library is; identifiers are checked.
    unsafe {
        let access = access()?;
        check(
            H5Pset_fapl_core(access.get(), GROWTH, 0),
            "keep a file in memory",
        )?;
        let name = c_name("skeleton.h5")?;
        let made = H5Fcreate(name.as_ptr(), H5F_ACC_TRUNC, creation, access.get());
        Id::new(made, "make a file in memory")
    }
}

/// The creation properties of a file, with those of its root group, which the library leaves out.
fn creation_of(file: &Id) -> Result<Id> {
    // SAFETY: the identifier is that of a file.
    unsafe {
        let creation = H5Fget_create_plist(file.get());
        let creation = Id::new(creation, "tell how a file was made")?;
        let root = H5Oopen(file.get(), c"/".as_ptr(), H5P_DEFAULT);
        let root = Id::new(root, "open the root group")?;
        let group = H5Gget_create_plist(root.get());
        let group = Id::new(group, "tell how a group was made")?;
        let (mut links, mut attributes) = (0, 0);
        let told = H5Pget_link_creation_order(group.get(), &mut links);
        check(told, "tell the order of links")?;
        let told = H5Pget_attr_creation_order(group.get(), &mut attributes);
        check(told, "tell the order of attributes")?;
        let set = H5Pset_link_creation_order(creation.get(), links);
        check(set, "set the order of links")?;
        let set = H5Pset_attr_creation_order(creation.get(), attributes);
        check(set, "set the order of attributes")?;
        Ok(creation)
    }
}

/// Access properties for files that version 1.14 opens.
fn access() -> Result<Id> {
    // SAFETY: the class is open as long as the library is.
    unsafe {
        let access = Id::new(H5Pcreate(*H5P_CLS_FILE_ACCESS), "make properties")?;
        // Not earlier: version 1.6 had no attributes of more than 64 KiB.
        let set = H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V114);
        check(set, "write for version 1.14")?;
        Ok(access)
    }
}

/// The bytes of a file in memory.
pub(crate) fn image(file: &Id) -> Result<Vec<u8>> {
    // SAFETY: the buffer has the size that the library asks for.
    unsafe {
        check(
            H5Fflush(file.get(), H5F_SCOPE_LOCAL),
            "write a file in memory",
        )?;
        let size = H5Fget_file_image(file.get(), std::ptr::null_mut(), 0);
        let size = usize::try_from(size).map_err(|_| failed("tell the size of a file"))?;
        let mut bytes = vec![0u8; size];
        let got = H5Fget_file_image(file.get(), bytes.as_mut_ptr().cast(), size);
        match usize::try_from(got) == Ok(size) {
            true => Ok(bytes),
            false => Err(failed("give a file in memory")),
        }
    }
}
