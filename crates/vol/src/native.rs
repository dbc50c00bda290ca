//! What the connector asks of the native one, which holds the hierarchies of remote files.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::ops::Deref;
use std::ptr;

use hyperslab::format::hdf5::{Description, Entry, FileArray, seal};
use hyperslab::{Error, FillValue, Result};

use crate::abi::{
    Class, FileImage, FileSpecific, FileSpecificArgs, Herr, Hid, LinkExists, LinkGet, LinkGetArgs,
    LinkInfo, LinkValue, Location, ObjectGetInfo, ObjectInfo, Opaque, Optional, Ptr, Single, Value,
    dataset_get, dataset_specific, kind,
};
use crate::library::Library;
use crate::space::{ALL, Space};
use crate::texts;

/// The newest version of the format that HDF5 1.14 reads (`H5F_LIBVER_V114`).
const NEWEST: c_int = 4;
/// Bytes by which a file in memory grows.
const GROWTH: usize = 64 << 10;
/// Layouts (`H5D_layout_t`).
const CHUNKED: c_int = 2;
const VIRTUAL: c_int = 3;

/// The native connector of a library.
#[derive(Clone, Copy)]
pub(crate) struct Native {
    pub(crate) library: &'static Library,
    pub(crate) class: &'static Class,
}

impl Deref for Native {
    type Target = Class;

    fn deref(&self) -> &Class {
        self.class
    }
}

/// An object of the native connector's, below which others are.
#[derive(Clone, Copy)]
pub(crate) struct Below {
    pub(crate) object: Ptr,
    pub(crate) kind: c_int,
}

/// An object of the native connector's that is closed when it goes out of scope.
pub(crate) struct Opened {
    native: Native,
    pub(crate) object: Ptr,
    pub(crate) kind: c_int,
    transfer: Hid,
}

impl Drop for Opened {
    fn drop(&mut self) {
        let close = match self.kind {
            kind::DATASET => self.native.class.dataset.close,
            kind::DATATYPE => self.native.class.datatype.close,
            _ => self.native.class.group.close,
        };
        // SAFETY: it is this one's to close.
        unsafe { close(self.object, self.transfer, ptr::null_mut()) };
    }
}

/// An identifier that is released when it goes out of scope.
pub(crate) struct Id {
    library: &'static Library,
    id: Hid,
}

impl Id {
    /// Takes over an identifier that a call returned; `None` if it failed.
    pub(crate) fn new(library: &'static Library, id: Hid) -> Option<Id> {
        // Not `then_some`: one that is made and not wanted would be released.
        (id > 0).then(|| Id { library, id })
    }

    pub(crate) fn get(&self) -> Hid {
        self.id
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: the identifier is this one's to release.
        unsafe { (self.library.api.H5Idec_ref)(self.id) };
    }
}

impl Native {
    fn id(&self, id: Hid, what: &str) -> Result<Id> {
        Id::new(self.library, id).ok_or_else(|| failed(what))
    }

    /// File access as a program asked for it, but for a file in memory: with this content, or empty.
    pub(crate) fn in_memory(&self, access: Hid, image: Option<&[u8]>) -> Result<Id> {
        let api = &self.library.api;
        // SAFETY: the list is open.
        let copy = self.id(unsafe { (api.H5Pcopy)(access) }, "copy properties")?;
        let (mut low, mut high) = (0, 0);
        // SAFETY: the copy is ours to change; the image is copied.
        let status = unsafe {
            (api.H5Pset_fapl_core)(copy.get(), GROWTH, false)
                .min((api.H5Pget_libver_bounds)(copy.get(), &mut low, &mut high))
                .min((api.H5Pset_libver_bounds)(
                    copy.get(),
                    low.min(NEWEST),
                    high.min(NEWEST),
                ))
        };
        check(status, "prepare a file in memory")?;
        if let Some(image) = image {
            // SAFETY: as above.
            let status = unsafe {
                let bytes = image.as_ptr().cast_mut().cast();
                (api.H5Pset_file_image)(copy.get(), bytes, image.len())
            };
            check(status, "hold a file in memory")?;
        }
        Ok(copy)
    }

