//! A writer that dies at its k-th request leaves nothing half-written.

use hyperslab_testkit::servers::Place;
use hyperslab_testkit::{kill_test, run};

use crate::sim;

const POINTS: u64 = 40;

fn check(place: &Place) {
    let report = run(kill_test(place, POINTS)).unwrap();
    assert_eq!(report.points, POINTS);
    assert!(
        report.requests > POINTS,
        "the workload is too short: {} requests",
        report.requests
    );
    assert!(
        report.violations.is_empty(),
        "{}",
        report.violations.join("\n")
    );
}

#[test]
fn memory() {
    check(&Place::memory("kill"));
}

#[test]
fn local_disk() {
    check(&Place::disk().unwrap());
}

#[test]
fn simulator_s3() {
    check(&sim().s3());
}
