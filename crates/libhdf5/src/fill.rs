//! Fills a skeleton with cells: an HDF5 file like the one that it was made of.

use std::ffi::{CString, c_char, c_uint, c_void};
use std::path::Path;

use hdf5_metno_sys::LOCK;
use hdf5_metno_sys::h5d::{H5D_CHUNKED, H5Dget_create_plist, H5Dget_space, H5Dget_type, H5Dwrite};
use hdf5_metno_sys::h5f::{H5F_ACC_RDWR, H5F_SCOPE_LOCAL, H5Fflush, H5Fopen};
use hdf5_metno_sys::h5p::{
    H5P_DEFAULT, H5Pget_chunk, H5Pget_filter2, H5Pget_layout, H5Pget_nfilters, H5Premove_filter,
    H5Pset_chunk, H5Pset_deflate,
};
use hdf5_metno_sys::h5s::{H5S_SELECT_SET, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::{
    H5T_ORDER_LE, H5Tcopy, H5Tget_size, H5Tis_variable_str, H5Tset_order, hvl_t,
};
use hyperslab_index::{Error, Result};

use crate::files::{file_on_disk, open_image};
use crate::filters;
use crate::handle::{Id, c_name, check, failed, open_dataset, sides, space, start};
use crate::skeleton::copy_structure;

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

    /// How a dataset is laid out.
    pub fn layout(&self, path: &str) -> Result<Layout> {
        let _lock = LOCK.lock();
        let dataset = open_dataset(self.file.get(), path)?;
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
        let dataset = open_dataset(self.file.get(), path)?;
        // SAFETY: the identifier is that of a dataset.
        let memory_type = unsafe {
            let file_type = Id::new(H5Dget_type(dataset.get()), "tell a type")?;
            let memory_type = Id::new(H5Tcopy(file_type.get()), "copy a type")?;
            // Types without an order refuse one; their bytes are the same either way.
            if H5Tset_order(memory_type.get(), H5T_ORDER_LE) < 0 {
                let _ = failed("set an order");
            }
            memory_type
        };
        // SAFETY: the identifier is that of a type.
        let element = unsafe { H5Tget_size(memory_type.get()) } as u64;
        let elements: u64 = shape.iter().product();
        if elements.saturating_mul(element) != cells.len() as u64 {
            return Err(Error::internal(format!(
                "{} bytes were given for {elements} elements of {element}",
                cells.len()
            )));
        }
        // SAFETY: the buffer has all elements of the box.
        unsafe {
            put(
                &dataset,
                &memory_type,
                (start, shape),
                cells.as_ptr().cast(),
            )
        }
        .map_err(|e| e.context(path))
    }

    /// Writes the cells of a box of texts or of sequences of bytes.
    pub fn write_variable(
        &self,
        path: &str,
        start: &[u64],
        shape: &[u64],
        cells: &[impl AsRef<[u8]>],
    ) -> Result<()> {
        let _lock = LOCK.lock();
        let dataset = open_dataset(self.file.get(), path)?;
        if shape.iter().product::<u64>() != cells.len() as u64 {
            return Err(Error::internal(format!(
                "{} cells were given for a box of {shape:?}",
                cells.len()
            )));
        }
        // SAFETY: the identifier is that of a dataset.
        let datatype = unsafe { Id::new(H5Dget_type(dataset.get()), "tell a type")? };
        // SAFETY: the identifier is that of a type.
        let is_text = unsafe { H5Tis_variable_str(datatype.get()) } > 0;
        let written = if is_text {
            let text = |cell: &[u8]| {
                CString::new(cell).map_err(|_| {
                    Error::invalid("a text has a zero byte, where it would end in HDF5")
                })
            };
            let texts: Result<Vec<CString>> = cells.iter().map(|c| text(c.as_ref())).collect();
            let texts = texts.map_err(|e| e.context(path))?;
            let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
            // SAFETY: as many C strings as the box has cells, which live longer than the call.
            unsafe {
                put(
                    &dataset,
                    &datatype,
                    (start, shape),
                    pointers.as_ptr().cast(),
                )
            }
        } else {
            let sequence = |cell: &[u8]| hvl_t {
                len: cell.len(),
                p: cell.as_ptr().cast_mut().cast::<c_void>(),
            };
            let sequences: Vec<hvl_t> = cells.iter().map(|c| sequence(c.as_ref())).collect();
            // SAFETY: as many sequences as the box has cells; the library only reads them.
            unsafe {
                put(
                    &dataset,
                    &datatype,
                    (start, shape),
                    sequences.as_ptr().cast(),
                )
            }
        };
        written.map_err(|e| e.context(path))
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

/// Writes a box of a dataset.
///
/// # Safety
/// `cells` leads to as many elements of the type as the box has.
unsafe fn put(
    dataset: &Id,
    memory_type: &Id,
    (start, shape): (&[u64], &[u64]),
    cells: *const c_void,
) -> Result<()> {
    if shape.contains(&0) {
        return Ok(());
    }
    let memory = space(shape)?;
    // SAFETY: both selections have the elements of the box, and so has the buffer.
    unsafe {
        let space = Id::new(H5Dget_space(dataset.get()), "tell a shape")?;
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
            cells,
        );
        check(written, "write cells")
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
