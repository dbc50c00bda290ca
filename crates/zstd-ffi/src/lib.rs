//! Frames of zstd, decoded block by block into the buffer of the whole.
//!
//! Sits below the codecs, and is a crate of its own because it needs `unsafe`. The library decodes a
//! frame either at once or as a stream. At once, nothing can be used before all is there, when its
//! front has long left the core's cache; as a stream, the literals of a block are kept in two pieces,
//! which takes longer. Block by block has neither fault.
//!
//! Invariant: a decoder keeps no pointer into a caller's buffers between two calls, because each call
//! begins a frame anew.

#![allow(unsafe_code)]

mod header;

use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use zstd::zstd_safe::{get_error_name, zstd_sys};

use header::{Block, Frame, Kind};

/// Why a frame could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameError(&'static str);

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for FrameError {}

const CUT: FrameError = FrameError("the data end too early");
const CORRUPT: FrameError = FrameError("Data corruption detected");
const NO_ROOM: FrameError = FrameError("Destination buffer is too small");

/// How far a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the data that were used.
    pub read: usize,
    /// Bytes of the buffer that were filled.
    pub written: usize,
}

/// A decoder. It is costly to make (150 KiB) and meant to be kept.
pub struct BlockDecoder(NonNull<zstd_sys::ZSTD_DCtx>);

// SAFETY: a context may be used by any thread, one at a time.
unsafe impl Send for BlockDecoder {}

