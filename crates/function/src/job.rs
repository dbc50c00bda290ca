//! A request that has been checked: what to read, how to decode it, what to cut out.
//!
//! Between [`crate::SlabRequest`], which may claim anything, and [`crate::Service`], which
//! allocates and reads. Invariant: every sum of a job is known to fit, each unit's runs lie inside
//! its decoded bytes, and its memory is an upper bound.

use std::ops::Range;

use hyperslab_format::{CodecChain, DataType, FillValue, Scratch};
use hyperslab_index::{Error, Result};
use serde_json::Value;

use crate::failure::Refusal;
use crate::{Limits, SlabRequest, StridedRun, Unit, UnitCodecs};

/// Longest list of codecs; each one may need a buffer of the unit's size.
const MAX_CODECS: usize = 16;
/// Most dimensions of a unit.
const MAX_RANK: usize = 32;
/// Larger cells make more bookkeeping than the request has bytes.
const MAX_CELL_BYTES: u64 = 1 << 16;
/// Longest codec configuration in bytes of JSON, shards in shards included.
const MAX_CODEC_TEXT: usize = 64 << 10;

/// A request that has been checked.
pub(crate) struct Job {
    /// The units of each object, in the order of the answer.
    pub(crate) parts: Vec<Vec<UnitJob>>,
    /// Bytes of the payload.
    pub(crate) answer: u64,
}

/// One unit of it.
pub(crate) struct UnitJob {
    /// Which bytes of the object to read.
    pub(crate) wanted: Wanted,
    /// Bytes of the answer that come from this unit.
    pub(crate) answer: u64,
    /// Bytes of memory that it needs besides the answer.
    pub(crate) memory: u64,
    decode: Option<Decode>,
    /// Runs in what was read (as it is) or in what was decoded.
    runs: Vec<StridedRun>,
}

/// Which bytes of an object to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// These.
    Range(Range<u64>),
    /// All, if there are not more than so many.
    Whole { limit: u64 },
}

struct Decode {
    chain: CodecChain,
    /// Shape in stored order.
    stored: Vec<u64>,
    fill: FillValue,
    bytes: u64,
}

impl Job {
    /// Checks a request against the limits.
    pub(crate) fn plan(request: &SlabRequest, limits: &Limits) -> Result<Job, Refusal> {
        let all = || request.parts().flat_map(|(_, _, units)| units);
        let units = all().count() as u64;
        if request.parts().any(|(_, _, units)| units.is_empty()) {
            return Err(Error::invalid("the request names no unit").into());
        }
        let runs: u64 = all().map(|u| u.runs.len() as u64).sum();
        for (what, count, most) in [
            ("units", units, limits.max_units),
            ("runs", runs, limits.max_runs),
        ] {
            if count > most {
                let sentence = format!("the request has {count} {what}, but {most} is the most");
                return Err(Refusal::too_large(sentence));
            }
        }
        let answer = request.payload_len()?;
        let most = limits.max_answer.min(request.size_limit);
        if answer > most {
            return Err(Refusal::too_large(format!(
                "the answer would have {answer} bytes, but {most} is the most"
            )));
        }
        let mut number = 0;
        let mut parts = Vec::with_capacity(1 + request.more.len());
        for (_, _, units) in request.parts() {
            let mut jobs = Vec::with_capacity(units.len());
            for unit in units {
                jobs.push(UnitJob::plan(unit, limits).map_err(|refusal| refusal.context(number))?);
                number += 1;
            }
            parts.push(jobs);
        }
        let memory = parts.iter().flatten().map(|unit: &UnitJob| unit.memory);
        let largest = memory.max().unwrap_or(0);
        if answer.saturating_add(largest) > limits.max_memory {
            return Err(Refusal::too_large(format!(
                "the request needs {} bytes of memory, but the function has {}",
                answer.saturating_add(largest),
                limits.max_memory
            )));
        }
        Ok(Job { parts, answer })
    }
}

