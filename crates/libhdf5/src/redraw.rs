//! Changes a skeleton to what Zarr says of its hierarchy by now.
//!
//! Objects that are the same stay as they are, with all that Zarr cannot say of them.

use hdf5_metno_sys::LOCK;
use hdf5_metno_sys::h5a::{H5Adelete, H5Aexists};
use hdf5_metno_sys::h5d::H5Dset_extent;
use hdf5_metno_sys::h5l::{H5Ldelete, H5Lexists};
use hdf5_metno_sys::h5o::H5Oopen;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hyperslab_index::Result;
use serde_json::{Map, Value};

use crate::blueprint::{Drawn, draw, is_of_scales};
use crate::files::{image, open_image_to_change};
use crate::handle::{Id, c_name, check, open_dataset, start};
use crate::{filters, json};

/// What is to be changed in a skeleton; paths have no slash before them.
#[derive(Debug, Default)]
pub struct Redraw {
    /// Objects that are gone, or are to be made anew.
    pub removed: Vec<String>,
    /// Objects that are new, groups before their members.
    pub made: Vec<(String, Drawn)>,
    /// Datasets with other shapes.
    pub resized: Vec<(String, Vec<u64>)>,
    /// Objects with other attributes.
    pub described: Vec<Described>,
}

/// An object that has other attributes than it had.
#[derive(Debug)]
pub struct Described {
    /// Its path.
    pub path: String,
    /// The attributes that it had.
    pub old: Map<String, Value>,
    /// Those that it has.
    pub new: Map<String, Value>,
}

/// Changes a skeleton. A dataset whose shape cannot be changed is left out, and its path returned: it
/// has to be made anew.
pub fn redraw(skeleton: &mut [u8], changes: &Redraw) -> Result<(Vec<u8>, Vec<String>)> {
    let _lock = LOCK.lock();
    start()?;
    filters::register()?;
    let file = open_image_to_change(skeleton)?;
    for path in &changes.removed {
        remove(&file, path)?;
    }
    for (path, object) in &changes.made {
        draw(&file, path, object).map_err(|e| e.context(format!("/{path}")))?;
    }
    let mut fixed = Vec::new();
    for (path, shape) in &changes.resized {
        let dataset = open_dataset(file.get(), path)?;
        // SAFETY: a side for every dimension, as the dataset has them.
        let resized = unsafe { H5Dset_extent(dataset.get(), shape.as_ptr()) };
        if check(resized, "resize a dataset").is_err() {
            fixed.push(path.clone());
        }
    }
    for Described { path, old, new } in &changes.described {
        let object = open(&file, path)?;
        describe(&object, old, new).map_err(|e| e.context(format!("/{path}")))?;
    }
    Ok((image(&file)?, fixed))
}

fn open(file: &Id, path: &str) -> Result<Id> {
    let name = c_name(&format!("/{path}"))?;
    // SAFETY: the name is a C string.
    let id = unsafe { H5Oopen(file.get(), name.as_ptr(), H5P_DEFAULT) };
    Id::new(id, &format!("open /{path}"))
}

fn remove(file: &Id, path: &str) -> Result<()> {
    let name = c_name(path)?;
    // SAFETY: the name is a C string.
    unsafe {
        // A group above it may have gone before.
        if H5Lexists(file.get(), name.as_ptr(), H5P_DEFAULT) > 0 {
            let removed = H5Ldelete(file.get(), name.as_ptr(), H5P_DEFAULT);
            check(removed, &format!("remove /{path}"))?;
        }
    }
    Ok(())
}

/// Gives an object the attributes that are new or have other values, and takes away those that are gone.
fn describe(object: &Id, old: &Map<String, Value>, new: &Map<String, Value>) -> Result<()> {
    let names = old
        .keys()
        .chain(new.keys().filter(|name| !old.contains_key(*name)));
    for name in names.filter(|name| old.get(*name) != new.get(*name)) {
        if is_of_scales(name) {
            continue;
        }
        let c_name = c_name(name)?;
        // SAFETY: the name is a C string.
        unsafe {
            if H5Aexists(object.get(), c_name.as_ptr()) > 0 {
                let removed = H5Adelete(object.get(), c_name.as_ptr());
                check(removed, &format!("remove the attribute {name:?}"))?;
            }
        }
        if let Some(value) = new.get(name) {
            json::write_attribute(object, name, value)?;
        }
    }
    Ok(())
}
