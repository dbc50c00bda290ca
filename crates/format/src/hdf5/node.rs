//! The objects of a file as nodes of a hierarchy: groups with their members, datasets as arrays.
//!
//! Between parsers and the facade.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::attribute::{self, Attribute};
use super::cells::Cells;
use super::dataset::{self, Dataset, Segment, Storage};
use super::datatype::{Class, Type};
use super::file::File;
use super::header::Context;
use super::heap::{self, Place};
use super::link::{self, Link, Target};
use super::mapping::Entry;
use super::message::FilterSpec;
use super::resolve::{FileResolver, element_bytes, meta};
use super::scales;
use super::value;
use crate::codec::Swap;
use crate::{ArrayMeta, Error, FillValue, GroupMeta, Result};

/// Values of variable length whose heaps are fetched together.
const TOGETHER: usize = 1 << 14;

/// An object of a file.
#[derive(Debug)]
pub enum Object {
    /// A group: what users say of it, and the names of its members.
    Group(GroupMeta, Vec<Member>),
    /// A dataset.
    Dataset(Box<FileArray>),
    /// A data type by itself.
    Datatype,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// What leads to it.
    pub kind: MemberKind,
}

/// What leads to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberKind {
    /// It is here: the address of its header.
    Here(u64),
    /// A path in this file.
    Soft(String),
    /// A path in another file.
    External {
        /// The other file's name.
        file: String,
        /// The path there.
        path: String,
    },
    /// A link that only its program can follow.
    Unknown,
}

/// A dataset as an array.
#[derive(Debug)]
pub struct FileArray {
    /// Its metadata.
    pub meta: ArrayMeta,
    /// Where its chunks are; none for datasets whose cells are in other files.
    pub resolver: Option<FileResolver>,
    pub(crate) dataset: Dataset,
}

/// Cells of a dataset that are in other files.
#[derive(Debug, Clone)]
pub enum Elsewhere {
    /// In other datasets.
    Virtual(Vec<Entry>),
    /// One after another, in parts of files without a structure.
    External(Vec<Segment>),
}

impl FileArray {
    /// Where its cells are, if they are in other files.
    pub fn elsewhere(&self) -> Option<Elsewhere> {
        match &self.dataset.storage {
            Storage::Virtual(entries) => Some(Elsewhere::Virtual(entries.clone())),
            Storage::External(segments) => Some(Elsewhere::External(segments.clone())),
            _ => None,
        }
    }

    /// True if its cells are the bytes that the file has, but for the order of bytes in numbers, and
    /// mean the same in any file.
    pub fn is_plain(&self) -> bool {
        let cells = &self.dataset.cells;
        let same = cells.heap.is_none() && cells.fixes.is_empty() && cells.widen.is_none();
        same && !self.dataset.datatype.has_references()
    }

    /// True if its elements are texts of any length.
    pub fn is_text(&self) -> bool {
        matches!(self.dataset.datatype.class, Class::VarString { .. })
    }

    /// The bytes of the file that hold its cells.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let stored = self.resolver.as_ref().map(FileResolver::stored);
        let ranges = stored.into_iter().flatten().map(|(_, range, _)| range);
        ranges.collect()
    }

    pub(crate) fn filter_specs(&self) -> &[FilterSpec] {
        &self.dataset.filters
    }

    /// True if more than the order of bytes has to be changed after reading.
    pub(crate) fn has_fixes(&self) -> bool {
        !self.dataset.cells.fixes.is_empty() || self.dataset.cells.widen.is_some()
    }

    /// True if the most significant byte comes first.
    pub(crate) fn is_swapped(&self) -> bool {
        self.dataset.cells.swap != Swap::None
    }

    /// True if the places of its chunks were not read, because there are many of them.
    pub fn is_pending(&self) -> bool {
        matches!(&self.dataset.storage, Storage::Chunked { table: None, .. })
    }

    /// How many of its dimensions, the last ones, are those of its elements.
    pub fn inner_dims(&self) -> usize {
        self.dataset.cells.inner.len()
    }

    /// The type of what its elements refer to in the heap, if they do.
    pub fn heap(&self) -> Option<HeapType> {
        HeapType::of(&self.dataset)
    }
}

/// The type of values in the heap of a file.
#[derive(Debug, Clone)]
pub struct HeapType {
    of: Type,
    /// The element that stands where nobody wrote one.
    fill: Bytes,
}

impl HeapType {
    fn of(dataset: &Dataset) -> Option<HeapType> {
        let of = dataset.cells.heap.clone()?;
        let size = element_bytes(dataset) as usize;
        // An element that is an array has the fill values of its cells one after another.
        let fill = dataset.fill.as_ref().and_then(|fill| fill.get(..size));
        let fill = fill.map_or_else(|| vec![0; size], <[u8]>::to_vec);
        Some(HeapType {
            of,
            fill: fill.into(),
        })
    }
}

impl File {
    /// The values that references lead to, in their order. What they need is fetched together.
    pub async fn values(&self, references: &[Bytes], of: &HeapType) -> Result<Vec<Bytes>> {
        let mut values = Vec::with_capacity(references.len());
        // Not all at a time: their heaps are held until they are read.
        for some in references.chunks(TOGETHER) {
            let read = self.parse(|context| heap_values(context, some, of));
            values.extend(read.await?);
        }
        Ok(values)
    }

    /// The object at an address, to which a path led.
    pub async fn object(&self, address: u64, path: &str) -> Result<Object> {
        let mut all = self
            .objects(&[(address, path.to_owned())], u64::MAX)
            .await?;
        all.pop()
            .unwrap_or_else(|| Err(Error::internal("an object was lost")))
    }