impl UnitJob {
    fn plan(unit: &Unit, limits: &Limits) -> Result<UnitJob, Refusal> {
        if let Some((start, end)) = unit.range
            && start >= end
        {
            return Err(Error::invalid(format!("the byte range {start}..{end} is empty")).into());
        }
        let span = check_runs(&unit.runs)?;
        match &unit.codecs {
            None => Self::raw(unit, span),
            Some(codecs) => Self::decoded(unit, codecs, &span, limits),
        }
    }

    /// Of a block that is taken as it is, only what the runs span is read.
    fn raw(unit: &Unit, span: Range<u64>) -> Result<UnitJob, Refusal> {
        let (base, len) = match unit.range {
            Some((start, end)) => (start, end - start),
            None => (0, u64::MAX),
        };
        let end = span.end.checked_add(base);
        let Some(end) = end.filter(|_| span.end <= len) else {
            return Err(outside(&span, len));
        };
        let shifted = unit.runs.iter().map(|run| StridedRun {
            start: run.start - span.start,
            ..*run
        });
        Ok(UnitJob {
            wanted: Wanted::Range(base + span.start..end),
            answer: answer_bytes(&unit.runs),
            memory: span.end - span.start,
            decode: None,
            runs: shifted.collect(),
        })
    }

    fn decoded(
        unit: &Unit,
        codecs: &UnitCodecs,
        span: &Range<u64>,
        limits: &Limits,
    ) -> Result<UnitJob, Refusal> {
        let decode = Decode::plan(codecs, limits)?;
        if span.end > decode.bytes {
            return Err(outside(span, decode.bytes));
        }
        let wanted = match unit.range {
            Some((start, end)) => Wanted::Range(start..end),
            None => Wanted::Whole {
                limit: decode
                    .chain
                    .encoded_bound(decode.bytes)
                    .min(limits.max_memory),
            },
        };
        let encoded = match &wanted {
            Wanted::Range(range) => range.end - range.start,
            Wanted::Whole { limit } => *limit,
        };
        // One filter decodes into its place; several pass the block through two more buffers.
        let single = codecs.codecs.as_array().is_some_and(|list| list.len() <= 2);
        let copies = match single && decode.chain.sharding().is_none() {
            true => 1,
            false => 3,
        };
        let memory = decode.bytes.saturating_mul(copies).saturating_add(encoded);
        Ok(UnitJob {
            wanted,
            answer: answer_bytes(&unit.runs),
            memory,
            decode: Some(decode),
            runs: unit.runs.clone(),
        })
    }

    /// Decodes what was read and fills `out`, which has [`UnitJob::answer`] bytes. Returns how
    /// many bytes were decoded. Takes processor time, and is to run where that is allowed.
    pub(crate) fn cut(&self, read: &[u8], out: &mut [u8]) -> Result<u64> {
        let Some(decode) = &self.decode else {
            cut(read, &self.runs, out)?;
            return Ok(read.len() as u64);
        };
        let mut cells = vec![0; decode.bytes as usize];
        let fill = decode.fill.bytes();
        decode.chain.decode(
            read,
            &mut cells,
            &decode.stored,
            fill,
            &mut Scratch::default(),
        )?;
        cut(&cells, &self.runs, out)?;
        Ok(decode.bytes)
    }
}

