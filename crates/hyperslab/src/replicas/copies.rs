//! What a session knows of the replicas of one array; its handles share it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyperslab_format::{ArrayMeta, Node, join};
use hyperslab_index::{Region, Selection, Shape};

use super::check::Foreign;
use super::ledger::{Known, Ledger};
use super::manifest::{Cells, Manifest, Replica, aligned};
use crate::array::State;
use crate::location::Location;
use crate::session::OpenStore;
use crate::{Array, Error, Result, Session};

/// The folder of replicas, below that of their array.
const FOLDER: &str = ".hyperslab/replicas";
/// A writer acknowledges only if it saw so long ago, at most, that there are no replicas.
pub(crate) const LOOK: Duration = Duration::from_secs(2);

/// What a session knows of the replicas of one array.
#[derive(Debug)]
pub(crate) struct Copies {
    pub(crate) session: Session,
    pub(crate) open: OpenStore,
    pub(crate) location: Location,
    pub(crate) ledger: Ledger,
    pub(crate) foreign: Foreign,
    /// Replicas as arrays, by folder and shape.
    opened: Mutex<Vec<(String, Shape, Array)>>,
}

impl Copies {
    pub(crate) fn new(session: &Session, open: &OpenStore, location: &Location) -> Self {
        Copies {
            session: session.clone(),
            open: open.clone(),
            location: location.clone(),
            ledger: Ledger::new(open.store.clone(), join(&location.path, FOLDER)),
            foreign: Foreign::default(),
            opened: Mutex::default(),
        }
    }

    /// The manifest, asked for if it is not known yet; `None` if there are no replicas.
    pub(crate) async fn manifest(&self) -> Result<Option<Known>> {
        let known = match self.ledger.known() {
            Some(known) => Some(known),
            None => self.ledger.load().await?,
        };
        Ok(known.filter(|known| !known.manifest.replicas.is_empty()))
    }

    /// Forgets all; the array is gone.
    pub(crate) fn forget(&self) {
        self.ledger.forget();
        self.foreign.forget();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.clear();
    }

    /// True if replicas are known.
    pub(crate) fn any_known(&self) -> bool {
        let known = self.ledger.known();
        known.is_some_and(|known| !known.manifest.replicas.is_empty())
    }

    /// A replica as an array of this shape. Its cells are where its metadata says; the shape is the
    /// original's, which the replica's own may lag behind.
    pub(crate) fn array(&self, replica: &Replica, shape: &Shape) -> Result<Array> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let found = opened
            .iter()
            .find(|(folder, s, _)| *folder == replica.folder && s == shape);
        if let Some((_, _, array)) = found {
            return Ok(array.clone());
        }
        let location = Location {
            root: self.location.root.clone(),
            path: self.ledger.below(&replica.folder),
        };
        let mut meta = match Node::from_json(&replica.meta)? {
            Node::Array(meta) => *meta,
            Node::Group(_) => return Err(Error::data("a replica is a group")),
        };
        meta.shape = shape.clone();
        let state = State::new(meta, &location.path)?;
        if let Some(mean) = replica.bytes.checked_div(replica.objects) {
            state.expect_size(mean);
        }
        let array = Array::plain(&self.session, self.open.clone(), &location, state);
        // Handles with a few shapes at a time, at most.
        if opened.len() >= 16 {
            opened.remove(0);
        }
        opened.push((replica.folder.clone(), shape.clone(), array.clone()));
        Ok(array)
    }

    /// The original, so that reads and writes of it are its own only.
    pub(crate) fn original(&self, meta: ArrayMeta) -> Result<Array> {
        let state = State::new(meta, &self.location.path)?;
        let (open, location) = (self.open.clone(), &self.location);
        Ok(Array::plain(&self.session, open, location, state))
    }

    /// The original with the metadata that is stored now.
    pub(crate) async fn current(&self) -> Result<Array> {
        let loaded = hyperslab_format::load(&*self.open.store, &self.location.path).await?;
        self.original(loaded.node.into_array(&self.location.url())?)
    }

    /// A key of the original without its path.
    pub(crate) fn short<'a>(&self, key: &'a str) -> &'a str {
        let path = &self.location.path;
        let below = key.strip_prefix(path.as_str()).unwrap_or(key);
        below.trim_start_matches('/')
    }
}

/// The box of cells that a selection touches, grown to whole objects; `None` if it is empty.
pub(crate) fn touched(selection: &Selection, meta: &ArrayMeta) -> Result<Option<Cells>> {
    let bounding: Option<Region> = selection.bounding(&meta.shape);
    let aligned = bounding.map(|region| aligned(&region, &meta.chunk_shape, &meta.shape));
    aligned.transpose()
}

/// What must stay the same for replicas to be replicas: the type of cells and the fill value.
pub(crate) fn cell_of(meta: &ArrayMeta) -> serde_json::Value {
    serde_json::json!({
        "data_type": meta.dtype.to_json(),
        "fill_value": meta.fill.to_json(&meta.dtype),
        "chunk_shape": meta.chunk_shape[..],
    })
}

/// True if a manifest is about an array with this metadata.
pub(crate) fn fits(manifest: &Manifest, meta: &ArrayMeta) -> bool {
    manifest.cell == cell_of(meta)
}
