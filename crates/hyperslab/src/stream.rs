//! A bounded stream of boxes: how scans, copies and stencils pass over an array.

use futures::{Stream, StreamExt, stream};
use hyperslab_index::{Region, Selection};

use crate::{Array, Error, Result};

/// How an array is cut into boxes.
#[derive(Debug, Clone, Default)]
pub struct BoxOptions {
    /// Which part of the array; `None` is all of it.
    pub region: Option<Region>,
    /// Sides of a box; `None` takes the array's chunks (shards, if it has them).
    pub shape: Option<Vec<u64>>,
    /// Cells around each box that are read too, where the array has them.
    pub halo: Option<Vec<u64>>,
    /// Bytes that boxes may take at a time, the one in the caller's hands included; 0 takes the
    /// session's memory. One box is always let through.
    pub memory: u64,
}

/// A box of cells.
#[derive(Debug, Clone)]
pub struct ArrayBox {
    /// The box.
    pub core: Region,
    /// The box with its halo: the region that `cells` holds.
    pub region: Region,
    /// The cells of `region`, packed in row-major order.
    pub cells: Vec<u8>,
}

impl Array {
    /// Reads the array box by box, in row-major order, ahead of the caller as far as memory allows.
    pub fn boxes(
        &self,
        options: BoxOptions,
    ) -> Result<impl Stream<Item = Result<ArrayBox>> + use<>> {
        let meta = self.meta();
        let rank = meta.shape.rank();
        let whole = options.region.unwrap_or_else(|| Region::whole(&meta.shape));
        let sides = options.shape.unwrap_or_else(|| meta.chunk_shape.to_vec());
        let halo = options.halo.unwrap_or_else(|| vec![0; rank]);
        if whole.rank() != rank || sides.len() != rank || halo.len() != rank {
            return Err(Error::invalid(format!(
                "{} has {rank} dimensions; region, box and halo must have as many",
                self.url()
            )));
        }
        if sides.contains(&0) {
            return Err(Error::invalid(
                "a box needs at least one cell along every dimension",
            ));
        }
        Selection::region(&whole).check(&meta.shape)?;
        let cell = meta.dtype.cell_bytes().ok_or_else(|| {
            Error::invalid(format!(
                "{} holds strings, which have no boxes of bytes",
                self.url()
            ))
        })?;
        let box_cells = sides
            .iter()
            .zip(&halo)
            .zip(whole.shape())
            .try_fold(1u64, |n, ((s, h), w)| {
                n.checked_mul((s + 2 * h).min(*w).max(1))
            })
            .unwrap_or(u64::MAX);
        let memory = if options.memory == 0 {
            self.inner().session.options().memory
        } else {
            options.memory
        };
        let ahead = (memory / box_cells.saturating_mul(cell).max(1)).clamp(1, 64) as usize;
        let array = self.clone();
        let regions: Vec<Region> = whole.split(&sides).collect();
        let reads = regions.into_iter().map(move |core| {
            let array = array.clone();
            let region = core.grow(&halo, &meta.shape);
            async move {
                let cells = array.read(&Selection::region(&region)).await?;
                Ok(ArrayBox {
                    core,
                    region,
                    cells,
                })
            }
        });
        // The box in the caller's hands counts, so one fewer is read ahead.
        Ok(stream::iter(reads).buffered(ahead.saturating_sub(1).max(1)))
    }
}
