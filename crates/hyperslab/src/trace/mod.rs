//! What was read: every process writes down which selections of which arrays it read, and when.
//!
//! Beside the executor, which reports every read (`read`). Layouts are tuned from these traces.
//!
//! A process writes to a file of its own, so that no two wait for each other; [`Trace`] reads files
//! and whole folders of them, and writes many as one. Invariant: tracing never makes a read fail or
//! wait for the disk for longer than it takes to append to a file; a trace of a killed process can
//! be read up to its last second.

mod file;
mod record;

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hyperslab_index::{Hyperslab, Points, Region, Selection};

pub use file::Trace;
use record::{MAGIC, Read, Record};

use crate::array::State;
use crate::{Array, Error, Result};

/// The ending of the names of traces.
const EXTENSION: &str = "trace";
/// Bytes that are held before they are written.
const HELD: usize = 64 << 10;
/// For how long at most records are held while others follow.
const HELD_FOR: Duration = Duration::from_secs(1);

/// A process that read something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    /// The name of its machine.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// When it first read something: microseconds since 1970.
    pub started: u64,
}

/// An array that was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TracedArray {
    /// Where it is, without options or credentials.
    pub url: String,
    /// Bytes of a cell; 0 where cells differ.
    pub cell_bytes: u64,
    /// Its shape when it was read.
    pub shape: Vec<u64>,
    /// The shape of what was fetched whole: chunks, or inner chunks of shards.
    pub chunks: Vec<u64>,
}

/// The cells that a read asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Chosen {
    /// All of them.
    All,
    /// A hyperslab.
    Slab(Hyperslab),
    /// Points, the coordinates of one after those of another.
    Points {
        /// How many coordinates a point has.
        rank: usize,
        /// All coordinates.
        coordinates: Vec<u64>,
    },
    /// Too many to write down, or an irregular union: so many cells in this box.
    Around {
        /// The smallest box around them; `None` if there are none.
        region: Option<Region>,
        /// How many.
        cells: u64,
    },
}

/// One read of one array.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// Who read.
    pub process: Arc<Process>,
    /// What was read.
    pub array: Arc<TracedArray>,
    /// When it began: microseconds since 1970.
    pub at: u64,
    /// How long the read took of which this is a part, in microseconds.
    pub took: u64,
    /// Which cells.
    pub chosen: Chosen,
}

impl Access {
    /// The smallest box around the cells; `None` if there are none.
    pub fn region(&self) -> Option<Region> {
        let whole = || Region::new(vec![0; self.array.shape.len()], &self.array.shape).ok();
        let region = match &self.chosen {
            Chosen::All => whole()?,
            Chosen::Slab(slab) => slab.bounding()?,
            Chosen::Points { rank, coordinates } => {
                Points::new(*rank, coordinates.clone()).ok()?.bounding()?
            }
            Chosen::Around { region, .. } => region.clone()?,
        };
        (!region.is_empty()).then_some(region)
    }

    /// How many cells were asked for.
    pub fn cells(&self) -> u64 {
        match &self.chosen {
            Chosen::All => self.array.shape.iter().product(),
            Chosen::Slab(slab) => slab.num_cells(),
            Chosen::Points { rank, coordinates } => (coordinates.len() / (*rank).max(1)) as u64,
            Chosen::Around { cells, .. } => *cells,
        }
    }
}

/// Writes down the reads of this process.
#[derive(Debug)]
pub(crate) struct Tracer {
    folder: PathBuf,
    /// What is written to, with the process that opened it: a forked child has a file of its own.
    output: Mutex<Option<(u32, Output)>>,
}

impl Tracer {
    /// Traces go to files in this folder, which is made if need be.
    pub(crate) fn new(folder: &Path) -> Tracer {
        Tracer {
            folder: folder.to_owned(),
            output: Mutex::new(None),
        }
    }