impl Decode {
    fn plan(codecs: &UnitCodecs, limits: &Limits) -> Result<Decode, Refusal> {
        let invalid = |sentence: String| Refusal::from(Error::invalid(sentence));
        let Value::Array(list) = &codecs.codecs else {
            return Err(invalid("the codecs are not a list".into()));
        };
        let rank = codecs.shape.len();
        if list.len() > MAX_CODECS || rank > MAX_RANK {
            return Err(invalid(format!(
                "a unit has {} codecs and {rank} dimensions, but {MAX_CODECS} and {MAX_RANK} are the most",
                list.len()
            )));
        }
        let text = codecs.codecs.to_string().len() + codecs.data_type.to_string().len();
        if text > MAX_CODEC_TEXT {
            return Err(invalid(format!(
                "the codecs take {text} bytes to spell, but {MAX_CODEC_TEXT} is the most"
            )));
        }
        // What is wrong here is wrong in the request, whatever the parsers of metadata call it.
        let blame = |error: Error| invalid(error.message().to_owned());
        let dtype = DataType::from_json(&codecs.data_type).map_err(blame)?;
        let Some(cell) = dtype.cell_bytes() else {
            return Err(invalid(format!("cells of type {dtype} have no fixed size")));
        };
        if cell > MAX_CELL_BYTES {
            return Err(invalid(format!(
                "cells of {cell} bytes are larger than {MAX_CELL_BYTES}"
            )));
        }
        let bytes = codecs
            .shape
            .iter()
            .try_fold(cell, |product, side| product.checked_mul(*side));
        let bytes = match bytes {
            Some(0) => return Err(invalid("a unit has a side of length 0".into())),
            Some(bytes) if bytes <= limits.max_memory => bytes,
            _ => {
                return Err(Refusal::too_large(format!(
                    "a unit of shape {:?} does not fit into {} bytes of memory",
                    codecs.shape, limits.max_memory
                )));
            }
        };
        let chain = CodecChain::from_json(list, &dtype, &codecs.shape).map_err(blame)?;
        let order = chain.order().map_err(blame)?;
        let stored = order
            .dims()
            .iter()
            .filter_map(|dim| codecs.shape.get(*dim).copied())
            .collect();
        let fill = FillValue::from_json(&dtype, &codecs.fill_value).map_err(blame)?;
        Ok(Decode {
            chain,
            stored,
            fill,
            bytes,
        })
    }
}

impl Refusal {
    fn context(self, unit: usize) -> Self {
        self.map(|error| error.context(format!("unit {unit}")))
    }
}

/// Checks each run by itself and returns what all of them span.
fn check_runs(runs: &[StridedRun]) -> Result<Range<u64>, Refusal> {
    let mut span: Option<Range<u64>> = None;
    for run in runs {
        let sound = run.len > 0 && run.count > 0 && (run.count == 1 || run.step >= run.len);
        let Some(end) = run.end().filter(|_| sound) else {
            return Err(Error::invalid(format!(
                "{} pieces of {} bytes, {} bytes apart from {} on, are no run",
                run.count, run.len, run.step, run.start
            ))
            .into());
        };
        span = Some(match span {
            None => run.start..end,
            Some(span) => span.start.min(run.start)..span.end.max(end),
        });
    }
    span.ok_or_else(|| Error::invalid("the unit has no runs").into())
}

fn answer_bytes(runs: &[StridedRun]) -> u64 {
    // Their sum over all units has been checked before.
    runs.iter().filter_map(StridedRun::bytes).sum()
}

fn outside(span: &Range<u64>, len: u64) -> Refusal {
    Error::invalid(format!(
        "the runs span bytes {}..{} of a unit that has {len}",
        span.start, span.end
    ))
    .into()
}

