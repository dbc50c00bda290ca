//! The border to C: no panic crosses it, and a call that cannot be made fails.

use std::ffi::{CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::abi::{Class, FAIL, Ptr};
use crate::library::library;

/// What a call returns when it fails.
pub(crate) trait Failed {
    const FAILED: Self;
}

impl Failed for c_int {
    const FAILED: c_int = FAIL;
}

impl Failed for Ptr {
    const FAILED: Ptr = ptr::null_mut();
}

/// Makes a call with the native connector of the library in slot `S`.
pub(crate) fn guarded<const S: usize, R: Failed>(call: impl FnOnce(&'static Class) -> R) -> R {
    let Some(native) = library::<S>().and_then(|library| library.native()) else {
        return R::FAILED;
    };
    match catch_unwind(AssertUnwindSafe(|| call(native))) {
        Ok(done) => done,
        Err(_) => {
            fail::<S>("hyperslab met a fault of its own; please report it");
            R::FAILED
        }
    }
}

/// Leaves an error for the program.
pub(crate) fn fail<const S: usize>(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    if let Some(library) = library::<S>() {
        library.push(&text);
    }
}
