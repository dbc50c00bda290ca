//! HDF5 types for the cells of arrays: those that h5py would write, so that it reads them back as what
//! they were.

use std::ffi::c_void;

use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5t::{
    H5T_C_S1, H5T_COMPOUND, H5T_CSET_UTF8, H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_OPAQUE,
    H5T_STD_I8LE, H5T_STD_I16LE, H5T_STD_I32LE, H5T_STD_I64LE, H5T_STD_U8LE, H5T_STD_U16LE,
    H5T_STD_U32LE, H5T_STD_U64LE, H5T_STR_NULLPAD, H5T_VARIABLE, H5Tarray_create2, H5Tcopy,
    H5Tcreate, H5Tenum_create, H5Tenum_insert, H5Tinsert, H5Tset_cset, H5Tset_ebias, H5Tset_fields,
    H5Tset_size, H5Tset_strpad, H5Tset_tag, H5Tvlen_create,
};
use hyperslab_format::DataType;
use hyperslab_index::{Error, Result};

use crate::handle::{Id, c_name, check};

/// The type of cells that lie in memory as [`DataType`] says.
pub(crate) fn datatype(dtype: &DataType) -> Result<Id> {
    match dtype {
        DataType::Bool => boolean(),
        DataType::Int(1) => predefined(*H5T_STD_I8LE),
        DataType::Int(2) => predefined(*H5T_STD_I16LE),
        DataType::Int(4) => predefined(*H5T_STD_I32LE),
        DataType::Int(8) => predefined(*H5T_STD_I64LE),
        DataType::UInt(1) => predefined(*H5T_STD_U8LE),
        DataType::UInt(2) => predefined(*H5T_STD_U16LE),
        DataType::UInt(4) => predefined(*H5T_STD_U32LE),
        DataType::UInt(8) => predefined(*H5T_STD_U64LE),
        DataType::Float(2) => half(),
        DataType::Float(4) => predefined(*H5T_IEEE_F32LE),
        DataType::Float(8) => predefined(*H5T_IEEE_F64LE),
        DataType::Complex(bytes) => {
            let part = datatype(&DataType::Float(bytes / 2))?;
            let half = usize::from(bytes / 2);
            compound(2 * half, &[("r", 0, &part), ("i", half, &part)])
        }
        DataType::FixedBytes(bytes) => {
            let text = predefined(*H5T_C_S1)?;
            // SAFETY: the type is a copy, which may be changed.
            unsafe {
                check(H5Tset_size(text.get(), *bytes as usize), "size a string")?;
                check(H5Tset_strpad(text.get(), H5T_STR_NULLPAD), "pad a string")?;
            }
            Ok(text)
        }
        DataType::RawBits(bytes) | DataType::RawBytes(bytes) => opaque(u64::from(*bytes), ""),
        // HDF5 has neither times nor UTF-32; h5py names such types of NumPy's in a tag.
        DataType::FixedUtf32(length) => {
            opaque(4 * u64::from(*length), &format!("NUMPY:<U{length}"))
        }
        DataType::DateTime(unit) => opaque(8, &format!("NUMPY:<M8{unit}")),
        DataType::TimeDelta(unit) => opaque(8, &format!("NUMPY:<m8{unit}")),
        DataType::Struct(fields) => {
            let mut members = Vec::with_capacity(fields.len());
            let mut at = 0;
            for field in fields {
                if !field.name.is_empty() {
                    members.push((field.name.as_str(), at, datatype(&field.dtype)?));
                }
                at += field.dtype.cell_bytes().unwrap_or(0) as usize;
            }
            let borrowed: Vec<_> = members.iter().map(|(n, at, id)| (*n, *at, id)).collect();
            compound(at, &borrowed)
        }
        DataType::Array(base, dims) => {
            let base = datatype(base)?;
            let dims: Vec<u64> = dims.iter().map(|dim| u64::from(*dim)).collect();
            // SAFETY: the list has as many sides as is said.
            let made = unsafe { H5Tarray_create2(base.get(), dims.len() as u32, dims.as_ptr()) };
            Id::new(made, "make an array type")
        }
        DataType::String => text(),
        DataType::VarBytes => {
            // SAFETY: the base is a type.
            let made = unsafe { H5Tvlen_create(*H5T_STD_U8LE) };
            Id::new(made, "make a type of sequences")
        }
        other => Err(Error::invalid(format!("HDF5 has no type for {other}"))),
    }
}

/// A copy of a type that the library knows.
pub(crate) fn predefined(datatype: hid_t) -> Result<Id> {
    // SAFETY: predefined types are open as long as the library is.
    Id::new(unsafe { H5Tcopy(datatype) }, "copy a type")
}

/// UTF-8 text of any length.
pub(crate) fn text() -> Result<Id> {
    let text = predefined(*H5T_C_S1)?;
    // SAFETY: the type is a copy, which may be changed.
    unsafe {
        check(H5Tset_size(text.get(), H5T_VARIABLE), "size a string")?;
        check(H5Tset_cset(text.get(), H5T_CSET_UTF8), "make text UTF-8")?;
    }
    Ok(text)
}

/// An enumeration of two names.
pub(crate) fn boolean() -> Result<Id> {
    // SAFETY: the values have the size of the base type, which is one byte.
    unsafe {
        let made = Id::new(H5Tenum_create(*H5T_STD_I8LE), "make a boolean")?;
        for (name, value) in [(c"FALSE", 0u8), (c"TRUE", 1)] {
            let value = std::ptr::from_ref(&value).cast::<c_void>();
            check(
                H5Tenum_insert(made.get(), name.as_ptr(), value),
                "name a boolean",
            )?;
        }
        Ok(made)
    }
}

/// IEEE 754 numbers of two bytes, which this version of the library does not know by itself.
fn half() -> Result<Id> {
    let made = predefined(*H5T_IEEE_F32LE)?;
    // SAFETY: the type is a copy, which may be changed.
    unsafe {
        check(
            H5Tset_fields(made.get(), 15, 10, 5, 0, 10),
            "lay out a number",
        )?;
        check(H5Tset_size(made.get(), 2), "size a number")?;
        check(H5Tset_ebias(made.get(), 15), "lay out a number")?;
    }
    Ok(made)
}

fn opaque(bytes: u64, tag: &str) -> Result<Id> {
    let tag = c_name(tag)?;
    // SAFETY: the tag is a C string.
    unsafe {
        let made = Id::new(
            H5Tcreate(H5T_OPAQUE, bytes as usize),
            "make a type of bytes",
        )?;
        check(H5Tset_tag(made.get(), tag.as_ptr()), "tag a type")?;
        Ok(made)
    }
}

fn compound(bytes: usize, members: &[(&str, usize, &Id)]) -> Result<Id> {
    // SAFETY: names are C strings, and types are open.
    unsafe {
        let made = Id::new(H5Tcreate(H5T_COMPOUND, bytes), "make a compound type")?;
        for (name, at, member) in members {
            let c_name = c_name(name)?;
            check(
                H5Tinsert(made.get(), c_name.as_ptr(), *at, member.get()),
                &format!("make the member {name}"),
            )?;
        }
        Ok(made)
    }
}
