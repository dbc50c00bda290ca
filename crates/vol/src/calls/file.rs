//! Files.

use std::ffi::{c_char, c_uint};

use super::closed;
use crate::abi::{FileClass, FileSpecific, Herr, Hid, Opaque, Optional, Ptr, Req};
use crate::guard::guarded;
use crate::object::{Object, under};

pub(crate) const fn class<const S: usize>() -> FileClass {
    FileClass {
        create: create::<S>,
        open: open::<S>,
        get: get::<S>,
        specific: specific::<S>,
        optional: optional::<S>,
        close: close::<S>,
    }
}

unsafe extern "C" fn create<const S: usize>(
    name: *const c_char,
    flags: c_uint,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        let call = native.file.create;
        // SAFETY: the arguments are the caller's.
        let made = unsafe { call(name, flags, creation, access, transfer, req) };
        Object::wrap(made)
    })
}

unsafe extern "C" fn open<const S: usize>(
    name: *const c_char,
    flags: c_uint,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        let call = native.file.open;
        // SAFETY: the arguments are the caller's.
        let opened = unsafe { call(name, flags, access, transfer, req) };
        Object::wrap(opened)
    })
}

unsafe extern "C" fn get<const S: usize>(
    file: Ptr,
    args: *mut Opaque,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: the arguments are the caller's, with the native object in place of ours.
    guarded::<S, _>(|native| unsafe { (native.file.get)(under(file), args, transfer, req) })
}

unsafe extern "C" fn specific<const S: usize>(
    file: Ptr,
    args: *mut FileSpecific,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call = native.file.specific;
        // SAFETY: as in `get`; which of the arguments are there, the operation says. The second file of
        // a comparison is one of ours, and so must be one that is opened again.
        unsafe {
            let file = under(file);
            match (*args).op {
                FileSpecific::IS_EQUAL => {
                    let ours = (*args).args.equal.other;
                    (*args).args.equal.other = under(ours);
                    let status = call(file, args, transfer, req);
                    (*args).args.equal.other = ours;
                    status
                }
                FileSpecific::REOPEN => {
                    let status = call(file, args, transfer, req);
                    let opened = (*args).args.reopen;
                    if status >= 0 && !opened.is_null() {
                        *opened = Object::wrap(*opened);
                    }
                    status
                }
                _ => call(file, args, transfer, req),
            }
        }
    })
}

unsafe extern "C" fn optional<const S: usize>(
    file: Ptr,
    args: *mut Optional,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `get`.
    guarded::<S, _>(|native| unsafe { (native.file.optional)(under(file), args, transfer, req) })
}

unsafe extern "C" fn close<const S: usize>(file: Ptr, transfer: Hid, req: Req) -> Herr {
    // SAFETY: as in `get`; nobody uses a closed object.
    guarded::<S, _>(|native| unsafe {
        let status = (native.file.close)(under(file), transfer, req);
        closed(file, status)
    })
}
