//! From pieces to requests: tells the planner (`hyperslab-plan`) what a query wants, and hands its
//! choice for every object to the executor.
//!
//! Objects of one store are planned together, however many arrays they belong to. Shards are
//! located first, so that their inner chunks can be planned as the byte ranges they are.
//!
//! Invariant: what an object is described to want is what its pieces need, so a plan that covers
//! the description covers the pieces.

use std::sync::Arc;

use hyperslab_format::{ObjectPieces, Source};
use hyperslab_plan::{self as plan, Method, Mode, Model, Object, PriceBook, Profile, Run};
use hyperslab_store::StoreKind;
use tokio::sync::Semaphore;

use crate::array::State;
use crate::{Options, Result};

/// So many runs of one chunk are not looked at one by one: they are wanted as one range.
const MAX_RUNS: u64 = 1 << 16;

/// Indexes of shards that are read at a time.
pub(crate) const LOCATED: usize = 64;

/// How requests to one store are chosen and bounded.
#[derive(Debug, Clone)]
pub(crate) struct Planner {
    mode: Mode,
    model: Arc<Model>,
    /// Requests in flight at a time.
    pub(crate) window: Arc<Semaphore>,
}

impl Planner {
    /// The planner of a store of this kind.
    pub(crate) fn new(options: &Options, kind: StoreKind) -> Result<Self> {
        let (profile, prices) = match kind {
            StoreKind::S3 => ("aws", "aws"),
            StoreKind::Azure => ("azure", "azure"),
            StoreKind::Google => ("gcp", "gcp"),
            StoreKind::Http => ("aws", "none"),
            _ => ("local", "none"),
        };
        let mut profile = match &options.profile {
            Some(profile) => Profile::clone(profile),
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
        let model = Model::new(&profile, &prices, options.place, options.phi)?;
        let most = u64::try_from(options.concurrency).unwrap_or(u64::MAX);
        let window = model.window().min(most).max(1);
        Ok(Planner {
            mode: options.planner,
            model: Arc::new(model),
            window: Arc::new(Semaphore::new(window as usize)),
        })
    }

    /// The model that plans are costed by.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Chooses a method for every object. Objects of which nothing is stored get no request.
    pub(crate) fn plan(&self, objects: &[Described]) -> Result<Vec<Method>> {
        Ok(self.plan_as(objects, self.mode)?.0)
    }

    /// Chooses a method for an object by itself.
    pub(crate) fn plan_one(&self, object: Described) -> Result<Method> {
        let mut methods = self.plan(&[object])?;
        Ok(methods.pop().unwrap_or(Method::Get))
    }

    /// Plans with a given planner; returns the methods and the estimate.
    pub(crate) fn plan_as(
        &self,
        objects: &[Described],
        mode: Mode,
    ) -> Result<(Vec<Method>, plan::Estimate)> {
        let wanted = objects.iter().filter(|object| !object.0.runs.is_empty());
        let query = plan::Query::new(wanted.map(|object| object.0.clone()).collect())?;
        let plan = plan::plan(&query, &self.model, mode);
        let mut methods = plan.methods.into_iter();
        let all = objects.iter().map(|object| {
            if object.0.runs.is_empty() {
                return Method::Ranges(Vec::new());
            }
            match methods.next() {
                // Its size is a guess: the range that the planner saw may not be all of it.
                Some(Method::Ranges(_)) | None if !object.0.splittable => Method::Get,
                Some(method) => method,
                None => Method::Get,
            }
        });
        Ok((all.collect(), plan.estimate))
    }

    /// True if reading a whole shard costs less time than asking for its index first.
    pub(crate) fn takes_whole_shard(&self, state: &State, object: &ObjectPieces) -> bool {
        if self.mode == Mode::Get {
            return true;
        }
        let inner = state.meta.codecs.sharding().map_or(1, |s| s.num_inner());
        let size = state.guess_size(inner);
        let wanted = size / inner.max(1) * object.pieces.len() as u64;
        let network = self.model.network();
        let saved = size.saturating_sub(wanted) as f64 / network.connection_bandwidth;
        saved <= network.latency_seconds
    }
}

/// What is wanted of one object, in the planner's terms.
#[derive(Debug, Clone)]
pub(crate) struct Described(pub(crate) Object);

/// Describes an object. The pieces of a shard are located, unless all of it is wanted.
pub(crate) fn describe(state: &State, object: &ObjectPieces) -> Described {
    let cell = state.cell as u64;
    let useful = |object: &ObjectPieces| -> u64 {
        let cells = object.pieces.iter().map(|piece| piece.part.num_cells());
        cells.sum::<u64>() * cell
    };
    if state.meta.codecs.sharding().is_some() {
        let unlocated = |piece: &hyperslab_format::Piece| matches!(piece.source, Source::Inner(_));
        if !object.pieces.iter().any(unlocated) {
            return Described(located(object, cell));
        }
    } else if let Some(raw) = raw(state, object, cell) {
        return Described(raw);
    }
    let inner = state.meta.codecs.sharding().map_or(1, |s| s.num_inner());
    let mut whole = Object::encoded(state.guess_size(inner).max(1), useful(object));
    whole.splittable = false;
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

/// A shard whose index is known.
fn located(object: &ObjectPieces, cell: u64) -> Object {
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
    Object {
        size: runs.last().map_or(0, |run| run.end),
        runs,
        grain: 0,
        function: true,
        splittable: true,
    }
}
