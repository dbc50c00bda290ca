//! `resize`: another shape for an array.

use clap::Args;
use hyperslab::Result;
use serde_json::json;

use crate::address::Address;
use crate::context::Context;
use crate::sides::Sides;

const EXAMPLES: &str = "Examples:
  hyperslab resize data/t.zarr --shape 730,720,1440
  hyperslab resize s3://bucket/log.zarr --shape 0";

/// Change the shape of an array
///
/// Cells that remain keep their values, new ones hold the fill value, and cells outside the new
/// shape are gone for good.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of the array
    url: String,
    /// The new shape, with the same number of dimensions
    #[arg(long, value_name = "SIDES")]
    shape: Sides,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let url = Address::whole(&arguments.url, "resize")?;
    let array = context.session.open_array(&url).await?;
    let before = array.shape();
    context.set_state(format!(
        "interrupted; {} has either its old or its new shape; run the same command again to finish",
        array.url()
    ));
    array.resize(&arguments.shape.0).await?;
    let after = array.shape();
    context.done(
        &format!("resized {} from {before} to {after}", array.url()),
        || json!({"url": array.url(), "from": before[..], "to": after[..]}),
    )?;
    Ok(true)
}