    /// The versions of the format that a program asked for.
    pub(crate) fn bounds(&self, access: Hid) -> (c_int, c_int) {
        let (mut low, mut high) = (0, NEWEST);
        // SAFETY: the list is open.
        unsafe { (self.library.api.H5Pget_libver_bounds)(access, &mut low, &mut high) };
        (low, high)
    }

    /// Makes file access what a program asked for: nothing tells that the file is in memory.
    pub(crate) fn restore(&self, access: Hid, (low, high): (c_int, c_int)) {
        let api = &self.library.api;
        // SAFETY: the list is open, and the program's to be.
        unsafe {
            (api.H5Pset_fapl_sec2)(access);
            (api.H5Pset_libver_bounds)(access, low, high);
        }
    }

    /// File access as a program asked for it, but for an ordinary file.
    pub(crate) fn on_disk(&self, access: Hid) -> Result<Id> {
        let api = &self.library.api;
        // SAFETY: the list is open, and the copy ours to change.
        let copy = self.id(unsafe { (api.H5Pcopy)(access) }, "copy properties")?;
        // SAFETY: as above.
        let status = unsafe { (api.H5Pset_fapl_sec2)(copy.get()) };
        check(status, "prepare a file on disk")?;
        Ok(copy)
    }

    /// The content of a file in memory, as it would be on disk.
    pub(crate) fn image(&self, file: Ptr, transfer: Hid) -> Result<Vec<u8>> {
        let mut flush = FileSpecific {
            op: FileSpecific::FLUSH,
            args: FileSpecificArgs {
                flush: [kind::FILE, 1],
            },
        };
        // SAFETY: the file is one of the native connector's; nothing asks for a request.
        let status =
            unsafe { (self.class.file.specific)(file, &mut flush, transfer, ptr::null_mut()) };
        check(status, "flush the hierarchy")?;
        let ask = |room: usize, buffer: Ptr| {
            let mut length = 0;
            let mut args = FileImage {
                room,
                buffer,
                length: &raw mut length,
            };
            let mut optional = Optional {
                op: FileImage::OP,
                args: (&raw mut args).cast(),
            };
            // SAFETY: as above; there is as much room as is said.
            let status = unsafe {
                (self.class.file.optional)(file, &mut optional, transfer, ptr::null_mut())
            };
            check(status, "copy the hierarchy").map(|()| length)
        };
        let mut image = vec![0; ask(0, ptr::null_mut())?];
        let length = ask(image.len(), image.as_mut_ptr().cast())?;
        image.truncate(length);
        seal(&mut image);
        Ok(image)
    }

    /// Where the header of an object is.
    pub(crate) fn address(&self, object: Ptr, object_kind: c_int, transfer: Hid) -> Result<u64> {
        let location = Location::of_itself(object_kind);
        let mut info = ObjectInfo::default();
        let mut args = ObjectGetInfo {
            op: ObjectGetInfo::OP,
            gap: 0,
            fields: ObjectGetInfo::BASIC,
            info: &raw mut info,
        };
        // SAFETY: the object is one of the native connector's; the answer goes into `info`.
        let status = unsafe {
            let args = (&raw mut args).cast::<Opaque>();
            (self.class.object.get)(object, &location, args, transfer, ptr::null_mut())
        };
        check(status, "tell where an object is")?;
        let mut address = [0; 8];
        address.copy_from_slice(&info.token.0[..8]);
        Ok(u64::from_le_bytes(address))
    }

