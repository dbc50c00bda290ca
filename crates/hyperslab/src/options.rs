//! What callers may set.

use std::time::Duration;

use crate::runtime::cores;

/// How a consolidated copy of metadata is treated; a node's own `zarr.json` always wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consolidated {
    /// Open from the copy with one request, and compare it with the node's own metadata beside
    /// the first read of each array; a difference is a `Conflict`.
    #[default]
    Verify,
    /// Open from the copy and believe it.
    Trust,
    /// Read every node's own metadata.
    Ignore,
}

/// Settings of a session.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes that fetched and decoded chunks may take at a time, besides the caller's buffers and
    /// the cache. One chunk is always let through, however large.
    pub memory: u64,
    /// Requests in flight at a time.
    pub concurrency: usize,
    /// Chunks that are decoded or encoded at a time.
    pub cores: usize,
    /// Bytes of the chunk cache; 0 turns it off.
    pub cache_bytes: u64,
    /// For how long a cached chunk is used without asking the store whether it changed.
    pub cache_fresh: Duration,
    /// How consolidated metadata is treated.
    pub consolidated: Consolidated,
    /// Write chunks that hold nothing but the fill value, instead of leaving them out.
    pub write_empty: bool,
    /// Read whole chunks always, never byte ranges: for comparison.
    pub whole_chunks: bool,
    /// Byte runs of one object that lie no further apart than this are read as one range.
    pub join_gap: u64,
    /// More ranges than this of one chunk are read as one covering range.
    pub max_ranges: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: 1 << 30,
            concurrency: 64,
            cores: cores(),
            cache_bytes: 0,
            cache_fresh: Duration::ZERO,
            consolidated: Consolidated::Verify,
            write_empty: false,
            whole_chunks: false,
            join_gap: 512 << 10,
            max_ranges: 8,
        }
    }
}

/// Hears how far a long operation is.
pub trait Progress: Send + Sync {
    /// The operation will handle so many bytes.
    fn start(&self, total_bytes: u64);
    /// So many more bytes are done.
    fn add(&self, bytes: u64);
}

/// Nobody listens.
impl Progress for () {
    fn start(&self, _: u64) {}
    fn add(&self, _: u64) {}
}
