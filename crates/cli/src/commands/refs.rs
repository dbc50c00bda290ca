//! `refs`: writes a reference file of HDF5 files, for zarr-python.

use std::path::PathBuf;

use clap::Args;
use hyperslab::{Error, ReferenceSet, Result};
use serde_json::json;

use super::describe;
use crate::context::Context;
use crate::size;

const EXAMPLES: &str = "Examples:
  hyperslab refs s3://bucket/run1.h5 -o run1.json
  hyperslab refs /data/2024.nc /data/2025.nc -o years.json
  python -c 'import zarr, fsspec; zarr.open(\"reference://\", storage_options={\"fo\": \"run1.json\"})'";

/// Write a reference file (kerchunk) that says where the chunks of HDF5 files are
///
/// zarr-python, xarray and others read the files through it without a copy. One file is the root of
/// the hierarchy; several are groups, named after the files. Datasets that Zarr v2 cannot say are
/// left out and listed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URLs of HDF5 files
    #[arg(required = true)]
    files: Vec<String>,
    /// Where to write the references
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Fail if a dataset has to be left out
    #[arg(long)]
    strict: bool,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let mut set = ReferenceSet::default();
    let names = describe::stems(&arguments.files)?;
    if arguments.files.len() > 1 {
        set.root();
    }
    for (file, name) in arguments.files.iter().zip(&names) {
        let path = if arguments.files.len() > 1 {
            name.as_str()
        } else {
            ""
        };
        context.session.add_references(file, path, &mut set).await?;
    }
    let skipped = set.skipped();
    for one in skipped {
        context.note(&format!("left out: {}: {}", one.path, one.reason));
    }
    if arguments.strict && !skipped.is_empty() {
        return Err(Error::invalid(format!(
            "{} cannot be said by references",
            size::many(skipped.len() as u64, "dataset")
        ))
        .with_hint("leave out --strict to write the others"));
    }
    let text = set.to_json().to_string();
    std::fs::write(&arguments.output, &text).map_err(|e| {
        Error::unavailable(format!(
            "{} cannot be written: {e}",
            arguments.output.display()
        ))
    })?;
    let left_out: Vec<_> = skipped
        .iter()
        .map(|one| json!({"path": one.path, "reason": one.reason}))
        .collect();
    context.done(
        &format!(
            "wrote {} ({} references, {})",
            arguments.output.display(),
            set.len(),
            size::show(text.len() as u64)
        ),
        || json!({"file": arguments.output, "references": set.len(), "left_out": left_out}),
    )?;
    Ok(true)
}
