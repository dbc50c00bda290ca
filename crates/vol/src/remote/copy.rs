//! Copies of datasets: the native connector copies what it has of them, and here their cells follow.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use hyperslab::format::hdf5::{MemberKind, Object};
use hyperslab::{Result, Selection, block_on, objects_in};

use super::{Dataset, RemoteFile};
use crate::abi::{Hid, Ptr, kind};
use crate::native::{Below, Native};
use crate::texts::{self, Memory};

/// One side of a copy: the object below which it is, its name there, and the file, if it is in a store.
pub(crate) struct Side<'a> {
    pub(crate) below: Below,
    pub(crate) name: &'a str,
    pub(crate) file: Option<&'a RemoteFile>,
}

impl Side<'_> {
    fn named(&self, path: &str) -> String {
        match path {
            "" => self.name.to_owned(),
            path => format!("{}/{path}", self.name.trim_end_matches('/')),
        }
    }
}

/// Copies the cells of all datasets of a copy that the native connector has made.
pub(crate) fn copy_cells(native: Native, from: &Side, to: &Side, transfer: Hid) -> Result<()> {
    let Some(source) = from.file else {
        // The native connector had them.
        return Ok(());
    };
    for path in paths(native, from, transfer)? {
        // What was not copied is not there.
        let Some(made) = native.open(&to.below, &to.named(&path), transfer) else {
            continue;
        };
        let original = native.open(&from.below, &from.named(&path), transfer);
        let Some(original) = original.filter(|one| one.kind == kind::DATASET) else {
            continue;
        };
        let Some(cells) = source.dataset(native, original.object, transfer)? else {
            continue;
        };
        match to.file {
            Some(file) => {
                if file.knows(native, made.object, transfer)? {
                    continue;
                }
                if let Some(copy) = file.made(native, made.object, transfer)? {
                    cells.copy_to(&copy)?;
                    file.relieve(native, made.object, transfer)?;
                }
            }
            None => cells.write_home(native, made.object, transfer)?,
        }
    }
    Ok(())
}

/// The paths of everything below the source of a copy, each object once, and of what its soft links
/// lead to.
fn paths(native: Native, from: &Side, transfer: Hid) -> Result<Vec<String>> {
    let Some(root) = native.open(&from.below, from.name, transfer) else {
        return Ok(Vec::new());
    };
    if root.kind == kind::DATASET {
        return Ok(vec![String::new()]);
    }
    let address = native.address(root.object, root.kind, transfer)?;
    let image = |file| native.image(file, transfer);
    let image = match from.file {
        Some(file) => file.with_native(native, (root.object, root.kind), transfer, image),
        None => image(native.file_of(root.object, root.kind, transfer)?),
    };
    let image = Bytes::from(image?);
    let objects: HashMap<u64, Object> = block_on(objects_in(image))?
        .into_iter()
        .map(|noted| (noted.address, noted.object))
        .collect();
    let mut paths = Vec::new();
    let mut seen = HashSet::from([address]);
    let mut open = vec![(address, String::new())];
    while let Some((address, path)) = open.pop() {
        let Some(Object::Group(_, members)) = objects.get(&address) else {
            paths.push(path);
            continue;
        };
        for member in members {
            let below = match path.is_empty() {
                true => member.name.clone(),
                false => format!("{path}/{}", member.name),
            };
            match member.kind {
                MemberKind::Here(address) if seen.insert(address) => open.push((address, below)),
                MemberKind::Here(_) | MemberKind::Unknown => {}
                MemberKind::Soft(_) | MemberKind::External { .. } => paths.push(below),
            }
        }
    }
    Ok(paths)
}

impl Dataset {
    /// Writes all elements to a dataset of the same shape and type that the native connector has.
    pub(super) fn write_home(&self, native: Native, dataset: Ptr, transfer: Hid) -> Result<()> {
        if self.is_text() {
            let all = texts::give(&self.read_texts(&Selection::All)?, Memory::default())?;
            let written = native.write_all(dataset, &all, transfer);
            // SAFETY: they were made above, and the native connector keeps none of them.
            unsafe { texts::release(&all, Memory::default()) };
            return written;
        }
        let mut all = vec![0; self.bytes()];
        self.read(&Selection::All, &mut all)?;
        native.write_all(dataset, &all, transfer)
    }

    /// Copies all cells to a dataset of the same shape and type.
    fn copy_to(&self, copy: &Dataset) -> Result<()> {
        for region in self.regions()? {
            let selection = Selection::region(&region);
            if self.is_text() {
                copy.write_texts(&selection, self.read_texts(&selection)?)?;
                continue;
            }
            let cell = self.meta().fill.bytes().len();
            let mut cells = vec![0; region.num_cells() as usize * cell];
            self.read_cells(&selection, &mut cells)?;
            copy.write_cells(&selection, &cells)?;
        }
        Ok(())
    }
}
