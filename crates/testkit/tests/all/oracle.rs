//! Random selections of one array through the whole facade, compared with the naive model.

use hyperslab::{ArraySpec, Compression, DataType, Mode, Options, Query, Session, Shape};
use hyperslab_testkit::servers::Place;
use hyperslab_testkit::{Model, Outcome, Wanted, ensure, run};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use crate::sim;

const SIDES: [u64; 3] = [13, 17, 11];

/// The three ways of storing the same cells.
async fn arrays(session: &Session, root: &str, model: &Model) -> Outcome<Vec<hyperslab::Array>> {
    let mut arrays = Vec::new();
    for (name, shards, compression) in [
        ("raw", vec![], Compression::None),
        ("zstd", vec![], Compression::Default),
        ("sharded", vec![8, 10, 6], Compression::Default),
    ] {
        let mut spec = ArraySpec::new(Shape::new(SIDES)?, DataType::UInt(2));
        spec.chunks = Some(vec![4, 5, 3]);
        spec.shards = Some(shards);
        spec.compression = compression;
        let array = session
            .create_array(&format!("{root}/{name}"), spec, false)
            .await?;
        array
            .write(&hyperslab::Selection::All, model.cells().to_vec())
            .await?;
        arrays.push(array);
    }
    Ok(arrays)
}

async fn compare(place: &Place, options: Options, reads: usize) -> Outcome {
    let session = Session::new(options);
    let root = place.mount(&session, "oracle.zarr")?;
    let mut cells = vec![0; (SIDES.iter().product::<u64>() * 2) as usize];
    let mut rng = StdRng::seed_from_u64(1);
    rng.fill_bytes(&mut cells);
    let mut model = Model::new(&SIDES, &[0, 0]);
    model.write(&Wanted::All, &cells);
    let arrays = arrays(&session, &root, &model).await?;
    for _ in 0..reads {
        let wanted = Wanted::random(&mut rng, &SIDES);
        let expected = model.read(&wanted);
        let mut query = Query::new();
        for array in &arrays {
            query = query.with(array, wanted.selection(3)?);
        }
        for (found, array) in session.read(&query).await?.iter().zip(&arrays) {
            ensure(*found == expected, || {
                format!("{wanted:?} of {array:?} differs")
            })?;
        }
    }
    Ok(())
}

#[test]
fn random_selections_equal_the_model_in_memory() {
    run(compare(&Place::memory("oracle"), Options::default(), 3000)).unwrap();
}

#[test]
fn random_selections_equal_the_model_by_ranges() {
    let options = Options {
        planner: Mode::RangeFetch,
        ..Options::default()
    };
    run(compare(&Place::memory("oracle-ranges"), options, 1500)).unwrap();
}

#[test]
fn random_selections_equal_the_model_through_a_cache() {
    let fresh = std::time::Duration::from_secs(3600);
    let options = Options {
        cache_bytes: 20_000,
        cache_fresh: fresh,
        ..Options::default()
    };
    run(compare(&Place::disk().unwrap(), options, 1500)).unwrap();
}

#[test]
fn random_selections_equal_the_model_on_the_simulator() {
    run(compare(&sim().s3(), Options::default(), 60)).unwrap();
}
