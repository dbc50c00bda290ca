//! Datasets.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use hyperslab::{Error, Result};
use smallvec::SmallVec;

use super::{chunks, closed};
use crate::abi::{
    DONE, DatasetClass, Herr, Hid, Location, Optional, Ptr, Req, Single, dataset_get,
    dataset_specific,
};
use crate::convert::Types;
use crate::guard::{done, guarded, told};
use crate::native::Native;
use crate::object::{Object, file_of, under};
use crate::remote::Dataset;
use crate::space::{ALL, Places, Space};

pub(crate) const fn class<const S: usize>() -> DatasetClass {
    DatasetClass {
        create: create::<S>,
        open: open::<S>,
        read: read::<S>,
        write: write::<S>,
        get: get::<S>,
        specific: specific::<S>,
        optional: optional::<S>,
        close: close::<S>,
    }
}

#[allow(clippy::too_many_arguments)] // as the interface has it
unsafe extern "C" fn create<const S: usize>(
    object: Ptr,
    at: *const Location,
    name: *const c_char,
    link: Hid,
    datatype: Hid,
    space: Hid,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        // SAFETY: the arguments are the caller's, with the native object in place of ours.
        let (made, file) = unsafe {
            let call = native.dataset.create;
            let made = call(
                under(object),
                at,
                name,
                link,
                datatype,
                space,
                creation,
                access,
                transfer,
                req,
            );
            (made, file_of(object))
        };
        if let Some(file) = file.as_ref().filter(|_| !made.is_null())
            && let Err(e) = file.made(native, made, transfer)
        {
            // SAFETY: it was just made, and nobody else has it.
            unsafe { (native.dataset.close)(made, transfer, req) };
            return told::<S, Ptr>(Err(e));
        }
        Object::wrap(made, file)
    })
}

open!(dataset);

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
struct Move<'a> {
    selection: hyperslab::Selection,
    count: usize,
    places: Places,
    types: Types<'a>,
}

impl One {
    /// # Safety
    /// The dataset is one of ours, and the identifiers are open.
    unsafe fn look<'a>(
        &self,
        native: &'a Native,
        dataset: &Dataset,
        file_type: Hid,
        transfer: Hid,
    ) -> Result<Move<'a>> {
        let library = native.library;
        let types = Types::new(library, file_type, self.memory, transfer)?;
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
        })
    }

    /// # Safety
    /// As for [`One::look`]; the buffer has room for what is selected of it.
    unsafe fn read(
        &self,
        native: Native,
        dataset: &Dataset,
        transfer: Hid,
        buffer: Ptr,
    ) -> Result<()> {
        // SAFETY: the dataset is one of ours.
        let native_object = unsafe { under(self.dataset) };
        let file_type = native.of_dataset(native_object, dataset_get::DATATYPE, transfer)?;
        // SAFETY: the caller says so.
        let moved = unsafe { self.look(&native, dataset, file_type.get(), transfer) }?;
        if moved.count == 0 {
            return Ok(());
        }
        let bytes = moved.count * moved.types.file_bytes;
        if moved.types.same
            && let Some((offset, length)) = moved.places.single()
            && length == bytes
        {
            // SAFETY: the caller says so.
            let out =
                unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>().add(offset), length) };
            return dataset.read(&moved.selection, out);
        }
        let mut cells = vec![0; bytes];
        dataset.read(&moved.selection, &mut cells)?;
        // SAFETY: the caller says so.
        unsafe { moved.types.deliver(&cells, &moved.places, buffer) }
    }

    /// # Safety
    /// As for [`One::read`].
    unsafe fn write(
        &self,
        native: Native,
        dataset: &Dataset,
        transfer: Hid,
        buffer: *const c_void,
    ) -> Result<()> {
        // SAFETY: the dataset is one of ours.
        let native_object = unsafe { under(self.dataset) };
        let file_type = native.of_dataset(native_object, dataset_get::DATATYPE, transfer)?;
        // SAFETY: the caller says so.
        let moved = unsafe { self.look(&native, dataset, file_type.get(), transfer) }?;
        if moved.count == 0 {
            return Ok(());
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
        dataset.write(&moved.selection, cells)
    }
}

