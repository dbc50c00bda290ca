//! Files.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::PathBuf;
use std::sync::Arc;

use hyperslab::Result;

use super::closed;
use crate::abi::{
    DONE, FileClass, FileGetName, FileSpecific, Herr, Hid, Opaque, Optional, Ptr, Req, Single,
};
use crate::guard::{done, guarded, told};
use crate::library::is_asked_for;
use crate::native::Native;
use crate::object::{Object, file_of, under};
use crate::remote::{Asked, RemoteFile, session};

pub(crate) const fn class<const S: usize>() -> FileClass {
    FileClass {
        create: create::<S>,
        open: open::<S>,
        get: get::<S>,
        specific: specific::<S>,
        optional: optional::<S>,
        close: close::<S>,
    }
}

/// What asks for the access properties of a file (`H5VL_FILE_GET_FAPL`).
const FILE_ACCESS: c_int = 1;

/// A name of a file: where it leads to, if that is a store, and the settings.
struct Named {
    name: String,
    url: Option<String>,
    settings: String,
}

/// What a name says; `None` if it is no text, which names of files in stores are, or if the program reads
/// the file by a driver of its own.
///
/// # Safety
/// `name` ends with a zero, and the list is open.
unsafe fn named(native: Native, name: *const c_char, access: Hid) -> Result<Option<Named>> {
    // SAFETY: the caller says so.
    let Ok(name) = unsafe { CStr::from_ptr(name) }.to_str() else {
        return Ok(None);
    };
    // SAFETY: the list is open; the answer is not ours to release.
    let driver = unsafe { (native.library.api.H5Pget_driver)(access) };
    if native.library.is_foreign_driver(driver) {
        // The name of such a file is not where it is.
        return Ok(None);
    }
    let settings = native.config(access);
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let (config, _) = session(&settings)?;
    Ok(Some(Named {
        name: name.to_owned(),
        url: config.names.url(name, &folder),
        settings,
    }))
}

/// The name of a file, the URL that it leads to, and the settings; `None` if it is a local one.
///
/// # Safety
/// As for [`named`].
unsafe fn remote(
    native: Native,
    name: *const c_char,
    access: Hid,
) -> Result<Option<(String, String, String)>> {
    // SAFETY: the caller says so.
    let named = unsafe { named(native, name, access) }?;
    Ok(named.and_then(|named| Some((named.name, named.url?, named.settings))))
}

/// The file that the engine reads the cells of, if a local one is to be read by it.
///
/// # Safety
/// As for [`named`]; `opened` is the native connector's.
unsafe fn accelerated(
    native: Native,
    (name, flags, access, transfer): (*const c_char, c_uint, Hid, Hid),
    opened: Ptr,
) -> Result<Option<Arc<RemoteFile>>> {
    // SAFETY: the caller says so.
    let Some(named) = unsafe { named(native, name, access) }? else {
        return Ok(None);
    };
    let Some(path) = std::path::absolute(&named.name)
        .ok()
        .filter(|path| path.is_file())
    else {
        return Ok(None);
    };
    let asked = Asked {
        native,
        name: &named.name,
        url: &path.to_string_lossy(),
        flags,
        access,
        transfer,
    };
    asked.accelerated(opened, &named.settings)
}

/// An object for a file in a store that was made or opened.
fn wrapped<const S: usize>(opened: Result<(Arc<RemoteFile>, Ptr)>) -> Ptr {
    told::<S, _>(opened.map(|(file, under)| {
        file.opened(under);
        Object::wrap(under, Some(file))
    }))
}

unsafe extern "C" fn create<const S: usize>(
    name: *const c_char,
    flags: c_uint,
    creation: Hid,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        // SAFETY: the arguments are the caller's.
        match unsafe { remote(native, name, access) } {
            Err(e) => told::<S, Ptr>(Err(e)),
            Ok(Some((name, url, settings))) => {
                let asked = Asked {
                    native,
                    name: &name,
                    url: &url,
                    flags,
                    access,
                    transfer,
                };
                wrapped::<S>(asked.create(creation, &settings))
            }
            Ok(None) => {
                let call = native.file.create;
                // SAFETY: the arguments are the caller's.
                let made = unsafe { call(name, flags, creation, access, transfer, req) };
                Object::wrap(made, None)
            }
        }
    })
}

unsafe extern "C" fn open<const S: usize>(
    name: *const c_char,
    flags: c_uint,
    access: Hid,
    transfer: Hid,
    req: Req,
) -> Ptr {
    guarded::<S, _>(|native| {
        // SAFETY: the arguments are the caller's.
        match unsafe { remote(native, name, access) } {
            Err(e) => told::<S, Ptr>(Err(e)),
            Ok(Some((name, url, settings))) => {
                let asked = Asked {
                    native,
                    name: &name,
                    url: &url,
                    flags,
                    access,
                    transfer,
                };
                wrapped::<S>(asked.open(&settings))
            }
            Ok(None) => {
                let call = native.file.open;
                // SAFETY: the arguments are the caller's.
                unsafe {
                    let opened = call(name, flags, access, transfer, req);
                    if opened.is_null() {
                        return opened;
                    }
                    // A file that the engine cannot read is read by the native connector.
                    let asked = (name, flags, access, transfer);
                    let file = accelerated(native, asked, opened).unwrap_or(None);
                    Object::wrap(opened, file)
                }
            }
        }
    })
}

