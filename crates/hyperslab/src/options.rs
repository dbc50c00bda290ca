//! What callers may set.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyperslab_function::FunctionClient;
use hyperslab_plan::{Mode, Place, PriceBook, Profile};

use crate::cache;
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

/// A cache on local disk, shared by all sessions and processes that name its folder.
///
/// It holds bytes as the store sent them, readable by this user only. The folder is opened when a
/// session first needs it: one that cannot be used then is an error, one that fails later is done
/// without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskCacheOptions {
    /// The folder; it is made if need be.
    pub dir: PathBuf,
    /// Bytes that its files may take together; the least recently used go first. Processes should
    /// agree on it: each keeps its own bound when it writes.
    pub bytes: u64,
}

/// Settings of a session.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes that fetched and decoded chunks may take at a time, besides the caller's buffers and
    /// the cache. One chunk is always let through, however large.
    pub memory: u64,
    /// Requests in flight at a time, at most; a store's profile may ask for fewer.
    pub concurrency: usize,
    /// Chunks that are decoded or encoded at a time.
    pub cores: usize,
    /// Bytes of the chunk cache; 0 turns it off.
    pub cache_bytes: u64,
    /// For how long a cached chunk is used without asking the store whether it changed.
    pub cache_fresh: Duration,
    /// A cache on local disk for bytes of remote stores; it outlives the session.
    pub disk_cache: Option<DiskCacheOptions>,
    /// How consolidated metadata is treated.
    pub consolidated: Consolidated,
    /// Answer reads from replicas where those are cheaper.
    pub replicas: bool,
    /// For how long replicas are used without asking the store whether somebody writes the array.
    pub replica_fresh: Duration,
    /// After how long what foreign writers changed in an array with replicas is looked for again;
    /// it is looked for when the array is first read, too.
    pub replica_check: Duration,
    /// Write chunks that hold nothing but the fill value, instead of leaving them out.
    pub write_empty: bool,
    /// Which planner chooses the requests of a read; the forced ones are for comparison.
    pub planner: Mode,
    /// Seconds that a dollar is worth: 0 minimises time, infinity minimises money.
    pub phi: f64,
    /// Where this client is, which decides what traffic costs.
    pub place: Place,
    /// What is known of the network, for all stores; `None` takes the built-in profile of each
    /// store's kind.
    pub profile: Option<Arc<Profile>>,
    /// What requests and traffic cost, for all stores; `None` takes the built-in book of each
    /// store's kind.
    pub prices: Option<Arc<PriceBook>>,
    /// Keep the profile as it is. Otherwise reads refine it, so that a network that changes is
    /// noticed.
    pub frozen: bool,
    /// Ask a second time where an answer takes longer than 99 of 100 did, and take what comes
    /// first.
    pub hedge: bool,
    /// A read that takes longer ends with an error; `None` waits as long as the store's own
    /// timeouts and retries let it.
    pub deadline: Option<Duration>,
    /// The function next to the data, if there is one; its times and limits are in the profile.
    pub function: Option<Arc<FunctionClient>>,
    /// Where the metadata of remote HDF5 files is kept, so that a second open costs one request;
    /// `None` keeps none.
    pub hdf5_index_folder: Option<PathBuf>,
    /// A source of a virtual dataset that is not there is an error, and not the fill value.
    pub strict_sources: bool,
    /// A folder to write down in what is read, one file for each process (see [`crate::Trace`]).
    pub trace: Option<PathBuf>,
    /// Credentials and the like for the stores that are opened, as [`hyperslab_store::Options`] names
    /// them; what is not said here comes from the URL, the configuration file and the environment.
    pub storage: hyperslab_store::Options,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: 1 << 30,
            concurrency: 256,
            cores: cores(),
            cache_bytes: 0,
            cache_fresh: Duration::ZERO,
            disk_cache: None,
            consolidated: Consolidated::Verify,
            replicas: true,
            replica_fresh: Duration::ZERO,
            replica_check: Duration::from_secs(60),
            write_empty: false,
            planner: Mode::Global,
            phi: 0.0,
            place: Place::default(),
            profile: None,
            prices: None,
            frozen: false,
            hedge: false,
            deadline: None,
            function: None,
            hdf5_index_folder: cache::user_folder(),
            strict_sources: false,
            trace: None,
            storage: hyperslab_store::Options::default(),
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
