//! Schedules that would leave an old value in a replica if marks did not stay where writers met.

use std::time::Duration;

use hyperslab::{CopyOptions, block_on};
use hyperslab_store::StoreRef;

use super::gate::Gate;
use super::{array, by_itself, cells, memory, numbers, open, refresh, replicated, session};
use hyperslab::Selection;

/// The first writer waits where `gate` says, the second one writes the same cells meanwhile; then the
/// first goes on. Whatever the original has in the end is what a new session reads.
fn meet(gate: impl Fn(&StoreRef) -> std::sync::Arc<Gate>) {
    let store = memory();
    replicated(&store);
    let gate = gate(&store);
    let slow: StoreRef = gate.clone();
    let (one, two) = (open(&session(&slow)), open(&session(&store)));
    let reader = session(&store);
    let reading = open(&reader);
    let column = cells([0, 3], [12, 1]);
    block_on(reading.read(&column)).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| block_on(one.write(&cells([0, 3], [12, 1]), vec![1; 12])));
        gate.wait();
        block_on(two.write(&column, vec![2; 12])).unwrap();
        // The second write is acknowledged, the first is not: both values are good, older ones are not.
        let found = block_on(reading.read(&column)).unwrap();
        assert!(
            found.iter().all(|value| [1, 2].contains(value)),
            "{found:?}"
        );
        gate.open();
        first.join().unwrap().unwrap();
    });
    let expected = block_on(by_itself(&store).read(&column)).unwrap();
    assert_eq!(block_on(reading.read(&column)).unwrap(), expected);
    let again = session(&store);
    assert_eq!(block_on(open(&again).read(&column)).unwrap(), expected);
    // Whoever was the last has healed the column.
    assert_eq!(again.replica_reads(), 1);
}

#[test]
fn a_slow_write_to_a_replica_does_not_outlive_a_later_one() {
    meet(|store| Gate::before_put(store, "replicas/columns-"));
}

#[test]
fn a_slow_write_to_the_original_is_not_missed_by_replicas() {
    meet(|store| Gate::before_put(store, "a/c/"));
}

#[test]
fn a_replica_that_is_filled_beside_a_writer_is_not_old() {
    let store = memory();
    let array = array(&store);
    block_on(array.write(&Selection::All, numbers(1))).unwrap();
    // The copy has read the original, and has not written the replica yet.
    let gate = Gate::before_put(&store, "/c/");
    let slow: StoreRef = gate.clone();
    let (maker, writer) = (open(&session(&slow)), open(&session(&store)));
    let column = cells([0, 3], [12, 1]);
    std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            let mut spec = maker.replica_spec();
            spec.chunks = Some(vec![12, 2]);
            block_on(maker.create_replica("columns", spec, &CopyOptions::default(), &()))
        });
        gate.wait();
        block_on(writer.write(&column, vec![9; 12])).unwrap();
        gate.open();
        assert!(made.join().unwrap().unwrap().complete);
    });
    let reader = session(&store);
    assert_eq!(block_on(open(&reader).read(&column)).unwrap(), [9; 12]);
    assert_eq!(reader.replica_reads(), 1);
}

#[test]
fn a_writer_whose_mark_was_taken_for_abandoned_does_not_leave_an_old_value() {
    let store = memory();
    let array = replicated(&store);
    let gate = Gate::before_put(&store, "a/c/");
    let slow: StoreRef = gate.clone();
    let writer = open(&session(&slow));
    let column = cells([0, 3], [12, 1]);
    std::thread::scope(|scope| {
        let write = scope.spawn(|| block_on(writer.write(&cells([0, 3], [12, 1]), vec![9; 12])));
        gate.wait();
        // By now it may have written the replicas.
        std::thread::sleep(Duration::from_millis(50));
        assert!(refresh(&array));
        gate.open();
        write.join().unwrap().unwrap();
    });
    let reader = session(&store);
    assert_eq!(block_on(open(&reader).read(&column)).unwrap(), [9; 12]);
    assert_eq!(reader.replica_reads(), 1);
}

#[test]
fn a_read_that_began_before_a_write_may_not_hide_it_from_a_later_one() {
    let store = memory();
    let array = replicated(&store);
    // The reader's requests to the replica wait, and its look at the manifest does not.
    let gate = Gate::before_get(&store, "replicas/columns-");
    let slow: StoreRef = gate.clone();
    let reader = session(&slow);
    let handle = open(&reader);
    let column = cells([0, 3], [12, 1]);
    let before = block_on(by_itself(&store).read(&column)).unwrap();
    std::thread::scope(|scope| {
        let read = scope.spawn(|| block_on(handle.read(&cells([0, 3], [12, 1]))).unwrap());
        gate.wait();
        block_on(array.write(&column, vec![9; 12])).unwrap();
        gate.open();
        let found = read.join().unwrap();
        assert!(found == before || found == [9; 12], "{found:?}");
    });
    assert_eq!(block_on(handle.read(&column)).unwrap(), [9; 12]);
}
