//! Datasets as arrays: metadata in the terms of the engine, and where each chunk is in the file.
//!
//! Between datasets and the facade. A contiguous dataset is cut into units of whole rows, so that
//! many of them are read at a time; its cells stay where they are.

use std::ops::Range;
use std::sync::Arc;

use hyperslab_index::{ChunkGrid, Part, Selection, Shape};
use serde_json::{Map, Value, json};

use super::chunks::ChunkTable;
use super::dataset::{Dataset, Storage};
use super::message::{FilterSpec, Space};
use crate::codec::{CodecChain, Filter};
use crate::meta::HDF5_LAYOUT;
use crate::resolve::{ObjectPieces, Piece, Resolver, Source};
use crate::{ArrayMeta, ChunkKeys, DataType, Error, FillValue, Result, ZarrFormat};

/// Bytes of a unit of a contiguous dataset, about.
const UNIT: u64 = 4 << 20;

/// Where the chunks of a dataset are in its file.
#[derive(Debug, Clone)]
pub struct FileResolver {
    key: String,
    grid: ChunkGrid,
    places: Places,
    /// Pieces that are handed on together.
    together: usize,
}

#[derive(Debug, Clone)]
enum Places {
    Nowhere,
    /// Cells of so many bytes one after another.
    Contiguous {
        start: u64,
        cell: u64,
    },
    Chunked {
        table: Arc<ChunkTable>,
        /// Where addresses begin.
        base: u64,
        /// Chunks that reach beyond the array have no filters.
        plain_edges: bool,
    },
}

/// The metadata of a dataset as an array, without attributes.
pub(crate) fn meta(dataset: &Dataset) -> Result<ArrayMeta> {
    let Space::Simple { dims, .. } = &dataset.space else {
        return Err(Error::invalid("the dataset is empty: it has no shape"));
    };
    let cells = &dataset.cells;
    let mut shape = dims.clone();
    shape.extend(&cells.inner);
    let dtype = cells.dtype.clone();
    let cell = u64::from(element_bytes(dataset));
    let chunk = match &dataset.storage {
        Storage::Chunked { chunk, .. } => {
            let mut chunk = chunk.clone();
            chunk.extend(&cells.inner);
            chunk
        }
        _ => rows(&shape, cell),
    };
    let filters = match &dataset.storage {
        Storage::Chunked { .. } => filters(&dataset.filters, cell as usize)?,
        _ => Vec::new(),
    };
    let fill = match &dataset.fill {
        Some(value) if cells.heap.is_none() => fill(dataset, &dtype, value)?,
        // Those in the heap are looked up by who can read it.
        _ => FillValue::zero(&dtype),
    };
    let (rank, spelled) = (shape.len(), dataset.filters.iter().map(describe).collect());
    let codecs = match (&cells.heap, &cells.widen) {
        (Some(_), _) => CodecChain::references(rank, cell as usize, filters, spelled),
        (None, Some(widen)) => CodecChain::widened(rank, widen.clone(), filters, spelled),
        (None, None) => {
            let fixes = (cells.fixes.clone(), cell as usize);
            CodecChain::hdf5(rank, cells.swap.clone(), fixes, filters, spelled)
        }
    };
    let meta = ArrayMeta {
        format: ZarrFormat::Hdf5,
        shape: Shape::new(shape)?,
        chunk_shape: Shape::new(chunk)?,
        dtype,
        fill,
        codecs,
        keys: ChunkKeys::Default('/'),
        attributes: Map::new(),
        dimension_names: None,
        extra: Map::from_iter([(
            HDF5_LAYOUT.to_owned(),
            Value::from(layout(&dataset.storage)),
        )]),
        spelling: Default::default(),
    };
    meta.check_sizes()?;
    Ok(meta)
}

fn layout(storage: &Storage) -> &'static str {
    match storage {
        Storage::Nowhere | Storage::Contiguous(_) => "contiguous",
        Storage::External(_) => "external",
        Storage::Chunked { .. } => "chunked",
        Storage::Virtual(_) => "virtual",
    }
}

