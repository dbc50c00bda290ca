//! Objects that libhdf5 holds for programs: those of the native connector, and what is known of them.

use std::ptr;

use crate::abi::Ptr;

/// A file, group, dataset, data type or attribute.
#[derive(Debug)]
pub(crate) struct Object {
    /// The native connector's.
    under: Ptr,
}

impl Object {
    /// Hands an object of the native connector's to libhdf5 as ours; null stays null.
    pub(crate) fn wrap(under: Ptr) -> Ptr {
        match under.is_null() {
            true => ptr::null_mut(),
            false => Box::into_raw(Box::new(Object { under })).cast(),
        }
    }

    /// # Safety
    /// `object` was wrapped, and not released.
    pub(crate) unsafe fn of<'a>(object: *const std::ffi::c_void) -> &'a Object {
        // SAFETY: the caller says so.
        unsafe { &*object.cast::<Object>() }
    }

    /// Lets go of an object; what is under it stays as it is.
    ///
    /// # Safety
    /// `object` was wrapped, and not released; nobody uses it any more.
    pub(crate) unsafe fn release(object: Ptr) {
        // SAFETY: the caller says so.
        drop(unsafe { Box::from_raw(object.cast::<Object>()) });
    }
}

/// What the native connector knows an object by; null stays null.
///
/// # Safety
/// `object` was wrapped and not released, or is null.
pub(crate) unsafe fn under(object: *const std::ffi::c_void) -> Ptr {
    match object.is_null() {
        true => ptr::null_mut(),
        // SAFETY: the caller says so.
        false => unsafe { Object::of(object) }.under,
    }
}
