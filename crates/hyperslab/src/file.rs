//! HDF5 files as hierarchies: opening them, and the nodes in them.
//!
//! Between the session and the format. A file is one object of the store of its folder; its datasets
//! are arrays whose pieces are ranges of it.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::{BoxFuture, join};
use hyperslab_format::hdf5::{
    self, Elsewhere, Entry, FileArray, FileResolver, Found, HeapType, Member, MemberKind, Object,
};
use hyperslab_format::{self as format, ArrayMeta, Loaded};

use crate::array::{Inner, State};
use crate::cache::{Known, is_strong, was_file};
use crate::external;
use crate::location::Location;
use crate::mosaic::{self, Mosaic};
use crate::session::OpenStore;
use crate::{Array, Error, Node, Result, Session};

/// Bytes of a local file that a core takes at a time, in pieces of at most so many.
const LOCAL: u64 = 4 << 20;
const MOST_LOCAL: u64 = 64;
/// Pieces of a remote file that are planned together, at most.
const REMOTE: u64 = 4096;
/// They have this share of the memory that reads may use.
const SHARE: u64 = 4;

/// Of datasets that are only looked at, the places of at most so many chunks are read.
const FEW: u64 = 1 << 14;
/// Files that links lead through, one to the next.
const MOST_FILES: usize = 16;

/// A file that is open.
#[derive(Debug)]
pub(crate) struct OpenFile {
    file: hdf5::File,
    /// Where what is known of it is kept.
    known: Option<Known>,
}

impl OpenFile {
    /// Opens a file, with what was known of it.
    async fn open(session: &Session, open: &OpenStore, root: &str, key: &str) -> Result<Arc<Self>> {
        let file = hdf5::File::open(&open.store, key).await?;
        let folder = session.options().hdf5_index_folder.as_ref();
        let known = match (folder, file.etag()) {
            (Some(folder), Some(etag)) if open.remote && is_strong(etag) => {
                let place = place(root, &session.options().storage)?;
                Some(Known::new(folder, &place, key, file.size(), etag))
            }
            _ => None,
        };
        if let Some(content) = known.as_ref().and_then(Known::load) {
            file.remember(&content);
        }
        Ok(Arc::new(OpenFile { file, known }))
    }
}

/// The server and folder behind a URL: the same URL may mean another server tomorrow.
fn place(root: &str, storage: &hyperslab_store::Options) -> Result<String> {
    let endpoint = hyperslab_store::endpoint(root, storage)?;
    let bare = root.split('?').next().unwrap_or(root);
    Ok(format!("{endpoint} {bare}"))
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if let Some(known) = &self.known
            && let Some(content) = self.file.knowledge()
        {
            known.save(&content);
        }
    }
}

/// A file as the source of an array's cells.
#[derive(Debug)]
pub(crate) struct FileSource {
    /// Bytes of the whole file.
    size: u64,
    /// The state of the file that everything is read in.
    etag: Option<String>,
    /// Where cells refer to a heap: the file that it is in, and the type of values there.
    heap: Option<(Arc<OpenFile>, HeapType)>,
}

impl FileSource {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn etag(&self) -> Option<String> {
        self.etag.clone()
    }

    /// True if cells are places in the heap of the file.
    pub(crate) fn has_heap(&self) -> bool {
        self.heap.is_some()
    }

    /// The values that cells lead to: what they refer to in the heap, or what they are.
    pub(crate) async fn values(&self, cells: Vec<Bytes>) -> Result<Vec<Bytes>> {
        match &self.heap {
            Some((open, of)) => open.file.values(&cells, of).await,
            None => Ok(cells),
        }
    }
}

/// A place in an open file.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) session: Session,
    pub(crate) open: OpenStore,
    pub(crate) file: Arc<OpenFile>,
    pub(crate) location: Location,
    /// How many links and virtual datasets lead here.
    pub(crate) depth: usize,
}

