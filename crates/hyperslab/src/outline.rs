//! What a copy of an HDF5 file needs to know beyond its arrays: where its cells are, and which of them
//! a Zarr array holds as well as the file does.
//!
//! Beside [`crate::file`], for the crate that writes HDF5. Also the objects that are kept beside a
//! hierarchy, under `.hyperslab/`, which Zarr knows nothing of.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyperslab_format::hdf5::{self, Found, MemberKind, Object};
use hyperslab_format::join;
use hyperslab_store::{Get, GetRange, Memory, Put, StoreRef};

use crate::{Error, Result, Session};

/// The folder of a hierarchy that Zarr does not look into.
const FOLDER: &str = ".hyperslab";
/// Bytes of metadata that are fetched at a time.
const PIECE: u64 = 8 << 20;
/// Requests at a time.
const CONCURRENT: usize = 16;
/// The name of a file that is held in memory.
const IMAGE: &str = "image";

/// An HDF5 file as it is stored.
#[derive(Debug)]
pub struct Outline {
    /// Bytes of the whole file.
    pub size: u64,
    /// Every group and dataset once, by the first path that leads to it when links are followed in
    /// the order of their names; what soft and external links lead to is none of them.
    pub nodes: Vec<String>,
    /// Paths of datasets whose cells are numbers or bytes that mean the same anywhere, and where their
    /// headers are.
    pub plain: BTreeMap<String, u64>,
    /// Where the cells of those are, sorted; everything else is metadata.
    pub cells: Vec<Range<u64>>,
    /// The file on local disk, if it is there.
    pub local: Option<std::path::PathBuf>,
    store: StoreRef,
    key: String,
    etag: Option<String>,
}

/// All objects of a file, level by level. One that cannot be an array or a group is an error, unless
/// `others` may be left out.
async fn all_objects(file: &hdf5::File, root: u64, others: bool) -> Result<HashMap<u64, Object>> {
    let mut found = HashMap::new();
    let mut level = vec![(root, String::new())];
    let mut seen = HashSet::from([root]);
    while !level.is_empty() {
        let objects = file.objects(&level, u64::MAX).await?;
        let mut next = Vec::new();
        for ((address, path), object) in level.into_iter().zip(objects) {
            let object = match object {
                Ok(object) => object,
                Err(e) if others => {
                    tracing::debug!("{path} is neither a group nor an array: {e}");
                    continue;
                }
                Err(e) => return Err(e.context(&path)),
            };
            for (name, member) in hard_links(&object) {
                if seen.insert(member) {
                    next.push((member, join(&path, name)));
                }
            }
            found.insert(address, object);
        }
        level = next;
    }
    Ok(found)
}

/// The members of a group that are in the same file, by name.
fn hard_links(object: &Object) -> BTreeMap<&str, u64> {
    let members: &[_] = match object {
        Object::Group(_, members) => members,
        _ => &[],
    };
    let here = members.iter().filter_map(|member| match member.kind {
        MemberKind::Here(address) => Some((member.name.as_str(), address)),
        _ => None,
    });
    here.collect()
}

/// Calls `found` for every group and dataset once, by the first path that leads to it when links are
/// followed in the order of their names.
fn visit(
    objects: &HashMap<u64, Object>,
    (address, path): (u64, &str),
    seen: &mut HashSet<u64>,
    found: &mut impl FnMut(u64, &str, &Object),
) {
    let Some(object) = objects.get(&address).filter(|_| seen.insert(address)) else {
        return;
    };
    if !matches!(object, Object::Datatype) {
        found(address, path, object);
    }
    for (name, member) in hard_links(object) {
        visit(objects, (member, &join(path, name)), seen, found);
    }
}

/// An object of an HDF5 file that is held in memory.
#[derive(Debug)]
pub struct Noted {
    /// The first path that leads to it when links are followed in the order of their names.
    pub path: String,
    /// Where its header is.
    pub address: u64,
    /// What it is: a group or a dataset.
    pub object: Object,
}

/// Every group and dataset of an HDF5 file that is held in memory, once, groups before their members.
/// Datasets that no array can be (without a shape, or with unknown filters) are left out.
pub async fn objects_in(image: Bytes) -> Result<Vec<Noted>> {
    let store: StoreRef = Arc::new(Memory::new());
    store.put(IMAGE, vec![image], Put::Overwrite).await?;
    let file = hdf5::File::open(&store, IMAGE).await?;
    let Found::Object(root) = file.find("").await? else {
        return Err(Error::internal("the root of a file is elsewhere"));
    };
    let mut objects = all_objects(&file, root, true).await?;
    let mut places = Vec::new();
    visit(
        &objects,
        (root, ""),
        &mut HashSet::new(),
        &mut |address, path, _| {
            places.push((address, path.to_owned()));
        },
    );
    let noted = places.into_iter().filter_map(|(address, path)| {
        let object = objects.remove(&address)?;
        Some(Noted {
            path,
            address,
            object,
        })
    });
    Ok(noted.collect())
}

