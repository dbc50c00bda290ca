//! Attributes.

use std::ffi::{c_char, c_int, c_void};

use super::aim::{Aim, Last};
use super::closed;
use crate::abi::{AttributeClass, Herr, Hid, Location, Opaque, Optional, Ptr, Req, kind};
use crate::guard::{done, guarded, told};
use crate::object::{Object, file_of, touch, under};

/// Operations that change something (`H5VL_attr_specific_t`): two kinds of removal, and a new name.
const CHANGES: [c_int; 3] = [0, 1, 4];

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
        unsafe {
            let aim = aimed!(S, Aim::at(native, (object, at), Last::Follow, transfer));
            let (object, at) = aim.located();
            let made = call(
                under(object),
                at,
                name,
                datatype,
                space,
                creation,
                access,
                transfer,
                req,
            );
            touch(object, !made.is_null());
            Object::wrap(made, file_of(object))
        }
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
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        let aim = aimed!(S, Aim::at(native, (object, at), Last::Follow, transfer));
        let (object, at) = aim.located();
        let opened = (native.attribute.open)(under(object), at, name, access, transfer, req);
        Object::wrap(opened, file_of(object))
    })
}

hand_on!(read, attribute(memory: Hid, buffer: Ptr));

unsafe extern "C" fn write<const S: usize>(
    attribute: Ptr,
    memory: Hid,
    buffer: *const c_void,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        let status = (native.attribute.write)(under(attribute), memory, buffer, transfer, req);
        touch(attribute, status >= 0);
        status
    })
}

hand_on!(get, attribute(args: *mut Opaque));

unsafe extern "C" fn specific<const S: usize>(
    object: Ptr,
    at: *const Location,
    args: *mut Opaque,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        let aim = aimed!(S, Aim::at(native, (object, at), Last::Follow, transfer));
        let (object, at) = aim.located();
        let status = (native.attribute.specific)(under(object), at, args, transfer, req);
        touch(object, status >= 0 && CHANGES.contains(&(*args).op));
        status
    })
}

hand_on!(optional, attribute(args: *mut Optional));

close!(attribute, kind::ATTRIBUTE);
