//! Data types that have a name in a file.

use std::ffi::c_char;

use super::aim::{Aim, Last};
use super::closed;
use crate::abi::{DatatypeClass, FAIL, Herr, Hid, Location, Opaque, Optional, Ptr, Req, kind};
use crate::guard::{done, guarded, told};
use crate::object::{Object, file_of, touch, under};

pub(crate) const fn class<const S: usize>() -> DatatypeClass {
    DatatypeClass {
        commit: commit::<S>,
        open: open::<S>,
        get: get::<S>,
        specific: specific::<S>,
        optional: Some(optional::<S>),
        close: close::<S>,
    }
}

#[allow(clippy::too_many_arguments)] // as the interface has it
unsafe extern "C" fn commit<const S: usize>(
    object: Ptr,
    at: *const Location,
    name: *const c_char,
    datatype: Hid,
    link: Hid,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        let call = native.datatype.commit;
        // SAFETY: the arguments are the caller's, with the native object in place of ours.
        let made = unsafe {
            let object = under(object);
            call(
                object, at, name, datatype, link, creation, access, transfer, req,
            )
        };
        // SAFETY: as above.
        unsafe {
            touch(object, !made.is_null());
            Object::wrap(made, file_of(object))
        }
    })
}

open!(datatype);

hand_on!(get, datatype(args: *mut Opaque));

hand_on!(specific, datatype(args: *mut Opaque));

unsafe extern "C" fn optional<const S: usize>(
    datatype: Ptr,
    args: *mut Optional,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| match native.datatype.optional {
        // SAFETY: as in `commit`.
        Some(call) => unsafe { call(under(datatype), args, transfer, req) },
        None => FAIL,
    })
}

close!(datatype, kind::DATATYPE);
