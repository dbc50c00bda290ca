//! The interface of HDF5 connectors, as C has it: version 3 of `H5VL_class_t`, which is the same from
//! HDF5 1.14 to 2.x.
//!
//! Written down here rather than taken from a library's headers, because the plug-in serves every
//! library that loads it. Arguments of operations that are only handed on are left opaque.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};

/// Identifiers.
pub(crate) type Hid = i64;
/// Status: negative if a call failed.
pub(crate) type Herr = c_int;
/// A pointer to an object of ours, or of the native connector's.
pub(crate) type Ptr = *mut c_void;
/// Where an asynchronous operation would leave its request.
pub(crate) type Req = *mut *mut c_void;

pub(crate) const FAIL: Herr = -1;
pub(crate) const DONE: Herr = 0;

/// Kinds of objects (`H5I_type_t`).
pub(crate) mod kind {
    use std::ffi::c_int;

    pub(crate) const FILE: c_int = 1;
    pub(crate) const GROUP: c_int = 2;
    pub(crate) const DATATYPE: c_int = 3;
    pub(crate) const DATASET: c_int = 5;
    pub(crate) const ATTRIBUTE: c_int = 7;
}

/// Where an object is: `H5VL_loc_params_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Location {
    pub(crate) object_kind: c_int,
    /// 0 it is meant itself, 1 a name, 2 an index, 3 a token.
    pub(crate) by: c_int,
    pub(crate) place: Place,
}

impl Location {
    pub(crate) const BY_NAME: c_int = 1;

    /// The object itself.
    pub(crate) fn of_itself(object_kind: c_int) -> Location {
        Location {
            object_kind,
            by: 0,
            place: Place {
                token: std::ptr::null(),
            },
        }
    }

