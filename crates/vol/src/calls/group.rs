//! Groups.

use std::ffi::c_char;

use super::aim::{Aim, Last};
use super::closed;
use crate::abi::{
    GroupClass, GroupSpecific, Herr, Hid, Location, Opaque, Optional, Ptr, Req, kind,
};
use crate::guard::{done, guarded, told};
use crate::object::{Object, file_of, touch, under};

pub(crate) const fn class<const S: usize>() -> GroupClass {
    GroupClass {
        create: create::<S>,
        open: open::<S>,
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
    link: Hid,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        let call = native.group.create;
        // SAFETY: the arguments are the caller's, with the native object in place of ours.
        unsafe {
            let said = (object, at, name, access);
            let aim = aimed!(S, Aim::by_name(native, said, Last::Stay, transfer));
            let (object, at, name) = aim.named();
            let inside = under(object);
            let made = call(inside, at, name, link, creation, access, transfer, req);
            touch(object, !made.is_null());
            Object::wrap(made, file_of(object))
        }
    })
}

open!(group);

hand_on!(get, group(args: *mut Opaque));

unsafe extern "C" fn specific<const S: usize>(
    group: Ptr,
    args: *mut GroupSpecific,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call = native.group.specific;
        // SAFETY: as in `create`; which of the arguments are there, the operation says. A file that is
        // mounted is one of ours.
        unsafe {
            let group = under(group);
            if (*args).op != GroupSpecific::MOUNT {
                return call(group, args, transfer, req);
            }
            let ours = (*args).mount.child;
            (*args).mount.child = under(ours);
            let status = call(group, args, transfer, req);
            (*args).mount.child = ours;
            status
        }
    })
}

hand_on!(optional, group(args: *mut Optional));

close!(group, kind::GROUP);
