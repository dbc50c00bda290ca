//! The compression libraries behind the filters, with one context per thread.
//!
//! Contexts are costly to make (zstd's decoder alone is 150 KiB) and not shareable, so each
//! thread keeps its own.

use std::cell::{Cell, RefCell};

use hyperslab_index::{Error, Result};
use hyperslab_zstd_ffi::{BlockDecoder, FrameError, Progress};
use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};
use zstd::zstd_safe::{self, CParameter, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use super::filter::too_large;

struct Contexts {
    deflate: Option<(i32, Compressor)>,
    inflate: Decompressor,
    zstd: zstd_safe::CCtx<'static>,
    unzstd: DCtx<'static>,
    /// For decoding block by block.
    blocks: Option<BlockDecoder>,
    /// For decoding what has no blocks for the other.
    stepwise: Option<DCtx<'static>>,
}

thread_local! {
    static CONTEXTS: RefCell<Contexts> = RefCell::new(Contexts {
        deflate: None,
        inflate: Decompressor::new(),
        zstd: zstd_safe::CCtx::create(),
        unzstd: DCtx::create(),
        blocks: None,
        stepwise: None,
    });
}

fn with_deflate<T>(level: i32, run: impl FnOnce(&mut Compressor) -> Result<T>) -> Result<T> {
    // zlib's default level is 6 and is spelled -1.
    let level = if level < 0 { 6 } else { level };
    CONTEXTS.with_borrow_mut(|contexts| {
        if contexts.deflate.as_ref().is_none_or(|(l, _)| *l != level) {
            let parsed = CompressionLvl::new(level)
                .map_err(|_| Error::invalid(format!("deflate has no level {level}")))?;
            contexts.deflate = Some((level, Compressor::new(parsed)));
        }
        match &mut contexts.deflate {
            Some((_, compressor)) => run(compressor),
            None => Err(Error::internal("the deflate context is missing")),
        }
    })
}

pub(super) fn gzip(data: &[u8], level: i32) -> Result<Vec<u8>> {
    with_deflate(level, |c| {
        let mut out = vec![0; c.gzip_compress_bound(data.len())];
        let n = c
            .gzip_compress(data, &mut out)
            .map_err(|_| no_room("gzip"))?;
        out.truncate(n);
        Ok(out)
    })
}

pub(super) fn zlib(data: &[u8], level: i32) -> Result<Vec<u8>> {
    with_deflate(level, |c| {
        let mut out = vec![0; c.zlib_compress_bound(data.len())];
        let n = c
            .zlib_compress(data, &mut out)
            .map_err(|_| no_room("zlib"))?;
        out.truncate(n);
        Ok(out)
    })
}

pub(super) fn gunzip(data: &[u8], out: &mut [u8]) -> Result<usize> {
    CONTEXTS
        .with_borrow_mut(|c| c.inflate.gzip_decompress(data, out))
        .map_err(|e| inflate_error("gzip", e, out.len()))
}

pub(super) fn unzlib(data: &[u8], out: &mut [u8]) -> Result<usize> {
    CONTEXTS
        .with_borrow_mut(|c| c.inflate.zlib_decompress(data, out))
        .map_err(|e| inflate_error("zlib", e, out.len()))
}

/// The decoded size that a gzip member states (modulo 4 GiB) in its last four bytes.
pub(super) fn gzip_len(data: &[u8]) -> Option<usize> {
    data.last_chunk::<4>()
        .map(|b| u32::from_le_bytes(*b) as usize)
}

pub(super) fn zstd(data: &[u8], level: i32, checksum: bool) -> Result<Vec<u8>> {
    CONTEXTS.with_borrow_mut(|c| {
        let fail = |code| Error::internal(format!("zstd: {}", zstd_safe::get_error_name(code)));
        c.zstd
            .set_parameter(CParameter::CompressionLevel(level))
            .map_err(fail)?;
        c.zstd
            .set_parameter(CParameter::ChecksumFlag(checksum))
            .map_err(fail)?;
        let mut out = Vec::with_capacity(zstd_safe::compress_bound(data.len()));
        c.zstd.compress2(&mut out, data).map_err(fail)?;
        Ok(out)
    })
}

pub(super) fn unzstd(data: &[u8], out: &mut [u8]) -> Result<usize> {
    CONTEXTS
        .with_borrow_mut(|c| c.unzstd.decompress(out, data))
        .map_err(|code| Error::data(format!("zstd: {}", zstd_safe::get_error_name(code))))
}

/// Bytes of a zstd frame that are decoded at a time: what comes of them stays in a core's cache.
const STEP: usize = 96 << 10;

/// Decodes into the front of `out` and returns how many bytes it wrote. From time to time `done` is
/// called with all that is there so far.
pub(super) fn unzstd_in_steps(
    data: &[u8],
    out: &mut [u8],
    done: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<usize> {
    unzstd_until(data, out, STEP, &mut |so_far| done(so_far).map(|()| false))
}

/// Decodes the front of a frame, at least `enough` bytes of it, if the frame says how many there are of
/// all and has no checksum, which only all of them would show to be right; false if it does not, and
/// nothing is decoded.
pub(super) fn unzstd_front(data: &[u8], out: &mut [u8], enough: usize) -> Result<bool> {
    /// Of the descriptor of a frame, which follows four bytes of signature.
    const CHECKSUM: u8 = 1 << 2;
    let checked = data.get(4).is_none_or(|flags| flags & CHECKSUM != 0);
    if checked || zstd_len(data) != Some(out.len()) {
        return Ok(false);
    }
    let written = unzstd_until(
        data,
        out,
        STEP / 4,
        &mut |so_far| Ok(so_far.len() >= enough),
    )?;
    match written >= enough {
        true => Ok(true),
        false => Err(Error::data("zstd: the data end too early")),
    }
}

/// Decodes until `enough`, called with all that is there so far, says so: block by block where the
/// first frame allows it, by steps of so many bytes of data where it does not.
fn unzstd_until(
    data: &[u8],
    out: &mut [u8],
    step: usize,
    enough: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<usize> {
    let fail = |code| Error::data(format!("zstd: {}", zstd_safe::get_error_name(code)));
    CONTEXTS.with_borrow_mut(|c| {
        let stopped = Cell::new(false);
        let mut enough = |so_far: &[u8]| {
            stopped.set(enough(so_far)?);
            Ok(stopped.get())
        };
        if c.blocks.is_none() {
            c.blocks = BlockDecoder::new();
        }
        let by_blocks = match &mut c.blocks {
            Some(decoder) => decoder
                .decode(data, out, &mut |so_far| {
                    enough(so_far).map_err(Interrupted::Caller)
                })
                .map_err(Interrupted::into_error)?,
            None => None,
        };
        let Progress { read, mut written } = match by_blocks {
            Some(progress) => progress,
            None => {
                let context = c.stepwise.get_or_insert_with(DCtx::create);
                unzstd_stream(context, data, out, step, &mut enough)?
            }
        };
        // There may be more frames; few writers make any.
        if !stopped.get() && read < data.len() {
            let rest = c.unzstd.decompress(&mut out[written..], &data[read..]);
            written += rest.map_err(fail)?;
            enough(&out[..written])?;
        }
        Ok(written)
    })
}

/// Why block by block came to no end.
enum Interrupted {
    Frame(FrameError),
    Caller(Error),
}

impl From<FrameError> for Interrupted {
    fn from(error: FrameError) -> Self {
        Interrupted::Frame(error)
    }
}

impl Interrupted {
    fn into_error(self) -> Error {
        match self {
            Interrupted::Frame(error) => Error::data(format!("zstd: {error}")),
            Interrupted::Caller(error) => error,
        }
    }
}

/// Decodes the first frame as a stream that comes by steps of so many bytes.
fn unzstd_stream(
    context: &mut DCtx<'static>,
    data: &[u8],
    out: &mut [u8],
    step: usize,
    enough: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<Progress> {
    let fail = |code| Error::data(format!("zstd: {}", zstd_safe::get_error_name(code)));
    context.reset(ResetDirective::SessionOnly).map_err(fail)?;
    // Matches are looked up in `out` itself, so nothing is copied on the way.
    context
        .set_parameter(DParameter::StableOutBuffer(true))
        .map_err(fail)?;
    let (mut read, mut written) = (0, 0);
    loop {
        let end = data.len().min(read + step);
        let mut input = InBuffer::around(&data[..end]);
        input.set_pos(read);
        let mut output = OutBuffer::around_pos(&mut *out, written);
        let more = context
            .decompress_stream(&mut output, &mut input)
            .map_err(fail)?;
        let before = (read, written);
        (read, written) = (input.pos(), output.pos());
        if enough(&out[..written])? || more == 0 {
            return Ok(Progress { read, written });
        }
        if (read, written) == before {
            return Err(match written < out.len() {
                true => Error::data("zstd: the data end too early"),
                false => too_large("zstd", written + 1, out.len()),
            });
        }
    }
}

/// The decoded size that a zstd frame states, if it does.
pub(super) fn zstd_len(data: &[u8]) -> Option<usize> {
    zstd_safe::get_frame_content_size(data)
        .ok()
        .flatten()
        .and_then(|n| usize::try_from(n).ok())
}

/// One LZ4 block behind its decoded size, as numcodecs has it.
pub(super) fn lz4(data: &[u8]) -> Result<Vec<u8>> {
    let size = i32::try_from(data.len())
        .map_err(|_| Error::invalid("lz4 takes at most 2 GiB at a time"))?;
    let block = lz4_flex::block::compress(data);
    Ok([&size.to_le_bytes()[..], &block].concat())
}

pub(super) fn lz4_len(data: &[u8]) -> Option<usize> {
    data.first_chunk::<4>()
        .and_then(|b| usize::try_from(i32::from_le_bytes(*b)).ok())
}

pub(super) fn unlz4(data: &[u8], out: &mut [u8]) -> Result<usize> {
    let len = lz4_len(data).ok_or_else(|| Error::data("the lz4 block has no valid header"))?;
    let limit = out.len();
    let out = out
        .get_mut(..len)
        .ok_or_else(|| too_large("lz4", len, limit))?;
    match lz4_flex::block::decompress_into(&data[4..], out) {
        Ok(n) if n == len => Ok(n),
        Ok(n) => Err(Error::data(format!(
            "the lz4 block holds {n} bytes, its header says {len}"
        ))),
        Err(e) => Err(Error::data(format!("lz4: {e}"))),
    }
}

/// One LZ4 block by itself.
pub(super) fn unlz4_block(data: &[u8], out: &mut [u8]) -> Result<usize> {
    lz4_flex::block::decompress_into(data, out).map_err(|e| Error::data(format!("lz4: {e}")))
}

fn inflate_error(name: &str, e: DecompressionError, limit: usize) -> Error {
    match e {
        DecompressionError::BadData => {
            Error::data(format!("the {name} data is corrupt or cut short"))
        }
        DecompressionError::InsufficientSpace => Error::data(format!(
            "{name} decodes to more than the {limit} bytes that belong here"
        )),
    }
}

fn no_room(name: &str) -> Error {
    Error::internal(format!("{name} needs more room than it said"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes of which some repeat and some do not.
    fn some_bytes(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u8
        };
        (0..len)
            .map(|i| {
                if i / 1000 % 3 == 0 {
                    (i / 7) as u8
                } else {
                    next()
                }
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_front_of_zstd_is_that_of_all(
            whole in prop::collection::vec(0..4_u8, 1..400_000),
            at in 0.0..1.0_f64,
        ) {
            let encoded = zstd(&whole, 1, false).unwrap();
            let enough = 1 + (at * (whole.len() - 1) as f64) as usize;
            let mut out = vec![9; whole.len()];
            prop_assert!(unzstd_front(&encoded, &mut out, enough).unwrap());
            prop_assert_eq!(&out[..enough], &whole[..enough]);
            // One with a checksum is for those who read all of it, as is one of another size.
            let checked = zstd(&whole, 1, true).unwrap();
            prop_assert!(!unzstd_front(&checked, &mut out, enough).unwrap());
            prop_assert!(!unzstd_front(&encoded, &mut out[1..], enough).unwrap());
            // What is cut off before the wanted bytes is an error.
            let cut = &encoded[..encoded.len().min(12)];
            prop_assert!(!matches!(unzstd_front(cut, &mut out, whole.len()), Ok(true)));
        }

        #[test]
        fn zstd_decodes_in_steps_as_at_once(
            len in 0..700_000_usize,
            seed in any::<u64>(),
            frames in 1..3_usize,
            cut in any::<prop::sample::Index>(),
        ) {
            let data = some_bytes(len, seed);
            let encoded = zstd(&data, 1, seed % 2 == 0).unwrap().repeat(frames);
            let whole = data.repeat(frames);
            let mut out = vec![0; whole.len()];
            let mut seen = 0;
            let written = unzstd_in_steps(&encoded, &mut out, &mut |so_far| {
                assert!(so_far.len() >= seen && so_far == &whole[..so_far.len()]);
                seen = so_far.len();
                Ok(())
            });
            prop_assert_eq!((written.unwrap(), seen), (whole.len(), whole.len()));
            prop_assert!(out == whole);
            // Cut short, or with too little room, it is an error, and the next one is not spoiled.
            let end = cut.index(encoded.len());
            if frames == 1 {
                prop_assert!(unzstd_in_steps(&encoded[..end], &mut out, &mut |_| Ok(())).is_err());
            }
            if !whole.is_empty() {
                let less = whole.len() - 1;
                prop_assert!(unzstd_in_steps(&encoded, &mut out[..less], &mut |_| Ok(())).is_err());
            }
            prop_assert_eq!(unzstd_in_steps(&encoded, &mut out, &mut |_| Ok(())).unwrap(), whole.len());
        }
    }
}
