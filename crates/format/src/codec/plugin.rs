//! The filters of HDF5: those of the library, and registered plug-ins.
//!
//! Beside the filters of Zarr, of which some are the same. Those that only HDF5 has are decoded here
//! and never written.

use hyperslab_blosc_ffi as blosc;
use hyperslab_index::{Error, Result};

use super::bitshuffle::{self, Inner};
use super::filter::{Filter, too_large};
use super::{blosc2, compress, lzf};

/// A filter that only HDF5 has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plugin {
    /// Its data is what it was: it only rounds.
    Identity,
    Szip(Vec<u32>),
    NBit(Vec<u32>),
    ScaleOffset(Vec<u32>),
    Lzf,
    /// Blocks of LZ4 behind their sizes.
    Lz4,
    Blosc2,
    Bitshuffle {
        width: usize,
        block: usize,
        inner: Inner,
    },
}

/// Names of registered filters that are not decoded here, for people who look for them.
const OTHERS: [(u16, &str); 21] = [
    (305, "LZO"),
    (307, "BZIP2"),
    (32002, "MAFISC"),
    (32003, "Snappy"),
    (32006, "APAX"),
    (32007, "CBF"),
    (32009, "SPDP"),
    (32010, "LPC-Rice"),
    (32011, "CCSDS-123"),
    (32012, "JPEG-LS"),
    (32013, "ZFP"),
    (32014, "FPZIP"),
    (32016, "B3D"),
    (32017, "SZ"),
    (32018, "FCIDECOMP"),
    (32019, "JPEG"),
    (32020, "VBZ"),
    (32021, "FAPEC"),
    (32024, "SZ3"),
    (32025, "Delta-Rice"),
    (32027, "FLAC"),
];

impl Filter {
    /// A filter of HDF5's, by its number, its name in the file and its values.
    pub(crate) fn from_hdf5(id: u16, name: &str, values: &[u32], cell: usize) -> Result<Filter> {
        let value = |i: usize| values.get(i).copied().unwrap_or(0);
        let plugin = match id {
            1 => {
                return Ok(Filter::Zlib {
                    level: value(0).min(9) as i32,
                });
            }
            2 => {
                let width = match value(0) {
                    0 => cell,
                    width => width as usize,
                };
                return Ok(Filter::Shuffle {
                    width: width.max(1),
                });
            }
            3 => return Ok(Filter::Fletcher32),
            4 => Plugin::Szip(values.to_vec()),
            5 => Plugin::NBit(values.to_vec()),
            6 => Plugin::ScaleOffset(values.to_vec()),
            32000 => Plugin::Lzf,
            // Frames of Blosc say themselves how they were made.
            32001 => {
                return Ok(Filter::Blosc(blosc::Options {
                    compressor: "lz4".to_owned(),
                    level: 5,
                    shuffle: blosc::Shuffle::Byte,
                    type_size: cell.clamp(1, 255),
                    block_size: 0,
                }));
            }
            32004 => Plugin::Lz4,
            32008 => Plugin::Bitshuffle {
                width: (value(2) as usize).max(1),
                block: value(3) as usize,
                inner: match value(4) {
                    0 => Inner::Plain,
                    2 => Inner::Lz4,
                    3 => Inner::Zstd,
                    other => {
                        return Err(Error::data(format!(
                            "bitshuffle has a compressor {other} that is not known"
                        )));
                    }
                },
            },
            32015 => {
                return Ok(Filter::Zstd {
                    level: value(0).min(22) as i32,
                    checksum: false,
                });
            }
            32022 | 32023 => Plugin::Identity,
            32026 => Plugin::Blosc2,
            other => return Err(unknown(other, name)),
        };
        Ok(Filter::Plugin(plugin))
    }
}

/// A filter of HDF5's by itself, for those who have chunks of their own.
#[derive(Debug, Clone)]
pub struct HdfFilter(Filter);

/// Bytes that a chunk has at most when it is decoded.
const LARGEST: usize = 1 << 32;

