//! The function itself: takes a request, answers it.
//!
//! On top of the library part and without a server: Lambda, Azure, Cloud Run, the local server and
//! the simulated cloud all call [`Service::handle`]. The order is: size, signature, form, allow-list,
//! sums, a free slot, memory, and only then the store.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_index::{Error, Result};
use hyperslab_store::Options;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::{Answer, PREAMBLE_BYTES};
use crate::failure::Refusal;
use crate::job::{Job, UnitJob};
use crate::source::{self, Source};
use crate::{AllowList, Host, Limits, Secret, SlabRequest, VERSION, verify};

/// Units of one request that are read at a time.
const PARALLEL: usize = 16;
/// What one request may hold at a time for reading and decoding, unless one unit needs more.
const USUAL_MEMORY: u64 = 256 << 20;
/// The unit in which memory is handed out.
const GRAIN: u64 = 1 << 10;

/// What a service is made of.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// What it may read.
    pub allow: AllowList,
    /// Who may call it: whoever knows this. `None` lets everybody call, which is for loopback.
    pub secret: Option<Secret>,
    /// What calls may take.
    pub limits: Limits,
    /// How stores are opened: credentials and endpoints come from its environment.
    pub options: Options,
}

impl ServiceConfig {
    /// A service that anybody may call, with the limits of a plain server.
    pub fn unsigned(allow: AllowList) -> Self {
        ServiceConfig {
            allow,
            secret: None,
            limits: Limits::of(Host::Local),
            options: Options::new(),
        }
    }
}

/// The function, ready to be called.
pub struct Service {
    allow: AllowList,
    sources: Vec<Arc<Source>>,
    secret: Option<Secret>,
    limits: Limits,
    slots: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

/// An answer, for any transport.
#[derive(Debug, Clone)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// The header `content-type`.
    pub content_type: &'static str,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
    /// What it took.
    pub work: Work,
}

/// What a call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Requests to the store.
    pub requests: u64,
    /// Bytes read from the store.
    pub read: u64,
    /// Bytes decoded.
    pub decoded: u64,
    /// Bytes of the payload.
    pub answered: u64,
}

/// What keeps a call's share of the function until its last thread is done with it.
type Hold = Arc<(OwnedSemaphorePermit, OwnedSemaphorePermit)>;

