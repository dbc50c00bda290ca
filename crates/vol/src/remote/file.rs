//! A file that is in a store: a hierarchy that the native connector holds in memory, and arrays.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab::format::hdf5::Object;
use hyperslab::{Error, Noted, Result, Session, SkeletonState, block_on, objects_in};
use serde_json::Value;

use super::Dataset;
use crate::abi::{Hid, Ptr, kind};
use crate::native::Native;

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
    /// Bytes of changed chunks that are held before they are written.
    write_cache: u64,
    /// Holds what the native connector reads of a file that lies in a store as it is.
    _copy: Option<tempfile::NamedTempFile>,
    state: Mutex<State>,
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
    /// Something was changed since it was written.
    touched: bool,
    /// There may be objects where new arrays go.
    may_have_rests: bool,
    /// It could not be written when it was to be closed.
    given_up: bool,
}

impl State {
    /// A file that is new.
    pub(crate) fn fresh() -> Self {
        State {
            touched: true,
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
        write_cache: u64,
        copy: Option<tempfile::NamedTempFile>,
        state: State,
    ) -> Self {
        RemoteFile {
            url: url.to_owned(),
            name: name.to_owned(),
            shown: shown.map(str::to_owned),
            session: session.clone(),
            writable,
            bounds,
            write_cache,
            _copy: copy,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panic leaves behind is a file that was changed in part, as a crash would leave it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the program calls it, if the native connector calls it something else.
    pub(crate) fn shown_name(&self) -> Option<&str> {
        self.shown.as_deref()
    }

    /// True if it is an ordinary HDF5 file in a store.
    pub(crate) fn is_in_place(&self) -> bool {
        self._copy.is_some()
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
        self.lock().touched = true;
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
        let opened = match state.arrays.get(&address) {
            None => None,
            Some(path) => {
                let described = native.describe(dataset, transfer)?;
                let described = described.ok_or_else(|| {
                    Error::data(format!("{path} has cells in an array and in the hierarchy"))
                })?;
                let array = block_on(self.session.open_array(&below(&self.url, path)))?;
                Some(Arc::new(Dataset::of_array(described, array)?))
            }
        };
        state.datasets.insert(address, opened.clone());
        Ok(opened)
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
        let made = match described.filter(|array| array.is_plain()) {
            Some(described) => Some(Arc::new(Dataset::new(described)?)),
            None => None,
        };
        let mut state = self.lock();
        state.touched = true;
        state.datasets.insert(address, made.clone());
        Ok(made)
    }

    /// Writes changed chunks early if there are too many of them, asked by a dataset.
    pub(crate) fn relieve(&self, native: Native, dataset: Ptr, transfer: Hid) -> Result<()> {
        let waiting: u64 = {
            let state = self.lock();
            let datasets = state.datasets.values().flatten();
            datasets.map(|dataset| dataset.waiting()).sum()
        };
        match waiting > self.write_cache {
            true => self.flush_from(native, dataset, transfer),
            false => Ok(()),
        }
    }

    /// Writes everything that was changed, asked by a dataset.
    pub(crate) fn flush_from(&self, native: Native, dataset: Ptr, transfer: Hid) -> Result<()> {
        let file = native.file_of(dataset, kind::DATASET, transfer)?;
        self.flush(native, file, transfer)
    }

    /// Writes everything that was changed: chunks first, then metadata, and the hierarchy last, by
    /// which all of it becomes the file.
    pub(crate) fn flush(&self, native: Native, file: Ptr, transfer: Hid) -> Result<()> {
        let mut state = self.lock();
        if !self.writable || !state.touched {
            return Ok(());
        }
        let image = Bytes::from(native.image(file, transfer)?);
        let objects = block_on(objects_in(image.clone()))?;
        let arrays = self.write_cells(&mut state, &objects)?;
        let nodes = self.nodes(&state, &objects);
        let changed: BTreeSet<String> = nodes
            .iter()
            .filter(|(path, json)| state.nodes.get(*path) != Some(*json))
            .map(|(path, _)| path.clone())
            .collect();
        let gone: Vec<String> = (state.arrays.values())
            .filter(|path| !arrays.contains_key(*path))
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
        let mut arrays = BTreeMap::new();
        for noted in objects {
            if !matches!(noted.object, Object::Dataset(_)) {
                continue;
            }
            match state.datasets.get(&noted.address) {
                Some(Some(dataset)) => {
                    let url = below(&self.url, &noted.path);
                    let rests = state.may_have_rests;
                    dataset.flush(&self.session, &url, rests)?;
                    arrays.insert(noted.path.clone(), noted.address);
                }
                Some(None) => {}
                // Nobody has opened it: its cells are where they were.
                None => {
                    if let Some(path) = state.arrays.get(&noted.address) {
                        if *path != noted.path {
                            let from = block_on(self.session.open_array(&below(&self.url, path)))?;
                            let to = below(&self.url, &noted.path);
                            super::dataset::carry(&self.session, &from, &to)?;
                        }
                        arrays.insert(noted.path.clone(), noted.address);
                    }
                }
            }
        }
        Ok(arrays)
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

/// The URL of a path below a URL, which may have options behind it.
pub(crate) fn below(url: &str, path: &str) -> String {
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (url, String::new()),
    };
    format!("{}/{path}{query}", base.trim_end_matches('/'))
}
