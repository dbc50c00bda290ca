//! Fills a skeleton with cells: an HDF5 file like the one that it was made of.

use std::ffi::{c_char, c_uint, c_void};
use std::path::Path;

use hdf5_metno_sys::LOCK;
use hdf5_metno_sys::h5d::{
    H5D_CHUNKED, H5Dget_create_plist, H5Dget_space, H5Dget_type, H5Dopen2, H5Dwrite,
};
use hdf5_metno_sys::h5f::{H5F_ACC_RDWR, H5F_SCOPE_LOCAL, H5Fflush, H5Fopen};
use hdf5_metno_sys::h5p::{
    H5P_DEFAULT, H5Pget_chunk, H5Pget_filter2, H5Pget_layout, H5Pget_nfilters, H5Premove_filter,
    H5Pset_chunk, H5Pset_deflate,
};
use hdf5_metno_sys::h5s::{
    H5S_SCALAR, H5S_SELECT_SET, H5Screate, H5Screate_simple, H5Sselect_hyperslab,
};
use hdf5_metno_sys::h5t::{H5T_ORDER_LE, H5Tcopy, H5Tget_size, H5Tset_order};
use hyperslab_index::{Error, Result};

use crate::filters;
use crate::handle::{Id, c_name, check, failed, sides, start};
use crate::skeleton::{copy_structure, file_on_disk, open_image};

/// Deflate's level in place of a filter that cannot be written.
const DEFLATE: c_uint = 4;

/// Gives the dataset at a path, which has this shape, other chunks, or none.
pub type Rechunk<'a> = &'a dyn Fn(&str, &[u64]) -> Option<Vec<u64>>;

/// A file that is being filled.
#[derive(Debug)]
pub struct Output {
    file: Id,
}

/// How a dataset is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its chunks, if it has any.
    pub chunk: Option<Vec<u64>>,
    /// Bytes of an element.
    pub element: usize,
}

/// What a file was made with that is not as it was.
#[derive(Debug, Default)]
pub struct Changes {
    /// Datasets that have deflate in place of filters that cannot be written: paths and numbers.
    pub refiltered: Vec<(String, Vec<i32>)>,
    /// What could not be kept, in sentences.
    pub lost: Vec<String>,
}

impl Output {
    /// Makes a file at a path with all objects of a skeleton, to be filled there. `rechunk` may give
    /// the dataset at a path, which has this shape, other chunks.
    pub fn create(
        path: &Path,
        skeleton: &mut [u8],
        is_outside: &dyn Fn(&str) -> bool,
        rechunk: Rechunk<'_>,
    ) -> Result<(Output, Changes)> {
        let _lock = LOCK.lock();
        start()?;
        filters::register()?;
        let source = open_image(skeleton)?;
        let file = file_on_disk(&source, path)?;
        let mut changes = Changes::default();
        let mut change = |path: &str, how: &Id, shape: &[u64]| -> Result<()> {
            if let Some(chunk) = rechunk(path, shape) {
                // SAFETY: the list has as many sides as is said.
                let set = unsafe { H5Pset_chunk(how.get(), chunk.len() as i32, chunk.as_ptr()) };
                check(set, "set chunks")?;
            }
            let lost = unwritable(how)?;
            // SAFETY: the identifier is that of creation properties.
            unsafe {
                for id in &lost {
                    check(H5Premove_filter(how.get(), *id), "leave out a filter")?;
                }
                if !lost.is_empty() && H5Pget_layout(how.get()) == H5D_CHUNKED {
                    check(H5Pset_deflate(how.get(), DEFLATE), "compress")?;
                }
            }
            if !lost.is_empty() {
                changes.refiltered.push((path.to_owned(), lost));
            }
            Ok(())
        };
        let made = copy_structure(&source, &file, is_outside, &mut change)?;
        changes.lost = made.lost;
        Ok((Output { file }, changes))
    }

    /// Goes on with a file that was begun.
    pub fn open(path: &Path) -> Result<Output> {
        let _lock = LOCK.lock();
        start()?;
        filters::register()?;
        let name = c_name(&path.to_string_lossy())?;
        // SAFETY: the name is a C string.
        let file = unsafe { H5Fopen(name.as_ptr(), H5F_ACC_RDWR, H5P_DEFAULT) };
        Ok(Output {
            file: Id::new(file, "open the file")?,
        })
    }

    fn dataset(&self, path: &str) -> Result<Id> {
        let name = c_name(path)?;
        // SAFETY: the name is a C string.
        let id = unsafe { H5Dopen2(self.file.get(), name.as_ptr(), H5P_DEFAULT) };
        Id::new(id, &format!("open {path}"))
    }

