//! `trace`: what was read, by whom, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use hyperslab::{Access, Chosen, Error, Result, Trace};
use serde_json::{Value, json};

use crate::context::Context;
use crate::report::one_line;
use crate::size;
use crate::table::{Side, lay_out};

const EXAMPLES: &str = "Examples:
  hyperslab get 's3://bucket/sky.zarr/images[3]' -o image.npy --trace traces
  HDF5_VOL_CONNECTOR='hyperslab trace=traces' python3 train.py
  hyperslab trace show traces
  hyperslab trace merge traces node1/traces -o week.trace";

/// Look at traces of reads, or put many together
///
/// With --trace (or HYPERSLAB_TRACE, or `trace=` in the connector's settings) every process writes
/// down which cells of which arrays it reads, to a file of its own in that folder.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Tell, for every array, how often it was read and in which boxes
    Show {
        /// Traces, or folders of them
        #[arg(required = true)]
        traces: Vec<PathBuf>,
        /// List every single read
        #[arg(long)]
        all: bool,
    },
    /// Write the reads of many traces as one, in the order of time
    Merge {
        /// Traces, or folders of them
        #[arg(required = true)]
        traces: Vec<PathBuf>,
        /// The file to write
        #[arg(short, long)]
        output: PathBuf,
    },
}

/// Shapes of boxes that are shown of an array.
const SHAPES: usize = 5;

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    match &arguments.action {
        Action::Show { traces, all } => {
            let trace = load(traces, context)?;
            match all {
                true => list(&trace, context)?,
                false => summarise(&trace, context)?,
            }
        }
        Action::Merge { traces, output } => {
            let trace = load(traces, context)?;
            let bytes = trace.to_bytes();
            std::fs::write(output, &bytes).map_err(|e| {
                Error::unavailable(format!("{} cannot be written: {e}", output.display()))
            })?;
            let (reads, bytes) = (trace.reads.len() as u64, bytes.len() as u64);
            let text = format!(
                "{} in {}, {}",
                size::many(reads, "read"),
                output.display(),
                size::show(bytes)
            );
            context.done(&text, || json!({"reads": reads, "bytes": bytes}))?;
        }
    }
    Ok(true)
}

fn load(traces: &[PathBuf], context: &Context) -> Result<Trace> {
    let trace = Trace::load(traces)?;
    if trace.unfinished > 0 {
        context.note(&format!(
            "{} not whole at the end: their processes were killed, or go on",
            size::many(trace.unfinished as u64, "trace")
        ));
    }
    Ok(trace)
}

/// What is known of the reads of one array.
#[derive(Default)]
struct Summary<'a> {
    reads: u64,
    cells: u64,
    bytes: u64,
    micros: u64,
    processes: BTreeSet<(&'a str, u32)>,
    /// Shapes of boxes around what was read, with how often.
    shapes: BTreeMap<Vec<u64>, u64>,
}

impl<'a> Summary<'a> {
    fn add(&mut self, read: &'a Access) {
        let cells = read.cells();
        self.reads += 1;
        self.cells += cells;
        self.bytes += cells * read.array.cell_bytes;
        self.micros += read.took;
        let process = &read.process;
        self.processes.insert((&process.host, process.pid));
        let shape = read.region().map(|region| region.shape().to_vec());
        *self.shapes.entry(shape.unwrap_or_default()).or_default() += 1;
    }

