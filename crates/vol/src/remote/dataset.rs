//! A dataset whose cells are in an array of a store, or in a file that lies there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyperslab::format::hdf5::FileArray;
use hyperslab::{
    Array, ArrayMeta, ArraySpec, CopyOptions, Error, Region, Result, Selection, Session, Shape,
    StorePolicy, block_on, copy_array,
};

use serde_json::Value;

use super::changed::{Changed, pasted};
use super::file::changes;
use super::texts::Texts;

/// Chunks that are written at a time.
const CONCURRENT: usize = 16;

/// A dataset.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// How its elements become cells.
    described: FileArray,
    /// Cells of an element that is an array itself, in the dimensions after those of the dataset.
    inner: Vec<u64>,
    /// It is put together from others, as they were after so many changes.
    put_together: Option<u64>,
    /// Its cells were brought into the hierarchy.
    is_home: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    /// What the array is, or is to be.
    pub(super) meta: ArrayMeta,
    /// The array, once there is one.
    pub(super) array: Option<Array>,
    /// Chunks that wait to be written. Those of a dataset of texts hold the numbers of texts.
    pub(super) changed: Changed,
    /// Texts of chunks that wait to be written.
    pub(super) texts: Texts,
    /// If the shape was changed since the array was written: the cells of the array within this one are
    /// still there, and no others.
    pub(super) kept: Option<Shape>,
}

impl State {
    /// The part of a box whose cells are in the array.
    pub(super) fn stored_part(&self, region: &Region) -> Option<Region> {
        match &self.kept {
            Some(kept) => region.intersect(&Region::whole(kept)),
            None => Some(region.clone()),
        }
    }

    /// True if all cells of a selection that nobody changed are in the array.
    pub(super) fn has_all(&self, selection: &Selection) -> bool {
        let Some(kept) = &self.kept else {
            return true;
        };
        let around = selection.bounding(&self.meta.shape);
        around.is_none_or(|around| Region::whole(kept).contains(&around))
    }

    /// The chunks, of those that are stored, that the dataset still has.
    pub(super) fn inside(&self, stored: Vec<(Vec<u64>, u64)>) -> Vec<(Vec<u64>, u64)> {
        let Some(kept) = &self.kept else {
            return stored;
        };
        let unit = &self.meta.chunk_shape;
        let begins = |index: &[u64]| {
            let mut dims = index.iter().zip(unit.iter()).zip(kept.iter());
            dims.all(|((at, side), most)| at * side < *most)
        };
        let mut stored = stored;
        stored.retain(|(index, _)| begins(index));
        stored
    }

    /// A selection as the array understands it, whose shape may be another one.
    pub(super) fn explicit(&self, selection: &Selection) -> Selection {
        match (selection, &self.kept) {
            (Selection::All, Some(_)) => Selection::region(&Region::whole(&self.meta.shape)),
            _ => selection.clone(),
        }
    }
}

impl Dataset {
    /// A dataset that is new, and has no cells as yet.
    pub(crate) fn new(described: FileArray) -> Result<Self> {
        let meta = ArraySpec::like(&described.meta)?.build(&StorePolicy::CLOUD)?;
        Self::with(described, None, meta)
    }

    /// A dataset that is put together from others.
    pub(crate) fn of_others(described: FileArray, array: Array) -> Result<Self> {
        // Before their cells are looked at: what changes from now on is not in them.
        let changes = changes();
        let mut dataset = Self::of_array(described, array)?;
        dataset.put_together = Some(changes);
        Ok(dataset)
    }

    /// True if it is put together from others.
    pub(crate) fn is_virtual(&self) -> bool {
        self.put_together.is_some()
    }

    /// True if its elements are texts of any length.
    pub(crate) fn is_text(&self) -> bool {
        self.described.is_text()
    }

    /// False if it has to be looked up anew.
    pub(crate) fn is_current(&self) -> bool {
        let changed = self.put_together.is_some_and(|known| known != changes());
        !changed && !self.is_home.load(Ordering::Relaxed)
    }

    /// Notes that its cells are in the hierarchy from now on.
    pub(super) fn has_come_home(&self) {
        self.is_home.store(true, Ordering::Relaxed);
    }

    /// A dataset whose cells are in an array.
    pub(crate) fn of_array(described: FileArray, array: Array) -> Result<Self> {
        let meta = ArrayMeta::clone(&array.meta());
        Self::with(described, Some(array), meta)
    }