    /// How a dataset is laid out.
    pub fn layout(&self, path: &str) -> Result<Layout> {
        let _lock = LOCK.lock();
        let dataset = self.dataset(path)?;
        // SAFETY: the identifier is that of a dataset.
        unsafe {
            let space = Id::new(H5Dget_space(dataset.get()), "tell a shape")?;
            let how = Id::new(H5Dget_create_plist(dataset.get()), "tell a layout")?;
            let datatype = Id::new(H5Dget_type(dataset.get()), "tell a type")?;
            let shape = sides(&space)?;
            let chunk = match H5Pget_layout(how.get()) {
                H5D_CHUNKED => {
                    let mut chunk = vec![0; shape.len()];
                    let rank = H5Pget_chunk(how.get(), chunk.len() as i32, chunk.as_mut_ptr());
                    check(rank, "tell chunks")?;
                    Some(chunk)
                }
                _ => None,
            };
            Ok(Layout {
                shape,
                chunk,
                element: H5Tget_size(datatype.get()),
            })
        }
    }

    /// Writes the cells of a box: elements as the file has them, with the least significant byte of
    /// numbers first.
    pub fn write(&self, path: &str, start: &[u64], shape: &[u64], cells: &[u8]) -> Result<()> {
        let _lock = LOCK.lock();
        let dataset = self.dataset(path)?;
        // SAFETY: both selections have the elements of the box, and so has the buffer, which is
        // looked at before.
        unsafe {
            let file_type = Id::new(H5Dget_type(dataset.get()), "tell a type")?;
            let elements: u64 = shape.iter().product();
            let bytes = elements.saturating_mul(H5Tget_size(file_type.get()) as u64);
            if bytes != cells.len() as u64 {
                return Err(Error::internal(format!(
                    "{} bytes were given for a box of {bytes}",
                    cells.len()
                )));
            }
            if elements == 0 {
                return Ok(());
            }
            let memory_type = Id::new(H5Tcopy(file_type.get()), "copy a type")?;
            // Types without an order refuse one; their bytes are the same either way.
            if H5Tset_order(memory_type.get(), H5T_ORDER_LE) < 0 {
                let _ = failed("set an order");
            }
            let space = Id::new(H5Dget_space(dataset.get()), "tell a shape")?;
            let memory = match shape.is_empty() {
                true => H5Screate(H5S_SCALAR),
                false => H5Screate_simple(shape.len() as i32, shape.as_ptr(), std::ptr::null()),
            };
            let memory = Id::new(memory, "make a dataspace")?;
            if !shape.is_empty() {
                let selected = H5Sselect_hyperslab(
                    space.get(),
                    H5S_SELECT_SET,
                    start.as_ptr(),
                    std::ptr::null(),
                    shape.as_ptr(),
                    std::ptr::null(),
                );
                check(selected, "select a box")?;
            }
            let written = H5Dwrite(
                dataset.get(),
                memory_type.get(),
                memory.get(),
                space.get(),
                H5P_DEFAULT,
                cells.as_ptr().cast::<c_void>(),
            );
            check(written, &format!("write cells of {path}"))
        }
    }

    /// Writes everything so far to the file.
    pub fn flush(&self) -> Result<()> {
        let _lock = LOCK.lock();
        // SAFETY: the file is open.
        check(
            unsafe { H5Fflush(self.file.get(), H5F_SCOPE_LOCAL) },
            "write the file",
        )
    }

    /// Writes everything, and closes the file.
    pub fn finish(self) -> Result<()> {
        self.flush()
    }
}

/// The filters of a dataset that cannot be written.
fn unwritable(how: &Id) -> Result<Vec<i32>> {
    // SAFETY: the identifier is that of creation properties.
    let count = unsafe { H5Pget_nfilters(how.get()) };
    let mut found = Vec::new();
    for n in 0..c_uint::try_from(count).unwrap_or(0) {
        let (mut flags, mut values, mut config) = (0, 0usize, 0);
        let mut name = [0 as c_char; 1];
        // SAFETY: no values and no name are asked for.
        let id = unsafe {
            H5Pget_filter2(
                how.get(),
                n,
                &mut flags,
                &mut values,
                std::ptr::null_mut(),
                name.len(),
                name.as_mut_ptr(),
                &mut config,
            )
        };
        check(id, "tell a filter")?;
        if !filters::can_encode(id) {
            found.push(id);
        }
    }
    Ok(found)
}
