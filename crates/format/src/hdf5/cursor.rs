//! Reads little-endian fields of HDF5 structures, never beyond their end.
//!
//! Below all parsers. Invariant: a field that is not there is an error that says where, and nothing
//! is allocated for a length that the bytes do not have.

use crate::{Error, Result};

/// Sizes that the superblock fixes for a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes of an address.
    pub(crate) offset: u8,
    /// Bytes of a length.
    pub(crate) length: u8,
}

/// A place in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
    sizes: Sizes,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(data: &'a [u8], sizes: Sizes) -> Self {
        Cursor { data, at: 0, sizes }
    }

    /// Bytes read so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    pub(crate) fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count);
        match end.and_then(|end| self.data.get(self.at..end)) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => Err(Error::data(format!(
                "a structure ends after {} bytes where {count} more belong to it",
                self.data.len()
            ))),
        }
    }

    /// All that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.data[self.at..];
        self.at = self.data.len();
        rest
    }

    pub(crate) fn skip(&mut self, count: usize) -> Result<()> {
        self.bytes(count).map(drop)
    }

    /// Skips to the next multiple of `to` since `start`.
    pub(crate) fn align(&mut self, start: usize, to: usize) -> Result<()> {
        self.skip((self.at - start).next_multiple_of(to) - (self.at - start))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(self.uint(2)? as u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(self.uint(4)? as u32)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.uint(8)
    }

    /// An unsigned integer of so many bytes, at most 8 of which may be other than zero.
    pub(crate) fn uint(&mut self, count: usize) -> Result<u64> {
        let bytes = self.bytes(count)?;
        if bytes.iter().skip(8).any(|b| *b != 0) {
            return Err(Error::data("a number has more than 64 bits"));
        }
        let low = bytes.iter().take(8).rev();
        Ok(low.fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// An address; `None` if it is undefined (all ones).
    pub(crate) fn address(&mut self) -> Result<Option<u64>> {
        let count = usize::from(self.sizes.offset);
        let undefined = self.data.get(self.at..self.at + count);
        if undefined.is_some_and(|bytes| bytes.iter().all(|b| *b == 0xff)) {
            self.at += count;
            return Ok(None);
        }
        self.uint(count).map(Some)
    }

    /// An address that has to be defined.
    pub(crate) fn defined(&mut self, what: &str) -> Result<u64> {
        self.address()?
            .ok_or_else(|| Error::data(format!("the address of {what} is undefined")))
    }

    pub(crate) fn length(&mut self) -> Result<u64> {
        self.uint(usize::from(self.sizes.length))
    }

    /// Bytes up to a zero byte, which is read too.
    pub(crate) fn terminated(&mut self) -> Result<&'a [u8]> {
        let rest = &self.data[self.at..];
        match rest.iter().position(|b| *b == 0) {
            Some(end) => {
                self.at += end + 1;
                Ok(&rest[..end])
            }
            None => Err(Error::data("a name has no end")),
        }
    }

    /// Fails unless the next bytes are a structure's signature.
    pub(crate) fn signature(&mut self, expected: &[u8; 4], what: &str) -> Result<()> {
        match self.bytes(4)? == expected {
            true => Ok(()),
            false => Err(Error::data(format!(
                "there is no {what} where one should be"
            ))),
        }
    }

    /// Fails unless the next byte is one of these versions.
    pub(crate) fn version(
        &mut self,
        known: std::ops::RangeInclusive<u8>,
        what: &str,
    ) -> Result<u8> {
        let version = self.u8()?;
        match known.contains(&version) {
            true => Ok(version),
            false => Err(Error::data(format!(
                "version {version} of the {what} is not known"
            ))),
        }
    }
}

/// A name as HDF5 stores it: bytes that should be UTF-8. Others are shown as Python shows them.
pub(crate) fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}
