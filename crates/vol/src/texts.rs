//! Texts of any length in a program's memory: pointers to strings of C's.
//!
//! libhdf5 lets programs say how memory for such values is allocated and freed; where they say nothing,
//! it is the C library that does.

use std::ffi::{CStr, c_char};
use std::ptr;

use bytes::Bytes;
use hyperslab::{Error, Result};
use libc::{free, malloc};

use crate::abi::Ptr;
use crate::api::{Allocate, Release};

/// Bytes of an element that is a text: of a pointer.
pub(crate) const ELEMENT: usize = size_of::<*const c_char>();

/// How values of any length are allocated and freed.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) allocate: Allocate,
    pub(crate) allocate_with: Ptr,
    pub(crate) release: Release,
    pub(crate) release_with: Ptr,
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            allocate: None,
            allocate_with: ptr::null_mut(),
            release: None,
            release_with: ptr::null_mut(),
        }
    }
}

impl Memory {
    fn allocate(&self, bytes: usize) -> Result<*mut u8> {
        // SAFETY: the function is the program's, for this.
        let made = unsafe {
            match self.allocate {
                Some(allocate) => allocate(bytes, self.allocate_with),
                None => malloc(bytes),
            }
        };
        match made.is_null() {
            true => Err(Error::unavailable(format!("no memory for {bytes} bytes"))),
            false => Ok(made.cast()),
        }
    }

    /// # Safety
    /// The value was allocated like this, and nobody uses it any more.
    unsafe fn release(&self, value: Ptr) {
        // SAFETY: the caller says so.
        unsafe {
            match self.release {
                Some(release) => release(value, self.release_with),
                None => free(value),
            }
        }
    }
}

/// Elements for texts, each of which whoever gets them has to free.
#[allow(clippy::host_endian_bytes)] // pointers of this process
pub(crate) fn give(texts: &[Bytes], memory: Memory) -> Result<Vec<u8>> {
    let mut elements = Vec::with_capacity(texts.len() * ELEMENT);
    for text in texts {
        // A text ends with its first zero.
        let length = text
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(text.len());
        let made = memory.allocate(length + 1);
        let made = made.inspect_err(|_| {
            // SAFETY: all of them were just made here.
            unsafe { release(&elements, memory) };
        })?;
        // SAFETY: there is room for the text and a zero.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), made, length);
            *made.add(length) = 0;
        }
        elements.extend_from_slice(&(made as usize).to_ne_bytes());
    }
    Ok(elements)
}

/// The texts of elements; one that is nowhere is empty.
///
/// # Safety
/// The elements are pointers to strings of C's, or null.
pub(crate) unsafe fn look(elements: &[u8]) -> Vec<Bytes> {
    let text = |pointer: *const c_char| match pointer.is_null() {
        true => Bytes::new(),
        // SAFETY: the caller says so.
        false => Bytes::copy_from_slice(unsafe { CStr::from_ptr(pointer) }.to_bytes()),
    };
    pointers(elements).map(text).collect()
}

/// The texts of elements, which are freed.
///
/// # Safety
/// As for [`look`] and [`release`].
pub(crate) unsafe fn take(elements: &[u8], memory: Memory) -> Vec<Bytes> {
    // SAFETY: the caller says so.
    unsafe {
        let texts = look(elements);
        release(elements, memory);
        texts
    }
}

/// Frees the texts of elements.
///
/// # Safety
/// They were allocated as programs want it, and nobody uses them any more.
pub(crate) unsafe fn release(elements: &[u8], memory: Memory) {
    for pointer in pointers(elements).filter(|pointer| !pointer.is_null()) {
        // SAFETY: the caller says so.
        unsafe { memory.release(pointer.cast_mut().cast()) };
    }
}

#[allow(clippy::host_endian_bytes)] // pointers of this process
fn pointers(elements: &[u8]) -> impl Iterator<Item = *const c_char> {
    elements.chunks_exact(ELEMENT).map(|bytes| {
        let mut pointer = [0; ELEMENT];
        pointer.copy_from_slice(bytes);
        usize::from_ne_bytes(pointer) as *const c_char
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_given_and_taken() {
        let texts = ["", "a", "h\u{e9}llo"].map(|text| Bytes::from(text.as_bytes().to_vec()));
        let elements = give(&texts, Memory::default()).unwrap();
        assert_eq!(elements.len(), 3 * ELEMENT);
        // SAFETY: they were just made, for this.
        assert_eq!(unsafe { take(&elements, Memory::default()) }, texts);
        // SAFETY: null is no text.
        assert_eq!(unsafe { look(&[0; ELEMENT]) }, [Bytes::new()]);
    }

    #[test]
    fn a_text_ends_with_its_first_zero() {
        let elements = give(&[Bytes::from_static(b"a\0b")], Memory::default()).unwrap();
        // SAFETY: it was just made, for this.
        assert_eq!(unsafe { take(&elements, Memory::default()) }, [&b"a"[..]]);
    }
}
