//! Codecs from bytes to bytes: compressors, checksums, shuffles.
//!
//! Each encodes a slice into a fresh vector and decodes a slice into a slice that the caller has
//! sized. Invariant: decoding never writes more than the destination holds, and a decoded size
//! other than the one the chunk must have is an error.

use hyperslab_blosc_ffi as blosc;
use hyperslab_index::{Error, Result};
use serde_json::{Value, json};

use super::compress;
use super::plugin::Plugin;

/// A codec from bytes to bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filter {
    Gzip {
        level: i32,
    },
    Zlib {
        level: i32,
    },
    Zstd {
        level: i32,
        checksum: bool,
    },
    Lz4,
    Blosc(blosc::Options),
    Crc32c,
    Fletcher32,
    Shuffle {
        width: usize,
    },
    /// A filter that only HDF5 files have.
    Plugin(Plugin),
}

impl Filter {
    /// Parses a codec of a Zarr v3 array; `None` if the name is not one of ours.
    pub(crate) fn from_v3(name: &str, config: &Value, cell_bytes: usize) -> Result<Option<Self>> {
        let level = |default| int(config, "level", default, name);
        Ok(Some(match name {
            "gzip" | "numcodecs.gzip" => Filter::Gzip {
                level: level(5)?.clamp(0, 12),
            },
            "zlib" | "numcodecs.zlib" => Filter::Zlib {
                level: level(1)?.clamp(-1, 12),
            },
            "zstd" | "numcodecs.zstd" => {
                let checksum = config
                    .get("checksum")
                    .and_then(Value::as_bool)
                    .unwrap_or(false);
                Filter::Zstd {
                    level: level(0)?.clamp(-7, 22),
                    checksum,
                }
            }
            "numcodecs.lz4" => Filter::Lz4,
            "crc32c" | "numcodecs.crc32c" => Filter::Crc32c,
            "numcodecs.fletcher32" => Filter::Fletcher32,
            "shuffle" | "numcodecs.shuffle" => {
                let width = int(config, "elementsize", 4, name)?;
                Filter::Shuffle {
                    width: positive(width, "elementsize", name)?,
                }
            }
            "blosc" | "numcodecs.blosc" => blosc_filter(config, cell_bytes, name)?,
            _ => return Ok(None),
        }))
    }

    /// Parses a filter or compressor of a Zarr v2 array.
    pub(crate) fn from_v2(config: &Value, cell_bytes: usize) -> Result<Self> {
        let id = config.get("id").and_then(Value::as_str).unwrap_or("?");
        let known = match id {
            "lz4" => Some(Filter::Lz4),
            "fletcher32" => Some(Filter::Fletcher32),
            _ => Self::from_v3(id, config, cell_bytes)?,
        };
        known.ok_or_else(|| super::unknown_codec(id))
    }

    /// The largest encoded size of `len` bytes, and whether every input of that size has it.
    pub(crate) fn encoded_len(&self, len: u64) -> (u64, bool) {
        match self {
            Filter::Crc32c | Filter::Fletcher32 => (len + 4, true),
            Filter::Shuffle { .. } => (len, true),
            // Every compressor here expands by less than a sixteenth and a header.
            _ => (len + len / 16 + 1024, false),
        }
    }

    /// Encodes `data`.
    pub(crate) fn encode(&self, data: &[u8]) -> Result<Vec<u8>> {
        match self {
            Filter::Gzip { level } => compress::gzip(data, *level),
            Filter::Zlib { level } => compress::zlib(data, *level),
            Filter::Zstd { level, checksum } => compress::zstd(data, *level, *checksum),
            Filter::Lz4 => compress::lz4(data),
            Filter::Blosc(options) => blosc::compress(data, options)
                .map_err(|e| Error::invalid(format!("blosc: {e}")).with_source(e)),
            Filter::Crc32c => Ok([data, &crc32c::crc32c(data).to_le_bytes()].concat()),
            Filter::Fletcher32 => Ok([data, &fletcher32(data).to_le_bytes()].concat()),
            Filter::Shuffle { width } => {
                let mut out = vec![0; data.len()];
                shuffle(data, &mut out, *width);
                Ok(out)
            }
            Filter::Plugin(_) => Err(Error::invalid(
                "filters that only HDF5 has are read and not written",
            )),
        }
    }

    /// Decodes `data` into the front of `out` and returns how many bytes it wrote.
    pub(crate) fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<usize> {
        match self {
            Filter::Gzip { .. } => compress::gunzip(data, out),
            Filter::Zlib { .. } => compress::unzlib(data, out),
            Filter::Zstd { .. } => compress::unzstd(data, out),
            Filter::Lz4 => compress::unlz4(data, out),
            Filter::Blosc(_) => {
                let fail = |e: blosc::BloscError| Error::data(format!("blosc: {e}"));
                let len = blosc::decoded_len(data).map_err(fail)?;
                let limit = out.len();
                let out = out
                    .get_mut(..len)
                    .ok_or_else(|| too_large("blosc", len, limit))?;
                blosc::decompress(data, out).map_err(fail)?;
                Ok(len)
            }
            Filter::Crc32c => checked_tail(data, out, "crc32c", |body| {
                crc32c::crc32c(body).to_le_bytes()
            }),
            Filter::Fletcher32 => checked_tail(data, out, "fletcher32", |body| {
                fletcher32(body).to_le_bytes()
            }),
            Filter::Shuffle { width } => {
                let limit = out.len();
                let out = out
                    .get_mut(..data.len())
                    .ok_or_else(|| too_large("shuffle", data.len(), limit))?;
                unshuffle(data, out, *width);
                Ok(data.len())
            }
            Filter::Plugin(plugin) => plugin.decode(data, out),
        }
    }

