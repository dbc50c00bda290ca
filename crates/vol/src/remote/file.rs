//! A file that is in a store: a hierarchy that the native connector holds in memory, and arrays.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab::format::hdf5::Object;
use hyperslab::{Error, Noted, Result, Session, Shape, SkeletonState, block_on, objects_in};
use serde_json::Value;

use super::Dataset;
use super::dataset::carry;
use super::open::flush_all;
use crate::abi::{Hid, Ptr, kind};
use crate::config::Config;
use crate::native::{Below, Native};

/// A file in a store.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    /// Where it is.
    pub(crate) url: String,
    /// What the native connector calls it.
    pub(crate) name: String,
    /// What the program calls it, if that is something else.
    shown: Option<String>,
    session: Session,
    writable: bool,
    /// The versions of the format that the program asked for.
    pub(crate) bounds: (c_int, c_int),
    config: Arc<Config>,
    place: FilePlace,
    state: Mutex<State>,
    /// How many objects of it the program has open, itself included.
    objects: AtomicUsize,
    /// What the native connector knows it by, once for each time that it is open.
    handles: Mutex<Vec<usize>>,
}

/// Where arrays are that wait for others to make room.
const MOVING: &str = ".hyperslab/moving";

/// What a file is.
#[derive(Debug)]
pub(crate) enum FilePlace {
    /// A hierarchy of arrays, with a skeleton.
    Hierarchy,
    /// An ordinary HDF5 file in a store; the native connector reads a copy without its cells.
    Object(#[allow(dead_code)] tempfile::NamedTempFile), // removed when it is dropped
    /// An ordinary HDF5 file on local disk.
    Local,
}

/// What is known of a file.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Datasets that were opened, by the address of their headers; `None` for those whose cells are in
    /// the hierarchy.
    datasets: HashMap<u64, Option<Arc<Dataset>>>,
    /// Arrays that hold cells of datasets, by the addresses of those.
    arrays: HashMap<u64, String>,
    /// Metadata of nodes as it was written.
    nodes: BTreeMap<String, Value>,
    skeleton: SkeletonState,
    /// Which datasets the engine can read has not been looked at yet.
    unseen: bool,
    /// Something was changed since it was written.
    touched: bool,
    /// There may be objects where new arrays go.
    may_have_rests: bool,
    /// It could not be written when it was to be closed.
    given_up: bool,
}

/// Changes of any file, counted.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// How many changes there were of any file so far.
pub(super) fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

impl State {
    /// A file that is new.
    pub(crate) fn fresh() -> Self {
        State {
            touched: true,
            ..State::default()
        }
    }

    /// A file on local disk, of which nothing is known yet.
    pub(crate) fn unseen() -> Self {
        State {
            unseen: true,
            ..State::default()
        }
    }

    /// A file whose hierarchy is kept in a store.
    pub(crate) fn kept(
        arrays: &BTreeMap<String, u64>,
        skeleton: SkeletonState,
        nodes: BTreeMap<String, Value>,
    ) -> Self {
        State {
            arrays: by_address(arrays),
            skeleton,
            nodes,
            may_have_rests: true,
            ..State::default()
        }
    }
}

fn by_address(arrays: &BTreeMap<String, u64>) -> HashMap<u64, String> {
    let turned = arrays
        .iter()
        .map(|(path, address)| (*address, path.clone()));
    turned.collect()
}

impl RemoteFile {
    pub(crate) fn new(
        (url, name, shown): (&str, &str, Option<&str>),
        session: &Session,
        writable: bool,
        bounds: (c_int, c_int),
        config: &Arc<Config>,
        place: FilePlace,
        state: State,
    ) -> Self {
        RemoteFile {
            url: url.to_owned(),
            name: name.to_owned(),
            shown: shown.map(str::to_owned),
            session: session.clone(),
            writable,
            bounds,
            config: config.clone(),
            place,
            state: Mutex::new(state),
            objects: AtomicUsize::new(0),
            handles: Mutex::new(Vec::new()),
        }
    }

    /// Another object of it is open.
    pub(crate) fn one_more(&self) {
        self.objects.fetch_add(1, Ordering::Relaxed);
    }

