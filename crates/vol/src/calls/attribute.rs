//! Attributes.

use std::ffi::{c_char, c_void};

use super::closed;
use crate::abi::{AttributeClass, Herr, Hid, Location, Opaque, Optional, Ptr, Req};
use crate::guard::guarded;
use crate::object::{Object, under};

pub(crate) const fn class<const S: usize>() -> AttributeClass {
    AttributeClass {
        create: create::<S>,
        open: open::<S>,
        read: read::<S>,
        write: write::<S>,
        get: get::<S>,
        specific: specific::<S>,
        optional: optional::<S>,
        close: close::<S>,
    }
}

#[allow(clippy::too_many_arguments)] // as the interface has it
unsafe extern "C" fn create<const S: usize>(
    object: Ptr,
    at: *const Location,
    name: *const c_char,
    datatype: Hid,
    space: Hid,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        let call = native.attribute.create;
        // SAFETY: the arguments are the caller's, with the native object in place of ours.
        let made = unsafe {
            let object = under(object);
            call(
                object, at, name, datatype, space, creation, access, transfer, req,
            )
        };
        Object::wrap(made)
    })
}

unsafe extern "C" fn open<const S: usize>(
    object: Ptr,
    at: *const Location,
    name: *const c_char,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        let call = native.attribute.open;
        // SAFETY: as in `create`.
        let opened = unsafe { call(under(object), at, name, access, transfer, req) };
        Object::wrap(opened)
    })
}

unsafe extern "C" fn read<const S: usize>(
    attribute: Ptr,
    memory: Hid,
    buffer: Ptr,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        (native.attribute.read)(under(attribute), memory, buffer, transfer, req)
    })
}

unsafe extern "C" fn write<const S: usize>(
    attribute: Ptr,
    memory: Hid,
    buffer: *const c_void,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        (native.attribute.write)(under(attribute), memory, buffer, transfer, req)
    })
}

unsafe extern "C" fn get<const S: usize>(
    object: Ptr,
    args: *mut Opaque,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe { (native.attribute.get)(under(object), args, transfer, req) })
}

unsafe extern "C" fn specific<const S: usize>(
    object: Ptr,
    at: *const Location,
    args: *mut Opaque,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        (native.attribute.specific)(under(object), at, args, transfer, req)
    })
}

unsafe extern "C" fn optional<const S: usize>(
    object: Ptr,
    args: *mut Optional,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        (native.attribute.optional)(under(object), args, transfer, req)
    })
}

unsafe extern "C" fn close<const S: usize>(attribute: Ptr, transfer: Hid, req: Req) -> Herr {
    // SAFETY: as in `create`; nobody uses a closed object.
    guarded::<S, _>(|native| unsafe {
        let status = (native.attribute.close)(under(attribute), transfer, req);
        closed(attribute, status)
    })
}
