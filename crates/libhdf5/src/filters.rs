//! Registered filters for libhdf5, which has none of its own but deflate, shuffle and the like.
//!
//! The engine's own codecs decode all of them and encode some; a filter that cannot encode is enough
//! for a dataset to be made, and for its cells to be read.

use std::ffi::{CString, c_uint, c_void};
use std::sync::OnceLock;

use hdf5_metno_sys::h5::{H5allocate_memory, H5free_memory};
use hdf5_metno_sys::h5z::{H5Z_CLASS_T_VERS, H5Z_FLAG_REVERSE, H5Z_class2_t, H5Zregister};
use hyperslab_format::hdf5::HdfFilter;
use hyperslab_index::{Error, Result};

use crate::handle::check;

/// Filters that the engine knows, and whether it encodes them.
const KNOWN: [(i32, &str); 6] = [
    (32000, "lzf"),
    (32001, "blosc"),
    (32004, "lz4"),
    (32008, "bitshuffle"),
    (32015, "zstd"),
    (32026, "blosc2"),
];

/// Tells libhdf5 of the filters, once.
pub(crate) fn register() -> Result<()> {
    static DONE: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let done = DONE.get_or_init(|| register_all().map_err(|e| e.to_string()));
    done.clone().map_err(Error::internal)
}

fn register_all() -> Result<()> {
    for (id, name) in KNOWN {
        let name = CString::new(name).map_err(|_| Error::internal("a filter has no name"))?;
        let class = H5Z_class2_t {
            version: H5Z_CLASS_T_VERS as i32,
            id,
            // One that is not there would keep a dataset from being made at all.
            encoder_present: 1,
            decoder_present: 1,
            // The library keeps the pointer for as long as it runs.
            name: name.into_raw(),
            can_apply: None,
            set_local: None,
            filter: Some(match id {
                32000 => run::<32000>,
                32001 => run::<32001>,
                32004 => run::<32004>,
                32008 => run::<32008>,
                32015 => run::<32015>,
                _ => run::<32026>,
            }),
        };
        let class: *const H5Z_class2_t = &class;
        // SAFETY: the class is copied by the call.
        let done = unsafe { H5Zregister(class.cast::<c_void>()) };
        check(done, "register a filter")?;
    }
    Ok(())
}

/// True if cells can be written with this filter, by libhdf5 or by the engine.
pub(crate) fn can_encode(id: i32) -> bool {
    matches!(id, 1..=3 | 5 | 6) || u16::try_from(id).is_ok_and(HdfFilter::can_encode)
}

/// One pass of the filter of this number over a chunk; 0 is a failure.
unsafe extern "C" fn run<const ID: u16>(
    flags: c_uint,
    count: usize,
    values: *const c_uint,
    bytes: usize,
    size: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    // SAFETY: the library hands out `count` values and a buffer of at least `bytes` bytes.
    let (values, data) = unsafe {
        let values = match values.is_null() {
            true => &[],
            false => std::slice::from_raw_parts(values, count),
        };
        (
            values,
            std::slice::from_raw_parts((*buffer).cast::<u8>(), bytes),
        )
    };
    let filter = HdfFilter::new(ID, values);
    let done = match flags & H5Z_FLAG_REVERSE {
        0 => filter.and_then(|filter| filter.encode(data)),
        _ => filter.and_then(|filter| filter.decode(data)),
    };
    let Ok(out) = done else {
        return 0;
    };
    if out.is_empty() {
        return 0;
    }
    // SAFETY: the old buffer is the library's to free, and the new one is given to it.
    unsafe {
        let room = H5allocate_memory(out.len(), 0);
        if room.is_null() {
            return 0;
        }
        std::ptr::copy_nonoverlapping(out.as_ptr(), room.cast::<u8>(), out.len());
        H5free_memory(*buffer);
        *buffer = room;
        *size = out.len();
    }
    out.len()
}