impl Drop for BlockDecoder {
    fn drop(&mut self) {
        // SAFETY: the context was created by `new`, and nobody else has it.
        unsafe { zstd_sys::ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

impl BlockDecoder {
    /// A decoder; `None` if there is no memory for it.
    pub fn new() -> Option<Self> {
        // SAFETY: it takes nothing.
        NonNull::new(unsafe { zstd_sys::ZSTD_createDCtx() }).map(Self)
    }

    /// Decodes the frame at the front of `data` into the front of `out`. After each block `enough` is
    /// called with all that is there so far; decoding ends early if it says so. `None`, and nothing is
    /// done, if this is not a frame that can be decoded by blocks: one with a checksum or with a
    /// dictionary, or none.
    pub fn decode<E: From<FrameError>>(
        &mut self,
        data: &[u8],
        out: &mut [u8],
        enough: &mut dyn FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<Option<Progress>, E> {
        let Some(frame) = Frame::parse(data) else {
            return Ok(None);
        };
        // SAFETY: the context is ours. This forgets all buffers of earlier calls.
        checked(unsafe { zstd_sys::ZSTD_decompressBegin(self.0.as_ptr()) })?;
        let mut at = Progress {
            read: frame.header_len,
            written: 0,
        };
        loop {
            let block = Block::parse(&data[at.read..]).ok_or(CUT)?;
            at.read += Block::HEADER;
            let body = data.get(at.read..at.read + block.stored()).ok_or(CUT)?;
            at.read += body.len();
            at.written += self.block(block, body, out, at.written)?;
            if enough(&out[..at.written])? {
                return Ok(Some(at));
            }
            if block.last {
                break;
            }
        }
        match frame.content.is_none_or(|len| len == at.written as u64) {
            true => Ok(Some(at)),
            false => Err(CORRUPT.into()),
        }
    }

    /// Decodes a block to `start` of the buffer, in front of which lies what came of the blocks before.
    fn block(
        &mut self,
        block: Block,
        body: &[u8],
        out: &mut [u8],
        start: usize,
    ) -> Result<usize, FrameError> {
        let room = &mut out[start..];
        match block.kind {
            // SAFETY: both buffers are valid for the lengths given. What was decoded before lies in
            // front of `room`, in the same buffer, borrowed by `decode` for as long as the context
            // may look there.
            Kind::Compressed => checked(unsafe {
                zstd_sys::ZSTD_decompressBlock(
                    self.0.as_ptr(),
                    room.as_mut_ptr().cast::<c_void>(),
                    room.len(),
                    body.as_ptr().cast::<c_void>(),
                    body.len(),
                )
            }),
            Kind::Raw | Kind::Repeated => {
                let room = room.get_mut(..block.size).ok_or(NO_ROOM)?;
                match body {
                    [one] if block.kind == Kind::Repeated => room.fill(*one),
                    _ => room.copy_from_slice(body),
                }
                // SAFETY: as above; the context only notes that the block is there.
                checked(unsafe {
                    zstd_sys::ZSTD_insertBlock(
                        self.0.as_ptr(),
                        room.as_ptr().cast::<c_void>(),
                        room.len(),
                    )
                })
            }
        }
    }
}

fn checked(code: usize) -> Result<usize, FrameError> {
    // SAFETY: it looks at a number.
    match unsafe { zstd_sys::ZSTD_isError(code) } {
        0 => Ok(code),
        _ => Err(FrameError(get_error_name(code))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zstd::zstd_safe::{CCtx, CParameter, compress_bound};

    use super::*;

    fn encode(data: &[u8], level: i32, checksum: bool, sized: bool) -> Vec<u8> {
        let mut context = CCtx::create();
        for parameter in [
            CParameter::CompressionLevel(level),
            CParameter::ChecksumFlag(checksum),
            CParameter::ContentSizeFlag(sized),
        ] {
            context.set_parameter(parameter).unwrap();
        }
        let mut out = Vec::with_capacity(compress_bound(data.len()));
        context.compress2(&mut out, data).unwrap();
        out
    }

    fn all(
        decoder: &mut BlockDecoder,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<Option<Progress>, FrameError> {
        decoder.decode(data, out, &mut |_| Ok(false))
    }

    /// Stretches that compress, that do not, and that are all the same.
    fn stretches() -> impl Strategy<Value = Vec<u8>> {
        let stretch = (0..3_u8, 1..200_000_usize, any::<u32>()).prop_map(|(kind, len, seed)| {
            let mut state = u64::from(seed) | 1;
            let mut random = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            };
            match kind {
                0 => vec![random(); len],
                1 => (0..len).map(|_| random()).collect(),
                _ => (0..len).map(|_| random() % 5).collect::<Vec<u8>>(),
            }
        });
        prop::collection::vec(stretch, 0..5).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn blocks_decode_to_what_was_encoded(
            whole in stretches(),
            level in prop::sample::select(vec![-5, 1, 3, 9, 19]),
            sized in any::<bool>(),
            behind in 0..300_000_usize,
            cut in any::<prop::sample::Index>(),
        ) {
            let mut decoder = BlockDecoder::new().unwrap();
            let encoded = encode(&whole, level, false, sized);
            let followed = [&encoded[..], b"more"].concat();
            let mut out = vec![7; whole.len() + behind];
            let mut seen = 0;
            let got = decoder.decode(&followed, &mut out, &mut |so_far| {
                assert!(so_far.len() >= seen && so_far == &whole[..so_far.len()]);
                seen = so_far.len();
                Ok::<_, FrameError>(false)
            });
            let end = Progress { read: encoded.len(), written: whole.len() };
            prop_assert_eq!(got, Ok(Some(end)));
            prop_assert_eq!(seen, whole.len());
            // Cut short or without room it is an error, and the decoder serves as before.
            let short = cut.index(encoded.len());
            let shortened = all(&mut decoder, &encoded[..short], &mut out);
            prop_assert!(matches!(shortened, Err(_) | Ok(None)));
            if !whole.is_empty() {
                prop_assert!(all(&mut decoder, &encoded, &mut out[..whole.len() - 1]).is_err());
            }
            prop_assert_eq!(all(&mut decoder, &encoded, &mut out), Ok(Some(end)));
            prop_assert!(out[..whole.len()] == whole);
        }

        #[test]
        fn spoilt_frames_are_bounded(
            whole in stretches(),
            spoilt in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut encoded = encode(&whole, 1, false, true);
            for (at, byte) in spoilt {
                let at = at.index(encoded.len());
                encoded[at] = byte;
            }
            let mut out = vec![0; whole.len()];
            let mut decoder = BlockDecoder::new().unwrap();
            if let Ok(Some(at)) = all(&mut decoder, &encoded, &mut out) {
                prop_assert!(at.read <= encoded.len() && at.written <= out.len());
            }
        }
    }

    #[test]
    fn frames_with_a_checksum_are_left_to_others() {
        let mut decoder = BlockDecoder::new().unwrap();
        let mut out = [0; 100];
        let checked = encode(&[1; 100], 1, true, true);
        assert_eq!(all(&mut decoder, &checked, &mut out), Ok(None));
        assert_eq!(
            all(&mut decoder, b"not a frame of zstd", &mut out),
            Ok(None)
        );
        assert_eq!(all(&mut decoder, b"", &mut out), Ok(None));
    }

    #[test]
    fn enough_is_enough() {
        let whole: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
        let encoded = encode(&whole, 1, false, true);
        let mut out = vec![0; whole.len()];
        let mut decoder = BlockDecoder::new().unwrap();
        let got = decoder.decode(&encoded, &mut out, &mut |so_far| {
            Ok::<_, FrameError>(so_far.len() >= 10)
        });
        let at = got.unwrap().unwrap();
        assert!((10..=131_072).contains(&at.written) && at.read < encoded.len());
        assert_eq!(out[..at.written], whole[..at.written]);
    }
}
