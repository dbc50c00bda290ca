//! Names that lead out of a file in a store, through links to other files.
//!
//! The native connector follows such links itself, but looks for the other file on local disk. So a
//! name is looked at before it is handed on: where a part of it is a link to another file, that file is
//! opened as a program would open it, and the rest of the name is meant there.

use std::ffi::{CStr, CString, c_char, c_int};

use hyperslab::{Error, Result};

use crate::abi::{Hid, Location, Ptr, kind};
use crate::calls::wrap;
use crate::name::beside;
use crate::native::{Below, Id, Native};
use crate::object::Object;

/// Kinds of links (`H5L_type_t`).
const SOFT: c_int = 1;
const EXTERNAL: c_int = 64;
/// Links that lead to links, at most.
const MOST_LINKS: usize = 16;
/// Opens a file for writing (`H5F_ACC_RDWR`).
const WRITE: u32 = 1;

/// Whether a call is about a link, or about what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Stay,
}

/// What a call is about: as the program said it, or in another file.
pub(super) struct Aim {
    object: Ptr,
    at: *const Location,
    name: *const c_char,
    there: Option<There>,
}

/// A place in another file.
struct There {
    location: Location,
    name: CString,
    /// Keeps the file open.
    _file: Id,
}

impl Aim {
    /// For calls that have a name of their own, beside a location.
    ///
    /// # Safety
    /// The object is one of ours or null, the location one of the interface's, and the name a string of
    /// C's or null; all stay as they are while this is used.
    pub(super) unsafe fn by_name(
        native: Native,
        (object, at, name, access): (Ptr, *const Location, *const c_char, Hid),
        last: Last,
        transfer: Hid,
    ) -> Result<Aim> {
        let mut aim = Aim {
            object,
            at,
            name,
            there: None,
        };
        // SAFETY: the caller says so.
        unsafe {
            if !name.is_null() && !object.is_null() && !at.is_null() && (*at).by == 0 {
                let name = CStr::from_ptr(name);
                aim.follow(native, (*at).object_kind, (name, access), last, transfer)?;
                if let Some(there) = &mut aim.there {
                    there.location = Location::of_itself(kind::FILE);
                }
            }
        }
        Ok(aim)
    }

    /// For calls whose location may have a name.
    ///
    /// # Safety
    /// As for [`Aim::by_name`].
    pub(super) unsafe fn at(
        native: Native,
        (object, at): (Ptr, *const Location),
        last: Last,
        transfer: Hid,
    ) -> Result<Aim> {
        let mut aim = Aim {
            object,
            at,
            name: std::ptr::null(),
            there: None,
        };
        // SAFETY: the caller says so.
        unsafe {
            if !object.is_null() && !at.is_null() && (*at).by == Location::BY_NAME {
                let named = (*at).place.name;
                let named = (CStr::from_ptr(named.name), named.access);
                aim.follow(native, (*at).object_kind, named, last, transfer)?;
            }
        }
        Ok(aim)
    }

    /// The object and the location that are meant.
    pub(super) fn located(&self) -> (Ptr, *const Location) {
        match &self.there {
            Some(there) => (self.object, &there.location),
            None => (self.object, self.at),
        }
    }

    /// The object, the location and the name that are meant.
    pub(super) fn named(&self) -> (Ptr, *const Location, *const c_char) {
        let (object, at) = self.located();
        let name = self.there.as_ref().map(|there| there.name.as_ptr());
        (object, at, name.unwrap_or(self.name))
    }

    /// # Safety
    /// The object is one of ours.
    unsafe fn follow(
        &mut self,
        native: Native,
        object_kind: c_int,
        (name, access): (&CStr, Hid),
        last: Last,
        transfer: Hid,
    ) -> Result<()> {
        // SAFETY: the caller says so.
        let object = unsafe { Object::of(self.object) };
        let Some(file) = object.file.as_ref().filter(|file| !file.is_local()) else {
            return Ok(());
        };
        let below = Below {
            object: object.under,
            kind: object_kind,
        };
        let Some((name, path)) = name
            .to_str()
            .ok()
            .and_then(|name| leads_out(native, &below, name, last, transfer))
        else {
            return Ok(());
        };
        let name = beside(file.program_name(), &name);
        let flags = if file.is_writable() { WRITE } else { 0 };
        let (name, path) = (c_text(name)?, c_text(path)?);
        let asked = (below.object, below.kind);
        let opened = file.with_native(native, asked, transfer, |inside| {
            native.open_linked(&name, access, flags, (inside, file.bounds), transfer)
        })?;
        self.object = wrap::object_of(native, opened.get())
            .ok_or_else(|| Error::internal("a file that a link leads to is not ours"))?;
        self.there = Some(There {
            location: Location::named(kind::FILE, &path),
            name: path,
            _file: opened,
        });
        Ok(())
    }
}

fn c_text(text: String) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid("a link has a zero in its name"))
}

/// The file and the path there that a name leads to, if it leads to another file.
fn leads_out(
    native: Native,
    below: &Below,
    name: &str,
    last: Last,
    transfer: Hid,
) -> Option<(String, String)> {
    let mut name = name.to_owned();
    'links: for _ in 0..MOST_LINKS {
        let parts: Vec<&str> = name
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        let mut so_far = if name.starts_with('/') { "/" } else { "" }.to_owned();
        for (i, part) in parts.iter().enumerate() {
            let group = so_far.clone();
            so_far = joined(&so_far, part);
            let path = CString::new(so_far.as_str()).ok()?;
            let (link, bytes) = native.link(below, &path, transfer)?;
            if !matches!(link, SOFT | EXTERNAL) {
                continue;
            }
            let rest = parts[i + 1..].join("/");
            if rest.is_empty() && last == Last::Stay {
                return None;
            }
            let value = native.link_value(below, &path, bytes, transfer)?;
            if link == EXTERNAL {
                let (file, path) = unpack(&value)?;
                return Some((
                    file,
                    format!("/{}", joined(path.trim_start_matches('/'), &rest)),
                ));
            }
            let target = CStr::from_bytes_until_nul(&value).ok()?.to_str().ok()?;
            let target = match target.starts_with('/') {
                true => target.to_owned(),
                false => joined(&group, target),
            };
            name = joined(&target, &rest);
            continue 'links;
        }
        return None;
    }
    None
}

fn joined(group: &str, name: &str) -> String {
    match (group, name) {
        (group, "") => group.to_owned(),
        ("", name) => name.to_owned(),
        (group, name) => format!("{}/{name}", group.trim_end_matches('/')),
    }
}

/// The file and the path in the value of an external link: a byte of flags, and two texts.
fn unpack(value: &[u8]) -> Option<(String, String)> {
    let mut texts = value.get(1..)?.split(|byte| *byte == 0);
    let mut text = || String::from_utf8(texts.next()?.to_vec()).ok();
    Some((text()?, text()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_external_links_are_unpacked() {
        assert_eq!(
            unpack(b"\0other.h5\0/x/y\0"),
            Some(("other.h5".into(), "/x/y".into()))
        );
        assert_eq!(unpack(b""), None);
        assert_eq!(joined("/", "a"), "/a");
        assert_eq!(joined("a/b", "c"), "a/b/c");
        assert_eq!(joined("a", ""), "a");
    }
}