    /// What has this name below an object; the name has to stay where it is.
    pub(crate) fn named(object_kind: c_int, name: &CStr) -> Location {
        Location {
            object_kind,
            by: Self::BY_NAME,
            place: Place {
                name: ByName {
                    name: name.as_ptr(),
                    access: 0,
                },
            },
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Place {
    pub(crate) token: *const Token,
    pub(crate) name: ByName,
    pub(crate) index: ByIndex,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ByName {
    pub(crate) name: *const c_char,
    pub(crate) access: Hid,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ByIndex {
    pub(crate) name: *const c_char,
    pub(crate) index: c_int,
    pub(crate) order: c_int,
    pub(crate) n: u64,
    pub(crate) access: Hid,
}

/// What tells one object of a file from another.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Token(pub(crate) [u8; 16]);

/// An operation whose arguments nobody here looks at.
#[repr(C)]
pub(crate) struct Opaque {
    pub(crate) op: c_int,
}

/// `H5VL_optional_args_t`.
#[repr(C)]
pub(crate) struct Optional {
    pub(crate) op: c_int,
    pub(crate) args: Ptr,
}

/// What is asked of a dataset (`H5VL_dataset_get_t`).
pub(crate) mod dataset_get {
    use std::ffi::c_int;

    pub(crate) const ACCESS: c_int = 0;
    pub(crate) const CREATION: c_int = 1;
    pub(crate) const SPACE: c_int = 2;
    pub(crate) const STATUS: c_int = 3;
    pub(crate) const STORAGE: c_int = 4;
    pub(crate) const DATATYPE: c_int = 5;
}

/// What is done to a dataset (`H5VL_dataset_specific_t`).
pub(crate) mod dataset_specific {
    use std::ffi::c_int;

    pub(crate) const SET_EXTENT: c_int = 0;
    pub(crate) const FLUSH: c_int = 1;
}

/// An operation with one argument, as all have that get something of a dataset or change it.
#[repr(C)]
pub(crate) struct Single {
    pub(crate) op: c_int,
    pub(crate) value: Value,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Value {
    pub(crate) id: Hid,
    pub(crate) pointer: Ptr,
}

/// `H5VL_file_specific_args_t`.
#[repr(C)]
pub(crate) struct FileSpecific {
    pub(crate) op: c_int,
    pub(crate) args: FileSpecificArgs,
}

impl FileSpecific {
    pub(crate) const FLUSH: c_int = 0;
    pub(crate) const REOPEN: c_int = 1;
    pub(crate) const IS_ACCESSIBLE: c_int = 2;
    pub(crate) const DELETE: c_int = 3;
    pub(crate) const IS_EQUAL: c_int = 4;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union FileSpecificArgs {
    /// The kind of the object, and how far around it (1: everywhere).
    pub(crate) flush: [c_int; 2],
    pub(crate) reopen: *mut Ptr,
    pub(crate) named: NamedFile,
    pub(crate) equal: Equal,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct NamedFile {
    pub(crate) name: *const c_char,
    pub(crate) access: Hid,
    pub(crate) accessible: *mut bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Equal {
    pub(crate) other: Ptr,
    pub(crate) same: *mut bool,
}

/// `H5VL_file_get_args_t`, as far as it asks for a name.
#[repr(C)]
pub(crate) struct FileGetName {
    pub(crate) op: c_int,
    /// Arguments begin where a pointer may.
    pub(crate) gap: c_int,
    pub(crate) object_kind: c_int,
    pub(crate) room: usize,
    pub(crate) buffer: *mut c_char,
    pub(crate) length: *mut usize,
}

impl FileGetName {
    pub(crate) const OP: c_int = 5;
}

/// `H5VL_object_get_args_t`, as far as it asks for information.
#[repr(C)]
pub(crate) struct ObjectGetInfo {
    pub(crate) op: c_int,
    /// Arguments begin where a pointer may.
    pub(crate) gap: c_int,
    pub(crate) fields: c_uint,
    pub(crate) info: *mut ObjectInfo,
}

impl ObjectGetInfo {
    pub(crate) const OP: c_int = 3;
    /// The fields that tell objects apart.
    pub(crate) const BASIC: c_uint = 1;
}

/// `H5O_info2_t`.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct ObjectInfo {
    pub(crate) file: c_ulong,
    pub(crate) token: Token,
    pub(crate) kind: c_int,
    pub(crate) links: c_uint,
    pub(crate) times: [i64; 4],
    pub(crate) attributes: u64,
}

/// `H5VL_native_file_get_file_image_t`.
#[repr(C)]
pub(crate) struct FileImage {
    pub(crate) room: usize,
    pub(crate) buffer: Ptr,
    pub(crate) length: *mut usize,
}

impl FileImage {
    pub(crate) const OP: c_int = 1;
}

/// `H5VL_group_specific_args_t`.
#[repr(C)]
pub(crate) struct GroupSpecific {
    pub(crate) op: c_int,
    pub(crate) mount: Mount,
}

impl GroupSpecific {
    pub(crate) const MOUNT: c_int = 0;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Mount {
    pub(crate) name: *const c_char,
    pub(crate) child: Ptr,
    pub(crate) properties: Hid,
}

/// `H5VL_link_create_args_t`.
#[repr(C)]
pub(crate) struct LinkCreate {
    pub(crate) op: c_int,
    pub(crate) hard: HardLink,
}

impl LinkCreate {
    pub(crate) const HARD: c_int = 0;
}

#[repr(C)]
pub(crate) struct HardLink {
    pub(crate) object: Ptr,
    pub(crate) location: Location,
}

/// `H5VL_link_get_args_t`.
#[repr(C)]
pub(crate) struct LinkGet {
    pub(crate) op: c_int,
    pub(crate) args: LinkGetArgs,
}

impl LinkGet {
    pub(crate) const INFO: c_int = 0;
    pub(crate) const VALUE: c_int = 2;
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union LinkGetArgs {
    pub(crate) info: *mut LinkInfo,
    pub(crate) value: LinkValue,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LinkValue {
    pub(crate) room: usize,
    pub(crate) buffer: Ptr,
}

/// `H5L_info2_t`.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct LinkInfo {
    pub(crate) kind: c_int,
    pub(crate) ordered: bool,
    pub(crate) order: i64,
    pub(crate) encoding: c_int,
    /// A token, or the bytes of the link's value.
    pub(crate) length: usize,
    pub(crate) rest: u64,
}

/// `H5VL_link_specific_args_t`, as far as it asks whether a link is there.
#[repr(C)]
pub(crate) struct LinkExists {
    pub(crate) op: c_int,
    pub(crate) answer: *mut bool,
}

impl LinkExists {
    pub(crate) const OP: c_int = 1;
}

/// Connector information: `H5VL_info_class_t`.
#[repr(C)]
pub(crate) struct InfoClass {
    pub(crate) size: usize,
    pub(crate) copy: Option<unsafe extern "C" fn(*const c_void) -> Ptr>,
    pub(crate) cmp: Option<unsafe extern "C" fn(*mut c_int, *const c_void, *const c_void) -> Herr>,
    pub(crate) free: Option<unsafe extern "C" fn(Ptr) -> Herr>,
    pub(crate) to_str: Option<unsafe extern "C" fn(*const c_void, *mut *mut c_char) -> Herr>,
    pub(crate) from_str: Option<unsafe extern "C" fn(*const c_char, *mut Ptr) -> Herr>,
}

/// `H5VL_wrap_class_t`.
#[repr(C)]
pub(crate) struct WrapClass {
    pub(crate) get_object: Option<unsafe extern "C" fn(*const c_void) -> Ptr>,
    pub(crate) get_wrap_ctx: Option<unsafe extern "C" fn(*const c_void, *mut Ptr) -> Herr>,
    pub(crate) wrap_object: Option<unsafe extern "C" fn(Ptr, c_int, Ptr) -> Ptr>,
    pub(crate) unwrap_object: Option<unsafe extern "C" fn(Ptr) -> Ptr>,
    pub(crate) free_wrap_ctx: Option<unsafe extern "C" fn(Ptr) -> Herr>,
}

/// `H5VL_attr_class_t`.
#[repr(C)]
pub(crate) struct AttributeClass {
    pub(crate) create: unsafe extern "C" fn(
        Ptr,
        *const Location,
        *const c_char,
        Hid,
        Hid,
        Hid,
        Hid,
        Hid,
        Req,
    ) -> Ptr,
    pub(crate) open:
        unsafe extern "C" fn(Ptr, *const Location, *const c_char, Hid, Hid, Req) -> Ptr,
    pub(crate) read: unsafe extern "C" fn(Ptr, Hid, Ptr, Hid, Req) -> Herr,
    pub(crate) write: unsafe extern "C" fn(Ptr, Hid, *const c_void, Hid, Req) -> Herr,
    pub(crate) get: unsafe extern "C" fn(Ptr, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) specific: unsafe extern "C" fn(Ptr, *const Location, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) optional: unsafe extern "C" fn(Ptr, *mut Optional, Hid, Req) -> Herr,
    pub(crate) close: unsafe extern "C" fn(Ptr, Hid, Req) -> Herr,
}

/// Reads or writes of several datasets.
pub(crate) type Transfer<B> = unsafe extern "C" fn(
    usize,
    *const Ptr,
    *const Hid,
    *const Hid,
    *const Hid,
    Hid,
    *const B,
    Req,
) -> Herr;

/// `H5VL_dataset_class_t`.
#[repr(C)]
pub(crate) struct DatasetClass {
    pub(crate) create: unsafe extern "C" fn(
        Ptr,
        *const Location,
        *const c_char,
        Hid,
        Hid,
        Hid,
        Hid,
        Hid,
        Hid,
        Req,
    ) -> Ptr,
    pub(crate) open:
        unsafe extern "C" fn(Ptr, *const Location, *const c_char, Hid, Hid, Req) -> Ptr,
    pub(crate) read: Transfer<Ptr>,
    pub(crate) write: Transfer<*const c_void>,
    pub(crate) get: unsafe extern "C" fn(Ptr, *mut Single, Hid, Req) -> Herr,
    pub(crate) specific: unsafe extern "C" fn(Ptr, *mut Single, Hid, Req) -> Herr,
    pub(crate) optional: unsafe extern "C" fn(Ptr, *mut Optional, Hid, Req) -> Herr,
    pub(crate) close: unsafe extern "C" fn(Ptr, Hid, Req) -> Herr,
}

/// `H5VL_datatype_class_t`.
#[repr(C)]
pub(crate) struct DatatypeClass {
    pub(crate) commit: unsafe extern "C" fn(
        Ptr,
        *const Location,
        *const c_char,
        Hid,
        Hid,
        Hid,
        Hid,
        Hid,
        Req,
    ) -> Ptr,
    pub(crate) open:
        unsafe extern "C" fn(Ptr, *const Location, *const c_char, Hid, Hid, Req) -> Ptr,
    pub(crate) get: unsafe extern "C" fn(Ptr, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) specific: unsafe extern "C" fn(Ptr, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) optional: Option<unsafe extern "C" fn(Ptr, *mut Optional, Hid, Req) -> Herr>,
    pub(crate) close: unsafe extern "C" fn(Ptr, Hid, Req) -> Herr,
}

/// `H5VL_file_class_t`.
#[repr(C)]
pub(crate) struct FileClass {
    pub(crate) create: unsafe extern "C" fn(*const c_char, c_uint, Hid, Hid, Hid, Req) -> Ptr,
    pub(crate) open: unsafe extern "C" fn(*const c_char, c_uint, Hid, Hid, Req) -> Ptr,
    pub(crate) get: unsafe extern "C" fn(Ptr, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) specific: unsafe extern "C" fn(Ptr, *mut FileSpecific, Hid, Req) -> Herr,
    pub(crate) optional: unsafe extern "C" fn(Ptr, *mut Optional, Hid, Req) -> Herr,
    pub(crate) close: unsafe extern "C" fn(Ptr, Hid, Req) -> Herr,
}

/// `H5VL_group_class_t`.
#[repr(C)]
pub(crate) struct GroupClass {
    pub(crate) create:
        unsafe extern "C" fn(Ptr, *const Location, *const c_char, Hid, Hid, Hid, Hid, Req) -> Ptr,
    pub(crate) open:
        unsafe extern "C" fn(Ptr, *const Location, *const c_char, Hid, Hid, Req) -> Ptr,
    pub(crate) get: unsafe extern "C" fn(Ptr, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) specific: unsafe extern "C" fn(Ptr, *mut GroupSpecific, Hid, Req) -> Herr,
    pub(crate) optional: unsafe extern "C" fn(Ptr, *mut Optional, Hid, Req) -> Herr,
    pub(crate) close: unsafe extern "C" fn(Ptr, Hid, Req) -> Herr,
}

/// Copies or moves a link.
pub(crate) type LinkTransfer =
    unsafe extern "C" fn(Ptr, *const Location, Ptr, *const Location, Hid, Hid, Hid, Req) -> Herr;

/// `H5VL_link_class_t`.
#[repr(C)]
pub(crate) struct LinkClass {
    pub(crate) create:
        unsafe extern "C" fn(*mut LinkCreate, Ptr, *const Location, Hid, Hid, Hid, Req) -> Herr,
    pub(crate) copy: LinkTransfer,
    pub(crate) rename: LinkTransfer,
    pub(crate) get: unsafe extern "C" fn(Ptr, *const Location, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) specific: unsafe extern "C" fn(Ptr, *const Location, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) optional:
        Option<unsafe extern "C" fn(Ptr, *const Location, *mut Optional, Hid, Req) -> Herr>,
}

/// `H5VL_object_class_t`.
#[repr(C)]
pub(crate) struct ObjectClass {
    pub(crate) open: unsafe extern "C" fn(Ptr, *const Location, *mut c_int, Hid, Req) -> Ptr,
    pub(crate) copy: unsafe extern "C" fn(
        Ptr,
        *const Location,
        *const c_char,
        Ptr,
        *const Location,
        *const c_char,
        Hid,
        Hid,
        Hid,
        Req,
    ) -> Herr,
    pub(crate) get: unsafe extern "C" fn(Ptr, *const Location, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) specific: unsafe extern "C" fn(Ptr, *const Location, *mut Opaque, Hid, Req) -> Herr,
    pub(crate) optional:
        unsafe extern "C" fn(Ptr, *const Location, *mut Optional, Hid, Req) -> Herr,
}

/// `H5VL_introspect_class_t`.
#[repr(C)]
pub(crate) struct IntrospectClass {
    pub(crate) get_conn_cls: unsafe extern "C" fn(Ptr, c_int, *mut *const Class) -> Herr,
    pub(crate) get_cap_flags: unsafe extern "C" fn(*const c_void, *mut u64) -> Herr,
    pub(crate) opt_query: unsafe extern "C" fn(Ptr, c_int, c_int, *mut u64) -> Herr,
}

/// `H5VL_request_class_t`: nothing here is asynchronous.
#[repr(C)]
pub(crate) struct RequestClass {
    pub(crate) unused: [Option<unsafe extern "C" fn()>; 6],
}

/// `H5VL_blob_class_t`.
#[repr(C)]
pub(crate) struct BlobClass {
    pub(crate) put: unsafe extern "C" fn(Ptr, *const c_void, usize, Ptr, Ptr) -> Herr,
    pub(crate) get: unsafe extern "C" fn(Ptr, *const c_void, Ptr, usize, Ptr) -> Herr,
    pub(crate) specific: unsafe extern "C" fn(Ptr, Ptr, *mut Opaque) -> Herr,
    pub(crate) optional: Option<unsafe extern "C" fn(Ptr, Ptr, *mut Optional) -> Herr>,
}

/// `H5VL_token_class_t`.
#[repr(C)]
pub(crate) struct TokenClass {
    pub(crate) cmp: unsafe extern "C" fn(Ptr, *const Token, *const Token, *mut c_int) -> Herr,
    pub(crate) to_str: unsafe extern "C" fn(Ptr, c_int, *const Token, *mut *mut c_char) -> Herr,
    pub(crate) from_str: unsafe extern "C" fn(Ptr, c_int, *const c_char, *mut Token) -> Herr,
}

/// A connector: `H5VL_class_t`.
#[repr(C)]
pub(crate) struct Class {
    pub(crate) version: c_uint,
    pub(crate) value: c_int,
    pub(crate) name: *const c_char,
    pub(crate) conn_version: c_uint,
    pub(crate) cap_flags: u64,
    pub(crate) initialize: Option<unsafe extern "C" fn(Hid) -> Herr>,
    pub(crate) terminate: Option<unsafe extern "C" fn() -> Herr>,
    pub(crate) info: InfoClass,
    pub(crate) wrap: WrapClass,
    pub(crate) attribute: AttributeClass,
    pub(crate) dataset: DatasetClass,
    pub(crate) datatype: DatatypeClass,
    pub(crate) file: FileClass,
    pub(crate) group: GroupClass,
    pub(crate) link: LinkClass,
    pub(crate) object: ObjectClass,
    pub(crate) introspect: IntrospectClass,
    pub(crate) request: RequestClass,
    pub(crate) blob: BlobClass,
    pub(crate) token: TokenClass,
    pub(crate) optional: Option<unsafe extern "C" fn(Ptr, *mut Optional, Hid, Req) -> Herr>,
}

// SAFETY: a class is only read; its pointers are to functions and to a name that is never freed.
unsafe impl Sync for Class {}

// Measured from the headers of HDF5 1.14.2 to 2.2.0.
const _: () = assert!(size_of::<Class>() == 632 && size_of::<Location>() == 40);
