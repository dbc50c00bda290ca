//! No read of an array with replicas is older than what was acknowledged before it began.

use std::time::Duration;

use hyperslab_testkit::servers::Place;
use hyperslab_testkit::{replica_test, run};

use crate::sim;

const READS: u64 = 600;

fn check(place: &Place) {
    let report = run(replica_test(place, READS, Duration::from_millis(5), 1)).unwrap();
    assert_eq!(report.reads, READS);
    assert_eq!(report.old_reads, 0, "{}", report.old.join("\n"));
    assert!(report.by_replica > READS / 50, "{report:?}");
}

#[test]
fn memory() {
    check(&Place::memory("replicas"));
}

#[test]
fn local_disk() {
    check(&Place::disk().unwrap());
}

#[test]
fn simulator_s3() {
    check(&sim().s3());
}
