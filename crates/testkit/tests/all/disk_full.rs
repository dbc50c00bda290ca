//! A full disk: the write is an error that says so, and what was there before stays whole.

use std::path::Path;

use hyperslab::{ArraySpec, Compression, DataType, ErrorKind, Selection, Session, Shape};
use hyperslab_testkit::{Outcome, ensure, fails, run, same};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// A file system of one mebibyte, which ends with the handle.
struct TinyDisk(tempfile::TempDir);

impl TinyDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        match mount(
            "tmpfs",
            dir.path(),
            "tmpfs",
            MountFlags::empty(),
            Some(c"size=1m"),
        ) {
            Ok(()) => Some(TinyDisk(dir)),
            Err(e) => {
                eprintln!(
                    "\n*** SKIPPED: a full disk is not tested, no tmpfs can be mounted: {e} ***\n"
                );
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

#[test]
fn what_does_not_fit_is_an_error_and_nothing_is_lost() {
    let Some(disk) = TinyDisk::mount() else {
        return;
    };
    run(check(disk.path())).unwrap();
}

async fn check(disk: &Path) -> Outcome {
    let session = Session::default();
    let url = format!("{}/x.zarr/array", disk.display());
    let mut spec = ArraySpec::new(Shape::new([40, 64 << 10])?, DataType::UInt(1));
    spec.chunks = Some(vec![1, 64 << 10]);
    spec.shards = Some(Vec::new());
    spec.compression = Compression::None;
    let array = session.create_array(&url, spec, false).await?;
    let half = hyperslab_testkit::Wanted::region(&[0, 0], &[8, 64 << 10]).selection(2)?;
    array.write(&half, vec![1; 8 * (64 << 10)]).await?;

    let written = array.write(&Selection::All, vec![2; 40 * (64 << 10)]).await;
    let error = fails(
        "a write of 2.5 MiB to 1 MiB",
        written,
        ErrorKind::Unavailable,
    )?;
    let said = error.to_string().to_lowercase();
    ensure(said.contains("space") || said.contains("full"), || {
        format!("not said: {error}")
    })?;

    // Every chunk is as before or as after, and nothing temporary takes room.
    let cells = session
        .open_array(&url)
        .await?
        .read(&Selection::All)
        .await?;
    for (row, chunk) in cells.chunks(64 << 10).enumerate() {
        let before = u8::from(row < 8);
        let whole = chunk.iter().all(|cell| *cell == chunk[0]);
        ensure(whole && [before, 2].contains(&chunk[0]), || {
            format!("chunk {row} is torn")
        })?;
    }
    let resized = array.resize(&[8, 64 << 10]).await;
    resized.map_err(|e| hyperslab_testkit::Failure::from(e).within("making room"))?;
    array.write(&half, vec![3; 8 * (64 << 10)]).await?;
    let cells = session
        .open_array(&url)
        .await?
        .read(&Selection::All)
        .await?;
    same(
        "cells after room was made",
        cells.iter().all(|cell| *cell == 3),
        true,
    )
}
