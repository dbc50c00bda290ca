//! How much memory a rechunk takes: what the plan may use, and what is said if that is too little.
//!
//! Besides boxes there are chunks on their way: the session's executors bound those of remote stores
//! by its memory, those of local files by the number of cores.

use hyperslab_index::Error;

use super::RechunkOptions;
use super::journal::Record;
use super::plan::{Plan, Problem, SLAB_COPIES, Stage};
use crate::text::size;
use crate::{Array, Result};

/// Strings are taken for so many bytes: what a short one takes in memory with its handle.
const STRING: u64 = 96;
/// What a core holds of a raw local file while it reads.
const WINDOW: u64 = 256 << 10;
/// The part of the memory that the session's executors may use.
const SHARE: u64 = 4;

/// Memory for the executors of reads and writes.
pub(super) fn session_share(options: &RechunkOptions) -> u64 {
    (options.memory.saturating_sub(options.overhead) / SHARE).max(1)
}

/// What a rechunk needs.
pub(super) struct Needs {
    pub(super) problem: Problem,
    flight: Flight,
    limit: u64,
    overhead: u64,
}

/// Chunks on their way.
struct Flight {
    /// Both sides are local files.
    local: bool,
    cores: u64,
    /// Bytes of what is decoded by itself of the source; of its files, what a core holds at a time.
    unit: u64,
    window: u64,
    /// Bytes of what is written at a time.
    object: u64,
}

impl Flight {
    /// Bytes that they take beside boxes, if the session's share is this.
    fn bytes(&self, share: u64) -> u64 {
        // Encoded and decoded; gathered and encoded.
        let (unit, object) = (self.unit.saturating_mul(2), self.object.saturating_mul(2));
        if !self.local {
            return share.max(unit).max(object);
        }
        // Chunks at the border are written by two tasks for each core; all are held to the session's
        // memory, but for one.
        let writing = object.saturating_mul(2 * self.cores).min(share.max(object));
        let reading = self.window.min(unit).saturating_mul(self.cores);
        reading.saturating_add(writing)
    }
}

impl Needs {
    pub(super) async fn of(from: &Array, to: &Array, options: &RechunkOptions) -> Result<Self> {
        let (source, target) = (from.ready().await?, to.state());
        let (reads_files, writes_files) = (from.inner().open.lazy, to.inner().open.lazy);
        let meta = &source.meta;
        let cell = meta.dtype.cell_bytes().unwrap_or(STRING);
        let bytes_of = |shape: &[u64]| shape.iter().fold(cell, |n, s| n.saturating_mul(*s));
        // Of a local shard whole inner chunks are read, whatever their codecs.
        let is_raw = match (&source.file, meta.codecs.sharding()) {
            _ if source.mosaic.is_some() => false,
            (Some(_), _) => source.has_raw_units(),
            (None, Some(_)) => false,
            (None, None) => source.has_raw_units() && meta.codecs.is_raw(),
        };
        let local = reads_files && writes_files;
        let stays_local = match &options.temp {
            Some(url) => !url.contains("://") || url.starts_with("file://"),
            None => writes_files,
        };
        let flight = Flight {
            local,
            cores: from.session().options().cores.max(1) as u64,
            unit: bytes_of(&source.unit),
            window: if is_raw { WINDOW } else { u64::MAX },
            object: bytes_of(&target.meta.chunk_shape),
        };
        let memory = options.memory.saturating_sub(options.overhead);
        let problem = Problem {
            shape: meta.shape.to_vec(),
            cell,
            unit: source.unit.to_vec(),
            stored: source.order.dims().to_vec(),
            ranged: reads_files && is_raw,
            object: target.meta.chunk_shape.to_vec(),
            may_stage: !meta.dtype.is_variable(),
            // What a remote store answers is held until it is in its place.
            staged_copies: if stays_local { 1 } else { 2 },
            room: memory.saturating_sub(flight.bytes(memory / SHARE)),
            slots: if local { 2 } else { 3 },
        };
        Ok(Needs {
            problem,
            flight,
            limit: options.memory,
            overhead: options.overhead,
        })
    }

    /// Bytes that are taken besides boxes, if there are `memory` in all.
    fn beside(&self, memory: u64) -> u64 {
        let share = memory.saturating_sub(self.overhead) / SHARE;
        self.flight.bytes(share).saturating_add(self.overhead)
    }

    /// The memory with which boxes have so many bytes; what is beside them grows with it.
    fn with_boxes(&self, boxes: u64) -> u64 {
        let mut memory = 0;
        for _ in 0..64 {
            let more = self.beside(memory).saturating_add(boxes);
            if more <= memory {
                break;
            }
            memory = more;
        }
        // What is shown has three digits, and should be enough.
        memory.saturating_add(memory / 64)
    }

    /// Chooses the boxes.
    pub(super) fn plan(&self, to: &Array) -> Result<Plan> {
        self.problem.plan().map_err(|boxes| {
            let needed = size::show(self.with_boxes(boxes));
            let limit = size::show(self.limit);
            Error::invalid(format!(
                "the layout of {} needs {needed} of memory, and {limit} are allowed",
                to.url()
            ))
            .with_hint("allow more memory, or choose smaller shards or chunks")
        })
    }

    /// Fails if an earlier run planned with more memory than there is now.
    pub(super) fn check(&self, record: &Record) -> Result<()> {
        if record.needs <= self.limit {
            return Ok(());
        }
        let (needed, limit) = (size::show(record.needs), size::show(self.limit));
        Err(Error::invalid(format!(
            "the rechunk was planned for {needed} of memory, and {limit} are allowed now"
        ))
        .with_hint("allow as much as it began with, or begin again with --overwrite"))
    }

    /// Bytes that are in memory at a time under a plan, at most.
    pub(super) fn planned(&self, plan: &Plan) -> u64 {
        let bytes = |stage: &Stage, copies: u64| {
            let each = self.problem.bytes(&stage.sides).saturating_mul(copies);
            each.saturating_mul(stage.slots)
        };
        let boxes = match plan {
            Plan::Direct(boxes) => bytes(boxes, 1),
            Plan::Staged { slabs, boxes } => {
                bytes(slabs, SLAB_COPIES).max(bytes(boxes, self.problem.staged_copies))
            }
        };
        self.beside(self.limit).saturating_add(boxes)
    }

    /// How often chunks of the source are read, at most.
    pub(super) fn source_reads(&self, plan: &Plan) -> u64 {
        match plan {
            Plan::Direct(boxes) => self.problem.reads(&boxes.sides),
            Plan::Staged { .. } => 1,
        }
    }

    /// Boxes for passing over the source by itself.
    pub(super) fn scan(&self) -> Result<Stage> {
        let scan = self.problem.scan(&self.problem.unit);
        scan.ok_or_else(|| {
            let needed = self.problem.bytes(&self.problem.unit);
            let needed = size::show(self.with_boxes(needed));
            Error::invalid(format!("comparing needs {needed} of memory"))
                .with_hint("allow more memory")
        })
    }
}
