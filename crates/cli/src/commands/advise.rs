//! `advise`: how an array had better be laid out, from how it is read.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hyperslab::advise::{Advice, AdviceOptions, Objective, Pattern, Reads};
use hyperslab::{Array, Error, Result, Trace, settings};

use crate::address::Address;
use crate::context::Context;
use crate::sides::parse_sides;

const EXAMPLES: &str = "Examples:
  hyperslab advise s3://bucket/climate.zarr/t2m --trace traces
  hyperslab advise s3://bucket/climate.zarr/t2m --box 1,721,1440:3 --box 8760,1,1 --replicas 2
  hyperslab advise sky.zarr/images --pattern reads.txt --html advice.html -o advice.json
  hyperslab advise sky.zarr/images --pattern reads.txt --objective blocks --block-bytes 8KB --aligned
  hyperslab rechunk sky.zarr/images better.zarr/images --apply-advice advice.json";

/// Advise on chunks, their order, shards and copies of an array, from how it is read
///
/// Reads are known from a trace (--trace, see `hyperslab trace`), from a file with boxes and how often
/// each is read (--pattern: the number of boxes, then a line with the sides and the frequency of each),
/// or from --box. Layouts are compared by what the planner says that reads cost on the array's store, so
/// latency, bandwidth, prices and compression decide the size of chunks as well as their shape.
///
/// Nothing is changed; the commands that would do it are printed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of an array
    array: String,
    /// Boxes that are read and how often: a file in the form K, then K lines of sides and frequency
    #[arg(long, value_name = "FILE", conflicts_with = "boxes")]
    pattern: Option<PathBuf>,
    /// A box that is read, with how often: 10,400,10:3 (repeatable)
    #[arg(long = "box", value_name = "SIDES[:TIMES]", value_parser = parse_box)]
    boxes: Vec<(Sides, u32)>,
    /// Copies in all, the array itself among them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    replicas: u8,
    /// Bytes that all copies may take together
    #[arg(long, value_name = "SIZE", value_parser = settings::positive_bytes)]
    budget: Option<u64>,
    /// What layouts are compared by
    #[arg(long, value_enum, default_value_t = ObjectiveName::Cost)]
    objective: ObjectiveName,
    /// Bytes of a block, with --objective blocks
    #[arg(long, value_name = "SIZE", default_value = "8KiB", value_parser = settings::positive_bytes)]
    block_bytes: u64,
    /// Boxes start with a chunk, with --objective blocks
    #[arg(long)]
    aligned: bool,
    /// The smallest chunk
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = settings::positive_bytes)]
    min_chunk: u64,
    /// The largest chunk
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = settings::positive_bytes)]
    max_chunk: u64,
    /// Only chunks that divide the array evenly
    #[arg(long)]
    whole: bool,
    /// The axis to which cells are appended, and how many at a time: no chunk is longer along it
    #[arg(long, value_name = "AXIS[:CELLS]", value_parser = parse_append)]
    append: Option<(usize, u64)>,
    /// Keep the cells of a chunk row by row
    #[arg(long)]
    row_major: bool,
    /// Bytes of objects that hold many chunks
    #[arg(long, value_name = "SIZE", value_parser = settings::positive_bytes)]
    shards: Option<u64>,
    /// Classes of boxes that are told apart
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u8).range(1..=64))]
    classes: u8,
    /// Say how far the reads are from those of an earlier pattern
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
    /// Write the pattern of the reads
    #[arg(long, value_name = "FILE")]
    save_pattern: Option<PathBuf>,
    /// Write a page with pictures: where the array is read, and each class before and after
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the layout for `rechunk --apply-advice`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ObjectiveName {
    /// Time and money of reads on the array's store
    Cost,
    /// Blocks that reads touch
    Blocks,
}

/// A type of its own, since lists mean something else to the argument parser.
type Sides = std::sync::Arc<[u64]>;

fn parse_box(text: &str) -> Result<(Sides, u32), String> {
    let (sides, times) = match text.rsplit_once(':') {
        Some((sides, times)) => {
            let number = times.trim().parse::<u32>().ok().filter(|times| *times > 0);
            let wrong = || format!("{times:?} is not how often a box is read: a number from 1");
            (sides, number.ok_or_else(wrong)?)
        }
        None => (text, 1),
    };
    Ok((parse_sides(sides)?.into(), times))
}

