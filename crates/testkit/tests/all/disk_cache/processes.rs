//! Several processes with one cache folder, some of which are killed.
//!
//! The processes are this test program itself, asked to run only [`child`].

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hyperslab::Session;
use hyperslab_testkit::{Outcome, Wanted, ensure, run};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Cloud, HOUR, LAYOUTS, Layout, SIDES, bounded, check};

/// Room for a part of the arrays only.
const BOUND: u64 = 64 << 10;
const SALT: u32 = 77;

/// What a child says once it has read something.
const READING: &str = "reading";

/// Starts a process that makes `reads` reads of random boxes through the cache in `dir`.
fn start(cloud: &Cloud, dir: &Path, seed: u64, reads: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "disk_cache::processes::child",
            "--exact",
            "--nocapture",
            "--include-ignored",
        ])
        .env("HYPERSLAB_TEST_SERVER", cloud.url(""))
        .env("HYPERSLAB_TEST_CACHE", dir)
        .env("HYPERSLAB_TEST_READS", format!("{seed} {reads}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Not a test of its own: what the processes do.
#[test]
#[ignore = "the other tests of this module run it"]
fn child() {
    let (Ok(server), Some(dir), Ok(reads)) = (
        std::env::var("HYPERSLAB_TEST_SERVER"),
        std::env::var_os("HYPERSLAB_TEST_CACHE"),
        std::env::var("HYPERSLAB_TEST_READS"),
    ) else {
        return;
    };
    let numbers: Vec<u64> = reads.split(' ').map(|n| n.parse().unwrap()).collect();
    let mut rng = StdRng::seed_from_u64(numbers[0]);
    run(async {
        for step in 0..numbers[1] {
            let layout = &LAYOUTS[rng.random_range(0..LAYOUTS.len())];
            let fresh = if rng.random_bool(0.5) {
                HOUR
            } else {
                Duration::ZERO
            };
            let session = Session::new(bounded(Path::new(&dir), BOUND, fresh));
            let url = server.replacen("cached.zarr/", &format!("cached.zarr/{}", layout.0), 1);
            let array = session.open_array(&url).await?;
            let model = super::model(SALT);
            for _ in 0..4 {
                check(&array, &model, &Wanted::random(&mut rng, &SIDES)).await?;
            }
            let trouble = session.cache_trouble();
            ensure(trouble.is_none(), || format!("{trouble:?}"))?;
            if step == 0 {
                println!("{READING}");
            }
        }
        Ok(())
    })
    .unwrap();
}

async fn write_all(cloud: &Cloud) -> Outcome {
    for layout in &LAYOUTS {
        cloud.write(layout, SALT).await?;
    }
    Ok(())
}

/// Bytes of all files of the cache, those being written included, as file systems count.
fn on_disk(dir: &Path) -> u64 {
    let mut total = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.metadata().unwrap();
        total += match meta.is_dir() {
            true => on_disk(&entry.path()),
            false if entry.file_name() == "usage" => 0,
            false => meta.len().div_ceil(4096) * 4096,
        };
    }
    total
}

fn finish(child: Child) -> Outcome {
    let output = child.wait_with_output()?;
    ensure(output.status.success(), || {
        let said = [output.stdout, output.stderr].concat();
        format!("a process failed: {}", String::from_utf8_lossy(&said))
    })
}

#[test]
fn processes_share_a_folder_and_its_bound() {
    let cloud = Cloud::start();
    let dir = tempfile::tempdir().unwrap();
    run(write_all(&cloud)).unwrap();
    let children: Vec<Child> = (0..3)
        .map(|seed| start(&cloud, dir.path(), seed, 15))
        .collect();
    for child in children {
        finish(child).unwrap();
    }
    let used = on_disk(dir.path());
    assert!(used > BOUND / 4, "{used} bytes were kept");
    assert!(used <= BOUND, "{used} bytes of {BOUND}");
}

#[test]
fn killed_processes_leave_a_folder_that_works() {
    let cloud = Cloud::start();
    let dir = tempfile::tempdir().unwrap();
    run(write_all(&cloud)).unwrap();
    let mut rng = StdRng::seed_from_u64(9);
    for round in 0..12 {
        let mut children: Vec<Child> = (0..2)
            .map(|i| start(&cloud, dir.path(), 100 + 2 * round + i, u64::MAX))
            .collect();
        for child in &mut children {
            let out = child.stdout.take().unwrap();
            let mut lines = BufReader::new(out).lines().map_while(Result::ok);
            assert!(lines.any(|line| line.contains(READING)), "round {round}");
        }
        // Anywhere in their work.
        std::thread::sleep(Duration::from_micros(rng.random_range(0..40_000)));
        for mut child in children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let used = on_disk(dir.path());
        assert!(used <= BOUND, "round {round}: {used} bytes of {BOUND}");
        run(async {
            let layout: &Layout = &LAYOUTS[round as usize % LAYOUTS.len()];
            let array = cloud.open(layout, bounded(dir.path(), BOUND, HOUR)).await?;
            let left = std::fs::read_dir(dir.path().join("hyperslab-cache-1/new"))?.count();
            ensure(left == 0, || format!("{left} files under way were left"))?;
            for _ in 0..3 {
                check(
                    &array,
                    &super::model(SALT),
                    &Wanted::random(&mut rng, &SIDES),
                )
                .await?;
            }
            Ok(())
        })
        .unwrap();
    }
}
