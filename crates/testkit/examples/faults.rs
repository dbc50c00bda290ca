//! Reads under faults, and from a store that is down: `faults QUERIES SEED` prints one JSON object.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hyperslab_sim::{FunctionConfig, FunctionModel, SimConfig};
use hyperslab_testkit::servers::SimPlace;
use hyperslab_testkit::{Outcome, down_test, fault_test, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let queries = arguments.next().unwrap_or(10_000);
    let seed = arguments.next().unwrap_or(1);
    match measure(queries, seed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(queries: u64, seed: u64) -> Outcome {
    let model = FunctionModel {
        beta_millis: 1.0,
        ..FunctionModel::default()
    };
    let function = FunctionConfig {
        model,
        ..FunctionConfig::default()
    };
    let sim = SimPlace::start(SimConfig {
        function: Some(function),
        ..SimConfig::default()
    })?;
    let begun = Instant::now();
    let report = run(fault_test(&sim, queries, seed))?;
    let seconds = begun.elapsed().as_secs_f64();
    let deadline = Duration::from_millis(500);
    let beyond = run(down_test(&sim, 20, deadline))?;
    let out = serde_json::json!({
        "queries": report.queries,
        "wrong": report.wrong,
        "requests": report.requests.0,
        "failed_requests": report.requests.1,
        "calls": report.calls.0,
        "fallbacks": report.calls.1,
        "seconds": seconds,
        "deadline_seconds": deadline.as_secs_f64(),
        "beyond_deadline_seconds": beyond.as_secs_f64(),
    });
    println!("{out}");
    Ok(())
}
