//! Making and opening files that are in stores.
//!
//! Every open of a file in a process leads to one [`RemoteFile`], as every open of its hierarchy leads
//! to one file of the native connector's.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_uint};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use hyperslab::{Error, ErrorKind, Node, Result, Session, Skeleton, block_on};
use hyperslab_bridge::redraw;
use serde_json::Value;

use super::file::{FilePlace, RemoteFile, State};
use crate::abi::{Hid, Ptr};
use crate::config::Config;
use crate::native::Native;

/// Flags of files (`H5F_ACC_*`).
const WRITE: c_uint = 1;
const TRUNCATE: c_uint = 2;
const EXCLUSIVE: c_uint = 4;
const CREATE: c_uint = 16;
/// What stands in for the content of a file that is open already: it is never looked at.
const NO_IMAGE: [u8; 8] = [0; 8];

/// How a program makes or opens a file.
pub(crate) struct Asked<'a> {
    pub(crate) native: Native,
    pub(crate) name: &'a str,
    pub(crate) url: &'a str,
    pub(crate) flags: c_uint,
    pub(crate) access: Hid,
    pub(crate) transfer: Hid,
}

/// Files that are open, by slot and URL.
static OPEN: Mutex<Vec<(usize, String, Weak<RemoteFile>)>> = Mutex::new(Vec::new());
/// Sessions by the text of their settings, each with the process that made it.
static SESSIONS: Mutex<Option<Sessions>> = Mutex::new(None);

type Sessions = HashMap<String, (u32, Arc<Config>, Session)>;

/// The settings in a text, and the session for them. A forked process has one of its own.
pub(crate) fn session(text: &str) -> Result<(Arc<Config>, Session)> {
    let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let sessions = sessions.get_or_insert_default();
    let process = std::process::id();
    if let Some((owner, config, session)) = sessions.get(text)
        && *owner == process
    {
        return Ok((config.clone(), session.clone()));
    }
    let config = Arc::new(Config::parse(text)?);
    let session = Session::new(config.options.clone());
    let made = (process, config.clone(), session.clone());
    sessions.insert(text.to_owned(), made);
    Ok((config, session))
}

/// Writes everything that was changed in the files that a library has open.
pub(super) fn flush_all(native: Native, transfer: Hid) -> Result<()> {
    let slot = native.library.slot();
    let files: Vec<Arc<RemoteFile>> = {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = open.iter().filter(|(other, _, _)| *other == slot);
        ours.filter_map(|(_, _, file)| file.upgrade()).collect()
    };
    let mut files = files.iter();
    files.try_for_each(|file| file.flush_open(native, transfer))
}

