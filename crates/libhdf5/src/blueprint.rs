//! Makes the skeleton of a hierarchy that never was an HDF5 file: groups, datasets and attributes as
//! Zarr describes them.

use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

use hdf5_metno_sys::LOCK;
use hdf5_metno_sys::h5d::{H5D_ALLOC_TIME_INCR, H5D_ALLOC_TIME_LATE, H5Dcreate2};
use hdf5_metno_sys::h5g::H5Gcreate2;
use hdf5_metno_sys::h5o::H5Oopen;
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5P_DEFAULT, H5Pcreate, H5Pset_alloc_time, H5Pset_chunk,
    H5Pset_deflate, H5Pset_fill_value, H5Pset_shuffle,
};
use hdf5_metno_sys::h5t::H5T_IEEE_F32BE;
use hyperslab_format::{ArrayMeta, DataType};
use hyperslab_index::{Result, default_chunks};
use serde_json::{Map, Value};

use crate::files::{image, new_in_memory};
use crate::handle::{Id, c_name, check, open_dataset, space, start};
use crate::links::link_creation;
use crate::{Skeleton, filters, json, scales, types};

/// Deflate's level where another compression was.
const DEFLATE: u32 = 4;
/// Chunks of HDF5 have fewer bytes than this.
const LARGEST_CHUNK: u64 = 1 << 32;
/// Bytes of a chunk in place of one that is too large.
const CHUNK: u64 = 16 << 20;
/// Codecs that make nothing smaller.
const NO_COMPRESSION: [&str; 7] = [
    "bytes",
    "transpose",
    "crc32c",
    "vlen-utf8",
    "vlen-bytes",
    "numcodecs.crc32c",
    "numcodecs.fletcher32",
];
/// Attributes of dimension scales; what they say is written anew.
const OF_SCALES: [&str; 5] = [
    "DIMENSION_LABELS",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_ARRAY_DIMENSIONS",
    "_Netcdf4Dimid",
];

/// An object of a file that is to be made.
#[derive(Debug, Clone)]
pub enum Drawn {
    /// A group with these attributes.
    Group(Map<String, Value>),
    /// A dataset.
    Array(Arc<ArrayMeta>),
}

/// Makes the skeleton of a file with these objects, each with its path; a path that is empty is the
/// root. With `netcdf`, every named dimension has a scale, as netCDF-4 wants it.
pub fn blueprint(objects: &[(String, Drawn)], netcdf: bool) -> Result<Skeleton> {
    let _lock = LOCK.lock();
    start()?;
    filters::register()?;
    let file = new_in_memory()?;
    let mut made = Skeleton {
        image: Vec::new(),
        outside: Vec::new(),
        lost: Vec::new(),
    };
    for (path, object) in objects {
        draw(&file, path, object).map_err(|e| e.context(format!("/{path}")))?;
        if let Drawn::Array(_) = object {
            made.outside.push(format!("/{path}"));
        }
    }
    let arrays = objects.iter().filter_map(|(path, object)| match object {
        Drawn::Array(meta) => Some((path.as_str(), &**meta)),
        Drawn::Group(_) => None,
    });
    let arrays: HashMap<&str, &ArrayMeta> = arrays.collect();
    dimensions(&file, objects, &arrays, netcdf, &mut made)?;
    made.image = image(&file)?;
    Ok(made)
}

/// Makes an object of a file.
pub(crate) fn draw(file: &Id, path: &str, object: &Drawn) -> Result<()> {
    match object {
        Drawn::Group(attributes) => group(file, path, attributes),
        Drawn::Array(meta) => dataset(file, path, meta),
    }
}

/// True of the attributes by which datasets and their scales know each other.
pub(crate) fn is_of_scales(name: &str) -> bool {
    OF_SCALES.contains(&name)
}

fn group(file: &Id, path: &str, attributes: &Map<String, Value>) -> Result<()> {
    let made = match path {
        // SAFETY: the root group is there.
        "" => unsafe { H5Oopen(file.get(), c"/".as_ptr(), H5P_DEFAULT) },
        path => {
            let (name, link) = (c_name(path)?, link_creation(true)?);
            // SAFETY: the name is a C string.
            unsafe {
                H5Gcreate2(
                    file.get(),
                    name.as_ptr(),
                    link.get(),
                    H5P_DEFAULT,
                    H5P_DEFAULT,
                )
            }
        }
    };
    let made = Id::new(made, "make the group")?;
    for (name, value) in attributes {
        json::write_attribute(&made, name, value)?;
    }
    Ok(())
}