impl Service {
    /// Opens the stores of the allow-list; does no request yet.
    pub fn new(config: ServiceConfig) -> Result<Self> {
        let ServiceConfig {
            allow,
            secret,
            limits,
            options,
        } = config;
        let room = usize::try_from(room(&limits)).unwrap_or(usize::MAX);
        Ok(Service {
            sources: source::open_all(&allow, &options)?
                .into_iter()
                .map(Arc::new)
                .collect(),
            allow,
            secret,
            slots: Arc::new(Semaphore::new(limits.max_concurrent as usize)),
            memory: Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS))),
            limits,
        })
    }

    /// What calls may take.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Calls that are being answered.
    pub fn calls_under_way(&self) -> u32 {
        let free = u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX);
        self.limits.max_concurrent.saturating_sub(free)
    }

    /// Answers a request at the time `now_unix`; `signature` is the value of
    /// [`crate::SIGNATURE_HEADER`].
    pub async fn handle(&self, body: &[u8], signature: Option<&str>, now_unix: u64) -> Response {
        self.handle_within(body, signature, now_unix, self.limits.time())
            .await
    }

    /// The same, in less time than the limits allow.
    pub async fn handle_within(
        &self,
        body: &[u8],
        signature: Option<&str>,
        now_unix: u64,
        time: Duration,
    ) -> Response {
        let answer = self.answer(body, signature, now_unix, time.min(self.limits.time()));
        answer.await.unwrap_or_else(Refusal::into_response)
    }

    /// Tells that the function runs, and its limits.
    pub fn health(&self) -> Response {
        let health = crate::Health {
            service: crate::client::SERVICE_NAME.to_owned(),
            version: VERSION,
            limits: self.limits.clone(),
        };
        Response {
            status: 200,
            content_type: "application/json",
            headers: Vec::new(),
            body: serde_json::to_vec(&health).unwrap_or_default().into(),
            work: Work::default(),
        }
    }

    /// The answer where a path or method is not known.
    pub fn unknown_path(&self) -> Response {
        // Not a 404: that one says that an object is absent.
        Refusal::from(
            Error::invalid("the function has no such path")
                .with_hint("POST /slab asks for cells, GET /health for the limits"),
        )
        .into_response()
    }

    /// The answer to a request whose body could not be taken in.
    pub fn body_too_large(&self) -> Response {
        Refusal::too_large(format!(
            "the request has more than {} bytes",
            self.limits.max_request
        ))
        .into_response()
    }

    async fn answer(
        &self,
        body: &[u8],
        signature: Option<&str>,
        now_unix: u64,
        time: Duration,
    ) -> Result<Response, Refusal> {
        if body.len() as u64 > self.limits.max_request {
            return Ok(self.body_too_large());
        }
        if let Some(secret) = &self.secret {
            verify(secret, body, signature, now_unix).map_err(Refusal::unsigned)?;
        }
        let request = SlabRequest::parse(body)?;
        let mut places = Vec::with_capacity(1 + request.more.len());
        for (object, etag, _) in request.parts() {
            let (number, key) = self.allow.locate(object)?;
            let Some(source) = self.sources.get(number) else {
                return Err(Error::internal("an allowed prefix has no source").into());
            };
            places.push(Place {
                source: Arc::clone(source),
                key: key.to_owned(),
                pin: etag.map(str::to_owned),
            });
        }
        let job = Job::plan(&request, &self.limits)?;
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| {
            Error::unavailable(format!(
                "the function is answering {} calls already",
                self.limits.max_concurrent
            ))
        })?;
        let run = self.run(places, job, slot);
        match tokio::time::timeout(time, run).await {
            Ok(answered) => Ok(answered?),
            Err(_) => Err(Error::unavailable(format!(
                "the call took more than {:.1} seconds",
                time.as_secs_f64()
            ))
            .into()),
        }
    }

    async fn run(
        &self,
        objects: Vec<Place>,
        job: Job,
        slot: OwnedSemaphorePermit,
    ) -> Result<Response> {
        let memory = || job.parts.iter().flatten().map(|unit| grains(unit.memory));
        let payload = grains(job.answer);
        let room = room(&self.limits).saturating_sub(payload);
        // Enough for the largest unit, so that no unit waits for ever; and taken at once, so that
        // no two requests wait for each other.
        let largest = memory().max().unwrap_or(0);
        let all: u64 = memory().sum();
        let work = all.min(largest.max(grains(USUAL_MEMORY))).min(room);
        let held = take(&self.memory, payload.saturating_add(work)).await?;
        let hold: Hold = Arc::new((slot, held));
        let share = Arc::new(Semaphore::new(usize::try_from(work).unwrap_or(usize::MAX)));

        let total = usize::try_from(job.answer).unwrap_or(usize::MAX);
        let mut rest = BytesMut::zeroed(PREAMBLE_BYTES + total);
        let mut body = rest.split_to(PREAMBLE_BYTES);
        let mut parts = Vec::with_capacity(objects.len());
        for (object, units) in objects.into_iter().zip(job.parts) {
            let place = |unit: UnitJob| {
                let place = rest.split_to(unit.answer as usize);
                (unit, place)
            };
            let places: Vec<_> = units.into_iter().map(place).collect();
            parts.push((object, places));
        }
        let filled = stream::iter(parts)
            .map(|(object, places)| fill_object(object, places, &share, &hold))
            .buffered(PARALLEL)
            .try_collect::<Vec<_>>();
        let filled = filled.await?;

        let mut work = Work {
            answered: job.answer,
            ..Work::default()
        };
        // Of several objects there is no one state to tell.
        let etag = match filled.as_slice() {
            [units] => units.iter().find_map(|unit| unit.etag.clone()),
            _ => None,
        };
        for unit in filled.into_iter().flatten() {
            work.requests += 1;
            work.read += unit.read;
            work.decoded += unit.decoded;
            // The parts lie side by side in one allocation, so this copies nothing.
            body.unsplit(unit.place);
        }
        let preamble = Answer::preamble(&body[PREAMBLE_BYTES..]);
        body[..PREAMBLE_BYTES].copy_from_slice(&preamble);
        let tag = etag.map(|etag| (crate::client::ETAG_HEADER, etag));
        Ok(Response {
            status: 200,
            content_type: "application/octet-stream",
            headers: tag.into_iter().collect(),
            body: body.freeze(),
            work,
        })
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("allow", &self.allow)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A unit whose bytes are in their place.
struct Filled {
    place: BytesMut,
    etag: Option<String>,
    read: u64,
    decoded: u64,
}

/// An object of a request.
struct Place {
    source: Arc<Source>,
    key: String,
    /// The state that is meant.
    pin: Option<String>,
}

/// Fills the places of all units of one object, which are all read of one state.
async fn fill_object(
    object: Place,
    places: Vec<(UnitJob, BytesMut)>,
    share: &Arc<Semaphore>,
    hold: &Hold,
) -> Result<Vec<Filled>> {
    let (source, key, mut pin) = (&*object.source, &*object.key, object.pin);
    let mut places = places.into_iter();
    let mut filled = Vec::with_capacity(places.len());
    if pin.is_none()
        && let Some((unit, place)) = places.next()
    {
        // What the first unit was read of, the others have to be read of, too.
        let first = fill(source, key, unit, place, None, share, hold).await?;
        pin.clone_from(&first.etag);
        filled.push(first);
    }
    let others = stream::iter(places)
        .map(|(unit, place)| fill(source, key, unit, place, pin.as_deref(), share, hold))
        .buffered(PARALLEL)
        .try_collect::<Vec<_>>();
    filled.extend(others.await?);
    Ok(filled)
}

async fn fill(
    source: &Source,
    key: &str,
    unit: UnitJob,
    mut place: BytesMut,
    pin: Option<&str>,
    share: &Arc<Semaphore>,
    hold: &Hold,
) -> Result<Filled> {
    let held = take(share, grains(unit.memory)).await?;
    let piece = source.read(key, &unit.wanted, pin).await?;
    let hold = Arc::clone(hold);
    let cut = move || -> Result<Filled> {
        let _held = (held, hold);
        let etag = piece.etag;
        let bytes = piece.body.into_bytes()?;
        let decoded = unit.cut(&bytes, &mut place)?;
        Ok(Filled {
            place,
            etag,
            read: bytes.len() as u64,
            decoded,
        })
    };
    tokio::task::spawn_blocking(cut)
        .await
        .map_err(|e| Error::internal("the function's decoder stopped").with_source(e))?
        .map_err(|e| e.context(key))
}

/// Memory in grains, rounded up.
fn grains(bytes: u64) -> u64 {
    bytes.div_ceil(GRAIN)
}

/// All memory in grains. Payload and unit are rounded up by themselves, hence one more for each.
fn room(limits: &Limits) -> u64 {
    grains(limits.max_memory) + 2
}

async fn take(from: &Arc<Semaphore>, grains: u64) -> Result<OwnedSemaphorePermit> {
    let grains = u32::try_from(grains)
        .map_err(|_| Error::internal("a call needs more memory than was checked"))?;
    Arc::clone(from)
        .acquire_many_owned(grains)
        .await
        .map_err(|e| Error::internal("the function's memory is closed").with_source(e))
}
