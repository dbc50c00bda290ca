//! Objects of any class.

use std::ffi::{CStr, c_char, c_int};

use crate::abi::{Herr, Hid, Location, ObjectClass, Opaque, Optional, Ptr, Req};
use crate::guard::{done, guarded};
use crate::native::Below;
use crate::object::{Object, file_of, touch, under};
use crate::remote::{Side, copy_cells};

pub(crate) const fn class<const S: usize>() -> ObjectClass {
    ObjectClass {
        open: open::<S>,
        copy: copy::<S>,
        get: get::<S>,
        specific: specific::<S>,
        optional: optional::<S>,
    }
}

unsafe extern "C" fn open<const S: usize>(
    object: Ptr,
    at: *const Location,
    opened_kind: *mut c_int,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        // SAFETY: the arguments are the caller's, with the native object in place of ours.
        unsafe {
            let opened = (native.object.open)(under(object), at, opened_kind, transfer, req);
            Object::wrap(opened, file_of(object))
        }
    })
}

#[allow(clippy::too_many_arguments)] // as the interface has it
unsafe extern "C" fn copy<const S: usize>(
    source: Ptr,
    from: *const Location,
    source_name: *const c_char,
    destination: Ptr,
    to: *const Location,
    name: *const c_char,
    copying: Hid,
    link: Hid,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call = native.object.copy;
        // SAFETY: as in `open`.
        unsafe {
            let status = call(
                under(source),
                from,
                source_name,
                under(destination),
                to,
                name,
                copying,
                link,
                transfer,
                req,
            );
            if status < 0 {
                return status;
            }
            touch(destination, true);
            let (source_file, file) = (file_of(source), file_of(destination));
            let side = |object, at: *const Location, name: *const c_char| {
                let name = CStr::from_ptr(name).to_str().ok();
                let below = Below {
                    object: under(object),
                    kind: (*at).object_kind,
                };
                name.map(|name| (below, name))
            };
            let sides = (side(source, from, source_name), side(destination, to, name));
            let (Some((source, source_name)), Some((destination, name))) = sides else {
                return status;
            };
            let from = Side {
                below: source,
                name: source_name,
                file: source_file.as_deref(),
            };
            let to = Side {
                below: destination,
                name,
                file: file.as_deref(),
            };
            done::<S>(copy_cells(native, &from, &to, transfer))
        }
    })
}

// The file of an object is asked for here too. It is the native connector's own that is wanted.
hand_on!(get, object(at: *const Location, args: *mut Opaque));

hand_on!(specific, object(at: *const Location, args: *mut Opaque));

hand_on!(optional, object(at: *const Location, args: *mut Optional));