impl HdfFilter {
    /// The filter of this number with its values.
    pub fn new(id: u16, values: &[u32]) -> Result<HdfFilter> {
        let width = match id {
            // Where Blosc keeps the size of elements.
            32001 => values.get(2).copied().unwrap_or(1),
            _ => 1,
        };
        let mut filter = Filter::from_hdf5(id, "", values, width.max(1) as usize)?;
        if let Filter::Blosc(options) = &mut filter {
            let value = |i: usize, otherwise: u32| values.get(i).copied().unwrap_or(otherwise);
            options.level = value(4, 5).min(9) as u8;
            options.shuffle = match value(5, 1) {
                0 => blosc::Shuffle::None,
                2 => blosc::Shuffle::Bit,
                _ => blosc::Shuffle::Byte,
            };
            let names = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
            let name = names.get(value(6, 0) as usize).copied().unwrap_or("lz4");
            options.compressor = name.to_owned();
        }
        Ok(HdfFilter(filter))
    }

    /// True if chunks can be written with the filter of this number.
    pub fn can_encode(id: u16) -> bool {
        matches!(id, 1..=3 | 32000 | 32001 | 32004 | 32008 | 32015)
    }

    /// Encodes a chunk.
    pub fn encode(&self, data: &[u8]) -> Result<Vec<u8>> {
        match &self.0 {
            Filter::Plugin(Plugin::Lzf) => Ok(lzf::encode(data)),
            Filter::Plugin(Plugin::Lz4) => Ok(lz4_blocks(data)),
            Filter::Plugin(Plugin::Bitshuffle {
                width,
                block,
                inner,
            }) => bitshuffle::encode(data, *width, *block, *inner),
            Filter::Plugin(_) => Err(Error::invalid("this filter is only decoded")),
            filter => filter.encode(data),
        }
    }

    /// Decodes a chunk of any size.
    pub fn decode(&self, data: &[u8]) -> Result<Vec<u8>> {
        let mut room = data.len().saturating_mul(8).max(1 << 16);
        loop {
            let mut out = vec![0; room];
            match self.0.decode(data, &mut out) {
                Ok(length) => {
                    out.truncate(length);
                    return Ok(out);
                }
                Err(e) if room >= LARGEST => return Err(e),
                Err(_) => room = room.saturating_mul(8).min(LARGEST),
            }
        }
    }
}

fn unknown(id: u16, name: &str) -> Error {
    let registered = OTHERS.iter().find(|(other, _)| *other == id);
    let shown = match (registered, name) {
        (Some((_, registered)), _) => format!("{id} ({registered})"),
        (None, "") => id.to_string(),
        (None, name) => format!("{id} ({name})"),
    };
    Error::data(format!("the HDF5 filter {shown} is not supported")).with_hint(
        "h5py with hdf5plugin may read it; h5repack can write the file with another filter",
    )
}

impl Plugin {
    /// Decodes `data` into the front of `out`; returns how many bytes it wrote.
    pub(super) fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<usize> {
        use hdf5_reader::filters;
        let limit = out.len();
        let decoded = match self {
            Plugin::Identity => return put(data, out),
            Plugin::Lzf => return lzf::decode(data, out),
            Plugin::Lz4 => return lz4(data, out),
            Plugin::Blosc2 => return blosc2::decode(data, out),
            Plugin::Bitshuffle {
                width,
                block,
                inner,
            } => return bitshuffle::decode(data, out, *width, *block, *inner),
            Plugin::Szip(values) => filters::szip::decompress_with_limit(data, values, limit),
            Plugin::NBit(values) => filters::nbit::decompress_with_limit(data, values, limit),
            Plugin::ScaleOffset(values) => {
                filters::scaleoffset::decompress_with_limit(data, values, limit)
            }
        };
        let decoded = decoded.map_err(|e| Error::data(e.to_string()))?;
        put(&decoded, out)
    }
}

fn put(data: &[u8], out: &mut [u8]) -> Result<usize> {
    let limit = out.len();
    out.get_mut(..data.len())
        .ok_or_else(|| too_large("the filter", data.len(), limit))?
        .copy_from_slice(data);
    Ok(data.len())
}

