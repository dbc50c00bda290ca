//! Kills a writer at many points and prints what was left: `cargo run --example kill -- 200`.

use std::process::ExitCode;

use hyperslab_sim::SimConfig;
use hyperslab_testkit::servers::{Place, SimPlace};
use hyperslab_testkit::{Outcome, kill_test, run};

fn main() -> ExitCode {
    let points = match std::env::args().nth(1).map(|text| text.parse()) {
        None => 200,
        Some(Ok(points)) => points,
        Some(Err(_)) => {
            eprintln!("usage: kill [POINTS]");
            return ExitCode::from(2);
        }
    };
    match table(points) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a row per store; the number of violations.
fn table(points: u64) -> Outcome<usize> {
    println!(
        "{:<16} {:>9} {:>7} {:>14} {:>11}",
        "store", "requests", "kills", "copies behind", "violations"
    );
    let mut broken = 0;
    let sim = SimPlace::start(SimConfig::default())?;
    for place in [Place::memory("kill-example"), Place::disk()?, sim.s3()] {
        let report = run(kill_test(&place, points))?;
        println!(
            "{:<16} {:>9} {:>7} {:>14} {:>11}",
            place.name(),
            report.requests,
            report.points,
            report.copies_behind,
            report.violations.len()
        );
        for violation in &report.violations {
            println!("  {violation}");
        }
        broken += report.violations.len();
    }
    Ok(broken)
}
