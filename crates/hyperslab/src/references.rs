//! Reference files as hierarchies: Zarr whose chunks are ranges of other objects, on any store.
//!
//! Beside [`crate::file`]. Metadata and small chunks are in the reference file itself; all others are
//! read from the objects it names, through one store whose keys are their URLs.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format::hdf5::{self, Found, MemberKind, Object};
use hyperslab_format::references::{Reference, ReferenceResolver, ReferenceSet, References};
use hyperslab_format::{self as format, ArrayMeta};
use hyperslab_store::{Body, Entry, Get, GetRange, Got, Listing, Meta, Put, Store, StoreRef};

use crate::array::State;
use crate::file::{FileSource, together};
use crate::location::Location;
use crate::session::OpenStore;
use crate::{Error, Node, Result, Session};

mod table;

use table::Tables;

/// Sizes of whole objects that are asked for at a time.
const CONCURRENT: usize = 64;

/// A reference file that is open.
#[derive(Debug)]
pub(crate) struct OpenReferences {
    references: Arc<References>,
    session: Session,
    url: String,
    /// Where its objects are, by the URLs that it gives them.
    places: HashMap<String, (String, String)>,
    /// Of tables only those of this array were read, or none.
    partly: Option<Option<String>>,
}

impl Session {
    /// The node at a location of a reference file.
    pub(crate) async fn load_references(&self, location: &Location) -> Result<Node> {
        let named = |e: Error| e.context(location.bare_root());
        let (root, name) = location
            .folder()
            .ok_or_else(|| Error::invalid(format!("{} is no file", location.bare_root())))?;
        let mut loaded = None;
        let mut references = match location.is_table() {
            true => {
                let folder = self.store(&location.root).await?;
                let tables = Tables::open(&folder.store).await.map_err(named)?;
                let mut references = References::default();
                for (key, value) in &tables.metadata {
                    let text = Bytes::from(value.to_string());
                    references.insert(key.clone(), Reference::Inline(text));
                }
                let path = &location.path;
                if tables.load(path, &mut references).await.map_err(named)? {
                    loaded = Some(path.clone());
                }
                references
            }
            false => {
                let open = self.store(&root).await?;
                let got = open.store.get(&name, Get::default()).await?;
                References::from_json(&got.body.into_bytes()?).map_err(named)?
            }
        };
        let mut places = HashMap::new();
        for url in references.objects() {
            places.insert(url.clone(), place(location, url)?);
        }
        self.measure(&mut references, &places).await?;
        let is_local = |(root, _): &(String, String)| !root.contains("://");
        let lazy = !places.is_empty() && places.values().all(is_local);
        let first = places
            .values()
            .next()
            .map_or(root, |(root, _)| root.clone());
        let base = self.store(&first).await?;
        let opened = Arc::new(OpenReferences {
            references: Arc::new(references),
            session: self.clone(),
            url: location.bare_root().to_owned(),
            places,
            partly: location.is_table().then_some(loaded),
        });
        let open = OpenStore {
            store: opened.clone() as StoreRef,
            lazy,
            remote: false,
            read_only: true,
            disk: None,
            references: Some(opened),
            ..base
        };
        let loaded = format::load(&*open.store, &location.path)
            .await
            .map_err(named)?;
        Node::from_loaded(self, open, location, loaded, false)
    }

    /// Turns references to whole objects into ranges: their sizes are asked for.
    async fn measure(
        &self,
        references: &mut References,
        places: &HashMap<String, (String, String)>,
    ) -> Result<()> {
        let whole: Vec<(String, usize)> = references
            .keys()
            .filter_map(|key| match references.get(key) {
                Some(Reference::Object(number)) => Some((key.to_owned(), *number)),
                _ => None,
            })
            .collect();
        let sizes = whole.into_iter().map(|(key, number)| {
            let place = references
                .object(number)
                .and_then(|url| places.get(url))
                .cloned();
            async move {
                let (root, name) =
                    place.ok_or_else(|| Error::internal("an object of references has no place"))?;
                let meta = self.store(&root).await?.store.head(&name).await?;
                Ok::<_, Error>((key, number, meta.size))
            }
        });
        let sizes: Vec<_> = stream::iter(sizes)
            .buffer_unordered(CONCURRENT)
            .try_collect()
            .await?;
        for (key, number, size) in sizes {
            references.insert(key, Reference::Range(number, 0..size));
        }
        Ok(())
    }
}

