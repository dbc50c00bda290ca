//! A cloud that fails now and then: retries give right values, or an error, never wrong values.

use hyperslab::{ArraySpec, Compression, DataType, ErrorKind, Selection, Session, Shape};
use hyperslab_sim::{FaultKind, FaultPlan, FaultRule, Trigger};
use hyperslab_testkit::servers::{Place, SimPlace};
use hyperslab_testkit::{Model, Outcome, Wanted, ensure, fails, run, same};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::sim;

const SIDES: [u64; 2] = [40, 40];

/// A place whose requests are repeated often, since faults come often.
fn patient(sim: &SimPlace) -> Place {
    sim.s3().with("retries", "12").with("timeout", "2s")
}

async fn array(
    place: &Place,
    session: &Session,
    name: &str,
    shards: Vec<u64>,
) -> Outcome<hyperslab::Array> {
    let root = place.mount(session, "faults.zarr")?;
    let mut spec = ArraySpec::new(Shape::new(SIDES)?, DataType::Int(4));
    spec.chunks = Some(vec![8, 8]);
    spec.shards = Some(shards);
    spec.compression = Compression::None;
    Ok(session
        .create_array(&format!("{root}/{name}"), spec, false)
        .await?)
}

/// Writes and reads while `kind` happens to every fifth request.
fn survives(kind: FaultKind) {
    let sim = sim();
    let rule = FaultRule::new(kind, Trigger::Probability(0.2));
    let plan = FaultPlan {
        seed: 11,
        hang_seconds: 30.0,
        ..FaultPlan::of([rule])
    };
    sim.sim().faults().set(plan).unwrap();
    run(async {
        let place = patient(&sim);
        let mut rng = StdRng::seed_from_u64(2);
        for (name, shards) in [("plain", vec![]), ("sharded", vec![16, 24])] {
            let session = Session::default();
            let array = array(&place, &session, name, shards).await?;
            let mut model = Model::new(&SIDES, &[0; 4]);
            for step in 0..6u8 {
                let wanted = Wanted::random(&mut rng, &SIDES);
                let cells = vec![step + 1; wanted.cells(&SIDES).len() * 4];
                array.write(&wanted.selection(2)?, cells.clone()).await?;
                model.write(&wanted, &cells);
                let wanted = Wanted::random(&mut rng, &SIDES);
                let found = array.read(&wanted.selection(2)?).await?;
                ensure(found == model.read(&wanted), || {
                    format!("step {step}: wrong cells of {wanted:?}")
                })?;
            }
            array.append(0, vec![9; 40 * 4]).await?;
            same("shape", array.shape().to_vec(), vec![41, 40])?;
        }
        let injected = sim
            .sim()
            .faults()
            .counts()
            .get(&kind)
            .copied()
            .unwrap_or_default();
        ensure(injected >= 5, || {
            format!("only {injected} faults were injected")
        })
    })
    .unwrap();
}

#[test]
fn slow_down_answers() {
    survives(FaultKind::SlowDown);
}

#[test]
fn internal_errors() {
    survives(FaultKind::InternalError);
}

#[test]
fn connections_reset_before_the_answer() {
    survives(FaultKind::ResetBeforeHeaders);
}

#[test]
fn connections_reset_in_the_answer() {
    survives(FaultKind::ResetAfterHeaders);
}

#[test]
fn truncated_bodies() {
    survives(FaultKind::TruncatedBody);
}

#[test]
fn lost_responses() {
    survives(FaultKind::LostResponse);
}

#[test]
fn a_cloud_that_is_down_is_unavailable() {
    let sim = sim();
    run(async {
        let session = Session::default();
        let place = sim.s3().with("retries", "2");
        let array = array(&place, &session, "down", vec![]).await?;
        array.write(&Selection::All, vec![1; 6400]).await?;
        let rule = FaultRule::new(FaultKind::SlowDown, Trigger::Probability(1.0));
        sim.sim().faults().set(FaultPlan::of([rule]))?;
        let error = fails(
            "a read",
            array.read(&Selection::All).await,
            ErrorKind::Unavailable,
        )?;
        ensure(error.message().contains("down"), || {
            format!("the array is not named: {error}")
        })?;
        fails(
            "a write",
            array.write(&Selection::All, vec![2; 6400]).await,
            ErrorKind::Unavailable,
        )?;
        sim.sim().faults().clear();
        same("cells", array.read(&Selection::All).await?, vec![1; 6400])
    })
    .unwrap();
}

#[test]
fn a_request_that_hangs_times_out_and_is_repeated() {
    let sim = sim();
    run(async {
        let session = Session::default();
        let place = sim.s3().with("timeout", "500ms");
        let array = array(&place, &session, "hang", vec![]).await?;
        array.write(&Selection::All, vec![1; 6400]).await?;
        let rule = FaultRule::new(FaultKind::Hang, Trigger::Nth(3)).method("GET");
        sim.sim().faults().set(FaultPlan::of([rule]))?;
        same("cells", array.read(&Selection::All).await?, vec![1; 6400])?;
        same(
            "hangs",
            sim.sim().faults().counts().get(&FaultKind::Hang).copied(),
            Some(1),
        )
    })
    .unwrap();
}
