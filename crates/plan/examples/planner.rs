//! Measures the planners: `planner QUERIES SMALL SEED` prints one JSON object.
//!
//! - `global` against `paper` on random queries: costs, and who was cheaper;
//! - `global` against exhaustive search on small instances;
//! - planning times for 10,000 chunks and for a million runs.

use std::time::Instant;

use hyperslab_plan::oracle::{Random, exhaustive, random_model, random_query};
use hyperslab_plan::{Mode, Model, Object, Place, PriceBook, Profile, Query, Result, Run, plan};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let queries: u64 = arguments.next().unwrap_or(1000);
    let small: u64 = arguments.next().unwrap_or(200);
    let seed: u64 = arguments.next().unwrap_or(1);

    let (mut costlier, mut equal, mut gains) = (0u64, 0u64, Vec::new());
    for i in 0..queries {
        let mut random = Random::new(seed.wrapping_mul(1 << 40).wrapping_add(i));
        let model = random_model(&mut random)?;
        let query = random_query(&mut random, 40, 400)?;
        let ours = cost(&query, &model, Mode::Global);
        let papers = cost(&query, &model, Mode::Paper);
        costlier += u64::from(ours > papers * (1.0 + 1e-9));
        equal += u64::from((ours - papers).abs() <= 1e-9 * papers);
        gains.push(papers / ours);
    }
    gains.sort_by(f64::total_cmp);
    let geometric = (gains.iter().map(|g| g.ln()).sum::<f64>() / gains.len() as f64).exp();

    let mut worst: f64 = 1.0;
    let mut within = 0u64;
    for i in 0..small {
        let mut random = Random::new(
            seed.wrapping_mul(1 << 41)
                .wrapping_add(1 << 36)
                .wrapping_add(i),
        );
        let model = random_model(&mut random)?;
        // Twelve runs with parts up to two, or nine runs with parts up to three.
        let (runs, parts) = if i % 2 == 0 { (12, 2) } else { (9, 3) };
        let query = random_query(&mut random, 3, runs)?;
        let best = exhaustive(&query, &model, parts, 4);
        let ratio = cost(&query, &model, Mode::Global) / best;
        within += u64::from(ratio <= 1.01);
        worst = worst.max(ratio);
    }

    let (chunks, chunk_plan) = ten_thousand_chunks()?;
    let (runs, run_plan) = a_million_runs()?;
    let (small_box, small_plan) = a_small_box()?;
    println!(
        "{{\"queries\": {queries}, \"costlier\": {costlier}, \"equal\": {equal}, \
         \"gain_geometric\": {geometric}, \"gain_median\": {}, \"gain_most\": {}, \
         \"small\": {small}, \"within\": {within}, \"worst\": {worst}, \
         \"chunks_ms\": {chunks}, \"chunks_requests\": {chunk_plan}, \
         \"runs_ms\": {runs}, \"runs_requests\": {run_plan}, \
         \"small_ms\": {small_box}, \"small_requests\": {small_plan}}}",
        gains[gains.len() / 2],
        gains[gains.len() - 1],
    );
    Ok(())
}

fn cost(query: &Query, model: &Model, mode: Mode) -> f64 {
    let plan = plan(query, model, mode);
    model.weigh(plan.estimate.seconds, plan.estimate.dollars)
}

/// The median time of several plans, in milliseconds, and the requests of the plan.
fn time(query: &Query, model: &Model) -> (f64, u64) {
    let mut times = Vec::new();
    let mut requests = 0;
    for _ in 0..7 {
        let begun = Instant::now();
        let plan = plan(query, model, Mode::Global);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        requests = plan.estimate.requests + plan.estimate.calls;
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], requests)
}

fn model() -> Result<Model> {
    let profile = Profile::built_in("aws")?;
    Model::new(
        &profile,
        &PriceBook::built_in("aws")?,
        Place::Internet,
        1000.0,
    )
}

/// A box that touches 10,000 chunks of 1 MiB in 8 rows each.
fn ten_thousand_chunks() -> Result<(f64, u64)> {
    let mut random = Random::new(3);
    let object = |_| {
        let first = random.below(400) * 2048;
        let runs = (0..8)
            .map(|i| first + i * 2048)
            .map(|at| Run::plain(at..at + 512));
        Object::raw(1 << 20, runs.collect())
    };
    let query = Query::new((0..10_000).map(object).collect())?;
    Ok(time(&query, &model()?))
}

/// A small box at the corner of four chunks of 1 MiB: 21 rows in all.
fn a_small_box() -> Result<(f64, u64)> {
    let object = |(rows, first): (u64, u64)| {
        let runs = (0..rows).map(|i| first + i * 2048);
        Object::raw(1 << 20, runs.map(|at| Run::plain(at..at + 40)).collect())
    };
    let parts = [(10, 1_028_000), (10, 1_026_056), (11, 1_960), (11, 0)];
    Ok(time(&Query::new(parts.map(object).to_vec())?, &model()?))
}

/// A million runs with gaps of all sizes, in 16 objects.
fn a_million_runs() -> Result<(f64, u64)> {
    let mut random = Random::new(4);
    let mut objects = Vec::new();
    for _ in 0..16 {
        let mut at = 0;
        let mut runs = Vec::with_capacity(62_500);
        for _ in 0..62_500 {
            let len = 4 * (1 + random.below(256));
            runs.push(Run::plain(at..at + len));
            at += len + random.scale(4.0, 1e6) as u64;
        }
        objects.push(Object::raw(at, runs));
    }
    Ok(time(&Query::new(objects)?, &model()?))
}
