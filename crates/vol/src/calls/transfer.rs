//! Reads and writes of datasets, of several at a time too.
//!
//! What several datasets of files in stores are asked for in one call is one query of the engine.

use std::ffi::c_void;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab::{Error, Query, Result};
use smallvec::SmallVec;

use crate::abi::{DONE, Herr, Hid, Ptr, Req, dataset_get};
use crate::convert::Types;
use crate::guard::{done, guarded};
use crate::native::{Id, Native};
use crate::object::{Object, under};
use crate::remote::Dataset;
use crate::space::{ALL, Places, Space};
use crate::texts::{self, Memory};

/// One dataset of a transfer.
struct One {
    dataset: Ptr,
    memory: Hid,
    memory_space: Hid,
    space: Hid,
}

/// # Safety
/// There are more than `i` of each.
unsafe fn one(
    i: usize,
    datasets: *const Ptr,
    memory: *const Hid,
    memory_spaces: *const Hid,
    spaces: *const Hid,
) -> One {
    // SAFETY: the caller says so.
    unsafe {
        One {
            dataset: *datasets.add(i),
            memory: *memory.add(i),
            memory_space: *memory_spaces.add(i),
            space: *spaces.add(i),
        }
    }
}

/// What the native connector knows datasets by, if all of them are in local files.
///
/// # Safety
/// There are `count` of them, all ours.
unsafe fn all_local(count: usize, datasets: *const Ptr) -> Option<SmallVec<[Ptr; 4]>> {
    let one = |i: usize| {
        // SAFETY: the caller says so.
        let object = unsafe { Object::of(*datasets.add(i)) };
        object.file.is_none().then_some(object.under)
    };
    (0..count).map(one).collect()
}

/// What a transfer moves, once its spaces are looked at.
struct Move {
    selection: hyperslab::Selection,
    count: usize,
    places: Places,
    types: Types<'static>,
    /// What `types` speaks of.
    _file_type: Id,
}

impl Move {
    /// Elements of texts that were read, in a program's memory.
    ///
    /// # Safety
    /// The program's memory has room for what is selected of it.
    unsafe fn deliver_texts(&self, texts: &[Bytes], memory: Memory, buffer: Ptr) -> Result<()> {
        let elements = texts::give(texts, memory)?;
        // SAFETY: the caller says so. What was converted is made anew, so ours are freed.
        unsafe {
            let delivered = self.types.deliver(&elements, &self.places, buffer);
            if !self.types.same || delivered.is_err() {
                texts::release(&elements, memory);
            }
            delivered
        }
    }

    /// The texts in a program's memory.
    ///
    /// # Safety
    /// What is selected of the program's memory are elements of its type.
    unsafe fn collect_texts(&self, memory: Memory, buffer: *const c_void) -> Result<Vec<Bytes>> {
        // SAFETY: the caller says so. What was converted was made for this, and is freed.
        unsafe {
            let collected = self
                .types
                .collect(self.count, &self.places, buffer, Vec::new());
            let elements = collected?;
            Ok(match self.types.same {
                true => texts::look(&elements),
                false => texts::take(&elements, memory),
            })
        }
    }

    /// Where all elements lie in a program's memory, if they lie there in one piece and as in the file.
    fn in_place(&self) -> Option<usize> {
        let bytes = self.count * self.types.file_bytes;
        let (offset, length) = self.places.single()?;
        (self.types.same && length == bytes).then_some(offset)
    }
}

impl One {
    /// # Safety
    /// The dataset is one of ours, and the identifiers are open.
    unsafe fn look(&self, native: Native, dataset: &Dataset, transfer: Hid) -> Result<Move> {
        let library = native.library;
        // SAFETY: the dataset is one of ours.
        let inside = unsafe { under(self.dataset) };
        let file_type = native.of_dataset(inside, dataset_get::DATATYPE, transfer)?;
        let types = Types::new(library, file_type.get(), self.memory, transfer)?;
        let (shape, inner) = dataset.shape();
        let outer: u64 = shape[..shape.rank() - inner.len()].iter().product();
        let (selection, count) = match self.space {
            ALL => (hyperslab::Selection::All, outer),
            id => {
                let space = Space::new(library, id);
                (space.selection(&shape, inner)?, space.selected()?)
            }
        };
        let count = usize::try_from(count).map_err(|_| Error::invalid("too many are selected"))?;
        let cell = types.memory_bytes;
        let places = match (self.memory_space, self.space) {
            (ALL, ALL) => Places::packed(count * cell),
            // Memory looks like the dataset.
            (ALL, id) | (id, _) => {
                let space = Space::new(library, id);
                if space.selected()? != count as u64 {
                    return Err(Error::invalid(
                        "the selections in the file and in memory have different numbers of elements",
                    ));
                }
                space.places(cell)?
            }
        };
        Ok(Move {
            selection,
            count,
            places,
            types,
            _file_type: file_type,
        })
    }

