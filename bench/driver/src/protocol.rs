//! Requests and answers, one JSON object per line. The peers' workers speak the same; some of them
//! need to be told more, so fields that mean nothing here are ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::queries::{Asked, NamedQuery};
use crate::settings::Settings;

/// What the harness asks for.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Names and versions of what runs here.
    Versions {},
    /// Opens an array; it stays open until the next `open` or `create`.
    Open { url: String },
    /// Starts a new session with these settings; what is open stays in the old one.
    Configure { settings: Settings },
    /// Opens the arrays that `queries` asks, in this order.
    OpenAll { urls: Vec<String> },
    /// Reads boxes of the arrays one after another and keeps the answers. Timed, each by itself.
    Queries { queries: Vec<Asked> },
    /// Compares the kept answers with files that hold all cells of each array, or with the closed
    /// form of computed arrays if there are none; forgets them.
    CheckQueries { files: Vec<String> },
    /// Creates an array as Zarr v3 metadata describes it.
    Create { url: String, spec: Spec },
    /// Loads the cells that `write` writes, of this Zarr data type.
    Load { path: String, data_type: Value },
    /// Writes the loaded cells into the box of this shape at the origin. Timed.
    Write { shape: Vec<u64> },
    /// Reads the whole array into a new buffer, which is kept. Timed.
    Read {},
    /// Reads the whole array over the kept buffer. Timed.
    ReadAgain {},
    /// Writes what was read to a file.
    Dump { path: String },
    /// Compares what was read with a file, bit for bit.
    Verify { path: String },
    /// Opens a file, and nothing in it. Timed.
    OpenFile { url: String },
    /// Opens a file and looks at every dataset. Timed.
    Walk { url: String },
    /// Reads boxes of datasets of the file that was walked, opened by name, one after another or as
    /// one query, and writes the answers to a file. Timed.
    QueryNames {
        queries: Vec<NamedQuery>,
        together: bool,
        path: String,
    },
    /// Describes every node below a URL: type, shape, attributes, names of dimensions.
    Describe { url: String },
    /// Reads boxes, each a (start, stop, step) per dimension, of the open array, and writes the
    /// answers to a file, one behind the other.
    Boxes {
        boxes: Vec<Vec<[u64; 3]>>,
        path: String,
    },
    /// Frees what was read.
    Release {},
    /// Removes an array.
    Remove { url: String },
    /// Writes the test pattern into the whole open array, which holds float32, box by box.
    Fill {},
    /// Compares the open array with the test pattern: so many boxes, or all if 0.
    Check { boxes: u64, seed: u64 },
    /// Reads all files below a folder with one thread per core into one buffer. Timed.
    PlainRead { folder: String },
    /// Writes the loaded cells as files of so many bytes, one thread per core. Timed.
    PlainWrite {
        folder: String,
        file_bytes: u64,
        total_bytes: u64,
    },
    /// Copies so many bytes from buffer to buffer, one thread per core. Timed.
    PlainCopy { bytes: u64 },
}

/// The parts of an array's Zarr v3 metadata that a writer is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    pub(crate) shape: Vec<u64>,
    /// The chunk shape of the grid: shards, if the codecs make shards.
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) data_type: Value,
    pub(crate) fill_value: Value,
    pub(crate) codecs: Vec<Value>,
}

/// One line of answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It was done.
    Ok(Value),
    /// It failed, for this reason.
    Error(String),
}
