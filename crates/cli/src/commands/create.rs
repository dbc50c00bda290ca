//! `create`: a new array or group.

use clap::Args;
use hyperslab::numpy::parse_dtype;
use hyperslab::{ArraySpec, Error, Result, Shape};
use serde_json::json;

use super::describe;
use crate::address::Address;
use crate::context::Context;
use crate::layout::{LayoutArguments, parse_attributes};
use crate::sides::Sides;

const EXAMPLES: &str = "Examples:
  hyperslab create s3://bucket/sky.zarr/images --shape 1000,4096,4096 --dtype f4
  hyperslab create data/t.zarr --shape 365,720,1440 --dtype i2 --chunks 1,360,720 \\
      --codec blosc:zstd:5:bitshuffle --fill -9999 --dims time,lat,lon --attr units=K
  hyperslab create data/flat.zarr --shape 8192,8192 --dtype i4 --chunks 512,512 --codec none
  hyperslab create --group s3://bucket/sky.zarr --attr survey=deep";

/// Create an array or a group
///
/// What is not said is chosen: chunks of about a megabyte, shards where an object store would get
/// very many small objects, and zstd.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of the new node
    url: String,
    /// Create a group instead of an array
    #[arg(long, conflicts_with_all = ["shape", "dtype", "chunks", "shards", "codec", "order", "endian", "fill", "dims", "overwrite"])]
    group: bool,
    /// Shape, such as 100,200; empty for a single cell
    #[arg(long, value_name = "SIDES", required_unless_present = "group")]
    shape: Option<Sides>,
    /// Type of the cells, such as f4, int16, U8, `datetime64[ns]`, string
    #[arg(long, value_name = "TYPE", required_unless_present = "group")]
    dtype: Option<String>,
    /// Replace what is there
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    layout: LayoutArguments,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let url = Address::whole(&arguments.url, "create")?;
    if arguments.group {
        let attributes = parse_attributes(&arguments.layout.attributes)?;
        let group = context.session.create_group(&url, attributes).await?;
        context.done(
            &format!("created the group {}", group.url()),
            || json!({"kind": "group", "url": group.url()}),
        )?;
        return Ok(true);
    }
    let (Some(Sides(sides)), Some(dtype)) = (&arguments.shape, &arguments.dtype) else {
        return Err(Error::invalid("an array needs --shape and --dtype"));
    };
    let stored = parse_dtype(dtype)?;
    let mut spec = ArraySpec::new(Shape::new(sides.iter().copied())?, stored.dtype);
    spec.big_endian = !stored.big_endian.is_empty();
    arguments.layout.apply(&mut spec)?;
    let array = context
        .session
        .create_array(&url, spec, arguments.overwrite)
        .await?;
    let meta = array.meta();
    let (chunks, shards) = describe::grids(&meta)?;
    let shards = shards.map_or(String::new(), |s| format!(" in shards {s:?}"));
    let text = format!(
        "created {}: {}, chunks {chunks:?}{shards}, codecs {}",
        array.url(),
        describe::brief(&meta),
        describe::codecs(&meta)
    );
    let mut value = describe::array_json(&meta)?;
    value["url"] = json!(array.url());
    context.done(&text, || value)?;
    Ok(true)
}
