//! What the connector can do, and which one is at the end.

use std::ffi::{c_int, c_void};

use crate::abi::{Class, DONE, Herr, IntrospectClass, Ptr};
use crate::class::{CAPABILITIES, CLASSES};
use crate::guard::guarded;
use crate::object::under;

/// The connector that is asked itself, as opposed to the one at the end.
const CURRENT: c_int = 0;

pub(crate) const fn class<const S: usize>() -> IntrospectClass {
    IntrospectClass {
        get_conn_cls: get_conn_cls::<S>,
        get_cap_flags,
        opt_query: opt_query::<S>,
    }
}

/// At the end is the native connector, always: also the hierarchy of a remote file is one of its
/// files. Programs that use the interface of HDF5 1.10, as h5py does, are refused otherwise.
unsafe extern "C" fn get_conn_cls<const S: usize>(
    object: Ptr,
    level: c_int,
    class: *mut *const Class,
) -> Herr {
    guarded::<S, _>(|native| {
        if level == CURRENT {
            // SAFETY: the answer goes where the caller says.
            unsafe { *class = &raw const CLASSES[S] };
            return DONE;
        }
        // SAFETY: the arguments are the caller's, with the native object in place of ours.
        unsafe { (native.introspect.get_conn_cls)(under(object), level, class) }
    })
}

unsafe extern "C" fn get_cap_flags(_info: *const c_void, flags: *mut u64) -> Herr {
    // SAFETY: the answer goes where the caller says.
    unsafe { *flags = CAPABILITIES };
    DONE
}

unsafe extern "C" fn opt_query<const S: usize>(
    object: Ptr,
    class: c_int,
    operation: c_int,
    flags: *mut u64,
) -> Herr {
    // SAFETY: as in `get_conn_cls`.
    guarded::<S, _>(|native| unsafe {
        (native.introspect.opt_query)(under(object), class, operation, flags)
    })
}