impl Home {
    /// The same for what is put together from several files.
    pub(crate) fn of_mosaic(&self) -> mosaic::Home {
        mosaic::Home {
            session: self.session.clone(),
            file: Some((self.open.clone(), self.file.clone())),
            location: self.location.clone(),
            depth: self.depth,
        }
    }
}

/// A group of a file.
#[derive(Debug, Clone)]
pub(crate) struct FileGroup {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) members: Arc<Vec<Member>>,
    /// Where its header is: two paths with the same are the same group.
    pub(crate) address: u64,
}

impl Session {
    /// What is at a location: a node of a Zarr hierarchy, or of an HDF5 file. Both are looked for at
    /// the same time where the name leaves it open.
    pub(crate) async fn load(&self, location: &Location) -> Result<Node> {
        if location.may_be_references() {
            return match self.load_references(location).await {
                Err(e) if e.is_not_found() => self.load_zarr(location).await.map_err(|_| e),
                found => found,
            };
        }
        let Some(folder) = location.folder() else {
            return self.load_zarr(location).await;
        };
        if !location.may_be_file() {
            let zarr = self.load_zarr(location).await;
            return match zarr {
                Err(e) if e.is_not_found() => match self.load_file(location, &folder).await {
                    Ok(node) => Ok(node),
                    // Neither: what was asked for first is what people expect.
                    Err(_) => Err(e),
                },
                found => found,
            };
        }
        if self.was_file(&folder) {
            match self.load_file(location, &folder).await {
                Err(e) if e.is_not_found() => {}
                found => return found,
            }
        }
        match join(self.load_zarr(location), self.load_file(location, &folder)).await {
            (Ok(node), _) => Ok(node),
            (Err(_), Ok(node)) => Ok(node),
            (Err(e), Err(file)) if e.is_not_found() => Err(file),
            (Err(e), Err(_)) => Err(e),
        }
    }

    /// True if there was a file of this name in a folder when it was last looked at.
    fn was_file(&self, (root, name): &(String, String)) -> bool {
        let Some(folder) = &self.options().hdf5_index_folder else {
            return false;
        };
        place(root, &self.options().storage).is_ok_and(|place| was_file(folder, &place, name))
    }

    pub(crate) async fn load_zarr(&self, location: &Location) -> Result<Node> {
        let open = self.store(&location.root).await?;
        // Its own metadata object, never a consolidated copy: one request too, and always right.
        let loaded: Loaded = format::load(&*open.store, &location.path).await?;
        Node::from_loaded(self, open, location, loaded, false)
    }

    async fn load_file(&self, location: &Location, folder: &(String, String)) -> Result<Node> {
        let (root, name) = folder;
        let open = self.store(root).await?;
        let file = OpenFile::open(self, &open, root, name)
            .await
            .map_err(|e| e.context(location.bare_root()))?;
        self.node_of(open, &file, location).await
    }

    /// The node at a location of an open file.
    pub(crate) async fn node_of(
        &self,
        open: OpenStore,
        file: &Arc<OpenFile>,
        location: &Location,
    ) -> Result<Node> {
        let (file, location) = (file.clone(), location.clone());
        self.node_at(open, file, location, 0).await
    }

