//! One file of the cache: some byte ranges of one state of one object.
//!
//! A file is written once under a temporary name and renamed, and never changed. All numbers are
//! little-endian:
//!
//! ```text
//! magic                8 bytes
//! length of the head   u32
//! CRC32C of the head   u32
//! head                 identity (32 bytes), size of the object u64, ETag and URL (u32 length and
//!                      text), number of ranges u32, and for each range, in order, its start u64,
//!                      its length u64 and a CRC32C (u32) of every 64 KiB of it
//! the bytes of the ranges, one after another
//! ```
//!
//! Invariant: bytes that [`Entry::read`] returns have the checksum they were written with; a file
//! that is torn, cut or changed anywhere is noticed before its bytes are used.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;

use super::Identity;

const MAGIC: [u8; 8] = *b"HSLABC01";
/// Magic, length and checksum of the head.
const FRONT: usize = 16;
/// Bytes that share a checksum: a small part of a long range is checked without reading all of it.
const BLOCK: usize = 64 << 10;
/// A longer head is not believed.
const MAX_HEAD: usize = 64 << 20;
/// What is read at first: most heads are shorter.
const FIRST_READ: usize = 4096;

/// The bytes of a range, as they arrived.
pub(crate) type Part = (u64, Vec<Bytes>);

/// What a file says that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) identity: Identity,
    /// The object's URL without options, for people.
    pub(crate) url: String,
    pub(crate) etag: String,
    /// Bytes of the whole object.
    pub(crate) size: u64,
    ranges: Vec<Stored>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    range: Range<u64>,
    /// Where its bytes begin in the file.
    at: u64,
    sums: Vec<u32>,
}

/// A file of the cache.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    pub(crate) head: Head,
    /// Bytes of the file.
    pub(crate) len: u64,
    /// When the store last said that the object has this ETag.
    pub(crate) checked: SystemTime,
    /// When its bytes were last used.
    pub(crate) used: SystemTime,
}

/// The front of a new file; the bytes of `parts`, which are sorted, disjoint and not empty, follow
/// it. `None` if they are not, or too many.
pub(super) fn front(
    identity: &Identity,
    url: &str,
    etag: &str,
    size: u64,
    parts: &[Part],
) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(identity);
    head.extend_from_slice(&size.to_le_bytes());
    for text in [etag, url] {
        head.extend_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
        head.extend_from_slice(text.as_bytes());
    }
    head.extend_from_slice(&u32::try_from(parts.len()).ok()?.to_le_bytes());
    let mut after = 0;
    for (start, segments) in parts {
        let len: u64 = segments.iter().map(|segment| segment.len() as u64).sum();
        if len == 0 || *start < after {
            return None;
        }
        after = start + len;
        head.extend_from_slice(&start.to_le_bytes());
        head.extend_from_slice(&len.to_le_bytes());
        for sum in checksums(segments) {
            head.extend_from_slice(&sum.to_le_bytes());
        }
    }
    if head.len() > MAX_HEAD {
        return None;
    }
    let mut front = MAGIC.to_vec();
    front.extend_from_slice(&u32::try_from(head.len()).ok()?.to_le_bytes());
    front.extend_from_slice(&crc32c::crc32c(&head).to_le_bytes());
    front.extend_from_slice(&head);
    Some(front)
}

/// A checksum of every block of the joined segments.
fn checksums(segments: &[Bytes]) -> Vec<u32> {
    let mut sums = Vec::new();
    let (mut sum, mut room) = (0, BLOCK);
    for segment in segments {
        let mut rest: &[u8] = segment;
        while !rest.is_empty() {
            let (now, after) = rest.split_at(rest.len().min(room));
            sum = crc32c::crc32c_append(sum, now);
            room -= now.len();
            if room == 0 {
                sums.push(sum);
                (sum, room) = (0, BLOCK);
            }
            rest = after;
        }
    }
    if room < BLOCK {
        sums.push(sum);
    }
    sums
}

impl Entry {
    /// Opens a file and reads its head. `None` if it is broken.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Entry>> {
        let file = File::open(path)?;
        let meta = file.metadata()?;
        let len = meta.len();
        let mut bytes = vec![0; FIRST_READ.min(usize::try_from(len).unwrap_or(FIRST_READ))];
        file.read_exact_at(&mut bytes, 0)?;
        let Some(head_len) = head_len(&bytes, len) else {
            return Ok(None);
        };
        let have = bytes.len();
        bytes.resize(FRONT + head_len, 0);
        if have < bytes.len() {
            file.read_exact_at(&mut bytes[have..], have as u64)?;
        }
        let modified = meta.modified()?;
        Ok(parse(&bytes, len).map(|head| Entry {
            path: path.to_owned(),
            head,
            len,
            checked: modified,
            used: meta.accessed().unwrap_or(modified).max(modified),
        }))
    }

    /// The ranges that it holds.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.head.ranges.iter().map(|stored| stored.range.clone())
    }

    /// True if it holds this byte.
    pub(crate) fn holds(&self, byte: u64) -> bool {
        self.stored(byte).is_some()
    }

    fn stored(&self, byte: u64) -> Option<&Stored> {
        let ranges = &self.head.ranges;
        let at = ranges.partition_point(|stored| stored.range.end <= byte);
        ranges.get(at).filter(|stored| stored.range.start <= byte)
    }

    /// The bytes from `range.start` on, as far as one stored range goes. `None` if it has no such
    /// byte; an error if what is stored is not what was written.
    pub(crate) fn read(&self, file: &File, range: &Range<u64>) -> io::Result<Option<Bytes>> {
        let Some(stored) = self.stored(range.start) else {
            return Ok(None);
        };
        let block = BLOCK as u64;
        let from = range.start - stored.range.start;
        let to = range.end.min(stored.range.end) - stored.range.start;
        let first = from / block;
        let whole = stored.range.end - stored.range.start;
        let until = (to.div_ceil(block) * block).min(whole);
        let mut bytes = vec![0; (until - first * block) as usize];
        file.read_exact_at(&mut bytes, stored.at + first * block)?;
        let sums = stored.sums.iter().skip(first as usize);
        if !bytes
            .chunks(BLOCK)
            .zip(sums)
            .all(|(bytes, sum)| crc32c::crc32c(bytes) == *sum)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a checksum of the cache differs",
            ));
        }
        let skipped = first * block;
        let wanted = (from - skipped) as usize..(to - skipped) as usize;
        Ok(Some(Bytes::from(bytes).slice(wanted)))
    }
}

