//! Objects that libhdf5 holds for programs: those of the native connector, and what is known of them.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, OnceLock};

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
    /// Its cells, if it is a dataset whose cells are in a store; looked up when they are needed.
    dataset: OnceLock<Option<Arc<Dataset>>>,
}

impl Object {
    /// Hands an object of the native connector's to libhdf5 as ours; null stays null.
    pub(crate) fn wrap(under: Ptr, file: Option<Arc<RemoteFile>>) -> Ptr {
        match under.is_null() {
            true => ptr::null_mut(),
            false => Box::into_raw(Box::new(Object {
                under,
                file,
                dataset: OnceLock::new(),
            }))
            .cast(),
        }
    }

    /// The cells of a dataset, and the file that it is in; `None` if the native connector has them.
    pub(crate) fn cells(
        &self,
        native: Native,
        transfer: Hid,
    ) -> Result<Option<(&Arc<RemoteFile>, &Arc<Dataset>)>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let found = match self.dataset.get() {
            Some(found) => found,
            None => {
                let found = file.dataset(native, self.under, transfer)?;
                self.dataset.get_or_init(|| found)
            }
        };
        Ok(found.as_ref().map(|dataset| (file, dataset)))
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
