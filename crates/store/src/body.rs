//! The bytes of a response, not copied until somebody says where they should land.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::{Error, Result};

/// The bytes of a response.
///
/// A network response is a list of segments as they arrived; a local file is an open handle and a
/// range, so that the caller can read straight into its destination, on the thread that decodes.
#[derive(Debug, Clone)]
pub enum Body {
    /// Segments in order.
    Memory(Vec<Bytes>),
    /// A range of an open local file, whose state the handle pins.
    File {
        /// The open file.
        file: Arc<File>,
        /// Which bytes of it.
        range: Range<u64>,
    },
}

impl Default for Body {
    fn default() -> Self {
        Body::Memory(Vec::new())
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Body::Memory(vec![bytes])
    }
}

impl Body {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Body::Memory(segments) => segments.iter().map(|s| s.len() as u64).sum(),
            Body::File { range, .. } => range.end - range.start,
        }
    }

    /// True if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `out` with the bytes from `offset` on. Blocks on local files.
    pub fn read_at(&self, mut offset: u64, mut out: &mut [u8]) -> Result<()> {
        if offset
            .checked_add(out.len() as u64)
            .is_none_or(|end| end > self.len())
        {
            return Err(Error::data(format!(
                "the body has {} bytes, but bytes {offset}..{} were expected",
                self.len(),
                offset.saturating_add(out.len() as u64)
            )));
        }
        match self {
            Body::File { file, range } => file
                .read_exact_at(out, range.start + offset)
                .map_err(file_error),
            Body::Memory(segments) => {
                for segment in segments {
                    if out.is_empty() {
                        break;
                    }
                    let len = segment.len() as u64;
                    if offset >= len {
                        offset -= len;
                        continue;
                    }
                    let from = offset as usize;
                    let n = out.len().min(segment.len() - from);
                    let (now, rest) = out.split_at_mut(n);
                    now.copy_from_slice(&segment[from..from + n]);
                    out = rest;
                    offset = 0;
                }
                Ok(())
            }
        }
    }

    /// All bytes in one piece; copies only if there are several segments. Blocks on local files.
    pub fn into_bytes(self) -> Result<Bytes> {
        match self {
            Body::Memory(mut segments) if segments.len() == 1 => {
                Ok(segments.pop().unwrap_or_default())
            }
            Body::Memory(segments) => {
                let mut all = BytesMut::with_capacity(segments.iter().map(Bytes::len).sum());
                segments.iter().for_each(|s| all.extend_from_slice(s));
                Ok(all.freeze())
            }
            Body::File { .. } => {
                let mut all = vec![0; self.len() as usize];
                self.read_at(0, &mut all)?;
                Ok(all.into())
            }
        }
    }
}

fn file_error(e: io::Error) -> Error {
    if e.kind() == io::ErrorKind::UnexpectedEof {
        Error::data("the file became shorter while it was read").with_source(e)
    } else {
        Error::unavailable(format!("the file could not be read: {e}")).with_source(e)
    }
}
