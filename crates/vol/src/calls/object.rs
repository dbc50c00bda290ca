//! Objects of any class.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::sync::Arc;

use hyperslab::{Error, Result};

use super::aim::{Aim, Last};
use crate::abi::{DONE, Herr, Hid, Location, ObjectClass, Opaque, Optional, Ptr, Req};
use crate::guard::{done, guarded, told};
use crate::native::{Below, Native};
use crate::object::{Object, file_of, touch, under};
use crate::remote::{RemoteFile, Side, copy_cells};

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
            let aim = aimed!(S, Aim::at(native, (object, at), Last::Follow, transfer));
            let (object, at) = aim.located();
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
            if let Err(e) = check_copy(native, file_of(source), copying)
                .and_then(|()| forget_removed(native, (destination, to), transfer))
            {
                return done::<S>(Err(e));
            }
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

/// Has the file that is copied to forget what was removed from it.
///
/// # Safety
/// The object is one of ours, and the location one of the interface's.
unsafe fn forget_removed(
    native: Native,
    (object, at): (Ptr, *const Location),
    transfer: Hid,
) -> Result<()> {
    // SAFETY: the caller says so.
    let (file, inside, kind) = unsafe { (file_of(object), under(object), (*at).object_kind) };
    match file.filter(|file| !file.is_in_place()) {
        Some(file) => file.with_native(native, (inside, kind), transfer, |inside| {
            file.forget_removed(native, inside, transfer)
        }),
        None => Ok(()),
    }
}

/// An error if objects would be copied whose cells cannot be found afterwards.
fn check_copy(native: Native, source: Option<Arc<RemoteFile>>, copying: Hid) -> Result<()> {
    /// What references lead to is copied too (`H5O_COPY_EXPAND_REFERENCE_FLAG`).
    const REFERENCES: c_uint = 8;
    let mut flags = 0;
    if copying > 0 {
        // SAFETY: the list is open.
        unsafe { (native.library.api.H5Pget_copy_object)(copying, &mut flags) };
    }
    match source.is_some_and(|file| !file.is_in_place()) && flags & REFERENCES != 0 {
        true => Err(Error::invalid(
            "objects in a store are not copied along with references that lead to them",
        )
        .with_hint("copy those objects too, without expanding references")),
        false => Ok(()),
    }
}

// The file of an object is asked for here too. It is the native connector's own that is wanted.
hand_on_at!(get, object, Last::Follow, *mut Opaque);

unsafe extern "C" fn specific<const S: usize>(
    object: Ptr,
    at: *const Location,
    args: *mut Opaque,
    transfer: Hid,
    req: Req,
) -> Herr {
    /// `H5VL_OBJECT_EXISTS`; the answer goes where its argument says.
    const EXISTS: c_int = 1;
    #[repr(C)]
    struct Exists {
        op: c_int,
        answer: *mut bool,
    }
    // SAFETY: as in `open`; what the arguments are, the operation says.
    guarded::<S, _>(|native| unsafe {
        let aim = match Aim::at(native, (object, at), Last::Follow, transfer) {
            Ok(aim) => aim,
            // What a link to a file that is not there leads to does not exist, and that is no error.
            Err(_) if (*args).op == EXISTS => {
                *(*args.cast::<Exists>()).answer = false;
                return DONE;
            }
            Err(e) => return done::<S>(Err(e)),
        };
        let (object, at) = aim.located();
        (native.object.specific)(under(object), at, args, transfer, req)
    })
}

hand_on_at!(optional, object, Last::Follow, *mut Optional);