fn dataset(file: &Id, path: &str, meta: &ArrayMeta) -> Result<()> {
    let datatype = types::datatype(&meta.dtype)?;
    let how = creation(meta, &datatype)?;
    let made = create(file, path, &datatype, &space(&meta.shape)?, &how)?;
    let is_scale = meta.attributes.get("CLASS").and_then(Value::as_str) == Some("DIMENSION_SCALE");
    for (name, value) in &meta.attributes {
        let of_scale = is_scale && matches!(name.as_str(), "CLASS" | "NAME");
        if !of_scale && !is_of_scales(name) {
            json::write_attribute(&made, name, value)?;
        }
    }
    Ok(())
}

fn create(file: &Id, path: &str, datatype: &Id, space: &Id, how: &Id) -> Result<Id> {
    let (name, link) = (c_name(path)?, link_creation(true)?);
    // SAFETY: all identifiers are open.
    let made = unsafe {
        H5Dcreate2(
            file.get(),
            name.as_ptr(),
            datatype.get(),
            space.get(),
            link.get(),
            how.get(),
            H5P_DEFAULT,
        )
    };
    Id::new(made, "make the dataset")
}

/// Creation properties: chunks as the array has them, deflate where it is compressed, since every
/// HDF5 library has that.
fn creation(meta: &ArrayMeta, datatype: &Id) -> Result<Id> {
    // SAFETY: classes are open as long as the library is; lists have as many sides as is said.
    unsafe {
        let how = Id::new(H5Pcreate(*H5P_CLS_DATASET_CREATE), "make properties")?;
        let level = deflate(meta);
        match chunk(meta, level.is_some())? {
            Some(chunk) => {
                let set = H5Pset_chunk(how.get(), chunk.len() as i32, chunk.as_ptr());
                check(set, "set chunks")?;
                let set = H5Pset_alloc_time(how.get(), H5D_ALLOC_TIME_INCR);
                check(set, "put off storage")?;
                if let Some(level) = level {
                    check(H5Pset_shuffle(how.get()), "shuffle")?;
                    check(H5Pset_deflate(how.get(), level), "compress")?;
                }
            }
            None => {
                let set = H5Pset_alloc_time(how.get(), H5D_ALLOC_TIME_LATE);
                check(set, "put off storage")?;
            }
        }
        let fill = meta.fill.bytes();
        if fill.iter().any(|byte| *byte != 0) {
            let text = CString::new(fill).ok();
            let pointer: *const c_char = text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
            let value: *const c_void = match &meta.dtype {
                DataType::String if text.is_some() => std::ptr::from_ref(&pointer).cast(),
                dtype if dtype.is_variable() => return Ok(how),
                _ => fill.as_ptr().cast(),
            };
            let set = H5Pset_fill_value(how.get(), datatype.get(), value);
            check(set, "set a fill value")?;
        }
        Ok(how)
    }
}

/// Deflate's level for an array that is compressed.
fn deflate(meta: &ArrayMeta) -> Option<u32> {
    if meta.dtype.is_variable() || meta.shape.rank() == 0 {
        return None;
    }
    let mut level = None;
    for codec in meta.unit_codecs().to_json() {
        // Zarr v2 and HDF5 have other words for the same.
        let name = ["name", "id"]
            .iter()
            .find_map(|key| codec.get(key)?.as_str())
            .unwrap_or_default();
        if NO_COMPRESSION.contains(&name) {
            continue;
        }
        let own = match name {
            "gzip" | "zlib" | "numcodecs.zlib" | "numcodecs.gzip" => {
                let config = codec.get("configuration").unwrap_or(codec);
                config.get("level").and_then(Value::as_u64)
            }
            "hdf5.1" => codec["configuration"]["values"][0].as_u64(),
            _ => None,
        };
        let own = own.filter(|level| *level <= 9).map(|level| level as u32);
        level = own.or(level).or(Some(DEFLATE));
    }
    level
}

