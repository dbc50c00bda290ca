//! `get`: reads cells, as text or into a file.

use std::path::PathBuf;

use clap::Args;
use hyperslab::Result;
use serde_json::json;

use crate::address::Address;
use crate::context::Context;
use crate::export::{Format, Head, export};
use crate::size;
use crate::target::Target;

const EXAMPLES: &str = "Examples:
  hyperslab get 'data/climate.zarr/temperature[0, ::10, ::10]'
  hyperslab get 's3://bucket/sky.zarr/images[0:10, :, 5]' -o out.npy
  hyperslab get 's3://bucket/sky.zarr/images[3]' -o image.png --vmin 0 --vmax 1
  hyperslab get 's3://bucket/sky.zarr/images[:, 7]' -o out.npy --function https://f.example
  hyperslab get 'data/names.zarr[::-1]' --format csv | head";

/// Read cells and print them or write them to a file
///
/// Slices are NumPy's: integers drop their dimension, negative ones count from the end, negative
/// steps reverse. Reaching out of bounds is an error. Files are written block by block within the
/// memory limit, and appear only when they are complete.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Array, with slices in brackets: URL[0:10, :, 5]
    #[arg(value_name = "URL[SLICES]")]
    array: String,
    /// File to write; its ending tells the format: .npy .raw .bin .csv .json .png .txt
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Format, whatever the file's ending; without -o it goes to standard output
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Lower limit of the colours of a picture (default: the least value)
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    vmin: Option<f64>,
    /// Upper limit of the colours of a picture (default: the greatest value)
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    vmax: Option<f64>,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let address = Address::parse(&arguments.array)?;
    let format = match (arguments.format, &arguments.output) {
        (Some(format), _) => format,
        (None, Some(path)) => Format::of(path)?,
        (None, None) if context.json => Format::Json,
        (None, None) => Format::Text,
    };
    let array = context.session.open_array(&address.url).await?;
    let target = Target::new(array, address.slices.as_deref())?;
    let head = Head {
        dtype: target.dtype.clone(),
        shape: target.shape.to_vec(),
        names: target.names.clone(),
        longest: None,
        limits: (arguments.vmin, arguments.vmax),
    };
    export(&target, head, format, arguments.output.as_deref(), context).await?;
    if let Some(path) = &arguments.output {
        let bytes = std::fs::metadata(path).map(|meta| meta.len()).unwrap_or(0);
        let text = format!(
            "wrote {}: {} {}, {}",
            path.display(),
            target.shape,
            target.dtype,
            size::show(bytes)
        );
        context.done(&text, || {
            json!({
                "file": path.display().to_string(),
                "shape": target.shape[..],
                "dtype": target.dtype.to_string(),
                "bytes": bytes,
            })
        })?;
    }
    Ok(true)
}