/// Bytes of one stored element of the innermost dimension.
pub(crate) fn element_bytes(dataset: &Dataset) -> u32 {
    let inner: u64 = dataset.cells.inner.iter().product();
    (u64::from(dataset.datatype.size) / inner.max(1)) as u32
}

fn filters(specs: &[FilterSpec], cell: usize) -> Result<Vec<Filter>> {
    let filter = |spec: &FilterSpec| Filter::from_hdf5(spec.id, &spec.name, &spec.values, cell);
    specs.iter().map(filter).collect()
}

fn describe(spec: &FilterSpec) -> Value {
    json!({"name": format!("hdf5.{}", spec.id), "configuration": {"values": spec.values}})
}

/// The fill value of a cell in memory. An element that is an array has one fill value for each of
/// its cells; they are only told apart where they differ.
fn fill(dataset: &Dataset, dtype: &DataType, value: &[u8]) -> Result<FillValue> {
    let size = dtype.cell_bytes().unwrap_or(0) as usize;
    let cell = match &dataset.cells.widen {
        Some(widen) => widen.from,
        None => size,
    };
    if value.len() != dataset.datatype.size as usize || cell == 0 {
        return Err(Error::data("a fill value has another size than its type"));
    }
    let mut first = value[..cell].to_vec();
    if value.chunks(cell).any(|other| other != first) {
        return Err(Error::data(
            "the cells of an element have different fill values, which is not supported",
        ));
    }
    if let Some(widen) = &dataset.cells.widen {
        let mut wide = vec![0; size];
        widen.apply(&first, &mut wide);
        first = wide;
    }
    dataset.cells.swap.apply(&mut first);
    for fix in &dataset.cells.fixes {
        fix.apply(&mut first, cell);
    }
    FillValue::from_bytes(dtype, &first)
}

/// The shape of units of whole rows that have about [`UNIT`] bytes and lie in one piece.
fn rows(shape: &[u64], cell: u64) -> Vec<u64> {
    let mut unit: Vec<u64> = vec![1; shape.len()];
    let mut bytes = cell.max(1);
    for (dim, side) in shape.iter().enumerate().rev() {
        let side = (*side).max(1);
        let fitting = (UNIT / bytes).clamp(1, side);
        unit[dim] = fitting;
        if fitting < side {
            break;
        }
        bytes = bytes.saturating_mul(side);
    }
    unit
}

impl FileResolver {
    /// A resolver of a dataset in the file at `key`, whose addresses begin at `base`.
    pub(crate) fn new(key: &str, base: u64, dataset: &Dataset, meta: &ArrayMeta) -> Result<Self> {
        let grid = meta.grid()?;
        let places = match &dataset.storage {
            Storage::Nowhere => Places::Nowhere,
            Storage::Contiguous(address) => Places::Contiguous {
                start: base.saturating_add(*address),
                cell: u64::from(element_bytes(dataset)),
            },
            Storage::Chunked {
                table, plain_edges, ..
            } => Places::Chunked {
                table: Arc::new(match table {
                    Some(table) => table.clone(),
                    None => return Err(Error::internal("the index of a dataset was not read")),
                }),
                base,
                plain_edges: *plain_edges,
            },
            Storage::External(_) | Storage::Virtual(_) => {
                return Err(Error::internal(
                    "a dataset of other files has no place in its own",
                ));
            }
        };
        Ok(FileResolver {
            key: key.to_owned(),
            grid,
            places,
            together: 1,
        })
    }

    /// The array of this shape whose cells lie one after another in the object at `key`, from
    /// `start` on, and that is otherwise like `meta`.
    pub fn contiguous(
        meta: &ArrayMeta,
        shape: Shape,
        key: &str,
        start: u64,
    ) -> Result<(ArrayMeta, Self)> {
        let cell = meta
            .codecs
            .stored_cell(meta.dtype.cell_bytes().unwrap_or(1));
        let meta = ArrayMeta {
            chunk_shape: Shape::new(rows(&shape, cell))?,
            codecs: meta.codecs.clone().of_rank(shape.rank()),
            dimension_names: None,
            shape,
            ..meta.clone()
        };
        let resolver = FileResolver {
            key: key.to_owned(),
            grid: meta.grid()?,
            places: Places::Contiguous { start, cell },
            together: 1,
        };
        Ok((meta, resolver))
    }

