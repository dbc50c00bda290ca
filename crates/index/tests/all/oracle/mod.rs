//! The naive model: number the cells of an array, select with loops, and compare.
//!
//! Shared by the test in `main.rs` and the program `examples/oracle.rs`. Everything returns its
//! differences as text, so that the program can count them.

mod random;

use std::collections::BTreeSet;

use hyperslab_index::{
    ByteRun, CellOrder, ChunkGrid, DimSlab, Hyperslab, Part, RunSummary, Selection, Shape,
    StridedCopy, Target,
};
use ndarray::{ArrayD, IxDyn};

/// What a stored chunk has beyond the array's border, and a buffer where nothing was written.
const ABSENT: u64 = u64::MAX;

/// A random array, grid, selection and buffer.
#[derive(Debug)]
pub(crate) struct Case {
    sides: Vec<u64>,
    chunk: Vec<u64>,
    order: Vec<usize>,
    wanted: Wanted,
    base: u64,
    /// Strides of the buffer per dimension of the result; `None` is packed.
    strides: Option<Vec<u64>>,
}

#[derive(Debug)]
enum Wanted {
    All,
    Slabs(Vec<Vec<DimSlab>>),
    Points(Vec<Vec<u64>>),
}

type Outcome<T = ()> = Result<T, String>;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: found {found:?}, expected {expected:?}")),
    }
}

fn text(error: hyperslab_index::Error) -> String {
    error.to_string()
}

impl Case {
    fn selection(&self) -> Outcome<(Selection, Shape)> {
        let shape = Shape::new(self.sides.iter().copied()).map_err(text)?;
        let selection = match &self.wanted {
            Wanted::All => Selection::All,
            Wanted::Slabs(slabs) => {
                let slabs: Result<Vec<_>, _> = slabs
                    .iter()
                    .map(|dims| Hyperslab::from_dims(dims.iter().copied()))
                    .collect();
                Selection::from_hyperslabs(slabs.map_err(text)?).map_err(text)?
            }
            Wanted::Points(points) => {
                Selection::points(self.sides.len(), points.concat()).map_err(text)?
            }
        };
        Ok((selection, shape))
    }

    /// The coordinates of the result's cells in order, found by looking at every cell.
    fn naive(&self, shape: &Shape) -> Vec<Vec<u64>> {
        let all = (0..shape.num_cells()).map(|offset| shape.coords_of(offset).to_vec());
        match &self.wanted {
            Wanted::All => all.collect(),
            Wanted::Slabs(slabs) => all
                .filter(|cell| {
                    slabs
                        .iter()
                        .any(|dims| dims.iter().zip(cell).all(|(dim, x)| hit(dim, *x)))
                })
                .collect(),
            Wanted::Points(points) => points.clone(),
        }
    }

    /// Compares everything; the text says what differs.
    pub(crate) fn check(&self) -> Outcome {
        let (selection, shape) = self.selection()?;
        let grid = ChunkGrid::new(&shape, &Shape::new(self.chunk.clone()).map_err(text)?);
        let grid = grid.map_err(text)?;
        let order = CellOrder::new(&self.order).map_err(text)?;
        let cells = self.naive(&shape);
        let result = selection.result_shape(&shape);
        same("cells", selection.num_cells(&shape), cells.len() as u64)?;
        same("result cells", result.num_cells(), cells.len() as u64)?;
        self.check_bounding(&selection, &shape, &cells)?;
        if let Selection::Union(union) = &selection {
            for (rank, cell) in cells.iter().enumerate() {
                same("rank", union.rank_of(cell), rank as u64)?;
            }
        }
        let target = match &self.strides {
            Some(strides) => Target::strided(self.base, strides),
            None => Target::packed(&result),
        };
        let required = target.required_cells(&result).map_err(text)?;
        let place = |at: usize| {
            let coords = result.coords_of(at as u64);
            coords
                .iter()
                .zip(target.strides())
                .map(|(x, stride)| x * stride)
                .sum::<u64>()
                + target.base()
        };

        let sides: Vec<usize> = self.sides.iter().map(|&side| side as usize).collect();
        let mut number = 0;
        let array = ArrayD::from_shape_fn(IxDyn(&sides), |_| {
            number += 1;
            number - 1
        });
        let value = |cell: &[u64]| {
            let index: Vec<usize> = cell.iter().map(|&x| x as usize).collect();
            array.get(IxDyn(&index)).copied().unwrap_or(ABSENT)
        };

        let mut buffer = vec![ABSENT; required as usize];
        let mut before: Option<Vec<u64>> = None;
        let parts = grid.parts(&selection).map_err(text)?;
        let announced = parts.remaining();
        let mut seen = 0;
        for part in parts {
            seen += 1;
            same(
                "order of parts",
                before.as_deref() < Some(part.chunk()),
                true,
            )?;
            before = Some(part.chunk().to_vec());
            same("region", part.region(), &grid.chunk_region(part.chunk()))?;
            let chunk = StoredChunk::new(&grid, &part, &order);
            let here: Vec<usize> = (0..cells.len())
                .filter(|&at| part.region().contains_point(&cells[at]))
                .collect();
            same("cells of the part", part.num_cells(), here.len() as u64)?;
            same("no empty part", here.is_empty(), false)?;
            let offsets: BTreeSet<u64> = here.iter().map(|&at| chunk.offset(&cells[at])).collect();
            same(
                "whole",
                part.is_whole(),
                offsets.len() as u64 == part.region().num_cells(),
            )?;
            check_runs(&part, &order, &offsets)?;

            let mut expected: Vec<(u64, u64)> = here
                .iter()
                .map(|&at| (chunk.offset(&cells[at]), place(at)))
                .collect();
            let copies: Vec<StridedCopy> = part.copies(&order, &target).collect();
            let mut found: Vec<(u64, u64)> = copies.iter().flat_map(|copy| pairs(*copy)).collect();
            self.check_write(&chunk, &found, &expected)?;
            let stored = chunk.cells(&value);
            for &(src, dst) in &found {
                buffer[dst as usize] = stored[src as usize];
            }
            expected.sort_unstable();
            found.sort_unstable();
            same("copies", found, expected)?;
        }
        if let Some(announced) = announced {
            same("number of parts", seen, announced)?;
        }
        let mut filled = vec![ABSENT; required as usize];
        for (at, cell) in cells.iter().enumerate() {
            filled[place(at) as usize] = value(cell);
        }
        same("buffer", buffer, filled)
    }