fn parse_append(text: &str) -> Result<(usize, u64), String> {
    let (axis, cells) = text.split_once(':').unwrap_or((text, "1"));
    let wrong = || format!("{text:?} is not an axis such as 0, or an axis and cells such as 0:24");
    let axis = axis.trim().parse().map_err(|_| wrong())?;
    let cells = cells.trim().parse().ok().filter(|cells| *cells > 0);
    Ok((axis, cells.ok_or_else(wrong)?))
}

impl Arguments {
    fn options(&self) -> AdviceOptions {
        AdviceOptions {
            objective: match self.objective {
                ObjectiveName::Cost => Objective::Cost,
                ObjectiveName::Blocks => Objective::Blocks {
                    bytes: self.block_bytes,
                    aligned: self.aligned,
                },
            },
            classes: usize::from(self.classes),
            copies: usize::from(self.replicas),
            budget: self.budget,
            chunk_bytes: (self.min_chunk.min(self.max_chunk), self.max_chunk),
            whole_divisions: self.whole,
            append: self.append,
            any_order: !self.row_major,
            shard_bytes: self.shards,
        }
    }

    /// The reads that were told, or traced to `trace`.
    fn reads(&self, array: &Array, trace: Option<&Path>) -> Result<Reads> {
        let shape = array.shape();
        if let Some(file) = &self.pattern {
            return Ok(Reads::Told(Pattern::parse(&read_text(file)?, &shape)?));
        }
        if !self.boxes.is_empty() {
            let boxes = self.boxes.iter();
            let boxes = boxes.map(|(sides, times)| (sides.to_vec(), f64::from(*times)));
            return Ok(Reads::Told(Pattern::new(&shape, boxes)?));
        }
        match trace {
            Some(trace) => Reads::traced(&Trace::load([trace])?, array),
            None => Err(Error::invalid("nothing says how the array is read").with_hint(
                "give --trace with what `hyperslab --trace DIR` or the connector wrote, --pattern, or --box",
            )),
        }
    }
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let address = Address::whole(&arguments.array, "advise")?;
    let array = context.session.open_array(&address).await?;
    // Here `--trace` names what is read, and not where to write: nothing of the array is read.
    let trace = context.session.options().trace.clone();
    let reads = arguments.reads(&array, trace.as_deref())?;
    let advice = array.advise(&reads, &arguments.options()).await?;
    if let Some(path) = &arguments.html {
        write(path, &advice.page())?;
    }
    if let Some(path) = &arguments.output {
        write(path, &format!("{:#}\n", advice.layout_json()))?;
    }
    if let Some(path) = &arguments.save_pattern {
        write(path, &advice.pattern.to_text())?;
    }
    let drift = drift(arguments, &advice)?;
    let mut text = advice.text();
    if let Some(drift) = drift {
        text.push_str(&format!(
            "\nReads have moved by {drift:.2} doublings of a side since that pattern{}\n",
            if drift > 1.0 {
                ": its advice no longer fits."
            } else {
                "."
            }
        ));
    }
    context.result(&text, || {
        let mut json = advice.json();
        json["drift"] = drift.into();
        json
    })?;
    Ok(true)
}

fn drift(arguments: &Arguments, advice: &Advice) -> Result<Option<f64>> {
    let Some(path) = &arguments.since else {
        return Ok(None);
    };
    let before = Pattern::parse(&read_text(path)?, &advice.shape)?;
    Ok(Some(before.drift(&advice.pattern)))
}

fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path)
        .map_err(|e| Error::invalid(format!("{} cannot be read: {e}", path.display())))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| {
        Error::unavailable(format!("{} cannot be written: {e}", path.display())).with_source(e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_have_a_frequency() {
        let (sides, times) = parse_box("10,400,10:3").unwrap();
        assert_eq!((&*sides, times), (&[10, 400, 10][..], 3));
        assert_eq!(parse_box("(5, 6)").unwrap().1, 1);
        for wrong in ["1,2:0", "1,2:x", "a,2", "1,2:-1"] {
            assert!(parse_box(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_append("0:24").unwrap(), (0, 24));
        assert_eq!(parse_append("2").unwrap(), (2, 1));
        assert!(parse_append("0:0").is_err() && parse_append("x").is_err());
    }
}
