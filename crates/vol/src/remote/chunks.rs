//! The chunks of a dataset, for programs that look at them one by one.

use std::collections::BTreeMap;

use hyperslab::format::Scratch;
use hyperslab::{ChunkGrid, Error, Region, Result, Selection, block_on};

use super::Dataset;
use super::changed::Changed;

impl Dataset {
    /// The chunks that somebody wrote: their indexes, in order, and bytes. Those that wait to be written
    /// count as they are; those that share an object share its bytes.
    pub(crate) fn chunks(&self) -> Result<Vec<(Vec<u64>, u64)>> {
        let state = self.lock();
        let mut objects = BTreeMap::new();
        if let Some(array) = &state.array {
            objects.extend(state.inside(block_on(array.chunk_objects())?));
        }
        objects.extend(state.changed.sizes());
        let units = state.meta.grid()?;
        drop(state);
        let grid = self.grid()?;
        let mut chunks = BTreeMap::new();
        for (index, bytes) in objects {
            let region = units.chunk_region(&index);
            let selection = Selection::region(&region);
            let inside: Vec<Vec<u64>> = (grid.parts(&selection)?)
                .map(|part| part.chunk().to_vec())
                .collect();
            let each = bytes / inside.len().max(1) as u64;
            for mut index in inside {
                // An element is never divided among chunks.
                index.truncate(index.len() - self.inner().len());
                chunks.insert(index, each);
            }
        }
        Ok(chunks.into_iter().collect())
    }

    /// The boxes of the dataset that somebody wrote cells in.
    pub(super) fn regions(&self) -> Result<Vec<Region>> {
        let chunks = self.chunks()?;
        let grid = self.grid()?;
        let regions = chunks
            .iter()
            .map(|(index, _)| grid.chunk_region(&self.whole_index(index)));
        Ok(regions.collect())
    }

    /// Bytes of all elements.
    pub(crate) fn bytes(&self) -> usize {
        self.shape().0.num_cells() as usize * self.meta().fill.bytes().len()
    }

    /// The chunks that the program asked for; objects of the store may hold several of them.
    fn grid(&self) -> Result<ChunkGrid> {
        ChunkGrid::new(&self.shape().0, &self.meta().chunk_shape)
    }

    /// The sides of chunks, without those of elements.
    pub(crate) fn chunk_sides(&self) -> Vec<u64> {
        let chunk = &self.meta().chunk_shape;
        chunk[..chunk.rank() - self.inner().len()].to_vec()
    }

    /// The index of the chunk whose first element is here.
    pub(crate) fn index(&self, offset: &[u64]) -> Result<Vec<u64>> {
        let sides = self.chunk_sides();
        let shape = self.shape().0;
        let inside = offset.iter().zip(&shape[..]).all(|(at, side)| at < side);
        let aligned = offset
            .iter()
            .zip(&sides)
            .all(|(at, side)| at.is_multiple_of(*side));
        if !inside || !aligned || offset.len() != sides.len() {
            return Err(Error::invalid(format!("no chunk begins at {offset:?}")));
        }
        Ok(offset
            .iter()
            .zip(&sides)
            .map(|(at, side)| at / side)
            .collect())
    }

    /// A chunk as it would be in a file: filtered as the program asked for, and which filters were left
    /// out, because we only undo them.
    pub(crate) fn encoded(&self, index: &[u64]) -> Result<(Vec<u8>, u32)> {
        self.check_sized()?;
        let (region, grid) = self.region(index)?;
        let meta = self.meta();
        let mut cells = vec![0; region.num_cells() as usize * meta.fill.bytes().len()];
        self.read_cells(&Selection::region(&region), &mut cells)?;
        let whole = Changed::new(grid, meta.fill.bytes());
        let mut chunk = whole.made(&region, Some(&cells))?;
        let fill = meta.fill.bytes();
        match meta.codecs.encode(&mut chunk, &meta.chunk_shape, fill) {
            Ok(encoded) => Ok((encoded, 0)),
            Err(_) => {
                let mut chunk = whole.made(&region, Some(&cells))?;
                let raw = meta.codecs.without(u32::MAX);
                Ok((raw.encode(&mut chunk, &meta.chunk_shape, fill)?, u32::MAX))
            }
        }
    }

    /// Replaces a chunk by one that is as it would be in a file; `mask` says which filters were left out.
    pub(crate) fn write_encoded(&self, index: &[u64], bytes: &[u8], mask: u32) -> Result<()> {
        self.check_sized()?;
        let (region, grid) = self.region(index)?;
        let meta = self.meta();
        let (fill, sides) = (meta.fill.bytes(), &meta.chunk_shape);
        let mut chunk = vec![0; sides.num_cells() as usize * fill.len()];
        let codecs = meta.codecs.without(mask);
        codecs.decode(bytes, &mut chunk, sides, fill, &mut Scratch::default())?;
        let mut whole = Changed::new(grid, fill);
        whole.replace(self.whole_index(index), chunk)?;
        let mut cells = vec![0; region.num_cells() as usize * fill.len()];
        let selection = Selection::region(&region);
        whole.overlay(&selection, &mut cells)?;
        self.write_cells(&selection, &cells)
    }

    /// An error unless all elements have one size.
    fn check_sized(&self) -> Result<()> {
        match self.is_text() {
            true => Err(Error::invalid(
                "chunks of texts of any length cannot be read or written as they would be in a file",
            )),
            false => Ok(()),
        }
    }

    fn whole_index(&self, index: &[u64]) -> Vec<u64> {
        let mut whole = index.to_vec();
        whole.resize(index.len() + self.inner().len(), 0);
        whole
    }

    /// The cells of a chunk inside the dataset, and all chunks.
    fn region(&self, index: &[u64]) -> Result<(Region, ChunkGrid)> {
        let grid = self.grid()?;
        Ok((grid.chunk_region(&self.whole_index(index)), grid))
    }
}
