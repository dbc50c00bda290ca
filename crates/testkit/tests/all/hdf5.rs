//! HDF5 files where they should not be: behind servers that know no byte ranges, and under readers
//! while somebody replaces them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hyperslab::{
    Array, ArraySpec, Compression, DataType, ErrorKind, Options, Selection, Session, Shape,
};
use hyperslab_bridge::{Export, export};
use hyperslab_store::Put;
use hyperslab_testkit::servers::{WebServer, required};
use hyperslab_testkit::{Model, Outcome, Wanted, ensure, fails, run, same, within};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::sim;

const SIDES: [u64; 2] = [60, 50];

fn model(seed: u64) -> Model {
    let mut model = Model::new(&SIDES, &[0]);
    let cells: Vec<u8> = (0..3000u64).map(|i| (i * i + seed) as u8).collect();
    model.write(&Wanted::All, &cells);
    model
}

/// Makes an HDF5 file with a compressed dataset `cells` and a plain one `raw`.
async fn make(folder: &Path, name: &str, seed: u64) -> Outcome<PathBuf> {
    let session = Session::default();
    let source = format!("memory://hdf5-{}-{name}", std::process::id());
    session.create_group(&source, Default::default()).await?;
    for (name, compression) in [("cells", Compression::Default), ("raw", Compression::None)] {
        let mut spec = ArraySpec::new(Shape::new(SIDES)?, DataType::UInt(1));
        spec.chunks = Some(vec![7, 10]);
        spec.compression = compression;
        let array = session
            .create_array(&format!("{source}/{name}"), spec, false)
            .await?;
        array
            .write(&Selection::All, model(seed).cells().to_vec())
            .await?;
    }
    let path = folder.join(name);
    let how = Export {
        memory: 64 << 20,
        chunks: None,
        overwrite: false,
        resume: false,
        verify: true,
    };
    export(&session, &source, &path, &how, &()).await?;
    Ok(path)
}

async fn check(array: &Array, model: &Model) -> Outcome {
    let mut rng = StdRng::seed_from_u64(3);
    for _ in 0..20 {
        let wanted = Wanted::random(&mut rng, &SIDES);
        let found = array.read(&wanted.selection(2)?).await?;
        within(array.url(), async {
            same("cells", found, model.read(&wanted))
        })
        .await?;
    }
    Ok(())
}

#[test]
fn a_server_without_byte_ranges_sends_a_file_once() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = required("Python's web server", WebServer::start(dir.path())).unwrap()
    else {
        return;
    };
    run(async {
        let path = make(dir.path(), "file.h5", 1).await?;
        let file = fs::File::options().append(true).open(&path)?;
        // Times of a change have whole seconds, and a file that has just changed may change again.
        file.set_modified(SystemTime::now() - Duration::from_secs(60))?;
        let session = Session::new(Options {
            concurrency: 4,
            ..Options::default()
        });
        for name in ["cells", "raw"] {
            let url = format!("{}/file.h5/{name}", server.url());
            check(&session.open_array(&url).await?, &model(1)).await?;
        }
        // Once to learn that it knows no ranges, whatever was asked for meanwhile, and once to hold.
        let sent = server.sent("/file.h5");
        ensure((1..=8).contains(&sent), || {
            format!("the file was sent {sent} times")
        })
    })
    .unwrap();
}

#[test]
fn a_remote_file_that_changes_is_an_error_and_no_mixture() {
    let dir = tempfile::tempdir().unwrap();
    let sim = sim();
    run(async {
        let (one, two) = (
            fs::read(make(dir.path(), "one.h5", 1).await?)?,
            fs::read(make(dir.path(), "two.h5", 2).await?)?,
        );
        let session = Session::default();
        let folder = sim.s3().mount(&session, "files")?;
        let store = sim.s3().store("files")?;
        store
            .put("file.h5", vec![one.into()], Put::Overwrite)
            .await?;
        let arrays = [
            session
                .open_array(&format!("{folder}/file.h5/cells"))
                .await?,
            session.open_array(&format!("{folder}/file.h5/raw")).await?,
        ];
        check(&arrays[0], &model(1)).await?;
        check(&arrays[1], &model(1)).await?;
        store
            .put("file.h5", vec![two.into()], Put::Overwrite)
            .await?;
        for array in &arrays {
            let read = array.read(&Selection::All).await;
            let error = fails("a file that changed", read, ErrorKind::Conflict)?;
            ensure(error.hint().is_some(), || format!("{error} has no hint"))?;
        }
        let again = session
            .open_array(&format!("{folder}/file.h5/cells"))
            .await?;
        check(&again, &model(2)).await
    })
    .unwrap();
}

#[test]
fn a_file_that_changes_is_noticed_without_etags() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = required("Python's web server", WebServer::start(dir.path())).unwrap()
    else {
        return;
    };
    run(async {
        let path = make(dir.path(), "file.h5", 1).await?;
        let other = make(dir.path(), "other.h5", 2).await?;
        for (path, age) in [(&path, 90), (&other, 60)] {
            let file = fs::File::options().append(true).open(path)?;
            file.set_modified(SystemTime::now() - Duration::from_secs(age))?;
        }
        let session = Session::default();
        let url = format!("{}/file.h5/cells", server.url());
        let array = session.open_array(&url).await?;
        check(&array, &model(1)).await?;
        fs::rename(&other, &path)?;
        let read = array.read(&Selection::All).await;
        fails("a file that changed", read, ErrorKind::Conflict)?;
        check(&session.open_array(&url).await?, &model(2)).await
    })
    .unwrap();
}

#[test]
fn a_local_file_that_changes_is_an_error_and_no_mixture() {
    let dir = tempfile::tempdir().unwrap();
    run(async {
        let path = make(dir.path(), "file.h5", 1).await?;
        let other = make(dir.path(), "other.h5", 2).await?;
        let session = Session::default();
        let url = format!("{}/cells", path.display());
        let array = session.open_array(&url).await?;
        check(&array, &model(1)).await?;
        fs::rename(&other, &path)?;
        let read = array.read(&Selection::All).await;
        fails("a file that changed", read, ErrorKind::Conflict)?;
        check(&session.open_array(&url).await?, &model(2)).await
    })
    .unwrap();
}
