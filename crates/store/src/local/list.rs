//! Lists of local files.
//!
//! A recursive list walks in sorted order, so a page's token is just the last key it returned and
//! no state is kept between pages.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{io_error, is_absent, is_loop};
use super::{TEMPORARY, etag};
use crate::key::{self, MAX_KEY_BYTES};
use crate::{Entry, Listing, Result};

/// Entries per page. Large, because each page reads its directory anew.
const PAGE: usize = 32_768;

/// The objects directly in `root/prefix`, and its sub-directories.
pub(super) fn directory(root: &Path, prefix: &str) -> Result<Listing> {
    let mut listing = Listing::default();
    for (name, found) in read(&root.join(prefix))? {
        if found.is_dir() {
            listing.dirs.push(name);
        } else {
            listing.objects.push(Entry {
                key: key::join(prefix, &name),
                meta: etag::meta(&found),
            });
        }
    }
    Ok(listing)
}

/// The objects below `root/prefix` that come after the key `after`, and the next page's token.
pub(super) fn page(
    root: &Path,
    prefix: &str,
    after: Option<&str>,
) -> Result<(Vec<Entry>, Option<String>)> {
    page_of(PAGE, root, prefix, after)
}

fn page_of(
    limit: usize,
    root: &Path,
    prefix: &str,
    after: Option<&str>,
) -> Result<(Vec<Entry>, Option<String>)> {
    let top = root.join(prefix);
    let identity = fs::metadata(&top)
        .ok()
        .map(|found| (found.dev(), found.ino()));
    let mut walk = Walk {
        limit,
        entries: Vec::new(),
        ancestors: identity.into_iter().collect(),
    };
    let after = after.and_then(|after| key::below(prefix, after));
    let full = walk.visit(&top, prefix, after)?;
    let next = walk
        .entries
        .last()
        .filter(|_| full)
        .map(|entry| entry.key.clone());
    Ok((walk.entries, next))
}

struct Walk {
    limit: usize,
    entries: Vec<Entry>,
    /// Device and inode of the directories above, so that a link to one of them ends the descent.
    ancestors: Vec<(u64, u64)>,
}

impl Walk {
    /// Collects the objects of a directory that come after `after`; true if the page is full.
    fn visit(&mut self, dir: &Path, prefix: &str, after: Option<&str>) -> Result<bool> {
        let (first, rest) = match after {
            Some(after) => match after.split_once('/') {
                Some((first, rest)) => (Some(first), Some(rest)),
                None => (Some(after), None),
            },
            None => (None, None),
        };
        for (name, found) in read(dir)? {
            let entered = first == Some(name.as_str());
            if first.is_some_and(|first| name.as_str() < first) || (entered && found.is_file()) {
                continue;
            }
            let key = key::join(prefix, &name);
            if key.len() > MAX_KEY_BYTES {
                continue;
            }
            if found.is_dir() {
                let identity = (found.dev(), found.ino());
                if self.ancestors.contains(&identity) {
                    continue;
                }
                self.ancestors.push(identity);
                let full = self.visit(&dir.join(&name), &key, rest.filter(|_| entered))?;
                self.ancestors.pop();
                if full {
                    return Ok(true);
                }
            } else {
                self.entries.push(Entry {
                    key,
                    meta: etag::meta(&found),
                });
                if self.entries.len() >= self.limit {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Objects and directories in `dir`, sorted by name. An absent directory is empty. Left out:
/// temporary files, names that cannot be keys, broken links, pipes and devices.
fn read(dir: &Path) -> Result<Vec<(String, Metadata)>> {
    let fail = |e: io::Error, path: &Path| io_error("list", path, e);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if is_absent(&e) => return Ok(Vec::new()),
        Err(e) => return Err(fail(e, dir)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| fail(e, dir))?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name.starts_with(TEMPORARY) || key::check_key(&name).is_err() {
            continue;
        }
        let path: PathBuf = entry.path();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() || metadata.is_file() => found.push((name, metadata)),
            Ok(_) => {}
            // It vanished after the directory was read, or is a link to nowhere.
            Err(e) if is_absent(&e) || is_loop(&e) => {}
            Err(e) => return Err(fail(e, &path)),
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_any_size_hold_every_object_once() {
        let dir = tempfile::tempdir().unwrap();
        let keys = [
            "a.b/c",
            "a/b",
            "a/b.c",
            "b/a/a",
            "b/a/b",
            "b/b",
            "b/c/d/e",
            "c",
            "ü ü/%20",
        ];
        for key in &keys {
            let path = dir.path().join("p").join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, key).unwrap();
        }
        fs::write(dir.path().join("p/b").join(format!("{TEMPORARY}1-2-3")), "").unwrap();
        std::os::unix::fs::symlink("..", dir.path().join("p/b/loop")).unwrap();
        let mut expected: Vec<_> = keys.iter().map(|key| format!("p/{key}")).collect();
        expected.sort();
        for limit in 1..=10 {
            let (mut seen, mut token) = (Vec::new(), None);
            loop {
                let (entries, next) = page_of(limit, dir.path(), "p", token.as_deref()).unwrap();
                assert!(entries.len() <= limit);
                seen.extend(entries.into_iter().map(|entry| entry.key));
                token = next;
                if token.is_none() {
                    break;
                }
            }
            seen.sort();
            assert_eq!(seen, expected, "pages of {limit}");
        }
    }
}
