//! Physical floors: what the machine does when nothing but bytes is moved.
//!
//! One thread per core, files taken in turn, one buffer that exists before the clock starts.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hyperslab::{Error, Result};

use crate::cells::file_error;
use crate::clock::{Clock, Took};

/// A page.
const ALIGNMENT: usize = 4096;

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` on one thread per core over jobs taken in turn; the time is that of all of them.
fn in_parallel<J: Send>(
    jobs: Vec<J>,
    work: impl Fn(J) -> std::io::Result<()> + Sync,
) -> Result<Took> {
    let queue = Mutex::new(jobs.into_iter());
    let failure = Mutex::new(None);
    let clock = Clock::start();
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(|| {
                loop {
                    let Some(job) = queue.lock().ok().and_then(|mut queue| queue.next()) else {
                        return;
                    };
                    if let Err(e) = work(job) {
                        if let Ok(mut slot) = failure.lock() {
                            *slot = Some(e);
                        }
                        return;
                    }
                }
            });
        }
    });
    let took = clock.stop();
    match failure.into_inner() {
        Ok(None) => Ok(took),
        Ok(Some(e)) => Err(Error::unavailable(format!(
            "a plain read or write failed: {e}"
        ))),
        Err(_) => Err(Error::internal(
            "a thread of a plain read or write panicked",
        )),
    }
}

/// Reads every file below `folder`; returns the time and the bytes.
pub(crate) fn read_files(folder: &str) -> Result<(Took, u64)> {
    let mut files = Vec::new();
    collect(Path::new(folder), &mut files).map_err(file_error("listed", folder))?;
    let total: u64 = files.iter().map(|(_, len)| *len).sum();
    // The kernel's copy into memory that is off by 16 bytes, which is what large allocations are,
    // takes three to five times as long as into aligned memory.
    let mut buffer = vec![1u8; total as usize + ALIGNMENT];
    let aligned = buffer.as_ptr().align_offset(ALIGNMENT);
    let mut jobs = Vec::with_capacity(files.len());
    let mut rest = buffer.get_mut(aligned..).unwrap_or_default();
    for (path, len) in files {
        let (part, after) = rest.split_at_mut(len as usize);
        jobs.push((path, part));
        rest = after;
    }
    let took = in_parallel(jobs, |(path, part)| File::open(path)?.read_exact(part))?;
    Ok((took, total))
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, u64)>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let meta = entry.metadata()?;
        if meta.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push((entry.path(), meta.len()));
        }
    }
    Ok(())
}

/// Writes `cells` as files of `file_bytes` in `folder`.
pub(crate) fn write_files(folder: &str, file_bytes: u64, cells: &[u8]) -> Result<Took> {
    if file_bytes == 0 {
        return Err(Error::invalid("files need at least one byte"));
    }
    fs::create_dir_all(folder).map_err(file_error("made", folder))?;
    let folder = Path::new(folder);
    let jobs: Vec<_> = cells.chunks(file_bytes as usize).enumerate().collect();
    in_parallel(jobs, |(i, part)| {
        File::create(folder.join(i.to_string()))?.write_all(part)
    })
}

/// Copies `bytes` bytes between two buffers that were touched before.
pub(crate) fn copy_memory(bytes: u64) -> Result<Took> {
    let from = vec![1u8; bytes as usize];
    let mut to = vec![2u8; bytes as usize];
    let jobs: Vec<_> = to.chunks_mut(1 << 20).zip(from.chunks(1 << 20)).collect();
    in_parallel(jobs, |(to, from)| {
        to.copy_from_slice(from);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("files");
        let folder = folder.to_str().unwrap();
        write_files(folder, 10, &[7; 95]).unwrap();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 10);
        assert_eq!(read_files(folder).unwrap().1, 95);
        assert!(read_files("no/such/folder").is_err());
        assert!(write_files(folder, 0, &[7]).is_err());
        copy_memory((3 << 20) + 1).unwrap();
    }
}
