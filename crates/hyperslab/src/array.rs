//! Arrays: what users hold.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use bytes::Bytes;
use hyperslab_format as format;
use hyperslab_format::{ArrayMeta, CodecChain, DataType, Piece, Resolver, ZarrResolver};
use hyperslab_index::{CellOrder, Selection, Shape, Target};
use serde_json::{Map, Value};

use crate::canvas::Canvas;
use crate::file::FileSource;
use crate::guess::Guess;
use crate::location::Location;
use crate::mosaic::Mosaic;
use crate::read::{self, Job};
use crate::replicas::Copies;
use crate::scatter::Destination;
use crate::session::OpenStore;
use crate::strings;
use crate::tasks::apart;
use crate::write;
use crate::{Error, Result, Session, block_on};

/// An array in a store. Cheap to clone; clones share state.
#[derive(Clone)]
pub struct Array(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) session: Session,
    pub(crate) open: OpenStore,
    pub(crate) location: Location,
    url: String,
    state: RwLock<Arc<State>>,
    /// The metadata came from a consolidated copy and was not compared with the array's own yet.
    unverified: AtomicBool,
    /// Its metadata says that it has replicas.
    flagged: AtomicBool,
    /// Reads and writes touch nothing but its own objects: a replica, or the original by itself.
    plain: bool,
    /// What is known of its replicas, once that was asked for.
    copies: OnceLock<Arc<Copies>>,
    /// Objects that were not there when they were read.
    absences: AtomicU64,
}

/// Metadata and what follows from it; replaced as a whole when the array changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) meta: Arc<ArrayMeta>,
    pub(crate) resolver: Box<dyn Resolver>,
    /// Path of the array below the root of its store.
    path: String,
    /// The file that holds all cells, if they are not in objects of their own.
    pub(crate) file: Option<FileSource>,
    /// The arrays that its cells are cells of, if it is virtual.
    pub(crate) mosaic: Option<Mosaic>,
    /// Where its chunks are has still to be read.
    pub(crate) pending: bool,
    /// The block that is decoded by itself: its shape, the order of its cells, and its sides in
    /// that order.
    pub(crate) unit: Shape,
    pub(crate) order: CellOrder,
    pub(crate) stored: Vec<u64>,
    /// Bytes of a cell (1 for strings, whose cells are handled one by one).
    pub(crate) cell: usize,
    /// Running mean of the encoded bytes of whole objects; 0 before one was seen.
    seen_bytes: AtomicU64,
    /// How shards are laid out.
    pub(crate) guess: Guess,
}

impl State {
    pub(crate) fn new(meta: ArrayMeta, path: &str) -> Result<Self> {
        let resolver = ZarrResolver::new(Arc::new(meta.clone()), path)?;
        Self::resolved(meta, path, Box::new(resolver), None)
    }

    /// The state of an array whose cells a resolver finds.
    pub(crate) fn resolved(
        meta: ArrayMeta,
        path: &str,
        resolver: Box<dyn Resolver>,
        file: Option<FileSource>,
    ) -> Result<Self> {
        let meta = Arc::new(meta);
        let (unit, order) = meta.unit()?;
        Ok(State {
            resolver,
            path: path.to_owned(),
            file,
            mosaic: None,
            pending: false,
            unit,
            order,
            stored: meta.unit_stored_shape(),
            cell: meta.dtype.cell_bytes().unwrap_or(1) as usize,
            seen_bytes: AtomicU64::new(0),
            guess: Guess::default(),
            meta,
        })
    }

