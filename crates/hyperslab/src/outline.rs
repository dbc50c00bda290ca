//! What a copy of an HDF5 file needs to know beyond its arrays: where its cells are, and which of them
//! a Zarr array holds as well as the file does.
//!
//! Beside [`crate::file`], for the crate that writes HDF5. Also the objects that are kept beside a
//! hierarchy, under `.hyperslab/`, which Zarr knows nothing of.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use bytes::Bytes;
use hyperslab_format::hdf5::{self, Found, MemberKind, Object};
use hyperslab_format::join;
use hyperslab_store::{Get, GetRange, Put, StoreRef};

use crate::location::Location;
use crate::{Error, Result, Session};

/// The folder of a hierarchy that Zarr does not look into.
const FOLDER: &str = ".hyperslab";

/// An HDF5 file as it is stored.
#[derive(Debug)]
pub struct Outline {
    /// Bytes of the whole file.
    pub size: u64,
    /// Every group and dataset once, by the first path that leads to it when links are followed in
    /// the order of their names; what soft and external links lead to is none of them.
    pub nodes: Vec<String>,
    /// Paths of datasets whose cells are numbers or bytes that mean the same anywhere.
    pub plain: HashSet<String>,
    /// Where the cells of those are, sorted; everything else is metadata.
    pub cells: Vec<Range<u64>>,
    /// The file on local disk, if it is there.
    pub local: Option<std::path::PathBuf>,
    store: StoreRef,
    key: String,
    etag: Option<String>,
}

/// What an outline has to know of an object.
enum Kind {
    /// Its members, by name.
    Group(BTreeMap<String, u64>),
    /// Whether its cells mean the same anywhere, and where they are.
    Dataset(bool, Vec<Range<u64>>),
    Other,
}

/// All objects of a file, level by level.
async fn all_objects(file: &hdf5::File, root: u64) -> Result<HashMap<u64, Kind>> {
    let mut found = HashMap::new();
    let mut level = vec![(root, String::new())];
    let mut seen = HashSet::from([root]);
    while !level.is_empty() {
        let objects = file.objects(&level, u64::MAX).await?;
        let mut next = Vec::new();
        for ((address, path), object) in level.into_iter().zip(objects) {
            let kind = match object.map_err(|e| e.context(&path))? {
                Object::Group(_, members) => {
                    let mut hard = BTreeMap::new();
                    for member in members {
                        if let MemberKind::Here(address) = member.kind {
                            if seen.insert(address) {
                                next.push((address, join(&path, &member.name)));
                            }
                            hard.insert(member.name, address);
                        }
                    }
                    Kind::Group(hard)
                }
                Object::Dataset(array) => Kind::Dataset(array.is_plain(), array.ranges()),
                Object::Datatype => Kind::Other,
            };
            found.insert(address, kind);
        }
        level = next;
    }
    Ok(found)
}

impl Session {
    /// The outline of the HDF5 file at a URL; `None` if there is none.
    pub async fn outline(&self, url: &str) -> Result<Option<Outline>> {
        let location = Location::parse(url)?;
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
            plain: HashSet::new(),
            cells: Vec::new(),
            local: match open.lazy {
                true => Some(std::path::Path::new(root.trim_start_matches("file://")).join(&key)),
                false => None,
            },
            store: open.store,
            key,
            etag: file.etag().map(str::to_owned),
        };
        let objects = all_objects(&file, root_group).await.map_err(named)?;
        outline.visit(&objects, root_group, "", &mut HashSet::new());
        outline.cells.sort_by_key(|range| range.start);
        Ok(Some(outline))
    }

    /// Reads an object that is kept beside the hierarchy at a URL; `None` if there is none.
    pub async fn read_beside(&self, url: &str, name: &str) -> Result<Option<Bytes>> {
        let open = self.store(&Location::parse(url)?.root).await?;
        match open.store.get(&join(FOLDER, name), Get::default()).await {
            Ok(got) => Ok(Some(got.body.into_bytes()?)),
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
    ) -> Result<Option<String>> {
        let open = self.store(&Location::parse(url)?.root).await?;
        let key = join(FOLDER, name);
        let meta = open.store.put(&key, vec![value], Put::Overwrite).await?;
        Ok(meta.etag)
    }
}

impl Outline {
    /// Takes down an object and what is below it.
    fn visit(
        &mut self,
        objects: &HashMap<u64, Kind>,
        address: u64,
        path: &str,
        seen: &mut HashSet<u64>,
    ) {
        if !seen.insert(address) {
            return;
        }
        match objects.get(&address) {
            Some(Kind::Group(members)) => {
                self.nodes.push(path.to_owned());
                for (name, address) in members {
                    self.visit(objects, *address, &join(path, name), seen);
                }
            }
            Some(Kind::Dataset(plain, ranges)) => {
                self.nodes.push(path.to_owned());
                if *plain {
                    self.plain.insert(path.to_owned());
                    self.cells.extend(ranges.iter().cloned());
                }
            }
            Some(Kind::Other) | None => {}
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
