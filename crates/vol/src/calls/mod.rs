//! The functions of the connector, by the class of object that they are about.
//!
//! Every function is one of each library's own (`S` is the slot of the library that calls it). What is
//! about a local file goes to the native connector as it came, with the objects under ours.

/// A call that is handed on to the native connector as it is, with the object under ours.
macro_rules! hand_on {
    ($name:ident, $class:ident ( $($argument:ident: $kind:ty),* )) => {
        unsafe extern "C" fn $name<const S: usize>(
            object: Ptr,
            $($argument: $kind,)*
            transfer: Hid,
            req: Req,
        ) -> Herr {
            // SAFETY: the arguments are the caller's, with the native object in place of ours.
            guarded::<S, _>(|native| unsafe {
                (native.$class.$name)(under(object), $($argument,)* transfer, req)
            })
        }
    };
}

/// Closes an object of the native connector's, and lets go of ours.
macro_rules! close {
    ($class:ident) => {
        unsafe extern "C" fn close<const S: usize>(object: Ptr, transfer: Hid, req: Req) -> Herr {
            // SAFETY: the object is one of ours, and nobody uses a closed one.
            guarded::<S, _>(|native| unsafe {
                let status = (native.$class.close)(under(object), transfer, req);
                closed(object, status)
            })
        }
    };
}

/// Opens an object by its name.
macro_rules! open {
    ($class:ident) => {
        unsafe extern "C" fn open<const S: usize>(
            object: Ptr,
            at: *const Location,
            name: *const c_char,
            access: Hid,
            transfer: Hid,
            req: Req,
        ) -> Ptr {
            guarded::<S, _>(|native| {
                let call = native.$class.open;
                // SAFETY: the arguments are the caller's, with the native object in place of ours.
                unsafe {
                    let opened = call(under(object), at, name, access, transfer, req);
                    Object::wrap(opened, file_of(object))
                }
            })
        }
    };
}

pub(crate) mod attribute;
mod chunks;
pub(crate) mod dataset;
pub(crate) mod datatype;
pub(crate) mod file;
pub(crate) mod group;
pub(crate) mod info;
pub(crate) mod inside;
pub(crate) mod introspect;
pub(crate) mod link;
pub(crate) mod object;
pub(crate) mod wrap;

use crate::abi::{Herr, Ptr};
use crate::object::Object;

/// What closing returned; an object that is closed is let go of.
///
/// # Safety
/// As for [`Object::release`], if closing succeeded.
unsafe fn closed(object: Ptr, status: Herr) -> Herr {
    if status >= 0 {
        // SAFETY: the caller says so.
        unsafe { Object::release(object) };
    }
    status
}
