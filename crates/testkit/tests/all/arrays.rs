//! The array suite over every back end.

use hyperslab_testkit::servers::{Place, required};
use hyperslab_testkit::{ArrayScale, array_suite, run};

use crate::sim;

#[test]
fn memory() {
    run(array_suite(&Place::memory("array"), ArrayScale::FULL)).unwrap();
}

#[test]
fn local_disk() {
    run(array_suite(
        &Place::disk().unwrap(),
        ArrayScale {
            cases: 150,
            ..ArrayScale::FULL
        },
    ))
    .unwrap();
}

#[test]
fn simulator_s3() {
    run(array_suite(&sim().s3(), ArrayScale::SERVER)).unwrap();
}

#[test]
fn simulator_google() {
    run(array_suite(&sim().google().unwrap(), ArrayScale::SERVER)).unwrap();
}

#[test]
fn moto() {
    let Some(place) = required("moto", Place::moto()).unwrap() else {
        return;
    };
    run(array_suite(&place, ArrayScale::SLOW)).unwrap();
}

#[test]
fn azurite() {
    let Some(place) = required("Azurite", Place::azurite()).unwrap() else {
        return;
    };
    run(array_suite(&place, ArrayScale::SLOW)).unwrap();
}