    /// A resolver of an array that has no cells of its own.
    pub fn nowhere(meta: &ArrayMeta) -> Result<Self> {
        Ok(FileResolver {
            key: String::new(),
            grid: meta.grid()?,
            places: Places::Nowhere,
            together: 1,
        })
    }

    /// The same without any cells: all are the fill value.
    #[must_use]
    pub fn without_cells(mut self) -> Self {
        self.places = Places::Nowhere;
        self
    }

    /// Hands on so many pieces together.
    #[must_use]
    pub fn together(mut self, pieces: usize) -> Self {
        self.together = pieces.max(1);
        self
    }

    /// All chunks that are stored: index, bytes in the file, and the filters that were left out. The
    /// cells of a contiguous dataset are one chunk.
    pub(crate) fn stored(&self) -> Vec<(Vec<u64>, Range<u64>, u32)> {
        let shape = self.grid.array_shape();
        match &self.places {
            Places::Nowhere => Vec::new(),
            Places::Contiguous { start, cell } => {
                let bytes = shape.num_cells().saturating_mul(*cell);
                let range = *start..start.saturating_add(bytes);
                vec![(vec![0; shape.rank()], range, 0)]
            }
            Places::Chunked { table, base, .. } => {
                let counts = self.grid.grid_shape();
                let chunks = table.chunks().iter().map(|chunk| {
                    let mut left = chunk.number;
                    let mut index = vec![0; counts.len()];
                    for (at, count) in index.iter_mut().zip(&counts).rev() {
                        *at = left % count;
                        left /= count;
                    }
                    let start = base.saturating_add(chunk.address);
                    (index, start..start.saturating_add(chunk.size), chunk.mask)
                });
                chunks.collect()
            }
        }
    }

    /// True if its cells lie one after another.
    pub(crate) fn is_contiguous(&self) -> bool {
        !matches!(self.places, Places::Chunked { .. })
    }

    /// True if chunks at the edge have no filters.
    pub(crate) fn has_plain_edges(&self) -> bool {
        matches!(
            self.places,
            Places::Chunked {
                plain_edges: true,
                ..
            }
        )
    }

    fn piece(&self, part: Part) -> Piece {
        let counts = self.grid.grid_shape();
        let indexes = part.chunk().iter().zip(&counts);
        let number = indexes.fold(0, |number, (index, count)| number * count + index);
        let (source, mask) = match &self.places {
            Places::Nowhere => (Source::Fill, 0),
            Places::Contiguous { start, cell } => {
                // Cut off at the array's border, as the cells are.
                let unit = self.grid.chunk_region(part.chunk());
                let before = self.grid.array_shape().offset_of(unit.start()) * cell;
                let start = start.saturating_add(before);
                let end = start.saturating_add(unit.num_cells() * cell);
                (Source::Range(start..end), 0)
            }
            Places::Chunked {
                table,
                base,
                plain_edges,
            } => match table.get(number) {
                Some(chunk) => {
                    let start = base.saturating_add(chunk.address);
                    let range: Range<u64> = start..start.saturating_add(chunk.size);
                    let region = self.grid.chunk_region(part.chunk());
                    let edge = *plain_edges && region.shape() != &self.grid.chunk_shape()[..];
                    (
                        Source::Range(range),
                        if edge { u32::MAX } else { chunk.mask },
                    )
                }
                None => (Source::Fill, 0),
            },
        };
        Piece { source, part, mask }
    }
}

impl Resolver for FileResolver {
    fn objects<'a>(
        &'a self,
        selection: &'a Selection,
    ) -> Result<Box<dyn Iterator<Item = ObjectPieces> + Send + 'a>> {
        let mut parts = self.grid.parts(selection)?;
        Ok(Box::new(std::iter::from_fn(move || {
            let pieces: Vec<Piece> = parts
                .by_ref()
                .take(self.together)
                .map(|part| self.piece(part))
                .collect();
            let chunk = pieces.first()?.part.chunk().to_vec();
            Some(ObjectPieces {
                key: self.key.clone(),
                chunk,
                pieces,
                whole: false,
            })
        })))
    }
}
