//! Sessions: settings, caches and limits that the arrays opened through it share.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use hyperslab_format as format;
use hyperslab_format::{ArraySpec, GroupMeta, Loaded, StorePolicy};
use hyperslab_store::{MeterHandle, MeterSnapshot, Prefixed, StoreKind, StoreRef};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::cache::{ChunkCache, DiskCache, DiskPlace, IndexCache};
use crate::location::Location;
use crate::plan::Planner;
use crate::references::OpenReferences;
use crate::replicas::Copies;
use crate::trace::Tracer;
use crate::{Array, Error, Group, Node, Options, Progress, Result};

/// Memory is counted in units of this many bytes, since semaphores count in 32 bits.
pub(crate) const MEMORY_UNIT: u64 = 4096;
/// Bytes of shard indexes that are kept.
const INDEX_CACHE: u64 = 64 << 20;

/// Settings, caches and limits. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) chunks: ChunkCache,
    pub(crate) indexes: IndexCache,
    /// Opened with the first remote store.
    disk: Mutex<Option<Arc<DiskCache>>>,
    pub(crate) memory: Arc<Semaphore>,
    pub(crate) memory_units: u32,
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) cpu: Arc<Semaphore>,
    /// Where reads are written down.
    pub(crate) tracer: Option<Tracer>,
    fallbacks: AtomicU64,
    replica_reads: AtomicU64,
    /// What is known of replicas, by the URL of their array.
    copies: Mutex<HashMap<String, Weak<Copies>>>,
    stores: Mutex<HashMap<String, OpenStore>>,
    mounts: Mutex<HashMap<String, OpenStore>>,
    /// Roots of hierarchies that do not look like it.
    roots: Mutex<BTreeSet<String>>,
}

impl Inner {
    /// Counts an object that had to be fetched without the function.
    pub(crate) fn fell_back(&self, why: &Error) {
        tracing::warn!("the function failed, the object is fetched without it: {why}");
        self.fallbacks.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read that a replica answered.
    pub(crate) fn answered_by_replica(&self) {
        self.replica_reads.fetch_add(1, Ordering::Relaxed);
    }
}

/// A store as the session opened it.
#[derive(Clone)]
pub(crate) struct OpenStore {
    pub(crate) store: StoreRef,
    pub(crate) meter: MeterHandle,
    pub(crate) policy: StorePolicy,
    /// Bodies are open files that are read where needed.
    pub(crate) lazy: bool,
    /// On a server that the URL names.
    pub(crate) remote: bool,
    /// Chooses the requests of reads.
    pub(crate) planner: Planner,
    /// Writes are refused, so there is no use in reading what they would change.
    pub(crate) read_only: bool,
    /// Where fetched bytes are kept on local disk. A mounted store has none: nothing tells on which
    /// server its objects are.
    pub(crate) disk: Option<DiskPlace>,
    /// The reference file that the store is, if it is one.
    pub(crate) references: Option<Arc<OpenReferences>>,
}

/// The kind of store that a URL names; one that nobody knows is taken for a fast one.
fn kind_of(url: &str) -> StoreKind {
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("s3" | "s3a") => StoreKind::S3,
        Some("az" | "azure" | "abfs" | "abfss") => StoreKind::Azure,
        Some("gs") => StoreKind::Google,
        Some("http" | "https") => StoreKind::Http,
        _ => StoreKind::Memory,
    }
}

impl fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenStore({})", self.store.url())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

impl Default for Session {
    fn default() -> Self {
        Session::new(Options::default())
    }
}

impl Session {
    /// A session with these settings.
    pub fn new(options: Options) -> Self {
        let memory_units = (options.memory / MEMORY_UNIT).clamp(1, 1 << 28) as u32;
        Session(Arc::new(Inner {
            chunks: ChunkCache::new(options.cache_bytes, options.cache_fresh),
            indexes: IndexCache::new(INDEX_CACHE, options.cache_fresh),
            disk: Mutex::new(None),
            memory: Arc::new(Semaphore::new(memory_units as usize)),
            memory_units,
            requests: Arc::new(Semaphore::new(options.concurrency.max(1))),
            cpu: Arc::new(Semaphore::new(options.cores.max(1))),
            tracer: options.trace.as_deref().map(Tracer::new),
            fallbacks: AtomicU64::new(0),
            replica_reads: AtomicU64::new(0),
            copies: Mutex::default(),
            stores: Mutex::new(HashMap::new()),
            mounts: Mutex::new(HashMap::new()),
            roots: Mutex::new(BTreeSet::new()),
            options,
        }))
    }

