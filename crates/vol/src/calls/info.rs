//! The text behind the connector's name in `HDF5_VOL_CONNECTOR`, which libhdf5 keeps for us.

use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use libc::{free, strdup};

use crate::abi::{DONE, FAIL, Herr, InfoClass, Ptr};

pub(crate) const fn class() -> InfoClass {
    InfoClass {
        // It has no fixed size: it is copied by a function.
        size: 0,
        copy: Some(copy),
        cmp: Some(cmp),
        free: Some(release),
        to_str: Some(to_str),
        from_str: Some(from_str),
    }
}

/// # Safety
/// `text` ends with a zero, or is null.
unsafe fn copied(text: *const c_void) -> *mut c_char {
    match text.is_null() {
        true => ptr::null_mut(),
        // SAFETY: the caller says so.
        false => unsafe { strdup(text.cast()) },
    }
}

unsafe extern "C" fn copy(info: *const c_void) -> Ptr {
    // SAFETY: what libhdf5 holds for us is a text, or null.
    unsafe { copied(info) }.cast()
}

unsafe extern "C" fn cmp(order: *mut c_int, one: *const c_void, other: *const c_void) -> Herr {
    // SAFETY: as in `copy`.
    let text = |info: *const c_void| match info.is_null() {
        true => None,
        // SAFETY: as in `copy`.
        false => Some(unsafe { CStr::from_ptr(info.cast()) }),
    };
    let found = match text(one).cmp(&text(other)) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    };
    // SAFETY: the answer goes where the caller says.
    unsafe { *order = found };
    DONE
}

unsafe extern "C" fn release(info: Ptr) -> Herr {
    // SAFETY: as in `copy`; texts are made by `strdup`.
    unsafe { free(info) };
    DONE
}

unsafe extern "C" fn to_str(info: *const c_void, text: *mut *mut c_char) -> Herr {
    // SAFETY: as in `copy`; libhdf5 frees the copy.
    unsafe { *text = copied(info) };
    DONE
}

unsafe extern "C" fn from_str(text: *const c_char, info: *mut Ptr) -> Herr {
    // SAFETY: as in `copy`.
    let made = unsafe { copied(text.cast()) };
    if made.is_null() && !text.is_null() {
        return FAIL;
    }
    // SAFETY: the answer goes where the caller says.
    unsafe { *info = made.cast() };
    DONE
}
