//! The store suite over every back end.

use std::sync::Arc;

use hyperslab_store::{Faults, Faulty, Local, Prefixed, StoreRef};
use hyperslab_testkit::servers::{Place, required};
use hyperslab_testkit::{StoreScale, run, store_suite, store_suite_with};

use crate::sim;

#[test]
fn memory() {
    run(store_suite(
        Place::memory("store").store("below/a prefix").unwrap(),
    ))
    .unwrap();
}

#[test]
fn local_disk() {
    run(store_suite(Place::disk().unwrap().store("root").unwrap())).unwrap();
}

#[test]
fn local_disk_that_waits_for_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}?fsync=true", dir.path().display());
    let store = hyperslab_store::open(&url).unwrap();
    run(store_suite_with(store, StoreScale::SMALL)).unwrap();
}

#[test]
fn a_prefix_of_a_local_disk() {
    let dir = tempfile::tempdir().unwrap();
    let root: StoreRef = Arc::new(Local::new(dir.path()).unwrap());
    let below = Prefixed::new(root, "some/where").unwrap();
    run(store_suite_with(Arc::new(below), StoreScale::SMALL)).unwrap();
}

#[test]
fn a_wrapper_without_faults() {
    let store = Place::memory("wrapped").store("x").unwrap();
    run(store_suite(Arc::new(Faulty::new(store, Faults::default())))).unwrap();
}

#[test]
fn simulator_s3() {
    run(store_suite(sim().s3().store("below").unwrap())).unwrap();
}

#[test]
fn simulator_google() {
    run(store_suite(sim().google().unwrap().store("below").unwrap())).unwrap();
}

#[test]
fn moto() {
    let Some(place) = required("moto", Place::moto()).unwrap() else {
        return;
    };
    run(store_suite_with(
        place.store("below").unwrap(),
        StoreScale::SLOW,
    ))
    .unwrap();
}

#[test]
fn azurite() {
    let Some(place) = required("Azurite", Place::azurite()).unwrap() else {
        return;
    };
    run(store_suite_with(
        place.store("below").unwrap(),
        StoreScale::SLOW,
    ))
    .unwrap();
}

/// A suite that cannot fail is worth nothing: over a store that loses requests it must fail.
#[test]
fn a_broken_store_fails_the_suite() {
    let store = Place::memory("broken").store("x").unwrap();
    let faults = Faults {
        seed: 1,
        truncate: 0.2,
        ..Faults::default()
    };
    assert!(
        run(store_suite_with(
            Arc::new(Faulty::new(store, faults)),
            StoreScale::SMALL
        ))
        .is_err()
    );
}
