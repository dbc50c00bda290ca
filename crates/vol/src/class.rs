//! The classes of the connector, one for each library in the process.

use std::ffi::{c_int, c_uint};

use crate::abi::{Class, DONE, FAIL, Herr, Hid, RequestClass};
use crate::calls::{
    attribute, dataset, datatype, file, group, info, inside, introspect, link, object, wrap,
};
use crate::guard::fail;
use crate::library::{SLOTS, library};

/// What tells this connector from others.
const NUMBER: c_int = 1994;
/// The version of the interface.
const INTERFACE: c_uint = 3;
/// All but safety for threads and asynchronous calls (the first two bits), and maps (two later ones).
pub(crate) const CAPABILITIES: u64 = ((1 << 37) - 1) & !0b11 & !0x6000;

pub(crate) static CLASSES: [Class; SLOTS] = [
    class::<0>(),
    class::<1>(),
    class::<2>(),
    class::<3>(),
    class::<4>(),
    class::<5>(),
    class::<6>(),
    class::<7>(),
];

const fn class<const S: usize>() -> Class {
    Class {
        version: INTERFACE,
        value: NUMBER,
        name: c"hyperslab".as_ptr(),
        conn_version: 1,
        cap_flags: CAPABILITIES,
        initialize: Some(initialize::<S>),
        terminate: None,
        info: info::class(),
        wrap: wrap::class(),
        attribute: attribute::class::<S>(),
        dataset: dataset::class::<S>(),
        datatype: datatype::class::<S>(),
        file: file::class::<S>(),
        group: group::class::<S>(),
        link: link::class::<S>(),
        object: object::class::<S>(),
        introspect: introspect::class::<S>(),
        request: RequestClass { unused: [None; 6] },
        blob: inside::blobs::<S>(),
        token: inside::tokens::<S>(),
        optional: None,
    }
}

unsafe extern "C" fn initialize<const S: usize>(_properties: Hid) -> Herr {
    match library::<S>().and_then(|library| library.start()) {
        Some(()) => DONE,
        None => {
            fail::<S>("this version of libhdf5 cannot be served; 1.14.2 and later can");
            FAIL
        }
    }
}
