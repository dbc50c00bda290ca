//! All cells of the grid that share objects and cloud: they differ in place and φ only.
//!
//! Forced plans do not depend on either, and many plans of ours are the same, so each different
//! list of requests is executed once and billed as often as needed.

use std::time::Instant;

use hyperslab_index::Result;
use hyperslab_plan::{Mode, Model, Query, plan};
use hyperslab_sim::{Place, VirtualCloud, VirtualOutcome, VirtualRequest, Work};
use serde::Serialize;

use crate::wanted::{Coding, Prepared, Wanted, prepare, wanted};
use crate::workload::Workload;
use crate::world::World;

/// Seconds that a dollar is worth.
const PHIS: [f64; 6] = [0.0, 1.0, 100.0, 1e4, 1e5, f64::INFINITY];
const PLACES: [(Place, &str); 2] = [
    (Place::SameRegion, "same-region"),
    (Place::Internet, "internet"),
];
/// Reported beside the forced plans, but not what a ratio is taken to.
const BESIDE: [Mode; 4] = [
    Mode::Paper,
    Mode::Splits(1),
    Mode::Splits(4),
    Mode::Splits(16),
];
/// Objects that the executor plans together, works on at a time, and indexes that it reads at a
/// time.
const BATCH: usize = 4096;
const OBJECTS: usize = 1024;
const LOCATED: usize = 256;

/// What the cells have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(crate) world: &'a World,
    pub(crate) workload: Workload,
    pub(crate) coding: Coding,
    pub(crate) chunk_bytes: u64,
}

/// What a planner's choice took, as means over the seeds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Taken {
    pub(crate) mode: String,
    pub(crate) cost: f64,
    pub(crate) seconds: f64,
    pub(crate) dollars: f64,
    pub(crate) requests: f64,
    pub(crate) calls: f64,
    pub(crate) bytes: f64,
    /// What the planner's model says of the same plans.
    pub(crate) estimated_seconds: f64,
    pub(crate) estimated_dollars: f64,
    /// How long planning took on this machine, which is in no cost here.
    pub(crate) planning_seconds: f64,
}

/// One cell of the grid.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cell {
    pub(crate) workload: &'static str,
    pub(crate) coding: &'static str,
    pub(crate) provider: &'static str,
    pub(crate) function: bool,
    pub(crate) chunk_bytes: u64,
    pub(crate) place: &'static str,
    /// As text: JSON has no infinity.
    pub(crate) phi: String,
    /// Ours ÷ the best forced plan, and ÷ the best of all plans.
    pub(crate) ratio: f64,
    pub(crate) ratio_to_all: f64,
    pub(crate) best: String,
    pub(crate) ours: Taken,
    pub(crate) forced: Vec<Taken>,
    pub(crate) beside: Vec<Taken>,
}

/// Executions that are known already: one list per seed.
type Known = Vec<Vec<(Vec<Work>, VirtualOutcome)>>;

