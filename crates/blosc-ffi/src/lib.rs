//! A safe, thread-safe and bounded front for the C library Blosc 1.21.
//!
//! Sits below the codecs. It is a crate of its own because it is the one place of the format layer
//! that needs `unsafe`. Invariant: a frame is decoded only after its header was validated and its
//! decoded size compared with the size the caller expects, so no input makes it write past a
//! buffer or allocate more than asked for.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::fmt;

/// Bytes that Blosc may add to data it cannot compress.
const MAX_OVERHEAD: usize = blosc_src::BLOSC_MAX_OVERHEAD as usize;
const MAX_INPUT: usize = blosc_src::BLOSC_MAX_BUFFERSIZE as usize;

/// How bytes are rearranged before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shuffle {
    /// Not at all.
    None,
    /// Byte by byte.
    Byte,
    /// Bit by bit.
    Bit,
}

/// What to compress with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `blosclz`, `lz4`, `lz4hc`, `zlib` or `zstd`.
    pub compressor: String,
    /// 0 (none) to 9.
    pub level: u8,
    /// The rearrangement.
    pub shuffle: Shuffle,
    /// Bytes per element, 1 to 255.
    pub type_size: usize,
    /// Block size; 0 leaves it to Blosc.
    pub block_size: usize,
}

/// Why a frame could not be made or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BloscError(String);

impl fmt::Display for BloscError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BloscError {}

fn error<T>(message: impl Into<String>) -> Result<T, BloscError> {
    Err(BloscError(message.into()))
}

/// True if this build has the compressor.
pub fn has_compressor(name: &str) -> bool {
    let Ok(name) = CString::new(name) else {
        return false;
    };
    // SAFETY: `name` is a NUL-terminated string that lives through the call; the function reads it.
    unsafe { blosc_src::blosc_compname_to_compcode(name.as_ptr()) >= 0 }
}

/// Compresses `data` into one Blosc frame.
pub fn compress(data: &[u8], options: &Options) -> Result<Vec<u8>, BloscError> {
    let Ok(name) = CString::new(options.compressor.as_str()) else {
        return error("the compressor's name holds a zero byte");
    };
    if data.len() > MAX_INPUT {
        return error(format!(
            "Blosc takes at most {MAX_INPUT} bytes, not {}",
            data.len()
        ));
    }
    if options.level > 9 || options.type_size == 0 {
        return error("Blosc's level must be 0 to 9 and its type size at least 1");
    }
    let mut out = vec![0u8; data.len() + MAX_OVERHEAD];
    let shuffle = match options.shuffle {
        Shuffle::None => blosc_src::BLOSC_NOSHUFFLE,
        Shuffle::Byte => blosc_src::BLOSC_SHUFFLE,
        Shuffle::Bit => blosc_src::BLOSC_BITSHUFFLE,
    };
    // SAFETY: source and destination are valid for the lengths passed and do not overlap, the
    // name is NUL-terminated, and the context variant uses no global state.
    let written = unsafe {
        blosc_src::blosc_compress_ctx(
            i32::from(options.level),
            shuffle as i32,
            options.type_size,
            data.len(),
            data.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            CStr::as_ptr(&name),
            options.block_size,
            1,
        )
    };
    if written <= 0 {
        return error(format!(
            "Blosc could not compress with {:?}",
            options.compressor
        ));
    }
    out.truncate(written as usize);
    Ok(out)
}

/// The decoded size that a frame's header promises, after the header was validated.
pub fn decoded_len(frame: &[u8]) -> Result<usize, BloscError> {
    let mut len = 0usize;
    // SAFETY: the pointer is valid for `frame.len()` bytes, which bounds what the check reads.
    let status =
        unsafe { blosc_src::blosc_cbuffer_validate(frame.as_ptr().cast(), frame.len(), &mut len) };
    if status < 0 {
        error("the bytes are not a valid Blosc frame")
    } else {
        Ok(len)
    }
}

/// Decodes a frame into `out`, whose length must be the decoded size.
pub fn decompress(frame: &[u8], out: &mut [u8]) -> Result<(), BloscError> {
    let len = decoded_len(frame)?;
    if len != out.len() {
        return error(format!(
            "the Blosc frame holds {len} bytes where {} belong",
            out.len()
        ));
    }
    if len == 0 {
        return Ok(());
    }
    // SAFETY: the header was validated against `frame.len()` and promises exactly `out.len()`
    // bytes; the destination is valid for that length and does not overlap the source.
    let written = unsafe {
        blosc_src::blosc_decompress_ctx(
            frame.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            out.len(),
            1,
        )
    };
    if written < 0 || written as usize != out.len() {
        return error("the Blosc frame is corrupt");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(compressor: &str, shuffle: Shuffle) -> Options {
        Options {
            compressor: compressor.into(),
            level: 5,
            shuffle,
            type_size: 4,
            block_size: 0,
        }
    }

    #[test]
    fn frames_come_back() {
        let data: Vec<u8> = (0..100_000u32)
            .flat_map(|i| (i / 7).to_le_bytes())
            .collect();
        for compressor in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"] {
            assert!(has_compressor(compressor), "{compressor}");
            for shuffle in [Shuffle::None, Shuffle::Byte, Shuffle::Bit] {
                let frame = compress(&data, &options(compressor, shuffle)).unwrap();
                assert!(frame.len() < data.len());
                let mut back = vec![0; data.len()];
                decompress(&frame, &mut back).unwrap();
                assert!(back == data);
            }
        }
        assert!(!has_compressor("snappy-no"));
    }

    #[test]
    fn corrupt_frames_are_errors() {
        let data = vec![7u8; 5000];
        let frame = compress(&data, &options("zstd", Shuffle::Byte)).unwrap();
        let mut out = vec![0; 5000];
        assert!(decompress(&frame, &mut out[..4999]).is_err());
        assert!(decompress(&frame[..frame.len() - 3], &mut out).is_err());
        assert!(decompress(&[], &mut out).is_err());
        for i in 0..frame.len() {
            let mut bad = frame.clone();
            bad[i] ^= 0x55;
            // May succeed when the flipped bit does not matter; it must not crash.
            let _ = decompress(&bad, &mut out);
        }
    }
}
