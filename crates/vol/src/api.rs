//! Functions of libhdf5 that the connector calls, looked up in the library that it serves.
//!
//! All of them have the same type from HDF5 1.14.2 to 2.x.

#![allow(non_snake_case)] // they are called what they are called

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem;

use crate::abi::{Herr, Hid, Ptr};

/// How a program has memory for values of any length allocated, and freed.
pub(crate) type Allocate = Option<unsafe extern "C" fn(usize, Ptr) -> Ptr>;
pub(crate) type Release = Option<unsafe extern "C" fn(Ptr, Ptr)>;

macro_rules! functions {
    ($(fn $name:ident($($argument:ty),* $(,)?) -> $result:ty;)*) => {
        /// The functions of one library.
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Api {
            /// Looks all of them up; the name of the first that is missing otherwise.
            pub(crate) fn load(
                symbol: impl Fn(&CStr) -> Option<*mut c_void>,
            ) -> Result<Api, &'static str> {
                Ok(Api {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        let found = CStr::from_bytes_with_nul(name.as_bytes())
                            .ok()
                            .and_then(&symbol)
                            .ok_or(stringify!($name))?;
                        // SAFETY: a function of that name has that type.
                        unsafe {
                            mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) -> $result,
                            >(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    fn H5get_libversion(*mut c_uint, *mut c_uint, *mut c_uint) -> Herr;
    fn H5Idec_ref(Hid) -> c_int;
    fn H5Fopen(*const c_char, c_uint, Hid) -> Hid;
    fn H5VLobject(Hid) -> Ptr;
    fn H5VLget_connector_id_by_name(*const c_char) -> Hid;
    fn H5Eget_current_stack() -> Hid;
    fn H5Eset_current_stack(Hid) -> Herr;

    fn H5Pcopy(Hid) -> Hid;
    fn H5Pset_vol(Hid, Hid, *const c_void) -> Herr;
    fn H5Pget_driver(Hid) -> Hid;
    fn H5Pset_fapl_core(Hid, usize, bool) -> Herr;
    fn H5Pset_fapl_sec2(Hid) -> Herr;
    fn H5Pset_file_image(Hid, Ptr, usize) -> Herr;
    fn H5Pget_libver_bounds(Hid, *mut c_int, *mut c_int) -> Herr;
    fn H5Pset_libver_bounds(Hid, c_int, c_int) -> Herr;
    fn H5Pget_vol_info(Hid, *mut Ptr) -> Herr;
    fn H5Pget_layout(Hid) -> c_int;
    fn H5Pget_virtual_count(Hid, *mut usize) -> Herr;
    fn H5Pget_virtual_vspace(Hid, usize) -> Hid;
    fn H5Pget_virtual_srcspace(Hid, usize) -> Hid;
    fn H5Pget_virtual_filename(Hid, usize, *mut c_char, usize) -> isize;
    fn H5Pget_virtual_dsetname(Hid, usize, *mut c_char, usize) -> isize;
    fn H5Pget_copy_object(Hid, *mut c_uint) -> Herr;
    fn H5Pget_chunk(Hid, c_int, *mut u64) -> c_int;
    fn H5Pget_fill_value(Hid, Hid, Ptr) -> Herr;
    fn H5Pget_fill_time(Hid, *mut c_int) -> Herr;
    fn H5Pget_elink_acc_flags(Hid, *mut c_uint) -> Herr;
    fn H5Pget_elink_fapl(Hid) -> Hid;
    fn H5Pget_virtual_prefix(Hid, *mut c_char, usize) -> isize;
    fn H5Pget_vlen_mem_manager(Hid, *mut Allocate, *mut Ptr, *mut Release, *mut Ptr) -> Herr;
    fn H5Pfill_value_defined(Hid, *mut c_int) -> Herr;
    fn H5Pget_external_count(Hid) -> c_int;
    fn H5Pget_nfilters(Hid) -> c_int;
    fn H5Pget_filter2(
        Hid,
        c_uint,
        *mut c_uint,
        *mut usize,
        *mut c_uint,
        usize,
        *mut c_char,
        *mut c_uint,
    ) -> c_int;

    fn H5Tencode(Hid, Ptr, *mut usize) -> Herr;
    fn H5Tequal(Hid, Hid) -> c_int;
    fn H5Tget_size(Hid) -> usize;
    fn H5Tget_class(Hid) -> c_int;
    fn H5Tis_variable_str(Hid) -> c_int;
    fn H5Tconvert(Hid, Hid, usize, Ptr, Ptr, Hid) -> Herr;

    fn H5Sget_select_type(Hid) -> c_int;
    fn H5Sget_select_npoints(Hid) -> i64;
    fn H5Sget_select_bounds(Hid, *mut u64, *mut u64) -> Herr;
    fn H5Sget_simple_extent_type(Hid) -> c_int;
    fn H5Sget_simple_extent_ndims(Hid) -> c_int;
    fn H5Sget_simple_extent_dims(Hid, *mut u64, *mut u64) -> c_int;
    fn H5Sset_extent_simple(Hid, c_int, *const u64, *const u64) -> Herr;
    fn H5Sis_regular_hyperslab(Hid) -> c_int;
    fn H5Sget_regular_hyperslab(Hid, *mut u64, *mut u64, *mut u64, *mut u64) -> Herr;
    fn H5Sget_select_hyper_nblocks(Hid) -> i64;
    fn H5Sget_select_hyper_blocklist(Hid, u64, u64, *mut u64) -> Herr;
    fn H5Sget_select_elem_npoints(Hid) -> i64;
    fn H5Sget_select_elem_pointlist(Hid, u64, u64, *mut u64) -> Herr;
    fn H5Ssel_iter_create(Hid, usize, c_uint) -> Hid;
    fn H5Ssel_iter_get_seq_list(
        Hid,
        usize,
        usize,
        *mut usize,
        *mut usize,
        *mut u64,
        *mut usize,
    ) -> Herr;
    fn H5Ssel_iter_close(Hid) -> Herr;
}