    /// How many bytes decoding may make when nothing but the encoded bytes is known (strings of
    /// variable length): what the frame says of itself, within `limit`.
    pub(crate) fn decoded_guess(&self, data: &[u8], limit: usize) -> Result<usize> {
        let guess = match self {
            Filter::Crc32c | Filter::Fletcher32 => data.len().saturating_sub(4),
            Filter::Shuffle { .. } => data.len(),
            Filter::Blosc(_) => {
                blosc::decoded_len(data).map_err(|e| Error::data(format!("blosc: {e}")))?
            }
            Filter::Lz4 => compress::lz4_len(data).unwrap_or(0),
            Filter::Zstd { .. } => compress::zstd_len(data).unwrap_or(limit),
            Filter::Gzip { .. } => compress::gzip_len(data).unwrap_or(limit),
            Filter::Zlib { .. } | Filter::Plugin(_) => limit,
        };
        if guess > limit {
            Err(too_large("the codec", guess, limit))
        } else {
            Ok(guess)
        }
    }
}

pub(crate) fn too_large(codec: &str, len: usize, limit: usize) -> Error {
    Error::data(format!(
        "{codec} decodes to {len} bytes where at most {limit} belong"
    ))
}

fn int(config: &Value, key: &str, default: i64, name: &str) -> Result<i32> {
    match config.get(key) {
        None | Some(Value::Null) => Ok(default as i32),
        Some(v) => v
            .as_i64()
            .and_then(|v| i32::try_from(v).ok())
            .ok_or_else(|| {
                Error::data(format!(
                    "the codec {name} has {key} = {v}, which is not a small integer"
                ))
            }),
    }
}

fn positive(value: i32, key: &str, name: &str) -> Result<usize> {
    usize::try_from(value)
        .ok()
        .filter(|v| *v > 0)
        .ok_or_else(|| {
            Error::data(format!(
                "the codec {name} has {key} = {value}, which must be positive"
            ))
        })
}

fn blosc_filter(config: &Value, cell_bytes: usize, name: &str) -> Result<Filter> {
    let compressor = config
        .get("cname")
        .and_then(Value::as_str)
        .unwrap_or("lz4")
        .to_owned();
    if !blosc::has_compressor(&compressor) {
        return Err(
            Error::data(format!("blosc's compressor {compressor:?} is not known"))
                .with_hint("blosclz, lz4, lz4hc, zlib and zstd are"),
        );
    }
    let type_size = match int(config, "typesize", 0, name)? {
        0 => cell_bytes,
        n => positive(n, "typesize", name)?,
    };
    // Blosc takes type sizes up to 255 and treats longer cells as bytes.
    let type_size = if type_size > 255 { 1 } else { type_size.max(1) };
    let shuffle = match config.get("shuffle") {
        Some(Value::String(s)) if s == "noshuffle" => blosc::Shuffle::None,
        Some(Value::String(s)) if s == "bitshuffle" => blosc::Shuffle::Bit,
        Some(Value::String(s)) if s == "shuffle" => blosc::Shuffle::Byte,
        None => blosc::Shuffle::Byte,
        Some(v) => match v.as_i64() {
            Some(0) => blosc::Shuffle::None,
            Some(1) => blosc::Shuffle::Byte,
            Some(2) => blosc::Shuffle::Bit,
            // numcodecs' AUTOSHUFFLE: bits for bytes, bytes for wider cells.
            Some(-1) if type_size == 1 => blosc::Shuffle::Bit,
            Some(-1) => blosc::Shuffle::Byte,
            _ => return Err(Error::data(format!("blosc's shuffle {v} is not known"))),
        },
    };
    let level = int(config, "clevel", 5, name)?;
    if !(0..=9).contains(&level) {
        return Err(Error::data(format!(
            "blosc's clevel {level} is outside 0..=9"
        )));
    }
    let block_size = int(config, "blocksize", 0, name)?.max(0) as usize;
    Ok(Filter::Blosc(blosc::Options {
        compressor,
        level: level as u8,
        shuffle,
        type_size,
        block_size,
    }))
}

fn checked_tail(
    data: &[u8],
    out: &mut [u8],
    name: &str,
    sum: impl Fn(&[u8]) -> [u8; 4],
) -> Result<usize> {
    let Some((body, tail)) = data.split_last_chunk::<4>() else {
        return Err(Error::data(format!(
            "the bytes are too few for their {name} checksum"
        )));
    };
    if sum(body) != *tail {
        return Err(Error::data(format!("the {name} checksum does not match")));
    }
    let limit = out.len();
    out.get_mut(..body.len())
        .ok_or_else(|| too_large(name, body.len(), limit))?
        .copy_from_slice(body);
    Ok(body.len())
}