    /// The codecs of a piece: those of its array, but for filters that were left out for it.
    pub(crate) fn chain(&self, piece: &Piece) -> Cow<'_, CodecChain> {
        let chain = self.meta.unit_codecs();
        match piece.mask {
            0 => Cow::Borrowed(chain),
            mask => Cow::Owned(chain.without(mask)),
        }
    }

    /// Bytes of each chunk in the file that holds them.
    pub(crate) fn range_sizes(&self) -> Result<Vec<u64>> {
        let objects = self.resolver.objects(&Selection::All)?;
        let pieces = objects.flat_map(|object| object.pieces);
        let sizes = pieces.filter_map(|piece| match piece.source {
            format::Source::Range(range) => Some(range.end - range.start),
            _ => None,
        });
        Ok(sizes.collect())
    }

    /// The key of the object that holds a chunk (or shard).
    pub(crate) fn key(&self, chunk: &[u64]) -> String {
        format::join(&self.path, &self.meta.keys.key(chunk))
    }

    /// The likely size of an object that holds `units`, before it is read: that of its cells if they
    /// are stored as they are, otherwise what others had, or half of its cells.
    pub(crate) fn guess_size(&self, units: u64) -> u64 {
        let cells = (self.unit_bytes() as u64).saturating_mul(units);
        match self.seen_bytes.load(Ordering::Relaxed) {
            0 if self.has_raw_units() => {
                let index = self.meta.codecs.sharding().map_or(0, |s| s.index_bytes());
                cells.saturating_add(index)
            }
            0 => cells / 2,
            seen => seen,
        }
    }

    /// True if parts of units can be read, and become cells without the rest.
    pub(crate) fn has_raw_units(&self) -> bool {
        self.meta.unit_codecs().is_rangeable() && !self.meta.dtype.is_variable()
    }

    /// Remembers the size of a whole object.
    pub(crate) fn saw_size(&self, bytes: u64) {
        let mean = match self.seen_bytes.load(Ordering::Relaxed) {
            0 => bytes,
            seen => seen - seen / 8 + bytes / 8,
        };
        self.seen_bytes.store(mean, Ordering::Relaxed);
    }

    /// Says what size whole objects are likely to have, before one was seen.
    pub(crate) fn expect_size(&self, bytes: u64) {
        let relaxed = Ordering::Relaxed;
        // If one was seen meanwhile, that is better.
        let _ = self.seen_bytes.compare_exchange(0, bytes, relaxed, relaxed);
    }

    /// True if a range of an object has as many bytes as the cells of a unit. The last unit of a
    /// contiguous dataset, which nobody wrote as such, is shorter.
    pub(crate) fn is_unit(&self, range: &Range<u64>) -> bool {
        let (bytes, unit) = (range.end - range.start, self.unit_bytes() as u64);
        bytes == unit || (self.meta.has_free_layout() && bytes < unit)
    }

    /// Bytes of a decoded unit.
    pub(crate) fn unit_bytes(&self) -> usize {
        self.unit.num_cells() as usize * self.cell
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(
            f,
            "Array({}, {}, {})",
            self.0.url, state.meta.shape, state.meta.dtype
        )
    }
}

impl Array {
    pub(crate) fn new(
        session: &Session,
        open: OpenStore,
        location: &Location,
        meta: ArrayMeta,
        from_copy: bool,
    ) -> Result<Self> {
        let state = match &open.references {
            Some(references) => references.state(&open, meta, &location.path)?,
            None => State::new(meta, &location.path)?,
        };
        Ok(Self::with_state(session, open, location, state, from_copy))
    }

    pub(crate) fn with_state(
        session: &Session,
        open: OpenStore,
        location: &Location,
        state: State,
        from_copy: bool,
    ) -> Self {
        Self::made(session, open, location, Arc::new(state), (from_copy, false))
    }

    /// An array whose reads and writes touch nothing but its own objects.
    pub(crate) fn plain(
        session: &Session,
        open: OpenStore,
        location: &Location,
        state: State,
    ) -> Self {
        Self::made(session, open, location, Arc::new(state), (false, true))
    }

    fn made(
        session: &Session,
        open: OpenStore,
        location: &Location,
        state: Arc<State>,
        (from_copy, plain): (bool, bool),
    ) -> Self {
        Array(Arc::new(Inner {
            session: session.clone(),
            open,
            url: location.url(),
            location: location.clone(),
            state: RwLock::new(state),
            unverified: AtomicBool::new(from_copy),
            flagged: AtomicBool::new(false),
            plain,
            copies: OnceLock::new(),
            absences: AtomicU64::new(0),
        }))
    }