/// Copies the pieces of all runs into `out`, which they fill exactly.
fn cut(data: &[u8], runs: &[StridedRun], out: &mut [u8]) -> Result<()> {
    let short = || Error::data("the unit is shorter than its runs");
    let mut rest = out;
    for run in runs {
        let bytes = run.bytes().ok_or_else(short)? as usize;
        let (now, later) = rest.split_at_mut_checked(bytes).ok_or_else(short)?;
        rest = later;
        let end = run.end().ok_or_else(short)? as usize;
        let from = data.get(run.start as usize..end).ok_or_else(short)?;
        let len = run.len as usize;
        if run.count == 1 || run.step == run.len {
            now.copy_from_slice(from);
            continue;
        }
        // The last piece may end before a whole step does, which `chunks` allows.
        let pieces = from.chunks(run.step as usize);
        for (piece, out) in pieces.zip(now.chunks_exact_mut(len)) {
            out.copy_from_slice(&piece[..len]);
        }
    }
    match rest.is_empty() {
        true => Ok(()),
        false => Err(short()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cutting_equals_copying_byte_by_byte(
            data in prop::collection::vec(any::<u8>(), 1..200),
            runs in prop::collection::vec((0u64..200, 1u64..9, 0u64..9, 1u64..9), 1..6),
        ) {
            let runs: Vec<StridedRun> = runs
                .into_iter()
                .map(|(start, len, gap, count)| StridedRun { start, len, step: len + gap, count })
                .filter(|run| run.end().unwrap() <= data.len() as u64)
                .collect();
            let mut naive = Vec::new();
            for run in &runs {
                for i in 0..run.count {
                    for j in 0..run.len {
                        naive.push(data[(run.start + i * run.step + j) as usize]);
                    }
                }
            }
            let mut out = vec![0; naive.len()];
            cut(&data, &runs, &mut out).unwrap();
            prop_assert_eq!(out, naive);
        }
    }

    fn refused(unit: Unit) -> (u16, String) {
        let request = SlabRequest {
            size_limit: u64::MAX,
            ..SlabRequest::new("s3://b/k", vec![]).unwrap()
        };
        let request = SlabRequest {
            units: vec![unit],
            ..request
        };
        let Err(refusal) = Job::plan(&request, &Limits::of(Host::Local)) else {
            panic!("{request:?} was planned");
        };
        let response = refusal.into_response();
        let text = String::from_utf8_lossy(&response.body).into_owned();
        (response.status, text)
    }

    #[test]
    fn impossible_units_are_refused_before_anything_is_read() {
        let run = |start, len, step, count| StridedRun {
            start,
            len,
            step,
            count,
        };
        let codecs = |list: Value, dtype: &str, shape: &[u64]| UnitCodecs {
            codecs: list,
            data_type: dtype.into(),
            fill_value: Value::Null,
            shape: shape.to_vec(),
        };
        let raw = serde_json::json!(["bytes"]);
        let one = || vec![run(0, 1, 1, 1)];
        let huge = vec![1 << 20, 1 << 20, 1 << 20, 1 << 20];
        for (unit, status, word) in [
            (Unit::raw(vec![]), 400, "no runs"),
            (Unit::raw(vec![run(0, 0, 1, 1 << 60)]), 400, "no run"),
            (Unit::raw(vec![run(0, 1, 1, 0)]), 400, "no run"),
            (Unit::raw(vec![run(0, 8, 4, 2)]), 400, "no run"),
            (Unit::raw(vec![run(u64::MAX, 8, 8, 1)]), 400, "no run"),
            (
                Unit::raw(vec![run(0, 1 << 40, 1 << 40, 1)]),
                413,
                "the most",
            ),
            (Unit::raw(vec![run(0, 1, 1 << 40, 2)]), 413, "memory"),
            (Unit::raw(one()).at(5..5), 400, "empty"),
            (Unit::raw(vec![run(0, 9, 9, 1)]).at(5..10), 400, "span"),
            (
                Unit::decoded(codecs(raw.clone(), "string", &[2]), one()),
                400,
                "fixed size",
            ),
            (
                Unit::decoded(codecs(raw.clone(), "int7", &[2]), one()),
                400,
                "int7",
            ),
            (
                Unit::decoded(codecs(raw.clone(), "uint8", &[0, 2]), one()),
                400,
                "length 0",
            ),
            (
                Unit::decoded(codecs(raw.clone(), "uint8", &huge), one()),
                413,
                "memory",
            ),
            (
                Unit::decoded(codecs(raw.clone(), "r8000000", &[2]), one()),
                400,
                "larger than",
            ),
            (
                Unit::decoded(codecs("zstd".into(), "uint8", &[2]), one()),
                400,
                "not a list",
            ),
            (
                Unit::decoded(codecs(raw.clone(), "uint8", &[2]), vec![run(1, 2, 2, 1)]),
                400,
                "span",
            ),
            (
                Unit::decoded(
                    codecs(serde_json::json!(["bytes", "rot13"]), "uint8", &[2]),
                    one(),
                ),
                400,
                "rot13",
            ),
        ] {
            let (seen, text) = refused(unit);
            assert_eq!(seen, status, "{text}");
            assert!(text.contains(word), "{text} lacks {word:?}");
        }
    }
}
