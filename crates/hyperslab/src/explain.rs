//! Explains a query: what would be requested for every chunk, what that would take, and what the
//! forced plans would take instead.
//!
//! Nothing is read but the indexes of shards, which a plan needs.

mod page;
mod report;

use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_index::Selection;
use hyperslab_plan::{Estimate, Method, Mode, Model};

use crate::array::State;
use crate::fetch::Prepared;
use crate::plan::{Described, LOCATED, Planned, describe, wanted};
use crate::{Array, Result, replicas};

/// What would be done for one query.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// Which planner chose.
    pub mode: Mode,
    /// What is done for each chunk (or shard), in the order of the grid.
    pub chunks: Vec<ChunkPlan>,
    /// What the plan is expected to take.
    pub estimate: Estimate,
    /// What other planners would take, by the same model.
    pub alternatives: Vec<(Mode, Estimate)>,
    /// Bytes of the wanted cells.
    pub useful: u64,
    /// Bytes of objects that are wanted and cached, in memory or on disk.
    pub cached: u64,
    /// The model that all of this follows from.
    pub model: Model,
    /// What each copy of the array would take, the original first; none if there are no replicas
    /// that may answer. Estimated before anything is looked up, so that copies compare.
    pub copies: Vec<CopyPlan>,
}

/// What a copy of an array would take.
#[derive(Debug, Clone)]
pub struct CopyPlan {
    /// Its name; `None` is the original.
    pub name: Option<String>,
    /// True for the copy that answers.
    pub chosen: bool,
    /// What it is expected to take.
    pub estimate: Estimate,
}

/// What is done for one chunk (or shard).
#[derive(Debug, Clone)]
pub struct ChunkPlan {
    /// Its index in the grid.
    pub chunk: Vec<u64>,
    /// Its key in the store.
    pub key: String,
    /// How it is fetched.
    pub method: Method,
    /// Bytes of its wanted cells.
    pub useful: u64,
    /// Bytes that would reach the client.
    pub bytes: u64,
    /// Bytes that are wanted and cached, in memory or on disk.
    pub cached: u64,
}

/// What a read took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Seconds from the call to its end.
    pub seconds: f64,
    /// Requests to all stores of the session meanwhile.
    pub requests: u64,
    /// Bytes that they sent.
    pub bytes: u64,
}

impl Array {
    /// Reads a selection, throws the cells away and tells what that took.
    pub async fn measure(&self, selection: &Selection) -> Result<Measured> {
        let totals = || {
            let meters = self.session().meters();
            meters.iter().fold((0, 0), |(requests, bytes), (_, meter)| {
                (requests + meter.total(), bytes + meter.bytes_in)
            })
        };
        let before = totals();
        let begun = Instant::now();
        self.read(selection).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = totals();
        Ok(Measured {
            seconds,
            requests: after.0 - before.0,
            bytes: after.1 - before.1,
        })
    }

    /// Plans the read of a selection without doing it.
    pub async fn explain(&self, selection: &Selection) -> Result<Explanation> {
        let state = self.ready().await?;
        selection.check(&state.meta.shape)?;
        // A virtual dataset is read as its sources are, all of them together.
        let sources = match &state.mosaic {
            None => vec![(self.clone(), selection.clone())],
            Some(mosaic) => mosaic.sources(&state.meta.shape, selection).await?,
        };
        let planner = match sources.first() {
            Some((first, _)) => first.inner().open.planner.clone(),
            None => self.inner().open.planner.clone(),
        };
        let mut prepared = Vec::new();
        let mut copies = Vec::new();
        for (array, selection) in &sources {
            let (array, state) = array.answering(selection, &mut copies).await?;
            for object in array.prepare_all(&state, selection).await? {
                prepared.push((state.clone(), object));
            }
        }
        let described: Vec<Described> = prepared
            .iter()
            .map(|(state, prepared)| describe(state, prepared))
            .collect();
        let mode = self.inner().session.options().planner;
        let Planned {
            methods, estimate, ..
        } = planner.plan_as(&described, mode)?;
        let mut alternatives = Vec::new();
        for other in Mode::ALL.into_iter().filter(|other| *other != mode) {
            let by_function = matches!(other, Mode::Function | Mode::FunctionWhole);
            if !by_function || planner.model().function().is_some() {
                alternatives.push((other, planner.plan_as(&described, other)?.estimate));
            }
        }
        let chunks: Vec<ChunkPlan> = prepared
            .iter()
            .zip(&described)
            .zip(methods)
            .map(|(((state, prepared), described), method)| {
                let wanted = wanted(state, &prepared.object).0;
                ChunkPlan {
                    chunk: prepared.object.chunk.clone(),
                    key: prepared.object.key.clone(),
                    useful: wanted.useful(),
                    bytes: bytes(&method, described.0.size),
                    cached: prepared.held().wanted_bytes(&wanted),
                    method,
                }
            })
            .collect();
        Ok(Explanation {
            mode,
            useful: chunks.iter().map(|chunk| chunk.useful).sum(),
            cached: chunks.iter().map(|chunk| chunk.cached).sum(),
            chunks,
            estimate,
            alternatives,
            model: Model::clone(&planner.model()),
            copies,
        })
    }
}

impl Array {
    /// The copy that would answer a read; what each would take is added to `copies`.
    async fn answering(
        &self,
        selection: &Selection,
        copies: &mut Vec<CopyPlan>,
    ) -> Result<(Array, Arc<State>)> {
        let state = self.ready().await?;
        let found = replicas::choose(self, &state, selection).await?;
        let candidates = found.map_or_else(Vec::new, |(candidates, ..)| candidates);
        let Some(best) = replicas::best(&candidates) else {
            return Ok((self.clone(), state));
        };
        for (i, candidate) in candidates.iter().enumerate() {
            copies.push(CopyPlan {
                name: candidate.name.clone(),
                chosen: i == best,
                estimate: candidate.estimate,
            });
        }
        Ok((
            candidates[best].array.clone(),
            candidates[best].state.clone(),
        ))
    }

    /// The objects of a selection, ready for planning.
    async fn prepare_all(&self, state: &State, selection: &Selection) -> Result<Vec<Prepared>> {
        let planner = &self.inner().open.planner;
        let objects: Vec<_> = state.resolver.objects(selection)?.collect();
        let locate = match state.meta.codecs.sharding() {
            Some(_) => {
                let shards: Vec<_> = objects.iter().map(|object| (state, object)).collect();
                planner.locate(&shards)?
            }
            None => vec![false; objects.len()],
        };
        let objects = objects.into_iter().zip(locate);
        let prepare = |(object, locate)| self.prepare(state, object, locate);
        stream::iter(objects.map(prepare))
            .buffered(LOCATED)
            .try_collect()
            .await
    }
}

fn bytes(method: &Method, size: u64) -> u64 {
    match method {
        Method::Get => size,
        Method::Ranges(ranges) => ranges.iter().map(|range| range.end - range.start).sum(),
        Method::Function(calls) => calls.iter().map(|call| call.useful).sum(),
    }
}
