//! Links.

use crate::abi::{
    FAIL, Herr, Hid, LinkClass, LinkCreate, LinkTransfer, Location, Opaque, Optional, Ptr, Req,
};
use crate::guard::guarded;
use crate::object::under;

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
            let object = under(object);
            if (*args).op != LinkCreate::HARD {
                return call(args, object, at, creation, access, transfer, req);
            }
            let ours = (*args).hard.object;
            (*args).hard.object = under(ours);
            let status = call(args, object, at, creation, access, transfer, req);
            (*args).hard.object = ours;
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
            let (source, destination) = (under(source), under(destination));
            call(
                source,
                from,
                destination,
                to,
                creation,
                access,
                transfer,
                req,
            )
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
            let (source, destination) = (under(source), under(destination));
            call(
                source,
                from,
                destination,
                to,
                creation,
                access,
                transfer,
                req,
            )
        }
    })
}

unsafe extern "C" fn get<const S: usize>(
    object: Ptr,
    at: *const Location,
    args: *mut Opaque,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe { (native.link.get)(under(object), at, args, transfer, req) })
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
        (native.link.specific)(under(object), at, args, transfer, req)
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