    /// Opens an object by its name below another; `None` if there is none.
    pub(crate) fn open(&self, below: &Below, name: &str, transfer: Hid) -> Option<Opened> {
        let name = CString::new(name).ok()?;
        let location = Location::named(below.kind, &name);
        let mut kind = 0;
        // SAFETY: the object is one of the native connector's; what is opened is closed by its owner.
        let object = unsafe {
            (self.class.object.open)(
                below.object,
                &location,
                &mut kind,
                transfer,
                ptr::null_mut(),
            )
        };
        // Not before it is known that there is something to close.
        (!object.is_null()).then(|| Opened {
            native: *self,
            object,
            kind,
            transfer,
        })
    }

    /// The kind of a link (`H5L_type_t`) and the bytes of its value, by its name below an object; `None`
    /// if there is none. Only its last part may be a link that leads to another file.
    pub(crate) fn link(&self, below: &Below, name: &CStr, transfer: Hid) -> Option<(c_int, usize)> {
        let location = Location::named(below.kind, name);
        let mut there = false;
        let mut asked = LinkExists {
            op: LinkExists::OP,
            answer: &raw mut there,
        };
        let mut info = LinkInfo::default();
        let mut told = LinkGet {
            op: LinkGet::INFO,
            args: LinkGetArgs {
                info: &raw mut info,
            },
        };
        // SAFETY: the object is one of the native connector's; answers go into `there` and `info`. It is
        // asked first whether there is one, because what fails leaves an error.
        unsafe {
            let (object, none) = (below.object, ptr::null_mut());
            let asked = (&raw mut asked).cast();
            let status = (self.class.link.specific)(object, &location, asked, transfer, none);
            if status < 0 || !there {
                return None;
            }
            let told = (&raw mut told).cast();
            let status = (self.class.link.get)(object, &location, told, transfer, none);
            (status >= 0).then_some((info.kind, info.length))
        }
    }

    /// The value of a link of so many bytes.
    pub(crate) fn link_value(
        &self,
        below: &Below,
        name: &CStr,
        bytes: usize,
        transfer: Hid,
    ) -> Option<Vec<u8>> {
        let location = Location::named(below.kind, name);
        let mut value = vec![0_u8; bytes];
        let mut args = LinkGet {
            op: LinkGet::VALUE,
            args: LinkGetArgs {
                value: LinkValue {
                    room: bytes,
                    buffer: value.as_mut_ptr().cast(),
                },
            },
        };
        // SAFETY: the object is one of the native connector's; there is as much room as is said.
        let status = unsafe {
            let args = (&raw mut args).cast();
            (self.class.link.get)(below.object, &location, args, transfer, ptr::null_mut())
        };
        (status >= 0).then_some(value)
    }

    /// Opens a file that a link of another one leads to, as a program would, through this connector.
    /// `link` says how links are followed; where it says nothing of files, they are opened with `flags`
    /// and as `file` was.
    pub(crate) fn open_linked(
        &self,
        name: &CStr,
        link: Hid,
        flags: c_uint,
        (file, bounds): (Ptr, (c_int, c_int)),
        transfer: Hid,
    ) -> Result<Id> {
        /// As the file with the link was opened (`H5F_ACC_DEFAULT`).
        const AS_THE_OTHER: c_uint = 0xffff;
        let api = &self.library.api;
        let (mut asked, mut access) = (AS_THE_OTHER, None);
        if link > 0 {
            // SAFETY: the list is open; what is told of file access is a copy.
            unsafe {
                (api.H5Pget_elink_acc_flags)(link, &mut asked);
                access = Id::new(self.library, (api.H5Pget_elink_fapl)(link));
            }
        }
        let flags = if asked == AS_THE_OTHER { flags } else { asked };
        let access = match access {
            Some(access) => access,
            None => {
                let access = self.file_access(file, transfer)?;
                self.restore(access.get(), bounds);
                self.library.serve(access.get())?;
                access
            }
        };
        // SAFETY: the name ends with a zero, and the list is open.
        let id = unsafe { (api.H5Fopen)(name.as_ptr(), flags, access.get()) };
        self.id(id, "open a file that a link leads to")
    }

