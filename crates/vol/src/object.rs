//! Objects that libhdf5 holds for programs: those of the native connector, and what is known of them.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab::Result;

use crate::abi::{Hid, Ptr};
use crate::native::Native;
use crate::remote::{Dataset, RemoteFile};

/// A file, group, dataset, data type or attribute.
#[derive(Debug)]
pub(crate) struct Object {
    /// The native connector's.
    pub(crate) under: Ptr,
    /// The file that it is in, if that is in a store.
    pub(crate) file: Option<Arc<RemoteFile>>,
    /// It counts as one that a program has open.
    is_counted: bool,
    /// Its cells, if it is a dataset whose cells are in a store; looked up when they are needed.
    dataset: Mutex<Option<Option<Arc<Dataset>>>>,
}

/// The file that a dataset is in, and its cells.
type Cells<'a> = (&'a Arc<RemoteFile>, Arc<Dataset>);

impl Object {
    /// Hands an object of the native connector's to libhdf5 as ours; null stays null.
    pub(crate) fn wrap(under: Ptr, file: Option<Arc<RemoteFile>>) -> Ptr {
        Object::made(under, file, true)
    }

    /// The same for an object that libhdf5 makes for itself.
    pub(crate) fn wrap_uncounted(under: Ptr, file: Option<Arc<RemoteFile>>) -> Ptr {
        Object::made(under, file, false)
    }

    fn made(under: Ptr, file: Option<Arc<RemoteFile>>, is_counted: bool) -> Ptr {
        match under.is_null() {
            true => ptr::null_mut(),
            false => {
                if let Some(file) = file.as_ref().filter(|_| is_counted) {
                    file.one_more();
                }
                let object = Object {
                    under,
                    file,
                    is_counted,
                    dataset: Mutex::new(None),
                };
                Box::into_raw(Box::new(object)).cast()
            }
        }
    }

    /// Writes what was changed in the file of an object that is about to be closed, if it is the last
    /// of that file: a program may close the file before the objects in it.
    pub(crate) fn flush_last(&self, native: Native, kind: c_int, transfer: Hid) -> Result<()> {
        match &self.file {
            Some(file) if file.objects() == 1 && !file.is_given_up() => {
                let flushed = file.flush_from(native, (self.under, kind), transfer);
                flushed.inspect_err(|_| file.give_up())
            }
            _ => Ok(()),
        }
    }

    /// It is given up without being closed; what libhdf5 made for itself was a file.
    pub(crate) fn forgotten(&self) {
        if let Some(file) = self.file.as_ref().filter(|_| !self.is_counted) {
            file.closed(self.under);
        }
    }

    /// The cells of a dataset, and the file that it is in; `None` if the native connector has them.
    pub(crate) fn cells(&self, native: Native, transfer: Hid) -> Result<Option<Cells<'_>>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let mut known = self.dataset.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match &*known {
            Some(found) if found.as_ref().is_none_or(|cells| cells.is_current()) => found.clone(),
            _ => {
                let found = file.dataset(native, self.under, transfer)?;
                known.insert(found).clone()
            }
        };
        Ok(found.map(|dataset| (file, dataset)))
    }

    /// # Safety
    /// `object` was wrapped, and not released.
    pub(crate) unsafe fn of<'a>(object: *const c_void) -> &'a Object {
        // SAFETY: the caller says so.
        unsafe { &*object.cast::<Object>() }
    }

    /// Lets go of an object; what is under it stays as it is.
    ///
    /// # Safety
    /// `object` was wrapped, and not released; nobody uses it any more.
    pub(crate) unsafe fn release(object: Ptr) {
        // SAFETY: the caller says so.
        drop(unsafe { Box::from_raw(object.cast::<Object>()) });
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(file) = self.file.as_ref().filter(|_| self.is_counted) {
            file.one_less();
        }
    }
}

/// What the native connector knows an object by; null stays null.
///
/// # Safety
/// `object` was wrapped and not released, or is null.
pub(crate) unsafe fn under(object: *const c_void) -> Ptr {
    match object.is_null() {
        true => ptr::null_mut(),
        // SAFETY: the caller says so.
        false => unsafe { Object::of(object) }.under,
    }
}

/// The file in a store that an object is in, if it is in one.
///
/// # Safety
/// As for [`under`].
pub(crate) unsafe fn file_of(object: *const c_void) -> Option<Arc<RemoteFile>> {
    match object.is_null() {
        true => None,
        // SAFETY: the caller says so.
        false => unsafe { Object::of(object) }.file.clone(),
    }
}

/// Notes that something in the file of an object was changed, if the call succeeded.
///
/// # Safety
/// As for [`under`].
pub(crate) unsafe fn touch(object: *const c_void, succeeded: bool) {
    if !object.is_null() && succeeded {
        // SAFETY: the caller says so.
        if let Some(file) = &unsafe { Object::of(object) }.file {
            file.touch();
        }
    }
}