impl Session {
    /// The outline of the HDF5 file at a URL; `None` if there is none.
    pub async fn outline(&self, url: &str) -> Result<Option<Outline>> {
        let location = self.locate(url)?;
        let Some((root, key)) = location.folder() else {
            return Ok(None);
        };
        if !location.path.is_empty() {
            return Ok(None);
        }
        let named = |e: Error| e.context(location.bare_root());
        let open = self.store(&root).await?;
        let file = match hdf5::File::open(&open.store, &key).await {
            Ok(file) => file,
            Err(e) if e.is_not_found() => return Ok(None),
            Err(e) => return Err(named(e)),
        };
        let Found::Object(root_group) = file.find("").await.map_err(named)? else {
            return Err(Error::internal("the root of a file is elsewhere"));
        };
        let mut outline = Outline {
            size: file.size(),
            nodes: Vec::new(),
            plain: BTreeMap::new(),
            cells: Vec::new(),
            local: match open.lazy {
                true => Some(std::path::Path::new(root.trim_start_matches("file://")).join(&key)),
                false => None,
            },
            store: open.store,
            key,
            etag: file.etag().map(str::to_owned),
        };
        let objects = all_objects(&file, root_group, false).await.map_err(named)?;
        visit(
            &objects,
            (root_group, ""),
            &mut HashSet::new(),
            &mut |address, path, object| {
                outline.note(address, path, object);
            },
        );
        outline.cells.sort_by_key(|range| range.start);
        Ok(Some(outline))
    }

    /// Reads an object that is kept beside the hierarchy at a URL; `None` if there is none.
    pub async fn read_beside(&self, url: &str, name: &str) -> Result<Option<Beside>> {
        let open = self.store(&self.locate(url)?.root).await?;
        match open.store.get(&join(FOLDER, name), Get::default()).await {
            Ok(got) => Ok(Some(Beside {
                etag: got.meta.etag.clone(),
                bytes: got.body.into_bytes()?,
            })),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The state of an object that is kept beside the hierarchy at a URL; `None` if there is none, or the
    /// store tells no states.
    pub async fn etag_beside(&self, url: &str, name: &str) -> Result<Option<String>> {
        let open = self.store(&self.locate(url)?.root).await?;
        match open.store.head(&join(FOLDER, name)).await {
            Ok(meta) => Ok(meta.etag),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Keeps an object beside the hierarchy at a URL; returns its ETag.
    pub async fn write_beside(
        &self,
        url: &str,
        name: &str,
        value: Bytes,
        condition: Put,
    ) -> Result<Option<String>> {
        let open = self.store(&self.locate(url)?.root).await?;
        let meta = open
            .store
            .put(&join(FOLDER, name), vec![value], condition)
            .await?;
        Ok(meta.etag)
    }

    /// Removes an object that is kept beside the hierarchy at a URL, if it is there.
    pub async fn remove_beside(&self, url: &str, name: &str) -> Result<()> {
        let open = self.store(&self.locate(url)?.root).await?;
        open.store.delete(&join(FOLDER, name)).await
    }
}

/// An object that is kept beside a hierarchy.
#[derive(Debug, Clone)]
pub struct Beside {
    /// What it holds.
    pub bytes: Bytes,
    /// The state that it was read in.
    pub etag: Option<String>,
}

impl Outline {
    /// Takes down an object.
    fn note(&mut self, address: u64, path: &str, object: &Object) {
        self.nodes.push(path.to_owned());
        if let Object::Dataset(array) = object
            && array.is_plain()
        {
            self.plain.insert(path.to_owned(), address);
            self.cells.extend(array.ranges());
        }
    }

    /// The parts of the file that are not cells, in pieces of at most so many bytes.
    pub fn metadata(&self, most: u64) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        let mut push = |mut start: u64, end: u64| {
            while start < end {
                let stop = end.min(start.saturating_add(most));
                parts.push(start..stop);
                start = stop;
            }
        };
        let mut at = 0;
        for range in &self.cells {
            push(at, range.start.min(self.size));
            at = at.max(range.end);
        }
        push(at, self.size);
        parts
    }

    /// Writes all but the cells of arrays to a file on local disk, which has holes in their place.
    pub async fn write_metadata(&self, file: &mut std::fs::File) -> Result<()> {
        let failed =
            |e: std::io::Error| Error::unavailable(format!("a temporary file failed: {e}"));
        file.set_len(self.size).map_err(failed)?;
        let parts = self.metadata(PIECE).into_iter().map(|range| async move {
            let start = range.start;
            Ok::<_, Error>((start, self.read(range).await?))
        });
        let mut parts = stream::iter(parts).buffer_unordered(CONCURRENT);
        while let Some((start, bytes)) = parts.try_next().await? {
            file.seek(SeekFrom::Start(start)).map_err(failed)?;
            file.write_all(&bytes).map_err(failed)?;
        }
        drop(parts);
        file.flush().map_err(failed)
    }

    /// Reads a part of the file in the state that was looked at.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let options = Get {
            range: Some(GetRange::Bounded(range)),
            if_match: self.etag.clone(),
            if_none_match: None,
        };
        self.store.get(&self.key, options).await?.body.into_bytes()
    }
}
