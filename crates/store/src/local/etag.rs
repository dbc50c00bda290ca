//! Version tags of local files.
//!
//! A tag is made of inode, modification time in nanoseconds and size. Neither inode nor time is
//! enough alone: a file system may give a freed inode to the next file at once, and two writes can
//! fall into one tick of the clock. So every replacement gets a modification time strictly later
//! than that of the value it replaces, under the directory's lock: along the history of a key times
//! only grow. Only when a key is deleted and created again does that chain start afresh, and then
//! the clock would have to repeat the same nanosecond and the file system the same inode.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use crate::Meta;

/// Size, ETag and time of a file.
pub(super) fn meta(found: &Metadata) -> Meta {
    let nanoseconds = modified_ns(found);
    Meta {
        size: found.len(),
        etag: Some(format!(
            "\"{:x}-{nanoseconds:x}-{:x}\"",
            found.ino(),
            found.len()
        )),
        modified_ms: i64::try_from(nanoseconds.div_euclid(1_000_000)).ok(),
    }
}

fn modified_ns(found: &Metadata) -> i128 {
    i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())
}

/// Gives `file` the present time, or a later one if `replaced` is not in the past, and tells what
/// the file is then.
pub(super) fn stamp(file: &File, replaced: Option<&Metadata>) -> io::Result<Metadata> {
    let now = SystemTime::now();
    file.set_modified(now)?;
    let stamped = file.metadata()?;
    let Some(replaced) = replaced else {
        return Ok(stamped);
    };
    if modified_ns(&stamped) > modified_ns(replaced) {
        return Ok(stamped);
    }
    // File systems keep times in steps of 1 ns to 2 s: take the smallest step that this one shows.
    let base = replaced.modified()?;
    for step_ns in [
        1,
        100,
        1_000,
        1_000_000,
        1_000_000_000,
        2_000_000_000,
        4_000_000_000,
    ] {
        file.set_modified(base + Duration::from_nanos(step_ns))?;
        let stamped = file.metadata()?;
        if modified_ns(&stamped) > modified_ns(replaced) {
            return Ok(stamped);
        }
    }
    Err(io::Error::other(
        "the file system does not keep modification times",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_is_later_even_if_the_clock_went_back() {
        let dir = tempfile::tempdir().unwrap();
        let old = File::create(dir.path().join("old")).unwrap();
        let new = File::create(dir.path().join("new")).unwrap();
        old.set_modified(SystemTime::now() + Duration::from_secs(3600))
            .unwrap();
        let replaced = old.metadata().unwrap();
        let stamped = stamp(&new, Some(&replaced)).unwrap();
        assert_eq!(modified_ns(&stamped), modified_ns(&replaced) + 1);
    }
}
