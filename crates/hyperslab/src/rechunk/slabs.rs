//! The third place: raw cells between the two passes of a rechunk.
//!
//! An object for each slab of the first pass. In it lie, one after another, the parts of the slab
//! that belong to the boxes of the second pass, each packed: a box is read by one range of each slab
//! that it meets, and nothing is read twice. Where a range starts follows from the shapes, so there
//! is no index.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use hyperslab_format::join;
use hyperslab_index::Region;
use hyperslab_store::{Body, Get, GetRange, Put, StoreRef};

use super::rows::{cells_before, rows};
use crate::canvas::Canvas;
use crate::scatter::PieceReader;
use crate::tasks::on_core;
use crate::{Error, Result, Session};

/// Shorter rows are brought together before they are written.
const LEAST_ROW: u64 = 1 << 10;
/// Ranges of a box that are asked for at a time.
const CONCURRENT: usize = 16;

/// The slabs of a rechunk.
#[derive(Debug, Clone)]
pub(super) struct Slabs {
    pub(super) store: StoreRef,
    /// Where they are in the store.
    pub(super) folder: String,
    /// All cells.
    pub(super) whole: Region,
    /// Sides of a slab.
    pub(super) sides: Vec<u64>,
    /// Sides of the boxes that are read.
    pub(super) boxes: Vec<u64>,
    /// Bytes of a cell.
    pub(super) cell: u64,
}

impl Slabs {
    fn key(&self, slab: &Region) -> String {
        let index = slab.start().iter().zip(&self.sides);
        let index: Vec<String> = index.map(|(at, side)| (at / side).to_string()).collect();
        join(&self.folder, &format!("slab-{}", index.join(".")))
    }

    /// The slab that holds a part of it.
    fn holder(&self, part: &Region) -> Result<Region> {
        let start: Vec<u64> = part
            .start()
            .iter()
            .zip(&self.sides)
            .map(|(at, side)| at / side * side)
            .collect();
        let shape: Vec<u64> = (0..start.len())
            .map(|dim| self.sides[dim].min(self.whole.end(dim) - start[dim]))
            .collect();
        Region::new(start, shape)
    }

    /// Stores the cells of a slab.
    pub(super) async fn keep(
        &self,
        session: &Session,
        cells: &Canvas,
        slab: &Region,
    ) -> Result<()> {
        let view = cells.view().ok_or_else(cancelled)?;
        let (me, region) = (self.clone(), slab.clone());
        let all = Bytes::from_owner(view);
        let parts = on_core(session, move || Ok(me.parts(&all, &region))).await?;
        let put = self.store.put(&self.key(slab), parts, Put::Overwrite).await;
        put.map(drop)
    }

    /// The cells of a slab in the order in which they are stored.
    fn parts(&self, all: &Bytes, slab: &Region) -> Vec<Bytes> {
        let mut parts = Vec::new();
        for part in slab.split_aligned(&self.boxes) {
            let rows = rows(slab, &part);
            let long = rows.run() * self.cell >= LEAST_ROW;
            let bytes = |(at, len): (u64, u64)| {
                (at * self.cell) as usize..((at + len) * self.cell) as usize
            };
            if long {
                parts.extend(rows.map(|row| all.slice(bytes(row))));
                continue;
            }
            let mut packed = Vec::with_capacity((part.num_cells() * self.cell) as usize);
            rows.for_each(|row| packed.extend_from_slice(&all[bytes(row)]));
            parts.push(packed.into());
        }
        parts
    }

