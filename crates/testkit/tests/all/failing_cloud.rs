//! Reads from a cloud that fails, and from one that is down.

use std::time::Duration;

use hyperslab_sim::{FunctionConfig, SimConfig};
use hyperslab_testkit::servers::SimPlace;
use hyperslab_testkit::{down_test, ensure, fault_test, run};

fn start() -> SimPlace {
    SimPlace::start(SimConfig {
        function: Some(FunctionConfig::default()),
        ..SimConfig::default()
    })
    .unwrap()
}

#[test]
fn every_answer_is_right_while_requests_and_calls_fail() {
    let sim = start();
    run(async {
        let report = fault_test(&sim, 300, 7).await?;
        ensure(report.wrong.is_empty(), || format!("{:?}", report.wrong))?;
        ensure(report.requests.1 > 10, || format!("{report:?}"))?;
        ensure(report.calls.1 > 0, || format!("{report:?}"))
    })
    .unwrap();
}

#[test]
fn a_store_that_is_down_ends_every_read_with_an_error() {
    let sim = start();
    run(async {
        down_test(&sim, 3, Duration::from_millis(100)).await?;
        Ok(())
    })
    .unwrap();
}
