//! Reads from a simulated cloud that fails in seeded ways: every answer has to be right, and with a
//! cloud that is down every read has to end in an error before its deadline.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use hyperslab::{
    Array, ArraySpec, Compression, DataType, FunctionClient, Mode, Options, Session, Shape,
};
use hyperslab_sim::{FaultKind, FaultPlan, FaultRule, FunctionFailures, Trigger};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::servers::{Place, SimPlace};
use crate::{Failure, Model, Outcome, Wanted};

const SIDES: [u64; 3] = [24, 64, 56];
const CHUNKS: [u64; 3] = [8, 16, 14];
const SHARDS: [u64; 3] = [16, 32, 28];
/// Queries that run at a time.
const TOGETHER: usize = 16;
/// Of each request to the store, and of each kind.
const SHARE: f64 = 0.05;

/// What came of it.
#[derive(Debug, Default)]
pub struct FaultReport {
    /// Queries.
    pub queries: u64,
    /// Queries whose cells were not the right ones, or that failed: at most 20 are described.
    pub wrong: Vec<String>,
    /// Requests to the store, and how many of them failed on purpose.
    pub requests: (u64, u64),
    /// Calls of the function, and objects that were fetched without it after all.
    pub calls: (u64, u64),
}

/// Makes `queries` random queries of arrays of all layouts, with 5 % of requests and of calls failing.
pub async fn fault_test(sim: &SimPlace, queries: u64, seed: u64) -> Outcome<FaultReport> {
    let place = sim.s3().with("timeout", "1s");
    let mut model = Model::new(&SIDES, &[0; 4]);
    // Some chunks stay absent.
    let written = Wanted::region(&[0, 0, 0], &[20, 64, 50]);
    let cells: Vec<u8> = (0..written.cells(&SIDES).len() as u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    model.write(&written, &cells);
    let writer = Session::default();
    for (name, spec) in layouts()? {
        let url = format!("{}/{name}", place.mount(&writer, "faults.zarr")?);
        let array = writer.create_array(&url, spec, true).await?;
        array.write(&written.selection(3)?, cells.clone()).await?;
    }
    let sessions = sessions(sim)?;
    let arrays = open_all(&sessions, &place).await?;

    sim.sim().faults().set(plan(seed))?;
    sim.sim().set_function_failures(FunctionFailures {
        crash: SHARE / 4.0,
        hang: SHARE / 4.0,
        wrong_bytes: SHARE / 4.0,
        error_page: SHARE / 4.0,
        hang_seconds: 30.0,
        seed,
    })?;
    sim.sim().reset_meter();
    let model = &model;
    let wrong: Vec<Option<String>> = stream::iter(0..queries)
        .map(|number| {
            let array = &arrays[number as usize % arrays.len()];
            async move {
                let mut rng = StdRng::seed_from_u64(seed.wrapping_mul(1 << 32) + number);
                let wanted = Wanted::random(&mut rng, &SIDES);
                let expected = model.read(&wanted);
                Outcome::Ok(match array.read(&wanted.selection(3)?).await {
                    Ok(found) if found == expected => None,
                    Ok(_) => Some(format!("query {number}: wrong cells of {wanted:?}")),
                    Err(e) => Some(format!("query {number}: {e:?}")),
                })
            }
        })
        .buffer_unordered(TOGETHER)
        .try_collect()
        .await?;
    let failed = sim.sim().faults().counts().values().sum();
    sim.sim().faults().clear();
    sim.sim()
        .set_function_failures(FunctionFailures::default())?;
    let meter = sim.sim().meter();
    Ok(FaultReport {
        queries,
        wrong: wrong.into_iter().flatten().take(20).collect(),
        requests: (meter.requests(), failed),
        calls: (
            meter.function.calls,
            sessions.iter().map(Session::fallbacks).sum(),
        ),
    })
}

/// Reads from a store that is down, in several ways; the longest time that a read took beyond its
/// deadline, or what went wrong.
pub async fn down_test(sim: &SimPlace, queries: u64, deadline: Duration) -> Outcome<Duration> {
    let place = sim.s3();
    let session = Session::new(Options {
        deadline: Some(deadline),
        ..Options::default()
    });
    let url = format!("{}/raw", place.mount(&session, "faults.zarr")?);
    let (_, spec) = layouts()?.swap_remove(0);
    let array = session.create_array(&url, spec, true).await?;
    let mut longest = Duration::ZERO;
    for kind in [
        FaultKind::Hang,
        FaultKind::SlowDown,
        FaultKind::ResetBeforeHeaders,
    ] {
        let always = FaultRule::new(kind, Trigger::Probability(1.0));
        sim.sim().faults().set(FaultPlan::of([always]))?;
        for number in 0..queries {
            let mut rng = StdRng::seed_from_u64(number);
            let wanted = Wanted::random(&mut rng, &SIDES);
            let begun = Instant::now();
            if array.read(&wanted.selection(3)?).await.is_ok() && !wanted.cells(&SIDES).is_empty() {
                return Err(Failure::new(format!("{kind:?}: a read succeeded")));
            }
            longest = longest.max(begun.elapsed().saturating_sub(deadline));
        }
    }
    sim.sim().faults().clear();
    Ok(longest)
}

/// All ways of storing the array.
fn layouts() -> Outcome<Vec<(&'static str, ArraySpec)>> {
    let mut out = Vec::new();
    for (name, shards, compression) in [
        ("raw", None, Compression::None),
        ("packed", None, Compression::Default),
        ("shards", Some(SHARDS.to_vec()), Compression::Default),
        ("raw-shards", Some(SHARDS.to_vec()), Compression::None),
    ] {
        let mut spec = ArraySpec::new(Shape::new(SIDES)?, DataType::Int(4));
        spec.chunks = Some(CHUNKS.to_vec());
        spec.shards = Some(shards.unwrap_or_default());
        spec.compression = compression;
        out.push((name, spec));
    }
    Ok(out)
}

/// Sessions that plan in different ways.
fn sessions(sim: &SimPlace) -> Outcome<Vec<Session>> {
    let url = sim.sim().function_url();
    let url = url.ok_or_else(|| Failure::new("the simulator has no function"))?;
    let client = Arc::new(FunctionClient::new(&url, None)?);
    let session = |planner, phi, hedge| {
        Session::new(Options {
            planner,
            phi,
            hedge,
            function: Some(client.clone()),
            ..Options::default()
        })
    };
    Ok(vec![
        session(Mode::Global, 0.0, true),
        session(Mode::Global, f64::INFINITY, false),
        session(Mode::RangeFetch, 0.0, false),
        session(Mode::Function, 0.0, false),
        session(Mode::FunctionWhole, 0.0, false),
    ])
}

async fn open_all(sessions: &[Session], place: &Place) -> Outcome<Vec<Array>> {
    let mut arrays = Vec::new();
    for session in sessions {
        let root = place.mount(session, "faults.zarr")?;
        for (name, _) in layouts()? {
            arrays.push(session.open_array(&format!("{root}/{name}")).await?);
        }
    }
    Ok(arrays)
}

fn plan(seed: u64) -> FaultPlan {
    let kinds = [
        FaultKind::SlowDown,
        FaultKind::InternalError,
        FaultKind::ResetBeforeHeaders,
        FaultKind::TruncatedBody,
        FaultKind::Hang,
    ];
    let each = Trigger::Probability(SHARE / kinds.len() as f64);
    FaultPlan {
        seed,
        ..FaultPlan::of(kinds.map(|kind| FaultRule::new(kind, each)))
    }
}