/// The length of the head, if the front is one of ours.
fn head_len(bytes: &[u8], file_len: u64) -> Option<usize> {
    let mut front = Cursor(bytes);
    if front.take(MAGIC.len())? != MAGIC {
        return None;
    }
    let len = front.u32()? as usize;
    (len <= MAX_HEAD && (FRONT + len) as u64 <= file_len).then_some(len)
}

/// Takes the front of a file apart; `None` if anything about it is wrong.
fn parse(front: &[u8], file_len: u64) -> Option<Head> {
    let mut bytes = Cursor(front.get(12..)?);
    let sum = bytes.u32()?;
    if crc32c::crc32c(bytes.0) != sum {
        return None;
    }
    let identity: Identity = bytes.take(32)?.try_into().ok()?;
    let size = bytes.u64()?;
    let etag = bytes.text()?;
    let url = bytes.text()?;
    let mut at = front.len() as u64;
    let mut ranges: Vec<Stored> = Vec::new();
    for _ in 0..bytes.u32()? {
        let (start, len) = (bytes.u64()?, bytes.u64()?);
        let sorted = ranges.last().is_none_or(|last| last.range.end <= start);
        if len == 0 || !sorted {
            return None;
        }
        let end = start.checked_add(len).filter(|end| *end <= size)?;
        let blocks = usize::try_from(len.div_ceil(BLOCK as u64)).ok()?;
        let sums = bytes.take(blocks.checked_mul(4)?)?;
        let sums = sums.chunks_exact(4).map(|sum| Cursor(sum).u32());
        ranges.push(Stored {
            range: start..end,
            at,
            sums: sums.collect::<Option<_>>()?,
        });
        at = at.checked_add(len)?;
    }
    (bytes.0.is_empty() && at == file_len).then_some(Head {
        identity,
        url,
        etag,
        size,
        ranges,
    })
}

/// Reads numbers and texts one after another.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let len = self.u32()? as usize;
        String::from_utf8(self.take(len)?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(from: u64, len: usize) -> Bytes {
        (from..).take(len).map(|i| (i % 251) as u8).collect()
    }

    fn write(dir: &Path, parts: &[Part]) -> PathBuf {
        let mut bytes = front(&[7; 32], "s3://b/k", "\"e\"", 1 << 20, parts).unwrap();
        for (_, segments) in parts {
            segments.iter().for_each(|s| bytes.extend_from_slice(s));
        }
        let path = dir.join("entry");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn parts() -> Vec<Part> {
        vec![
            (0, vec![counting(0, 10)]),
            (
                1000,
                vec![counting(1000, 100_000), counting(101_000, 100_000)],
            ),
        ]
    }

    #[test]
    fn any_part_of_a_range_is_read_and_checked() {
        let dir = tempfile::tempdir().unwrap();
        let path = write(dir.path(), &parts());
        let entry = Entry::open(&path).unwrap().unwrap();
        assert_eq!(entry.head.etag, "\"e\"");
        assert_eq!(entry.ranges().collect::<Vec<_>>(), [0..10, 1000..201_000]);
        let file = File::open(&path).unwrap();
        for range in [
            0..10,
            3..4,
            1000..201_000,
            66_000..140_000,
            200_999..201_000,
        ] {
            let found = entry.read(&file, &range).unwrap().unwrap();
            assert_eq!(
                found,
                counting(range.start, (range.end - range.start) as usize)
            );
        }
        // As far as one range goes.
        assert_eq!(entry.read(&file, &(5..2000)).unwrap().unwrap().len(), 5);
        assert!(entry.read(&file, &(10..20)).unwrap().is_none());
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = write(
            dir.path(),
            &[(5, vec![counting(5, 300)]), (400, vec![counting(0, 9)])],
        );
        let good = std::fs::read(&path).unwrap();
        let all = |path: &Path| -> Option<Vec<Bytes>> {
            let entry = Entry::open(path).ok()??;
            let file = File::open(path).ok()?;
            let read = |range| entry.read(&file, &range).ok().flatten();
            entry.ranges().map(read).collect()
        };
        assert!(all(&path).is_some());
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bad).unwrap();
            assert!(all(&path).is_none(), "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert!(all(&path).is_none(), "cut at {at}");
        }
        std::fs::write(&path, [&good[..], &[0]].concat()).unwrap();
        assert!(all(&path).is_none(), "a byte too many");
    }
}
