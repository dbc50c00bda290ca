//! Between a program's memory and cells as a file has them: places, and types.

use std::ffi::{c_int, c_void};
use std::ptr;

use hyperslab::{Error, Result};

use crate::abi::Hid;
use crate::library::Library;
use crate::space::Places;

/// Bytes that are converted at a time, about.
const BLOCK: usize = 1 << 20;
/// The class of compounds (`H5T_COMPOUND`), and of arrays, which may have some inside.
const COMPOUND: c_int = 6;
const ARRAY: c_int = 10;

/// The types of a transfer.
pub(crate) struct Types<'a> {
    library: &'a Library,
    file: Hid,
    memory: Hid,
    transfer: Hid,
    /// Bytes of an element in the file, and in memory.
    pub(crate) file_bytes: usize,
    pub(crate) memory_bytes: usize,
    /// Both are the same.
    pub(crate) same: bool,
    /// Elements may be changed in part.
    pub(crate) partial: bool,
}

impl<'a> Types<'a> {
    /// The identifiers stay open as long as this is used.
    pub(crate) fn new(library: &'a Library, file: Hid, memory: Hid, transfer: Hid) -> Result<Self> {
        let api = &library.api;
        // SAFETY: the types are open; asking changes nothing.
        let (file_bytes, memory_bytes, equal, class) = unsafe {
            (
                (api.H5Tget_size)(file),
                (api.H5Tget_size)(memory),
                (api.H5Tequal)(file, memory),
                (api.H5Tget_class)(file),
            )
        };
        if file_bytes == 0 || memory_bytes == 0 || equal < 0 {
            return Err(Error::invalid("the data type of a transfer is none"));
        }
        Ok(Types {
            library,
            file,
            memory,
            transfer,
            file_bytes,
            memory_bytes,
            same: equal > 0,
            partial: matches!(class, COMPOUND | ARRAY),
        })
    }

    /// Elements of the file's type into a program's memory.
    ///
    /// # Safety
    /// `places` are the program's own, in `memory`.
    pub(crate) unsafe fn deliver(
        &self,
        cells: &[u8],
        places: &Places,
        memory: *mut c_void,
    ) -> Result<()> {
        let (from, to) = (self.file_bytes, self.memory_bytes);
        if self.same {
            // SAFETY: the caller says so.
            unsafe { scatter(cells, places, 0, memory) };
            return Ok(());
        }
        let step = (BLOCK / from.max(to)).max(1);
        let mut block = vec![0; step * from.max(to)];
        let mut ground = vec![0; if self.partial { step * to } else { 0 }];
        for (i, some) in cells.chunks(step * from).enumerate() {
            let count = some.len() / from;
            let at = i * step * to;
            block[..some.len()].copy_from_slice(some);
            if self.partial {
                // What the file does not have stays as it is in memory.
                // SAFETY: the caller says so.
                unsafe { gather(&mut ground[..count * to], places, at, memory) };
            }
            self.convert(self.file, self.memory, count, &mut block, &mut ground)?;
            // SAFETY: the caller says so.
            unsafe { scatter(&block[..count * to], places, at, memory) };
        }
        Ok(())
    }

    /// Elements of the file's type from a program's memory; what memory does not have of them is as in
    /// `present`, which is empty unless elements are changed in part.
    ///
    /// # Safety
    /// `places` are the program's own, in `memory`.
    pub(crate) unsafe fn collect(
        &self,
        count: usize,
        places: &Places,
        memory: *const c_void,
        mut present: Vec<u8>,
    ) -> Result<Vec<u8>> {
        let (from, to) = (self.memory_bytes, self.file_bytes);
        let mut cells = vec![0; count * to];
        if self.same {
            // SAFETY: the caller says so.
            unsafe { gather(&mut cells, places, 0, memory) };
            return Ok(cells);
        }
        let step = (BLOCK / from.max(to)).max(1);
        let mut block = vec![0; step * from.max(to)];
        for (i, some) in cells.chunks_mut(step * to).enumerate() {
            let (count, at) = (some.len() / to, i * step);
            // SAFETY: the caller says so.
            unsafe { gather(&mut block[..count * from], places, at * from, memory) };
            let ground = match present.is_empty() {
                true => &mut [][..],
                false => &mut present[at * to..(at + count) * to],
            };
            self.convert(self.memory, self.file, count, &mut block, ground)?;
            some.copy_from_slice(&block[..count * to]);
        }
        Ok(cells)
    }

    fn convert(
        &self,
        from: Hid,
        to: Hid,
        count: usize,
        block: &mut [u8],
        ground: &mut [u8],
    ) -> Result<()> {
        let ground = match ground.is_empty() {
            true => ptr::null_mut(),
            false => ground.as_mut_ptr(),
        };
        // SAFETY: the block has room for so many elements of either type, and so has the background.
        let status = unsafe {
            (self.library.api.H5Tconvert)(
                from,
                to,
                count,
                block.as_mut_ptr().cast(),
                ground.cast(),
                self.transfer,
            )
        };
        match status < 0 {
            true => Err(Error::invalid(
                "elements of the dataset cannot be converted to the type in memory, or back",
            )),
            false => Ok(()),
        }
    }
}

/// # Safety
/// There are as many places in `memory` as there are bytes, after the first `skip`.
unsafe fn scatter(bytes: &[u8], places: &Places, skip: usize, memory: *mut c_void) {
    let mut rest = bytes;
    for (offset, length) in places.part(skip, bytes.len()) {
        let (some, others) = rest.split_at(length);
        // SAFETY: the caller says so.
        unsafe { ptr::copy(some.as_ptr(), memory.cast::<u8>().add(offset), length) };
        rest = others;
    }
}

/// # Safety
/// As for [`scatter`].
unsafe fn gather(bytes: &mut [u8], places: &Places, skip: usize, memory: *const c_void) {
    let mut at = 0;
    for (offset, length) in places.part(skip, bytes.len()) {
        let some = &mut bytes[at..at + length];
        // SAFETY: the caller says so.
        unsafe { ptr::copy(memory.cast::<u8>().add(offset), some.as_mut_ptr(), length) };
        at += length;
    }
}