/// All bytes and those of a block, big-endian, then blocks behind their sizes. A block that has its
/// full size is not compressed.
fn lz4(data: &[u8], out: &mut [u8]) -> Result<usize> {
    let cut = || Error::data("the lz4 data is cut short");
    let (total, rest) = data.split_first_chunk::<8>().ok_or_else(cut)?;
    let (block, mut rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let total = usize::try_from(u64::from_be_bytes(*total)).map_err(|_| cut())?;
    let block = u32::from_be_bytes(*block) as usize;
    let limit = out.len();
    let out = out
        .get_mut(..total)
        .ok_or_else(|| too_large("lz4", total, limit))?;
    if block == 0 && total > 0 {
        return Err(Error::data("the lz4 data has blocks of no bytes"));
    }
    for part in out.chunks_mut(block.max(1)) {
        let (size, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let size = u32::from_be_bytes(*size) as usize;
        let (stored, after) = after.split_at_checked(size).ok_or_else(cut)?;
        rest = after;
        if size == part.len() {
            part.copy_from_slice(stored);
        } else if compress::unlz4_block(stored, part)? != part.len() {
            return Err(Error::data("a block of lz4 is shorter than it should be"));
        }
    }
    Ok(total)
}

/// Bytes of a block of LZ4, where the filter of HDF5 has its own choice.
const LZ4_BLOCK: usize = 1 << 30;

/// The same the other way.
fn lz4_blocks(data: &[u8]) -> Vec<u8> {
    let block = data.len().clamp(1, LZ4_BLOCK);
    let mut out = (data.len() as u64).to_be_bytes().to_vec();
    out.extend((block as u32).to_be_bytes());
    for part in data.chunks(block) {
        let packed = lz4_flex::block::compress(part);
        let stored = if packed.len() < part.len() {
            &packed
        } else {
            part
        };
        out.extend((stored.len() as u32).to_be_bytes());
        out.extend_from_slice(stored);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_come_back() {
        let data: Vec<u8> = (0..5003u32).map(|i| (i / 9 % 17) as u8).collect();
        for (id, values) in [
            (32000, &[4, 0x105, 5003][..]),
            (32001, &[2, 2, 4, 5003, 5, 1, 1]),
            (32004, &[0]),
            (32008, &[0, 4, 4, 0, 0]),
            (32008, &[0, 4, 4, 64, 2]),
            (32008, &[0, 4, 4, 64, 3]),
            (32015, &[3]),
        ] {
            let filter = HdfFilter::new(id, values).unwrap();
            assert!(HdfFilter::can_encode(id));
            let encoded = filter.encode(&data).unwrap();
            assert_eq!(filter.decode(&encoded).unwrap(), data, "{id} {values:?}");
        }
    }

    #[test]
    fn blocks_of_lz4_are_put_together() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i / 7) as u8).collect();
        let mut stored = 1000u64.to_be_bytes().to_vec();
        stored.extend(300u32.to_be_bytes());
        for (i, part) in data.chunks(300).enumerate() {
            let packed = match i {
                1 => part.to_vec(),
                _ => lz4_flex::block::compress(part),
            };
            stored.extend((packed.len() as u32).to_be_bytes());
            stored.extend(packed);
        }
        let mut out = vec![0; 1001];
        assert_eq!(lz4(&stored, &mut out).unwrap(), 1000);
        assert_eq!(out[..1000], data);
        assert!(lz4(&stored, &mut out[..999]).is_err());
        for length in 0..stored.len() {
            assert!(lz4(&stored[..length], &mut out).is_err());
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        let e = Filter::from_hdf5(32013, "", &[], 4).unwrap_err();
        assert!(e.message().contains("32013 (ZFP)"), "{e}");
        let e = Filter::from_hdf5(400, "mine", &[], 4).unwrap_err();
        assert!(e.message().contains("400 (mine)"), "{e}");
    }
}