    /// Notes a read that is done. What goes wrong is said once, and ends the trace.
    pub(crate) fn note(&self, reads: &[(Array, Arc<State>, Selection)], began: SystemTime) {
        let at = micros(began);
        let took = began.elapsed().unwrap_or_default().as_micros() as u64;
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if !matches!(&*output, Some((owner, _)) if *owner == process) {
            let opened = Output::open(&self.folder, process).unwrap_or_else(|e| {
                tracing::warn!("reads are not traced: {e}");
                Output::nowhere()
            });
            // What a parent process held is the parent's to write.
            *output = Some((process, opened));
        }
        let Some((_, output)) = &mut *output else {
            return;
        };
        for (array, state, selection) in reads {
            output.note(array, state, selection, (at, took));
        }
        output.flush_if(output.held.len() >= HELD || output.since.elapsed() >= HELD_FOR);
    }

    /// Writes what is held.
    pub(crate) fn flush(&self) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((owner, output)) = &mut *output
            && *owner == std::process::id()
        {
            output.flush_if(true);
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A file that is written.
#[derive(Debug)]
struct Output {
    /// `None` once something went wrong.
    file: Option<File>,
    held: Vec<u8>,
    since: Instant,
    last: u64,
    /// Numbers of arrays that were written down, by URL, with their shapes.
    arrays: HashMap<String, (u64, Vec<u64>)>,
    next: u64,
}

impl Output {
    fn nowhere() -> Output {
        Output {
            file: None,
            held: Vec::new(),
            since: Instant::now(),
            last: 0,
            arrays: HashMap::new(),
            next: 0,
        }
    }

    fn open(folder: &Path, pid: u32) -> Result<Output> {
        let failed = |e: std::io::Error| {
            Error::unavailable(format!("{} cannot be written: {e}", folder.display()))
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let host = host();
        let started = micros(SystemTime::now());
        let path = folder.join(format!("{host}-{pid}-{started}.{EXTENSION}"));
        let file = File::create_new(path).map_err(failed)?;
        let mut output = Output {
            file: Some(file),
            held: MAGIC.to_vec(),
            ..Output::nowhere()
        };
        let process = Process { host, pid, started };
        Record::Process(process).write(&mut output.last, &mut output.held);
        Ok(output)
    }

    fn note(&mut self, array: &Array, state: &State, selection: &Selection, time: (u64, u64)) {
        if self.file.is_none() {
            return;
        }
        let (url, shape) = (array.url(), &state.meta.shape[..]);
        let number = match self.arrays.get(url) {
            Some((number, known)) if known == shape => *number,
            // New, or resized since.
            _ => {
                let number = self.next;
                self.next += 1;
                let known = (number, shape.to_vec());
                self.arrays.insert(url.to_owned(), known);
                let traced = TracedArray {
                    url: without_options(url).to_owned(),
                    cell_bytes: state.meta.dtype.cell_bytes().unwrap_or(0),
                    shape: shape.to_vec(),
                    chunks: state
                        .meta
                        .unit()
                        .map(|(unit, _)| unit.to_vec())
                        .unwrap_or_default(),
                };
                Record::Array(traced).write(&mut self.last, &mut self.held);
                number
            }
        };
        let read = Read {
            process: 0,
            array: number,
            at: time.0,
            took: time.1,
            chosen: Chosen::of(selection, &state.meta.shape),
        };
        Record::Read(read).write(&mut self.last, &mut self.held);
    }

    fn flush_if(&mut self, wanted: bool) {
        let Some(file) = self.file.as_mut().filter(|_| wanted) else {
            return;
        };
        if let Err(e) = file.write_all(&self.held) {
            tracing::warn!("reads are not traced any more: {e}");
            self.file = None;
        }
        self.held.clear();
        self.since = Instant::now();
    }
}

/// A URL without what stands behind a question mark, where credentials may be.
fn without_options(url: &str) -> &str {
    url.split_once('?').map_or(url, |(bare, _)| bare)
}

fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// The name of this machine.
fn host() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    name.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}
