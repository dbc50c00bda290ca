//! Fetches the bytes of one object as planned: whole, by ranges, or through a shard's index.
//!
//! Sits between the planner and the decoder. Invariant: all bytes of one object that a read uses
//! have the same ETag; a replaced object is a `Conflict`, never a mixture. An object that the store
//! says does not exist is `Absent`, and only that.

use std::ops::Range;
use std::sync::Arc;

use futures::future::{Either, join as join_both, select, try_join_all};
use hyperslab_format::{ObjectPieces, Piece, ShardIndex, Sharding};
use hyperslab_plan::Method;
use hyperslab_store::{Body, Get, GetRange, Got};

use crate::array::{Array, State};
use crate::cache::{self, Brought, FoundIndex, Held, is_strong, join};
use crate::deliver::index_of;
use crate::file::FileSource;
use crate::plan::{describe, wanted};
use crate::{Error, ErrorKind, Result};

/// How often an object that changes while it is read is read again.
const MAX_CHANGES: usize = 4;

/// An object that is ready for planning.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) object: ObjectPieces,
    /// The ETag under which a shard's index was read.
    pin: Option<String>,
    /// The store need not be asked whether the object is still in the state that is known.
    checked: bool,
    /// What the caches hold of it.
    held: Held,
    /// The store says that there is no such shard.
    absent: bool,
    /// Its pieces lie where those of another shard do, which is to be seen.
    guessed: bool,
}

impl Prepared {
    /// The state of the object that was seen while preparing, if any.
    pub(crate) fn pin(&self) -> Option<String> {
        self.pin.clone()
    }

    /// What the caches hold of the object.
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// The same object with some of its pieces; nothing of it is cached.
    pub(crate) fn with_pieces(&self, pieces: Vec<Piece>) -> Prepared {
        Prepared {
            object: ObjectPieces {
                key: self.object.key.clone(),
                chunk: pieces
                    .first()
                    .map_or_else(Vec::new, |piece| piece.part.chunk().to_vec()),
                pieces,
                whole: false,
            },
            pin: self.pin.clone(),
            checked: self.checked,
            held: Held::default(),
            absent: self.absent,
            guessed: self.guessed,
        }
    }

    /// True if where its pieces lie is a guess.
    pub(crate) fn is_guessed(&self) -> bool {
        self.guessed
    }

    /// True if the store says that there is no such object.
    pub(crate) fn is_absent(&self) -> bool {
        self.absent
    }
}

/// What came of an object.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// The store has no such object.
    Absent,
    /// All of it.
    Whole(Body),
    /// These ranges, by their offset in the object; the pieces are located.
    Ranges(Vec<(u64, Body)>),
}

/// True if all pieces of an object lie in the same places.
fn same_places(one: &ObjectPieces, other: &ObjectPieces) -> bool {
    let sources = |object: &ObjectPieces| {
        let sources = object.pieces.iter().map(|piece| piece.source.clone());
        sources.collect::<Vec<_>>()
    };
    sources(one) == sources(other)
}

/// Takes note of how a shard is laid out that was read as a whole; if its index is damaged, decoding
/// the shard will tell.
fn learn_layout(state: &State, object: &ObjectPieces, body: &Body) {
    if let Some(sharding) = state.meta.codecs.sharding()
        && !state.guess.is_known()
        && state.has_raw_units()
        && let Ok(index) = index_of(sharding, body)
    {
        state.guess.learn(state, object, &Arc::new(index));
    }
}

/// Says of a file that changed what is to be done.
fn changed(state: &State, e: Error) -> Error {
    match e.kind() {
        ErrorKind::Conflict if state.file.is_some() => {
            Error::conflict("the file changed while it was read")
                .with_hint("open it again")
                .with_source(e)
        }
        _ => e,
    }
}

impl Array {
    /// The URL of an object, without credentials and options.
    pub(crate) fn object_url(&self, key: &str) -> String {
        format!("{}/{key}", self.inner().location.bare_root())
    }

    /// Makes an object ready for planning: what is cached of it is looked up, and a shard's pieces
    /// are located by its index, if that is wished for or costs nothing, or by a guess.
    pub(crate) async fn prepare(
        &self,
        state: &State,
        mut object: ObjectPieces,
        locate: bool,
    ) -> Result<Prepared> {
        let held = self.held(&object.key).await;
        if held.is_empty()
            && self.known_index(&object.key).is_none()
            && let Some(guess) = state.guess.of(state, &object)
        {
            object.locate(&guess);
            return Ok(Prepared {
                object,
                pin: None,
                checked: true,
                held,
                absent: false,
                guessed: true,
            });
        }
        self.prepare_with(state, object, held, locate).await
    }

