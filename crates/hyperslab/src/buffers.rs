//! Large buffers that are used again instead of being given back to the system.
//!
//! A fresh buffer of some megabytes costs a page fault for every 4 KiB, and on a virtual machine
//! the memory behind them may have to be fetched from its host; both cost more than copying the
//! cells of a chunk. Invariant: idle buffers together hold at most [`MAX_IDLE`] bytes.

use std::ops::Range;
use std::sync::Mutex;

use bytes::Bytes;
use hyperslab_store::Body;

use crate::Result;

/// Bytes of idle buffers that are kept.
const MAX_IDLE: usize = 64 << 20;
/// Smaller buffers come fast enough from the allocator.
const MIN_KEPT: usize = 128 << 10;

static IDLE: Pool = Pool(Mutex::new(Vec::new()));

struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    fn take(&self, len: usize) -> Option<Vec<u8>> {
        if len < MIN_KEPT {
            return None;
        }
        let mut idle = self.0.lock().ok()?;
        let fits = |b: &Vec<u8>| b.capacity() >= len && b.capacity() / 2 <= len;
        // The one used last is the one that caches still know.
        let at = idle.iter().rposition(fits)?;
        let mut buffer = idle.remove(at);
        buffer.resize(len, 0);
        Some(buffer)
    }

    fn give(&self, buffer: Vec<u8>) {
        if buffer.capacity() < MIN_KEPT {
            return;
        }
        if let Ok(mut idle) = self.0.lock() {
            let held: usize = idle.iter().map(Vec::capacity).sum();
            if held + buffer.capacity() <= MAX_IDLE {
                idle.push(buffer);
            }
        }
    }
}

/// A buffer of `len` bytes with any content, for a caller that writes all of it.
pub(crate) fn take(len: usize) -> Vec<u8> {
    IDLE.take(len).unwrap_or_else(|| vec![0; len])
}

/// Takes a buffer back.
pub(crate) fn give(buffer: Vec<u8>) {
    IDLE.give(buffer);
}

/// Bytes whose buffer is taken back once the last holder is gone.
pub(crate) fn lend(buffer: Vec<u8>) -> Bytes {
    struct Lent(Vec<u8>);
    impl AsRef<[u8]> for Lent {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Lent {
        fn drop(&mut self) {
            give(std::mem::take(&mut self.0));
        }
    }
    if buffer.capacity() < MIN_KEPT {
        return buffer.into();
    }
    Bytes::from_owner(Lent(buffer))
}

/// A page of memory, and of the kernel's cache of files.
const PAGE: usize = 4096;

/// Nearer places in their pages than this make a copy slow.
const APART: usize = 256;

/// A place for bytes of files, away from the places in their pages of where they come from and where
/// they go.
///
/// Where source and destination lie less than 32 bytes apart in their pages, processors take the
/// one for the other and copy at a third of their speed; that is just where large allocations lie,
/// which start 16 bytes into a page.
#[derive(Debug, Default)]
pub(crate) struct Landing {
    buffer: Vec<u8>,
    held: Range<usize>,
}

impl Landing {
    pub(crate) const fn new() -> Self {
        Landing {
            buffer: Vec::new(),
            held: 0..0,
        }
    }

    /// Fills the place with `len` bytes from `offset` on, which are then copied to the address `to`,
    /// if that is known.
    pub(crate) fn read(
        &mut self,
        body: &Body,
        offset: u64,
        len: usize,
        to: Option<usize>,
    ) -> Result<()> {
        // What was in a buffer that only grows is overwritten: no time goes into zeroing it.
        if self.buffer.len() < len + 2 * PAGE {
            self.buffer.resize(len + 2 * PAGE, 0);
        }
        let shift = place(in_file(body, offset), to);
        let from = self.buffer.as_ptr().align_offset(PAGE).min(PAGE) + shift;
        self.held = from..from + len;
        body.read_at(offset, &mut self.buffer[self.held.clone()])
    }

    /// The bytes that were read last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.held.clone()]
    }
}