#[allow(clippy::too_many_arguments)] // as the interface has it
unsafe extern "C" fn read<const S: usize>(
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
        for i in 0..count {
            // SAFETY: the arguments are the caller's, with native objects in place of ours.
            let status = unsafe {
                let one = one(i, datasets, memory, memory_spaces, spaces);
                match Object::of(one.dataset).cells(native, transfer) {
                    Err(e) => done::<S>(Err(e)),
                    Ok(Some((_, dataset))) => {
                        done::<S>(one.read(native, dataset, transfer, *buffers.add(i)))
                    }
                    Ok(None) => (native.dataset.read)(
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

#[allow(clippy::too_many_arguments)] // as the interface has it
unsafe extern "C" fn write<const S: usize>(
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
                match object.cells(native, transfer) {
                    Err(e) => done::<S>(Err(e)),
                    Ok(Some((file, dataset))) => done::<S>(
                        file.check_writable()
                            .and_then(|()| one.write(native, dataset, transfer, *buffers.add(i)))
                            .and_then(|()| file.relieve(native, object.under, transfer)),
                    ),
                    Ok(None) => (native.dataset.write)(
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

/// The cells of a dataset in a store.
///
/// # Safety
/// The dataset is one of ours.
unsafe fn cells(native: Native, dataset: Ptr, transfer: Hid) -> Result<Option<Arc<Dataset>>> {
    // SAFETY: the caller says so.
    let found = unsafe { Object::of(dataset) }.cells(native, transfer)?;
    Ok(found.map(|(_, dataset)| dataset.clone()))
}

unsafe extern "C" fn get<const S: usize>(
    dataset: Ptr,
    args: *mut Single,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        // SAFETY: as in `create`; what the answer is, the operation says.
        unsafe {
            if matches!((*args).op, dataset_get::STATUS | dataset_get::STORAGE) {
                match cells(native, dataset, transfer) {
                    Err(e) => return done::<S>(Err(e)),
                    Ok(Some(cells)) => {
                        return done::<S>(stored(&cells, &mut *args));
                    }
                    Ok(None) => {}
                }
            }
            (native.dataset.get)(under(dataset), args, transfer, req)
        }
    })
}

/// Answers how much room a dataset takes.
///
/// # Safety
/// The operation is one of the two that ask for that.
unsafe fn stored(dataset: &Dataset, args: &mut Single) -> Result<()> {
    let (bytes, whole) = dataset.stored()?;
    // SAFETY: the answer goes where the caller says: a length, or one of three numbers.
    unsafe {
        if args.op == dataset_get::STORAGE {
            *args.value.pointer.cast::<u64>() = bytes;
        } else {
            // Nothing, a part or all is allocated (`H5D_space_status_t`).
            *args.value.pointer.cast::<i32>() = match (bytes, whole) {
                (0, _) => 0,
                (_, false) => 1,
                (_, true) => 2,
            };
        }
    }
    Ok(())
}

unsafe extern "C" fn specific<const S: usize>(
    dataset: Ptr,
    args: *mut Single,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        // SAFETY: as in `create`; what the argument is, the operation says.
        unsafe {
            let op = (*args).op;
            let status = (native.dataset.specific)(under(dataset), args, transfer, req);
            if status < 0 || Object::of(dataset).file.is_none() {
                return status;
            }
            match op {
                dataset_specific::SET_EXTENT => done::<S>(resized(native, dataset, transfer)),
                dataset_specific::FLUSH => {
                    let object = Object::of(dataset);
                    done::<S>(match &object.file {
                        Some(file) => file.flush_from(native, object.under, transfer),
                        None => Ok(()),
                    })
                }
                _ => status,
            }
        }
    })
}

/// Gives an array the shape that its dataset has got.
///
/// # Safety
/// The dataset is one of ours.
unsafe fn resized(native: Native, dataset: Ptr, transfer: Hid) -> Result<()> {
    // SAFETY: the caller says so.
    let object = unsafe { Object::of(dataset) };
    if let Some((file, cells)) = object.cells(native, transfer)? {
        let space = native.of_dataset(object.under, dataset_get::SPACE, transfer)?;
        file.touch();
        cells.resize(&Space::new(native.library, space.get()).dims()?)?;
    }
    Ok(())
}

unsafe extern "C" fn optional<const S: usize>(
    dataset: Ptr,
    args: *mut Optional,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        // SAFETY: as in `create`; what the arguments are, the operation says.
        unsafe {
            let object = Object::of(dataset);
            match object.cells(native, transfer) {
                Err(e) => return done::<S>(Err(e)),
                // The index of an ordinary file tells where its chunks are.
                Ok(Some((file, cells))) if !file.is_in_place() => {
                    let writes = chunks::writes(&*args);
                    if writes && let Err(e) = file.check_writable() {
                        return done::<S>(Err(e));
                    }
                    let operated = chunks::operate(native.library, cells, &mut *args);
                    if let Some(result) = operated {
                        if writes {
                            file.touch();
                        }
                        return done::<S>(result);
                    }
                }
                Ok(_) => {}
            }
            (native.dataset.optional)(under(dataset), args, transfer, req)
        }
    })
}

close!(dataset);
