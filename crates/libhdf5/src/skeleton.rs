//! Makes the skeleton of a file: everything but the cells that are kept elsewhere.
//!
//! Objects are made anew in a file in memory, with the types and properties that libhdf5 itself gives
//! for them, in the order of their links. What refers to objects (attributes, cells of references) is
//! written last, when all of them are there.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;

use hdf5_metno_sys::LOCK;
use hdf5_metno_sys::h5::{H5_INDEX_CRT_ORDER, H5_INDEX_NAME, H5_ITER_INC, herr_t};
use hdf5_metno_sys::h5d::{
    H5D_ALLOC_TIME_INCR, H5D_ALLOC_TIME_LATE, H5D_CHUNKED, H5D_COMPACT, H5D_CONTIGUOUS,
    H5D_FILL_VALUE_USER_DEFINED, H5D_VIRTUAL, H5Dcreate2, H5Dget_create_plist, H5Dget_space,
    H5Dget_type, H5Dopen2,
};
use hdf5_metno_sys::h5f::{
    H5F_ACC_RDONLY, H5F_ACC_TRUNC, H5F_LIBVER_V18, H5F_LIBVER_V114, H5F_SCOPE_LOCAL, H5Fcreate,
    H5Fflush, H5Fget_create_plist, H5Fget_file_image, H5Fopen,
};
use hdf5_metno_sys::h5g::{H5Gcreate2, H5Gget_create_plist};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::{
    H5L_TYPE_EXTERNAL, H5L_TYPE_HARD, H5L_TYPE_SOFT, H5L_info2_t, H5Lcreate_external,
    H5Lcreate_hard, H5Lcreate_soft, H5Lget_val, H5Literate2, H5Lunpack_elink_val,
};
use hdf5_metno_sys::h5o::{
    H5O_TYPE_DATASET, H5O_TYPE_GROUP, H5O_TYPE_NAMED_DATATYPE, H5O_info2_t, H5Olink, H5Oopen,
};
use hdf5_metno_sys::h5p::{
    H5P_CLS_DATASET_CREATE, H5P_CLS_FILE_ACCESS, H5P_CLS_LINK_CREATE, H5P_CRT_ORDER_TRACKED,
    H5P_DEFAULT, H5Pcreate, H5Pfill_value_defined, H5Pget_attr_creation_order,
    H5Pget_external_count, H5Pget_fill_value, H5Pget_layout, H5Pget_link_creation_order,
    H5Pset_alloc_time, H5Pset_attr_creation_order, H5Pset_char_encoding, H5Pset_chunk,
    H5Pset_fapl_core, H5Pset_file_image, H5Pset_fill_value, H5Pset_layout, H5Pset_libver_bounds,
    H5Pset_link_creation_order,
};
use hdf5_metno_sys::h5s::H5Sget_simple_extent_dims;
use hdf5_metno_sys::h5t::{
    H5T_CSET_UTF8, H5Tcommit_anon, H5Tcommitted, H5Tcopy, H5Tget_create_plist, H5Tget_size,
};
use hyperslab_index::{Error, Result, Shape, default_chunks};

use crate::handle::{Id, c_name, check, failed, info, sides, start};
use crate::{attributes, filters, references};

/// Bytes by which a file in memory grows.
const GROWTH: usize = 1 << 20;
/// Bytes of a chunk of a dataset that had none.
const CHUNK: u64 = 1 << 20;
/// The longest value of a link.
const LONGEST_LINK: usize = 1 << 17;

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

/// Opens a skeleton.
pub(crate) fn open_image(image: &mut [u8]) -> Result<Id> {
    // SAFETY: the image is copied by the call that is given it.
    unsafe {
        let access = Id::new(H5Pcreate(*H5P_CLS_FILE_ACCESS), "make properties")?;
        check(
            H5Pset_fapl_core(access.get(), GROWTH, 0),
            "keep a file in memory",
        )?;
        let bytes = image.as_mut_ptr().cast::<c_void>();
        check(
            H5Pset_file_image(access.get(), bytes, image.len()),
            "take a file in memory",
        )?;
        let name = c_name("skeleton.h5")?;
        let file = H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, access.get());
        Id::new(file, "open the skeleton")
    }
}

/// Makes a file on disk with the properties of another one.
pub(crate) fn file_on_disk(source: &Id, path: &Path) -> Result<Id> {
    let name = c_name(&path.to_string_lossy())?;
    // SAFETY: identifiers are checked, and the name is a C string.
    unsafe {
        let creation = creation_of(source)?;
        let access = access()?;
        let made = H5Fcreate(name.as_ptr(), H5F_ACC_TRUNC, creation.get(), access.get());
        Id::new(made, &format!("make {}", path.display()))
    }
}