/// The store and the name there of an object that a reference file names.
fn place(location: &Location, url: &str) -> Result<(String, String)> {
    // fsspec writes local files with a scheme of its own.
    let url = url.strip_prefix("local://").unwrap_or(url);
    let found = location.beside(url).into_iter().next();
    found
        .and_then(|found| found.folder())
        .ok_or_else(|| Error::data(format!("{url:?} names no object")))
}

impl OpenReferences {
    /// The state of an array that references describe.
    pub(crate) fn state(&self, open: &OpenStore, meta: ArrayMeta, path: &str) -> Result<State> {
        let together = together(&self.session, open, &meta);
        let meta = Arc::new(meta);
        let references = self.references.clone();
        let resolver = ReferenceResolver::new(meta.clone(), path, references, together)?;
        // As long as anything that is read of it: plans never take all of an object.
        let source = FileSource::raw(u64::MAX / 2, None);
        let meta = ArrayMeta::clone(&meta);
        let mut state = State::resolved(meta, path, Box::new(resolver), Some(source))?;
        let missing = |loaded: &Option<String>| loaded.as_deref() != Some(path);
        state.pending = self.partly.as_ref().is_some_and(missing);
        Ok(state)
    }

    fn inline(&self, key: &str) -> Option<&Bytes> {
        match self.references.get(key) {
            Some(Reference::Inline(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The store and key of an object.
    async fn place(&self, key: &str) -> Result<(StoreRef, String)> {
        let (root, name) = self
            .places
            .get(key)
            .ok_or_else(|| Error::not_found(format!("{}: there is no {key:?}", self.url)))?;
        Ok((self.session.store(root).await?.store, name.clone()))
    }

    fn read_only(&self) -> Error {
        Error::invalid(format!(
            "{} is a reference file, which is read only",
            self.url
        ))
        .with_hint("copy it with `hyperslab cp`; the copy is Zarr v3")
    }
}

fn meta_of(bytes: &Bytes) -> Meta {
    Meta {
        size: bytes.len() as u64,
        etag: None,
        modified_ms: None,
    }
}

/// The bytes that are asked for.
fn range_of(range: Option<&GetRange>, size: u64, key: &str) -> Result<Range<u64>> {
    let range = match range {
        None => 0..size,
        Some(GetRange::Bounded(range)) => range.clone(),
        Some(GetRange::Prefix(n)) => 0..size.min(*n),
        Some(GetRange::Suffix(n)) => size.saturating_sub(*n)..size,
    };
    match range.start <= range.end && range.end <= size {
        true => Ok(range),
        false => Err(Error::data(format!(
            "{key} has {size} bytes, but {range:?} were expected"
        ))),
    }
}

#[async_trait]
impl Store for OpenReferences {
    fn url(&self) -> &str {
        &self.url
    }

    async fn get(&self, key: &str, options: Get) -> Result<Got> {
        let Some(bytes) = self.inline(key) else {
            let (store, name) = self.place(key).await?;
            return store.get(&name, options).await;
        };
        let range = range_of(options.range.as_ref(), bytes.len() as u64, key)?;
        let body = bytes.slice(range.start as usize..range.end as usize);
        Ok(Got {
            meta: meta_of(bytes),
            range,
            body: Body::from(body),
            not_modified: false,
        })
    }

    async fn put(&self, _: &str, _: Vec<Bytes>, _: Put) -> Result<Meta> {
        Err(self.read_only())
    }

    async fn delete(&self, _: &str) -> Result<()> {
        Err(self.read_only())
    }

    async fn head(&self, key: &str) -> Result<Meta> {
        match self.inline(key) {
            Some(bytes) => Ok(meta_of(bytes)),
            None => {
                let (store, name) = self.place(key).await?;
                store.head(&name).await
            }
        }
    }

    async fn list(&self, prefix: &str, _: Option<String>) -> Result<(Vec<Entry>, Option<String>)> {
        let below = |key: &&str| prefix.is_empty() || is_below(key, prefix).is_some();
        let entry = |key: &str| Entry {
            key: key.to_owned(),
            meta: self
                .inline(key)
                .map_or_else(|| self.range_meta(key), meta_of),
        };
        let mut entries: Vec<Entry> = self.references.keys().filter(below).map(entry).collect();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Ok((entries, None))
    }

    async fn list_dir(&self, prefix: &str) -> Result<Listing> {
        let mut listing = Listing::default();
        for key in self.references.keys() {
            let rest = match prefix {
                "" => Some(key),
                _ => is_below(key, prefix),
            };
            match rest.map(|rest| rest.split_once('/')) {
                None => {}
                Some(Some((dir, _))) => listing.dirs.push(dir.to_owned()),
                Some(None) => listing.objects.push(Entry {
                    key: key.to_owned(),
                    meta: self
                        .inline(key)
                        .map_or_else(|| self.range_meta(key), meta_of),
                }),
            }
        }
        listing.dirs.sort();
        listing.dirs.dedup();
        listing.objects.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listing)
    }
}

impl OpenReferences {
    /// What is known of a chunk that is a range.
    fn range_meta(&self, key: &str) -> Meta {
        let size = match self.references.get(key) {
            Some(Reference::Range(_, range)) => range.end - range.start,
            _ => 0,
        };
        Meta {
            size,
            etag: None,
            modified_ms: None,
        }
    }
}

/// What follows a directory in a key.
fn is_below<'a>(key: &'a str, dir: &str) -> Option<&'a str> {
    key.strip_prefix(dir)?.strip_prefix('/')
}

impl Session {
    /// Adds the groups and datasets of an HDF5 file to a reference file, below `path`.
    pub async fn add_references(
        &self,
        url: &str,
        path: &str,
        set: &mut ReferenceSet,
    ) -> Result<()> {
        let location = Location::parse(url)?;
        let (root, name) = location
            .folder()
            .ok_or_else(|| Error::invalid(format!("{url} is no file")))?;
        let named = |e: Error| e.context(location.bare_root());
        let open = self.store(&root).await?;
        let file = hdf5::File::open(&open.store, &name).await.map_err(named)?;
        let full = full_url(location.bare_root())?;
        let Found::Object(root) = file.find("").await.map_err(named)? else {
            return Err(Error::internal("the root of a file is elsewhere"));
        };
        let mut level = vec![(root, path.to_owned())];
        let mut seen = HashSet::from([root]);
        while !level.is_empty() {
            let objects = file.objects(&level, u64::MAX).await.map_err(named)?;
            let mut next = Vec::new();
            for ((_, path), object) in level.into_iter().zip(objects) {
                match object.map_err(named)? {
                    Object::Group(meta, members) => {
                        set.group(&path, &meta);
                        for member in members {
                            if let MemberKind::Here(address) = member.kind
                                && seen.insert(address)
                            {
                                next.push((address, format::join(&path, &member.name)));
                            }
                        }
                    }
                    Object::Dataset(array) => set.dataset(&path, &array, &full),
                    Object::Datatype => {}
                }
            }
            level = next;
        }
        Ok(())
    }
}

/// A URL that means the same from anywhere.
fn full_url(url: &str) -> Result<String> {
    if url.contains("://") {
        return Ok(url.to_owned());
    }
    let path =
        std::path::absolute(url).map_err(|e| Error::invalid(format!("{url} is no path: {e}")))?;
    Ok(path.to_string_lossy().into_owned())
}
