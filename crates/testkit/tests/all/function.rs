//! Reads through the function next to the data: the same cells as without it, also when it fails.

use std::sync::Arc;

use hyperslab::{
    ArraySpec, Compression, DataType, FunctionClient, Mode, Options, Profile, Session, Shape,
};
use hyperslab_sim::{FunctionConfig, FunctionFailures, FunctionModel, SimConfig};
use hyperslab_testkit::servers::SimPlace;
use hyperslab_testkit::{Model, Outcome, Wanted, ensure, run, same};
use rand::SeedableRng;
use rand::rngs::StdRng;

const SIDES: [u64; 3] = [12, 40, 35];
const LAYOUTS: [(&str, &[u64], Compression); 4] = [
    ("raw", &[], Compression::None),
    ("packed", &[], Compression::Default),
    ("shards", &[6, 16, 14], Compression::Default),
    ("raw-shards", &[6, 16, 14], Compression::None),
];

fn start(failures: FunctionFailures) -> SimPlace {
    let model = FunctionModel {
        alpha_millis_per_mib: 1.0,
        beta_millis: 1.0,
        cold_millis: 1.0,
        ..FunctionModel::preset("aws").unwrap()
    };
    let function = FunctionConfig {
        model,
        failures,
        ..FunctionConfig::default()
    };
    SimPlace::start(SimConfig {
        function: Some(function),
        ..SimConfig::default()
    })
    .unwrap()
}

/// Writes every layout, and reads random selections by the function; returns how often it was
/// fetched without.
async fn read_all(sim: &SimPlace, profile: Option<Profile>) -> Outcome<u64> {
    let client = FunctionClient::new(&sim.sim().function_url().unwrap_or_default(), None)?;
    let session = Session::new(Options {
        planner: Mode::Function,
        profile: profile.map(Arc::new),
        function: Some(Arc::new(client)),
        ..Options::default()
    });
    let place = sim.s3();
    let mut rng = StdRng::seed_from_u64(5);
    for (name, shards, compression) in LAYOUTS {
        let root = place.mount(&session, "function.zarr")?;
        let mut spec = ArraySpec::new(Shape::new(SIDES)?, DataType::Int(4));
        spec.chunks = Some(vec![3, 8, 7]);
        spec.shards = Some(shards.to_vec());
        spec.compression = compression;
        let url = format!("{root}/{name}");
        let array = session.create_array(&url, spec, true).await?;
        let mut model = Model::new(&SIDES, &[0; 4]);
        // Half of the array stays empty, so some chunks are absent.
        let written = Wanted::region(&[0, 0, 0], &[7, 40, 30]);
        let cells: Vec<u8> = (0..written.cells(&SIDES).len() as u32)
            .flat_map(u32::to_le_bytes)
            .collect();
        array.write(&written.selection(3)?, cells.clone()).await?;
        model.write(&written, &cells);
        for step in 0..12 {
            let wanted = Wanted::random(&mut rng, &SIDES);
            let found = array.read(&wanted.selection(3)?).await?;
            ensure(found == model.read(&wanted), || {
                format!("{name}, step {step}: wrong cells of {wanted:?}")
            })?;
        }
    }
    Ok(session.fallbacks())
}

#[test]
fn the_function_gives_the_same_cells() {
    let sim = start(FunctionFailures::default());
    run(async {
        let fallbacks = read_all(&sim, None).await?;
        let calls = sim.sim().meter().function.calls;
        // Only absent objects are asked for again.
        ensure(calls > 100 && fallbacks < calls / 2, || {
            format!("{calls} calls, {fallbacks} fallbacks")
        })
    })
    .unwrap();
}

/// Answers of at most 100 bytes: raw chunks of 672 bytes are cut between cells, among many calls.
#[test]
fn parts_of_chunks_give_the_same_cells() {
    let sim = start(FunctionFailures::default());
    run(async {
        let mut profile = Profile::built_in("aws")?;
        let function = profile.function.as_mut().unwrap();
        function.max_answer_bytes = 100;
        read_all(&sim, Some(profile)).await?;
        let meter = sim.sim().meter();
        ensure(meter.function.calls > 500, || {
            format!("{} calls", meter.function.calls)
        })
    })
    .unwrap();
}

/// A shard is guessed to look like another one, and the function is called; but there is nothing of
/// what is wanted in it.
#[test]
fn an_inner_chunk_that_was_guessed_and_is_absent_is_the_fill_value() {
    let sim = start(FunctionFailures::default());
    run(async {
        let client = FunctionClient::new(&sim.sim().function_url().unwrap_or_default(), None)?;
        let session = Session::new(Options {
            planner: Mode::Function,
            function: Some(Arc::new(client)),
            cache_bytes: 0,
            ..Options::default()
        });
        let root = sim.s3().mount(&session, "guess.zarr")?;
        let mut spec = ArraySpec::new(Shape::new([64, 64])?, DataType::Int(4));
        spec.chunks = Some(vec![8, 8]);
        spec.shards = Some(vec![32, 32]);
        spec.compression = Compression::None;
        let array = session
            .create_array(&format!("{root}/a"), spec, true)
            .await?;
        let mut model = Model::new(&[64, 64], &[0; 4]);
        for written in [
            Wanted::region(&[0, 0], &[32, 64]),
            Wanted::region(&[40, 0], &[24, 64]),
        ] {
            let count = written.cells(&[64, 64]).len() as u32;
            let cells: Vec<u8> = (1..=count).flat_map(u32::to_le_bytes).collect();
            array.write(&written.selection(2)?, cells.clone()).await?;
            model.write(&written, &cells);
        }
        for wanted in [
            Wanted::region(&[0, 0], &[8, 8]),
            Wanted::region(&[32, 32], &[8, 8]),
            Wanted::region(&[36, 4], &[9, 50]),
        ] {
            let found = array.read(&wanted.selection(2)?).await?;
            ensure(found == model.read(&wanted), || {
                format!("wrong cells of {wanted:?}")
            })?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_function_that_fails_is_done_without() {
    for break_it in [
        (|f| f.crash = 1.0) as fn(&mut FunctionFailures),
        |f| f.wrong_bytes = 1.0,
        |f| f.error_page = 1.0,
    ] {
        let mut failures = FunctionFailures::default();
        break_it(&mut failures);
        let sim = start(failures);
        run(async {
            let fallbacks = read_all(&sim, None).await?;
            ensure(fallbacks > 100, || format!("{fallbacks} fallbacks"))
        })
        .unwrap();
    }
}

#[test]
fn a_function_that_nobody_answers_for_is_done_without() {
    let sim = start(FunctionFailures::default());
    run(async {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let client = FunctionClient::new(&format!("http://127.0.0.1:{port}"), None)?;
        let session = Session::new(Options {
            planner: Mode::Function,
            function: Some(Arc::new(client)),
            ..Options::default()
        });
        let root = sim.s3().mount(&session, "gone.zarr")?;
        let spec = ArraySpec::new(Shape::new([10])?, DataType::Int(4));
        let array = session
            .create_array(&format!("{root}/a"), spec, false)
            .await?;
        let all = hyperslab::Selection::All;
        array.write(&all, vec![3; 40]).await?;
        same("cells", array.read(&all).await?, vec![3; 40])?;
        same("fallbacks", session.fallbacks(), 1)
    })
    .unwrap();
}
