//! The functions of the connector, by the class of object that they are about.
//!
//! Every function is one of each library's own (`S` is the slot of the library that calls it). What is
//! about a local file goes to the native connector as it came, with the objects under ours.

/// What a call is about, or the call fails with the reason left for the program.
macro_rules! aimed {
    ($slot:ident, $aim:expr) => {
        match $aim {
            Ok(aim) => aim,
            Err(e) => return told::<$slot, _>(Err(e)),
        }
    };
}

/// A call about something at a location, which may lead to another file.
macro_rules! hand_on_at {
    ($name:ident, $class:ident, $last:expr, $args:ty) => {
        unsafe extern "C" fn $name<const S: usize>(
            object: Ptr,
            at: *const Location,
            args: $args,
            transfer: Hid,
            req: Req,
        ) -> Herr {
            // SAFETY: the arguments are the caller's, with the native object in place of ours.
            guarded::<S, _>(|native| unsafe {
                let aim = aimed!(S, Aim::at(native, (object, at), $last, transfer));
                let (object, at) = aim.located();
                (native.$class.$name)(under(object), at, args, transfer, req)
            })
        }
    };
}

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
    ($class:ident, $kind:expr) => {
        unsafe extern "C" fn close<const S: usize>(object: Ptr, transfer: Hid, req: Req) -> Herr {
            // SAFETY: the object is one of ours, and nobody uses a closed one.
            guarded::<S, _>(|native| unsafe {
                if let Err(e) = Object::of(object).flush_last(native, $kind, transfer) {
                    return done::<S>(Err(e));
                }
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
                    let said = (object, at, name, access);
                    let aim = aimed!(S, Aim::by_name(native, said, Last::Follow, transfer));
                    let (object, at, name) = aim.named();
                    let opened = call(under(object), at, name, access, transfer, req);
                    Object::wrap(opened, file_of(object))
                }
            })
        }
    };
}

mod aim;
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
mod transfer;
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
