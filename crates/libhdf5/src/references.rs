//! References, which mean something in one file only: they are made anew for the other one.

use std::ffi::c_void;

use hdf5_metno_sys::h5d::{H5Dget_space, H5Dget_type, H5Dread, H5Dwrite};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5r::{
    H5R_DATASET_REGION1, H5R_OBJECT1, H5R_type_t, H5Rcreate, H5Rget_name, H5Rget_region,
};
use hdf5_metno_sys::h5s::{H5S_SELECT_SET, H5Screate_simple, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::{
    H5T_ARRAY, H5T_COMPOUND, H5T_REFERENCE, H5T_STD_REF_DSETREG, H5T_STD_REF_OBJ, H5T_VLEN,
    H5Tdetect_class, H5Tequal, H5Tget_class, H5Tget_member_offset, H5Tget_member_type,
    H5Tget_nmembers, H5Tget_size, H5Tget_super, H5Treclaim, hvl_t,
};
use hyperslab_index::{Error, Result};

use crate::handle::{Id, check, elements, failed, sides};

/// Bytes of cells that are copied at a time, about.
const TOGETHER: usize = 8 << 20;

/// Makes the references in cells anew; returns what could not be, in a sentence.
pub(crate) fn translate(
    files: (hid_t, hid_t),
    datatype: &Id,
    cells: &mut [u8],
) -> Result<Option<String>> {
    // SAFETY: the identifier is that of a type.
    let has_references = unsafe { H5Tdetect_class(datatype.get(), H5T_REFERENCE) };
    if has_references <= 0 {
        return Ok(None);
    }
    let mut lost = 0;
    translate_all(files, datatype, cells, &mut lost)?;
    Ok(match lost {
        0 => None,
        1 => {
            Some("a reference that leads nowhere, or of a kind that cannot be made anew".to_owned())
        }
        n => Some(format!(
            "{n} references that lead nowhere, or of kinds that cannot be made anew"
        )),
    })
}

fn translate_all(
    files: (hid_t, hid_t),
    datatype: &Id,
    cells: &mut [u8],
    lost: &mut u64,
) -> Result<()> {
    // SAFETY: the identifier is that of a type.
    let (class, size) = unsafe { (H5Tget_class(datatype.get()), H5Tget_size(datatype.get())) };
    if size == 0 {
        return Ok(());
    }
    match class {
        H5T_REFERENCE => {
            let kind = kind(datatype);
            for cell in cells.chunks_exact_mut(size) {
                if cell.iter().all(|byte| *byte == 0) {
                    continue;
                }
                let made = kind.is_some_and(|kind| remake(files, kind, cell).is_ok());
                if !made {
                    cell.fill(0);
                    *lost += 1;
                }
            }
        }
        H5T_COMPOUND => {
            // SAFETY: members are asked for by their numbers.
            let count = unsafe { H5Tget_nmembers(datatype.get()) };
            for n in 0..u32::try_from(count).unwrap_or(0) {
                // SAFETY: as above.
                let (member, offset) = unsafe {
                    (
                        Id::new(H5Tget_member_type(datatype.get(), n), "tell a member")?,
                        H5Tget_member_offset(datatype.get(), n),
                    )
                };
                // SAFETY: the identifier is that of a type.
                let length = unsafe { H5Tget_size(member.get()) };
                for cell in cells.chunks_exact_mut(size) {
                    if let Some(part) = cell.get_mut(offset..offset + length) {
                        translate_all(files, &member, part, lost)?;
                    }
                }
            }
        }
        H5T_ARRAY => {
            let base = base(datatype)?;
            translate_all(files, &base, cells, lost)?;
        }
        H5T_VLEN => {
            let base = base(datatype)?;
            // SAFETY: the identifier is that of a type.
            let each = unsafe { H5Tget_size(base.get()) };
            for cell in cells.chunks_exact_mut(size) {
                // SAFETY: the library has put a length and a pointer to so many elements here.
                let inner = unsafe {
                    let sequence = cell.as_ptr().cast::<hvl_t>().read_unaligned();
                    if sequence.p.is_null() || sequence.len == 0 {
                        continue;
                    }
                    std::slice::from_raw_parts_mut(sequence.p.cast::<u8>(), sequence.len * each)
                };
                translate_all(files, &base, inner, lost)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn base(datatype: &Id) -> Result<Id> {
    // SAFETY: the identifier is that of a type made of another one.
    Id::new(
        unsafe { H5Tget_super(datatype.get()) },
        "tell the type of elements",
    )
}

/// The kind of a reference, if it is one that can be made anew.
fn kind(datatype: &Id) -> Option<H5R_type_t> {
    // SAFETY: all are identifiers of types.
    unsafe {
        if H5Tequal(datatype.get(), *H5T_STD_REF_OBJ) > 0 {
            return Some(H5R_OBJECT1);
        }
        if H5Tequal(datatype.get(), *H5T_STD_REF_DSETREG) > 0 {
            return Some(H5R_DATASET_REGION1);
        }
    }
    None
}

fn remake((source, target): (hid_t, hid_t), kind: H5R_type_t, cell: &mut [u8]) -> Result<()> {
    let reference = cell.as_mut_ptr().cast::<c_void>();
    // SAFETY: the cell holds a reference of this kind; the name has the room that is given.
    unsafe {
        let length = H5Rget_name(source, kind, reference, std::ptr::null_mut(), 0);
        let length = usize::try_from(length).map_err(|_| failed("follow a reference"))?;
        if length == 0 {
            return Err(Error::data("a reference leads to an object without a name"));
        }
        let mut name = vec![0u8; length + 1];
        H5Rget_name(
            source,
            kind,
            reference,
            name.as_mut_ptr().cast(),
            name.len(),
        );
        let region = match kind {
            H5R_DATASET_REGION1 => Some(Id::new(
                H5Rget_region(source, kind, reference),
                "follow a reference",
            )?),
            _ => None,
        };
        let space = region.as_ref().map_or(-1, Id::get);
        let made = H5Rcreate(reference, target, name.as_ptr().cast(), kind, space);
        check(made, "make a reference")
    }
}

/// Copies all cells of a dataset, some rows at a time; returns what was lost.
pub(crate) fn copy_cells(
    (source, from): (hid_t, &Id),
    (target, to): (hid_t, &Id),
) -> Result<Option<String>> {
    // SAFETY: the identifier is that of a dataset.
    let (datatype, whole) = unsafe {
        (
            Id::new(H5Dget_type(from.get()), "tell a type")?,
            Id::new(H5Dget_space(from.get()), "tell a shape")?,
        )
    };
    if elements(&whole)? == 0 {
        return Ok(None);
    }
    // SAFETY: the identifier is that of a type.
    let size = unsafe { H5Tget_size(datatype.get()) };
    let dims = sides(&whole)?;
    let row: u64 = dims.iter().skip(1).product();
    let rows = dims.first().copied().unwrap_or(1);
    let some = (TOGETHER as u64 / (row * size as u64).max(1)).clamp(1, rows);
    let mut lost = None;
    let mut at = 0;
    while at < rows {
        let count = some.min(rows - at);
        let mut start = vec![0; dims.len()];
        let mut counts = dims.clone();
        if let (Some(start), Some(side)) = (start.first_mut(), counts.first_mut()) {
            (*start, *side) = (at, count);
        }
        let bytes = usize::try_from(count * row)
            .ok()
            .and_then(|n| n.checked_mul(size));
        let bytes = bytes.ok_or_else(|| Error::data("a row is larger than memory can be"))?;
        let mut cells = vec![0u8; bytes];
        let room = cells.as_mut_ptr().cast::<c_void>();
        // SAFETY: selections and buffer have the same number of elements; what the library allocates
        // for them is given back to it.
        unsafe {
            let memory = memory_space(&counts)?;
            if !dims.is_empty() {
                let selected = H5Sselect_hyperslab(
                    whole.get(),
                    H5S_SELECT_SET,
                    start.as_ptr(),
                    std::ptr::null(),
                    counts.as_ptr(),
                    std::ptr::null(),
                );
                check(selected, "select rows")?;
            }
            let (kind, memory, file) = (datatype.get(), memory.get(), whole.get());
            check(
                H5Dread(from.get(), kind, memory, file, H5P_DEFAULT, room),
                "read cells",
            )?;
            let what = translate((source, target), &datatype, &mut cells);
            let written = H5Dwrite(to.get(), kind, memory, file, H5P_DEFAULT, room);
            let written = check(written, "write cells");
            H5Treclaim(kind, memory, H5P_DEFAULT, room);
            lost = lost.or(what?);
            written?;
        }
        at += count;
    }
    Ok(lost)
}

fn memory_space(counts: &[u64]) -> Result<Id> {
    // SAFETY: the list has as many sides as is said; a scalar has none.
    let made = unsafe {
        match counts.is_empty() {
            true => hdf5_metno_sys::h5s::H5Screate(hdf5_metno_sys::h5s::H5S_SCALAR),
            false => H5Screate_simple(counts.len() as i32, counts.as_ptr(), std::ptr::null()),
        }
    };
    Id::new(made, "make a dataspace")
}