    /// The index of a shard, if the session remembers it.
    fn known_index(&self, key: &str) -> Option<cache::Cached<Arc<ShardIndex>>> {
        let key = cache::key(&self.cache_name(key), None);
        self.inner().session.inner().indexes.get(&key)
    }

    /// Puts the index in the place of a guess; true if the guess was right.
    pub(crate) async fn settle(&self, state: &State, prepared: &mut Prepared) -> Result<bool> {
        let guessed = prepared.object.clone();
        let mut object = guessed.clone();
        object.unlocate(&state.meta);
        *prepared = self
            .prepare_with(state, object, Held::default(), true)
            .await?;
        let same = !prepared.absent && same_places(&guessed, &prepared.object);
        if !same && !prepared.absent {
            state.guess.was_wrong();
        }
        Ok(same)
    }

    async fn prepare_with(
        &self,
        state: &State,
        object: ObjectPieces,
        held: Held,
        locate: bool,
    ) -> Result<Prepared> {
        let mut prepared = Prepared {
            object,
            pin: None,
            checked: held.fresh(),
            held,
            absent: false,
            guessed: false,
        };
        if let Some(file) = &state.file {
            // Where its pieces lie was read in this state.
            prepared.pin = file.etag();
            prepared.checked = true;
        }
        let Some(sharding) = state.meta.codecs.sharding() else {
            return Ok(prepared);
        };
        let known = prepared.held.index_range(sharding).is_some()
            || self.known_index(&prepared.object.key).is_some();
        if !locate && !known {
            return Ok(prepared);
        }
        match self.shard_index(sharding, &prepared).await? {
            Some(found) => {
                state.guess.learn(state, &prepared.object, &found.index);
                prepared.object.locate(&found.index);
                prepared.held.pin(found.etag.as_deref());
                prepared.checked = found.checked || prepared.held.fresh();
                prepared.pin = found.etag;
            }
            None => prepared.absent = true,
        }
        Ok(prepared)
    }

    /// Fetches an object's pieces as planned; by a plan of its own, again, if the object changes
    /// meanwhile.
    pub(crate) async fn fetch(
        &self,
        state: &State,
        prepared: &mut Prepared,
        method: Method,
    ) -> Result<Fetched> {
        let mut answer = match prepared.guessed {
            true => self.fetch_guessed(state, prepared, method).await,
            false => self.fetch_once(state, prepared, method).await,
        };
        for _ in 0..MAX_CHANGES {
            match &answer {
                // A file is not read again: what is known of its chunks may be wrong by now.
                Err(e) if e.kind() == ErrorKind::Conflict && state.file.is_none() => {}
                _ => {
                    let answer = answer.map(|(fetched, _)| fetched);
                    return answer.map_err(|e| changed(state, e));
                }
            }
            self.forget(&prepared.object.key);
            let mut again = prepared.object.clone();
            again.unlocate(&state.meta);
            // Without what is cached, which may be what has changed or gone.
            *prepared = self
                .prepare_with(state, again, Held::default(), true)
                .await?;
            let method = self.plan_alone(state, prepared)?;
            answer = self.fetch_once(state, prepared, method).await;
        }
        answer.map(|(fetched, _)| fetched).map_err(|e| {
            if e.kind() != ErrorKind::Conflict {
                return e;
            }
            let key = &prepared.object.key;
            Error::conflict(format!("the object {key} keeps changing while it is read"))
                .with_source(e)
        })
    }

    /// Fetches pieces from where they are guessed to be, and the index beside them. A wrong guess is
    /// a `Conflict`, as if the shard had changed.
    async fn fetch_guessed(
        &self,
        state: &State,
        prepared: &mut Prepared,
        method: Method,
    ) -> Result<(Fetched, Option<String>)> {
        prepared.guessed = false;
        let (Some(sharding), Method::Ranges(_)) = (state.meta.codecs.sharding(), &method) else {
            // All of it is read, its index too.
            prepared.object.unlocate(&state.meta);
            return self.fetch_once(state, prepared, method).await;
        };
        let index = self.shard_index(sharding, prepared);
        let (index, fetched) = join_both(index, self.fetch_once(state, prepared, method)).await;
        let (Some(found), fetched) = (index?, fetched) else {
            return Ok((Fetched::Absent, None));
        };
        let mut real = prepared.object.clone();
        real.unlocate(&state.meta);
        real.locate(&found.index);
        let right = same_places(&real, &prepared.object);
        match fetched {
            Ok((Fetched::Ranges(bodies), etag)) if right && etag == found.etag => {
                prepared.pin = found.etag;
                Ok((Fetched::Ranges(bodies), etag))
            }
            Err(e) if right && e.kind() != ErrorKind::Conflict => Err(e),
            _ => {
                if !right {
                    state.guess.was_wrong();
                }
                let key = &prepared.object.key;
                Err(Error::conflict(format!(
                    "the shard {key} is not laid out like others, or changed while it was read"
                )))
            }
        }
    }