impl Block<'_> {
    pub(crate) fn name(&self) -> String {
        format!(
            "{} {} {} {} KiB{}",
            self.workload.name(),
            self.coding.name(),
            self.world.provider,
            self.chunk_bytes >> 10,
            if self.world.function.is_some() {
                " function"
            } else {
                ""
            },
        )
    }

    /// All cells of the block, as means over so many seeds.
    pub(crate) fn cells(&self, seeds: u64) -> Result<Vec<Cell>> {
        let queries = (0..seeds)
            .map(|seed| {
                let selection = self.workload.select(seed)?;
                wanted(self.workload, self.coding, self.chunk_bytes, &selection)
            })
            .collect::<Result<Vec<_>>>()?;
        let mut known: Known = vec![Vec::new(); queries.len()];
        let mut cells = Vec::new();
        for (place, place_name) in PLACES {
            for phi in PHIS {
                let model = Model::new(&self.world.profile, &self.world.prices, place, phi)?;
                let mut take =
                    |mode: &Mode| self.take(&queries, &model, (place, *mode), &mut known);
                let ours = take(&Mode::Global)?;
                let able = |mode: &&Mode| {
                    let calls = matches!(mode, Mode::Function | Mode::FunctionWhole);
                    !calls || self.world.function.is_some()
                };
                let forced: Vec<Taken> = Mode::FORCED
                    .iter()
                    .filter(able)
                    .map(&mut take)
                    .collect::<Result<_>>()?;
                let beside: Vec<Taken> = BESIDE.iter().map(&mut take).collect::<Result<_>>()?;
                cells.push(self.cell(place_name, phi, ours, forced, beside));
            }
        }
        Ok(cells)
    }

    fn cell(
        &self,
        place: &'static str,
        phi: f64,
        ours: Taken,
        forced: Vec<Taken>,
        beside: Vec<Taken>,
    ) -> Cell {
        let lowest = |all: &mut dyn Iterator<Item = &Taken>| {
            all.map(|taken| (taken.cost, taken.mode.clone()))
                .min_by(|a, b| a.0.total_cmp(&b.0))
                .unwrap_or((f64::INFINITY, String::new()))
        };
        let (best_forced, best) = lowest(&mut forced.iter());
        let (best_of_all, _) = lowest(&mut forced.iter().chain(&beside));
        Cell {
            workload: self.workload.name(),
            coding: self.coding.name(),
            provider: self.world.provider,
            function: self.world.function.is_some(),
            chunk_bytes: self.chunk_bytes,
            place,
            phi: phi.to_string(),
            ratio: quotient(ours.cost, best_forced),
            ratio_to_all: quotient(ours.cost, best_of_all),
            best,
            ours,
            forced,
            beside,
        }
    }

    /// Plans and executes the query of every seed.
    fn take(
        &self,
        queries: &[Vec<Wanted>],
        model: &Model,
        (place, mode): (Place, Mode),
        known: &mut Known,
    ) -> Result<Taken> {
        let mut sum = Taken {
            mode: mode.to_string(),
            cost: 0.0,
            seconds: 0.0,
            dollars: 0.0,
            requests: 0.0,
            calls: 0.0,
            bytes: 0.0,
            estimated_seconds: 0.0,
            estimated_dollars: 0.0,
            planning_seconds: 0.0,
        };
        let share = 1.0 / queries.len() as f64;
        for (seed, query) in queries.iter().enumerate() {
            let prepared = prepare(query, mode, model)?;
            let mut work = Vec::new();
            for batch in batches(&prepared)? {
                let begun = Instant::now();
                let plan = plan(&batch.0, model, mode);
                sum.planning_seconds += begun.elapsed().as_secs_f64() * share;
                sum.estimated_seconds += plan.estimate.seconds * share;
                sum.estimated_dollars += plan.estimate.dollars * share;
                work.extend(Work::of_plan(&batch.0, &plan, batch.1));
            }
            let outcome = match known[seed].iter().find(|(same, _)| *same == work) {
                Some((_, outcome)) => *outcome,
                None => {
                    let outcome = self.execute(seed as u64, model, &work)?;
                    known[seed].push((work, outcome));
                    outcome
                }
            };
            let outcome = self.indexes(seed as u64, model, &prepared)?.then(&outcome);
            sum.seconds += outcome.seconds * share;
            sum.dollars += outcome.bill(&self.world.prices, place) * share;
            sum.requests += outcome.requests as f64 * share;
            sum.calls += outcome.calls as f64 * share;
            sum.bytes += outcome.bytes as f64 * share;
        }
        sum.cost = if model.phi().is_infinite() {
            sum.dollars
        } else {
            sum.seconds + model.phi() * sum.dollars
        };
        Ok(sum)
    }

    fn execute(&self, seed: u64, model: &Model, work: &[Work]) -> Result<VirtualOutcome> {
        VirtualCloud::new(self.world.config(seed, model))?.run(work, OBJECTS)
    }

    /// The indexes of shards are read before anything is planned.
    fn indexes(&self, seed: u64, model: &Model, prepared: &Prepared) -> Result<VirtualOutcome> {
        let read = |bytes: &u64| Work::from(VirtualRequest::Get { bytes: *bytes });
        let work: Vec<Work> = prepared.indexes.iter().map(read).collect();
        VirtualCloud::new(self.world.config(seed, model))?.run(&work, LOCATED)
    }
}

/// Objects that are planned together, with the bytes of each.
fn batches(prepared: &Prepared) -> Result<Vec<(Query, &[u64])>> {
    let objects = prepared.objects.chunks(BATCH);
    objects
        .zip(prepared.sizes.chunks(BATCH))
        .map(|(objects, sizes)| Ok((Query::new(objects.to_vec())?, sizes)))
        .collect()
}

/// 1 where neither costs anything.
fn quotient(ours: f64, best: f64) -> f64 {
    if ours <= 0.0 && best <= 0.0 {
        1.0
    } else {
        ours / best
    }
}
