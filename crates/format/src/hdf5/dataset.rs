//! Datasets: what the messages of an object header say together.
//!
//! Between messages and the resolver.

use super::cells::Cells;
use super::chunks::{self, ChunkTable, Grid};
use super::datatype::Type;
use super::header::{Context, Header, kind};
use super::heap;
use super::mapping::{self, Entry};
use super::message::{self, FilterSpec, Layout, Space};
use crate::{Error, Result};

/// A dataset.
#[derive(Debug, Clone)]
pub(crate) struct Dataset {
    pub(crate) space: Space,
    pub(crate) datatype: Type,
    pub(crate) cells: Cells,
    pub(crate) filters: Vec<FilterSpec>,
    pub(crate) fill: Option<Vec<u8>>,
    pub(crate) storage: Storage,
}

/// Where the elements are.
#[derive(Debug, Clone)]
pub(crate) enum Storage {
    /// Nowhere as yet: all are fill values.
    Nowhere,
    /// One after another, from this address on.
    Contiguous(u64),
    /// One after another, in parts of other files.
    External(Vec<Segment>),
    Chunked {
        /// Where each chunk is; `None` if that was not asked for.
        table: Option<ChunkTable>,
        chunk: Vec<u64>,
        /// Chunks that reach beyond the dataset are stored without their filters.
        plain_edges: bool,
    },
    /// In other datasets.
    Virtual(Vec<Entry>),
}

/// A part of a dataset in another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The other file's name.
    pub file: String,
    /// Where the part begins there.
    pub offset: u64,
    /// Its bytes; `u64::MAX` for as many as there are.
    pub size: u64,
}

/// True if an object with this header is a dataset.
pub(crate) fn is_dataset(header: &Header) -> bool {
    header.find(kind::LAYOUT).is_some()
}

/// The dataset that a header describes, with its index, unless it has more than `most` chunks.
pub(crate) fn parse(context: &Context<'_>, header: &Header, most: u64) -> Result<Dataset> {
    let need = |wanted: u16, what: &str| {
        header
            .find(wanted)
            .ok_or_else(|| Error::data(format!("a dataset has no {what}")))
    };
    let datatype_message = need(kind::DATATYPE, "data type")?;
    let datatype = Type::parse(&mut context.cursor(&datatype_message.data))?;
    let space = Space::parse(&mut context.cursor(&need(kind::DATASPACE, "dataspace")?.data))?;
    let layout_message = need(kind::LAYOUT, "layout")?;
    let layout = Layout::parse(&mut context.cursor(&layout_message.data))?;
    let filters = match header.find(kind::FILTERS) {
        Some(message) => message::filters(&mut context.cursor(&message.data))?,
        None => Vec::new(),
    };
    let fill = match (header.find(kind::FILL), header.find(kind::OLD_FILL)) {
        (Some(message), _) => message::fill(&mut context.cursor(&message.data))?,
        (None, Some(message)) => message::old_fill(&mut context.cursor(&message.data))?,
        (None, None) => None,
    };
    let storage = match header.find(kind::EXTERNAL) {
        Some(message) => external(context, &message.data)?,
        None => storage(
            context,
            &layout,
            layout_message.address,
            (&space, &datatype),
            most,
        )?,
    };
    Ok(Dataset {
        cells: Cells::new(&datatype)?,
        space,
        datatype,
        filters,
        fill,
        storage,
    })
}

fn storage(
    context: &Context<'_>,
    layout: &Layout,
    address: u64,
    (space, datatype): (&Space, &Type),
    most: u64,
) -> Result<Storage> {
    let Space::Simple { dims, limits } = space else {
        return Ok(Storage::Nowhere);
    };
    Ok(match layout {
        Layout::Compact { at, length } => {
            let bytes = space
                .elements()
                .and_then(|elements| elements.checked_mul(u64::from(datatype.size)));
            if bytes.is_none_or(|bytes| bytes > *length as u64) {
                return Err(Error::data("a compact dataset is shorter than its shape"));
            }
            Storage::Contiguous(address + *at as u64)
        }
        Layout::Contiguous { address: None } => Storage::Nowhere,
        Layout::Contiguous {
            address: Some(address),
        } => Storage::Contiguous(*address),
        Layout::Chunked {
            index,
            address,
            chunk,
            plain_edges,
        } => {
            let grid = Grid::new(dims, limits.as_deref(), chunk, datatype.size)?;
            Storage::Chunked {
                table: match grid.chunks() <= most {
                    true => Some(chunks::read(context, index, *address, &grid)?),
                    false => None,
                },
                chunk: chunk.clone(),
                plain_edges: *plain_edges,
            }
        }
        Layout::Virtual { heap: None, .. } => Storage::Nowhere,
        Layout::Virtual {
            heap: Some(heap),
            object,
        } => Storage::Virtual(mapping::read(context, *heap, *object)?),
    })
}

fn external(context: &Context<'_>, data: &[u8]) -> Result<Storage> {
    let (address, slots) = message::external(&mut context.cursor(data))?;
    let names = heap::local(context, address)?;
    let segments = slots
        .into_iter()
        .map(|slot| {
            Ok(Segment {
                file: heap::name(context, &names, slot.name)?,
                offset: slot.offset,
                size: slot.size,
            })
        })
        .collect::<Result<_>>()?;
    Ok(Storage::External(segments))
}
