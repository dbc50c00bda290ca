//! Arrays behind plain web servers: one that knows no byte ranges, and one that does.

use hyperslab::{ArraySpec, Compression, DataType, ErrorKind, Options, Selection, Session, Shape};
use hyperslab_testkit::servers::{Place, WebServer, required};
use hyperslab_testkit::{Model, Outcome, Wanted, fails, run, same, within};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::sim;

const SIDES: [u64; 2] = [20, 30];

fn model() -> Model {
    let mut model = Model::new(&SIDES, &[0]);
    model.write(
        &Wanted::All,
        &(0..600).map(|i| (i % 251) as u8).collect::<Vec<u8>>(),
    );
    model
}

async fn fill(session: &Session, root: &str) -> Outcome {
    for (name, shards, compression) in [
        ("raw", vec![], Compression::None),
        ("zstd", vec![], Compression::Default),
        ("sharded", vec![14, 20], Compression::None),
    ] {
        let mut spec = ArraySpec::new(Shape::new(SIDES)?, DataType::UInt(1));
        spec.chunks = Some(vec![7, 10]);
        spec.shards = Some(shards);
        spec.compression = compression;
        let array = session
            .create_array(&format!("{root}/{name}"), spec, false)
            .await?;
        array
            .write(&Selection::All, model().cells().to_vec())
            .await?;
    }
    Ok(())
}

/// Reads everything through `root`, which cannot be written to.
async fn check(root: &str) -> Outcome {
    // Python's server lets five connections wait; more are lost and come back a second later.
    let session = Session::new(Options {
        concurrency: 4,
        ..Options::default()
    });
    let model = model();
    let mut rng = StdRng::seed_from_u64(5);
    let group = session.open_group(root).await?;
    same("arrays of the group", group.walk().await?.len(), 3)?;
    for name in ["raw", "zstd", "sharded"] {
        let array = session.open_array(&format!("{root}/{name}")).await?;
        for _ in 0..25 {
            let wanted = Wanted::random(&mut rng, &SIDES);
            let found = array.read(&wanted.selection(2)?).await?;
            within(name, async { same("cells", found, model.read(&wanted)) }).await?;
        }
        let cells = array.write(&Selection::All, vec![0; 600]).await;
        let error = fails("a write", cells, ErrorKind::Invalid)?;
        same("a hint", error.hint().is_some(), true)?;
    }
    fails(
        "an absent array",
        session.open(&format!("{root}/absent")).await,
        ErrorKind::NotFound,
    )?;
    Ok(())
}

#[test]
fn a_server_without_byte_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = required("Python's web server", WebServer::start(dir.path())).unwrap()
    else {
        return;
    };
    run(async {
        let root = dir.path().join("web.zarr");
        fill(&Session::default(), &root.to_string_lossy()).await?;
        check(&format!("{}/web.zarr", server.url())).await
    })
    .unwrap();
}

#[test]
fn a_public_bucket_by_its_address() {
    let config = hyperslab_sim::SimConfig {
        buckets: vec!["open".into()],
        public_buckets: vec!["open".into()],
        ..Default::default()
    };
    let sim = hyperslab_testkit::servers::SimPlace::start(config).unwrap();
    run(async {
        let session = Session::default();
        let place: Place = sim.s3().at("s3://open");
        fill(&session, &place.mount(&session, "web.zarr")?).await?;
        check(&format!("{}/open/web.zarr", sim.sim().endpoint())).await?;
        // The same bucket as S3, without credentials, all settings in the URL.
        let options = format!(
            "endpoint={}&anonymous=true&region=us-east-1",
            sim.sim().endpoint()
        );
        let array = Session::default()
            .open_array(&format!("s3://open/web.zarr/raw?{options}"))
            .await?;
        same(
            "cells",
            array.read(&Selection::All).await?,
            model().cells().to_vec(),
        )
    })
    .unwrap();
}

#[test]
fn a_server_that_is_not_there() {
    drop(sim());
    run(async {
        let url = "http://127.0.0.1:9/nothing.zarr?retries=0&connect_timeout=1s";
        let error = fails(
            "a closed port",
            Session::default().open(url).await,
            ErrorKind::Unavailable,
        )?;
        same("a hint", error.hint().is_some(), true)
    })
    .unwrap();
}
