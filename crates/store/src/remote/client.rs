//! One client per endpoint, bucket and identity in each process.
//!
//! Connections must not be shared across `fork`: both processes would write into one stream. So
//! clients and limits are looked up under the process id, and a store that was opened before a
//! fork finds a client of its own in the child.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use object_store::ObjectStore;
use object_store::list::PaginatedListStore;
use tokio::sync::OnceCell;

use super::whole::Whole;
use crate::location::StoreKind;
use crate::{LimitHandle, Result, aws, azure, google, lock, web};

/// How to reach one bucket, credentials included; hence no `Debug`.
pub(crate) struct Spec {
    pub(crate) kind: StoreKind,
    /// URL of the bucket, for people.
    pub(crate) bucket_url: String,
    /// `scheme://host:port` of the server.
    pub(crate) origin: String,
    /// A hash of credentials and settings: clients are shared only between equals.
    pub(crate) identity: u64,
    pub(crate) backend: Backend,
}

/// How to build the client of each kind of store.
pub(crate) enum Backend {
    S3(Box<aws::Recipe>),
    Azure(Box<azure::Recipe>),
    Google(Box<google::Recipe>),
    Web(Box<web::Recipe>),
}

/// A built client.
#[derive(Clone)]
pub(crate) struct Handles {
    pub(crate) objects: Arc<dyn ObjectStore>,
    /// Lists in pages, where the store has them.
    pub(crate) pages: Option<Arc<dyn PaginatedListStore>>,
}

impl Handles {
    pub(crate) fn paged<S: ObjectStore + PaginatedListStore>(store: S) -> Self {
        let store = Arc::new(store);
        Handles {
            objects: Arc::clone(&store) as _,
            pages: Some(store),
        }
    }
}

/// A client, built at once or, where a region has to be found first, at the first request.
pub(super) struct Client {
    spec: Arc<Spec>,
    handles: OnceCell<Handles>,
    /// Some answer has shown that the bucket exists.
    bucket_seen: AtomicBool,
    /// The server answers a byte range with the whole object.
    ignores_ranges: AtomicBool,
    /// The object that was last read whole for that.
    held: Mutex<Option<Whole>>,
}

impl Client {
    fn new(spec: Arc<Spec>) -> Result<Self> {
        let handles = match &spec.backend {
            Backend::S3(recipe) if recipe.needs_region() => None,
            Backend::S3(recipe) => Some(recipe.build(None)?),
            Backend::Azure(recipe) => Some(recipe.build()?),
            Backend::Google(recipe) => Some(recipe.build()?),
            Backend::Web(recipe) => Some(recipe.build()?),
        };
        Ok(Client {
            spec,
            handles: OnceCell::new_with(handles),
            bucket_seen: AtomicBool::new(false),
            ignores_ranges: AtomicBool::new(false),
            held: Mutex::new(None),
        })
    }

    pub(super) async fn handles(&self) -> Result<&Handles> {
        self.handles
            .get_or_try_init(|| async {
                match &self.spec.backend {
                    Backend::S3(recipe) => {
                        let region = recipe.discover_region().await?;
                        recipe.build(Some(&region))
                    }
                    _ => Err(crate::Error::internal("a client was left unbuilt")),
                }
            })
            .await
    }

    pub(super) fn bucket_seen(&self) -> bool {
        self.bucket_seen.load(Ordering::Relaxed)
    }

    pub(super) fn see_bucket(&self) {
        self.bucket_seen.store(true, Ordering::Relaxed);
    }

    pub(super) fn ignores_ranges(&self) -> bool {
        self.ignores_ranges.load(Ordering::Relaxed)
    }

    pub(super) fn note_ignored_range(&self) {
        self.ignores_ranges.store(true, Ordering::Relaxed);
    }

    pub(super) fn held(&self) -> Option<Whole> {
        lock(&self.held).clone()
    }

    pub(super) fn hold(&self, whole: Whole) {
        *lock(&self.held) = Some(whole);
    }
}

type Key = (u32, StoreKind, String, String, u64);

/// This process's client for `spec`.
pub(super) fn client(spec: &Arc<Spec>) -> Result<Arc<Client>> {
    static CLIENTS: LazyLock<Mutex<HashMap<Key, Arc<Client>>>> = LazyLock::new(Mutex::default);
    let key = (
        std::process::id(),
        spec.kind,
        spec.origin.clone(),
        spec.bucket_url.clone(),
        spec.identity,
    );
    let mut clients = lock(&CLIENTS);
    if let Some(client) = clients.get(&key) {
        return Ok(Arc::clone(client));
    }
    let client = Arc::new(Client::new(Arc::clone(spec))?);
    clients.insert(key, Arc::clone(&client));
    Ok(client)
}

/// The limit that all stores of an endpoint share.
pub(crate) fn limit(origin: &str, cap: usize) -> LimitHandle {
    static LIMITS: LazyLock<Mutex<HashMap<(u32, String), LimitHandle>>> =
        LazyLock::new(Mutex::default);
    let mut limits = lock(&LIMITS);
    let new = || LimitHandle::new(cap);
    let handle = limits
        .entry((std::process::id(), origin.to_owned()))
        .or_insert_with(new);
    if handle.cap() != cap {
        handle.set_cap(cap);
    }
    handle.clone()
}

/// A hash of everything that makes two clients different.
pub(crate) fn identity(parts: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}