    /// A dataset whose cells are in an array that has more of them.
    pub(crate) fn within_array(described: FileArray, array: Array) -> Result<Self> {
        let shape = described.meta.shape.clone();
        let mut meta = ArrayMeta::clone(&array.meta());
        meta.shape = shape.clone();
        let dataset = Self::with(described, Some(array), meta)?;
        dataset.lock().kept = Some(shape);
        Ok(dataset)
    }

    fn with(described: FileArray, array: Option<Array>, meta: ArrayMeta) -> Result<Self> {
        let rank = described.meta.shape.rank();
        let inner = described.meta.shape[rank - described.inner_dims()..].to_vec();
        let fill = described.meta.fill.bytes();
        let changed = match described.is_text() {
            true => Changed::new(meta.grid()?, &Texts::FILL),
            false => Changed::new(meta.grid()?, fill),
        };
        Ok(Dataset {
            inner,
            put_together: None,
            is_home: AtomicBool::new(false),
            state: Mutex::new(State {
                meta,
                array,
                changed,
                texts: Texts::new(fill),
                kept: None,
            }),
            described,
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A state is changed in one step, so what a panic leaves behind is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shape of the array, which has the dimensions of elements too, and those.
    pub(crate) fn shape(&self) -> (Shape, &[u64]) {
        (self.lock().meta.shape.clone(), &self.inner)
    }

    /// Reads elements as the file has them, packed.
    pub(crate) fn read(&self, selection: &Selection, out: &mut [u8]) -> Result<()> {
        self.read_cells(selection, out)?;
        self.described.swap(out);
        Ok(())
    }

    /// Turns cells into elements as the file has them.
    pub(crate) fn swap(&self, cells: &mut [u8]) {
        self.described.swap(cells);
    }

    /// The array that has all cells, if none wait to be written.
    pub(crate) fn settled(&self) -> Option<Array> {
        let state = self.lock();
        let settled = state.changed.is_empty() && state.kept.is_none();
        state.array.clone().filter(|_| settled)
    }

    pub(super) fn read_cells(&self, selection: &Selection, out: &mut [u8]) -> Result<()> {
        let state = self.lock();
        let array = match &state.array {
            // Nothing of the array would be seen.
            Some(_) if !state.changed.is_empty() && state.changed.covers(selection)? => None,
            array => array.clone(),
        };
        match array {
            Some(_) if !state.has_all(selection) => {
                let load = |region: &Region| self.load(&state, region);
                return state.changed.read_through(selection, out, load);
            }
            Some(array) => {
                let explicit = state.explicit(selection);
                if state.changed.is_empty() {
                    // Others may read at the same time.
                    drop(state);
                    return array.read_into(&explicit, out);
                }
                array.read_into(&explicit, out)?;
            }
            None => fill(out, self.described.meta.fill.bytes()),
        }
        state.changed.overlay(selection, out)
    }

    /// The cells of a box that are in the array, with the fill value where others are; `None` if there
    /// are none.
    fn load(&self, state: &State, region: &Region) -> Result<Option<Vec<u8>>> {
        let (Some(array), Some(inside)) = (&state.array, state.stored_part(region)) else {
            return Ok(None);
        };
        let cells = block_on(array.read(&Selection::region(&inside)))?;
        let fill = self.described.meta.fill.bytes();
        pasted(region, &inside, &cells, fill).map(Some)
    }

    /// Changes elements, which are as the file has them, packed; they are written later.
    pub(crate) fn write(&self, selection: &Selection, mut cells: Vec<u8>) -> Result<()> {
        self.described.swap(&mut cells);
        self.write_cells(selection, &cells)
    }

    pub(super) fn write_cells(&self, selection: &Selection, cells: &[u8]) -> Result<()> {
        self.check_own()?;
        let mut state = self.lock();
        let mut changed = state.changed.taken();
        let written = changed.write(selection, cells, |region| self.load(&state, region));
        state.changed = changed;
        written
    }

    /// An error unless its cells are its own.
    pub(super) fn check_own(&self) -> Result<()> {
        match self.is_virtual() {
            true => Err(Error::invalid(
                "a virtual dataset in a store can only be read; write to its sources",
            )),
            false => Ok(()),
        }
    }

    /// The sides of an element that is an array itself.
    pub(super) fn inner(&self) -> &[u64] {
        &self.inner
    }

    /// The dataset as it would be in a file.
    pub(super) fn meta(&self) -> &ArrayMeta {
        &self.described.meta
    }

    /// Bytes of chunks that wait to be written.
    pub(crate) fn waiting(&self) -> u64 {
        let state = self.lock();
        state.changed.bytes() + state.texts.bytes()
    }

    /// Changes the shape of the dataset.
    pub(crate) fn resize(&self, dims: &[u64]) -> Result<()> {
        let mut sides = dims.to_vec();
        sides.extend(&self.inner);
        let mut state = self.lock();
        let mut meta = state.meta.clone();
        meta.shape = Shape::new(sides.iter().copied())?;
        let grid = meta.grid()?;
        state.changed.resize(grid)?;
        // The array follows with the next flush; what is cut off now is gone even if it grows again.
        if state.array.is_some() {
            let before = state.kept.as_ref().unwrap_or(&state.meta.shape);
            let least = before.iter().zip(meta.shape.iter());
            state.kept = Some(Shape::new(least.map(|(a, b)| *a.min(b)))?);
        }
        state.meta = meta;
        Ok(())
    }

    /// Moves the array, if there is one, to another URL.
    pub(super) fn move_to(&self, session: &Session, url: &str) -> Result<()> {
        let mut state = self.lock();
        if let Some(array) = &state.array {
            state.array = Some(carry(session, array, url)?);
        }
        Ok(())
    }

    /// Writes what was changed to the array at a URL, which is made if there is none; what lies there is
    /// removed first if there may be something.
    pub(crate) fn flush(&self, session: &Session, url: &str, may_have_rests: bool) -> Result<()> {
        let mut state = self.lock();
        // Where it is now: one that is carried elsewhere has no metadata there yet.
        if let (Some(array), Some(kept)) = (&state.array, &state.kept) {
            block_on(async {
                for shape in [kept, &state.meta.shape] {
                    if array.shape() != *shape {
                        array.resize(shape).await?;
                    }
                }
                Ok::<_, Error>(())
            })?;
            state.kept = None;
        }
        let array = match &state.array {
            Some(array) if array.url() == url => array.clone(),
            Some(array) => carry(session, array, url)?,
            None => block_on(async {
                if may_have_rests {
                    session.sweep(url).await?;
                }
                session.adopt(url, state.meta.clone()).await
            })?,
        };
        state.array = Some(array.clone());
        if state.changed.is_empty() {
            return Ok(());
        }
        let boxes = state.changed.boxes()?;
        let (is_text, texts) = (self.is_text(), &state.texts);
        block_on(async {
            let writes = boxes.into_iter().map(|(region, cells)| {
                let array = array.clone();
                async move {
                    let selection = Selection::region(&region);
                    match is_text {
                        true => array.write_strings(&selection, texts.of(&cells)).await,
                        false => array.write(&selection, cells).await,
                    }
                }
            });
            stream::iter(writes)
                .buffer_unordered(CONCURRENT)
                .try_collect::<()>()
                .await
        })?;
        state.changed.clear();
        state.texts.clear();
        Ok(())
    }

    /// The metadata of its array, with what the hierarchy says of the dataset.
    pub(crate) fn json(&self, said: &ArrayMeta) -> Value {
        let mut meta = self.lock().meta.clone();
        meta.attributes.clone_from(&said.attributes);
        meta.dimension_names.clone_from(&said.dimension_names);
        meta.to_json()
    }

    /// Bytes that its cells take in the store, and whether all of its chunks are there. Chunks that wait
    /// to be written count as they are.
    pub(crate) fn stored(&self) -> Result<(u64, bool)> {
        let state = self.lock();
        let waiting = state.changed.bytes();
        let Some(array) = &state.array else {
            return Ok((waiting, false));
        };
        let chunks = state.inside(block_on(array.chunk_objects())?);
        let bytes: u64 = chunks.iter().map(|(_, bytes)| bytes).sum();
        let all = state.meta.grid()?.num_chunks();
        Ok((bytes + waiting, chunks.len() as u64 >= all))
    }
}

/// Moves the cells of an array to another URL; those that were there stay until they are removed.
pub(crate) fn carry(session: &Session, from: &Array, url: &str) -> Result<Array> {
    block_on(async {
        session.sweep(url).await?;
        let to = session.adopt(url, ArrayMeta::clone(&from.meta())).await?;
        copy_array(from, &to, &CopyOptions::default(), &()).await?;
        Ok(to)
    })
}

fn fill(out: &mut [u8], value: &[u8]) {
    if value.iter().all(|byte| *byte == 0) {
        out.fill(0);
        return;
    }
    for cell in out.chunks_exact_mut(value.len()) {
        cell.copy_from_slice(value);
    }
}
