//! Damages HDF5 files in random ways and reads what is left of them: an error is an answer, a panic, a
//! hang or a vast allocation is a finding.
//!
//! Beside the benchmarks, since it needs files that h5py writes. Each round takes a file, changes some
//! bytes, puts it into a store in memory, walks it and reads every dataset. Everything follows from the
//! seed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyperslab::store::{Memory, Put, StoreRef};
use hyperslab::{Array, Error, Node, Options, Region, Result, Selection, Session, block_on};
use serde_json::{Value, json};

/// The file that is being read.
const CURRENT: &str = "current.bin";
/// A file that takes longer is a finding.
const PATIENCE: Duration = Duration::from_secs(10);
/// One allocation of more bytes is a finding.
const LARGEST: usize = 1 << 30;
/// Arrays with more cells, or more bytes, are read in part.
const MOST_CELLS: u64 = 1 << 18;
const MOST_BYTES: u64 = 16 << 20;

/// The system's allocator, which notes the largest piece that was asked for.
struct Noting;

static LARGEST_SEEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed on to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Noting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST_SEEN.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of the trait.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST_SEEN.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST_SEEN.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Noting = Noting;

/// A generator of numbers that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below.max(1) as u64) as usize
    }
}

/// Reads damaged copies of the files in a folder for so long; findings are kept beside them.
pub(crate) fn run(folder: &Path, seconds: u64, seed: u64) -> Result<Value> {
    let unreadable =
        |e: std::io::Error| Error::unavailable(format!("the folder is not readable: {e}"));
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "h5") {
            files.push(path);
        }
    }
    files.sort();
    let originals: Vec<Vec<u8>> = files
        .iter()
        .map(fs::read)
        .collect::<std::io::Result<_>>()
        .map_err(unreadable)?;
    if originals.is_empty() {
        return Err(Error::invalid("the folder has no files to damage"));
    }
    // What a panic says would drown the report.
    std::panic::set_hook(Box::new(|_| {}));
    let mut dice = Dice(seed);
    let started = Instant::now();
    let (mut rounds, mut opened, mut findings) = (0u64, 0u64, Vec::new());
    while started.elapsed() < Duration::from_secs(seconds) {
        let original = &originals[dice.roll(originals.len())];
        let damaged = damage(original, &originals, &mut dice);
        // What ends the process is found here.
        fs::write(folder.join(CURRENT), &damaged).map_err(unreadable)?;
        LARGEST_SEEN.store(0, Ordering::Relaxed);
        let what = match examine(damaged.clone()) {
            Outcome::Read(read) => {
                opened += u64::from(read);
                let largest = LARGEST_SEEN.load(Ordering::Relaxed);
                (largest > LARGEST).then(|| format!("an allocation of {largest} bytes"))
            }
            Outcome::Panicked(words) => Some(format!("a panic: {words}")),
            Outcome::Hung => Some("no answer".to_owned()),
        };
        if let Some(what) = what {
            let path = folder.join(format!("finding-{}.bin", findings.len()));
            fs::write(&path, &damaged).map_err(unreadable)?;
            findings.push(json!({"what": what, "file": path, "round": rounds}));
            if findings.len() >= 20 {
                break;
            }
        }
        rounds += 1;
    }
    let _ = fs::remove_file(folder.join(CURRENT));
    Ok(json!({"rounds": rounds, "opened": opened, "findings": findings}))
}

