//! Whether a libhdf5 loads the connector: for those who look for what is wrong.

use std::ffi::{CStr, CString, c_char, c_uint, c_void};
use std::mem;
use std::path::Path;

use hyperslab::{Error, Result};
use libc::{RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym};

use crate::abi::{Herr, Hid};
use crate::config::Config;

/// What a libhdf5 does with the connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probed {
    /// Its version.
    pub version: (u32, u32, u32),
    /// Whether it loads the connector.
    pub loads: bool,
}

/// An error unless these settings, as they stand behind the connector's name, are understood.
pub fn check_settings(settings: &str) -> Result<()> {
    Config::parse(settings).map(drop)
}

/// Loads a libhdf5 into this process, and has it load the connector from the folders that
/// `HDF5_PLUGIN_PATH` names. Not for a process that has to live on: a library may be damaged.
pub fn probe(library: &Path) -> Result<Probed> {
    let name = CString::new(library.as_os_str().as_encoded_bytes())
        .map_err(|_| Error::invalid("the name of the library has a zero in it"))?;
    // SAFETY: the name ends with a zero; what the library does when it is loaded is its own business.
    let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW | RTLD_LOCAL) };
    if handle.is_null() {
        return Err(Error::unavailable(format!(
            "{} cannot be loaded: {}",
            library.display(),
            last_error()
        )));
    }
    let symbol = |name: &CStr| {
        // SAFETY: the handle is open.
        let found = unsafe { dlsym(handle, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let is_none = || Error::data(format!("{} is no libhdf5", library.display()));
    type Start = unsafe extern "C" fn() -> Herr;
    type Version = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint) -> Herr;
    type Quiet = unsafe extern "C" fn(Hid, *const c_void, *const c_void) -> Herr;
    type Register = unsafe extern "C" fn(*const c_char, Hid) -> Hid;
    let start = symbol(c"H5open").ok_or_else(is_none)?;
    let version = symbol(c"H5get_libversion").ok_or_else(is_none)?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: functions of these names have these types in every version.
    unsafe {
        mem::transmute::<*mut c_void, Start>(start)();
        let version = mem::transmute::<*mut c_void, Version>(version);
        version(&mut major, &mut minor, &mut patch);
    }
    if let Some(quiet) = symbol(c"H5Eset_auto2") {
        // SAFETY: as above; without a function, errors are not printed.
        unsafe {
            let quiet = mem::transmute::<*mut c_void, Quiet>(quiet);
            quiet(0, std::ptr::null(), std::ptr::null());
        }
    }
    let loads = symbol(c"H5VLregister_connector_by_name").is_some_and(|register| {
        // SAFETY: as above; zero means default properties.
        let id = unsafe {
            let register = mem::transmute::<*mut c_void, Register>(register);
            register(c"hyperslab".as_ptr(), 0)
        };
        id > 0
    });
    Ok(Probed {
        version: (major, minor, patch),
        loads,
    })
}

/// What the loader says is wrong.
fn last_error() -> String {
    // SAFETY: the text is valid until the next call of this thread.
    unsafe {
        let text = dlerror();
        match text.is_null() {
            true => "the loader does not say why".to_owned(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    }
}
