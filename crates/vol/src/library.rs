//! The libhdf5s of this process, and what is called in each.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem;
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{Dl_info, RTLD_LAZY, RTLD_NODELETE, RTLD_NOLOAD, dladdr, dlopen, dlsym};

use hyperslab::{Error, Result};

use crate::abi::{Class, Herr, Hid};
use crate::api::Api;
use crate::native::Id;

/// Libraries in one process, at most.
pub(crate) const SLOTS: usize = 8;

static LIBRARIES: [OnceLock<Library>; SLOTS] = [const { OnceLock::new() }; SLOTS];
/// Held while a library is given its slot.
static FINDING: Mutex<()> = Mutex::new(());

/// A libhdf5.
pub(crate) struct Library {
    /// Where it is in memory; what tells it from others.
    base: usize,
    slot: usize,
    handle: usize,
    native: OnceLock<&'static Class>,
    push: Push,
    /// What else is called.
    pub(crate) api: Api,
}

/// `H5Epush2`: stack, file, function, line, class, major, minor, format, text.
type Push = unsafe extern "C" fn(
    Hid,
    *const c_char,
    *const c_char,
    c_uint,
    Hid,
    Hid,
    Hid,
    *const c_char,
    ...
) -> Herr;

/// The number of the library that has its code at an address; `None` if it is none, or one too many.
pub(crate) fn slot_of(caller: *const c_void) -> Option<usize> {
    let mut found = mem::MaybeUninit::<Dl_info>::zeroed();
    // SAFETY: any address may be asked for; the answer goes into a structure of the right type.
    let known = unsafe { dladdr(caller, found.as_mut_ptr()) } != 0;
    // SAFETY: all zeros are a value of that type, whether anything was written or not.
    let found = unsafe { found.assume_init() };
    let base = found.dli_fbase as usize;
    if !known || base == 0 {
        return None;
    }
    let _held = FINDING.lock().unwrap_or_else(PoisonError::into_inner);
    for (slot, library) in LIBRARIES.iter().enumerate() {
        match library.get() {
            Some(library) if library.base == base => return Some(slot),
            Some(_) => {}
            None => {
                // SAFETY: the name is that of a library that is loaded.
                let made = unsafe { Library::open(base, slot, found.dli_fname) }?;
                return library.set(made).is_ok().then_some(slot);
            }
        }
    }
    None
}

