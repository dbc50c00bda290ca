//! `rechunk`: moves an array to another layout, out of core.

use std::path::{Path, PathBuf};

use clap::Args;
use hyperslab::{Error, RechunkOptions, Rechunked, Result, rechunk, rechunk_in_place};
use serde::Deserialize;
use serde_json::json;

use super::cp::is_hdf5_file;
use crate::address::{Address, without_query};
use crate::context::Context;
use crate::layout::LayoutArguments;
use crate::sides::Extent;
use crate::size;

const EXAMPLES: &str = "Examples:
  hyperslab rechunk time.zarr/t2m space.zarr/t2m --chunks 1000,32,32 --memory 512MiB
  hyperslab rechunk s3://bucket/a.zarr/x s3://bucket/b.zarr/x --chunks 64,64 --shards 1024,1024 --verify
  hyperslab rechunk run.h5/signal run.zarr/signal --chunks 4096,16 --codec zstd:3 --order F
  hyperslab rechunk data.zarr/x --in-place --apply-advice advice.json
  hyperslab rechunk time.zarr/t2m space.zarr/t2m --chunks 1000,32,32 --resume";

/// What the process takes by itself: code, threads, and the memory between allocations.
const OVERHEAD: u64 = 48 << 20;

/// Move an array to another layout
///
/// Works out of core: --memory bounds what the whole program takes. Chunks of the source are read at
/// most twice; where that cannot be done in one pass, cells go by way of a temporary copy without
/// compression (--temp). The array appears at its destination when it is complete. A rechunk that was
/// stopped goes on with --resume.
///
/// With --in-place the array keeps its URL: new chunks are written beside the old ones, and one change
/// of its metadata switches from these to those. Stop its writers before.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of an array: Zarr or HDF5, anywhere
    source: String,
    /// URL of the new array, which is Zarr v3
    #[arg(required_unless_present = "in_place", conflicts_with = "in_place")]
    destination: Option<String>,
    /// Change the array itself
    #[arg(long)]
    in_place: bool,
    /// Take the layout from a file that `hyperslab advise` wrote: JSON with chunks, shards, order and
    /// codec. Options that are given too come before it
    #[arg(long, value_name = "FILE")]
    apply_advice: Option<PathBuf>,
    /// Folder or URL for cells between two passes, where two are needed: beside the new array otherwise
    #[arg(long, value_name = "DIR")]
    temp: Option<String>,
    /// Replace what is there, or drop what a rechunk that was stopped left
    #[arg(long)]
    overwrite: bool,
    /// Go on with a rechunk that was stopped
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Read both arrays and compare all cells, before the new one can be seen
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    layout: LayoutArguments,
}

/// What advice on a layout says; what is left out stays as it is.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct Advice {
    chunks: Option<Vec<u64>>,
    /// `None` if nothing is said of shards, `Some(None)` if there are to be none.
    #[serde(default, deserialize_with = "said")]
    shards: Option<Option<Vec<u64>>>,
    order: Option<Vec<usize>>,
    shard_order: Option<Vec<usize>>,
    codec: Option<String>,
}

fn said<'de, D: serde::Deserializer<'de>>(
    value: D,
) -> std::result::Result<Option<Option<Vec<u64>>>, D::Error> {
    Option::deserialize(value).map(Some)
}