    /// Whether a file is open for reading only, or for writing too (`H5F_ACC_*`).
    pub(crate) fn intent(&self, file: Ptr, transfer: Hid) -> Result<c_uint> {
        /// `H5VL_FILE_GET_INTENT`.
        const OP: c_int = 4;
        let mut flags: c_uint = 0;
        let mut args = Single {
            op: OP,
            value: Value {
                pointer: (&raw mut flags).cast(),
            },
        };
        // SAFETY: the file is one of the native connector's; the answer goes into `flags`.
        let status = unsafe {
            let asked = (&raw mut args).cast::<Opaque>();
            (self.class.file.get)(file, asked, transfer, ptr::null_mut())
        };
        check(status, "tell how a file was opened")?;
        Ok(flags)
    }

    /// How a file was opened.
    fn file_access(&self, file: Ptr, transfer: Hid) -> Result<Id> {
        /// `H5VL_FILE_GET_FAPL`.
        const OP: c_int = 1;
        let mut args = Single {
            op: OP,
            value: Value { id: 0 },
        };
        // SAFETY: the file is one of the native connector's; the answer is an identifier.
        let id = unsafe {
            let asked = (&raw mut args).cast::<Opaque>();
            let status = (self.class.file.get)(file, asked, transfer, ptr::null_mut());
            if status < 0 { -1 } else { args.value.id }
        };
        self.id(id, "tell how a file was opened")
    }

    /// Writes a whole dataset, whose elements are as the file has them.
    pub(crate) fn write_all(&self, dataset: Ptr, cells: &[u8], transfer: Hid) -> Result<()> {
        let datatype = self.of_dataset(dataset, dataset_get::DATATYPE, transfer)?;
        let (types, all, bytes) = ([datatype.get()], [ALL], [cells.as_ptr().cast()]);
        // SAFETY: the dataset is one of the native connector's, and there are as many cells as it has.
        let status = unsafe {
            (self.class.dataset.write)(
                1,
                &dataset,
                types.as_ptr(),
                all.as_ptr(),
                all.as_ptr(),
                transfer,
                bytes.as_ptr(),
                ptr::null_mut(),
            )
        };
        check(status, "write a dataset")
    }

    /// The file that an object is in.
    pub(crate) fn file_of(&self, object: Ptr, object_kind: c_int, transfer: Hid) -> Result<Ptr> {
        /// `H5VL_object_get_args_t`, as far as it asks for the file.
        #[repr(C)]
        struct GetFile {
            op: c_int,
            file: *mut Ptr,
        }
        let location = Location::of_itself(object_kind);
        let mut file = ptr::null_mut();
        let mut args = GetFile {
            op: 0,
            file: &raw mut file,
        };
        // SAFETY: the object is one of the native connector's; the answer goes into `file`.
        let status = unsafe {
            let args = (&raw mut args).cast::<Opaque>();
            (self.class.object.get)(object, &location, args, transfer, ptr::null_mut())
        };
        check(status, "tell the file of an object")?;
        Ok(file)
    }

    /// Closes a file of the native connector's, whose objects may still be open.
    pub(crate) fn close_file(&self, file: Ptr, transfer: Hid) -> Result<()> {
        // SAFETY: the file is one of the native connector's, and lives as long as its objects.
        let status = unsafe { (self.class.file.close)(file, transfer, ptr::null_mut()) };
        check(status, "close a file that was asked for")
    }

    /// The type, space or creation properties of a dataset.
    pub(crate) fn of_dataset(&self, dataset: Ptr, what: c_int, transfer: Hid) -> Result<Id> {
        let mut args = Single {
            op: what,
            value: Value { id: 0 },
        };
        // SAFETY: the dataset is one of the native connector's; all three answers are identifiers.
        let id = unsafe {
            let status = (self.class.dataset.get)(dataset, &mut args, transfer, ptr::null_mut());
            if status < 0 { -1 } else { args.value.id }
        };
        self.id(id, "describe a dataset")
    }

