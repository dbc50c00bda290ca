//! Datasets.

use std::ffi::{c_char, c_void};

use super::closed;
use crate::abi::{DatasetClass, Herr, Hid, Location, Optional, Ptr, Req, Single};
use crate::guard::guarded;
use crate::object::{Object, under};

pub(crate) const fn class<const S: usize>() -> DatasetClass {
    DatasetClass {
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
    link: Hid,
    datatype: Hid,
    space: Hid,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        let call = native.dataset.create;
        // SAFETY: the arguments are the caller's, with the native object in place of ours.
        let made = unsafe {
            let object = under(object);
            call(
                object, at, name, link, datatype, space, creation, access, transfer, req,
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
        let call = native.dataset.open;
        // SAFETY: as in `create`.
        let opened = unsafe { call(under(object), at, name, access, transfer, req) };
        Object::wrap(opened)
    })
}

/// What the native connector knows datasets by.
///
/// # Safety
/// There are `count` of them.
unsafe fn all_under(count: usize, datasets: *const Ptr) -> Vec<Ptr> {
    // SAFETY: the caller says so.
    (0..count)
        .map(|i| unsafe { under(*datasets.add(i)) })
        .collect()
}

#[allow(clippy::too_many_arguments)] // as the interface has it
unsafe extern "C" fn read<const S: usize>(
    count: usize,
    datasets: *const Ptr,
    memory: *const Hid,
    memory_spaces: *const Hid,
    spaces: *const Hid,
    transfer: Hid,
    buffers: *const Ptr,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call = native.dataset.read;
        // SAFETY: the arguments are the caller's, with native objects in place of ours.
        unsafe {
            if count == 1 {
                let one = under(*datasets);
                return call(
                    1,
                    &one,
                    memory,
                    memory_spaces,
                    spaces,
                    transfer,
                    buffers,
                    req,
                );
            }
            let all = all_under(count, datasets);
            call(
                count,
                all.as_ptr(),
                memory,
                memory_spaces,
                spaces,
                transfer,
                buffers,
                req,
            )
        }
    })
}

#[allow(clippy::too_many_arguments)] // as the interface has it
unsafe extern "C" fn write<const S: usize>(
    count: usize,
    datasets: *const Ptr,
    memory: *const Hid,
    memory_spaces: *const Hid,
    spaces: *const Hid,
    transfer: Hid,
    buffers: *const *const c_void,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call = native.dataset.write;
        // SAFETY: the arguments are the caller's, with native objects in place of ours.
        unsafe {
            if count == 1 {
                let one = under(*datasets);
                return call(
                    1,
                    &one,
                    memory,
                    memory_spaces,
                    spaces,
                    transfer,
                    buffers,
                    req,
                );
            }
            let all = all_under(count, datasets);
            call(
                count,
                all.as_ptr(),
                memory,
                memory_spaces,
                spaces,
                transfer,
                buffers,
                req,
            )
        }
    })
}

unsafe extern "C" fn get<const S: usize>(
    dataset: Ptr,
    args: *mut Single,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe { (native.dataset.get)(under(dataset), args, transfer, req) })
}

unsafe extern "C" fn specific<const S: usize>(
    dataset: Ptr,
    args: *mut Single,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        (native.dataset.specific)(under(dataset), args, transfer, req)
    })
}

unsafe extern "C" fn optional<const S: usize>(
    dataset: Ptr,
    args: *mut Optional,
    transfer: Hid,
    req: Req,
) -> Herr {
    // SAFETY: as in `create`.
    guarded::<S, _>(|native| unsafe {
        (native.dataset.optional)(under(dataset), args, transfer, req)
    })
}

unsafe extern "C" fn close<const S: usize>(dataset: Ptr, transfer: Hid, req: Req) -> Herr {
    // SAFETY: as in `create`; nobody uses a closed object.
    guarded::<S, _>(|native| unsafe {
        let status = (native.dataset.close)(under(dataset), transfer, req);
        closed(dataset, status)
    })
}
