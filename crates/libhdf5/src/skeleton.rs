//! Makes the skeleton of a file: everything but the cells that are kept elsewhere.
//!
//! Objects are made anew in a file in memory, with the types and properties that libhdf5 itself gives
//! for them, in the order of their links. What refers to objects (attributes, cells of references) is
//! written last, when all of them are there.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::path::Path;

use hdf5_metno_sys::LOCK;
use hdf5_metno_sys::h5d::{
    H5D_ALLOC_TIME_INCR, H5D_ALLOC_TIME_LATE, H5D_CHUNKED, H5D_COMPACT, H5Dcreate2,
    H5Dget_create_plist, H5Dget_space, H5Dget_type,
};
use hdf5_metno_sys::h5f::{H5F_ACC_RDONLY, H5Fopen};
use hdf5_metno_sys::h5g::{H5Gcreate2, H5Gget_create_plist};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::{
    H5L_TYPE_EXTERNAL, H5L_TYPE_HARD, H5L_TYPE_SOFT, H5Lcreate_hard, H5Lcreate_soft,
};
use hdf5_metno_sys::h5o::{
    H5O_TYPE_DATASET, H5O_TYPE_GROUP, H5O_TYPE_NAMED_DATATYPE, H5O_info2_t, H5Olink, H5Oopen,
};
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pget_layout, H5Pset_alloc_time};
use hdf5_metno_sys::h5t::{H5Tcommit_anon, H5Tcommitted, H5Tcopy, H5Tget_create_plist};
use hyperslab_index::{Error, Result};

use crate::files::{file_in_memory, image};
use crate::handle::{Id, c_name, check, info, open_dataset, sides, start};
use crate::links::{copy_external_link, link_creation, link_value, links};
use crate::properties::own_cells;
use crate::{attributes, filters, references};

/// What identifies an object of a file.
type Token = [u8; 16];

/// A skeleton.
#[derive(Debug)]
pub struct Skeleton {
    /// The file, byte by byte.
    pub image: Vec<u8>,
    /// Paths of datasets whose cells are not in it.
    pub outside: Vec<String>,
    /// What could not be kept, in sentences.
    pub lost: Vec<String>,
}

/// Makes the skeleton of the file at `path`, of which only metadata need be there. The cells of a
/// dataset are left out if `is_outside` says so of its path.
pub fn skeleton(path: &Path, is_outside: &dyn Fn(&str) -> bool) -> Result<Skeleton> {
    let _lock = LOCK.lock();
    start()?;
    filters::register()?;
    let name = c_name(&path.to_string_lossy())?;
    // SAFETY: the name is a C string.
    let source = Id::new(
        unsafe { H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, H5P_DEFAULT) },
        "open the file",
    )?;
    let target = file_in_memory(&source)?;
    let mut made = copy_structure(&source, &target, is_outside, &mut |_, _, _| Ok(()))?;
    made.image = image(&target)?;
    Ok(made)
}

/// Changes the creation properties of the dataset at a path, which has this shape.
pub(crate) type Change<'a> = &'a mut dyn FnMut(&str, &Id, &[u64]) -> Result<()>;

/// Makes all objects of one file in another.
pub(crate) fn copy_structure(
    source: &Id,
    target: &Id,
    is_outside: &dyn Fn(&str) -> bool,
    change: Change<'_>,
) -> Result<Skeleton> {
    let mut copier = Copier {
        source: source.get(),
        target: target.get(),
        is_outside,
        change,
        canonical: HashMap::new(),
        seen: HashMap::new(),
        types: HashMap::new(),
        objects: Vec::new(),
        inside: Vec::new(),
        made: Skeleton {
            image: Vec::new(),
            outside: Vec::new(),
            lost: Vec::new(),
        },
    };
    copier.run()?;
    Ok(copier.made)
}

struct Copier<'a> {
    source: hid_t,
    target: hid_t,
    is_outside: &'a dyn Fn(&str) -> bool,
    change: Change<'a>,
    /// The first path of each dataset when links are followed in the order of their names: that is
    /// what others know it by, whatever the order of creation.
    canonical: HashMap<Token, String>,
    /// Paths of objects that were made.
    seen: HashMap<Token, String>,
    /// Committed types that were made.
    types: HashMap<Token, Id>,
    /// Paths of all objects, whose attributes are still to be written.
    objects: Vec<String>,
    /// Paths of datasets that keep their cells.
    inside: Vec<String>,
    made: Skeleton,
}