    /// Gives a dataset of the hierarchy another shape.
    pub(crate) fn resize(&self, dataset: Ptr, dims: &[u64], transfer: Hid) -> Result<()> {
        let mut args = Single {
            op: dataset_specific::SET_EXTENT,
            value: Value {
                pointer: dims.as_ptr().cast_mut().cast(),
            },
        };
        // SAFETY: the dataset is one of the native connector's, and has as many dimensions.
        let status =
            unsafe { (self.class.dataset.specific)(dataset, &mut args, transfer, ptr::null_mut()) };
        check(status, "resize a dataset")
    }

    /// True if a dataset is put together from others.
    pub(crate) fn is_virtual(&self, dataset: Ptr, transfer: Hid) -> Result<bool> {
        let creation = self.of_dataset(dataset, dataset_get::CREATION, transfer)?;
        // SAFETY: the list is open.
        Ok(unsafe { (self.library.api.H5Pget_layout)(creation.get()) } == VIRTUAL)
    }

    /// A dataset as an array; `None` if it is not one that an array can be: its cells are elsewhere, or
    /// it has none.
    pub(crate) fn describe(&self, dataset: Ptr, transfer: Hid) -> Result<Option<FileArray>> {
        let api = &self.library.api;
        let datatype = self.of_dataset(dataset, dataset_get::DATATYPE, transfer)?;
        let space = self.of_dataset(dataset, dataset_get::SPACE, transfer)?;
        let creation = self.of_dataset(dataset, dataset_get::CREATION, transfer)?;
        self.described(datatype.get(), space.get(), creation.get(), transfer)
            .map(|array| {
                // SAFETY: the list is open.
                let external = unsafe { (api.H5Pget_external_count)(creation.get()) };
                array.filter(|_| external <= 0)
            })
    }

    fn described(
        &self,
        datatype: Hid,
        space: Hid,
        creation: Hid,
        transfer: Hid,
    ) -> Result<Option<FileArray>> {
        let api = &self.library.api;
        let space = Space::new(self.library, space);
        if space.is_empty() {
            return Ok(None);
        }
        let dims = space.dims()?;
        // SAFETY: the list is open.
        let chunk = match unsafe { (api.H5Pget_layout)(creation) } {
            // Compact cells are in the header; those of virtual datasets elsewhere.
            0 | VIRTUAL => return Ok(None),
            CHUNKED => {
                let mut chunk = vec![0; dims.len()];
                // SAFETY: there is room for a side of every dimension.
                let rank = unsafe {
                    (api.H5Pget_chunk)(creation, dims.len() as c_int, chunk.as_mut_ptr())
                };
                check(rank, "tell the chunks of a dataset")?;
                Some(chunk)
            }
            _ => None,
        };
        let encoded = self.encoded(datatype)?;
        let fill = self.fill(datatype, creation)?;
        let is_text = self.is_text(datatype);
        let mut described = Description {
            datatype: &encoded,
            dims: &dims,
            chunk: chunk.as_deref(),
            fill: fill.clone().filter(|_| !is_text),
            filters: self.filters(creation)?,
        };
        let array = described
            .array()
            .or_else(|e| match described.filters.is_empty() {
                true => Err(e),
                // Cells in arrays are not filtered as they would be in a file: any filter will do.
                false => {
                    described.filters.clear();
                    described.array()
                }
            });
        let mut array = array?;
        if let Some(fill) = fill.filter(|_| is_text) {
            // SAFETY: of such a type, an element is a text, which is ours to free.
            let text = unsafe { texts::take(&fill, self.memory(transfer)) };
            let text = text.first().cloned().unwrap_or_default();
            array.meta.fill = FillValue::from_bytes(&array.meta.dtype, &text)?;
        }
        Ok(Some(array))
    }

