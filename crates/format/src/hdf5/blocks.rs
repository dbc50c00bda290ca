//! The bytes of a file that have arrived, and those that a parser missed.
//!
//! Between the store and the parsers. Parsers are plain functions over bytes: where one needs bytes
//! that have not arrived, it fails, and what it missed is fetched before it runs again. So a parser
//! never waits, and the misses of many parsers (a thousand datasets, say) travel together.
//!
//! Invariant: bytes that were handed out never change. Parsers do not wait, so what one missed is
//! known to its thread alone, and many may use one file at a time.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use hdf5_reader::storage::{Storage, StorageBuffer};

use crate::{Error, Result};

/// Bytes that are fetched at a time, at least.
pub(crate) const BLOCK: u64 = 16 << 10;
/// Blocks at the beginning of a file that are never let go.
const KEPT: u64 = 4;
/// The longest structure that is read in one piece.
const LONGEST: u64 = 1 << 30;

/// What has arrived of a file. Addresses count from its superblock.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Where the superblock is: behind the user block, if there is one.
    base: u64,
    /// Bytes of the whole file.
    size: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    arrived: HashMap<u64, Bytes>,
    /// Blocks that came since somebody asked.
    fresh: u64,
}

/// What the parsers of one thread missed.
#[derive(Debug, Default)]
struct Missed {
    blocks: BTreeSet<u64>,
    /// How often something was missed.
    times: u64,
}

thread_local! {
    static MISSED: RefCell<Missed> = RefCell::default();
}

impl Blocks {
    pub(crate) fn new(size: u64) -> Self {
        Blocks {
            base: 0,
            size,
            state: Mutex::default(),
        }
    }

    /// Counts addresses from here on.
    pub(crate) fn set_base(&mut self, base: u64) {
        self.base = base;
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of the whole file, the user block included.
    pub(crate) fn file_size(&self) -> u64 {
        self.size
    }

    /// `length` bytes from an address on.
    pub(crate) fn get(&self, address: u64, length: u64) -> Result<Bytes> {
        let start = address.checked_add(self.base);
        let end = start.and_then(|start| start.checked_add(length));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(beyond(address, length));
        };
        if end > self.size || length > LONGEST {
            return Err(beyond(address, length));
        }
        if length == 0 {
            return Ok(Bytes::new());
        }
        let (first, last) = (start / BLOCK, (end - 1) / BLOCK);
        let state = self.lock();
        let missing: Vec<u64> = (first..=last)
            .filter(|block| !state.arrived.contains_key(block))
            .collect();
        if !missing.is_empty() {
            MISSED.with_borrow_mut(|missed| {
                missed.blocks.extend(missing);
                missed.times += 1;
            });
            return Err(Error::internal("bytes of the file have not arrived"));
        }
        let part = |block: u64| {
            let from = start.max(block * BLOCK) - block * BLOCK;
            let to = end.min((block + 1) * BLOCK) - block * BLOCK;
            state.arrived[&block].slice(from as usize..to as usize)
        };
        if first == last {
            return Ok(part(first));
        }
        let mut whole = Vec::with_capacity(length as usize);
        (first..=last).for_each(|block| whole.extend_from_slice(&part(block)));
        Ok(whole.into())
    }

    /// At most `length` bytes from an address on, as many as the file has.
    pub(crate) fn up_to(&self, address: u64, length: u64) -> Result<Bytes> {
        let end = self.size.saturating_sub(self.base);
        self.get(address, length.min(end.saturating_sub(address)))
    }

    /// How often something was missed on this thread.
    pub(crate) fn misses(&self) -> u64 {
        MISSED.with_borrow(|missed| missed.times)
    }

    /// Lets go of all but the first blocks if there are more than so many bytes; they can be fetched
    /// again.
    pub(crate) fn shrink(&self, most: u64) {
        let mut state = self.lock();
        if state.arrived.len() as u64 * BLOCK > most {
            state.arrived.retain(|block, _| *block < KEPT);
        }
    }

    /// All blocks that have arrived, sorted, if there are new ones since the last call.
    pub(crate) fn fresh(&self) -> Option<Vec<(u64, Bytes)>> {
        let mut state = self.lock();
        if std::mem::take(&mut state.fresh) == 0 {
            return None;
        }
        let blocks = state
            .arrived
            .iter()
            .map(|(block, bytes)| (*block, bytes.clone()));
        let mut blocks: Vec<(u64, Bytes)> = blocks.collect();
        drop(state);
        blocks.sort_by_key(|(block, _)| *block);
        Some(blocks)
    }

