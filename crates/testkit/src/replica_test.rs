//! Reads beside writers of an array with replicas: none may return a value that is older than what was
//! acknowledged before the read began.
//!
//! Every cell holds the number of the write that made it. Writers have tiles of their own, which share
//! objects of the original and of the replicas, so their marks meet. A share of their puts to a replica
//! fails, which leaves it old there. No schedule here makes a reader return an old value because it did
//! not confirm the manifest: with the answer of that check ignored, all reads are still right.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use hyperslab::store::{Faults, Faulty};
use hyperslab::{Array, Compression, CopyOptions, Options, Region, Selection, Session};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::servers::Place;
use crate::{Outcome, ensure};

/// Sides of the array, in tiles and cells.
const TILES: u64 = 8;
const TILE: u64 = 16;
const SIDE: u64 = TILES * TILE;

/// What came of it.
#[derive(Debug, Default)]
pub struct ReplicaReport {
    /// Reads.
    pub reads: u64,
    /// Reads that a replica answered.
    pub by_replica: u64,
    /// Writes that were acknowledged while the reads went on.
    pub writes: u64,
    /// Objects of a replica that could not be written meanwhile.
    pub refused: u64,
    /// Reads with a cell that was older than it may be: at most 20 are described.
    pub old: Vec<String>,
    /// How many there were.
    pub old_reads: u64,
    /// Seconds that all of it took.
    pub seconds: f64,
}

/// What writers have begun and what was acknowledged, tile by tile.
#[derive(Debug)]
struct Truth {
    begun: Vec<AtomicU32>,
    acknowledged: Vec<AtomicU32>,
    writes: AtomicU64,
    refused: AtomicU64,
    stop: AtomicBool,
}

/// For so many reads there is one of the session that reads now and then.
const RARELY: u64 = 8;
/// Pauses of a writer after which replicas that were left old are brought up to date.
const HEALED: u32 = 8;
/// How many of the puts to a replica fail.
const REFUSED: f64 = 0.2;

/// Makes `reads` random reads in two sessions while two others write, and `pause` between the writes.
pub async fn replica_test(
    place: &Place,
    reads: u64,
    pause: Duration,
    seed: u64,
) -> Outcome<ReplicaReport> {
    let maker = Session::default();
    let url = format!("{}/a", place.mount(&maker, "replicas.zarr")?);
    let array = maker.create_array(&url, spec(&url)?, true).await?;
    array
        .write(&Selection::All, vec![0; (4 * SIDE * SIDE) as usize])
        .await?;
    for (name, chunks) in [("columns", [SIDE, TILE / 2]), ("tiles", [40, 40])] {
        let mut spec = array.replica_spec();
        spec.chunks = Some(chunks.to_vec());
        spec.compression = Compression::None;
        array
            .create_replica(name, spec, &CopyOptions::default(), &())
            .await?;
    }
    let zeros = || (0..TILES * TILES).map(|_| AtomicU32::new(0)).collect();
    let truth = Arc::new(Truth {
        begun: zeros(),
        acknowledged: zeros(),
        writes: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    });
    let begun = Instant::now();
    let writers = (0..2).map(|number| {
        let (place, truth) = (place.clone(), truth.clone());
        hyperslab::handle().map(|handle| {
            handle.spawn(async move { write(&place, &truth, number, pause, seed).await })
        })
    });
    let writers = writers.collect::<Result<Vec<_>, _>>()?;
    let sessions: Vec<Session> = (0..2).map(|_| Session::new(Options::default())).collect();
    let mut readers = Vec::new();
    for (i, session) in sessions.iter().cycle().take(8).enumerate() {
        let url = format!("{}/a", place.mount(session, "replicas.zarr")?);
        let array = session.open_array(&url).await?;
        let share = reads / 8 + u64::from((i as u64) < reads % 8);
        let seed = seed * 1000 + i as u64;
        readers.push(read(array, truth.clone(), share, Duration::ZERO, seed));
    }
    // One that reads now and then: what it knows of the replicas is older than many writes.
    let rare = Session::default();
    let url = format!("{}/a", place.mount(&rare, "replicas.zarr")?);
    let seldom = rare.open_array(&url).await?;
    let often = (reads / RARELY).max(1);
    readers.push(read(
        seldom,
        truth.clone(),
        often,
        4 * pause,
        seed * 1000 + 99,
    ));
    let reading = async {
        let found = try_join_all(readers).await;
        truth.stop.store(true, Ordering::SeqCst);
        found
    };
    let healing = async {
        while !truth.stop.load(Ordering::SeqCst) {
            tokio::time::sleep(HEALED * pause).await;
            let options = CopyOptions::default();
            // What fails is tried again the next time.
            let _ = array
                .refresh_replicas(hyperslab::ABANDONED, &options, &())
                .await;
        }
    };
    let (found, ()) = futures::join!(reading, healing);
    for writer in writers {
        writer.await??;
    }
    let old: Vec<String> = found?.into_iter().flatten().collect();
    ensure(truth.writes.load(Ordering::SeqCst) > 0, || {
        "no write was acknowledged while the reads went on".into()
    })?;
    ensure(truth.refused.load(Ordering::SeqCst) > 0, || {
        "no replica was left old by a write".into()
    })?;
    Ok(ReplicaReport {
        reads,
        by_replica: sessions.iter().map(Session::replica_reads).sum::<u64>() + rare.replica_reads(),
        writes: truth.writes.load(Ordering::SeqCst),
        refused: truth.refused.load(Ordering::SeqCst),
        old_reads: old.len() as u64,
        old: old.into_iter().take(20).collect(),
        seconds: begun.elapsed().as_secs_f64(),
    })
}