    /// Plans an object by itself, without the function.
    fn plan_alone(&self, state: &State, prepared: &Prepared) -> Result<Method> {
        let mut described = describe(state, prepared);
        described.0.function = false;
        self.inner().open.planner.plan_one(described)
    }

    /// Fetches an object that is planned by itself.
    pub(crate) async fn fetch_alone(
        &self,
        state: &State,
        object: ObjectPieces,
    ) -> Result<(ObjectPieces, Fetched)> {
        let locate = match state.meta.codecs.sharding() {
            Some(_) => self.inner().open.planner.locate(&[(state, &object)])?[0],
            None => false,
        };
        let mut prepared = self.prepare(state, object, locate).await?;
        let method = self.plan_alone(state, &prepared)?;
        let fetched = self.fetch(state, &mut prepared, method).await?;
        Ok((prepared.object, fetched))
    }

    /// Opens a local file, which is read where needed: there is nothing to plan.
    pub(crate) async fn fetch_file(&self, state: &State, key: &str) -> Result<Fetched> {
        let pin = state.file.as_ref().and_then(FileSource::etag);
        let got = self.get_cached(key, None, pin).await;
        Ok(match got.map_err(|e| changed(state, e))? {
            Some(brought) => Fetched::Whole(brought.body),
            None => Fetched::Absent,
        })
    }

    async fn fetch_once(
        &self,
        state: &State,
        prepared: &Prepared,
        method: Method,
    ) -> Result<(Fetched, Option<String>)> {
        let key = &prepared.object.key;
        if prepared.absent {
            return Ok((Fetched::Absent, None));
        }
        match method {
            Method::Get => {
                let got = self.get_cached(key, None, prepared.pin.clone()).await?;
                Ok(match got {
                    Some(brought) => {
                        state.saw_size(brought.body.len());
                        self.keep(key, std::slice::from_ref(&brought)).await;
                        learn_layout(state, &prepared.object, &brought.body);
                        (Fetched::Whole(brought.body), brought.etag)
                    }
                    None => (Fetched::Absent, None),
                })
            }
            Method::Ranges(ranges) => self.fetch_ranges(state, prepared, &ranges).await,
            Method::Function(_) => Err(Error::internal(
                "an object of the function was to be fetched without it",
            )),
        }
    }

    /// Fetches ranges, and loads from the caches what is wanted beside them.
    async fn fetch_ranges(
        &self,
        state: &State,
        prepared: &Prepared,
        ranges: &[Range<u64>],
    ) -> Result<(Fetched, Option<String>)> {
        let key = &prepared.object.key;
        let mut needed = Vec::new();
        let mut whole = false;
        if !prepared.held.is_empty() {
            let wanted = wanted(state, &prepared.object).0;
            needed = prepared.held.needed(&wanted, ranges);
            whole = !wanted.splittable && !needed.is_empty();
        }
        let joins = !needed.is_empty();
        let pin = match joins {
            true => prepared.held.etag(),
            false => prepared.pin.clone(),
        };
        if let Some(pin) = pin.as_deref().filter(|_| ranges.is_empty())
            && !prepared.checked
        {
            self.confirm(key, pin).await?;
        }
        let gets = ranges
            .iter()
            .map(|range| self.get_cached(key, Some(range), pin.clone()));
        let mut brought: Vec<Brought> = Vec::with_capacity(ranges.len());
        for answer in try_join_all(gets).await? {
            let Some(answer) = answer else {
                if brought.is_empty() && pin.is_none() {
                    return Ok((Fetched::Absent, None));
                }
                return Err(Error::conflict(format!(
                    "the object {key} was removed while it was read"
                )));
            };
            let first = brought.first().map_or(&answer.etag, |first| &first.etag);
            if *first != answer.etag || (joins && answer.etag != pin) {
                return Err(Error::conflict(format!(
                    "the object {key} changed while it was read"
                )));
            }
            brought.push(answer);
        }
        if let Some(pin) = pin.filter(|_| !brought.is_empty()) {
            self.confirm_in_memory(key, &pin);
        }
        let etag = brought.first().and_then(|first| first.etag.clone());
        self.keep(key, &brought).await;
        let mut parts = self.load(&prepared.held, needed).await?;
        for one in brought {
            parts.push(match one.body {
                Body::Memory(segments) => (one.start, segments),
                file => (one.start, vec![file.into_bytes()?]),
            });
        }
        // Parts of one range, cached or fetched over several connections, become one.
        let mut bodies = join(parts);
        if whole && let Some((_, body)) = bodies.pop() {
            state.saw_size(body.len());
            return Ok((Fetched::Whole(body), etag));
        }
        Ok((Fetched::Ranges(bodies), etag))
    }

