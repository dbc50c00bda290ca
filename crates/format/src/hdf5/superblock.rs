//! The superblock: where a file begins, how wide its addresses are, and where its root is.
//!
//! Section II of the file format.

use super::blocks::Blocks;
use super::cursor::{Cursor, Sizes};
use crate::{Error, Result};

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// Superblocks of all versions are shorter.
const LONGEST: u64 = 160;
/// The largest user block that is looked behind.
const LARGEST_USER_BLOCK: u64 = 1 << 30;

/// What the superblock says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) version: u8,
    pub(crate) sizes: Sizes,
    /// Address of the root group's object header.
    pub(crate) root: u64,
    /// Address of the object header with more messages about the file.
    pub(crate) extension: Option<u64>,
    /// How far the file reaches, from the superblock on.
    pub(crate) end: u64,
}

impl Superblock {
    /// What stands in its place before it is read.
    pub(crate) fn unknown() -> Self {
        Superblock {
            version: 0,
            sizes: Sizes {
                offset: 8,
                length: 8,
            },
            root: 0,
            extension: None,
            end: 0,
        }
    }
}

/// Looks for the superblock: at 0, or behind a user block of 512, 1024, 2048… bytes.
pub(crate) fn find(blocks: &Blocks) -> Result<u64> {
    let mut at = 0;
    loop {
        let bytes = blocks.up_to(at, SIGNATURE.len() as u64)?;
        if bytes[..] == SIGNATURE[..] {
            return Ok(at);
        }
        at = if at == 0 { 512 } else { 2 * at };
        if at >= blocks.file_size() || at > LARGEST_USER_BLOCK {
            return Err(
                Error::data("this is not an HDF5 file: it has no HDF5 signature")
                    .with_hint("check the path; netCDF-3 and HDF4 files are other formats"),
            );
        }
    }
}

/// Gives the superblock that a file begins with the checksum that it ought to have: HDF5 1.14 clears
/// flags in images of files, and leaves the checksum as it was. Versions that have none stay as they are.
pub fn seal(image: &mut [u8]) {
    // Signature, version, size of addresses, size of lengths, flags; four addresses; checksum.
    let (Some([2 | 3, offset]), true) = (image.get(8..10), image.starts_with(SIGNATURE)) else {
        return;
    };
    let end = 12 + 4 * usize::from(*offset);
    if let Some((bytes, rest)) = image.split_at_mut_checked(end)
        && let Some(stored) = rest.first_chunk_mut::<4>()
    {
        *stored = hdf5_reader::checksum::jenkins_lookup3(bytes).to_le_bytes();
    }
}

/// Parses the superblock, which is at address 0.
pub(crate) fn parse(blocks: &Blocks) -> Result<Superblock> {
    let bytes = blocks.up_to(0, LONGEST)?;
    let none = Sizes {
        offset: 8,
        length: 8,
    };
    let mut cursor = Cursor::new(&bytes, none);
    cursor.skip(SIGNATURE.len())?;
    let version = cursor.version(0..=3, "superblock")?;
    let superblock = match version {
        0 | 1 => old(cursor, version, &bytes)?,
        _ => new(cursor, version, &bytes)?,
    };
    // The end counts from the beginning of the file, also where addresses do not.
    let size = blocks.file_size();
    if superblock.end > size {
        return Err(Error::data(format!(
            "the file is truncated: {size} of {} bytes are there",
            superblock.end
        ))
        .with_hint("fetch it again, or wait until its writer has closed it"));
    }
    Ok(superblock)
}

fn sizes(cursor: &mut Cursor<'_>) -> Result<Sizes> {
    let (offset, length) = (cursor.u8()?, cursor.u8()?);
    for size in [offset, length] {
        if !matches!(size, 2 | 4 | 8 | 16 | 32) {
            return Err(Error::data(format!(
                "addresses or lengths of {size} bytes are not known"
            )));
        }
    }
    Ok(Sizes { offset, length })
}

fn old(mut cursor: Cursor<'_>, version: u8, bytes: &[u8]) -> Result<Superblock> {
    // Versions of free space, of the root entry and of shared headers.
    cursor.skip(4)?;
    let sizes = sizes(&mut cursor)?;
    // Ranks of group trees, consistency flags; from version 1 on also the rank of chunk trees.
    cursor.skip(1 + 2 + 2 + 4 + if version == 1 { 4 } else { 0 })?;
    let mut cursor = at(cursor, bytes, sizes)?;
    cursor.address()?;
    cursor.address()?;
    let end = cursor.defined("the end of the file")?;
    cursor.address()?;
    // The root group's symbol table entry.
    cursor.skip(usize::from(sizes.offset))?;
    let root = cursor.defined("the root group")?;
    Ok(Superblock {
        version,
        sizes,
        root,
        extension: None,
        end,
    })
}

fn new(mut cursor: Cursor<'_>, version: u8, bytes: &[u8]) -> Result<Superblock> {
    let sizes = sizes(&mut cursor)?;
    cursor.skip(1)?;
    let mut cursor = at(cursor, bytes, sizes)?;
    cursor.address()?;
    let extension = cursor.address()?;
    let end = cursor.defined("the end of the file")?;
    let root = cursor.defined("the root group")?;
    let length = cursor.position();
    let sum = cursor.u32()?;
    super::checksum(&bytes[..length], sum, "superblock")?;
    Ok(Superblock {
        version,
        sizes,
        root,
        extension,
        end,
    })
}

/// The same place, with the sizes that hold from here on.
fn at<'a>(cursor: Cursor<'_>, bytes: &'a [u8], sizes: Sizes) -> Result<Cursor<'a>> {
    let mut next = Cursor::new(bytes, sizes);
    next.skip(cursor.position())?;
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_is_sealed_and_others_are_left_alone() {
        let mut image = [SIGNATURE, &[3, 8, 8, 0][..], &[7; 32], &[0; 8]].concat();
        seal(&mut image);
        let stored = u32::from_le_bytes(image[44..48].try_into().unwrap());
        crate::hdf5::checksum(&image[..44], stored, "superblock").unwrap();
        assert_eq!(image[48..], [0; 4]);
        for other in [
            &b"\x89HDF\r\n\x1a\n\0"[..],
            &image[..46],
            b"",
            b"no file at all",
        ] {
            let mut same = other.to_vec();
            seal(&mut same);
            assert_eq!(same, other);
        }
    }
}
