//! Chunks of a dataset that were changed and not written yet.
//!
//! Invariant: a chunk that is held is whole. Its cells inside the dataset are what a reader is to see,
//! and those beyond its border are the fill value.

use std::collections::BTreeMap;

use hyperslab::{CellOrder, ChunkGrid, Error, Region, Result, Selection, Shape, Target};
use hyperslab_index::Part;

/// Changed chunks by their index.
#[derive(Debug)]
pub(crate) struct Changed {
    grid: ChunkGrid,
    fill: Vec<u8>,
    chunks: BTreeMap<Vec<u64>, Vec<u8>>,
}

impl Changed {
    pub(crate) fn new(grid: ChunkGrid, fill: &[u8]) -> Self {
        Changed {
            grid,
            fill: fill.to_vec(),
            chunks: BTreeMap::new(),
        }
    }

    /// Takes all changes out.
    pub(crate) fn taken(&mut self) -> Self {
        let empty = Changed::new(self.grid.clone(), &self.fill);
        std::mem::replace(self, empty)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Bytes of all chunks that are held.
    pub(crate) fn bytes(&self) -> u64 {
        self.chunks.values().map(|chunk| chunk.len() as u64).sum()
    }

    /// The indexes of changed chunks, and their bytes.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (Vec<u64>, u64)> {
        let chunks = self.chunks.iter();
        chunks.map(|(index, chunk)| (index.clone(), chunk.len() as u64))
    }

    /// Replaces a chunk; its cells beyond the border of the dataset do not matter.
    pub(crate) fn replace(&mut self, index: Vec<u64>, chunk: Vec<u8>) -> Result<()> {
        self.chunks.insert(index, chunk);
        // Puts fill values beyond the border.
        self.resize(self.grid.clone())
    }

    /// Changes cells. Chunks that are changed in part are loaded first, with `load`; `None` is what
    /// nobody has written.
    pub(crate) fn write(
        &mut self,
        selection: &Selection,
        cells: &[u8],
        mut load: impl FnMut(&Region) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let grid = self.grid.clone();
        let target = packed(selection, grid.array_shape());
        for part in grid.parts(selection)? {
            let index = part.chunk().to_vec();
            if !self.chunks.contains_key(&index) {
                let region = grid.chunk_region(&index);
                let stored = match part.is_whole() {
                    true => None,
                    false => load(&region)?,
                };
                let chunk = self.made(&region, stored.as_deref())?;
                self.chunks.insert(index.clone(), chunk);
            }
            if let Some(chunk) = self.chunks.get_mut(&index) {
                into(&part, &target, self.fill.len(), chunk, cells)?;
            }
        }
        Ok(())
    }

    /// Puts what was changed over cells that were read.
    pub(crate) fn overlay(&self, selection: &Selection, cells: &mut [u8]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let target = packed(selection, self.grid.array_shape());
        for part in self.grid.parts(selection)? {
            if let Some(chunk) = self.chunks.get(part.chunk()) {
                out_of(&part, &target, self.fill.len(), chunk, cells)?;
            }
        }
        Ok(())
    }

    /// Reads cells chunk by chunk: those that were changed, and what `load` has of others; `None` is what
    /// nobody has written.
    pub(crate) fn read_through(
        &self,
        selection: &Selection,
        cells: &mut [u8],
        mut load: impl FnMut(&Region) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let target = packed(selection, self.grid.array_shape());
        for part in self.grid.parts(selection)? {
            let loaded;
            let chunk = match self.chunks.get(part.chunk()) {
                Some(chunk) => chunk,
                None => {
                    let region = self.grid.chunk_region(part.chunk());
                    loaded = self.made(&region, load(&region)?.as_deref())?;
                    &loaded
                }
            };
            out_of(&part, &target, self.fill.len(), chunk, cells)?;
        }
        Ok(())
    }

    /// True if all cells of a selection are in chunks that were changed.
    pub(crate) fn covers(&self, selection: &Selection) -> Result<bool> {
        let mut parts = self.grid.parts(selection)?;
        Ok(parts.all(|part| self.chunks.contains_key(part.chunk())))
    }

    /// The boxes that were changed, with their cells.
    pub(crate) fn boxes(&self) -> Result<Vec<(Region, Vec<u8>)>> {
        let mut boxes = Vec::with_capacity(self.chunks.len());
        for (index, chunk) in &self.chunks {
            let region = self.grid.chunk_region(index);
            let mut cells = vec![0; region.num_cells() as usize * self.fill.len()];
            let selection = Selection::region(&region);
            let target = packed(&selection, self.grid.array_shape());
            for part in self.grid.parts(&selection)? {
                out_of(&part, &target, self.fill.len(), chunk, &mut cells)?;
            }
            boxes.push((region, cells));
        }
        Ok(boxes)
    }

