//! `put`: writes a local file into an array.

use std::path::PathBuf;

use clap::Args;
use hyperslab::numpy::{Stored, parse_dtype};
use hyperslab::{ArraySpec, DataType, Error, Progress, Result, Shape};
use serde_json::json;

use crate::address::{Address, without_query};
use crate::blocks::{Block, Cut};
use crate::context::Context;
use crate::layout::LayoutArguments;
use crate::npy::input::{Input, fits};
use crate::sides::Sides;
use crate::target::Target;

const EXAMPLES: &str = "Examples:
  hyperslab put image.npy s3://bucket/sky.zarr/images --chunks 256,256 --codec zstd:3
  hyperslab put row.npy 'data/climate.zarr/temperature[5, :, :]'
  hyperslab put cells.bin data/raw.zarr --dtype '<i2' --shape 1000,1000";

/// Write a .npy or raw file into an array or a slice of it
///
/// The array is created if it does not exist. An existing one must have the file's type, and the
/// slice its shape. The file is checked completely before anything is written.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// File to read: .npy, or raw cells with --dtype and --shape
    file: PathBuf,
    /// Array, with slices in brackets if a part of it is to be written
    #[arg(value_name = "URL[SLICES]")]
    array: String,
    /// Type of raw cells, such as f4, '>i2' or U8 (default: the array's)
    #[arg(long, value_name = "TYPE")]
    dtype: Option<String>,
    /// Shape of raw cells (default: that of the array or slice)
    #[arg(long, value_name = "SIDES")]
    shape: Option<Sides>,
    /// Replace an array or group that is there
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    layout: LayoutArguments,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let address = Address::parse(&arguments.array)?;
    let existing = match context.session.open_array(&address.url).await {
        Ok(array) if !arguments.overwrite => Some(Target::new(array, address.slices.as_deref())?),
        Ok(_) => None,
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    let mut input = open_input(arguments, existing.as_ref())?;
    let (target, created) = match existing {
        Some(target) => {
            check_existing(arguments, &input, &target)?;
            (target, false)
        }
        None => (create(arguments, &address, &input, context).await?, true),
    };
    let shown = without_query(&address.url).to_owned();
    context.set_state(match created {
        true => format!("interrupted; {shown} exists and holds what was written so far, the rest is its fill value; run the same command with --overwrite to begin again"),
        false => format!("interrupted; every chunk of {shown} is complete and either old or new; run the same command again to finish"),
    });
    write_all(&mut input, &target, context).await?;
    let verb = if created {
        "created and wrote"
    } else {
        "wrote"
    };
    let slices = address
        .slices
        .as_deref()
        .map_or(String::new(), |s| format!("[{s}]"));
    context.done(
        &format!("{verb} {shown}{slices}: {} {}", target.shape, target.dtype),
        || {
            json!({
                "url": shown,
                "slices": address.slices,
                "created": created,
                "shape": target.shape[..],
                "dtype": target.dtype.to_string(),
            })
        },
    )?;
    Ok(true)
}

/// Opens the file; raw cells take what was not said from the array that is there.
fn open_input(arguments: &Arguments, existing: Option<&Target>) -> Result<Input> {
    let path = &arguments.file;
    let is_npy = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("npy"));
    if is_npy && arguments.dtype.is_none() && arguments.shape.is_none() {
        return Input::npy(path);
    }
    if is_npy {
        return Err(Error::invalid("a .npy file tells its own type and shape")
            .with_hint("leave out --dtype and --shape, or rename raw cells to .bin"));
    }
    let missing = |what: &str| {
        Error::invalid(format!("{} does not tell its {what}", path.display()))
            .with_hint("give --dtype and --shape for raw cells, or a .npy file")
    };
    let stored = match (&arguments.dtype, existing) {
        (Some(text), _) => parse_dtype(text)?,
        (None, Some(target)) => Stored {
            dtype: target.dtype.clone(),
            big_endian: Vec::new(),
        },
        (None, None) => return Err(missing("type")),
    };
    let shape = match (&arguments.shape, existing) {
        (Some(sides), _) => Shape::new(sides.0.iter().copied())?,
        (None, Some(target)) => target.shape.clone(),
        (None, None) => return Err(missing("shape")),
    };
    Input::raw(path, stored, shape)
}

fn check_existing(arguments: &Arguments, input: &Input, target: &Target) -> Result<()> {
    if arguments.layout.any() {
        return Err(Error::invalid("the array exists, so its layout is settled")
            .with_hint("leave the layout options out, or add --overwrite to replace the array"));
    }
    if !fits(&input.stored.dtype, &target.dtype) {
        return Err(Error::invalid(format!(
            "the file has cells of type {}, but the array has {}",
            input.stored.dtype, target.dtype
        ))
        .with_hint(format!(
            "convert the file first, such as a.astype({:?})",
            target.dtype.to_string()
        )));
    }
    if input.shape != target.shape && input.shape != target.full_shape {
        return Err(Error::invalid(format!(
            "the file has the shape {}, but the place for it has {}",
            input.shape, target.shape
        ))
        .with_hint("select a slice of the file's shape, such as URL[0:10, :]"));
    }
    Ok(())
}

async fn create(
    arguments: &Arguments,
    address: &Address,
    input: &Input,
    context: &Context,
) -> Result<Target> {
    if address.slices.is_some() {
        let shown = without_query(&address.url);
        return Err(
            Error::not_found(format!("there is no array {shown} to write a slice of"))
                .with_hint("create it first: hyperslab create URL --shape … --dtype …"),
        );
    }
    let mut spec = ArraySpec::new(input.shape.clone(), input.stored.dtype.clone());
    arguments.layout.apply(&mut spec)?;
    let array = context
        .session
        .create_array(&address.url, spec, arguments.overwrite)
        .await?;
    Target::new(array, None)
}

/// Copies the file block by block. Blocks end at chunk borders where memory allows, so that no
/// chunk is written twice.
async fn write_all(input: &mut Input, target: &Target, context: &Context) -> Result<()> {
    let bar = context.bar("writing");
    bar.start(target.bytes());
    let budget = (context.memory() / 3).max(1);
    let blocks: Vec<Block> = match input.fortran {
        false => target.blocks(budget).collect(),
        true => fortran_blocks(target, budget),
    };
    // The file has the result's dimensions; the array may have more, of one cell each.
    let full = target.full_shape.to_vec();
    let same_rank = input.shape.rank() == full.len();
    if !same_rank {
        input.shape = target.full_shape.clone();
    }
    let dtype: &DataType = &target.dtype;
    for block in blocks {
        let cells = input.read_as(&block, dtype)?;
        target.write(&block, cells).await?;
        bar.add(block.cells().saturating_mul(target.cell_bytes()));
    }
    Ok(())
}

/// Blocks that are contiguous in a file whose first dimension varies fastest.
fn fortran_blocks(target: &Target, budget: u64) -> Vec<Block> {
    let reversed: Vec<u64> = target.full_shape.iter().rev().copied().collect();
    let chunks: Vec<(u64, u64)> = target.chunk_borders().into_iter().rev().collect();
    let cut = Cut {
        shape: &reversed,
        cell_bytes: target.cell_bytes(),
        budget,
        chunks: &chunks,
    };
    cut.blocks()
        .map(|mut block| {
            block.start.reverse();
            block.shape.reverse();
            block
        })
        .collect()
}