    /// How the program has memory for values of any length.
    pub(crate) fn memory(&self, transfer: Hid) -> texts::Memory {
        let mut memory = texts::Memory::default();
        // SAFETY: the list is open, or the default one; the answers go into these.
        unsafe {
            (self.library.api.H5Pget_vlen_mem_manager)(
                transfer,
                &mut memory.allocate,
                &mut memory.allocate_with,
                &mut memory.release,
                &mut memory.release_with,
            );
        }
        memory
    }

    fn encoded(&self, datatype: Hid) -> Result<Vec<u8>> {
        let api = &self.library.api;
        let mut length = 0;
        // SAFETY: without a buffer, only the length is told.
        let status = unsafe { (api.H5Tencode)(datatype, ptr::null_mut(), &mut length) };
        check(status, "describe a data type")?;
        let mut encoded = vec![0_u8; length];
        // SAFETY: there is as much room as was asked for.
        let status = unsafe { (api.H5Tencode)(datatype, encoded.as_mut_ptr().cast(), &mut length) };
        check(status, "describe a data type")?;
        encoded.truncate(length);
        Ok(encoded)
    }

    /// The fill value of a dataset, in its own type, if one is set and ever used.
    fn fill(&self, datatype: Hid, creation: Hid) -> Result<Option<Vec<u8>>> {
        /// Somebody set it (`H5D_FILL_VALUE_USER_DEFINED`).
        const SET: c_int = 2;
        /// Nothing is filled (`H5D_FILL_TIME_NEVER`).
        const NEVER: c_int = 1;
        let api = &self.library.api;
        let (mut defined, mut time) = (0, 0);
        // SAFETY: the list is open.
        let status = unsafe {
            (api.H5Pfill_value_defined)(creation, &mut defined)
                .min((api.H5Pget_fill_time)(creation, &mut time))
        };
        check(status, "tell a fill value")?;
        if defined != SET || time == NEVER {
            return Ok(None);
        }
        // SAFETY: the type is open.
        let mut fill = vec![0_u8; unsafe { (api.H5Tget_size)(datatype) }];
        // SAFETY: there is room for an element.
        let status =
            unsafe { (api.H5Pget_fill_value)(creation, datatype, fill.as_mut_ptr().cast()) };
        check(status, "tell a fill value")?;
        Ok(Some(fill))
    }

    /// True if elements of a type are texts of any length.
    fn is_text(&self, datatype: Hid) -> bool {
        // SAFETY: the type is open.
        unsafe { (self.library.api.H5Tis_variable_str)(datatype) > 0 }
    }

    /// The prefix of the names of files with sources of a virtual dataset.
    pub(crate) fn virtual_prefix(&self, dataset: Ptr, transfer: Hid) -> Result<String> {
        let access = self.of_dataset(dataset, dataset_get::ACCESS, transfer)?;
        let call = self.library.api.H5Pget_virtual_prefix;
        // SAFETY: the list is open; there is as much room as is said, or none is wanted.
        Ok(text_of(|buffer, room| unsafe {
            call(access.get(), buffer, room)
        }))
    }

