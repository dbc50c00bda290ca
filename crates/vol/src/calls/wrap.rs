//! From objects of the native connector's to ours, and back.
//!
//! libhdf5 asks for this where the native connector makes objects itself, as it does while it walks
//! over links.

use std::ffi::{c_int, c_void};

use crate::abi::{DONE, Herr, Ptr, WrapClass};
use crate::object::{Object, under};

static NOTHING: u8 = 0;

pub(crate) const fn class() -> WrapClass {
    WrapClass {
        get_object: Some(get_object),
        get_wrap_ctx: Some(get_wrap_ctx),
        wrap_object: Some(wrap_object),
        unwrap_object: Some(unwrap_object),
        free_wrap_ctx: Some(free_wrap_ctx),
    }
}

unsafe extern "C" fn get_object(object: *const c_void) -> Ptr {
    // SAFETY: objects that libhdf5 holds were wrapped.
    unsafe { under(object) }
}

/// What new objects have to know of the one that they were found by: nothing in a local file. It must
/// be something all the same, or libhdf5 does not have them wrapped.
unsafe extern "C" fn get_wrap_ctx(_object: *const c_void, context: *mut Ptr) -> Herr {
    // SAFETY: the answer goes where the caller says.
    unsafe { *context = (&raw const NOTHING).cast_mut().cast() };
    DONE
}

unsafe extern "C" fn wrap_object(object: Ptr, _kind: c_int, _context: Ptr) -> Ptr {
    Object::wrap(object)
}

unsafe extern "C" fn unwrap_object(object: Ptr) -> Ptr {
    // SAFETY: libhdf5 gives this object up for what is under it.
    unsafe {
        let native = under(object);
        if !native.is_null() {
            Object::release(object);
        }
        native
    }
}

unsafe extern "C" fn free_wrap_ctx(_context: Ptr) -> Herr {
    DONE
}