    /// The same array in another session.
    pub(crate) fn in_session(&self, session: &Session) -> Self {
        let inner = &self.0;
        let (open, location) = (inner.open.clone(), &inner.location);
        let unverified = inner.unverified.load(Ordering::Acquire);
        Self::made(
            session,
            open,
            location,
            self.state(),
            (unverified, inner.plain),
        )
    }

    /// The same array without its replicas.
    pub(crate) fn as_plain(&self) -> Self {
        let inner = &self.0;
        let (open, location) = (inner.open.clone(), &inner.location);
        Self::made(&inner.session, open, location, self.state(), (false, true))
    }

    /// True if its reads and writes touch nothing but its own objects.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// True if its metadata says that it has replicas.
    pub(crate) fn is_flagged(&self) -> bool {
        self.0.flagged.load(Ordering::Acquire)
    }

    pub(crate) fn set_flagged(&self, on: bool) {
        self.0.flagged.store(on, Ordering::Release);
    }

    /// True for arrays that can have replicas: Zarr v3, with objects of their own.
    pub(crate) fn can_have_replicas(&self) -> bool {
        !self.0.plain
            && self.0.open.references.is_none()
            && self.state().meta.format == format::ZarrFormat::V3
    }

    /// True if it is worth asking for replicas.
    pub(crate) fn may_have_replicas(&self) -> bool {
        let known = || self.0.copies.get().is_some_and(|copies| copies.any_known());
        !self.0.plain && (self.is_flagged() || known()) && self.can_have_replicas()
    }

    /// What the session knows of its replicas.
    pub(crate) fn copies(&self) -> Arc<Copies> {
        let inner = &self.0;
        let find = || inner.session.copies_of(&inner.open, &inner.location);
        inner.copies.get_or_init(find).clone()
    }

    /// How many objects were not there when they were read.
    pub(crate) fn absences(&self) -> u64 {
        self.0.absences.load(Ordering::Acquire)
    }