    /// The shapes that were read most often, and how often others were.
    fn frequent(&self) -> (Vec<(&Vec<u64>, u64)>, u64) {
        let mut all: Vec<(&Vec<u64>, u64)> = self.shapes.iter().map(|(s, n)| (s, *n)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let rest = all.iter().skip(SHAPES).map(|(_, count)| count).sum();
        all.truncate(SHAPES);
        (all, rest)
    }
}

fn summarise(trace: &Trace, context: &Context) -> Result<()> {
    let mut arrays: BTreeMap<(&str, &[u64]), Summary> = BTreeMap::new();
    for read in &trace.reads {
        let array = &read.array;
        arrays
            .entry((&array.url, &array.shape))
            .or_default()
            .add(read);
    }
    let mut text = String::new();
    for ((url, shape), summary) in &arrays {
        text += &format!(
            "{} {}: {}, {} in {:.3} s, by {}\n",
            one_line(url),
            sides(shape),
            size::many(summary.reads, "read"),
            size::show(summary.bytes),
            summary.micros as f64 / 1e6,
            size::many(summary.processes.len() as u64, "process"),
        );
        let (frequent, rest) = summary.frequent();
        let mut rows: Vec<Vec<String>> = frequent
            .iter()
            .map(|(shape, count)| {
                let share = 100.0 * *count as f64 / summary.reads as f64;
                vec![format!("  {share:.1} %"), count.to_string(), sides(shape)]
            })
            .collect();
        if rest > 0 {
            rows.push(vec![
                String::new(),
                rest.to_string(),
                "in other boxes".into(),
            ]);
        }
        text += &lay_out(&[Side::Right, Side::Right, Side::Left], &rows);
    }
    context.result(&text, || {
        let each = arrays.iter().map(|((url, shape), summary)| {
            let (frequent, rest) = summary.frequent();
            let shapes: Vec<Value> = frequent
                .iter()
                .map(|(shape, count)| json!({"shape": shape, "reads": count}))
                .collect();
            json!({
                "url": url,
                "shape": shape,
                "reads": summary.reads,
                "cells": summary.cells,
                "bytes": summary.bytes,
                "seconds": summary.micros as f64 / 1e6,
                "processes": summary.processes.len(),
                "shapes": shapes,
                "other_shapes": rest,
            })
        });
        json!({"arrays": each.collect::<Vec<_>>(), "unfinished": trace.unfinished})
    })
}

fn list(trace: &Trace, context: &Context) -> Result<()> {
    let rows: Vec<Vec<String>> = trace
        .reads
        .iter()
        .map(|read| {
            vec![
                format!("{:.6}", read.at as f64 / 1e6),
                format!("{}:{}", read.process.host, read.process.pid),
                format!("{:.6} s", read.took as f64 / 1e6),
                one_line(&format!("{}[{}]", read.array.url, chosen(&read.chosen))),
            ]
        })
        .collect();
    let columns = [Side::Right, Side::Left, Side::Right, Side::Left];
    context.result(&lay_out(&columns, &rows), || {
        let each = trace.reads.iter().map(|read| {
            json!({
                "at": read.at as f64 / 1e6,
                "seconds": read.took as f64 / 1e6,
                "host": read.process.host,
                "pid": read.process.pid,
                "url": read.array.url,
                "selection": chosen(&read.chosen),
                "cells": read.cells(),
            })
        });
        json!({"reads": each.collect::<Vec<_>>()})
    })
}

fn sides(shape: &[u64]) -> String {
    match shape {
        [] => "one cell".into(),
        _ => {
            let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
            sides.join(" × ")
        }
    }
}

/// A selection in NumPy's words, as far as they go.
fn chosen(chosen: &Chosen) -> String {
    match chosen {
        Chosen::All => "...".into(),
        Chosen::Slab(slab) => {
            let dims = slab.dims().iter().map(|dim| match (dim.count, dim.block) {
                (0, _) => "0:0".into(),
                (1, block) => format!("{}:{}", dim.start, dim.start + block),
                (count, 1) => {
                    let end = dim.start + (count - 1) * dim.stride + 1;
                    format!("{}:{end}:{}", dim.start, dim.stride)
                }
                (count, block) => {
                    format!("{count} of {block} from {} every {}", dim.start, dim.stride)
                }
            });
            dims.collect::<Vec<String>>().join(", ")
        }
        Chosen::Points { rank, coordinates } => {
            size::many((coordinates.len() / (*rank).max(1)) as u64, "point")
        }
        Chosen::Around { cells, region } => match region {
            Some(region) => format!(
                "{} in a box of {}",
                size::many(*cells, "cell"),
                sides(region.shape())
            ),
            None => "nothing".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use hyperslab::Hyperslab;

    use super::*;

    #[test]
    fn selections_are_written_like_slices() {
        let slab = |start: &[u64], stride: &[u64], count: &[u64], block: &[u64]| {
            chosen(&Chosen::Slab(
                Hyperslab::new(start, stride, count, block).unwrap(),
            ))
        };
        assert_eq!(slab(&[3, 5], &[1, 1], &[1, 2], &[4, 1]), "3:7, 5:7");
        assert_eq!(slab(&[3], &[4], &[3], &[1]), "3:12:4");
        assert_eq!(slab(&[3], &[4], &[3], &[2]), "3 of 2 from 3 every 4");
        assert_eq!(chosen(&Chosen::All), "...");
        assert_eq!(sides(&[2, 3]), "2 × 3");
    }
}
