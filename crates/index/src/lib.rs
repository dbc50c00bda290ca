//! Shapes, regions, selections, chunk grids and byte runs.
//!
//! The lowest layer: pure index arithmetic, no I/O, no dependency on any other crate of ours.
//! Every layer above asks it the same two questions: which chunks does a selection touch, and
//! which bytes of each chunk go where.
//!
//! Invariant: the [`Part`]s of a selection name each touched chunk once, and together their
//! [`Copies`] take each selected cell to its place in the result exactly once.
//!
//! ```
//! use hyperslab_index::{CellOrder, ChunkGrid, Selection, Shape, Target};
//!
//! # fn main() -> hyperslab_index::Result<()> {
//! let grid = ChunkGrid::new(&Shape::new([4, 6])?, &Shape::new([2, 3])?)?;
//! let slicing = hyperslab_index::parse_slices("1:3, 2:5", grid.array_shape(), Default::default())?;
//!
//! let order = CellOrder::row_major(2);
//! let target = Target::packed(&slicing.full_shape);
//! let mut cells = 0;
//! for part in grid.parts(&slicing.selection)? {
//!     for copy in part.copies(&order, &target) {
//!         cells += copy.count * copy.len;
//!     }
//! }
//! assert_eq!(cells, slicing.selection.num_cells(grid.array_shape()));
//! # Ok(())
//! # }
//! ```

mod axis;
mod copies;
mod default_chunks;
mod dim_slab;
mod error;
mod grid;
mod hyperslab;
mod order;
mod part;
mod parts;
mod points;
mod region;
mod runs;
mod selection;
mod shape;
mod slices;
mod split;
mod target;
mod union;

pub use copies::{Copies, StridedCopy};
pub use default_chunks::default_chunks;
pub use dim_slab::DimSlab;
pub use error::{Error, ErrorKind, Result};
pub use grid::ChunkGrid;
pub use hyperslab::Hyperslab;
pub use order::CellOrder;
pub use part::Part;
pub use parts::Parts;
pub use points::Points;
pub use region::Region;
pub use runs::{ByteRun, RunSummary, Runs};
pub use selection::Selection;
pub use shape::{Dims, MAX_RANK, Shape};
pub use slices::{Bounds, Slicing, parse_slices};
pub use split::RegionSplit;
pub use target::Target;
pub use union::Union;