    /// A session with the same settings and stores for one large operation: within `memory` bytes of
    /// its own, without a cache, and without a trace.
    pub(crate) fn within(&self, memory: u64) -> Self {
        let own = Session::new(Options {
            memory,
            cache_bytes: 0,
            trace: None,
            ..self.0.options.clone()
        });
        fn share<T: Clone>(from: &Mutex<T>, to: &Mutex<T>) {
            if let (Ok(from), Ok(mut to)) = (from.lock(), to.lock()) {
                to.clone_from(&from);
            }
        }
        share(&self.0.disk, &own.0.disk);
        share(&self.0.stores, &own.0.stores);
        share(&self.0.mounts, &own.0.mounts);
        share(&self.0.roots, &own.0.roots);
        own
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// How many objects were planned for the function and fetched without it, because it failed.
    pub fn fallbacks(&self) -> u64 {
        self.0.fallbacks.load(Ordering::Relaxed)
    }

    /// How many reads (one for each array of a query) were answered from replicas.
    pub fn replica_reads(&self) -> u64 {
        self.0.replica_reads.load(Ordering::Relaxed)
    }

    /// What is known of the replicas of an array; its handles share it.
    pub(crate) fn copies_of(&self, open: &OpenStore, location: &Location) -> Arc<Copies> {
        let mut all = self.0.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let url = location.url();
        if let Some(copies) = all.get(&url).and_then(Weak::upgrade) {
            return copies;
        }
        if all.len().is_power_of_two() {
            all.retain(|_, copies| copies.strong_count() > 0);
        }
        let copies = Arc::new(Copies::new(self, open, location));
        all.insert(url, Arc::downgrade(&copies));
        copies
    }

    /// Forgets the replicas of arrays that are gone.
    fn forget_copies(&self, location: &Location) {
        let mut all = self.0.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let url = location.url();
        all.retain(|of, copies| {
            let below = of
                .strip_prefix(&url)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            if let Some(copies) = copies.upgrade().filter(|_| below) {
                copies.forget();
            }
            !below
        });
    }

    /// Writes down the reads that are traced and were not written yet; the end of the last session
    /// of a process does that too.
    pub fn flush_trace(&self) {
        if let Some(tracer) = &self.0.tracer {
            tracer.flush();
        }
    }

    /// How many requests were made a second time, because the first took long.
    pub fn hedged(&self) -> u64 {
        let of = |stores: &Mutex<HashMap<String, OpenStore>>| {
            stores.lock().map_or(0, |stores| {
                let each = stores.values().map(|open| open.planner.watch.hedged());
                each.sum()
            })
        };
        of(&self.0.stores) + of(&self.0.mounts)
    }

    /// What was asked of each store so far: (URL, counts).
    pub fn meters(&self) -> Vec<(String, MeterSnapshot)> {
        let Ok(stores) = self.0.stores.lock() else {
            return Vec::new();
        };
        let mut all: Vec<_> = stores
            .iter()
            .map(|(url, open)| (url.clone(), open.meter.snapshot()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// Why the cache on disk could not be used at some time, if so; reads went on without it.
    pub fn cache_trouble(&self) -> Option<String> {
        let disk = self.0.disk.lock().ok()?;
        disk.as_ref()?.trouble().map(str::to_owned)
    }

    /// The cache on disk, for the remote store at `url`.
    fn disk_place(&self, url: &str) -> Result<Option<DiskPlace>> {
        let Some(options) = &self.0.options.disk_cache else {
            return Ok(None);
        };
        let endpoint = hyperslab_store::endpoint(url, &self.0.options.storage)?;
        let mut disk = self
            .0
            .disk
            .lock()
            .map_err(|_| Error::internal("the lock of the cache on disk is poisoned"))?;
        let cache = match &*disk {
            Some(cache) => cache.clone(),
            None => disk.insert(Arc::new(DiskCache::open(options)?)).clone(),
        };
        // Options of other stores say how to reach the object, not which it is.
        let query = match kind_of(url) {
            StoreKind::Http => url.split_once('?').map_or("", |(_, query)| query),
            _ => "",
        };
        Ok(Some(DiskPlace {
            cache,
            endpoint,
            query: query.to_owned(),
        }))
    }

    /// Uses `store` for everything below `url`, instead of opening it: for stores that wrap others
    /// in ways a URL cannot say. What is above `url` is never looked at.
    pub fn mount(&self, url: &str, store: StoreRef) -> Result<()> {
        let open = OpenStore {
            planner: Planner::new(&self.0.options, kind_of(url), url)?,
            store,
            meter: MeterHandle::default(),
            policy: StorePolicy::LOCAL,
            lazy: false,
            remote: false,
            read_only: false,
            disk: None,
            references: None,
        };
        if let Ok(mut mounts) = self.0.mounts.lock() {
            mounts.insert(url.to_owned(), open);
        }
        Ok(())
    }

    /// The mounted store that holds `url`, and the path of `url` below it.
    fn mounted(&self, url: &str) -> Option<(OpenStore, String)> {
        let mounts = self.0.mounts.lock().ok()?;
        let holding = mounts.iter().filter_map(|(at, open)| {
            let below = url.strip_prefix(at.as_str())?;
            (below.is_empty() || below.starts_with('/')).then_some((at.len(), open, below))
        });
        let (_, open, below) = holding.max_by_key(|(len, ..)| *len)?;
        Some((open.clone(), below.trim_start_matches('/').to_owned()))
    }

    pub(crate) async fn store(&self, url: &str) -> Result<OpenStore> {
        if let Some((open, below)) = self.mounted(url) {
            if below.is_empty() {
                return Ok(open);
            }
            let store: StoreRef = Arc::new(Prefixed::new(open.store.clone(), &below)?);
            return Ok(OpenStore { store, ..open });
        }
        let found = |stores: &HashMap<String, OpenStore>| stores.get(url).cloned();
        if let Some(open) = self.0.stores.lock().ok().as_deref().and_then(found) {
            return Ok(open);
        }
        let opened = hyperslab_store::open_with(url, &self.0.options.storage)?;
        let policy = match opened.kind {
            StoreKind::File | StoreKind::Memory => StorePolicy::LOCAL,
            _ => StorePolicy::CLOUD,
        };
        let lazy = matches!(opened.kind, StoreKind::File);
        let read_only = matches!(opened.kind, StoreKind::Http);
        let disk = match opened.kind.is_remote() {
            true => self.disk_place(url)?,
            false => None,
        };
        let open = OpenStore {
            disk,
            references: None,
            planner: Planner::new(&self.0.options, opened.kind, url)?,
            store: opened.store,
            meter: opened.meter,
            policy,
            lazy,
            remote: opened.kind.is_remote(),
            read_only,
        };
        if let Ok(mut stores) = self.0.stores.lock() {
            return Ok(stores.entry(url.to_owned()).or_insert(open).clone());
        }
        Ok(open)
    }

    /// Takes everything below `url` for one hierarchy, whatever its name ends with: without that, only
    /// names such as `x.zarr` or `x.h5` are taken for roots.
    pub fn claim(&self, url: &str) -> Result<()> {
        let root = Location::whole(url)?.root;
        if let Ok(mut roots) = self.0.roots.lock() {
            roots.insert(root);
        }
        Ok(())
    }

    /// Takes back what [`Session::claim`] said of a URL.
    pub fn release(&self, url: &str) -> Result<()> {
        let root = Location::whole(url)?.root;
        if let Ok(mut roots) = self.0.roots.lock() {
            roots.remove(&root);
        }
        Ok(())
    }

    /// Where a URL leads.
    pub(crate) fn locate(&self, url: &str) -> Result<Location> {
        let location = Location::whole(url)?;
        let claimed = match self.0.roots.lock() {
            Ok(roots) => roots
                .iter()
                .filter_map(|root| location.within(root))
                .next_back(),
            Err(_) => None,
        };
        match claimed {
            Some(claimed) => Ok(claimed),
            None => Location::parse(url),
        }
    }

    /// Opens the array or group at a URL: one request if it has metadata of its own there.
    pub async fn open(&self, url: &str) -> Result<Node> {
        self.load(&self.locate(url)?).await
    }

    /// Opens an array; a group is an error.
    pub async fn open_array(&self, url: &str) -> Result<Array> {
        match self.open(url).await? {
            Node::Array(array) => Ok(array),
            Node::Group(_) => Err(Error::invalid(format!("{url} is a group, not an array"))
                .with_hint("list its arrays with `hyperslab ls`")),
        }
    }

    /// Opens a group; an array is an error.
    pub async fn open_group(&self, url: &str) -> Result<Group> {
        match self.open(url).await? {
            Node::Group(group) => Ok(group),
            Node::Array(_) => Err(Error::invalid(format!("{url} is an array, not a group"))),
        }
    }

    /// Creates an array, and the groups above it. What is there is an error unless `overwrite`.
    pub async fn create_array(&self, url: &str, spec: ArraySpec, overwrite: bool) -> Result<Array> {
        let began = Instant::now();
        let (open, location) = self.place(url).await?;
        let meta = spec.build(&open.policy)?;
        self.clear(&open, &location, overwrite).await?;
        let json = meta.to_json();
        format::save_node(&*open.store, &location.path, &json).await?;
        let loaded = format::load(&*open.store, &location.path).await?;
        match Node::from_loaded(self, open, &location, loaded, false)? {
            Node::Array(array) => {
                // Nothing was there, so no replicas were.
                array.copies().ledger.saw_none(began);
                Ok(array)
            }
            Node::Group(_) => Err(Error::conflict(format!(
                "another writer put a group at {url}"
            ))),
        }
    }

    /// Creates a group, and those above it; a group that is there is opened.
    pub async fn create_group(&self, url: &str, attributes: Map<String, Value>) -> Result<Group> {
        let (open, location) = self.place(url).await?;
        let mut meta = if location.path.is_empty() {
            GroupMeta::root()
        } else {
            GroupMeta::default()
        };
        meta.attributes = attributes;
        format::save_group(&*open.store, &location.path, &meta).await?;
        let loaded = format::load(&*open.store, &location.path).await?;
        match Node::from_loaded(self, open, &location, loaded, false)? {
            Node::Group(group) => Ok(group),
            Node::Array(_) => Err(Error::conflict(format!(
                "another writer put an array at {url}"
            ))),
        }
    }

    /// Removes an array or a group with all below it; returns how many objects went.
    pub async fn remove(&self, url: &str, progress: &dyn Progress) -> Result<u64> {
        let (open, location) = self.place(url).await?;
        if let Err(e) = format::load(&*open.store, &location.path).await {
            // A removal that was stopped has taken the metadata and left objects: go on with it.
            let (left, _) = open.store.list(&location.path, None).await?;
            if !e.is_not_found() || left.is_empty() {
                return Err(e);
            }
        }
        let mut seen = 0;
        let removed = format::remove_node(&*open.store, &location.path, |removed| {
            progress.add(removed - seen);
            seen = removed;
        })
        .await;
        self.forget_below(&open, &location);
        self.forget_copies(&location);
        removed
    }

    /// Forgets cached bytes of all objects of a node that is gone.
    pub(crate) fn forget_below(&self, open: &OpenStore, location: &Location) {
        let below = |root: &str| match location.path.as_str() {
            "" => format!("{root}/"),
            path => format!("{root}/{path}/"),
        };
        let name = below(&location.root);
        self.0.chunks.forget_below(&name);
        self.0.indexes.forget_below(&name);
        if let Some(place) = &open.disk {
            place.cache.forget_below(&below(location.bare_root()));
        }
    }

    /// Where a node that is about to change lives, with the root of its hierarchy found, so that
    /// consolidated copies above it can be kept in step.
    pub(crate) async fn place(&self, url: &str) -> Result<(OpenStore, Location)> {
        let mut location = self.locate(url)?;
        format::check_path(&location.path)?;
        let claimed = |root: &str| self.0.roots.lock().is_ok_and(|roots| roots.contains(root));
        if location.path.is_empty() && !claimed(&location.root) {
            let is_mount = |url: &str| self.mounted(url).is_some_and(|(_, below)| below.is_empty());
            while !is_mount(&location.root)
                && let Some(parent) = location.up()
            {
                let open = self.store(&parent.root).await?;
                match format::load(&*open.store, "").await {
                    Ok(Loaded {
                        node: format::Node::Group(_),
                        ..
                    }) => location = parent,
                    _ => break,
                }
            }
        }
        Ok((self.store(&location.root).await?, location))
    }

    /// Makes sure that nothing is left where a new array goes: stale chunks would become its data.
    pub(crate) async fn clear(
        &self,
        open: &OpenStore,
        location: &Location,
        overwrite: bool,
    ) -> Result<()> {
        let (entries, _) = match open.store.list(&location.path, None).await {
            Ok(page) => page,
            Err(e) if e.is_not_found() => return Ok(()),
            Err(e) => return Err(e),
        };
        if entries.is_empty() {
            return Ok(());
        }
        if !overwrite {
            let shown = location.url();
            return Err(Error::conflict(format!("{shown} is not empty"))
                .with_hint("choose another name, or overwrite what is there"));
        }
        let removed = format::remove_node(&*open.store, &location.path, |_| {}).await;
        self.forget_below(open, location);
        self.forget_copies(location);
        removed.map(drop)
    }
}