    /// Changes elements; false if they cannot be in an array, and nothing was changed.
    ///
    /// # Safety
    /// As for [`One::look`]; the buffer has room for what is selected of it.
    unsafe fn write(
        &self,
        native: Native,
        dataset: &Dataset,
        transfer: Hid,
        buffer: *const c_void,
    ) -> Result<bool> {
        // SAFETY: the caller says so.
        let moved = unsafe { self.look(native, dataset, transfer) }?;
        if moved.count == 0 {
            return Ok(true);
        }
        if dataset.is_text() {
            // SAFETY: the caller says so.
            let texts = unsafe { moved.collect_texts(native.memory(transfer), buffer) }?;
            // Texts of Zarr are UTF-8; those of HDF5 may be anything.
            let fit = texts.iter().all(|text| std::str::from_utf8(text).is_ok());
            if fit {
                dataset.write_texts(&moved.selection, texts)?;
            }
            return Ok(fit);
        }
        let mut present = Vec::new();
        if moved.types.partial && !moved.types.same {
            present = vec![0; moved.count * moved.types.file_bytes];
            dataset.read(&moved.selection, &mut present)?;
        }
        // SAFETY: the caller says so.
        let cells = unsafe {
            moved
                .types
                .collect(moved.count, &moved.places, buffer, present)
        }?;
        dataset.write(&moved.selection, cells)?;
        Ok(true)
    }
}

/// A read of one dataset, and where its elements go.
struct Reading {
    dataset: Arc<Dataset>,
    moved: Move,
    buffer: Ptr,
    /// Where they go first, if that is not the program's memory.
    cells: Option<Vec<u8>>,
}

impl Reading {
    fn new(dataset: Arc<Dataset>, moved: Move, buffer: Ptr) -> Reading {
        let bytes = moved.count * moved.types.file_bytes;
        let cells = moved.in_place().is_none().then(|| vec![0; bytes]);
        Reading {
            dataset,
            moved,
            buffer,
            cells,
        }
    }

    /// Where the elements go first.
    ///
    /// # Safety
    /// The buffer has room for what is selected of it, and nobody else uses it.
    unsafe fn out(&mut self) -> &mut [u8] {
        match &mut self.cells {
            Some(cells) => cells,
            None => {
                let offset = self.moved.in_place().unwrap_or_default();
                let bytes = self.moved.count * self.moved.types.file_bytes;
                // SAFETY: the caller says so.
                unsafe {
                    std::slice::from_raw_parts_mut(self.buffer.cast::<u8>().add(offset), bytes)
                }
            }
        }
    }

    /// Elements that were read elsewhere go to the program's memory.
    ///
    /// # Safety
    /// As for [`Reading::out`].
    unsafe fn deliver(&self) -> Result<()> {
        match &self.cells {
            // SAFETY: the caller says so.
            Some(cells) => unsafe {
                let moved = &self.moved;
                moved.types.deliver(cells, &moved.places, self.buffer)
            },
            None => Ok(()),
        }
    }
}