impl Advice {
    fn read(file: &Path) -> Result<Self> {
        let shown = file.display();
        let text = std::fs::read_to_string(file).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::not_found(format!("there is no file {shown}")),
            _ => Error::unavailable(format!("{shown} cannot be read: {e}")),
        })?;
        serde_json::from_str(&text).map_err(|e| {
            Error::invalid(format!("{shown} is no advice on a layout: {e}"))
                .with_hint("write it with `hyperslab advise`")
        })
    }

    /// Fills in what the options leave open.
    fn complete(self, layout: &mut LayoutArguments) {
        if layout.chunks.is_none() {
            layout.chunks = self.chunks.map(Extent::Sides);
        }
        if layout.shards.is_none() {
            let extent = |sides: Option<Vec<u64>>| sides.map_or(Extent::None, Extent::Sides);
            layout.shards = self.shards.map(extent);
        }
        let text = |order: Vec<usize>| {
            let dims: Vec<String> = order.iter().map(usize::to_string).collect();
            dims.join(",")
        };
        if layout.order.is_none() {
            layout.order = self.order.filter(|order| !order.is_empty()).map(text);
        }
        if layout.shard_order.is_none() {
            let order = self.shard_order.filter(|order| !order.is_empty());
            layout.shard_order = order.map(text);
        }
        if layout.codec.is_none() {
            layout.codec = self.codec;
        }
    }
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let source = Address::whole(&arguments.source, "rechunk")?;
    let mut layout = arguments.layout.clone();
    if let Some(file) = &arguments.apply_advice {
        Advice::read(file)?.complete(&mut layout);
    }
    if !layout.relays() {
        return Err(
            Error::invalid("nothing is said of the new layout").with_hint(
                "give --chunks, --shards, --order or --codec, or a file with --apply-advice",
            ),
        );
    }
    let options = RechunkOptions {
        // The session has the other half; a rechunk divides all of it in its own way.
        memory: context.memory().saturating_mul(2),
        overhead: OVERHEAD,
        temp: arguments.temp.clone(),
        resume: arguments.resume,
        overwrite: arguments.overwrite,
        verify: arguments.verify,
    };
    let from = context.session.open_array(&source).await?;
    let bar = context.bar("rechunking");
    let (shown, done) = match &arguments.destination {
        Some(destination) => {
            let destination = Address::whole(destination, "rechunk")?;
            if is_hdf5_file(&destination) {
                return Err(
                    Error::invalid("`rechunk` writes Zarr, not HDF5 files").with_hint(
                        "write the file with `hyperslab cp --chunks`, or give another name",
                    ),
                );
            }
            let shown = without_query(&destination).to_owned();
            context.set_state(format!("interrupted; {shown} is not there yet; run the same command with --resume to go on, or with --overwrite to begin again"));
            let spec = layout.spec_like(&from)?;
            let (_, done) = rechunk(&from, &destination, spec, &options, &bar).await?;
            (shown, done)
        }
        None => {
            if layout.fill.is_some() || layout.dims.is_some() || !layout.attributes.is_empty() {
                return Err(Error::invalid(
                    "an array that is rechunked in place keeps fill value, names and attributes",
                )
                .with_hint("leave out --fill, --dims and --attr"));
            }
            let shown = without_query(&source).to_owned();
            context.set_state(format!("interrupted; {shown} reads as before; run the same command with --resume to go on, or with --overwrite to begin again"));
            let spec = layout.spec_like(&from)?;
            let done = rechunk_in_place(&from, spec, &options, &bar).await?;
            (shown, done)
        }
    };
    drop(bar);
    context.done(&sentence(&source, &shown, arguments, &done), || {
        json!({
            "source": without_query(&source),
            "destination": shown,
            "in_place": arguments.in_place,
            "done": done,
        })
    })?;
    Ok(true)
}

fn sentence(source: &str, shown: &str, arguments: &Arguments, done: &Rechunked) -> String {
    let what = match arguments.in_place {
        true => format!("rechunked {shown} in place"),
        false => format!("rechunked {} to {shown}", without_query(source)),
    };
    if done.passes == 0 {
        return format!("{what}: nothing was left to do");
    }
    let verified = if done.verified { ", verified" } else { "" };
    format!(
        "{what}: {}, {} of memory at most{verified}",
        match done.passes {
            1 => "one pass".to_owned(),
            n => format!("{n} passes"),
        },
        size::show(done.planned_memory),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fills_in_what_options_leave_open() {
        let text =
            r#"{"chunks": [4, 8], "shards": null, "order": [1, 0], "codec": null, "why": 1}"#;
        let advice: Advice = serde_json::from_str(text).unwrap();
        let mut layout = LayoutArguments {
            chunks: Some(Extent::Auto),
            ..LayoutArguments::default()
        };
        advice.complete(&mut layout);
        assert_eq!(layout.chunks, Some(Extent::Auto));
        assert_eq!(layout.shards, Some(Extent::None));
        assert_eq!(layout.order.as_deref(), Some("1,0"));
        assert_eq!(layout.codec, None);
        let silent: Advice = serde_json::from_str("{}").unwrap();
        assert_eq!(silent, Advice::default());
    }
}