/// HDF5's Fletcher-32 over big-endian 16-bit words, as numcodecs has it.
fn fletcher32(data: &[u8]) -> u32 {
    let (mut a, mut b) = (0u32, 0u32);
    let fold = |x: u32| (x & 0xffff) + (x >> 16);
    // 360 words are as many as 32 bits take before the sums must be folded.
    for block in data.chunks(720) {
        for pair in block.chunks(2) {
            let word = u32::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u32::from);
            a += word;
            b += a;
        }
        (a, b) = (fold(a), fold(b));
    }
    (a, b) = (fold(a), fold(b));
    b << 16 | a
}

fn shuffle(data: &[u8], out: &mut [u8], width: usize) {
    let n = data.len() / width;
    for (i, cell) in data.chunks_exact(width).enumerate() {
        for (j, byte) in cell.iter().enumerate() {
            out[j * n + i] = *byte;
        }
    }
    out[n * width..].copy_from_slice(&data[n * width..]);
}

pub(super) fn unshuffle(data: &[u8], out: &mut [u8], width: usize) {
    let n = data.len() / width;
    match width {
        // The widths that matter, with the inner loop unrolled by the compiler.
        2 => unshuffle_fixed::<2>(data, out, n),
        4 => unshuffle_fixed::<4>(data, out, n),
        8 => unshuffle_fixed::<8>(data, out, n),
        _ => {
            for (i, cell) in out.chunks_exact_mut(width).enumerate() {
                for (j, byte) in cell.iter_mut().enumerate() {
                    *byte = data[j * n + i];
                }
            }
        }
    }
    out[n * width..].copy_from_slice(&data[n * width..]);
}

fn unshuffle_fixed<const W: usize>(data: &[u8], out: &mut [u8], n: usize) {
    if n == 0 {
        return;
    }
    let mut planes = [&data[..0]; W];
    for (plane, bytes) in planes.iter_mut().zip(data.chunks_exact(n)) {
        *plane = bytes;
    }
    for (i, cell) in out.as_chunks_mut::<W>().0.iter_mut().enumerate() {
        for (byte, plane) in cell.iter_mut().zip(planes) {
            *byte = plane[i];
        }
    }
}

/// The configuration of a codec as new arrays write it.
pub(crate) fn v3_json(name: &str, config: Value) -> Value {
    if config.as_object().is_some_and(|m| m.is_empty()) {
        json!({"name": name})
    } else {
        json!({"name": name, "configuration": config})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<Filter> {
        [
            ("gzip", json!({"level": 1})),
            ("zlib", json!({"level": 9})),
            ("zstd", json!({"level": 3, "checksum": true})),
            ("numcodecs.lz4", json!({})),
            ("crc32c", json!({})),
            ("numcodecs.fletcher32", json!({})),
            ("shuffle", json!({"elementsize": 2})),
            ("shuffle", json!({"elementsize": 4})),
            ("shuffle", json!({"elementsize": 8})),
            ("shuffle", json!({"elementsize": 3})),
            (
                "blosc",
                json!({"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle", "typesize": 4}),
            ),
        ]
        .into_iter()
        .map(|(name, config)| Filter::from_v3(name, &config, 4).unwrap().unwrap())
        .collect()
    }

    proptest! {
        #[test]
        fn bytes_come_back(data in prop::collection::vec(any::<u8>(), 0..3000), repeat in 1usize..40) {
            let data = data.repeat(repeat);
            for filter in all() {
                let encoded = filter.encode(&data).unwrap();
                let (bound, exact) = filter.encoded_len(data.len() as u64);
                prop_assert!(encoded.len() as u64 <= bound, "{filter:?}");
                prop_assert!(!exact || encoded.len() as u64 == bound);
                let mut out = vec![0; data.len() + 1];
                let n = filter.decode(&encoded, &mut out).unwrap();
                prop_assert!(out[..n] == data[..], "{filter:?}");
                prop_assert!(filter.decoded_guess(&encoded, 1 << 20).unwrap() >= n);
                if !data.is_empty() {
                    prop_assert!(filter.decode(&encoded, &mut out[..n - 1]).is_err(), "{filter:?} overran");
                }
            }
        }

        #[test]
        fn corruption_never_panics(data in prop::collection::vec(any::<u8>(), 1..500), at in any::<usize>(), flip in 1u8..) {
            for filter in all() {
                let mut encoded = filter.encode(&data).unwrap();
                let at = at % encoded.len();
                encoded[at] ^= flip;
                let mut out = vec![0; data.len()];
                let _ = filter.decode(&encoded, &mut out);
                let _ = filter.decode(&encoded[..at], &mut out);
            }
        }
    }

    #[test]
    fn the_shuffle_is_the_textbook_one() {
        let mut out = [0; 7];
        shuffle(&[1, 2, 3, 4, 5, 6, 7], &mut out, 3);
        assert_eq!(out, [1, 4, 2, 5, 3, 6, 7]);
    }
}