/// The address of a function or a variable of a library.
fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: handles of libraries are valid as long as the process lives, since none is closed.
    let found = unsafe { dlsym(handle, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The library in a slot that was given.
pub(crate) fn library<const S: usize>() -> Option<&'static Library> {
    LIBRARIES.get(S).and_then(OnceLock::get)
}

/// Whether the environment names this connector.
pub(crate) fn is_asked_for() -> bool {
    let named = std::env::var("HDF5_VOL_CONNECTOR").unwrap_or_default();
    named.split_whitespace().next() == Some("hyperslab")
}

impl Library {
    /// # Safety
    /// `name` is a string of C's, or null.
    unsafe fn open(base: usize, slot: usize, name: *const c_char) -> Option<Library> {
        // Never unloaded: threads of ours may outlive the last file.
        // SAFETY: a library that is loaded already is only looked up.
        let mut handle = unsafe { dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) };
        // SAFETY: the handle is valid, or null, which means the program itself.
        if handle.is_null() || unsafe { dlsym(handle, c"H5open".as_ptr()) }.is_null() {
            // Linked into the program.
            // SAFETY: no name means the program.
            handle = unsafe { dlopen(std::ptr::null(), RTLD_LAZY) };
        }
        let symbol = |name: &CStr| symbol(handle, name);
        let push = symbol(c"H5Epush2")?;
        Some(Library {
            base,
            slot,
            handle: handle as usize,
            native: OnceLock::new(),
            // SAFETY: a function of that name has that type in every version.
            push: unsafe { mem::transmute::<*mut c_void, Push>(push) },
            api: Api::load(symbol).ok()?,
        })
    }

    /// The address of a function or a variable.
    fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        symbol(self.handle as *mut c_void, name)
    }

    /// An identifier in a variable of the library's, which has it once the library has started.
    fn id(&self, name: &CStr) -> Option<Hid> {
        // SAFETY: variables of these names hold identifiers in every version.
        self.symbol(name)
            .map(|found| unsafe { *found.cast::<Hid>() })
    }

    /// True if a file driver is one that a program brings itself: h5py has one for Python's file objects.
    pub(crate) fn is_foreign_driver(&self, driver: Hid) -> bool {
        /// Variables of HDF5 2.x, and functions of 1.14, that tell what the library's own drivers are.
        const OWN: [(&CStr, &CStr); 9] = [
            (c"H5FD_SEC2_id_g", c"H5FD_sec2_init"),
            (c"H5FD_CORE_id_g", c"H5FD_core_init"),
            (c"H5FD_LOG_id_g", c"H5FD_log_init"),
            (c"H5FD_FAMILY_id_g", c"H5FD_family_init"),
            (c"H5FD_MULTI_id_g", c"H5FD_multi_init"),
            (c"H5FD_STDIO_id_g", c"H5FD_stdio_init"),
            (c"H5FD_SPLITTER_id_g", c"H5FD_splitter_init"),
            (c"H5FD_ONION_id_g", c"H5FD_onion_init"),
            (c"H5FD_DIRECT_id_g", c"H5FD_direct_init"),
        ];
        type Init = unsafe extern "C" fn() -> Hid;
        let own = |(variable, function): &(&CStr, &CStr)| {
            self.id(variable).or_else(|| {
                let found = self.symbol(function)?;
                // SAFETY: functions of these names have that type, and may be called any number of times.
                Some(unsafe { mem::transmute::<*mut c_void, Init>(found)() })
            })
        };
        driver > 0 && !OWN.iter().filter_map(own).any(|id| id == driver)
    }

    /// Looks up the native connector; from then on calls can be handed on to it.
    pub(crate) fn start(&self) -> Option<()> {
        if self.native.get().is_some() {
            return Some(());
        }
        type Register = unsafe extern "C" fn() -> Hid;
        type GetClass = unsafe extern "C" fn(*mut c_void, Hid, c_int, *mut *const Class) -> Herr;
        let id = match self.id(c"H5VL_NATIVE_g") {
            Some(id) => id,
            None => {
                let register = self.symbol(c"H5VL_native_register")?;
                // SAFETY: in HDF5 1.14 a function without arguments, which may be called any time.
                unsafe { mem::transmute::<*mut c_void, Register>(register)() }
            }
        };
        let get = self.symbol(c"H5VLintrospect_get_conn_cls")?;
        // SAFETY: this is its type in every version.
        let get = unsafe { mem::transmute::<*mut c_void, GetClass>(get) };
        let mut class = std::ptr::null();
        // The native connector does not look at the object, but there must be one.
        let mut object = 0_u64;
        // SAFETY: the identifier is that of the native connector; the class is written on success.
        let status = unsafe { get((&raw mut object).cast(), id, 0, &mut class) };
        // SAFETY: the class of the native connector is a variable of the library's.
        let class = unsafe { class.as_ref() }.filter(|_| status >= 0)?;
        self.native.set(class).ok()
    }

    /// Its number among those of the process.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// The native connector; `None` before the start.
    pub(crate) fn native(&self) -> Option<&'static Class> {
        self.native.get().copied()
    }

    /// True from HDF5 2.0 on.
    pub(crate) fn is_two(&self) -> bool {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: the answers go into these.
        let status = unsafe { (self.api.H5get_libversion)(&mut major, &mut minor, &mut patch) };
        status >= 0 && major >= 2
    }

    /// Has files with this access opened by this connector.
    pub(crate) fn serve(&'static self, access: Hid) -> Result<()> {
        let failed = || Error::internal("libhdf5 does not find the connector that it has loaded");
        let settings = std::env::var("HDF5_VOL_CONNECTOR").unwrap_or_default();
        let settings = settings
            .split_once(' ')
            .map_or("", |(_, settings)| settings);
        let settings = CString::new(settings).unwrap_or_default();
        // SAFETY: texts end with a zero, and are copied; both identifiers are open.
        let status = unsafe {
            let id = (self.api.H5VLget_connector_id_by_name)(c"hyperslab".as_ptr());
            let connector = Id::new(self, id).ok_or_else(failed)?;
            (self.api.H5Pset_vol)(access, connector.get(), settings.as_ptr().cast())
        };
        match status < 0 {
            true => Err(failed()),
            false => Ok(()),
        }
    }

    /// Leaves an error for the program, as the last thing that a call does.
    pub(crate) fn push(&self, text: &CStr) {
        let ids = (
            self.id(c"H5E_ERR_CLS_g"),
            self.id(c"H5E_VOL_g"),
            self.id(c"H5E_CANTOPERATE_g"),
        );
        let (Some(class), Some(major), Some(minor)) = ids else {
            return;
        };
        let (file, function) = (c"hyperslab".as_ptr(), c"vol".as_ptr());
        // SAFETY: the identifiers are the library's own, the texts end with a zero, and the format
        // takes one of them.
        unsafe {
            (self.push)(
                0,
                file,
                function,
                0,
                class,
                major,
                minor,
                c"%s".as_ptr(),
                text.as_ptr(),
            )
        };
    }
}
