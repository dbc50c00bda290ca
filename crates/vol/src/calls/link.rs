//! Links.

use std::ffi::c_int;
use std::ptr;

use super::aim::{Aim, Last};
use crate::abi::{
    FAIL, Herr, Hid, LinkClass, LinkCreate, LinkTransfer, Location, Opaque, Optional, Ptr, Req,
};
use crate::guard::{guarded, told};
use crate::object::{touch, under};

/// The operation that changes something (`H5VL_link_specific_t`): removal.
const REMOVE: c_int = 0;

pub(crate) const fn class<const S: usize>() -> LinkClass {
    LinkClass {
        create: create::<S>,
        copy: copy::<S>,
        rename: rename::<S>,
        get: get::<S>,
        specific: specific::<S>,
        optional: Some(optional::<S>),
    }
}

unsafe extern "C" fn create<const S: usize>(
    args: *mut LinkCreate,
    object: Ptr,
    at: *const Location,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call = native.link.create;
        // SAFETY: the arguments are the caller's, with native objects in place of ours. What a hard link
        // leads to is one of ours.
        unsafe {
            // Either of the two objects of a hard link may be left out.
            let (inside, is_hard) = (object, (*args).op == LinkCreate::HARD);
            let target = if is_hard {
                (*args).hard.object
            } else {
                ptr::null_mut()
            };
            if is_hard {
                (*args).hard.object = under(target);
            }
            let status = call(args, under(inside), at, creation, access, transfer, req);
            if is_hard {
                (*args).hard.object = target;
            }
            touch(inside, status >= 0);
            touch(target, status >= 0);
            status
        }
    })
}

unsafe extern "C" fn copy<const S: usize>(
    source: Ptr,
    from: *const Location,
    destination: Ptr,
    to: *const Location,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call: LinkTransfer = native.link.copy;
        // SAFETY: as in `create`; one of the two objects may be null, for the same file.
        unsafe {
            let (one, other) = (under(source), under(destination));
            let status = call(one, from, other, to, creation, access, transfer, req);
            touch(source, status >= 0);
            touch(destination, status >= 0);
            status
        }
    })
}

unsafe extern "C" fn rename<const S: usize>(
    source: Ptr,
    from: *const Location,
    destination: Ptr,
    to: *const Location,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call: LinkTransfer = native.link.rename;
        // SAFETY: as in `copy`.
        unsafe {
            let (one, other) = (under(source), under(destination));
            let status = call(one, from, other, to, creation, access, transfer, req);
            touch(source, status >= 0);
            touch(destination, status >= 0);
            status
        }
    })
}

hand_on_at!(get, link, Last::Stay, *mut Opaque);

unsafe extern "C" fn specific<const S: usize>(
    object: Ptr,
    at: *const Location,
    args: *mut Opaque,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        let aim = aimed!(S, Aim::at(native, (object, at), Last::Stay, transfer));
        let (object, at) = aim.located();
        let status = (native.link.specific)(under(object), at, args, transfer, req);
        touch(object, status >= 0 && (*args).op == REMOVE);
        status
    })
}

unsafe extern "C" fn optional<const S: usize>(
    object: Ptr,
    at: *const Location,
    args: *mut Optional,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| match native.link.optional {
        // SAFETY: as in `create`.
        Some(call) => unsafe { call(under(object), at, args, transfer, req) },
        None => FAIL,
    })
}