    /// A shard's index, from the caches or from the object's tail (or head).
    async fn shard_index(
        &self,
        sharding: &Sharding,
        prepared: &Prepared,
    ) -> Result<Option<FoundIndex>> {
        let key = &prepared.object.key;
        let session = self.inner().session.inner();
        let cache_key = cache::key(&self.cache_name(key), None);
        // A stale entry does no harm: the ranges that follow are pinned to its ETag, and a changed
        // object answers with a Conflict, after which the index is read anew. Where no ranges
        // follow, the store is asked whether the object still has that ETag.
        if let Some(cached) = self.known_index(key) {
            return Ok(Some(FoundIndex {
                index: cached.value,
                etag: cached.etag,
                checked: cached.fresh,
            }));
        }
        if let Some(found) = self.held_index(sharding, &prepared.held).await {
            return Ok(Some(found));
        }
        let n = sharding.index_bytes();
        let range = if sharding.index_at_start() {
            GetRange::Bounded(0..n)
        } else {
            GetRange::Suffix(n)
        };
        let options = Get {
            range: Some(range),
            ..Default::default()
        };
        let Some(got) = self.get_in_window(key, options).await? else {
            return Ok(None);
        };
        let brought = Brought {
            start: got.range.start,
            body: got.body,
            etag: got.meta.etag,
            size: got.meta.size,
        };
        self.keep(key, std::slice::from_ref(&brought)).await;
        let index = sharding
            .decode_index(&brought.body.into_bytes()?, brought.size)
            .map_err(|e| e.context(format!("the object {key}")))?;
        let index = Arc::new(index);
        let etag = brought.etag;
        let bytes = index.bytes() as u64;
        session
            .indexes
            .put(cache_key, index.clone(), etag.clone(), bytes);
        Ok(Some(FoundIndex {
            index,
            etag,
            checked: true,
        }))
    }

    /// Bytes of an object from its store; they are kept in the session's memory.
    pub(crate) async fn get_cached(
        &self,
        key: &str,
        range: Option<&Range<u64>>,
        pin: Option<String>,
    ) -> Result<Option<Brought>> {
        let session = self.inner().session.inner();
        let options = Get {
            range: range.map(|r| GetRange::Bounded(r.clone())),
            if_match: pin,
            if_none_match: None,
        };
        let Some(got) = self.get_in_window(key, options).await? else {
            return Ok(None);
        };
        let mut brought = Brought {
            start: got.range.start,
            body: got.body,
            etag: got.meta.etag,
            size: got.meta.size,
        };
        if !session.chunks.is_off() && !self.inner().open.lazy {
            let bytes = brought.body.into_bytes()?;
            brought.body = bytes.clone().into();
            let etag = brought.etag.clone().filter(|etag| is_strong(etag));
            let (name, len) = (self.cache_name(key), bytes.len() as u64);
            session
                .chunks
                .put(cache::key(&name, range), bytes, etag, len);
        }
        Ok(Some(brought))
    }

    /// One request of a read: waits until the store's window has room.
    async fn get_in_window(&self, key: &str, options: Get) -> Result<Option<Got>> {
        let planner = &self.inner().open.planner;
        let _slot = planner
            .window
            .acquire()
            .await
            .map_err(|_| Error::internal("a store's window was closed"))?;
        let flight = planner.watch.begin();
        let got = if self.inner().session.options().hedge {
            self.get_hedged(key, options).await?
        } else {
            self.get_object(key, options).await?
        };
        if let Some(got) = got.as_ref().filter(|got| !got.not_modified) {
            flight.done(got.body.len());
        }
        Ok(got)
    }

    /// One request, and the same again if it takes long; what comes first is taken.
    async fn get_hedged(&self, key: &str, options: Get) -> Result<Option<Got>> {
        let watch = &self.inner().open.planner.watch;
        let bytes = match &options.range {
            Some(GetRange::Bounded(range)) => range.end - range.start,
            Some(GetRange::Suffix(bytes)) => *bytes,
            // Of a whole object the length is not known.
            _ => return self.get_object(key, options).await,
        };
        let Some(patience) = watch.patience(bytes) else {
            return self.get_object(key, options).await;
        };
        let mut first = std::pin::pin!(self.get_object(key, options.clone()));
        if let Ok(answer) = tokio::time::timeout(patience, &mut first).await {
            return answer;
        }
        watch.hedge();
        let second = std::pin::pin!(self.get_object(key, options));
        match select(first, second).await {
            Either::Left((Err(_), other)) => other.await,
            Either::Right((Err(_), other)) => other.await,
            Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
        }
    }

    /// One request; `None` if there is no such object.
    pub(crate) async fn get_object(&self, key: &str, options: Get) -> Result<Option<Got>> {
        match self.inner().open.store.get(key, options).await {
            Ok(got) => Ok(Some(got)),
            Err(e) if e.is_not_found() => {
                self.saw_absence();
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }
}