/// Where in its file a body's byte is; the pages of the kernel's cache begin where the file's do.
fn in_file(body: &Body, offset: u64) -> usize {
    match body {
        Body::File { range, .. } => (range.start + offset) as usize,
        Body::Memory(_) => 0,
    }
}

/// True if the kernel would be slow to copy a body's bytes from `offset` on to the address `to`: what it
/// writes lies a little behind what it reads next, as far as their places in pages tell.
pub(crate) fn collides(body: &Body, offset: u64, to: usize) -> bool {
    let behind = to.wrapping_sub(in_file(body, offset)) % PAGE;
    (1..APART).contains(&behind)
}

/// Where in its page a buffer between two others begins.
fn place(from: usize, to: Option<usize>) -> usize {
    let far = |place: usize| {
        to.is_none_or(|to| {
            let ahead = (place + PAGE - to % PAGE) % PAGE;
            ahead.min(PAGE - ahead) >= APART
        })
    };
    let half = (from + PAGE / 2) % PAGE;
    match far(half) {
        true => half,
        false => (from + PAGE / 4) % PAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_landing_lies_away_from_both_its_neighbours() {
        let distance = |a: usize, b: usize| {
            let ahead = (a + 2 * PAGE - b % PAGE) % PAGE;
            ahead.min(PAGE - ahead)
        };
        for from in (0..PAGE).step_by(61) {
            assert!(distance(place(from, None), from) >= APART);
            for to in (0..3 * PAGE).step_by(59) {
                let place = place(from, Some(to));
                assert!(distance(place, from) >= APART, "{from} {to}");
                assert!(distance(place, to) >= APART, "{from} {to}");
            }
        }
    }

    #[test]
    fn a_lent_buffer_lives_as_long_as_its_slices() {
        let mut buffer = take(MIN_KEPT);
        buffer.fill(7);
        let slice = lend(buffer).slice(10..20);
        let mut other = take(MIN_KEPT);
        other.fill(8);
        assert_eq!(&slice[..], [7; 10]);
    }

    #[test]
    fn a_buffer_is_used_again_with_the_length_asked_for() {
        let pool = Pool(Mutex::new(Vec::new()));
        let buffer = vec![7; 2 * MIN_KEPT];
        let at = buffer.as_ptr().addr();
        pool.give(buffer);
        assert!(pool.take(2 * MIN_KEPT + 1).is_none(), "too small");
        assert!(pool.take(MIN_KEPT - 1).is_none(), "far too large");
        let shorter = pool.take(2 * MIN_KEPT - 1).unwrap();
        assert_eq!(shorter, vec![7; 2 * MIN_KEPT - 1]);
        assert_eq!(shorter.as_ptr().addr(), at);
        assert!(pool.take(MIN_KEPT).is_none(), "taken");
    }

    #[test]
    fn bytes_land_half_a_page_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let cells: Vec<u8> = (0..50_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &cells).unwrap();
        let body = Body::File {
            file: std::fs::File::open(&path).unwrap().into(),
            range: 100..50_000,
        };
        let mut landing = Landing::new();
        for (offset, len) in [(0, 10), (5000, 40_000), (37, 0), (4095, 4096)] {
            landing.read(&body, offset as u64, len, None).unwrap();
            assert_eq!(landing.bytes(), &cells[100 + offset..100 + offset + len]);
            let apart = landing.bytes().as_ptr().addr() as isize - (100 + offset) as isize;
            assert_eq!(apart.rem_euclid(PAGE as isize), PAGE as isize / 2);
        }
        assert!(landing.read(&body, 49_000, 1000, None).is_err());
    }

    #[test]
    fn idle_buffers_are_bounded() {
        let pool = Pool(Mutex::new(Vec::new()));
        for _ in 0..100 {
            pool.give(Vec::with_capacity(8 << 20));
        }
        let held: usize = pool.0.lock().unwrap().iter().map(Vec::capacity).sum();
        assert!((MAX_IDLE / 2..=MAX_IDLE).contains(&held));
    }
}
