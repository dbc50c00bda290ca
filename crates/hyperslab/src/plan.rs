//! From pieces to requests: tells the planner (`hyperslab-plan`) what a query wants, and hands its
//! choice for every object to the executor.
//!
//! Objects of one store are planned together, however many arrays they belong to. Shards are
//! located first, so that their inner chunks can be planned as the byte ranges they are.
//!
//! Invariant: what an object is described to want, and what the caches hold of it, is what its
//! pieces need, so a plan that covers the description covers the pieces.

use std::sync::Arc;

use hyperslab_format::{ObjectPieces, Source};
use hyperslab_plan::{self as plan, Fees, Method, Mode, Model, Object, PriceBook, Profile, Run};
use hyperslab_store::StoreKind;
use tokio::sync::Semaphore;

use crate::array::State;
use crate::fetch::Prepared;
use crate::profile::load_for;
use crate::watch::Watch;
use crate::{Options, Result};

/// So many runs of one chunk are not looked at one by one: they are wanted as one range.
const MAX_RUNS: u64 = 1 << 16;
/// So many, where it is only asked whether a shard's index is worth its request.
const MAX_GUESSED_RUNS: u64 = 1 << 9;

/// Indexes of shards that are read at a time.
pub(crate) const LOCATED: usize = 256;

/// How requests to one store are chosen and bounded.
#[derive(Debug, Clone)]
pub(crate) struct Planner {
    mode: Mode,
    /// What the store charges.
    pub(crate) prices: Arc<PriceBook>,
    /// What is known of the way to the store.
    pub(crate) watch: Arc<Watch>,
    /// Requests in flight at a time.
    pub(crate) window: Arc<Semaphore>,
    /// Calls of the function under way at a time.
    pub(crate) calls: Arc<Semaphore>,
}

/// A plan for some objects of a store.
#[derive(Debug)]
pub(crate) struct Planned {
    /// One method for each object; objects of which nothing is stored get no request.
    pub(crate) methods: Vec<Method>,
    /// Objects whose calls of the function travel together.
    pub(crate) bundles: Vec<Vec<usize>>,
    pub(crate) estimate: plan::Estimate,
}

impl Planner {
    /// The planner of the store at `url`, which is of this kind.
    pub(crate) fn new(options: &Options, kind: StoreKind, url: &str) -> Result<Self> {
        let (profile, prices) = match kind {
            StoreKind::S3 => ("aws", "aws"),
            StoreKind::Azure => ("azure", "azure"),
            StoreKind::Google => ("gcp", "gcp"),
            StoreKind::Http => ("aws", "none"),
            _ => ("local", "none"),
        };
        let remote = profile != "local";
        let measured = match &options.profile {
            Some(profile) => Some(Profile::clone(profile)),
            None if remote => load_for(url, &options.storage)?,
            None => None,
        };
        let mut profile = match measured {
            Some(profile) => profile,
            None => Profile::built_in(profile)?,
        };
        if options.function.is_none() {
            // Nobody has said where it is.
            profile.function = None;
        } else if profile.function.is_none() {
            profile.function = Profile::built_in("aws")?.function;
        }
        let prices = match &options.prices {
            Some(prices) => PriceBook::clone(prices),
            None => PriceBook::built_in(prices)?,
        };
        let memory = profile.function.as_ref().map_or(0, |f| f.memory_bytes);
        let fees = Fees::new(&prices, options.place, memory);
        let window = profile.network.window();
        let watch = Watch::new(profile, options.frozen || !remote, fees, options.phi)?;
        let most = u64::try_from(options.concurrency).unwrap_or(u64::MAX);
        Ok(Planner {
            mode: options.planner,
            prices: Arc::new(prices),
            calls: Arc::new(Semaphore::new(watch.model().call_window() as usize)),
            watch: Arc::new(watch),
            window: Arc::new(Semaphore::new(window.min(most).max(1) as usize)),
        })
    }

    /// The model that plans are costed by.
    pub(crate) fn model(&self) -> Arc<Model> {
        self.watch.model()
    }

    /// Chooses a method for every object.
    pub(crate) fn plan(&self, objects: &[Described]) -> Result<Planned> {
        self.plan_as(objects, self.mode)
    }

