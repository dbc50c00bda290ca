//! The stored manifest: read, compared and changed by conditional puts.
//!
//! Below everything else here. Handles of one array in one session share a ledger, so what one of them
//! changes the others know. Invariant: a state that [`Ledger::is_current`] confirms was the stored one
//! at some time after the call began.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use hyperslab_store::{Get, Put, StoreRef};

use super::manifest::Manifest;
use super::states::Seen;
use crate::{Error, ErrorKind, Result};

/// How often a lost race for the manifest is run again.
const MAX_RACES: u32 = 200;
/// Bytes of a list of states, at most.
const MOST_SEEN: u64 = 1 << 30;

/// Where the manifest and the replicas of an array are.
#[derive(Debug)]
pub(crate) struct Ledger {
    store: StoreRef,
    /// The folder, relative to the store.
    pub(crate) folder: String,
    known: Mutex<Option<Known>>,
    /// When it was last seen that there is no manifest.
    none_at: Mutex<Option<Instant>>,
    /// Changes of one session take turns here rather than by losing races.
    turn: tokio::sync::Mutex<()>,
}

/// A manifest in the state that an ETag names.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) etag: String,
    /// When it was last asked for, and was the stored one.
    pub(crate) at: Instant,
}

impl Ledger {
    pub(crate) fn new(store: StoreRef, folder: String) -> Self {
        Ledger {
            store,
            folder,
            known: Mutex::default(),
            none_at: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn key(&self) -> String {
        self.below("replicas.json")
    }

    /// The key of something beside the manifest.
    pub(crate) fn below(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// The manifest as it was last seen.
    pub(crate) fn known(&self) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    fn keep(&self, next: Option<Known>) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// Forgets what is known.
    pub(crate) fn forget(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Notes that at some time there was no manifest.
    pub(crate) fn saw_none(&self, at: Instant) {
        *self.none_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// How long ago it was seen that there is none.
    pub(crate) fn none_since(&self) -> Option<Duration> {
        let at = self.none_at.lock().unwrap_or_else(PoisonError::into_inner);
        at.map(|at| at.elapsed())
    }

    /// Reads the manifest; `None` if there is none.
    pub(crate) async fn load(&self) -> Result<Option<Known>> {
        self.ask(Get::default()).await?;
        Ok(self.known())
    }

    /// True if the stored manifest is still the one that is given. Otherwise the stored one is known
    /// after this.
    pub(crate) async fn is_current(&self, known: &Known) -> Result<bool> {
        let unless = Get {
            if_none_match: Some(known.etag.clone()),
            ..Get::default()
        };
        self.ask(unless).await
    }

    /// Asks for the manifest, and keeps what comes; true if it has not changed.
    async fn ask(&self, options: Get) -> Result<bool> {
        let asked = Instant::now();
        let got = match self.store.get(&self.key(), options).await {
            Ok(got) => got,
            // Where lists are not allowed, S3 says so of an object that is not there.
            Err(e) if e.is_not_found() || e.kind() == ErrorKind::Denied => {
                self.keep(None);
                self.saw_none(asked);
                return Ok(false);
            }
            Err(e) => return Err(e),
        };
        if got.not_modified {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = &mut *known {
                known.at = known.at.max(asked);
            }
            return Ok(true);
        }
        let etag = got.meta.etag.clone().ok_or_else(without_etags)?;
        let manifest =
            Manifest::parse(&got.body.into_bytes()?).map_err(|e| e.context(self.key()))?;
        if manifest.replicas.is_empty() {
            self.saw_none(asked);
        }
        self.keep(Some(Known {
            manifest: Arc::new(manifest),
            etag,
            at: asked,
        }));
        Ok(false)
    }

    /// Changes the manifest; with `first` it is made if there is none, otherwise `None` says so.
    pub(crate) async fn update<T>(
        &self,
        first: Option<&Manifest>,
        mut change: impl FnMut(&mut Manifest) -> Result<T>,
    ) -> Result<Option<T>> {
        let _turn = self.turn.lock().await;
        let mut tried: Vec<(u64, T)> = Vec::new();
        let mut known = match self.known() {
            Some(known) => Some(known),
            None => self.load().await?,
        };
        for race in 0..MAX_RACES {
            let (mut next, mode) = match (&known, first) {
                (Some(known), _) => (
                    Manifest::clone(&known.manifest),
                    Put::Update(known.etag.clone()),
                ),
                (None, Some(first)) => (first.clone(), Put::Create),
                (None, None) => return Ok(None),
            };
            // A lost answer may hide that an earlier try took effect.
            if let Some(mine) = tried.iter().position(|(s, _)| next.is_signed(*s)) {
                return Ok(Some(tried.swap_remove(mine).1));
            }
            let answer = change(&mut next)?;
            let mine = token();
            next.sign(mine);
            let value = vec![Bytes::from(next.render()?)];
            match self.store.put(&self.key(), value, mode).await {
                Ok(meta) => {
                    self.keep(Some(Known {
                        manifest: Arc::new(next),
                        etag: meta.etag.ok_or_else(without_etags)?,
                        at: Instant::now(),
                    }));
                    return Ok(Some(answer));
                }
                Err(e) if e.kind() == ErrorKind::Conflict => tried.push((mine, answer)),
                Err(e) => return Err(e),
            }
            if race > 1 {
                tokio::time::sleep(backoff(mine, race)).await;
            }
            known = self.load().await?;
        }
        Err(Error::conflict(format!(
            "{} keeps changing",
            self.key()
        ))
        .with_hint("too many writers are at work on one array with replicas; let fewer write at a time"))
    }

    /// Reads a list of states.
    pub(crate) async fn load_seen(&self, name: &str) -> Result<Seen> {
        let got = self.store.get(&self.below(name), Get::default()).await?;
        if got.meta.size > MOST_SEEN {
            return Err(Error::data(
                "the list of states beside the replicas is too long",
            ));
        }
        Seen::parse(&got.body.into_bytes()?)
    }

    /// Stores a list of states; returns its name.
    pub(crate) async fn save_seen(&self, seen: &Seen) -> Result<String> {
        let name = format!("seen-{:016x}", token());
        let value = vec![Bytes::from(seen.render())];
        self.store
            .put(&self.below(&name), value, Put::Create)
            .await?;
        Ok(name)
    }

    /// Removes something beside the manifest that nothing leads to any more; if it stays, it only
    /// takes room.
    pub(crate) async fn discard(&self, name: &str) {
        let _ = self.store.delete(&self.below(name)).await;
    }
}

fn without_etags() -> Error {
    Error::unavailable("the store gives no ETags, so replicas cannot be told from old ones")
        .with_hint("keep replicas in a store with conditional requests")
}

/// 64 random bits.
pub(crate) fn token() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // Each has keys of its own, drawn from the system's randomness.
    let state = std::collections::hash_map::RandomState::new();
    let mut hasher = state.build_hasher();
    hasher.write_u128(now_nanos());
    hasher.finish()
}

fn now_nanos() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos())
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    u64::try_from(now_nanos() / 1_000_000).unwrap_or(u64::MAX)
}

/// Racing writers spread out, the more the longer they race.
fn backoff(random: u64, race: u32) -> Duration {
    Duration::from_micros((random % 1000 + 100) * u64::from(race.min(30)))
}