impl Copier<'_> {
    fn run(&mut self) -> Result<()> {
        let root = self.open(self.source, "/")?;
        self.survey("/", &mut HashSet::new())?;
        self.seen.insert(token(&info(&root)?), "/".to_owned());
        self.objects.push("/".to_owned());
        self.group("/")?;
        for path in std::mem::take(&mut self.objects) {
            self.attributes(&path)?;
        }
        for path in std::mem::take(&mut self.inside) {
            let (from, to) = (
                open_dataset(self.source, &path)?,
                open_dataset(self.target, &path)?,
            );
            let lost = references::copy_cells((self.source, &from), (self.target, &to))
                .map_err(|e| e.context(&path))?;
            self.made
                .lost
                .extend(lost.map(|what| format!("{path}: {what}")));
        }
        Ok(())
    }

    fn open(&self, file: hid_t, path: &str) -> Result<Id> {
        let name = c_name(path)?;
        // SAFETY: the name is a C string.
        let id = unsafe { H5Oopen(file, name.as_ptr(), H5P_DEFAULT) };
        Id::new(id, &format!("open {path}"))
    }

    /// Finds the first path of every dataset.
    fn survey(&mut self, path: &str, seen: &mut HashSet<Token>) -> Result<()> {
        let object = self.open(self.source, path)?;
        let info = info(&object)?;
        if !seen.insert(token(&info)) {
            return Ok(());
        }
        match info.type_ {
            H5O_TYPE_DATASET => {
                self.canonical.insert(token(&info), path.to_owned());
            }
            H5O_TYPE_GROUP => {
                let mut links = links(&self.open(self.source, path)?, path)?;
                links.retain(|link| link.kind == H5L_TYPE_HARD as i32);
                links.sort_by(|a, b| a.name.cmp(&b.name));
                for link in links {
                    self.survey(&joined(path, &link.name), seen)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes everything below a group that is there.
    fn group(&mut self, path: &str) -> Result<()> {
        for link in links(&self.open(self.source, path)?, path)? {
            let below = joined(path, &link.name);
            let creation = link_creation(link.is_utf8)?;
            match link.kind {
                kind if kind == H5L_TYPE_HARD as i32 => self.object(&below, &creation)?,
                kind if kind == H5L_TYPE_SOFT as i32 => {
                    let value = link_value(self.source, &below)?;
                    let target = CStr::from_bytes_until_nul(&value)
                        .map_err(|_| Error::data(format!("the link {below} has no end")))?;
                    let name = c_name(&below)?;
                    // SAFETY: both are C strings.
                    let made = unsafe {
                        H5Lcreate_soft(
                            target.as_ptr(),
                            self.target,
                            name.as_ptr(),
                            creation.get(),
                            H5P_DEFAULT,
                        )
                    };
                    check(made, &format!("make the link {below}"))?;
                }
                kind if kind == H5L_TYPE_EXTERNAL as i32 => {
                    copy_external_link((self.source, self.target), &below, &creation)?
                }
                kind => self.made.lost.push(format!(
                    "{below}: a link of type {kind}, which only its program knows"
                )),
            }
        }
        Ok(())
    }

    /// Makes the object that a hard link leads to, or the link if the object is there.
    fn object(&mut self, path: &str, creation: &Id) -> Result<()> {
        let object = self.open(self.source, path)?;
        let info = info(&object)?;
        let token = token(&info);
        let name = c_name(path)?;
        if let Some(first) = self.seen.get(&token) {
            let first = c_name(first)?;
            // SAFETY: both are C strings.
            let made = unsafe {
                H5Lcreate_hard(
                    self.target,
                    first.as_ptr(),
                    self.target,
                    name.as_ptr(),
                    creation.get(),
                    H5P_DEFAULT,
                )
            };
            return check(made, &format!("link {path}"));
        }
        self.seen.insert(token, path.to_owned());
        self.objects.push(path.to_owned());
        match info.type_ {
            H5O_TYPE_GROUP => {
                // SAFETY: the object is a group.
                unsafe {
                    let how = Id::new(
                        H5Gget_create_plist(object.get()),
                        "tell how a group was made",
                    )?;
                    let made = H5Gcreate2(
                        self.target,
                        name.as_ptr(),
                        creation.get(),
                        how.get(),
                        H5P_DEFAULT,
                    );
                    Id::new(made, &format!("make the group {path}"))?;
                }
                self.group(path)
            }
            H5O_TYPE_NAMED_DATATYPE => {
                self.commit(token, &object)?;
                let committed = self.types.get(&token);
                let committed = committed.ok_or_else(|| Error::internal("a type was lost"))?;
                // SAFETY: the type was committed without a link.
                let linked = unsafe {
                    H5Olink(
                        committed.get(),
                        self.target,
                        name.as_ptr(),
                        creation.get(),
                        H5P_DEFAULT,
                    )
                };
                check(linked, &format!("make the type {path}"))
            }
            H5O_TYPE_DATASET => {
                let known = self.canonical.get(&token).cloned();
                self.make_dataset(
                    path,
                    &known.unwrap_or_else(|| path.to_owned()),
                    &object,
                    creation,
                )
            }
            _ => {
                self.made
                    .lost
                    .push(format!("{path}: an object of a kind that is not known"));
                Ok(())
            }
        }
    }

    /// Commits a type to the new file, without a link as yet.
    fn commit(&mut self, token: Token, committed: &Id) -> Result<()> {
        if self.types.contains_key(&token) {
            return Ok(());
        }
        // SAFETY: the identifier is that of a committed type.
        unsafe {
            let copy = Id::new(H5Tcopy(committed.get()), "copy a type")?;
            let how = Id::new(
                H5Tget_create_plist(committed.get()),
                "tell how a type was made",
            )?;
            let made = H5Tcommit_anon(self.target, copy.get(), how.get(), H5P_DEFAULT);
            check(made, "commit a type")?;
            self.types.insert(token, copy);
        }
        Ok(())
    }

    /// A type as the new file has it: the same one if it is committed there.
    fn matching_type(&mut self, datatype: Id) -> Result<Id> {
        // SAFETY: the identifier is that of a type.
        let committed = unsafe { H5Tcommitted(datatype.get()) };
        if committed <= 0 {
            return Ok(datatype);
        }
        let token = token(&info(&datatype)?);
        self.commit(token, &datatype)?;
        match self.types.get(&token) {
            // SAFETY: another reference to the same identifier.
            Some(made) => Id::new(
                unsafe {
                    hdf5_metno_sys::h5i::H5Iinc_ref(made.get());
                    made.get()
                },
                "use a type",
            ),
            None => Ok(datatype),
        }
    }

    /// Makes a dataset at `path`, which is known as `known`.
    fn make_dataset(&mut self, path: &str, known: &str, object: &Id, link: &Id) -> Result<()> {
        // SAFETY: the object is a dataset.
        let (datatype, space, how) = unsafe {
            (
                Id::new(H5Dget_type(object.get()), "tell the type of a dataset")?,
                Id::new(H5Dget_space(object.get()), "tell the shape of a dataset")?,
                Id::new(
                    H5Dget_create_plist(object.get()),
                    "tell how a dataset was made",
                )?,
            )
        };
        let datatype = self.matching_type(datatype)?;
        let how = own_cells(how, &datatype, &space)?;
        (self.change)(known, &how, &sides(&space)?)?;
        // SAFETY: the identifier is that of creation properties.
        let layout = unsafe { H5Pget_layout(how.get()) };
        let outside = layout != H5D_COMPACT && (self.is_outside)(known);
        if outside {
            let late = match layout {
                H5D_CHUNKED => H5D_ALLOC_TIME_INCR,
                _ => H5D_ALLOC_TIME_LATE,
            };
            // SAFETY: as above.
            let done = unsafe { H5Pset_alloc_time(how.get(), late) };
            check(done, "put off storage")?;
            self.made.outside.push(known.to_owned());
        } else {
            self.inside.push(path.to_owned());
        }
        let name = c_name(path)?;
        // SAFETY: all identifiers are open.
        let made = unsafe {
            H5Dcreate2(
                self.target,
                name.as_ptr(),
                datatype.get(),
                space.get(),
                link.get(),
                how.get(),
                H5P_DEFAULT,
            )
        };
        Id::new(made, &format!("make the dataset {path}")).map(drop)
    }

    fn attributes(&mut self, path: &str) -> Result<()> {
        let from = self.open(self.source, path)?;
        let to = self.open(self.target, path)?;
        let files = (self.source, self.target);
        let mut types = |datatype| self.matching_type(datatype);
        let lost =
            attributes::copy(files, (&from, &to), &mut types).map_err(|e| e.context(path))?;
        self.made
            .lost
            .extend(lost.into_iter().map(|what| format!("{path}: {what}")));
        Ok(())
    }
}

fn joined(path: &str, name: &str) -> String {
    match path {
        "/" => format!("/{name}"),
        _ => format!("{path}/{name}"),
    }
}

fn token(info: &H5O_info2_t) -> Token {
    // SAFETY: a token is sixteen bytes without meaning to anybody but the library.
    unsafe { std::mem::transmute_copy(&info.token) }
}
