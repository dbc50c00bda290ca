//! From objects of the native connector's to ours, and back.
//!
//! libhdf5 asks for this where the native connector makes objects itself, as it does while it walks
//! over links.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use crate::abi::{DONE, Herr, Hid, Ptr, WrapClass, kind};
use crate::native::Native;
use crate::object::{Object, file_of, under};
use crate::remote::RemoteFile;

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

thread_local! {
    /// The object that was last asked for what is under it.
    static ASKED: Cell<*const c_void> = const { Cell::new(ptr::null()) };
}

/// The object of ours that an identifier stands for; libhdf5 tells only what is under it.
pub(super) fn object_of(native: Native, id: Hid) -> Option<Ptr> {
    ASKED.set(ptr::null());
    // SAFETY: the identifier is open.
    let under = unsafe { (native.library.api.H5VLobject)(id) };
    let asked = ASKED.get().cast_mut();
    (!under.is_null() && !asked.is_null()).then_some(asked)
}

unsafe extern "C" fn get_object(object: *const c_void) -> Ptr {
    ASKED.set(object);
    // SAFETY: objects that libhdf5 holds were wrapped.
    unsafe { under(object) }
}

/// What new objects have to know of the one that they were found by: the file, if it is in a store. It
/// must be something in any case, or libhdf5 does not have them wrapped.
unsafe extern "C" fn get_wrap_ctx(object: *const c_void, context: *mut Ptr) -> Herr {
    // SAFETY: objects that libhdf5 holds were wrapped; the answer goes where the caller says.
    unsafe {
        *context = match file_of(object) {
            Some(file) => Arc::into_raw(file).cast_mut().cast(),
            None => nothing(),
        };
    }
    DONE
}

unsafe extern "C" fn wrap_object(object: Ptr, object_kind: c_int, context: Ptr) -> Ptr {
    if context.is_null() || context == nothing() {
        return Object::wrap(object, None);
    }
    let context = context.cast_const().cast::<RemoteFile>();
    // SAFETY: the context is that of `get_wrap_ctx`, which holds the file.
    let file = unsafe {
        Arc::increment_strong_count(context);
        Arc::from_raw(context)
    };
    match object_kind {
        // A file that is open has one of these for itself, until the last of its objects is closed.
        kind::FILE => {
            file.opened(object);
            Object::wrap_uncounted(object, Some(file))
        }
        _ => Object::wrap(object, Some(file)),
    }
}

unsafe extern "C" fn unwrap_object(object: Ptr) -> Ptr {
    // SAFETY: libhdf5 gives this object up for what is under it.
    unsafe {
        let native = under(object);
        if !native.is_null() {
            Object::of(object).forgotten();
            Object::release(object);
        }
        native
    }
}

unsafe extern "C" fn free_wrap_ctx(context: Ptr) -> Herr {
    if !context.is_null() && context != nothing() {
        // SAFETY: as in `wrap_object`; nobody uses the context any more.
        drop(unsafe { Arc::from_raw(context.cast_const().cast::<RemoteFile>()) });
    }
    DONE
}

fn nothing() -> Ptr {
    (&raw const NOTHING).cast_mut().cast()
}