/// The chunks of an array; `None` if its cells lie one after another.
fn chunk(meta: &ArrayMeta, compressed: bool) -> Result<Option<Vec<u64>>> {
    if meta.shape.rank() == 0 || (meta.has_free_layout() && !compressed) {
        return Ok(None);
    }
    let (unit, _) = meta.unit()?;
    let sides = unit.iter().zip(meta.shape.iter());
    let chunk: Vec<u64> = sides
        .map(|(unit, side)| (*unit).min(*side).max(1))
        .collect();
    if !compressed && chunk[..] == meta.shape[..] {
        return Ok(None);
    }
    let cell = meta.dtype.cell_bytes().unwrap_or(16);
    let bytes = chunk.iter().fold(cell, |n, side| n.saturating_mul(*side));
    Ok(Some(match bytes < LARGEST_CHUNK {
        true => chunk,
        false => default_chunks(&meta.shape, cell, CHUNK).to_vec(),
    }))
}

/// Names dimensions, and attaches the scales that there are for them.
fn dimensions(
    file: &Id,
    objects: &[(String, Drawn)],
    arrays: &HashMap<&str, &ArrayMeta>,
    netcdf: bool,
    made: &mut Skeleton,
) -> Result<()> {
    let is_scale = |path: &str, meta: &ArrayMeta| {
        meta.shape.rank() == 1 && names(meta).next() == Some((0, leaf(path)))
    };
    for (path, meta) in arrays {
        if is_scale(path, meta) {
            scales::become_scale(&open_dataset(file.get(), path)?, leaf(path))?;
        }
    }
    // Scales that are no arrays, with their length.
    let mut extra: HashMap<String, u64> = HashMap::new();
    for (path, object) in objects {
        let Drawn::Array(meta) = object else { continue };
        for (dim, name) in names(meta) {
            let dataset = open_dataset(file.get(), path)?;
            scales::label(&dataset, dim, name)?;
            if is_scale(path, meta) {
                continue;
            }
            let side = meta.shape[dim];
            let found = above(path).map(|group| joined(group, name)).find(|scale| {
                let array = arrays.get(scale.as_str());
                array.is_some_and(|array| is_scale(scale, array) && array.shape[0] == side)
                    || extra.get(scale) == Some(&side)
            });
            let scale = match found {
                Some(scale) => scale,
                None if netcdf => {
                    let own = joined(parent(path), name);
                    let taken = extra.contains_key(&own) || objects.iter().any(|(p, _)| *p == own);
                    if taken || name.contains('/') {
                        made.lost.push(format!(
                            "/{path}: the dimension {name} has a name that something else has"
                        ));
                        continue;
                    }
                    without_coordinates(file, &own, side)?;
                    made.outside.push(format!("/{own}"));
                    extra.insert(own.clone(), side);
                    own
                }
                None => continue,
            };
            scales::attach(&dataset, &open_dataset(file.get(), &scale)?, dim)
                .map_err(|e| e.context(format!("/{path}")))?;
        }
    }
    Ok(())
}

/// A scale that says how long a dimension is, and nothing else.
fn without_coordinates(file: &Id, path: &str, side: u64) -> Result<()> {
    let datatype = types::predefined(*H5T_IEEE_F32BE)?;
    // SAFETY: the class is open as long as the library is.
    let how = unsafe { Id::new(H5Pcreate(*H5P_CLS_DATASET_CREATE), "make properties")? };
    let made = create(file, path, &datatype, &space(&[side])?, &how)?;
    // The words by which netCDF-4 knows such a dataset.
    let words = format!("This is a netCDF dimension but not a netCDF variable.{side:>10}");
    scales::become_scale(&made, &words)
}

/// The dimensions of an array that have names.
fn names(meta: &ArrayMeta) -> impl Iterator<Item = (usize, &str)> {
    let names = meta.dimension_names.iter().flatten().enumerate();
    names.filter_map(|(dim, name)| Some((dim, name.as_deref()?)))
}

fn leaf(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn joined(group: &str, name: &str) -> String {
    match group {
        "" => name.to_owned(),
        group => format!("{group}/{name}"),
    }
}

/// The groups above an object, the nearest first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(parent(path)), |group| {
        (!group.is_empty()).then(|| parent(group))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_above_an_object_end_at_the_root() {
        assert_eq!(above("a/b/c").collect::<Vec<_>>(), ["a/b", "a", ""]);
        assert_eq!(above("a").collect::<Vec<_>>(), [""]);
        assert_eq!(joined("", "x"), "x");
    }
}
