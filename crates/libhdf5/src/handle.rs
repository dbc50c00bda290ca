//! Identifiers that are closed when they go out of scope, and errors with the library's words.

use std::ffi::{CStr, CString, c_uint, c_void};
use std::sync::Once;

use hdf5_metno_sys::h5::{H5open, herr_t, hsize_t};
use hdf5_metno_sys::h5d::H5Dopen2;
use hdf5_metno_sys::h5e::{
    H5E_DEFAULT, H5E_WALK_UPWARD, H5E_error2_t, H5Eclear2, H5Eset_auto2, H5Ewalk2,
};
use hdf5_metno_sys::h5i::{H5Idec_ref, hid_t};
use hdf5_metno_sys::h5o::{H5O_INFO_ALL, H5O_info2_t, H5Oget_info3};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5pl::H5PLset_loading_state;
use hdf5_metno_sys::h5s::{
    H5S_SCALAR, H5Screate, H5Screate_simple, H5Sget_simple_extent_dims, H5Sget_simple_extent_ndims,
    H5Sget_simple_extent_npoints,
};
use hyperslab_index::{Error, Result};

/// An identifier of libhdf5's.
#[derive(Debug)]
pub(crate) struct Id(hid_t);

impl Id {
    /// Takes over an identifier that a call returned; `what` is what it should have done.
    pub(crate) fn new(id: hid_t, what: &str) -> Result<Id> {
        match id >= 0 {
            true => Ok(Id(id)),
            false => Err(failed(what)),
        }
    }

    pub(crate) fn get(&self) -> hid_t {
        self.0
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: the identifier is this one's to release.
        unsafe { H5Idec_ref(self.0) };
    }
}

/// Starts the library once, and keeps it from printing its errors.
pub(crate) fn start() -> Result<()> {
    static STARTED: Once = Once::new();
    STARTED.call_once(open_without_connectors);
    // SAFETY: may be called any number of times.
    check(unsafe { H5open() }, "start")?;
    // Plug-ins that the environment names are linked to another libhdf5, and would fail in ours.
    // SAFETY: the call takes a number, whatever its declaration says, and this is zero.
    let done = unsafe { H5PLset_loading_state(std::ptr::null_mut()) };
    check(done, "do without plug-ins")?;
    // SAFETY: no function is set, so nothing is called.
    check(
        unsafe { H5Eset_auto2(H5E_DEFAULT, None, std::ptr::null_mut()) },
        "be quiet",
    )
}

/// Starts the library with its own connector, whatever the environment names: a program that writes
/// through our connector may have us write a file too, and ours is no connector for this library.
fn open_without_connectors() {
    const NAME: &str = "HDF5_VOL_CONNECTOR";
    let named = std::env::var_os(NAME);
    // SAFETY: a variable that is there gets another value, and its old one again: that replaces one
    // pointer, which whoever reads it at the same time sees either way.
    unsafe {
        if named.is_some() {
            std::env::set_var(NAME, "native");
        }
        H5open();
        if let Some(named) = named {
            std::env::set_var(NAME, named);
        }
    }
}

/// Turns a status into a result.
pub(crate) fn check(status: herr_t, what: &str) -> Result<()> {
    match status >= 0 {
        true => Ok(()),
        false => Err(failed(what)),
    }
}

/// The error that the library has just noted.
pub(crate) fn failed(what: &str) -> Error {
    let mut words = String::new();
    let out: *mut String = &mut words;
    // SAFETY: `note` is given a pointer to `words`, which lives longer than the call.
    unsafe {
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, Some(note), out.cast());
        H5Eclear2(H5E_DEFAULT);
    }
    match words.is_empty() {
        true => Error::data(format!("libhdf5 cannot {what}")),
        false => Error::data(format!("libhdf5 cannot {what}: {words}")),
    }
}

/// Keeps the description of the innermost error.
extern "C" fn note(n: c_uint, error: *const H5E_error2_t, out: *mut c_void) -> herr_t {
    if n == 0 && !error.is_null() && !out.is_null() {
        // SAFETY: the library hands out a valid error, and `out` is the string of `failed`.
        unsafe {
            let desc = (*error).desc;
            if !desc.is_null() {
                *out.cast::<String>() = CStr::from_ptr(desc).to_string_lossy().into_owned();
            }
        }
    }
    0
}

/// A name as C has it.
pub(crate) fn c_name(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::data(format!("the name {name:?} has a zero byte")))
}

/// The sides of a dataspace; `None` for one without a shape.
pub(crate) fn sides(space: &Id) -> Result<Vec<hsize_t>> {
    // SAFETY: the identifier is open.
    let rank = unsafe { H5Sget_simple_extent_ndims(space.get()) };
    let rank = usize::try_from(rank).map_err(|_| failed("tell the rank of a dataspace"))?;
    let mut dims = vec![0; rank];
    // SAFETY: `dims` has room for as many sides as the space has dimensions.
    let got =
        unsafe { H5Sget_simple_extent_dims(space.get(), dims.as_mut_ptr(), std::ptr::null_mut()) };
    match got >= 0 {
        true => Ok(dims),
        false => Err(failed("tell the shape of a dataspace")),
    }
}

/// A dataspace of these sides.
pub(crate) fn space(dims: &[hsize_t]) -> Result<Id> {
    // SAFETY: the list has as many sides as is said.
    let made = unsafe {
        match dims.is_empty() {
            true => H5Screate(H5S_SCALAR),
            false => H5Screate_simple(dims.len() as i32, dims.as_ptr(), std::ptr::null()),
        }
    };
    Id::new(made, "make a dataspace")
}

/// Opens the dataset at a path of a file.
pub(crate) fn open_dataset(file: hid_t, path: &str) -> Result<Id> {
    let name = c_name(path)?;
    // SAFETY: the name is a C string.
    let id = unsafe { H5Dopen2(file, name.as_ptr(), H5P_DEFAULT) };
    Id::new(id, &format!("open {path}"))
}

/// Elements of a dataspace.
pub(crate) fn elements(space: &Id) -> Result<u64> {
    // SAFETY: the identifier is open.
    let count = unsafe { H5Sget_simple_extent_npoints(space.get()) };
    u64::try_from(count).map_err(|_| failed("count the elements of a dataspace"))
}

/// What the library says of an object.
pub(crate) fn info(object: &Id) -> Result<H5O_info2_t> {
    // SAFETY: numbers and a token, for all of which zero is a value; then the library fills them in.
    unsafe {
        let mut info: H5O_info2_t = std::mem::zeroed();
        check(
            H5Oget_info3(object.get(), &mut info, H5O_INFO_ALL),
            "describe an object",
        )?;
        Ok(info)
    }
}
