//! Units of media: platters or tapes then, shards and storage classes now.
//!
//! The paper's fourth technique: the array is cut into parts of the size of a unit, shaped so that a
//! read needs few of them, since each that is not in a drive has to be fetched by a robot.

use crate::search::{Found, Limits, best};
use crate::{Error, Pattern, Result, Starts};

/// Removable media.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Media {
    /// Cells of a unit.
    pub unit_cells: u64,
    /// Units that can be read at a time.
    pub drives: usize,
    /// Seconds to put another unit into a drive.
    pub switch_seconds: f64,
}

/// The shape of the parts of the array that go to one unit each, such that reads need fewest units.
pub fn partition(pattern: &Pattern, starts: Starts, media: &Media) -> Result<Found> {
    if media.unit_cells == 0 || media.drives == 0 {
        return Err(Error::invalid(
            "media need room for a cell, and a drive to be read in",
        ));
    }
    best(pattern, starts, &Limits::cells(media.unit_cells))
}

/// Switches that reads of these units take, one read after the other, when drives are empty at first.
/// A unit that is needed replaces the one that was needed longest ago; a read takes the units that are
/// in a drive first.
pub fn switches(reads: impl IntoIterator<Item = Vec<u64>>, drives: usize) -> u64 {
    // The unit that was needed last is last.
    let mut mounted: Vec<u64> = Vec::new();
    let mut switches = 0;
    for mut units in reads {
        units.sort_unstable();
        units.dedup();
        units.sort_by_key(|unit| !mounted.contains(unit));
        for unit in units {
            match mounted.iter().position(|mounted| *mounted == unit) {
                Some(at) => {
                    mounted.remove(at);
                }
                None => {
                    switches += 1;
                    if mounted.len() >= drives.max(1) {
                        mounted.remove(0);
                    }
                }
            }
            mounted.push(unit);
        }
    }
    switches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_are_in_a_drive_take_no_switch() {
        let reads = [
            vec![1],
            vec![2, 1],
            vec![1, 2],
            vec![3],
            vec![2, 3],
            vec![1],
        ];
        // 1, 2 and 3 once each; 2 stays because it was needed after 1; then 1 again.
        assert_eq!(switches(reads.clone(), 2), 4);
        assert_eq!(switches(reads.clone(), 3), 3);
        assert_eq!(switches(reads, 1), 6);
        assert_eq!(switches([vec![5, 5, 5]], 2), 1);
    }

    #[test]
    fn parts_follow_the_reads() {
        let boxes = [(vec![1000, 1, 1], 1.0)];
        let pattern = Pattern::new(&[1000, 100, 100], boxes).unwrap();
        let media = Media {
            unit_cells: 1_000_000,
            drives: 2,
            switch_seconds: 10.0,
        };
        let found = partition(&pattern, Starts::Anywhere, &media).unwrap();
        assert_eq!((found.blocks, found.chunk[0]), (1.0, 1000));
        assert!(partition(&pattern, Starts::Anywhere, &Media { drives: 0, ..media }).is_err());
    }
}