/// A new file in memory with the properties of another one.
fn file_in_memory(source: &Id) -> Result<Id> {
    // SAFETY: classes are open as long as the library is; identifiers are checked.
    unsafe {
        let access = access()?;
        check(
            H5Pset_fapl_core(access.get(), GROWTH, 0),
            "keep a file in memory",
        )?;
        let creation = creation_of(source)?;
        let name = c_name("skeleton.h5")?;
        let made = H5Fcreate(name.as_ptr(), H5F_ACC_TRUNC, creation.get(), access.get());
        Id::new(made, "make a file in memory")
    }
}

/// The creation properties of a file, with those of its root group, which the library leaves out.
fn creation_of(file: &Id) -> Result<Id> {
    // SAFETY: the identifier is that of a file.
    unsafe {
        let creation = H5Fget_create_plist(file.get());
        let creation = Id::new(creation, "tell how a file was made")?;
        let root = H5Oopen(file.get(), c"/".as_ptr(), H5P_DEFAULT);
        let root = Id::new(root, "open the root group")?;
        let group = H5Gget_create_plist(root.get());
        let group = Id::new(group, "tell how a group was made")?;
        let (mut links, mut attributes) = (0, 0);
        let told = H5Pget_link_creation_order(group.get(), &mut links);
        check(told, "tell the order of links")?;
        let told = H5Pget_attr_creation_order(group.get(), &mut attributes);
        check(told, "tell the order of attributes")?;
        let set = H5Pset_link_creation_order(creation.get(), links);
        check(set, "set the order of links")?;
        let set = H5Pset_attr_creation_order(creation.get(), attributes);
        check(set, "set the order of attributes")?;
        Ok(creation)
    }
}

/// Access properties for files that version 1.14 opens.
fn access() -> Result<Id> {
    // SAFETY: the class is open as long as the library is.
    unsafe {
        let access = Id::new(H5Pcreate(*H5P_CLS_FILE_ACCESS), "make properties")?;
        // Not earlier: version 1.6 had no attributes of more than 64 KiB.
        let set = H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V114);
        check(set, "write for version 1.14")?;
        Ok(access)
    }
}

/// The bytes of a file in memory.
fn image(file: &Id) -> Result<Vec<u8>> {
    // SAFETY: the buffer has the size that the library asks for.
    unsafe {
        check(
            H5Fflush(file.get(), H5F_SCOPE_LOCAL),
            "write a file in memory",
        )?;
        let size = H5Fget_file_image(file.get(), std::ptr::null_mut(), 0);
        let size = usize::try_from(size).map_err(|_| failed("tell the size of a file"))?;
        let mut bytes = vec![0u8; size];
        let got = H5Fget_file_image(file.get(), bytes.as_mut_ptr().cast(), size);
        match usize::try_from(got) == Ok(size) {
            true => Ok(bytes),
            false => Err(failed("give a file in memory")),
        }
    }
}

/// A link of a group.
struct Link {
    name: String,
    kind: i32,
    is_utf8: bool,
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
                self.dataset(self.source, &path)?,
                self.dataset(self.target, &path)?,
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

    fn dataset(&self, file: hid_t, path: &str) -> Result<Id> {
        let name = c_name(path)?;
        // SAFETY: the name is a C string.
        let id = unsafe { H5Dopen2(file, name.as_ptr(), H5P_DEFAULT) };
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
                let mut links = self.links(path)?;
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
        for link in self.links(path)? {
            let below = joined(path, &link.name);
            let creation = link_creation(link.is_utf8)?;
            match link.kind {
                kind if kind == H5L_TYPE_HARD as i32 => self.object(&below, &creation)?,
                kind if kind == H5L_TYPE_SOFT as i32 => {
                    let value = self.link_value(&below)?;
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
                    self.external_link(&below, &creation)?
                }
                kind => self.made.lost.push(format!(
                    "{below}: a link of type {kind}, which only its program knows"
                )),
            }
        }
        Ok(())
    }

    fn links(&self, path: &str) -> Result<Vec<Link>> {
        let group = self.open(self.source, path)?;
        let mut links: Vec<Link> = Vec::new();
        let mut flags = 0;
        // SAFETY: `gather` is given a pointer to `links`, which lives longer than the call.
        unsafe {
            let creation = Id::new(
                H5Gget_create_plist(group.get()),
                "tell how a group was made",
            )?;
            check(
                H5Pget_link_creation_order(creation.get(), &mut flags),
                "tell the order of links",
            )?;
            let index = match flags & H5P_CRT_ORDER_TRACKED {
                0 => H5_INDEX_NAME,
                _ => H5_INDEX_CRT_ORDER,
            };
            let out: *mut Vec<Link> = &mut links;
            let mut at = 0;
            let done = H5Literate2(
                group.get(),
                index,
                H5_ITER_INC,
                &mut at,
                Some(gather),
                out.cast(),
            );
            check(done, &format!("list {path}"))?;
        }
        Ok(links)
    }

