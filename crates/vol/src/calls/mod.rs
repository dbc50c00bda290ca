//! The functions of the connector, by the class of object that they are about.
//!
//! Every function is one of each library's own (`S` is the slot of the library that calls it). What is
//! about a local file goes to the native connector as it came, with the objects under ours.

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
