//! `explain`: what a read would do, and why.

use std::path::PathBuf;

use clap::Args;
use hyperslab::{Bounds, Error, Result, parse_slices};

use crate::address::Address;
use crate::context::Context;

const EXAMPLES: &str = "Examples:
  hyperslab explain 's3://bucket/sky.zarr/images[0:10, :, 5]'
  hyperslab explain 's3://bucket/sky.zarr/images[3]' --phi 1000 --place internet --html plan.html
  hyperslab explain 's3://bucket/sky.zarr/images[3]' --function https://f.example --frozen
  hyperslab explain 's3://bucket/sky.zarr/images[3]' --planner paper --analyze";

/// Show what a read would do, and what it would take
///
/// Plans the read without doing it: how each chunk would be fetched, how many requests and bytes
/// that is, how long it takes and what it costs, and the same for the forced plans. Only the indexes
/// of shards are read.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Array, with slices in brackets: URL[0:10, :, 5]
    #[arg(value_name = "URL[SLICES]")]
    array: String,
    /// Read as well, and set what was measured beside the estimate
    #[arg(long)]
    analyze: bool,
    /// Write a page with the chunk grid, coloured by method, and all plans by time and cost
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let address = Address::parse(&arguments.array)?;
    let array = context.session.open_array(&address.url).await?;
    let shape = array.shape();
    let slices = address.slices.as_deref().unwrap_or("");
    let selection = parse_slices(slices, &shape, Bounds::Strict)?.selection;
    let explained = array.explain(&selection).await?;
    let measured = match arguments.analyze {
        true => Some(array.measure(&selection).await?),
        false => None,
    };
    if let Some(path) = &arguments.html {
        let title = format!("{}[{slices}]", array.url());
        let grid = array.meta().grid()?.grid_shape().to_vec();
        std::fs::write(path, explained.page(&title, &grid)).map_err(|e| {
            Error::unavailable(format!("cannot write {}: {e}", path.display())).with_source(e)
        })?;
    }
    let text = explained.text(measured.as_ref());
    context.result(&text, || explained.json(measured.as_ref()))?;
    Ok(true)
}