    fn check_bounding(&self, selection: &Selection, shape: &Shape, cells: &[Vec<u64>]) -> Outcome {
        let Some(region) = selection.bounding(shape) else {
            return same("cells without bounds", cells.len(), 0);
        };
        for dim in 0..shape.rank() {
            let along = || cells.iter().map(|cell| cell[dim]);
            same("low bound", Some(region.start()[dim]), along().min())?;
            same(
                "high bound",
                Some(region.end(dim)),
                along().max().map(|x| x + 1),
            )?;
        }
        Ok(())
    }

    /// Writes from a numbered buffer; of duplicates the last in the caller's order stays.
    fn check_write(
        &self,
        chunk: &StoredChunk,
        found: &[(u64, u64)],
        expected: &[(u64, u64)],
    ) -> Outcome {
        let write = |pairs: &[(u64, u64)]| {
            let mut stored = vec![ABSENT; chunk.len()];
            for &(src, dst) in pairs {
                stored[src as usize] = 1000 + dst;
            }
            stored
        };
        same("written chunk", write(found), write(expected))
    }
}

fn hit(dim: &DimSlab, x: u64) -> bool {
    (0..dim.count).any(|k| {
        let low = dim.start + k * dim.stride;
        (low..low + dim.block).contains(&x)
    })
}

/// A chunk as it is stored, by definition: the permuted full shape in C order.
struct StoredChunk {
    start: Vec<u64>,
    order: Vec<usize>,
    stored: Shape,
    array: Shape,
}

impl StoredChunk {
    fn new(grid: &ChunkGrid, part: &Part, order: &CellOrder) -> StoredChunk {
        let start = part
            .chunk()
            .iter()
            .zip(grid.chunk_shape().iter())
            .map(|(at, side)| at * side);
        let sides = order.dims().iter().map(|&dim| grid.chunk_shape()[dim]);
        StoredChunk {
            start: start.collect(),
            order: order.dims().to_vec(),
            stored: Shape::new(sides).unwrap_or_else(|_| grid.chunk_shape().clone()),
            array: grid.array_shape().clone(),
        }
    }

    fn len(&self) -> usize {
        self.stored.num_cells() as usize
    }

    fn offset(&self, cell: &[u64]) -> u64 {
        let coords: Vec<u64> = self
            .order
            .iter()
            .map(|&dim| cell[dim] - self.start[dim])
            .collect();
        self.stored.offset_of(&coords)
    }

    fn cells(&self, value: &dyn Fn(&[u64]) -> u64) -> Vec<u64> {
        let cell = |offset: usize| {
            let mut cell = self.start.clone();
            for (at, &dim) in self.stored.coords_of(offset as u64).iter().zip(&self.order) {
                cell[dim] += at;
            }
            let inside = cell.iter().zip(self.array.iter()).all(|(x, side)| x < side);
            if inside { value(&cell) } else { ABSENT }
        };
        (0..self.len()).map(cell).collect()
    }
}

fn pairs(copy: StridedCopy) -> impl Iterator<Item = (u64, u64)> {
    (0..copy.count * copy.len).map(move |at| {
        let (k, j) = (at / copy.len, at % copy.len);
        (
            copy.src + k * copy.src_step + j,
            copy.dst + k * copy.dst_step + j,
        )
    })
}

fn check_runs(part: &Part, order: &CellOrder, offsets: &BTreeSet<u64>) -> Outcome {
    let cell_bytes = 3;
    let mut expected: Vec<ByteRun> = Vec::new();
    for &offset in offsets {
        match expected.last_mut() {
            Some(last) if last.end() == offset * cell_bytes => last.len += cell_bytes,
            _ => expected.push(ByteRun {
                offset: offset * cell_bytes,
                len: cell_bytes,
            }),
        }
    }
    let found: Vec<ByteRun> = part.runs(order, cell_bytes).collect();
    same("runs", &found, &expected)?;
    let summary = RunSummary {
        runs: expected.len() as u64,
        bytes: expected.iter().map(|run| run.len).sum(),
        first: expected.first().map_or(0, |run| run.offset),
        end: expected.last().map_or(0, ByteRun::end),
    };
    same("run summary", part.run_summary(order, cell_bytes), summary)
}