    /// The same for a file that so many links and virtual datasets led to. In a box, since they may
    /// lead to more of them.
    pub(crate) fn node_at(
        &self,
        open: OpenStore,
        file: Arc<OpenFile>,
        location: Location,
        depth: usize,
    ) -> BoxFuture<'static, Result<Node>> {
        let session = self.clone();
        Box::pin(async move {
            let home = Home {
                session,
                open,
                file,
                location,
                depth,
            };
            find_node(home).await
        })
    }

    /// Opens a file that another one names: beside it, or where an absolute path says.
    pub(crate) async fn open_beside(
        &self,
        location: &Location,
        name: &str,
    ) -> Result<Option<(OpenStore, Arc<OpenFile>, Location)>> {
        for beside in location.beside(name) {
            let Some((root, key)) = beside.folder() else {
                continue;
            };
            let open = self.store(&root).await?;
            match OpenFile::open(self, &open, &root, &key).await {
                Ok(file) => return Ok(Some((open, file, beside))),
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e.context(beside.bare_root())),
            }
        }
        Ok(None)
    }

    /// A virtual dataset of the hierarchy at a URL, which a program describes: what it is, and what it is
    /// put together from. Sources in `.` are in the same hierarchy.
    pub async fn virtual_array(
        &self,
        url: &str,
        array: &FileArray,
        entries: Vec<Entry>,
    ) -> Result<Array> {
        let location = Location::whole(url)?;
        let home = mosaic::Home {
            session: self.clone(),
            file: None,
            location: location.clone(),
            depth: 0,
        };
        let inner = array.inner_dims();
        let mut meta = array.meta.clone();
        let (mosaic, shape) = Mosaic::open(home, entries, &meta.shape, inner).await?;
        meta.shape = shape;
        let resolver = FileResolver::nowhere(&meta)?;
        let mut state = State::resolved(meta, "", Box::new(resolver), None)?;
        state.mosaic = Some(mosaic);
        let open = self.store(&location.root).await?;
        Ok(Array::with_state(self, open, &location, state, false))
    }

    /// The nodes directly below a group of a file, by name. Links that lead nowhere are left out, as
    /// are data types; an object that cannot be read is left out with a warning.
    pub(crate) async fn file_children(
        &self,
        open: &OpenStore,
        group: &FileGroup,
        location: &Location,
    ) -> Result<Vec<(String, Node)>> {
        let here: Vec<(&Member, u64)> = group
            .members
            .iter()
            .filter_map(|member| match &member.kind {
                MemberKind::Here(address) => Some((member, *address)),
                _ => None,
            })
            .collect();
        let wanted: Vec<(u64, String)> = here
            .iter()
            .map(|(member, address)| (*address, location.below(&member.name).path))
            .collect();
        let file = &group.file;
        let objects = file.file.objects(&wanted, FEW).await?;
        let mut nodes = Vec::new();
        for ((member, address), object) in here.into_iter().zip(objects) {
            let below = location.below(&member.name);
            let object = match object {
                Ok(Object::Datatype) => continue,
                Ok(object) => object,
                // The others are none the worse for it.
                Err(e) => {
                    tracing::warn!("{} cannot be read: {e}", below.url());
                    continue;
                }
            };
            let home = Home {
                session: self.clone(),
                open: open.clone(),
                file: file.clone(),
                location: below,
                depth: 0,
            };
            let url = home.location.url();
            match file_node(home, (address, object)).await {
                Ok(node) => nodes.push((member.name.clone(), node)),
                Err(e) => tracing::warn!("{url} cannot be read: {e}"),
            }
        }
        for member in group.members.iter() {
            if let MemberKind::Soft(_) | MemberKind::External { .. } = &member.kind {
                let below = location.below(&member.name);
                match self.node_of(open.clone(), file, &below).await {
                    Ok(node) => nodes.push((member.name.clone(), node)),
                    Err(e) if e.is_not_found() => {}
                    Err(e) => tracing::warn!("{} cannot be read: {e}", below.url()),
                }
            }
        }
        nodes.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(nodes)
    }
}

/// The node at a location of a file.
async fn find_node(home: Home) -> Result<Node> {
    let location = &home.location;
    let named = |e: Error| e.context(location.bare_root());
    match home.file.file.find(&location.path).await.map_err(named)? {
        Found::Object(address) => {
            let object = home.file.file.object(address, &location.path).await;
            let object = (address, object.map_err(named)?);
            file_node(home, object).await
        }
        Found::Elsewhere { file, path } => {
            if home.depth > MOST_FILES {
                return Err(Error::data(format!(
                    "{}: links lead from file to file without an end",
                    location.url()
                )));
            }
            let session = &home.session;
            let Some((open, opened, below)) = session.open_beside(location, &file).await? else {
                return Err(Error::not_found(format!(
                    "{} is a link to {path:?} of {file:?}, a file that is not there",
                    location.url()
                )));
            };
            let location = Location {
                path: path.trim_matches('/').to_owned(),
                ..below
            };
            session
                .node_at(open, opened, location, home.depth + 1)
                .await
        }
    }
}

