//! `cache`: what a cache on local disk holds, and how to empty it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hyperslab::{CachedObject, DiskCache, Error, Result};
use serde_json::json;

use crate::context::Context;
use crate::report::one_line;
use crate::size;
use crate::table::{Side, lay_out};

const EXAMPLES: &str = "Examples:
  hyperslab get 's3://bucket/sky.zarr/images[3]' -o image.npy --cache /scratch/cache
  hyperslab cache ls /scratch/cache
  hyperslab cache clear /scratch/cache";

/// Look at a cache on local disk, or empty it
///
/// Any command that reads from a remote store keeps fetched bytes in the folder that --cache names,
/// and takes from there what it finds.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the objects of which bytes are cached
    Ls(Place),
    /// Remove everything from the cache; the folder itself stays
    Clear(Place),
}

#[derive(Args)]
struct Place {
    /// Folder of the cache; the one that --cache names where it is left out
    dir: Option<PathBuf>,
}

impl Place {
    fn open(&self, context: &Context) -> Result<DiskCache> {
        let named = context.session.options().disk_cache.as_ref();
        let dir = self.dir.as_ref().or(named.map(|options| &options.dir));
        let dir = dir.ok_or_else(|| {
            Error::invalid("no cache is named").with_hint("name its folder: hyperslab cache ls DIR")
        })?;
        DiskCache::existing(dir)
    }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    match &arguments.action {
        Action::Ls(place) => list(&place.open(context)?.objects()?, context)?,
        Action::Clear(place) => {
            let (files, bytes) = place.open(context)?.clear()?;
            let text = format!(
                "removed {}, {}",
                size::many(files, "file"),
                size::show(bytes)
            );
            context.done(&text, || json!({"files": files, "bytes": bytes}))?;
        }
    }
    Ok(true)
}

fn list(objects: &[CachedObject], context: &Context) -> Result<()> {
    let held: u64 = objects.iter().map(|object| object.held).sum();
    let on_disk: u64 = objects.iter().map(|object| object.on_disk).sum();
    let mut rows: Vec<Vec<String>> = objects
        .iter()
        .map(|object| {
            vec![
                size::show(object.held),
                format!("of {}", size::show(object.size)),
                one_line(&object.url),
            ]
        })
        .collect();
    rows.push(vec![
        size::show(held),
        format!("{} on disk", size::show(on_disk)),
        size::many(objects.len() as u64, "object"),
    ]);
    let text = lay_out(&[Side::Right, Side::Right, Side::Left], &rows);
    context.result(&text, || {
        let each: Vec<_> = objects
            .iter()
            .map(|object| {
                json!({
                    "url": object.url,
                    "etag": object.etag,
                    "size": object.size,
                    "held": object.held,
                    "on_disk": object.on_disk,
                })
            })
            .collect();
        json!({
            "objects": each,
            "total": {"objects": objects.len(), "held": held, "on_disk": on_disk},
        })
    })
}
