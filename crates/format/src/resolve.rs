//! Resolvers: from a selection to the pieces of objects that hold its cells.
//!
//! This is the seam between formats and the engine: whatever stores cells (plain chunks, shards,
//! HDF5 files, reference files, later replicas and packs) answers the one question of where the bytes are, and nothing
//! above knows the difference. Invariant: the pieces of a selection hold each selected cell exactly
//! once, and every object is named once.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use hyperslab_index::{ChunkGrid, Part, Region, Result, Selection};
use serde::{Deserialize, Serialize};

use crate::{ArrayMeta, ShardIndex, join};

/// Where the encoded bytes of a piece are. Holds no credentials, so it may travel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// Nowhere: the cells are the fill value.
    Fill,
    /// The whole object.
    Object,
    /// An inner chunk of a shard whose index has to be looked up first.
    Inner(u64),
    /// These bytes of the object.
    Range(Range<u64>),
}

/// A block that is decoded by itself, and the part of the selection that lies in it.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Where its bytes are.
    pub source: Source,
    /// Which of its cells are wanted.
    pub part: Part,
    /// Filters that were left out when it was stored, a bit each.
    pub mask: u32,
}

/// All pieces of a selection that live in one object.
#[derive(Debug, Clone)]
pub struct ObjectPieces {
    /// The object's key in the store.
    pub key: String,
    /// Index of the chunk (or shard) that the object holds.
    pub chunk: Vec<u64>,
    /// The pieces, in row-major order of their units.
    pub pieces: Vec<Piece>,
    /// True if the selection takes every cell of the object that lies in the array.
    pub whole: bool,
}

impl ObjectPieces {
    /// Turns inner chunks into byte ranges of the shard, by its index.
    pub fn locate(&mut self, index: &ShardIndex) {
        for piece in &mut self.pieces {
            if let Source::Inner(i) = piece.source {
                piece.source = index.get(i).map_or(Source::Fill, Source::Range);
            }
        }
    }

    /// Undoes [`ObjectPieces::locate`], for a shard whose index is to be read again.
    pub fn unlocate(&mut self, meta: &ArrayMeta) {
        for piece in &mut self.pieces {
            if let Some(inner) = meta.inner_index(piece.part.chunk()) {
                piece.source = Source::Inner(inner);
            }
        }
    }
}

/// Answers where the cells of an array are.
pub trait Resolver: Debug + Send + Sync {
    /// The objects that hold the cells of `selection`, lazily and in row-major order.
    fn objects<'a>(
        &'a self,
        selection: &'a Selection,
    ) -> Result<Box<dyn Iterator<Item = ObjectPieces> + Send + 'a>>;
}

/// Resolves plain and sharded Zarr arrays.
#[derive(Debug, Clone)]
pub struct ZarrResolver {
    meta: Arc<ArrayMeta>,
    path: String,
    grid: ChunkGrid,
    /// The grid of inner chunks, if the array is sharded.
    units: Option<ChunkGrid>,
}

impl ZarrResolver {
    /// A resolver of the array at `path`.
    pub fn new(meta: Arc<ArrayMeta>, path: &str) -> Result<Self> {
        let grid = meta.grid()?;
        let units = match meta.codecs.sharding() {
            None => None,
            Some(_) => {
                let (unit, _) = meta.unit()?;
                Some(ChunkGrid::new(&meta.shape, &unit)?)
            }
        };
        Ok(ZarrResolver {
            meta,
            path: path.to_owned(),
            grid,
            units,
        })
    }

    /// The key of the object that holds a chunk (or shard).
    pub fn key(&self, chunk: &[u64]) -> String {
        join(&self.path, &self.meta.keys.key(chunk))
    }

    fn object(&self, part: Part) -> ObjectPieces {
        let chunk = part.chunk().to_vec();
        let whole = part.is_whole();
        let pieces = match &self.units {
            None => vec![Piece {
                source: Source::Object,
                part,
                mask: 0,
            }],
            Some(grid) => part
                .refine(grid)
                .into_iter()
                .map(|part| {
                    let inner = self.meta.inner_index(part.chunk()).unwrap_or(0);
                    Piece {
                        source: Source::Inner(inner),
                        part,
                        mask: 0,
                    }
                })
                .collect(),
        };
        ObjectPieces {
            key: self.key(&chunk),
            chunk,
            pieces,
            whole,
        }
    }
}

impl Resolver for ZarrResolver {
    fn objects<'a>(
        &'a self,
        selection: &'a Selection,
    ) -> Result<Box<dyn Iterator<Item = ObjectPieces> + Send + 'a>> {
        let parts = self.grid.parts(selection)?;
        Ok(Box::new(parts.map(move |part| self.object(part))))
    }
}

/// The region of the array that an object covers, clipped to the array.
pub fn object_region(meta: &ArrayMeta, chunk: &[u64]) -> Result<Region> {
    Ok(meta.grid()?.chunk_region(chunk))
}