impl Asked<'_> {
    fn found(&self) -> Option<Arc<RemoteFile>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, _, file)| file.strong_count() > 0);
        let mut same = open
            .iter()
            .filter(|(slot, url, _)| *slot == self.slot() && url == self.url);
        same.find_map(|(_, _, file)| file.upgrade())
    }

    /// The slot of the library: libraries share nothing.
    fn slot(&self) -> usize {
        self.native.library.slot()
    }

    fn remember(&self, file: RemoteFile) -> Arc<RemoteFile> {
        let file = Arc::new(file);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.push((self.slot(), self.url.to_owned(), Arc::downgrade(&file)));
        file
    }

    /// Makes a file, in place of what is there unless that is forbidden.
    pub(crate) fn create(&self, creation: Hid, config: &str) -> Result<(Arc<RemoteFile>, Ptr)> {
        let (config, session) = session(config)?;
        if let Some(file) = self.found() {
            // The native connector says what is wrong with that.
            let opened = self.native_create(&file.name, creation)?;
            return Ok((file, opened));
        }
        session.claim(self.url)?;
        if self.flags & EXCLUSIVE != 0 && self.exists(&session)? {
            return Err(self.errno(17, "File exists"));
        }
        let opened = self.native_create(self.name, creation)?;
        block_on(session.sweep(self.url))?;
        let file = RemoteFile::new(
            (self.url, self.name, None),
            &session,
            true,
            self.native.bounds(self.access),
            &config,
            FilePlace::Hierarchy,
            State::fresh(),
        );
        Ok((self.remember(file), opened))
    }

    fn native_create(&self, name: &str, creation: Hid) -> Result<Ptr> {
        let access = self.native.in_memory(self.access, None)?;
        let name = c_name(name)?;
        // SAFETY: the name ends with a zero, and the lists are open; nothing asks for a request.
        let opened = unsafe {
            (self.native.class.file.create)(
                name.as_ptr(),
                self.flags,
                creation,
                access.get(),
                self.transfer,
                ptr::null_mut(),
            )
        };
        said(opened)
    }

    fn native_open(&self, name: &str, access: Hid) -> Result<Ptr> {
        let name = c_name(name)?;
        // SAFETY: as in `native_create`.
        let opened = unsafe {
            (self.native.class.file.open)(
                name.as_ptr(),
                self.flags,
                access,
                self.transfer,
                ptr::null_mut(),
            )
        };
        said(opened)
    }

    /// Whether there is anything that could be opened.
    pub(crate) fn exists(&self, session: &Session) -> Result<bool> {
        match block_on(session.open(self.url)) {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Opens a file.
    pub(crate) fn open(&self, config: &str) -> Result<(Arc<RemoteFile>, Ptr)> {
        let (config, session) = session(config)?;
        if let Some(file) = self.found() {
            let access = match file.is_in_place() {
                true => self.native.on_disk(self.access)?,
                false => self.native.in_memory(self.access, Some(&NO_IMAGE))?,
            };
            let opened = self.native_open(&file.name, access.get())?;
            return Ok((file, opened));
        }
        session.claim(self.url)?;
        let writable = self.flags & WRITE != 0;
        let (kept, published) = block_on(async {
            futures::try_join!(session.skeleton(self.url), session.published(self.url))
        })?;
        let (image, arrays, state) = match (kept, &published) {
            (None, None) => return self.open_in_place(&config, &session, writable),
            (Some(kept), published) if is_current(&kept, published.as_ref()) => {
                (kept.image, kept.arrays, kept.state)
            }
            // Somebody made or changed it who knows nothing of skeletons.
            (kept, _) => {
                let redrawn = block_on(redraw(&session, self.url, kept.as_ref()))?;
                let state = kept.map(|kept| kept.state).unwrap_or_default();
                (redrawn.image, redrawn.arrays, state)
            }
        };
        let access = self.native.in_memory(self.access, Some(&image))?;
        let opened = self.native_open(self.name, access.get())?;
        let nodes = published.map(|(nodes, _)| nodes).unwrap_or_default();
        let file = RemoteFile::new(
            (self.url, self.name, None),
            &session,
            writable,
            self.native.bounds(self.access),
            &config,
            FilePlace::Hierarchy,
            State::kept(&arrays, state, nodes),
        );
        Ok((self.remember(file), opened))
    }

    /// A local file that the native connector has opened for reading, and whose cells the engine reads;
    /// `None` if nobody asked for that, or somebody writes to it.
    pub(crate) fn accelerated(&self, opened: Ptr, config: &str) -> Result<Option<Arc<RemoteFile>>> {
        let (config, session) = session(config)?;
        let writes = WRITE | EXCLUSIVE | TRUNCATE | CREATE;
        let asked = config.accelerate && self.flags & writes == 0;
        if !asked || self.native.intent(opened, self.transfer)? & WRITE != 0 {
            return Ok(None);
        }
        if let Some(file) = self.found() {
            return Ok(Some(file));
        }
        session.claim(self.url)?;
        let file = RemoteFile::new(
            (self.url, self.name, None),
            &session,
            false,
            self.native.bounds(self.access),
            &config,
            FilePlace::Local,
            State::unseen(),
        );
        Ok(Some(self.remember(file)))
    }

    /// Whether there is a file that can be opened.
    pub(crate) fn accessible(&self, config: &str) -> Result<bool> {
        let (_, session) = session(config)?;
        if self.found().is_some() {
            return Ok(true);
        }
        self.exists(&session)
    }

    /// Removes a file.
    pub(crate) fn delete(&self, config: &str) -> Result<()> {
        let (_, session) = session(config)?;
        if self.found().is_some() {
            return Err(Error::invalid(format!("{} is open", self.name)));
        }
        if !self.exists(&session)? {
            return Err(self.errno(2, "No such file or directory"));
        }
        session.claim(self.url)?;
        block_on(session.sweep(self.url))
    }

    /// Opens an ordinary HDF5 file that lies in a store, for reading.
    fn open_in_place(
        &self,
        config: &Arc<Config>,
        session: &Session,
        writable: bool,
    ) -> Result<(Arc<RemoteFile>, Ptr)> {
        let absent = |e: Error| match e.kind() {
            ErrorKind::NotFound => self.errno(2, "No such file or directory"),
            _ => e,
        };
        session.release(self.url)?;
        match block_on(session.open(self.url)).map_err(absent)? {
            Node::Group(group) if group.is_in_file() => {}
            _ => return Err(self.errno(2, "No such file or directory")),
        }
        if writable {
            return Err(Error::invalid(format!(
                "{} is an HDF5 file in a store, which is read only (errno = 30)",
                self.url
            ))
            .with_hint("copy it with `hyperslab cp`, and write to the copy"));
        }
        let outline = block_on(session.outline(self.url))?;
        let outline = outline.ok_or_else(|| self.errno(2, "No such file or directory"))?;
        let mut copy = tempfile::Builder::new()
            .prefix("hyperslab-")
            .suffix(".h5")
            .tempfile()
            .map_err(|e| Error::unavailable(format!("a temporary file failed: {e}")))?;
        block_on(outline.write_metadata(copy.as_file_mut()))?;
        let access = self.native.on_disk(self.access)?;
        let name = copy.path().to_string_lossy().into_owned();
        let opened = self.native_open(&name, access.get())?;
        let state = State::kept(&outline.plain, Default::default(), Default::default());
        let file = RemoteFile::new(
            (self.url, &name, Some(self.name)),
            session,
            false,
            self.native.bounds(self.access),
            config,
            FilePlace::Object(copy),
            state,
        );
        Ok((self.remember(file), opened))
    }

    /// An error that Python takes for the one of this number.
    fn errno(&self, number: u32, text: &str) -> Error {
        Error::not_found(format!(
            "unable to open file: name = '{}', errno = {number}, error message = '{text}'",
            self.name
        ))
    }
}

/// Whether a skeleton says what the metadata of its hierarchy says.
fn is_current(kept: &Skeleton, published: Option<&(BTreeMap<String, Value>, String)>) -> bool {
    match (&kept.root, published) {
        (Some(root), Some((_, now))) => root == now,
        // Nothing is known of what it was, or there is nothing.
        _ => true,
    }
}

fn c_name(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| Error::invalid("the name of a file has a zero in it"))
}

/// What the native connector opened; where it failed, it has said why.
fn said(opened: Ptr) -> Result<Ptr> {
    match opened.is_null() {
        true => Err(Error::invalid("")),
        false => Ok(opened),
    }
}
