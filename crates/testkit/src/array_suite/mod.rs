//! What the facade promises of arrays, checked in one place that stores them.
//!
//! Every check compares with a naive model, cell by cell and bit by bit, through sessions that
//! share nothing: what one session wrote, another reads.

mod cases;
mod cell;
mod edges;
mod hierarchy;
mod random;
mod strings;
mod writers;

use hyperslab::{Array, Options, Session};

use crate::servers::Place;
use crate::{Model, Outcome, Wanted, all, ensure, same, within};

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub struct ArrayScale {
    /// Combinations of data type, codecs, shards, order and chunk shape.
    pub cases: usize,
    /// Tasks that write to one chunk at once.
    pub writers: u64,
    /// Writes of each of them.
    pub writes: u64,
}

impl ArrayScale {
    /// For quick stores.
    pub const FULL: ArrayScale = ArrayScale {
        cases: 400,
        writers: 8,
        writes: 50,
    };
    /// For local servers.
    pub const SERVER: ArrayScale = ArrayScale {
        cases: 60,
        writers: 8,
        writes: 50,
    };
    /// For servers that need milliseconds for a request.
    pub const SLOW: ArrayScale = ArrayScale {
        cases: 14,
        writers: 8,
        writes: 12,
    };
}

/// Checks all that arrays promise when they are stored in `place`.
pub async fn array_suite(place: &Place, scale: ArrayScale) -> Outcome {
    // One after another: a failure in one check does not hide those of the next.
    let checks = [
        within("edges", edges::check(place)).await,
        within("strings", strings::check(place)).await,
        within("hierarchy", hierarchy::check(place)).await,
        within(
            "writers",
            writers::check(place, scale.writers, scale.writes),
        )
        .await,
        within("random arrays", random::check(place, scale.cases)).await,
    ];
    all(checks).map_err(|failure| failure.within(place.name()))
}

/// A session that shares nothing with any other, and the URL of the hierarchy `name`.
fn fresh(place: &Place, name: &str, options: Options) -> Outcome<(Session, String)> {
    let session = Session::new(options);
    let url = place.mount(&session, name)?;
    Ok((session, url))
}

/// Reads a selection and compares.
async fn check_read(array: &Array, model: &Model, wanted: &Wanted) -> Outcome {
    let found = array.read(&wanted.selection(model.sides().len())?).await?;
    let expected = model.read(wanted);
    ensure(found == expected, || {
        let at = found.iter().zip(&expected).position(|(a, b)| a != b);
        format!(
            "{wanted:?} of {:?}: {} bytes, expected {}; the first difference is at {at:?}",
            model.sides(),
            found.len(),
            expected.len()
        )
    })
}

/// Compares shape and every cell.
async fn check_all(array: &Array, model: &Model) -> Outcome {
    same("shape", array.shape().to_vec(), model.sides().to_vec())?;
    check_read(array, model, &Wanted::All).await
}
