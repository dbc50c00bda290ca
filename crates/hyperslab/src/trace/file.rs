//! Traces as files: read, put together, written.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;

use super::record::{MAGIC, Read, Record, damaged};
use super::{Access, EXTENSION};
use crate::{Error, Result};

/// Reads of any number of processes, in the order of time.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The reads.
    pub reads: Vec<Access>,
    /// Files whose last record was not whole: their processes were killed, or go on.
    pub unfinished: usize,
}

impl Trace {
    /// Reads traces: files, and folders with files whose names end in `.trace`.
    pub fn load<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Trace> {
        let mut trace = Trace::default();
        for path in paths {
            let path = path.as_ref();
            let failed = |e: std::io::Error| match e.kind() {
                std::io::ErrorKind::NotFound => {
                    Error::not_found(format!("there is no trace {}", path.display()))
                }
                _ => Error::unavailable(format!("{} cannot be read: {e}", path.display())),
            };
            if !path.is_dir() {
                trace.add(path, &std::fs::read(path).map_err(failed)?)?;
                continue;
            }
            let mut found = 0;
            for entry in std::fs::read_dir(path).map_err(failed)? {
                let file = entry.map_err(failed)?.path();
                if file.extension().is_some_and(|ending| ending == EXTENSION) {
                    trace.add(&file, &std::fs::read(&file).map_err(failed)?)?;
                    found += 1;
                }
            }
            if found == 0 {
                return Err(
                    Error::not_found(format!("{} has no traces in it", path.display()))
                        .with_hint("name the folder that `trace` was set to, or a file from it"),
                );
            }
        }
        // Within a process the order is that of the records.
        trace.reads.sort_by_key(|read| read.at);
        Ok(trace)
    }

    fn add(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        let whole = self
            .parse(bytes)
            .map_err(|e| e.context(path.display().to_string()))?;
        self.unfinished += usize::from(!whole);
        Ok(())
    }

    /// Adds the reads of a trace; returns whether its last record is whole.
    fn parse(&mut self, bytes: &[u8]) -> Result<bool> {
        // A process that has written nothing yet, or was killed before it could.
        if bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes) {
            return Ok(false);
        }
        let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| {
            Error::data("this is no trace, or one of another version")
                .with_hint("traces are written where the setting `trace` names a folder")
        })?;
        let (mut processes, mut arrays) = (Vec::new(), Vec::new());
        let mut last = 0;
        while let Some(record) = Record::read(&mut rest, &mut last)? {
            match record {
                Record::Process(process) => processes.push(Arc::new(process)),
                Record::Array(array) => arrays.push(Arc::new(array)),
                Record::Read(read) => {
                    let process = processes.get(read.process as usize).ok_or_else(damaged)?;
                    let array = arrays.get(read.array as usize).ok_or_else(damaged)?;
                    self.reads.push(Access {
                        process: process.clone(),
                        array: array.clone(),
                        at: read.at,
                        took: read.took,
                        chosen: read.chosen,
                    });
                }
            }
        }
        Ok(rest.is_empty())
    }

    /// The trace as the bytes of one file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut last = 0;
        let (mut processes, mut arrays) = (Numbers::default(), Numbers::default());
        for read in &self.reads {
            let (process, new) = processes.of(&*read.process);
            if new {
                let process = (*read.process).clone();
                Record::Process(process).write(&mut last, &mut out);
            }
            let (array, new) = arrays.of(&*read.array);
            if new {
                Record::Array((*read.array).clone()).write(&mut last, &mut out);
            }
            let read = Read {
                process,
                array,
                at: read.at,
                took: read.took,
                chosen: read.chosen.clone(),
            };
            Record::Read(read).write(&mut last, &mut out);
        }
        out
    }
}

/// Numbers things in the order in which they are seen.
struct Numbers<'a, T>(HashMap<&'a T, u64>);

impl<T> Default for Numbers<'_, T> {
    fn default() -> Self {
        Numbers(HashMap::new())
    }
}

impl<'a, T: Hash + Eq> Numbers<'a, T> {
    /// The number of a thing, and whether it is new.
    fn of(&mut self, thing: &'a T) -> (u64, bool) {
        let next = self.0.len() as u64;
        let number = *self.0.entry(thing).or_insert(next);
        (number, number == next)
    }
}

#[cfg(test)]
mod tests {
    use hyperslab_index::{Hyperslab, Region};
    use proptest::prelude::*;

    use super::super::{Chosen, Process, TracedArray};
    use super::*;

    fn chosen() -> impl Strategy<Value = Chosen> {
        let axis = || (0..1_u64 << 40, 1..300_u64, 0..5_u64, 1..300_u64);
        prop_oneof![
            Just(Chosen::All),
            (axis(), axis()).prop_map(|(a, b)| {
                let both = [a, b];
                let each = |of: fn(&(u64, u64, u64, u64)) -> u64| both.map(|axis| of(&axis));
                let (start, block, count) = (each(|x| x.0), each(|x| x.1), each(|x| x.2));
                let stride = each(|x| x.1 + x.3);
                Chosen::Slab(Hyperslab::new(&start, &stride, &count, &block).unwrap())
            }),
            prop::collection::vec(any::<[u64; 3]>(), 0..9).prop_map(|points| Chosen::Points {
                rank: 3,
                coordinates: points.concat(),
            }),
            ([0..9_u64, 0..9], [1..9_u64, 1..9]).prop_map(|(start, sides)| Chosen::Around {
                region: Some(Region::new(start, sides).unwrap()),
                cells: 1,
            }),
            Just(Chosen::Around {
                region: None,
                cells: 0
            }),
        ]
    }

    fn trace() -> impl Strategy<Value = Trace> {
        let read = (0..3_u32, 0..3_u64, 0..1_u64 << 50, any::<u32>(), chosen());
        prop::collection::vec(read, 0..30).prop_map(|reads| {
            let mut reads: Vec<Access> = reads
                .into_iter()
                .map(|(pid, array, at, took, chosen)| Access {
                    process: Arc::new(Process {
                        host: "höst".into(),
                        pid,
                        started: 7,
                    }),
                    array: Arc::new(TracedArray {
                        url: format!("s3://bucket/{array}"),
                        cell_bytes: array,
                        shape: vec![array; 3],
                        chunks: vec![1; 3],
                    }),
                    at,
                    took: took.into(),
                    chosen,
                })
                .collect();
            reads.sort_by_key(|read| read.at);
            Trace {
                reads,
                unfinished: 0,
            }
        })
    }

    proptest! {
        #[test]
        fn a_trace_is_read_as_it_was_written(trace in trace()) {
            let mut read = Trace::default();
            prop_assert!(read.parse(&trace.to_bytes()).unwrap());
            prop_assert_eq!(read.reads, trace.reads);
        }

        #[test]
        fn what_a_killed_process_wrote_can_be_read(trace in trace(), cut in any::<prop::sample::Index>()) {
            let bytes = trace.to_bytes();
            let cut = MAGIC.len() + cut.index(bytes.len() - MAGIC.len() + 1);
            let mut read = Trace::default();
            let whole = read.parse(&bytes[..cut]).unwrap();
            prop_assert!(whole || cut < bytes.len());
            prop_assert_eq!(&read.reads[..], &trace.reads[..read.reads.len()]);
        }

        #[test]
        fn nonsense_is_an_error_or_ends_early(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut all = MAGIC.to_vec();
            all.extend(bytes);
            let _ = Trace::default().parse(&all);
        }
    }
}