    fn link_value(&self, path: &str) -> Result<Vec<u8>> {
        let name = c_name(path)?;
        let mut value = vec![0u8; LONGEST_LINK];
        // SAFETY: the buffer has the size that is given.
        let got = unsafe {
            let room = value.as_mut_ptr().cast::<c_void>();
            H5Lget_val(self.source, name.as_ptr(), room, LONGEST_LINK, H5P_DEFAULT)
        };
        check(got, &format!("read the link {path}"))?;
        Ok(value)
    }

    fn external_link(&self, path: &str, creation: &Id) -> Result<()> {
        let value = self.link_value(path)?;
        let (mut file, mut object) = (std::ptr::null(), std::ptr::null());
        let mut flags = 0;
        let name = c_name(path)?;
        // SAFETY: the value is as long as is said, and what it is unpacked to points into it.
        unsafe {
            let packed = value.as_ptr().cast::<c_void>();
            let unpacked =
                H5Lunpack_elink_val(packed, value.len(), &mut flags, &mut file, &mut object);
            check(unpacked, &format!("read the link {path}"))?;
            let made = H5Lcreate_external(
                file,
                object,
                self.target,
                name.as_ptr(),
                creation.get(),
                H5P_DEFAULT,
            );
            check(made, &format!("make the link {path}"))
        }
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

/// Creation properties for a dataset that has its cells itself: mappings and other files are left out.
fn own_cells(how: Id, datatype: &Id, space: &Id) -> Result<Id> {
    // SAFETY: the identifier is that of creation properties; the buffer has the size of the type.
    unsafe {
        let elsewhere =
            H5Pget_layout(how.get()) == H5D_VIRTUAL || H5Pget_external_count(how.get()) > 0;
        if !elsewhere {
            return Ok(how);
        }
        let own = Id::new(H5Pcreate(*H5P_CLS_DATASET_CREATE), "make properties")?;
        let (sides, size) = (sides(space)?, H5Tget_size(datatype.get()));
        match can_grow(space, sides.len())? {
            // Only chunks let a dataset grow.
            true => {
                let longest = sides.iter().map(|side| (*side).max(1));
                let shape = Shape::new(longest)?;
                let chunk = default_chunks(&shape, size as u64, CHUNK).to_vec();
                let set = H5Pset_chunk(own.get(), chunk.len() as i32, chunk.as_ptr());
                check(set, "set chunks")?;
            }
            false => check(H5Pset_layout(own.get(), H5D_CONTIGUOUS), "make a layout")?,
        }
        let mut defined = std::mem::zeroed();
        check(
            H5Pfill_value_defined(how.get(), &mut defined),
            "tell a fill value",
        )?;
        if defined == H5D_FILL_VALUE_USER_DEFINED {
            let mut value = vec![0u8; size];
            let room = value.as_mut_ptr().cast::<c_void>();
            check(
                H5Pget_fill_value(how.get(), datatype.get(), room),
                "tell a fill value",
            )?;
            let value = value.as_ptr().cast::<c_void>();
            check(
                H5Pset_fill_value(own.get(), datatype.get(), value),
                "set a fill value",
            )?;
        }
        Ok(own)
    }
}

/// True if a dataset of this shape may become larger.
fn can_grow(space: &Id, rank: usize) -> Result<bool> {
    let (mut sides, mut limits) = (vec![0; rank], vec![0; rank]);
    // SAFETY: both lists have room for as many sides as the space has dimensions.
    let got =
        unsafe { H5Sget_simple_extent_dims(space.get(), sides.as_mut_ptr(), limits.as_mut_ptr()) };
    match got >= 0 {
        true => Ok(sides != limits),
        false => Err(failed("tell the limits of a dataspace")),
    }
}

/// Properties of a link whose name has this encoding.
fn link_creation(is_utf8: bool) -> Result<Id> {
    // SAFETY: the class is open as long as the library is.
    unsafe {
        let creation = Id::new(H5Pcreate(*H5P_CLS_LINK_CREATE), "make properties")?;
        if is_utf8 {
            check(
                H5Pset_char_encoding(creation.get(), H5T_CSET_UTF8),
                "name a link",
            )?;
        }
        Ok(creation)
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

/// Appends a link to the list that `out` is.
unsafe extern "C" fn gather(
    _: hid_t,
    name: *const c_char,
    info: *const H5L_info2_t,
    out: *mut c_void,
) -> herr_t {
    // SAFETY: the library hands out a name and an info; `out` is the list of `links`.
    unsafe {
        let Ok(name) = CStr::from_ptr(name).to_str() else {
            return -1;
        };
        (*out.cast::<Vec<Link>>()).push(Link {
            name: name.to_owned(),
            kind: (*info).type_ as i32,
            is_utf8: (*info).cset == H5T_CSET_UTF8,
        });
    }
    0
}
