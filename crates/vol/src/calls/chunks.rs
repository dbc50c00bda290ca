//! Chunks of a dataset, one by one: `H5Dget_chunk_info` and its kin.

use std::ffi::{c_int, c_uint, c_void};

use hyperslab::{Error, Result};

use crate::abi::{Hid, Optional, Ptr};
use crate::library::Library;
use crate::remote::Dataset;

/// Operations (`H5VL_NATIVE_DATASET_*`).
const STORAGE_SIZE: c_int = 2;
const COUNT: c_int = 3;
const BY_NUMBER: c_int = 4;
const BY_PLACE: c_int = 5;
const READ: c_int = 6;
const WRITE: c_int = 7;
const VISIT: c_int = 10;
/// An address that is none.
const NOWHERE: u64 = u64::MAX;

#[repr(C)]
struct StorageSize {
    offset: *const u64,
    size: *mut u64,
}

#[repr(C)]
struct Count {
    space: Hid,
    count: *mut u64,
}

#[repr(C)]
struct ByNumber {
    space: Hid,
    number: u64,
    offset: *mut u64,
    told: Told,
}

#[repr(C)]
struct ByPlace {
    offset: *const u64,
    told: Told,
}

#[repr(C)]
struct Told {
    mask: *mut c_uint,
    address: *mut u64,
    size: *mut u64,
}

/// Of HDF5 1.14; in 2.x there is a length behind it.
#[repr(C)]
struct Read {
    offset: *const u64,
    mask: u32,
    buffer: *mut u8,
}

#[repr(C)]
struct ReadSized {
    read: Read,
    room: *mut usize,
}

#[repr(C)]
struct Write {
    offset: *const u64,
    mask: u32,
    size: u32,
    bytes: *const u8,
}

#[repr(C)]
struct WriteSized {
    offset: *const u64,
    mask: u32,
    size: usize,
    bytes: *const u8,
}

#[repr(C)]
struct Visit {
    call: Option<unsafe extern "C" fn(*const u64, c_uint, u64, u64, Ptr) -> c_int>,
    data: *mut c_void,
}

/// True if an operation changes something.
pub(crate) fn writes(args: &Optional) -> bool {
    args.op == WRITE
}

/// Does an operation on the chunks of a dataset in a store; `None` if it is another one.
///
/// # Safety
/// The arguments are those of the operation.
pub(crate) unsafe fn operate(
    library: &Library,
    dataset: &Dataset,
    args: &mut Optional,
) -> Option<Result<()>> {
    let known = matches!(
        args.op,
        STORAGE_SIZE | COUNT | BY_NUMBER | BY_PLACE | READ | WRITE | VISIT
    );
    // SAFETY: the caller says so.
    known.then(|| unsafe { run(library, dataset, args.op, args.args) })
}

/// # Safety
/// As for [`operate`].
unsafe fn run(library: &Library, dataset: &Dataset, op: c_int, args: Ptr) -> Result<()> {
    let sides = dataset.chunk_sides();
    // SAFETY: an offset has a number for every dimension.
    let index = |offset: *const u64| unsafe {
        dataset.index(std::slice::from_raw_parts(offset, sides.len()))
    };
    // SAFETY: which of the structures it is, the operation says; answers go where they say.
    unsafe {
        match op {
            COUNT => *(*args.cast::<Count>()).count = dataset.chunks()?.len() as u64,
            STORAGE_SIZE => {
                let args = &*args.cast::<StorageSize>();
                *args.size = size(dataset, &index(args.offset)?)?.unwrap_or(0);
            }
            BY_PLACE => {
                let args = &*args.cast::<ByPlace>();
                tell(&args.told, size(dataset, &index(args.offset)?)?);
            }
            BY_NUMBER => {
                let args = &*args.cast::<ByNumber>();
                let chunks = dataset.chunks()?;
                let chunk = usize::try_from(args.number)
                    .ok()
                    .and_then(|n| chunks.get(n));
                let (index, _) =
                    chunk.ok_or_else(|| Error::invalid("there is no chunk of that number"))?;
                if !args.offset.is_null() {
                    for (dim, (at, side)) in index.iter().zip(&sides).enumerate() {
                        *args.offset.add(dim) = at * side;
                    }
                }
                tell(&args.told, size(dataset, index)?);
            }
            READ => {
                let read = &mut *args.cast::<Read>();
                let (chunk, mask) = dataset.encoded(&index(read.offset)?)?;
                read.mask = mask;
                if library.is_two() {
                    let room = (*args.cast::<ReadSized>()).room;
                    if !room.is_null() {
                        let enough = *room >= chunk.len();
                        *room = chunk.len();
                        if !enough || read.buffer.is_null() {
                            return Ok(());
                        }
                    }
                }
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), read.buffer, chunk.len());
            }
            WRITE => {
                let (offset, mask, size, bytes) = match library.is_two() {
                    true => {
                        let args = &*args.cast::<WriteSized>();
                        (args.offset, args.mask, args.size, args.bytes)
                    }
                    false => {
                        let args = &*args.cast::<Write>();
                        (args.offset, args.mask, args.size as usize, args.bytes)
                    }
                };
                let bytes = std::slice::from_raw_parts(bytes, size);
                dataset.write_encoded(&index(offset)?, bytes, mask)?;
            }
            _ => {
                let args = &*args.cast::<Visit>();
                let Some(call) = args.call else {
                    return Ok(());
                };
                for (index, bytes) in dataset.chunks()? {
                    let offset: Vec<u64> = index
                        .iter()
                        .zip(&sides)
                        .map(|(at, side)| at * side)
                        .collect();
                    let told = call(offset.as_ptr(), 0, NOWHERE, bytes, args.data);
                    if told < 0 {
                        // The program knows why it ended this.
                        return Err(Error::invalid(""));
                    }
                    if told > 0 {
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The bytes of a chunk as it would be in a file, which is how programs read it; `None` if nobody wrote
/// it.
fn size(dataset: &Dataset, index: &[u64]) -> Result<Option<u64>> {
    let chunks = dataset.chunks()?;
    match chunks.iter().any(|(at, _)| at == index) {
        true => Ok(Some(dataset.encoded(index)?.0.len() as u64)),
        false => Ok(None),
    }
}

/// # Safety
/// Answers go where they say, or are not wanted.
unsafe fn tell(told: &Told, bytes: Option<u64>) {
    // SAFETY: the caller says so.
    unsafe {
        if !told.mask.is_null() {
            *told.mask = 0;
        }
        if !told.address.is_null() {
            // Chunks are objects by themselves: where one is says nothing, but that it is there.
            *told.address = bytes.map_or(NOWHERE, |_| 0);
        }
        if !told.size.is_null() {
            *told.size = bytes.unwrap_or(0);
        }
    }
}