    /// The objects at several addresses, with their paths; what they need is fetched together. Where
    /// the chunks of a dataset are is read if there are at most `most`.
    pub async fn objects(
        &self,
        wanted: &[(u64, String)],
        most: u64,
    ) -> Result<Vec<Result<Object>>> {
        self.parse_all(wanted, |context, (address, path)| {
            self.parse_object(context, *address, path, most)
        })
        .await
    }

    fn parse_object(
        &self,
        context: &Context<'_>,
        address: u64,
        path: &str,
        most: u64,
    ) -> Result<Object> {
        let header = context.header(address)?;
        let attributes = attribute::attributes(context, &header);
        if dataset::is_dataset(&header) {
            let dataset = dataset::parse(context, &header, most);
            // Both are missed together.
            let (attributes, dataset) = (attributes?, dataset?);
            let array = self.array(context, path, dataset, &attributes)?;
            return Ok(Object::Dataset(Box::new(array)));
        }
        if !link::is_group(&header) {
            attributes?;
            return Ok(Object::Datatype);
        }
        let links = link::links(context, &header);
        let (attributes, links) = (attributes?, links?);
        let group = GroupMeta {
            attributes: json(context, &attributes)?,
            ..GroupMeta::default()
        };
        Ok(Object::Group(
            group,
            links.into_iter().map(member).collect(),
        ))
    }

    fn array(
        &self,
        context: &Context<'_>,
        path: &str,
        dataset: Dataset,
        attributes: &[Attribute],
    ) -> Result<FileArray> {
        let mut meta = meta(&dataset)?;
        if let Some(heap) = HeapType::of(&dataset) {
            let fill = heap_values(context, &[Bytes::new()], &heap)?.concat();
            meta.fill = FillValue::from_bytes(&meta.dtype, &fill)?;
        }
        let rank = meta.shape.rank();
        let groups = (self.root(), &self.groups);
        let names = scales::dimension_names(context, groups, path, attributes, rank);
        meta.attributes = json(context, attributes)?;
        meta.dimension_names = names?;
        let resolver = match &dataset.storage {
            Storage::External(_) | Storage::Virtual(_) => None,
            Storage::Chunked { table: None, .. } => None,
            _ => {
                let (key, base) = (self.key(), self.place(0));
                Some(FileResolver::new(key, base, &dataset, &meta)?)
            }
        };
        Ok(FileArray {
            meta,
            resolver,
            dataset,
        })
    }
}

fn heap_values(context: &Context<'_>, cells: &[Bytes], heap: &HeapType) -> Result<Vec<Bytes>> {
    let of = &heap.of;
    // The cells of a chunk that nobody wrote are empty.
    let written = |cell: &Bytes| match cell.is_empty() {
        true => heap.fill.clone(),
        false => cell.clone(),
    };
    let cells: Vec<Bytes> = cells.iter().map(written).collect();
    let is_text = matches!(of.class, Class::VarString { .. });
    if of.is_variable() && !is_text {
        return value::texts(context, &cells, of);
    }
    referred(context, &cells, of, is_text)
}

/// The values that cells refer to: texts, or sequences of elements of one size.
fn referred(
    context: &Context<'_>,
    references: &[Bytes],
    of: &Type,
    is_text: bool,
) -> Result<Vec<Bytes>> {
    let mut places = Vec::with_capacity(references.len());
    for reference in references {
        places.push(heap::reference(context, reference)?);
    }
    let mut heaps: HashMap<u64, Result<HashMap<u32, Bytes>>> = HashMap::new();
    for place in places.iter().flatten() {
        // All of them are asked for before one that is missing ends this.
        heaps
            .entry(place.heap)
            .or_insert_with(|| heap::global(context, place.heap));
    }
    let mut opened = HashMap::new();
    for (address, objects) in heaps {
        opened.insert(address, objects?);
    }
    let swap = match is_text {
        true => None,
        false => Some(Cells::new(of)?),
    };
    let value = |place: &Option<Place>| {
        let Some(place) = place else {
            return Ok(Bytes::new());
        };
        let stored = opened
            .get(&place.heap)
            .and_then(|heap| heap.get(&place.object));
        let stored = stored.ok_or_else(|| Error::data("a value is not in its heap"))?;
        if is_text {
            let end = stored.iter().position(|b| *b == 0).unwrap_or(stored.len());
            return Ok(stored.slice(..end));
        }
        let bytes = u64::from(place.count) * u64::from(of.size);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let stored = stored
            .get(..bytes)
            .ok_or_else(|| Error::data("a value is shorter than it says"))?;
        let mut stored = stored.to_vec();
        if let Some(cells) = &swap {
            cells.swap.apply(&mut stored);
            let cell = of.size as usize;
            cells
                .fixes
                .iter()
                .for_each(|fix| fix.apply(&mut stored, cell));
        }
        Ok(stored.into())
    };
    places.iter().map(value).collect()
}

fn member(link: Link) -> Member {
    Member {
        name: link.name,
        kind: match link.target {
            Target::Hard(address) => MemberKind::Here(address),
            Target::Soft(path) => MemberKind::Soft(path),
            Target::External { file, path } => MemberKind::External { file, path },
            Target::User(_) => MemberKind::Unknown,
        },
    }
}

/// Attributes as JSON; those of dimension scales are left out.
fn json(context: &Context<'_>, attributes: &[Attribute]) -> Result<Map<String, Value>> {
    let mut map = Map::new();
    for attribute in attributes {
        if !scales::HIDDEN.contains(&attribute.name.as_str()) {
            map.insert(attribute.name.clone(), value::json(context, attribute)?);
        }
    }
    Ok(map)
}
