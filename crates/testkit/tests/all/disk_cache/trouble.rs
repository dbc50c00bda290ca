//! A cache folder that is corrupt, full, read-only or gone: never a wrong cell, never a failed read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hyperslab::{ErrorKind, Session};
use hyperslab_testkit::{Outcome, Wanted, ensure, fails, run, same};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};

use super::{Cloud, HOUR, LAYOUTS, cached, check};

/// A small file system of its own, which ends with the handle.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let size = Some(c"size=128k");
        match mount("tmpfs", dir.path(), "tmpfs", MountFlags::empty(), size) {
            Ok(()) => Some(Disk(dir)),
            Err(e) => {
                eprintln!(
                    "\n*** SKIPPED: full and read-only caches are not tested, no tmpfs can be mounted: {e} ***\n"
                );
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn set_read_only(&self) {
        mount_remount(self.path(), MountFlags::RDONLY, "").unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

/// All files below a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn changed_files_are_noticed_and_replaced() {
    let cloud = Cloud::start();
    run(async {
        for layout in &LAYOUTS {
            let dir = tempfile::tempdir()?;
            let model = cloud.write(layout, 1).await?;
            let wanted = Wanted::region(&[3, 5], &[40, 50]);
            let array = cloud.open(layout, cached(dir.path(), HOUR)).await?;
            check(&array, &model, &wanted).await?;
            let objects = dir.path().join("hyperslab-cache-1/objects");
            let many = files(&objects).len();
            ensure(many >= 4, || format!("{}: only {many} files", layout.0))?;
            for round in 0..6 {
                for (number, path) in files(&objects).iter().enumerate() {
                    let mut bytes = std::fs::read(path)?;
                    let len = bytes.len();
                    match round {
                        0 => bytes[0] ^= 1,
                        1 => bytes[len - 1] ^= 0x80,
                        2 => bytes.truncate(len / 2),
                        3 => bytes.clear(),
                        4 => bytes.push(0),
                        _ => bytes[(number * 37 + 11) % len] ^= 4,
                    }
                    std::fs::write(path, bytes)?;
                }
                let array = cloud.open(layout, cached(dir.path(), HOUR)).await?;
                check(&array, &model, &wanted).await?;
                ensure(cloud.asked().0 > 0, || "broken files were used".to_owned())?;
                // What replaced them is whole.
                let array = cloud.open(layout, cached(dir.path(), HOUR)).await?;
                check(&array, &model, &wanted).await?;
                same(layout.0, cloud.asked(), (0, 0, 0))?;
            }
            // The ledger may hold anything.
            std::fs::write(dir.path().join("hyperslab-cache-1/usage"), "nonsense")?;
            let array = cloud.open(layout, cached(dir.path(), HOUR)).await?;
            check(&array, &model, &wanted).await?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_full_disk_is_one_warning() {
    let (cloud, Some(disk)) = (Cloud::start(), Disk::mount()) else {
        return;
    };
    run(async {
        let layout = &LAYOUTS[0];
        let model = cloud.write(layout, 1).await?;
        std::fs::write(disk.path().join("ballast"), vec![1; 80 << 10])?;
        let array = cloud.open(layout, cached(disk.path(), HOUR)).await?;
        let session = Session::new(cached(disk.path(), HOUR));
        let other = session.open_array(&cloud.url(layout.0)).await?;
        for _ in 0..2 {
            check(&array, &model, &Wanted::All).await?;
            check(&other, &model, &Wanted::All).await?;
        }
        trouble(&session)?;
        // It serves what it has, and once there is room, others keep more.
        std::fs::remove_file(disk.path().join("ballast"))?;
        let session = Session::new(cached(disk.path(), HOUR));
        let array = session.open_array(&cloud.url(layout.0)).await?;
        check(&array, &model, &Wanted::All).await?;
        same("trouble with room", session.cache_trouble(), None)
    })
    .unwrap();
}

fn trouble(session: &Session) -> Outcome {
    let trouble = session.cache_trouble().unwrap_or_default();
    ensure(trouble.contains("could not be used"), || {
        format!("no warning, but {trouble:?}")
    })
}

#[test]
fn a_read_only_disk_is_an_error_at_first_and_a_warning_later() {
    let (cloud, Some(disk)) = (Cloud::start(), Disk::mount()) else {
        return;
    };
    run(async {
        let layout = &LAYOUTS[0];
        let model = cloud.write(layout, 1).await?;
        let session = Session::new(cached(disk.path(), HOUR));
        let array = session.open_array(&cloud.url(layout.0)).await?;
        let half = Wanted::region(&[0, 0], &[30, 64]);
        check(&array, &model, &half).await?;
        disk.set_read_only();
        cloud.asked();
        check(&array, &model, &half).await?;
        same("what it has is served", cloud.asked(), (0, 0, 0))?;
        same("nothing went wrong yet", session.cache_trouble(), None)?;
        check(&array, &model, &Wanted::All).await?;
        trouble(&session)?;

        let late = Session::new(cached(disk.path(), HOUR));
        let opened = late.open_array(&cloud.url(layout.0)).await;
        let error = fails("a read-only folder", opened.map(drop), ErrorKind::Invalid)?;
        ensure(error.to_string().contains("cannot be used"), || {
            error.to_string()
        })?;
        ensure(error.hint().is_some(), || "no hint".to_owned())
    })
    .unwrap();
}

#[test]
fn a_folder_that_is_deleted_is_done_without() {
    let cloud = Cloud::start();
    run(async {
        for layout in &LAYOUTS {
            let dir = tempfile::tempdir()?;
            let inside = dir.path().join("cache");
            let model = cloud.write(layout, 1).await?;
            let session = Session::new(cached(&inside, Duration::ZERO));
            let array = session.open_array(&cloud.url(layout.0)).await?;
            check(&array, &model, &Wanted::region(&[0, 0], &[30, 64])).await?;
            std::fs::remove_dir_all(inside.join("hyperslab-cache-1"))?;
            check(&array, &model, &Wanted::region(&[0, 0], &[40, 64])).await?;
            same("it was only emptied", session.cache_trouble(), None)?;
            std::fs::remove_dir_all(&inside)?;
            check(&array, &model, &Wanted::All).await?;
            trouble(&session)?;
            ensure(!inside.exists(), || "it was made again".to_owned())?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_file_in_place_of_the_folder_is_an_error_that_says_so() {
    let cloud = Cloud::start();
    run(async {
        cloud.write(&LAYOUTS[0], 1).await?;
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("file");
        std::fs::write(&file, "x")?;
        let opened = cloud.open(&LAYOUTS[0], cached(&file, HOUR)).await;
        let said = opened.map(drop).map_err(|failure| failure.to_string());
        ensure(
            said.as_ref()
                .is_err_and(|said| said.contains("cannot be used")),
            || format!("{said:?}"),
        )?;
        // Local arrays need no cache, so its folder is not looked at.
        let session = Session::new(cached(&file, HOUR));
        let url = format!("{}/local.zarr", dir.path().display());
        same(
            "a local group",
            session.create_group(&url, Default::default()).await.is_ok(),
            true,
        )
    })
    .unwrap();
}