    /// Chooses a method for an object by itself.
    pub(crate) fn plan_one(&self, object: Described) -> Result<Method> {
        let mut planned = self.plan(&[object])?;
        Ok(planned.methods.pop().unwrap_or(Method::Get))
    }

    /// Plans with a given planner.
    pub(crate) fn plan_as(&self, objects: &[Described], mode: Mode) -> Result<Planned> {
        let wanted: Vec<usize> = (0..objects.len())
            .filter(|i| !objects[*i].0.runs.is_empty())
            .collect();
        let query = wanted.iter().map(|i| objects[*i].0.clone()).collect();
        let plan = plan::plan(&plan::Query::new(query)?, &self.model(), mode);
        let mut methods = vec![Method::Ranges(Vec::new()); objects.len()];
        for (i, method) in wanted.iter().zip(plan.methods) {
            methods[*i] = match method {
                // Its size is a guess: the range that the planner saw may not be all of it.
                Method::Ranges(_) if !objects[*i].0.splittable => Method::Get,
                method => method,
            };
        }
        let back = |bundle: Vec<usize>| bundle.into_iter().map(|i| wanted[i]).collect();
        Ok(Planned {
            methods,
            bundles: plan.bundles.into_iter().map(back).collect(),
            estimate: plan.estimate,
        })
    }

    /// Which of these shards had better be located by their indexes first; the others are read whole.
    pub(crate) fn locate(&self, shards: &[(&State, &ObjectPieces)]) -> Result<Vec<bool>> {
        let guessed: Vec<plan::Unlocated> = shards
            .iter()
            .map(|(state, object)| unlocated(state, object))
            .collect();
        plan::locate(&guessed, &self.model(), self.mode)
    }
}

/// A shard before its index is known: inner chunks lie in order, and all are of one size.
fn unlocated(state: &State, object: &ObjectPieces) -> plan::Unlocated {
    let sharding = state.meta.codecs.sharding();
    let inner = sharding.map_or(1, |s| s.num_inner()).max(1);
    let size = state.guess_size(inner);
    let each = (size / inner).max(1);
    let mut guess = object.clone();
    for piece in &mut guess.pieces {
        if let Source::Inner(i) = piece.source {
            piece.source = Source::Range(i * each..(i + 1) * each);
        }
    }
    plan::Unlocated {
        whole: wanted(state, object).0,
        located: located(state, &guess, size, MAX_GUESSED_RUNS),
        index: sharding.map_or(0, |s| s.index_bytes()),
    }
}

/// What is wanted of a shard whose index is read first, by a guess; and the bytes of the index.
pub(crate) fn guessed_shard(state: &State, object: &ObjectPieces) -> (Object, u64) {
    let guess = unlocated(state, object);
    (guess.located, guess.index)
}

/// What is wanted of one object, in the planner's terms.
#[derive(Debug, Clone)]
pub(crate) struct Described(pub(crate) Object);

/// Describes what has to be fetched of an object: what is wanted and not cached.
pub(crate) fn describe(state: &State, prepared: &Prepared) -> Described {
    let mut described = wanted(state, &prepared.object);
    prepared.held().take_out(&mut described.0);
    described
}

/// Describes what is wanted of an object. The pieces of a shard are located, unless all of it is
/// wanted.
pub(crate) fn wanted(state: &State, object: &ObjectPieces) -> Described {
    let cell = state.cell as u64;
    let useful = |object: &ObjectPieces| -> u64 {
        let cells = object.pieces.iter().map(|piece| piece.part.num_cells());
        cells.sum::<u64>() * cell
    };
    if let Some(file) = &state.file {
        let mut described = located(state, object, file.size(), MAX_RUNS);
        // It would have to know the filters of HDF5.
        described.function = false;
        return Described(described);
    }
    if state.meta.codecs.sharding().is_some() {
        let unlocated = |piece: &hyperslab_format::Piece| matches!(piece.source, Source::Inner(_));
        if !object.pieces.iter().any(unlocated) {
            let inner = state.meta.codecs.sharding().map_or(1, |s| s.num_inner());
            let guess = state.guess_size(inner);
            return Described(located(state, object, guess, MAX_RUNS));
        }
    } else if let Some(raw) = raw(state, object, cell) {
        return Described(raw);
    }
    let inner = state.meta.codecs.sharding().map_or(1, |s| s.num_inner());
    let mut whole = Object::encoded(state.guess_size(inner).max(1), useful(object));
    whole.splittable = false;
    // The function decodes inner chunks, and where they lie is not known yet.
    whole.function = state.meta.codecs.sharding().is_none();
    Described(whole)
}