/// An object of a file as a node.
async fn file_node(home: Home, (address, object): (u64, Object)) -> Result<Node> {
    let Home {
        session,
        open,
        file,
        location,
        ..
    } = &home;
    match object {
        Object::Group(meta, members) => {
            let group = FileGroup {
                file: file.clone(),
                members: Arc::new(members),
                address,
            };
            Ok(Node::of_file(session, open.clone(), location, meta, group))
        }
        Object::Dataset(array) => {
            let state = state(&home, *array).await;
            let state = state.map_err(|e| e.context(location.url()))?;
            let (open, from_copy) = (open.clone(), false);
            Ok(Node::Array(Array::with_state(
                session, open, location, state, from_copy,
            )))
        }
        Object::Datatype => Err(Error::invalid(format!(
            "{} is a data type, neither a group nor a dataset",
            location.url()
        ))),
    }
}

/// The state of an array that is a dataset.
async fn state(home: &Home, array: FileArray) -> Result<State> {
    let (file, path) = (&home.file, &home.location.path);
    let source = FileSource {
        size: file.file.size(),
        etag: file.file.etag().map(str::to_owned),
        heap: array.heap().map(|of| (file.clone(), of)),
    };
    let (inner, elsewhere) = (array.inner_dims(), array.elsewhere());
    let pending = array.is_pending();
    let FileArray {
        mut meta, resolver, ..
    } = array;
    let mosaic = match elsewhere {
        None => None,
        Some(Elsewhere::Virtual(entries)) => {
            let opened = Mosaic::open(home.of_mosaic(), entries, &meta.shape, inner);
            let (mosaic, shape) = opened.await?;
            meta.shape = shape;
            Some(mosaic)
        }
        Some(Elsewhere::External(segments)) => {
            Some(external::mosaic(home, &meta, &segments).await?)
        }
    };
    let resolver = match resolver {
        Some(resolver) => resolver.together(together(&home.session, &home.open, &meta)),
        None => FileResolver::nowhere(&meta)?,
    };
    let mut state = State::resolved(meta, path, Box::new(resolver), Some(source))?;
    state.mosaic = mosaic;
    state.pending = pending;
    Ok(state)
}

/// How many pieces of a file are handed on together.
pub(crate) fn together(session: &Session, open: &OpenStore, meta: &ArrayMeta) -> usize {
    let cell = meta.dtype.cell_bytes().unwrap_or(1);
    let unit = meta.chunk_shape.num_cells().saturating_mul(cell);
    let pieces = match open.lazy {
        true => (LOCAL / unit.max(1)).clamp(1, MOST_LOCAL),
        false => (session.options().memory / SHARE / unit.max(1)).clamp(1, REMOTE),
    };
    pieces as usize
}

impl Array {
    /// The state of the array with all that a read needs: of a dataset that was only looked at, the
    /// places of its chunks are still to be read.
    pub(crate) async fn ready(&self) -> Result<Arc<State>> {
        let state = self.state();
        if !state.pending {
            return Ok(state);
        }
        let Inner {
            session, location, ..
        } = self.inner();
        let Node::Array(whole) = Box::pin(session.load(location)).await? else {
            return Err(Error::conflict(format!(
                "{} is no dataset any more",
                self.url()
            )));
        };
        let state = whole.state();
        self.replace_state(state.clone());
        Ok(state)
    }
}

impl FileSource {
    /// An object without a structure, all of whose bytes are read in this state.
    pub(crate) fn raw(size: u64, etag: Option<String>) -> Self {
        FileSource {
            size,
            etag,
            heap: None,
        }
    }
}