    /// A virtual dataset as an array without cells, and what it is put together from.
    pub(crate) fn mapping(&self, dataset: Ptr, transfer: Hid) -> Result<(FileArray, Vec<Entry>)> {
        let api = &self.library.api;
        let datatype = self.of_dataset(dataset, dataset_get::DATATYPE, transfer)?;
        let space = self.of_dataset(dataset, dataset_get::SPACE, transfer)?;
        let creation = self.of_dataset(dataset, dataset_get::CREATION, transfer)?;
        let dims = Space::new(self.library, space.get()).dims()?;
        let fill = self.fill(datatype.get(), creation.get())?;
        let encoded = self.encoded(datatype.get())?;
        let array = Description {
            datatype: &encoded,
            dims: &dims,
            chunk: None,
            fill: fill.filter(|_| !self.is_text(datatype.get())),
            filters: Vec::new(),
        };
        let mut count = 0;
        // SAFETY: the list is open.
        let status = unsafe { (api.H5Pget_virtual_count)(creation.get(), &mut count) };
        check(status, "tell the sources of a dataset")?;
        if dims.contains(&0) {
            // libhdf5 does not tell which none of no elements are meant.
            count = 0;
        }
        let entry = |i: usize| {
            // SAFETY: the list is open, and has so many sources; there is as much room as is said.
            unsafe {
                let list = creation.get();
                let place = self.id((api.H5Pget_virtual_vspace)(list, i), "tell a source")?;
                // Of selections without an end the number is not told.
                if Space::new(self.library, place.get())
                    .selected()
                    .is_ok_and(|n| n == 0)
                {
                    return Ok(None);
                }
                let source = self.id((api.H5Pget_virtual_srcspace)(list, i), "tell a source")?;
                Ok(Some(Entry {
                    file: text_of(|to, room| (api.H5Pget_virtual_filename)(list, i, to, room)),
                    dataset: text_of(|to, room| (api.H5Pget_virtual_dsetname)(list, i, to, room)),
                    source: Space::new(self.library, source.get()).stored()?,
                    place: Space::new(self.library, place.get()).stored()?,
                }))
            }
        };
        let entries: Result<Vec<Entry>> = (0..count).filter_map(|i| entry(i).transpose()).collect();
        Ok((array.array()?, entries?))
    }

    /// The filters of a dataset's chunks.
    fn filters(&self, creation: Hid) -> Result<Vec<(u16, Vec<u32>)>> {
        /// Parameters that a filter may have, at most.
        const MOST: usize = 64;
        let api = &self.library.api;
        // SAFETY: the list is open.
        let count = unsafe { (api.H5Pget_nfilters)(creation) };
        check(count, "tell the filters of a dataset")?;
        let mut filters = Vec::new();
        for i in 0..count.unsigned_abs() {
            let (mut flags, mut found, mut settings) = (0, MOST, 0);
            let mut values = vec![0; MOST];
            // SAFETY: there is room for so many parameters; no name is wanted.
            let id = unsafe {
                (api.H5Pget_filter2)(
                    creation,
                    i,
                    &mut flags,
                    &mut found,
                    values.as_mut_ptr(),
                    0,
                    ptr::null_mut(),
                    &mut settings,
                )
            };
            let id = u16::try_from(id).map_err(|_| failed("tell a filter of a dataset"))?;
            values.truncate(found);
            filters.push((id, values));
        }
        Ok(filters)
    }

    /// The text behind the connector's name that a program's file access has.
    pub(crate) fn config(&self, access: Hid) -> String {
        let api = &self.library.api;
        let mut info = ptr::null_mut();
        // Asking forgets the errors that a program may be about to see.
        // SAFETY: the list is open; the answer is a copy of the text, or null; the errors that were
        // taken are given back.
        let status = unsafe {
            let errors = (api.H5Eget_current_stack)();
            let status = (api.H5Pget_vol_info)(access, &mut info);
            if errors >= 0 {
                (api.H5Eset_current_stack)(errors);
            }
            status
        };
        if status < 0 || info.is_null() {
            return String::new();
        }
        // SAFETY: what libhdf5 keeps for us are texts that end with a zero.
        let text = unsafe { CStr::from_ptr(info.cast()) }
            .to_string_lossy()
            .into_owned();
        // SAFETY: the copy was made by `strdup`.
        unsafe { libc::free(info) };
        text
    }
}

fn check(status: Herr, what: &str) -> Result<()> {
    match status < 0 {
        true => Err(failed(what)),
        false => Ok(()),
    }
}

fn failed(what: &str) -> Error {
    Error::invalid(format!("libhdf5 could not {what}"))
}

/// A text that a function tells when it is asked for its length first.
fn text_of(ask: impl Fn(*mut c_char, usize) -> isize) -> String {
    let length = ask(ptr::null_mut(), 0);
    let mut text = vec![0_u8; usize::try_from(length).unwrap_or(0) + 1];
    ask(text.as_mut_ptr().cast(), text.len());
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    text.to_string_lossy().into_owned()
}