    /// An object of it is closed.
    pub(crate) fn one_less(&self) {
        self.objects.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many objects of it are open.
    pub(crate) fn objects(&self) -> usize {
        self.objects.load(Ordering::Relaxed)
    }

    /// It was opened once more, as this.
    pub(crate) fn opened(&self, handle: Ptr) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.push(handle as usize);
    }

    /// What was opened as this is closed.
    pub(crate) fn closed(&self, handle: Ptr) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = handles.iter().position(|other| *other == handle as usize) {
            handles.swap_remove(at);
        }
        // Nobody tells when the process ends.
        self.session.flush_trace();
    }

    /// What the native connector knows it by, if the program has the file itself open.
    fn handle(&self) -> Option<Ptr> {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.first().map(|handle| *handle as Ptr)
    }

    /// Does something with the native connector's file, asked by an object of a kind.
    ///
    /// Where the program has closed the file and still has objects of it, asking the native connector
    /// for it makes that believe that it is open again, and it would not be closed with the last of
    /// them. So it is closed once more.
    pub(crate) fn with_native<T>(
        &self,
        native: Native,
        (object, kind): (Ptr, c_int),
        transfer: Hid,
        work: impl FnOnce(Ptr) -> Result<T>,
    ) -> Result<T> {
        if let Some(handle) = self.handle() {
            return work(handle);
        }
        let file = native.file_of(object, kind, transfer)?;
        let done = work(file);
        native.close_file(file, transfer)?;
        done
    }

    /// Writes everything that was changed, if the program has the file itself open.
    pub(super) fn flush_open(&self, native: Native, transfer: Hid) -> Result<()> {
        match self.handle() {
            Some(handle) => self.flush(native, handle, transfer),
            None => Ok(()),
        }
    }

    /// True if it may be changed.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panic leaves behind is a file that was changed in part, as a crash would leave it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the program calls it, if the native connector calls it something else.
    pub(crate) fn shown_name(&self) -> Option<&str> {
        self.shown.as_deref()
    }

    /// What the program calls it.
    pub(crate) fn program_name(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.name)
    }

    /// True if it is an ordinary HDF5 file.
    pub(crate) fn is_in_place(&self) -> bool {
        !matches!(self.place, FilePlace::Hierarchy)
    }

    /// True if it is a file on local disk, of which only cells are read by the engine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.place, FilePlace::Local)
    }

    /// True if it could not be written when it was to be closed.
    pub(crate) fn is_given_up(&self) -> bool {
        self.lock().given_up
    }

    /// Notes that it could not be written when it was to be closed.
    pub(crate) fn give_up(&self) {
        self.lock().given_up = true;
    }

    /// An error unless the file may be changed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.writable {
            true => Ok(()),
            false => Err(Error::invalid(
                "no write intent on file: it is open for reading only",
            )),
        }
    }

    /// Notes that something was changed.
    pub(crate) fn touch(&self) {
        CHANGES.fetch_add(1, Ordering::Relaxed);
        self.lock().touched = true;
    }

    /// Brings the cells of a dataset into the hierarchy, because they cannot be in an array.
    pub(crate) fn bring_home(&self, native: Native, dataset: Ptr, transfer: Hid) -> Result<()> {
        let Some(cells) = self.dataset(native, dataset, transfer)? else {
            return Ok(());
        };
        cells.write_home(native, dataset, transfer)?;
        let address = native.address(dataset, kind::DATASET, transfer)?;
        cells.has_come_home();
        self.lock().datasets.insert(address, None);
        Ok(())
    }

    /// The cells of a dataset; `None` if they are in the hierarchy.
    pub(crate) fn dataset(
        &self,
        native: Native,
        dataset: Ptr,
        transfer: Hid,
    ) -> Result<Option<Arc<Dataset>>> {
        let address = native.address(dataset, kind::DATASET, transfer)?;
        let mut state = self.lock();
        if let Some(known) = state.datasets.get(&address) {
            return Ok(known.clone());
        }
        if state.unseen {
            state.unseen = false;
            // A file that our own parser does not read is the native connector's.
            if let Ok(Some(outline)) = block_on(self.session.outline(&self.url)) {
                state.arrays = by_address(&outline.plain);
            }
        }
        let opened = match state.arrays.get(&address) {
            None if !self.is_local() && native.is_virtual(dataset, transfer)? => {
                // It is put together anew whenever it is opened, since its sources may change.
                drop(state);
                return self.put_together(native, dataset, transfer).map(Some);
            }
            None => None,
            Some(path) => {
                let both =
                    || Error::data(format!("{path} has cells in an array and in the hierarchy"));
                let mut described = native.describe(dataset, transfer)?.ok_or_else(both)?;
                let array = block_on(self.session.open_array(&below(&self.url, path)))?;
                let differs = array.shape() != described.meta.shape && !self.is_in_place();
                if differs && !self.writable && contains(&array.shape(), &described.meta.shape) {
                    // A writer was killed after the array grew and before the hierarchy was written: a
                    // file that is only read is as it was flushed last.
                    let dataset = Dataset::within_array(described, array)?;
                    state.datasets.insert(address, Some(Arc::new(dataset)));
                    return Ok(state.datasets.get(&address).cloned().flatten());
                }
                if differs {
                    // Somebody else changed it, or a writer was killed: what Zarr says wins.
                    let (shape, inner) = (array.shape(), described.inner_dims());
                    let outer = shape.rank().saturating_sub(inner);
                    let resized = native.resize(dataset, &shape[..outer], transfer);
                    described = native.describe(dataset, transfer)?.ok_or_else(both)?;
                    if resized.is_err() || shape != described.meta.shape {
                        return Err(changed_shape(path, &shape, &described.meta.shape));
                    }
                }
                Some(Arc::new(Dataset::of_array(described, array)?))
            }
        };
        state.datasets.insert(address, opened.clone());
        Ok(opened)
    }

    /// A dataset that is put together from others, which may be in other files.
    fn put_together(&self, native: Native, dataset: Ptr, transfer: Hid) -> Result<Arc<Dataset>> {
        flush_all(native, transfer)?;
        let (described, entries) = native.mapping(dataset, transfer)?;
        let prefix = self.source_prefix(native, dataset, transfer)?;
        let named = |name: &str| {
            let prefixed = match prefix.is_empty() || name.starts_with('/') {
                true => name.to_owned(),
                false => format!("{}/{name}", prefix.trim_end_matches('/')),
            };
            self.config.names.named(self.program_name(), &prefixed)
        };
        let entries = entries.into_iter().map(|mut entry| {
            match entry.file.as_str() {
                "." => {
                    if let Some(path) = self.array_of(native, dataset, &entry.dataset, transfer) {
                        entry.dataset = path;
                    }
                }
                other => entry.file = named(other),
            }
            entry
        });
        let array = self
            .session
            .virtual_array(&self.url, &described, entries.collect());
        let array = block_on(array)?;
        Ok(Arc::new(Dataset::of_others(described, array)?))
    }

    /// The array of a dataset of this file, by its name: several names may lead to it, and the array is at
    /// one of them only.
    fn array_of(&self, native: Native, from: Ptr, name: &str, transfer: Hid) -> Option<String> {
        let below = Below {
            object: from,
            kind: kind::DATASET,
        };
        let name = format!("/{}", name.trim_start_matches('/'));
        let found = native.open(&below, &name, transfer)?;
        let address = native.address(found.object, found.kind, transfer).ok()?;
        let path = self.lock().arrays.get(&address).cloned()?;
        Some(format!("/{path}"))
    }

    /// What stands before the names of files with sources of a virtual dataset, as the environment or
    /// the program has it.
    fn source_prefix(&self, native: Native, dataset: Ptr, transfer: Hid) -> Result<String> {
        let set = std::env::var("HDF5_VDS_PREFIX").unwrap_or_default();
        let prefix = match set.is_empty() {
            true => native.virtual_prefix(dataset, transfer)?,
            false => set,
        };
        let folder = self
            .program_name()
            .rsplit_once('/')
            .map_or(".", |(folder, _)| folder);
        Ok(prefix.replace("${ORIGIN}", folder))
    }

    /// Forgets datasets that are not in the hierarchy any more: new ones may get their addresses.
    pub(crate) fn forget_removed(&self, native: Native, file: Ptr, transfer: Hid) -> Result<()> {
        let image = Bytes::from(native.image(file, transfer)?);
        let objects = block_on(objects_in(image))?;
        let live: HashSet<u64> = objects.iter().map(|noted| noted.address).collect();
        let mut state = self.lock();
        let is_open = |dataset: &Arc<Dataset>| Arc::strong_count(dataset) > 1;
        state.datasets.retain(|address, dataset| {
            live.contains(address) || dataset.as_ref().is_some_and(is_open)
        });
        state.arrays.retain(|address, _| live.contains(address));
        Ok(())
    }

    /// True if a dataset was made or opened before.
    pub(crate) fn knows(&self, native: Native, dataset: Ptr, transfer: Hid) -> Result<bool> {
        let address = native.address(dataset, kind::DATASET, transfer)?;
        let state = self.lock();
        Ok(state.datasets.contains_key(&address) || state.arrays.contains_key(&address))
    }

    /// The cells of a dataset that was just made; `None` if they go into the hierarchy.
    pub(crate) fn made(
        &self,
        native: Native,
        dataset: Ptr,
        transfer: Hid,
    ) -> Result<Option<Arc<Dataset>>> {
        let address = native.address(dataset, kind::DATASET, transfer)?;
        let described = native.describe(dataset, transfer)?;
        let made = match described.filter(|array| array.is_plain() || array.is_text()) {
            Some(described) => Some(Arc::new(Dataset::new(described)?)),
            None => None,
        };
        let is_virtual = made.is_none() && native.is_virtual(dataset, transfer)?;
        let mut state = self.lock();
        state.touched = true;
        // What was at this address is gone.
        state.arrays.remove(&address);
        match is_virtual {
            true => state.datasets.remove(&address),
            false => state.datasets.insert(address, made.clone()),
        };
        Ok(made)
    }

    /// Writes changed chunks early if there are too many of them, asked by a dataset.
    pub(crate) fn relieve(&self, native: Native, dataset: Ptr, transfer: Hid) -> Result<()> {
        let waiting: u64 = {
            let state = self.lock();
            let datasets = state.datasets.values().flatten();
            datasets.map(|dataset| dataset.waiting()).sum()
        };
        match waiting > self.config.write_cache {
            true => self.flush_from(native, (dataset, kind::DATASET), transfer),
            false => Ok(()),
        }
    }

    /// Writes everything that was changed, asked by an object of a kind.
    pub(crate) fn flush_from(
        &self,
        native: Native,
        object: (Ptr, c_int),
        transfer: Hid,
    ) -> Result<()> {
        if !self.writable || !self.lock().touched {
            return Ok(());
        }
        self.with_native(native, object, transfer, |file| {
            self.flush(native, file, transfer)
        })
    }

    /// Writes everything that was changed: chunks first, then metadata, and the hierarchy last, by
    /// which all of it becomes the file.
    pub(crate) fn flush(&self, native: Native, file: Ptr, transfer: Hid) -> Result<()> {
        let mut state = self.lock();
        if !self.writable || !state.touched {
            return Ok(());
        }
        // Before anything is written over what another program wrote.
        block_on(self.session.check_skeleton(&self.url, &state.skeleton))?;
        let image = Bytes::from(native.image(file, transfer)?);
        let objects = block_on(objects_in(image.clone()))?;
        let arrays = self.write_cells(&mut state, &objects)?;
        let nodes = self.nodes(&state, &objects);
        let changed: BTreeSet<String> = nodes
            .iter()
            .filter(|(path, json)| state.nodes.get(*path) != Some(*json))
            .map(|(path, _)| path.clone())
            .collect();
        // What was published and is not any more: removed, moved, or brought into the hierarchy.
        let gone: BTreeSet<String> = (state.arrays.values().chain(state.nodes.keys()))
            .filter(|path| !arrays.contains_key(*path) && !nodes.contains_key(*path))
            .cloned()
            .collect();
        let before = state.skeleton.clone();
        let (kept, saved) = (arrays.clone(), &nodes);
        state.skeleton = block_on(async move {
            let root = self.session.publish(&self.url, saved, &changed).await?;
            let session = &self.session;
            let kept = session.keep_skeleton(&self.url, image, kept, Some(root), &before);
            let kept = kept.await?;
            for path in gone {
                session.sweep(&below(&self.url, &path)).await?;
            }
            Ok(kept)
        })?;
        state.arrays = by_address(&arrays);
        state.nodes = nodes;
        state.touched = false;
        Ok(())
    }

    /// Writes changed chunks to arrays at the paths of their datasets; returns all arrays.
    fn write_cells(&self, state: &mut State, objects: &[Noted]) -> Result<BTreeMap<String, u64>> {
        let evacuated = self.evacuate(state, objects)?;
        let mut arrays = BTreeMap::new();
        for noted in objects {
            if !matches!(noted.object, Object::Dataset(_)) {
                continue;
            }
            let url = below(&self.url, &noted.path);
            match state.datasets.get(&noted.address) {
                Some(Some(dataset)) if !dataset.is_virtual() => {
                    let rests = state.may_have_rests;
                    dataset.flush(&self.session, &url, rests)?;
                    arrays.insert(noted.path.clone(), noted.address);
                }
                Some(_) => {}
                // Nobody has opened it: its cells are where they were.
                None => {
                    if let Some(path) = state.arrays.get(&noted.address) {
                        if *path != noted.path {
                            let from = evacuated.get(&noted.address).unwrap_or(path);
                            self.carry(from, &url)?;
                        }
                        arrays.insert(noted.path.clone(), noted.address);
                    }
                }
            }
        }
        if !evacuated.is_empty() {
            block_on(self.session.sweep(&below(&self.url, MOVING)))?;
        }
        Ok(arrays)
    }

    /// Moves the array at a path, which nobody has opened, to a URL.
    fn carry(&self, path: &str, url: &str) -> Result<()> {
        let from = block_on(self.session.open_array(&below(&self.url, path)))?;
        carry(&self.session, &from, url).map(drop)
    }

    /// Brings arrays that have to move out of the way of others that go where they are; returns where
    /// they are now.
    fn evacuate(&self, state: &State, objects: &[Noted]) -> Result<HashMap<u64, String>> {
        let mut evacuated = HashMap::new();
        let is_dataset = |noted: &&Noted| matches!(noted.object, Object::Dataset(_));
        let old = |noted: &Noted| state.arrays.get(&noted.address);
        let arrives = |noted: &&Noted| old(noted) != Some(&noted.path);
        let arriving: HashSet<&str> = objects
            .iter()
            .filter(is_dataset)
            .filter(arrives)
            .map(|noted| noted.path.as_str())
            .collect();
        for noted in objects.iter().filter(is_dataset).filter(arrives) {
            let Some(path) = old(noted) else {
                continue;
            };
            // What is there now is removed together with all that is below it.
            let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
            if !arriving.contains(path.as_str()) && !above.any(|path| arriving.contains(path)) {
                continue;
            }
            let place = format!("{MOVING}/{:x}", noted.address);
            let url = below(&self.url, &place);
            match state.datasets.get(&noted.address) {
                Some(Some(dataset)) => dataset.move_to(&self.session, &url)?,
                _ => self.carry(path, &url)?,
            }
            evacuated.insert(noted.address, place);
        }
        Ok(evacuated)
    }

    /// The metadata of all groups, and of all arrays.
    fn nodes(&self, state: &State, objects: &[Noted]) -> BTreeMap<String, Value> {
        let mut nodes = BTreeMap::new();
        for noted in objects {
            let json = match &noted.object {
                Object::Group(meta, _) => Some(meta.to_json()),
                Object::Dataset(array) => match state.datasets.get(&noted.address) {
                    Some(Some(dataset)) => Some(dataset.json(&array.meta)),
                    Some(None) => None,
                    None => state
                        .arrays
                        .get(&noted.address)
                        .and_then(|path| state.nodes.get(path).cloned()),
                },
                Object::Datatype => None,
            };
            if let Some(json) = json {
                nodes.insert(noted.path.clone(), json);
            }
        }
        nodes
    }
}

/// True if one shape has at least as many cells as another along every dimension.
fn contains(shape: &Shape, other: &Shape) -> bool {
    shape.rank() == other.rank() && shape.iter().zip(other.iter()).all(|(a, b)| a >= b)
}

fn changed_shape(path: &str, array: &Shape, dataset: &Shape) -> Error {
    Error::conflict(format!(
        "the array {path} has the shape {array}, and the dataset {dataset}"
    ))
    .with_hint(
        "another program changed it; consolidate the metadata of the hierarchy and open it again",
    )
}

/// The URL of a path below a URL, which may have options behind it.
pub(crate) fn below(url: &str, path: &str) -> String {
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (url, String::new()),
    };
    format!("{}/{path}{query}", base.trim_end_matches('/'))
}