    pub(crate) fn saw_absence(&self) {
        self.0.absences.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    pub(crate) fn state(&self) -> Arc<State> {
        match self.0.state.read() {
            Ok(state) => state.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        }
    }

    pub(crate) fn set_state(&self, meta: ArrayMeta) -> Result<()> {
        self.replace_state(Arc::new(State::new(meta, &self.0.location.path)?));
        Ok(())
    }

    pub(crate) fn replace_state(&self, next: Arc<State>) {
        match self.0.state.write() {
            Ok(mut state) => *state = next,
            Err(poisoned) => *poisoned.into_inner() = next,
        }
    }

    /// The session that it was opened in.
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// The array's URL.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// The metadata as this handle knows it.
    pub fn meta(&self) -> Arc<ArrayMeta> {
        self.state().meta.clone()
    }

    /// The shape as this handle knows it.
    pub fn shape(&self) -> Shape {
        self.state().meta.shape.clone()
    }

    /// The type of a cell.
    pub fn dtype(&self) -> DataType {
        self.state().meta.dtype.clone()
    }

    fn fixed_size(&self, state: &State) -> Result<()> {
        if state.meta.dtype.is_variable() {
            return Err(
                Error::invalid(format!("{} holds {}", self.0.url, state.meta.dtype))
                    .with_hint("use the calls for strings"),
            );
        }
        Ok(())
    }

    fn variable_size(&self, state: &State) -> Result<()> {
        if !state.meta.dtype.is_variable() {
            return Err(Error::invalid(format!(
                "{} holds {}, which is no string",
                self.0.url, state.meta.dtype
            )));
        }
        Ok(())
    }

    fn named(&self) -> impl Fn(Error) -> Error {
        let url = self.0.url.clone();
        move |e| e.context(&url)
    }

    /// Bytes of the packed result of a selection.
    pub fn result_bytes(&self, selection: &Selection) -> Result<usize> {
        let state = self.state();
        self.fixed_size(&state)?;
        selection.check(&state.meta.shape).map_err(self.named())?;
        selection
            .num_cells(&state.meta.shape)
            .checked_mul(state.cell as u64)
            .and_then(|n| usize::try_from(n).ok())
            .filter(|n| *n <= isize::MAX as usize)
            .ok_or_else(|| Error::invalid("the selection is larger than memory can be"))
    }

    fn job(&self, selection: &Selection, canvas: Canvas, target: Target) -> Job {
        let state = self.state();
        let destination = Destination {
            canvas,
            target,
            cell: state.cell,
        };
        Job {
            array: self.clone(),
            state,
            selection: selection.clone(),
            destination,
        }
    }

    fn packed(&self, selection: &Selection) -> Result<Target> {
        Ok(Target::packed(
            selection.result_shape(&self.state().meta.shape),
        ))
    }

    /// Reads a selection: little-endian cells, packed in row-major order of the result.
    pub async fn read(&self, selection: &Selection) -> Result<Vec<u8>> {
        let canvas = Canvas::owned(self.result_bytes(selection)?);
        let job = self.job(selection, canvas.clone(), self.packed(selection)?);
        let session = self.0.session.clone();
        apart(async move { read::run(&session, vec![job]).await }).await?;
        Ok(canvas.into_vec())
    }

    /// Reads a selection into a buffer of exactly the result's size. Blocks; not for async tasks.
    pub fn read_into(&self, selection: &Selection, out: &mut [u8]) -> Result<()> {
        let want = self.result_bytes(selection)?;
        if out.len() != want {
            return Err(Error::invalid(format!(
                "the buffer has {} bytes, but the selection needs {want}",
                out.len()
            )));
        }
        self.read_into_strided(selection, out, &self.packed(selection)?)
    }

    /// Reads a selection into a buffer where result cells lie as `target` says, leaving all other
    /// bytes alone. Cells must not overlap. Blocks; not for async tasks.
    pub fn read_into_strided(
        &self,
        selection: &Selection,
        out: &mut [u8],
        target: &Target,
    ) -> Result<()> {
        self.result_bytes(selection)?;
        let shape = selection.result_shape(&self.shape());
        check_target(target, &shape, out.len() / self.state().cell)?;
        let guard = Canvas::borrow(out);
        let job = self.job(selection, guard.canvas(), target.clone());
        block_on(read::run(&self.0.session, vec![job]))
    }

    /// Reads a selection of strings: one byte string per cell, in row-major order of the result.
    pub async fn read_strings(&self, selection: &Selection) -> Result<Vec<Bytes>> {
        let state = self.state();
        self.variable_size(&state)?;
        selection.check(&state.meta.shape).map_err(self.named())?;
        let (array, selection) = (self.clone(), selection.clone());
        apart(async move { strings::run(&array, state, &selection).await }).await
    }

    /// Writes cells into a selection; `cells` is packed in row-major order of the selection.
    /// Chunks that are covered only in part are read, changed and written under a condition, so
    /// that another writer's cells are not lost.
    pub async fn write(&self, selection: &Selection, cells: Vec<u8>) -> Result<()> {
        self.check_cells(selection, cells.len())?;
        let canvas = Canvas::from_vec(cells);
        apart(write::run(self.job(
            selection,
            canvas,
            self.packed(selection)?,
        )))
        .await
    }

    /// Writes cells from a borrowed buffer. Blocks; not for async tasks.
    pub fn write_from(&self, selection: &Selection, cells: &[u8]) -> Result<()> {
        self.check_cells(selection, cells.len())?;
        let guard = Canvas::borrow_source(cells);
        let job = self.job(selection, guard.canvas(), self.packed(selection)?);
        block_on(write::run(job))
    }

    fn check_cells(&self, selection: &Selection, have: usize) -> Result<()> {
        self.writable()?;
        let want = self.result_bytes(selection)?;
        if have != want {
            return Err(Error::invalid(format!(
                "{have} bytes were given, but the selection of {} needs {want}",
                self.0.url
            )));
        }
        Ok(())
    }

    pub(crate) fn writable(&self) -> Result<()> {
        if self.state().meta.format == format::ZarrFormat::Hdf5 {
            return Err(Error::invalid(format!(
                "{} is in an HDF5 file, which is read only",
                self.0.url
            ))
            .with_hint("copy it with `hyperslab cp`; the copy is Zarr v3"));
        }
        if self.state().meta.format == format::ZarrFormat::V2 {
            return Err(Error::invalid(format!(
                "{} is stored as Zarr v2, which is read only",
                self.0.url
            ))
            .with_hint("copy it with `hyperslab cp`; the copy is Zarr v3"));
        }
        if self.0.open.read_only {
            return Err(Error::invalid(format!(
                "{} is behind a web server, which is read only",
                self.0.url
            ))
            .with_hint("copy it with `hyperslab cp` to a directory, S3, Azure or Google"));
        }
        Ok(())
    }

    /// Writes strings into a selection, in row-major order of the selection.
    pub async fn write_strings(&self, selection: &Selection, cells: Vec<Bytes>) -> Result<()> {
        self.writable()?;
        let state = self.state();
        self.variable_size(&state)?;
        selection.check(&state.meta.shape).map_err(self.named())?;
        let want = selection.num_cells(&state.meta.shape);
        if cells.len() as u64 != want {
            return Err(Error::invalid(format!(
                "{} strings were given, but the selection of {} needs {want}",
                cells.len(),
                self.0.url
            )));
        }
        if state.meta.dtype == DataType::String
            && cells.iter().any(|cell| std::str::from_utf8(cell).is_err())
        {
            return Err(Error::invalid("a string is not valid UTF-8"));
        }
        let (array, selection) = (self.clone(), selection.clone());
        apart(async move { write::run_strings(&array, state, &selection, cells).await }).await
    }

    /// Replaces the attributes.
    pub async fn set_attributes(&self, attributes: Map<String, Value>) -> Result<()> {
        self.writable()?;
        let meta = self.change(|meta| {
            meta.attributes = attributes.clone();
            Ok(meta.clone())
        });
        self.set_state(meta.await?)
    }

    /// Changes the array's own metadata under a condition.
    pub(crate) async fn change<T>(
        &self,
        mut change: impl FnMut(&mut ArrayMeta) -> Result<T>,
    ) -> Result<T> {
        format::update_node(
            &*self.0.open.store,
            &self.0.location.path,
            |node| match node {
                format::Node::Array(meta) => change(meta),
                format::Node::Group(_) => Err(Error::conflict(format!(
                    "{} has become a group",
                    self.0.url
                ))),
            },
        )
        .await
    }

    /// Compares metadata that came from a consolidated copy with the array's own, once.
    pub(crate) async fn verify(&self) -> Result<()> {
        if !self.0.unverified.load(Ordering::Acquire) {
            return Ok(());
        }
        let loaded = format::load(&*self.0.open.store, &self.0.location.path).await?;
        let replicated = loaded.replicated;
        let own = loaded.node.into_array(&self.0.url)?;
        if own != *self.meta() {
            return Err(Error::conflict(format!(
                "the consolidated metadata of {} differs from the array's own",
                self.0.url
            ))
            .with_hint(
                "another tool changed the array; open it by its own URL, or consolidate again",
            ));
        }
        self.set_flagged(replicated);
        self.0.unverified.store(false, Ordering::Release);
        Ok(())
    }
}

/// Result cells must lie inside the buffer and must not overlap.
fn check_target(target: &Target, shape: &Shape, cells: usize) -> Result<()> {
    let need = target.required_cells(&shape[..])?;
    if need > cells as u64 {
        return Err(Error::invalid(format!(
            "the buffer has room for {cells} cells, but the last one lands at {need}"
        )));
    }
    let mut axes: Vec<(u64, u64)> = target
        .strides()
        .iter()
        .copied()
        .zip(shape.iter().copied())
        .filter(|(_, n)| *n > 1)
        .collect();
    axes.sort_unstable();
    let mut reach = 1;
    for (stride, side) in axes {
        if stride < reach {
            return Err(Error::invalid(
                "the strides make cells of the result overlap",
            ));
        }
        reach = stride.saturating_mul(side - 1).saturating_add(reach);
    }
    Ok(())
}