/// A chunk whose cells are stored as they are.
fn raw(state: &State, object: &ObjectPieces, cell: u64) -> Option<Object> {
    let [piece] = object.pieces.as_slice() else {
        return None;
    };
    if !state.meta.codecs.is_rangeable() || state.meta.dtype.is_variable() {
        return None;
    }
    let summary = piece.part.run_summary(&state.order, cell);
    let runs = if summary.runs > MAX_RUNS {
        vec![Run {
            start: summary.first,
            end: summary.end,
            useful: summary.bytes,
        }]
    } else {
        let runs = piece.part.runs(&state.order, cell);
        runs.map(|run| Run::plain(run.offset..run.end())).collect()
    };
    Some(Object {
        size: state.unit_bytes() as u64,
        runs,
        grain: if summary.runs > MAX_RUNS { 0 } else { cell },
        function: true,
        splittable: true,
    })
}

/// A shard whose index is known. Of inner chunks whose cells are stored as they are, the wanted rows
/// are runs, unless they are more than `most`; others are runs as a whole.
fn located(state: &State, object: &ObjectPieces, guess: u64, most: u64) -> Object {
    let cell = state.cell as u64;
    let rows = raw_rows(state, object, most);
    let grain = if rows.is_some() { cell } else { 0 };
    let runs = rows.unwrap_or_else(|| whole_units(object, cell));
    Object {
        // Its index is in there too, so all of it is more than its chunks.
        size: runs.last().map_or(0, |run| guess.max(run.end + 1)),
        runs,
        grain,
        function: true,
        splittable: true,
    }
}

/// The inner chunks of a shard that are wanted.
fn whole_units(object: &ObjectPieces, cell: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = object
        .pieces
        .iter()
        .filter_map(|piece| match &piece.source {
            Source::Range(range) if !range.is_empty() => Some(Run {
                start: range.start,
                end: range.end,
                useful: piece.part.num_cells() * cell,
            }),
            _ => None,
        })
        .collect();
    runs.sort_by_key(|run| (run.start, run.end));
    // An index may name the same bytes for several inner chunks.
    runs.dedup_by(|next, run| {
        let shared = next.start < run.end;
        if shared {
            run.end = run.end.max(next.end);
            run.useful += next.useful;
        }
        shared
    });
    runs
}

/// The wanted rows of a shard's inner chunks; `None` if they cannot be read by themselves, or are
/// not worth it.
fn raw_rows(state: &State, object: &ObjectPieces, most: u64) -> Option<Vec<Run>> {
    if !state.has_raw_units() {
        return None;
    }
    let cell = state.cell as u64;
    let mut left = most;
    let mut runs: Vec<Run> = Vec::new();
    for piece in &object.pieces {
        let range = match &piece.source {
            Source::Range(range) => range,
            _ => continue,
        };
        left = left.checked_sub(piece.part.run_summary(&state.order, cell).runs)?;
        if !state.is_unit(range) {
            // Damaged, or not what the metadata says: decoding it will tell.
            return None;
        }
        let rows = piece.part.runs(&state.order, cell);
        runs.extend(rows.map(|run| Run::plain(range.start + run.offset..range.start + run.end())));
    }
    runs.sort_unstable_by_key(|run| run.start);
    if runs.windows(2).any(|pair| pair[1].start < pair[0].end) {
        return None;
    }
    // Rows that end where the next inner chunk begins are one run.
    runs.dedup_by(|next, run| {
        let joins = next.start == run.end;
        if joins {
            run.end = next.end;
            run.useful += next.useful;
        }
        joins
    });
    Some(runs)
}
