//! The border to C: no panic crosses it, and a call that cannot be made fails with a sentence.

use std::ffi::{CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use hyperslab::{Error, Result};

use crate::abi::{DONE, FAIL, Herr, Ptr};
use crate::library::library;
use crate::native::Native;

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
pub(crate) fn guarded<const S: usize, R: Failed>(call: impl FnOnce(Native) -> R) -> R {
    let Some(native) = native::<S>() else {
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

fn native<const S: usize>() -> Option<Native> {
    let library = library::<S>()?;
    let class = library.native()?;
    Some(Native { library, class })
}

/// What a call returns, with the reason left for the program if it failed.
pub(crate) fn told<const S: usize, R: Failed>(result: Result<R>) -> R {
    match result {
        Ok(done) => done,
        Err(e) => {
            let text = sentence(&e);
            // Where the native connector failed, it has left its own reason.
            if !text.is_empty() {
                fail::<S>(&text);
            }
            R::FAILED
        }
    }
}

/// Success, or the reason left for the program.
pub(crate) fn done<const S: usize>(result: Result<()>) -> Herr {
    told::<S, Herr>(result.map(|()| DONE))
}

/// An error as one sentence, with what to do.
fn sentence(e: &Error) -> String {
    match e.hint() {
        Some(hint) if !e.message().is_empty() => format!("{} ({hint})", e.message()),
        _ => e.message().to_string(),
    }
}

/// Leaves an error for the program.
pub(crate) fn fail<const S: usize>(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    if let Some(library) = library::<S>() {
        library.push(&text);
    }
}
