//! Where the chunks of an array are that a reference file describes.

use std::sync::Arc;

use hyperslab_index::Selection;

use super::{Reference, References};
use crate::resolve::{ObjectPieces, Piece, Resolver, Source, ZarrResolver};
use crate::{ArrayMeta, Error, Result};

/// Resolves chunks to ranges of the objects that references name.
#[derive(Debug, Clone)]
pub struct ReferenceResolver {
    zarr: ZarrResolver,
    references: Arc<References>,
    /// Pieces of one object that are handed on together.
    together: usize,
}

impl ReferenceResolver {
    /// A resolver of the array at `path` of the references.
    pub fn new(
        meta: Arc<ArrayMeta>,
        path: &str,
        references: Arc<References>,
        together: usize,
    ) -> Result<Self> {
        if meta.codecs.sharding().is_some() {
            return Err(Error::invalid("references to shards are not supported"));
        }
        Ok(ReferenceResolver {
            zarr: ZarrResolver::new(meta, path)?,
            references,
            together: together.max(1),
        })
    }

    /// The object that holds a chunk, and the chunk in it.
    fn place(&self, object: ObjectPieces) -> (Option<String>, Vec<u64>, Vec<Piece>) {
        let ObjectPieces {
            key, chunk, pieces, ..
        } = object;
        let (key, source) = match self.references.get(&key) {
            None => (None, Source::Fill),
            Some(Reference::Inline(bytes)) => (Some(key), Source::Range(0..bytes.len() as u64)),
            Some(Reference::Range(number, range)) => {
                let url = self.references.object(*number).map(str::to_owned);
                (url, Source::Range(range.clone()))
            }
            Some(Reference::Object(number)) => (
                self.references.object(*number).map(str::to_owned),
                Source::Object,
            ),
        };
        let pieces = pieces.into_iter().map(|piece| Piece {
            source: source.clone(),
            ..piece
        });
        (key, chunk, pieces.collect())
    }
}

impl Resolver for ReferenceResolver {
    fn objects<'a>(
        &'a self,
        selection: &'a Selection,
    ) -> Result<Box<dyn Iterator<Item = ObjectPieces> + Send + 'a>> {
        let mut placed = self
            .zarr
            .objects(selection)?
            .map(|object| self.place(object))
            .peekable();
        Ok(Box::new(std::iter::from_fn(move || {
            let (mut key, chunk, mut pieces) = placed.next()?;
            // Neighbours in one object can be read together; cells that are nowhere go with any.
            while pieces.len() < self.together {
                let joins =
                    |other: &Option<String>| other.is_none() || key.is_none() || *other == key;
                let Some((other, _, more)) = placed.next_if(|(other, ..)| joins(other)) else {
                    break;
                };
                key = key.or(other);
                pieces.extend(more);
            }
            Some(ObjectPieces {
                // Of cells that are nowhere nothing is read, wherever that is.
                key: key
                    .or_else(|| self.references.object(0).map(str::to_owned))
                    .unwrap_or_default(),
                chunk,
                pieces,
                whole: false,
            })
        })))
    }
}