    /// Keeps blocks that had arrived in another life of this file.
    pub(crate) fn restore(&self, blocks: Vec<(u64, Bytes)>) {
        let mut state = self.lock();
        for (block, bytes) in blocks {
            let start = block.saturating_mul(BLOCK);
            let expected = self.size.saturating_sub(start).min(BLOCK);
            if bytes.len() as u64 == expected && expected > 0 {
                state.arrived.entry(block).or_insert(bytes);
            }
        }
        // What is kept already need not be kept again.
        state.fresh = 0;
    }

    /// Ranges of the file that were missed since the last call, sorted; neighbours are joined.
    pub(crate) fn take_missed(&self) -> Vec<Range<u64>> {
        let missed = MISSED.with_borrow_mut(|missed| std::mem::take(&mut missed.blocks));
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for block in missed {
            let range = block * BLOCK..((block + 1) * BLOCK).min(self.size);
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        ranges
    }

    /// Keeps bytes that have arrived for a range that [`Blocks::take_missed`] named.
    pub(crate) fn insert(&self, range: Range<u64>, bytes: &Bytes) -> Result<()> {
        if bytes.len() as u64 != range.end - range.start || !range.start.is_multiple_of(BLOCK) {
            return Err(Error::data("the file is shorter than it was"));
        }
        let mut state = self.lock();
        for start in (0..bytes.len()).step_by(BLOCK as usize) {
            let end = (start + BLOCK as usize).min(bytes.len());
            let block = range.start / BLOCK + start as u64 / BLOCK;
            // A block of its own, lest one small block hold all its neighbours in memory.
            let bytes = match bytes.len() as u64 <= 4 * BLOCK {
                true => bytes.slice(start..end),
                false => Bytes::copy_from_slice(&bytes[start..end]),
            };
            if state.arrived.insert(block, bytes).is_none() {
                state.fresh += 1;
            }
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn beyond(address: u64, length: u64) -> Error {
    Error::data(format!(
        "the file ends before the {length} bytes at address {address}"
    ))
    .with_hint("the file is truncated or damaged: fetch it again")
}

/// For the parsers of `hdf5-reader`.
impl Storage for Blocks {
    fn len(&self) -> u64 {
        self.size.saturating_sub(self.base)
    }

    fn read_range(&self, offset: u64, len: usize) -> hdf5_reader::error::Result<StorageBuffer> {
        match self.get(offset, len as u64) {
            Ok(bytes) => Ok(StorageBuffer::from_vec(bytes.to_vec())),
            Err(e) => Err(std::io::Error::other(e).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads until nothing is missed.
    fn read(blocks: &Blocks, file: &[u8], address: u64, length: u64) -> Result<Bytes> {
        loop {
            let result = blocks.get(address, length);
            let missed = blocks.take_missed();
            if missed.is_empty() {
                return result;
            }
            for range in missed {
                let bytes = Bytes::copy_from_slice(&file[range.start as usize..range.end as usize]);
                blocks.insert(range, &bytes)?;
            }
        }
    }

    #[test]
    fn bytes_are_those_of_the_file_whatever_the_blocks() {
        let file: Vec<u8> = (0..5 * BLOCK + 77).map(|i| (i % 251) as u8).collect();
        let base = 512;
        for (address, length) in [
            (0, 10),
            (BLOCK - 512 - 1, 2),
            (3, 4 * BLOCK),
            (5 * BLOCK + 76 - base, 1),
            (7, 0),
        ] {
            let mut blocks = Blocks::new(file.len() as u64);
            blocks.set_base(base);
            let start = (address + base) as usize;
            let got = read(&blocks, &file, address, length).unwrap();
            assert_eq!(got[..], file[start..start + length as usize]);
        }
    }

    #[test]
    fn what_lies_beyond_the_file_is_an_error_and_not_missed() {
        let mut blocks = Blocks::new(100);
        blocks.set_base(10);
        for (address, length) in [(0, 91), (90, 1), (u64::MAX, 1), (5, u64::MAX), (1 << 40, 8)] {
            assert!(blocks.get(address, length).is_err());
            assert!(blocks.take_missed().is_empty());
        }
    }

    #[test]
    fn neighbours_are_missed_together() {
        let blocks = Blocks::new(100 * BLOCK);
        assert!(blocks.get(0, 3 * BLOCK).is_err());
        assert!(blocks.get(10 * BLOCK + 5, 1).is_err());
        assert!(blocks.get(3 * BLOCK, 1).is_err());
        let expected = [0..4 * BLOCK, 10 * BLOCK..11 * BLOCK];
        assert_eq!(blocks.take_missed(), expected);
    }
}