    /// Reads the cells of a box.
    pub(super) async fn fetch(
        &self,
        session: &Session,
        cells: &Canvas,
        region: &Region,
    ) -> Result<()> {
        stream::iter(region.split_aligned(&self.sides))
            .map(|part| async move {
                let slab = self.holder(&part)?;
                let from = cells_before(&slab, &part) * self.cell;
                let range = from..from + part.num_cells() * self.cell;
                let get = Get {
                    range: Some(GetRange::Bounded(range)),
                    ..Get::default()
                };
                let key = self.key(&slab);
                let got = self.store.get(&key, get).await.map_err(|e| {
                    let place = format!("{}/{key}", self.store.url());
                    e.context(format!("the cells between two passes, {place}"))
                        .with_hint("begin again with --overwrite")
                })?;
                let (cells, region, cell) = (cells.clone(), region.clone(), self.cell);
                on_core(session, move || {
                    spread(&cells, &region, &part, cell, got.body)
                })
                .await
            })
            .buffer_unordered(CONCURRENT)
            .try_collect()
            .await
    }

    /// Removes all slabs.
    pub(super) async fn clear(&self) -> Result<()> {
        clear(&self.store, &self.folder).await
    }
}

/// Removes all objects of a folder.
pub(super) async fn clear(store: &StoreRef, folder: &str) -> Result<()> {
    loop {
        // Listed anew, since removing objects invalidates page tokens on some stores.
        let (entries, more) = store.list(folder, None).await?;
        stream::iter(entries.iter().map(|entry| store.delete(&entry.key)))
            .buffer_unordered(CONCURRENT)
            .try_collect::<Vec<()>>()
            .await?;
        if more.is_none() || entries.is_empty() {
            return Ok(());
        }
    }
}

/// Puts the packed cells of a part to their places in its box.
fn spread(cells: &Canvas, region: &Region, part: &Region, cell: u64, body: Body) -> Result<()> {
    let access = cells.access().ok_or_else(cancelled)?;
    let bodies = [(0, body)];
    let mut reader = PieceReader::new(&bodies);
    let mut from = 0;
    for (at, len) in rows(region, part) {
        let len = len * cell;
        let out = access.slice_mut((at * cell) as usize, len as usize);
        let out = out.ok_or_else(|| Error::internal("a part lies outside its box"))?;
        reader.read(from, out)?;
        from += len;
    }
    Ok(())
}

fn cancelled() -> Error {
    Error::unavailable("the operation was cancelled")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_index::Shape;

    #[test]
    fn boxes_come_back_from_slabs_of_any_shape() {
        let shape = Shape::new([7, 9, 5]).unwrap();
        let whole = Region::whole(&shape);
        let cell = 2u64;
        let all: Vec<u8> = (0..shape.num_cells() * cell).map(|i| i as u8).collect();
        let read = |region: &Region| -> Vec<u8> {
            rows(&whole, region)
                .flat_map(|(at, len)| at * cell..(at + len) * cell)
                .map(|i| all[i as usize])
                .collect()
        };
        let session = Session::default();
        for (n, (slab, boxes)) in [
            ([2, 9, 5], [7, 2, 3]),
            ([3, 4, 2], [2, 3, 5]),
            ([1, 1, 1], [7, 9, 5]),
        ]
        .into_iter()
        .enumerate()
        {
            crate::block_on(async {
                let slabs = Slabs {
                    store: hyperslab_store::open(&format!("memory://slabs-{n}"))?,
                    folder: "x/y".into(),
                    whole: whole.clone(),
                    sides: slab.to_vec(),
                    boxes: boxes.to_vec(),
                    cell,
                };
                for region in whole.split(&slab) {
                    let cells = Canvas::from_vec(read(&region));
                    slabs.keep(&session, &cells, &region).await?;
                }
                for region in whole.split(&boxes) {
                    let cells = Canvas::owned((region.num_cells() * cell) as usize);
                    slabs.fetch(&session, &cells, &region).await?;
                    assert_eq!(cells.into_vec(), read(&region), "{slab:?} {boxes:?}");
                }
                slabs.clear().await?;
                assert!(slabs.store.list("", None).await?.0.is_empty());
                let missing = Canvas::owned((whole.num_cells() * cell) as usize);
                assert!(slabs.fetch(&session, &missing, &whole).await.is_err());
                Ok(())
            })
            .unwrap();
        }
    }
}
