//! Datasets.

use std::ffi::c_char;
use std::sync::Arc;

use hyperslab::Result;

use super::aim::{Aim, Last};
use super::{chunks, closed, transfer};
use crate::abi::{
    DatasetClass, Herr, Hid, Location, Optional, Ptr, Req, Single, dataset_get, dataset_specific,
    kind,
};
use crate::guard::{done, guarded, told};
use crate::native::Native;
use crate::object::{Object, file_of, under};
use crate::remote::Dataset;
use crate::space::Space;

pub(crate) const fn class<const S: usize>() -> DatasetClass {
    DatasetClass {
        create: create::<S>,
        open: open::<S>,
        read: transfer::read::<S>,
        write: transfer::write::<S>,
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
            let said = (object, at, name, access);
            let aim = aimed!(S, Aim::by_name(native, said, Last::Stay, transfer));
            let (object, at, name) = aim.named();
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

/// The cells of a dataset in a store.
///
/// # Safety
/// The dataset is one of ours.
unsafe fn cells(native: Native, dataset: Ptr, transfer: Hid) -> Result<Option<Arc<Dataset>>> {
    // SAFETY: the caller says so.
    let found = unsafe { Object::of(dataset) }.cells(native, transfer)?;
    Ok(found.map(|(_, dataset)| dataset))
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
            let status = (native.dataset.get)(under(dataset), args, transfer, req);
            if status >= 0
                && (*args).op == dataset_get::SPACE
                && Space::new(native.library, (*args).value.id)
                    .is_unlimited()
                    .unwrap_or(false)
            {
                return match cells_of_virtual(native, dataset, transfer) {
                    Ok(None) => status,
                    Ok(Some(cells)) => done::<S>(settle(native, (*args).value.id, &cells)),
                    Err(e) => done::<S>(Err(e)),
                };
            }
            status
        }
    })
}

/// The cells of a virtual dataset in a store.
///
/// # Safety
/// The dataset is one of ours.
unsafe fn cells_of_virtual(
    native: Native,
    dataset: Ptr,
    transfer: Hid,
) -> Result<Option<Arc<Dataset>>> {
    // SAFETY: the caller says so.
    let object = unsafe { Object::of(dataset) };
    // What others are is known without looking at their cells.
    match object.file.is_some() && native.is_virtual(object.under, transfer)? {
        // SAFETY: the caller says so.
        true => unsafe { cells(native, dataset, transfer) },
        false => Ok(None),
    }
}

/// Gives a dataspace the sides that a virtual dataset has, which its sources decide.
fn settle(native: Native, space: Hid, dataset: &Dataset) -> Result<()> {
    let (shape, inner) = dataset.shape();
    let dims = &shape[..shape.rank() - inner.len()];
    Space::new(native.library, space).resize(dims)
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
            // Its cells have to be known by the shape that it has now.
            if op == dataset_specific::SET_EXTENT
                && let Err(e) = cells(native, dataset, transfer)
            {
                return done::<S>(Err(e));
            }
            let status = (native.dataset.specific)(under(dataset), args, transfer, req);
            if status < 0 || Object::of(dataset).file.is_none() {
                return status;
            }
            match op {
                dataset_specific::SET_EXTENT => done::<S>(resized(native, dataset, transfer)),
                dataset_specific::FLUSH => {
                    let object = Object::of(dataset);
                    done::<S>(match &object.file {
                        Some(file) => {
                            file.flush_from(native, (object.under, kind::DATASET), transfer)
                        }
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
                    let operated = chunks::operate(native.library, &cells, &mut *args);
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

close!(dataset, kind::DATASET);