    /// Forgets all changes: they were written, or are not wanted.
    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
    }

    /// Another shape of the dataset: what lies beyond is gone.
    pub(crate) fn resize(&mut self, grid: ChunkGrid) -> Result<()> {
        let kept = self.boxes()?;
        let whole = Region::whole(grid.array_shape());
        let old = std::mem::replace(&mut self.grid, grid);
        self.chunks.clear();
        for (region, cells) in kept {
            let Some(inside) = region.intersect(&whole) else {
                continue;
            };
            let index = old.chunk_of(region.start()).to_vec();
            let selection = Selection::region(&inside);
            let part_cells = cut(&region, &inside, &cells, self.fill.len())?;
            let chunk = self.made(&self.grid.chunk_region(&index), None)?;
            self.chunks.insert(index, chunk);
            self.write(&selection, &part_cells, |_| Ok(None))?;
        }
        Ok(())
    }

    /// A chunk with the cells of a box, or all fill values.
    pub(crate) fn made(&self, region: &Region, stored: Option<&[u8]>) -> Result<Vec<u8>> {
        let cells = self.grid.chunk_shape().num_cells() as usize;
        let mut chunk = self.fill.repeat(cells);
        if let Some(stored) = stored {
            let selection = Selection::region(region);
            let target = packed(&selection, self.grid.array_shape());
            for part in self.grid.parts(&selection)? {
                into(&part, &target, self.fill.len(), &mut chunk, stored)?;
            }
        }
        Ok(chunk)
    }
}

/// The cells of `inside`, which lies in `region`, out of those of `region`.
fn cut(region: &Region, inside: &Region, cells: &[u8], cell: usize) -> Result<Vec<u8>> {
    let shape = region.to_shape();
    let grid = ChunkGrid::new(&shape, &shape)?;
    let selection = Selection::region(&inside.relative_to(region.start())?);
    let target = packed(&selection, &shape);
    let mut out = vec![0; inside.num_cells() as usize * cell];
    for part in grid.parts(&selection)? {
        out_of(&part, &target, cell, cells, &mut out)?;
    }
    Ok(out)
}

/// The cells of `region`: those of `inside`, which lies in it, and the fill value.
pub(super) fn pasted(
    region: &Region,
    inside: &Region,
    cells: &[u8],
    fill: &[u8],
) -> Result<Vec<u8>> {
    let shape = region.to_shape();
    let grid = ChunkGrid::new(&shape, &shape)?;
    let selection = Selection::region(&inside.relative_to(region.start())?);
    let target = packed(&selection, &shape);
    let mut out = fill.repeat(region.num_cells() as usize);
    for part in grid.parts(&selection)? {
        into(&part, &target, fill.len(), &mut out, cells)?;
    }
    Ok(out)
}

fn packed(selection: &Selection, shape: &Shape) -> Target {
    Target::packed(&selection.result_shape(shape)[..])
}

/// Copies the cells of a part from a packed buffer into a chunk.
fn into(part: &Part, target: &Target, cell: usize, chunk: &mut [u8], cells: &[u8]) -> Result<()> {
    each(part, target, cell, |stored, place, bytes| {
        let from = cells.get(place..place + bytes);
        let to = chunk.get_mut(stored..stored + bytes);
        to.zip(from).map(|(to, from)| to.copy_from_slice(from))
    })
}

/// Copies the cells of a part from a chunk into a packed buffer.
fn out_of(part: &Part, target: &Target, cell: usize, chunk: &[u8], cells: &mut [u8]) -> Result<()> {
    each(part, target, cell, |stored, place, bytes| {
        let from = chunk.get(stored..stored + bytes);
        let to = cells.get_mut(place..place + bytes);
        to.zip(from).map(|(to, from)| to.copy_from_slice(from))
    })
}

