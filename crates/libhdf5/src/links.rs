//! Links of groups: what they are called, and where they lead.

use std::ffi::{CStr, c_char, c_void};

use hdf5_metno_sys::h5::{H5_INDEX_CRT_ORDER, H5_INDEX_NAME, H5_ITER_INC, herr_t};
use hdf5_metno_sys::h5g::H5Gget_create_plist;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::{
    H5L_info2_t, H5Lcreate_external, H5Lget_val, H5Literate2, H5Lunpack_elink_val,
};
use hdf5_metno_sys::h5p::{
    H5P_CLS_LINK_CREATE, H5P_CRT_ORDER_TRACKED, H5P_DEFAULT, H5Pcreate, H5Pget_link_creation_order,
    H5Pset_char_encoding,
};
use hdf5_metno_sys::h5t::H5T_CSET_UTF8;
use hyperslab_index::Result;

use crate::handle::{Id, c_name, check};

/// The longest value of a link.
const LONGEST_LINK: usize = 1 << 17;

/// A link of a group.
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) kind: i32,
    pub(crate) is_utf8: bool,
}

/// The links of a group, in the order of their making where that was tracked, or else of their names.
pub(crate) fn links(group: &Id, path: &str) -> Result<Vec<Link>> {
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

/// The value of a link: the path of a soft one, what is packed in an external one.
pub(crate) fn link_value(file: hid_t, path: &str) -> Result<Vec<u8>> {
    let name = c_name(path)?;
    let mut value = vec![0u8; LONGEST_LINK];
    // SAFETY: the buffer has the size that is given.
    let got = unsafe {
        let room = value.as_mut_ptr().cast::<c_void>();
        H5Lget_val(file, name.as_ptr(), room, LONGEST_LINK, H5P_DEFAULT)
    };
    check(got, &format!("read the link {path}"))?;
    Ok(value)
}

/// Makes an external link like that of another file.
pub(crate) fn copy_external_link(
    (source, target): (hid_t, hid_t),
    path: &str,
    creation: &Id,
) -> Result<()> {
    let value = link_value(source, path)?;
    let (mut file, mut object) = (std::ptr::null(), std::ptr::null());
    let mut flags = 0;
    let name = c_name(path)?;
    // SAFETY: the value is as long as is said, and what it is unpacked to points into it.
    unsafe {
        let packed = value.as_ptr().cast::<c_void>();
        let unpacked = H5Lunpack_elink_val(packed, value.len(), &mut flags, &mut file, &mut object);
        check(unpacked, &format!("read the link {path}"))?;
        let made = H5Lcreate_external(
            file,
            object,
            target,
            name.as_ptr(),
            creation.get(),
            H5P_DEFAULT,
        );
        check(made, &format!("make the link {path}"))
    }
}

/// Properties of a link whose name has this encoding.
pub(crate) fn link_creation(is_utf8: bool) -> Result<Id> {
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
