//! The bytes of an object as a stream: large slices, computed or read only as they are wanted.

use std::fs::File;
use std::future::Future as _;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::Stream;
use s3s::StdError;
use s3s::stream::{ByteStream, RemainingLength};
use tokio::task::JoinHandle;

use super::{Entry, Payload};
use crate::procedural::Procedural;

/// How much is read from a file or computed at once.
const PIECE: u64 = 256 << 10;

/// A range of an object, as a stream.
pub(crate) struct PayloadStream {
    source: Source,
    at: u64,
    end: u64,
}

enum Source {
    Memory(Bytes),
    Computed {
        set: Arc<dyn Procedural>,
        key: String,
    },
    File(FileReader),
}

enum FileReader {
    Idle(Option<File>),
    Reading(JoinHandle<std::io::Result<(File, Bytes)>>),
}

impl PayloadStream {
    /// Opens a range of an object. A file is opened here, so the stream goes on reading the same
    /// object when it is replaced meanwhile.
    pub(crate) fn open(entry: &Entry, range: Range<u64>) -> std::io::Result<Self> {
        let source = match &entry.payload {
            Payload::Memory(bytes) => Source::Memory(bytes.clone()),
            Payload::File(path) => Source::File(FileReader::Idle(Some(File::open(path)?))),
            Payload::Computed { set, key } => Source::Computed {
                set: Arc::clone(set),
                key: key.clone(),
            },
        };
        Ok(PayloadStream {
            source,
            at: range.start,
            end: range.end,
        })
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<std::io::Result<Bytes>> {
        let piece = (self.end - self.at).min(PIECE);
        let length = usize::try_from(piece).unwrap_or(0);
        Poll::Ready(match &mut self.source {
            Source::Memory(bytes) => {
                let start = usize::try_from(self.at).unwrap_or(usize::MAX);
                let end = usize::try_from(self.end).unwrap_or(usize::MAX);
                Ok(bytes.slice(start..end))
            }
            Source::Computed { set, key } => {
                let mut out = vec![0; length];
                set.fill(key, self.at, &mut out);
                Ok(Bytes::from(out))
            }
            Source::File(reader) => loop {
                match reader {
                    FileReader::Idle(file) => {
                        let Some(file) = file.take() else {
                            break Err(std::io::Error::other("the file is gone"));
                        };
                        let at = self.at;
                        let read = move || read_at(file, at, length);
                        *reader = FileReader::Reading(tokio::task::spawn_blocking(read));
                    }
                    FileReader::Reading(task) => {
                        let done = ready!(Pin::new(task).poll(context));
                        break match done.map_err(std::io::Error::other).and_then(|done| done) {
                            Ok((file, bytes)) => {
                                *reader = FileReader::Idle(Some(file));
                                Ok(bytes)
                            }
                            Err(error) => {
                                *reader = FileReader::Idle(None);
                                Err(error)
                            }
                        };
                    }
                }
            },
        })
    }
}

fn read_at(mut file: File, at: u64, length: usize) -> std::io::Result<(File, Bytes)> {
    let mut out = vec![0; length];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut out)?;
    Ok((file, Bytes::from(out)))
}

impl Stream for PayloadStream {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.at >= self.end {
            return Poll::Ready(None);
        }
        let piece = ready!(self.poll_piece(context));
        Poll::Ready(Some(match piece {
            Ok(bytes) => {
                self.at += bytes.len() as u64;
                Ok(bytes)
            }
            Err(error) => {
                self.at = self.end;
                Err(Box::new(error) as StdError)
            }
        }))
    }
}

impl ByteStream for PayloadStream {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(usize::try_from(self.end - self.at).unwrap_or(usize::MAX))
    }
}