/// Reads elements of several datasets: those of which nothing waits to be written, as one query.
///
/// # Safety
/// As for [`Reading::out`], for all of them.
unsafe fn read_all(readings: &mut [Reading]) -> Result<()> {
    if let [one] = readings {
        let (dataset, selection) = (one.dataset.clone(), one.moved.selection.clone());
        // SAFETY: the caller says so.
        dataset.read(&selection, unsafe { one.out() })?;
    } else {
        let mut query = Query::new();
        let mut outs = Vec::new();
        let mut session = None;
        for reading in readings.iter_mut() {
            let (dataset, selection) = (reading.dataset.clone(), reading.moved.selection.clone());
            // SAFETY: the caller says so.
            let out = unsafe { reading.out() };
            match dataset.settled() {
                Some(array) => {
                    query = query.with(&array, selection);
                    session.get_or_insert_with(|| array.session().clone());
                    outs.push((dataset, out));
                }
                None => dataset.read(&selection, out)?,
            }
        }
        if let Some(session) = session {
            let mut buffers: Vec<&mut [u8]> = outs.iter_mut().map(|(_, out)| &mut **out).collect();
            session.read_into(&query, &mut buffers)?;
        }
        for (dataset, out) in outs {
            dataset.swap(out);
        }
    }
    for reading in readings {
        // SAFETY: the caller says so.
        unsafe { reading.deliver() }?;
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)] // as the interface has it
pub(super) unsafe extern "C" fn read<const S: usize>(
    count: usize,
    datasets: *const Ptr,
    memory: *const Hid,
    memory_spaces: *const Hid,
    spaces: *const Hid,
    transfer: Hid,
    buffers: *const Ptr,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        // SAFETY: the arguments are the caller's, with native objects in place of ours.
        if let Some(all) = unsafe { all_local(count, datasets) } {
            // SAFETY: as above.
            return unsafe {
                (native.dataset.read)(
                    count,
                    all.as_ptr(),
                    memory,
                    memory_spaces,
                    spaces,
                    transfer,
                    buffers,
                    req,
                )
            };
        }
        let mut readings = Vec::new();
        for i in 0..count {
            // SAFETY: as above.
            let looked = unsafe {
                let one = one(i, datasets, memory, memory_spaces, spaces);
                let object = Object::of(one.dataset);
                object.cells(native, transfer).and_then(|found| {
                    let Some((_, dataset)) = found else {
                        return Ok(None);
                    };
                    let moved = one.look(native, &dataset, transfer)?;
                    if dataset.is_text() {
                        if moved.count > 0 {
                            let texts = dataset.read_texts(&moved.selection)?;
                            let memory = native.memory(transfer);
                            moved.deliver_texts(&texts, memory, *buffers.add(i))?;
                        }
                        return Ok(Some(None));
                    }
                    Ok(Some(Some(Reading::new(dataset, moved, *buffers.add(i)))))
                })
            };
            let status = match looked {
                Err(e) => done::<S>(Err(e)),
                Ok(Some(reading)) => {
                    readings.extend(reading.filter(|reading| reading.moved.count > 0));
                    DONE
                }
                // SAFETY: as above.
                Ok(None) => unsafe {
                    (native.dataset.read)(
                        1,
                        &under(*datasets.add(i)),
                        memory.add(i),
                        memory_spaces.add(i),
                        spaces.add(i),
                        transfer,
                        buffers.add(i),
                        req,
                    )
                },
            };
            if status < 0 {
                return status;
            }
        }
        // SAFETY: there is room for what is selected, as the interface promises.
        done::<S>(unsafe { read_all(&mut readings) })
    })
}

#[allow(clippy::too_many_arguments)] // as the interface has it
pub(super) unsafe extern "C" fn write<const S: usize>(
    count: usize,
    datasets: *const Ptr,
    memory: *const Hid,
    memory_spaces: *const Hid,
    spaces: *const Hid,
    transfer: Hid,
    buffers: *const *const c_void,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        // SAFETY: the arguments are the caller's, with native objects in place of ours.
        if let Some(all) = unsafe { all_local(count, datasets) } {
            // SAFETY: as above.
            return unsafe {
                (native.dataset.write)(
                    count,
                    all.as_ptr(),
                    memory,
                    memory_spaces,
                    spaces,
                    transfer,
                    buffers,
                    req,
                )
            };
        }
        for i in 0..count {
            // SAFETY: the arguments are the caller's, with native objects in place of ours.
            let status = unsafe {
                let one = one(i, datasets, memory, memory_spaces, spaces);
                let object = Object::of(one.dataset);
                if let Some(file) = &object.file {
                    file.touch();
                }
                let kept = object.cells(native, transfer).and_then(|found| {
                    let Some((file, dataset)) = found else {
                        return Ok(false);
                    };
                    file.check_writable()?;
                    match one.write(native, &dataset, transfer, *buffers.add(i))? {
                        true => file.relieve(native, object.under, transfer)?,
                        false => file.bring_home(native, object.under, transfer)?,
                    }
                    Ok(dataset.is_current())
                });
                match kept {
                    Err(e) => done::<S>(Err(e)),
                    Ok(true) => DONE,
                    Ok(false) => (native.dataset.write)(
                        1,
                        &under(one.dataset),
                        memory.add(i),
                        memory_spaces.add(i),
                        spaces.add(i),
                        transfer,
                        buffers.add(i),
                        req,
                    ),
                }
            };
            if status < 0 {
                return status;
            }
        }
        DONE
    })
}
