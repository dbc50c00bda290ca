//! Datasets that are not in a file yet, as a program describes them that makes one.

use super::cells::Cells;
use super::cursor::{Cursor, Sizes};
use super::dataset::{Dataset, Storage};
use super::datatype::Type;
use super::message::{FilterSpec, Space};
use super::node::FileArray;
use super::resolve::meta;
use crate::{Error, Result};

/// What libhdf5 puts before a data type that it encodes: the number of the message, and a version.
const ENCODED: [u8; 2] = [3, 0];

/// Sizes of addresses and lengths; a type has none of them.
const SIZES: Sizes = Sizes {
    offset: 8,
    length: 8,
};

/// A dataset to be.
#[derive(Debug, Clone)]
pub struct Description<'a> {
    /// Its type, as `H5Tencode` writes it.
    pub datatype: &'a [u8],
    /// Its sides; none for a scalar.
    pub dims: &'a [u64],
    /// The sides of its chunks, if it has any.
    pub chunk: Option<&'a [u64]>,
    /// The element that stands where nobody writes one; zeros where this is left out.
    pub fill: Option<Vec<u8>>,
    /// The filters of its chunks, by number, with their parameters.
    pub filters: Vec<(u16, Vec<u32>)>,
}

impl Description<'_> {
    /// The dataset as an array, without any cells or attributes.
    pub fn array(&self) -> Result<FileArray> {
        let bytes = self.datatype.strip_prefix(&ENCODED);
        let bytes = bytes.ok_or_else(|| Error::data("a data type is encoded in an unknown way"))?;
        let datatype = Type::parse(&mut Cursor::new(bytes, SIZES))?;
        let dataset = Dataset {
            cells: Cells::new(&datatype)?,
            space: Space::Simple {
                dims: self.dims.to_vec(),
                limits: None,
            },
            datatype,
            filters: self.filters.iter().map(filter).collect(),
            fill: self.fill.clone(),
            storage: match self.chunk {
                Some(chunk) => Storage::Chunked {
                    table: None,
                    chunk: chunk.to_vec(),
                    plain_edges: false,
                },
                None => Storage::Nowhere,
            },
        };
        Ok(FileArray {
            meta: meta(&dataset)?,
            resolver: None,
            dataset,
        })
    }
}

fn filter((id, values): &(u16, Vec<u32>)) -> FilterSpec {
    FilterSpec {
        id: *id,
        name: String::new(),
        optional: true,
        values: values.clone(),
    }
}

impl FileArray {
    /// Turns cells into elements as the file has them, or back: the order of bytes in numbers.
    pub fn swap(&self, cells: &mut [u8]) {
        self.dataset.cells.swap.apply(cells);
    }
}