unsafe extern "C" fn get<const S: usize>(
    file: Ptr,
    args: *mut Opaque,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        // SAFETY: the arguments are the caller's, with the native object in place of ours.
        unsafe {
            if (*args).op == FileGetName::OP
                && let Some(remote) = file_of(file)
                && let Some(shown) = remote.shown_name()
            {
                return name_of(shown, &mut *args.cast::<FileGetName>());
            }
            let status = (native.file.get)(under(file), args, transfer, req);
            if status >= 0
                && (*args).op == FILE_ACCESS
                && let Some(remote) = file_of(file).filter(|remote| !remote.is_local())
            {
                native.restore((*args.cast::<Single>()).value.id, remote.bounds);
            }
            status
        }
    })
}

/// Tells a name, as much of it as there is room for.
///
/// # Safety
/// There is as much room as is said.
unsafe fn name_of(name: &str, args: &mut FileGetName) -> Herr {
    // SAFETY: the caller says so.
    unsafe {
        if !args.buffer.is_null() && args.room > 0 {
            let length = name.len().min(args.room - 1);
            std::ptr::copy_nonoverlapping(name.as_ptr(), args.buffer.cast(), length);
            *args.buffer.add(length) = 0;
        }
        *args.length = name.len();
    }
    DONE
}

unsafe extern "C" fn specific<const S: usize>(
    file: Ptr,
    args: *mut FileSpecific,
    transfer: Hid,
    req: Req,
) -> Herr {
    guarded::<S, _>(|native| {
        let call = native.file.specific;
        // SAFETY: as in `get`; which of the arguments are there, the operation says. The second file of
        // a comparison is one of ours, and so must be one that is opened again.
        unsafe {
            let inside = under(file);
            match (*args).op {
                FileSpecific::IS_EQUAL => {
                    let ours = (*args).args.equal.other;
                    (*args).args.equal.other = under(ours);
                    let status = call(inside, args, transfer, req);
                    (*args).args.equal.other = ours;
                    status
                }
                FileSpecific::REOPEN => {
                    let status = call(inside, args, transfer, req);
                    let opened = (*args).args.reopen;
                    if status >= 0 && !opened.is_null() {
                        if let Some(remote) = file_of(file) {
                            remote.opened(*opened);
                        }
                        *opened = Object::wrap(*opened, file_of(file));
                    }
                    status
                }
                FileSpecific::FLUSH => match flushed(native, file, transfer) {
                    Some(result) => done::<S>(result),
                    None => call(inside, args, transfer, req),
                },
                // libhdf5 asks every plug-in about files that it cannot open itself, and where nobody
                // asked for us it would take us for the native connector.
                FileSpecific::IS_ACCESSIBLE if !is_asked_for() => {
                    *(*args).args.named.accessible = false;
                    DONE
                }
                FileSpecific::IS_ACCESSIBLE | FileSpecific::DELETE => {
                    let named = (*args).args.named;
                    match remote(native, named.name, named.access) {
                        Err(e) => done::<S>(Err(e)),
                        Ok(None) => call(inside, args, transfer, req),
                        Ok(Some((name, url, settings))) => {
                            let asked = Asked {
                                native,
                                name: &name,
                                url: &url,
                                flags: 0,
                                access: named.access,
                                transfer,
                            };
                            done::<S>(match (*args).op {
                                FileSpecific::DELETE => asked.delete(&settings),
                                _ => asked.accessible(&settings).map(|found| {
                                    *named.accessible = found;
                                }),
                            })
                        }
                    }
                }
                _ => call(inside, args, transfer, req),
            }
        }
    })
}

/// Writes what was changed in the file of an object; `None` if that is local.
///
/// # Safety
/// The object is one of ours, and is a file.
unsafe fn flushed(native: Native, object: Ptr, transfer: Hid) -> Option<Result<()>> {
    // SAFETY: the caller says so.
    let (remote, inside) = unsafe { (file_of(object)?, under(object)) };
    Some(remote.flush(native, inside, transfer))
}

hand_on!(optional, file(args: *mut Optional));

unsafe extern "C" fn close<const S: usize>(file: Ptr, transfer: Hid, req: Req) -> Herr {
    guarded::<S, _>(|native| {
        // SAFETY: as in `get`; nobody uses a closed object.
        unsafe {
            // A program is told once that its file cannot be written, and has it still; what it does
            // not save by then is lost when it closes it again.
            if let Some(remote) = file_of(file)
                && !remote.is_given_up()
                && let Err(e) = remote.flush(native, under(file), transfer)
            {
                remote.give_up();
                return done::<S>(Err(e));
            }
            let status = (native.file.close)(under(file), transfer, req);
            if let Some(remote) = file_of(file).filter(|_| status >= 0) {
                remote.closed(under(file));
            }
            closed(file, status)
        }
    })
}
