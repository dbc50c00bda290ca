//! Objects that are computed instead of stored.
//!
//! A [`Procedural`] is mounted under a key prefix of a bucket. It says which keys exist, in order,
//! and computes any byte range of any of them, so an array of terabytes costs nothing to hold.

mod zarr;

pub use zarr::{CellType, ZarrArray, cell_value};

/// A set of computed objects. Keys are relative to where the set is mounted.
///
/// Invariant that listings rely on: `key_at` is strictly ascending (byte order) over
/// `0..key_count()`, and `size` is `Some` for exactly those keys.
pub trait Procedural: Send + Sync + 'static {
    /// How many objects there are.
    fn key_count(&self) -> u64;

    /// The key at a position of the sorted list of keys; `position` is below `key_count()`.
    fn key_at(&self, position: u64) -> String;

    /// The size of an object in bytes, `None` if there is no such object.
    fn size(&self, key: &str) -> Option<u64>;

    /// Writes the bytes of the object from `offset` on to `out`; the range lies inside the
    /// object.
    fn fill(&self, key: &str, offset: u64, out: &mut [u8]);
}

/// The position of the first key that is greater than `key` (or equal, if `inclusive`).
pub(crate) fn position_after(set: &dyn Procedural, key: &str, inclusive: bool) -> u64 {
    let (mut low, mut high) = (0, set.key_count());
    while low < high {
        let middle = low + (high - low) / 2;
        let candidate = set.key_at(middle);
        let before = if inclusive {
            candidate.as_str() < key
        } else {
            candidate.as_str() <= key
        };
        if before {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