/// Calls `copy` for every piece of a part: its place in the chunk, in the buffer, and its bytes.
fn each(
    part: &Part,
    target: &Target,
    cell: usize,
    mut copy: impl FnMut(usize, usize, usize) -> Option<()>,
) -> Result<()> {
    let order = CellOrder::row_major(part.chunk_shape().rank());
    for pieces in part.copies(&order, target) {
        for k in 0..pieces.count {
            let stored = (pieces.src + k * pieces.src_step) as usize * cell;
            let place = (pieces.dst + k * pieces.dst_step) as usize * cell;
            copy(stored, place, pieces.len as usize * cell)
                .ok_or_else(|| Error::internal("cells lie outside their chunk"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hyperslab::Hyperslab;
    use proptest::prelude::*;

    use super::*;

    /// A change of a dataset of two dimensions.
    #[derive(Debug, Clone)]
    enum Change {
        /// Start, stride and count of a hyperslab, as parts of what there is.
        Slab([[u64; 3]; 2]),
        /// Points, as parts of what there is.
        Points(Vec<[u64; 2]>),
        /// A new shape.
        Shape([u64; 2]),
        /// All changes are written to what is stored.
        Written,
    }

    fn change() -> impl Strategy<Value = Change> {
        let axis = || [0..100_u64, 1..4_u64, 1..6_u64];
        prop_oneof![
            4 => [axis(), axis()].prop_map(Change::Slab),
            2 => prop::collection::vec([0..100_u64, 0..100_u64], 1..6).prop_map(Change::Points),
            1 => [1..12_u64, 1..12_u64].prop_map(Change::Shape),
            1 => Just(Change::Written),
        ]
    }

    /// Cells by coordinates; the others are the fill value.
    type Model = BTreeMap<[u64; 2], u16>;

    const FILL: u16 = 0xabcd;

    fn bytes(values: impl IntoIterator<Item = u16>) -> Vec<u8> {
        values.into_iter().flat_map(u16::to_le_bytes).collect()
    }

    fn all(model: &Model, shape: [u64; 2]) -> Vec<u8> {
        let cells = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| [i, j]));
        bytes(cells.map(|at| model.get(&at).copied().unwrap_or(FILL)))
    }

    fn grid(shape: [u64; 2], chunk: [u64; 2]) -> ChunkGrid {
        ChunkGrid::new(&Shape::new(shape).unwrap(), &Shape::new(chunk).unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn changes_are_seen_and_written_like_those_of_a_plain_array(
            first in [1..12_u64, 1..12_u64],
            chunk in [1..6_u64, 1..6_u64],
            changes in prop::collection::vec(change(), 1..20),
        ) {
            let mut shape = first;
            let mut changed = Changed::new(grid(shape, chunk), &FILL.to_le_bytes());
            let (mut model, mut stored) = (Model::new(), Model::new());
            let mut next = 0;
            for change in changes {
                let (selection, cells) = match change {
                    Change::Slab(axes) => {
                        let mut slab = [[0; 2]; 3];
                        for (axis, [start, stride, count]) in axes.into_iter().enumerate() {
                            let start = start % shape[axis];
                            let room = (shape[axis] - start).div_ceil(stride);
                            slab[0][axis] = start;
                            slab[1][axis] = stride;
                            slab[2][axis] = count.min(room);
                        }
                        let [start, stride, count] = slab;
                        let made = Hyperslab::new(&start, &stride, &count, &[1, 1]).unwrap();
                        let cells: Vec<[u64; 2]> = (0..count[0])
                            .flat_map(|i| (0..count[1]).map(move |j| [i, j]))
                            .map(|[i, j]| [start[0] + i * stride[0], start[1] + j * stride[1]])
                            .collect();
                        (Selection::Hyperslab(made), cells)
                    }
                    Change::Points(points) => {
                        let mut cells: Vec<[u64; 2]> = points
                            .into_iter()
                            .map(|[i, j]| [i % shape[0], j % shape[1]])
                            .collect();
                        // Which of two values for one cell wins is nobody's business.
                        cells.sort_unstable();
                        cells.dedup();
                        (Selection::points(2, cells.concat()).unwrap(), cells)
                    }
                    Change::Shape(new) => {
                        shape = new;
                        let inside = |at: &[u64; 2]| at[0] < new[0] && at[1] < new[1];
                        model.retain(|at, _| inside(at));
                        stored.retain(|at, _| inside(at));
                        changed.resize(grid(shape, chunk)).unwrap();
                        continue;
                    }
                    Change::Written => {
                        for (region, cells) in changed.boxes().unwrap() {
                            let mut values = cells.chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]]));
                            for i in region.start()[0]..region.end(0) {
                                for j in region.start()[1]..region.end(1) {
                                    stored.insert([i, j], values.next().unwrap());
                                }
                            }
                        }
                        changed.clear();
                        prop_assert_eq!(all(&stored, shape), all(&model, shape));
                        continue;
                    }
                };
                let values: Vec<u16> = cells.iter().map(|_| { next += 1; next }).collect();
                model.extend(cells.into_iter().zip(values.iter().copied()));
                let load = |region: &Region| {
                    let cells = (region.start()[0]..region.end(0))
                        .flat_map(|i| (region.start()[1]..region.end(1)).map(move |j| [i, j]));
                    let values = cells.map(|at| stored.get(&at).copied().unwrap_or(FILL));
                    Ok(Some(bytes(values)))
                };
                changed.write(&selection, &bytes(values), load).unwrap();
                let mut seen = all(&stored, shape);
                changed.overlay(&Selection::All, &mut seen).unwrap();
                prop_assert_eq!(seen, all(&model, shape));
            }
        }
    }
}
