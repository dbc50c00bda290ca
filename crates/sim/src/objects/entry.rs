//! One object: its bytes (or how to get them) and what is known about it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::procedural::Procedural;

/// One version of one object. Never changed in place: a write makes a new entry.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) payload: Payload,
    pub(crate) size: u64,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) modified: SystemTime,
    /// Google's generation; also names the files of an object on disk.
    pub(crate) generation: u64,
    pub(crate) headers: Arc<ObjectHeaders>,
}

/// Where the bytes are.
#[derive(Clone)]
pub(crate) enum Payload {
    Memory(Bytes),
    File(PathBuf),
    Computed {
        set: Arc<dyn Procedural>,
        /// Relative to the mount.
        key: String,
    },
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Memory(bytes) => write!(f, "{} bytes in memory", bytes.len()),
            Payload::File(_) => f.write_str("a file"),
            Payload::Computed { key, .. } => write!(f, "computed {key}"),
        }
    }
}

/// Headers that a client stores with an object and gets back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ObjectHeaders {
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) content_language: Option<String>,
    pub(crate) content_disposition: Option<String>,
    pub(crate) cache_control: Option<String>,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
}
