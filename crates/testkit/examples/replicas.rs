//! Reads beside writers of an array with two replicas: `replicas READS SEED` prints one JSON object.

use std::process::ExitCode;
use std::time::Duration;

use hyperslab_sim::SimConfig;
use hyperslab_testkit::servers::SimPlace;
use hyperslab_testkit::{Outcome, replica_test, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let reads = arguments.next().unwrap_or(10_000);
    let seed = arguments.next().unwrap_or(1);
    match measure(reads, seed) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Prints what was found; the number of reads that were old.
fn measure(reads: u64, seed: u64) -> Outcome<u64> {
    let sim = SimPlace::start(SimConfig::default())?;
    let report = run(replica_test(
        &sim.s3(),
        reads,
        Duration::from_millis(20),
        seed,
    ))?;
    let out = serde_json::json!({
        "reads": report.reads,
        "by_replica": report.by_replica,
        "writes": report.writes,
        "refused": report.refused,
        "old_reads": report.old_reads,
        "old": report.old,
        "seconds": report.seconds,
    });
    println!("{out}");
    Ok(report.old_reads)
}
