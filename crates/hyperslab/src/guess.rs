//! Guesses where the inner chunks of a shard lie, by the index of another one.
//!
//! Beside the fetcher. A shard's index has to be read before its inner chunks, which costs a round
//! trip of every first read. But inner chunks that are stored as they are all have one size, and a
//! writer puts them down in one order, so one shard looks like the other: pieces are asked for where
//! they should be, together with the index, which tells whether they were there.
//!
//! Invariant: a guess is made only for shards that lie in the array as a whole, from one that does,
//! and for pieces that have the size of their cells; it is never believed without the index.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hyperslab_format::{ObjectPieces, ShardIndex, Source};

use crate::array::State;

/// No more guesses are made after so many wrong ones.
const MOST_WRONG: u32 = 2;

/// What is known of how the shards of one array are laid out.
#[derive(Debug, Default)]
pub(crate) struct Guess {
    index: RwLock<Option<Arc<ShardIndex>>>,
    wrong: AtomicU32,
}

impl Guess {
    /// Takes note of the index of a shard.
    pub(crate) fn learn(&self, state: &State, object: &ObjectPieces, index: &Arc<ShardIndex>) {
        if state.has_raw_units() && is_inside(state, object) {
            let mut known = self.index.write().unwrap_or_else(PoisonError::into_inner);
            *known = Some(index.clone());
        }
    }

    /// The index that a shard should have; `None` if there is nothing to go by.
    pub(crate) fn of(&self, state: &State, object: &ObjectPieces) -> Option<Arc<ShardIndex>> {
        if self.wrong.load(Ordering::Relaxed) >= MOST_WRONG || !is_inside(state, object) {
            return None;
        }
        let known = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let index = known.clone()?;
        drop(known);
        let sized = object.pieces.iter().all(|piece| match piece.source {
            Source::Inner(i) => index.get(i).is_some_and(|range| state.is_unit(&range)),
            _ => false,
        });
        sized.then_some(index)
    }

    /// True if there is something to go by.
    pub(crate) fn is_known(&self) -> bool {
        let known = self.index.read().unwrap_or_else(PoisonError::into_inner);
        known.is_some()
    }

    /// A guess was wrong.
    pub(crate) fn was_wrong(&self) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
    }
}

/// True if a shard lies in the array as a whole.
fn is_inside(state: &State, object: &ObjectPieces) -> bool {
    let meta = &state.meta;
    let sides = object.chunk.iter().zip(&meta.chunk_shape[..]);
    let ends = sides.map(|(index, side)| (index + 1).saturating_mul(*side));
    ends.zip(&meta.shape[..]).all(|(end, side)| end <= *side)
}