/// A copy with some bytes changed.
fn damage(original: &[u8], all: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..1 + dice.roll(12) {
        if bytes.is_empty() {
            return bytes;
        }
        let at = dice.roll(bytes.len());
        match dice.roll(8) {
            0 => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][dice.roll(5)],
            2 => bytes[at] = dice.roll(256) as u8,
            3 => {
                let values = [
                    0,
                    1,
                    u64::MAX,
                    u64::MAX - 1,
                    1 << 31,
                    1 << 32,
                    1 << 62,
                    at as u64,
                ];
                let value = values[dice.roll(values.len())].to_le_bytes();
                let end = bytes.len().min(at + [1, 2, 4, 8][dice.roll(4)]);
                bytes[at..end].copy_from_slice(&value[..end - at]);
            }
            // An address that leads somewhere else in the file.
            4 => {
                let to = (dice.roll(bytes.len()) as u64 & !7).to_le_bytes();
                let at = at & !7;
                if let Some(place) = bytes.get_mut(at..at + 8) {
                    place.copy_from_slice(&to);
                }
            }
            5 => {
                let from = dice.roll(bytes.len());
                let length = dice.roll(64).min(bytes.len() - at).min(bytes.len() - from);
                bytes.copy_within(from..from + length, at);
            }
            6 => {
                let other = &all[dice.roll(all.len())];
                let from = dice.roll(other.len().max(1));
                let length = dice.roll(256).min(bytes.len() - at).min(other.len() - from);
                bytes[at..at + length].copy_from_slice(&other[from..from + length]);
            }
            _ if dice.roll(8) == 0 => bytes.truncate(at),
            _ => bytes[at] = bytes[at].wrapping_add(1),
        }
    }
    bytes
}

enum Outcome {
    /// True if it could be opened.
    Read(bool),
    Panicked(String),
    Hung,
}

/// Reads a file on a thread of its own, which is left behind if it takes too long.
fn examine(bytes: Vec<u8>) -> Outcome {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let read = std::panic::catch_unwind(AssertUnwindSafe(|| read_all(bytes)));
        let _ = done.send(read.map(|read| read.is_ok()).map_err(words));
    });
    match wait.recv_timeout(PATIENCE) {
        Ok(Ok(read)) => Outcome::Read(read),
        Ok(Err(words)) => Outcome::Panicked(words),
        Err(_) => Outcome::Hung,
    }
}

fn words(panic: Box<dyn std::any::Any + Send>) -> String {
    match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => panic
            .downcast_ref::<&str>()
            .copied()
            .unwrap_or("?")
            .to_owned(),
    }
}

fn read_all(bytes: Vec<u8>) -> Result<()> {
    let session = Session::new(Options {
        memory: 64 << 20,
        hdf5_index_folder: None,
        ..Options::default()
    });
    let store: StoreRef = std::sync::Arc::new(Memory::new());
    session.mount("memory://fuzz", store.clone())?;
    block_on(async move {
        store
            .put("f.h5", vec![Bytes::from(bytes)], Put::Overwrite)
            .await?;
        let Node::Group(group) = session.open("memory://fuzz/f.h5").await? else {
            return Ok(());
        };
        for (_, node) in group.walk().await? {
            if let Node::Array(array) = node {
                // One dataset that fails says nothing of the others.
                let _ = read_one(&array).await;
            }
        }
        Ok(())
    })
}

async fn read_one(array: &Array) -> Result<()> {
    let shape = array.shape();
    let cell = array.dtype().cell_bytes().unwrap_or(1);
    if cell > MOST_BYTES {
        return Ok(());
    }
    let bytes = shape.num_cells().saturating_mul(cell);
    let selection = match shape.num_cells() <= MOST_CELLS && bytes <= MOST_BYTES {
        true => Selection::All,
        false => {
            let start: Vec<u64> = shape.iter().map(|side| side / 2).collect();
            let sides: Vec<u64> = shape.iter().map(|side| (*side).min(2)).collect();
            let start = start.iter().zip(&sides).zip(shape.iter());
            let start: Vec<u64> = start
                .map(|((start, side), whole)| (*start).min(whole - side))
                .collect();
            Selection::region(&Region::new(start, sides)?)
        }
    };
    match array.dtype().is_variable() {
        true => array.read_strings(&selection).await.map(drop),
        false => array.read(&selection).await.map(drop),
    }
}