fn spec(url: &str) -> Outcome<hyperslab::ArraySpec> {
    let dtype = hyperslab::numpy::parse_dtype("u4")?.dtype;
    let shape = hyperslab::Shape::new([SIDE, SIDE])?;
    let mut spec = hyperslab::ArraySpec::new(shape, dtype);
    // Rows, so that columns and tiles are cheaper elsewhere.
    spec.chunks = Some(vec![TILE / 2, SIDE]);
    spec.compression = Compression::None;
    spec.attributes.insert("at".into(), url.into());
    Ok(spec)
}

/// Writes tiles of its own (those whose number is its own modulo 2) until it is told to stop.
async fn write(place: &Place, truth: &Truth, number: u64, pause: Duration, seed: u64) -> Outcome {
    let session = Session::default();
    let faults = Faults {
        seed: seed + number,
        before: REFUSED,
        puts_with: Some("replicas/columns-".into()),
        ..Faults::default()
    };
    let store = Arc::new(Faulty::new(place.store("replicas.zarr")?, faults));
    let root = place.mount_store(&session, "replicas.zarr", store.clone())?;
    let array = session.open_array(&format!("{root}/a")).await?;
    let mut rng = StdRng::seed_from_u64(seed ^ (number + 77));
    while !truth.stop.load(Ordering::SeqCst) {
        let tile = rng.random_range(0..TILES * TILES / 2) * 2 + number;
        let region = Region::new([tile / TILES * TILE, tile % TILES * TILE], [TILE, TILE])?;
        let next = truth.begun[tile as usize].fetch_add(1, Ordering::SeqCst) + 1;
        let cells = next.to_le_bytes().repeat((TILE * TILE) as usize);
        array.write(&Selection::region(&region), cells).await?;
        truth.acknowledged[tile as usize].store(next, Ordering::SeqCst);
        truth.writes.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(pause).await;
    }
    truth.refused.fetch_add(store.broken(), Ordering::SeqCst);
    Ok(())
}

/// Reads rows, columns and boxes; a description of each read that was wrong.
async fn read(
    array: Array,
    truth: Arc<Truth>,
    reads: u64,
    pause: Duration,
    seed: u64,
) -> Outcome<Vec<String>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut wrong = Vec::new();
    for number in 0..reads {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let region = part(&mut rng)?;
        let tiles = |of: &[AtomicU32]| -> Vec<u32> {
            of.iter().map(|tile| tile.load(Ordering::SeqCst)).collect()
        };
        let least = tiles(&truth.acknowledged);
        let cells = array.read(&Selection::region(&region)).await?;
        let most = tiles(&truth.begun);
        for (i, cell) in cells.as_chunks::<4>().0.iter().enumerate() {
            let row = region.start()[0] + i as u64 / region.shape()[1];
            let column = region.start()[1] + i as u64 % region.shape()[1];
            let tile = (row / TILE * TILES + column / TILE) as usize;
            let value = u32::from_le_bytes(*cell);
            if value < least[tile] || value > most[tile] {
                wrong.push(format!(
                    "read {number} of {region:?}: cell ({row}, {column}) is {value}, and was to be {}..={}",
                    least[tile], most[tile]
                ));
                break;
            }
        }
    }
    Ok(wrong)
}

fn part(rng: &mut StdRng) -> Outcome<Region> {
    let at = |rng: &mut StdRng| rng.random_range(0..SIDE - 4);
    Ok(match rng.random_range(0..4) {
        0 => Region::new([at(rng), 0], [2, SIDE])?,
        1 | 2 => Region::new([0, at(rng)], [SIDE, 2])?,
        _ => {
            let start = [
                rng.random_range(0..SIDE - 40),
                rng.random_range(0..SIDE - 40),
            ];
            Region::new(start, [rng.random_range(1..40), rng.random_range(1..40)])?
        }
    })
}
