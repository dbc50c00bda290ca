//! `du`: what arrays take in their store.

use clap::Args;
use futures::{StreamExt, TryStreamExt};
use hyperslab::{Node, Result};
use serde_json::json;

use crate::address::{Address, name};
use crate::context::Context;
use crate::report::one_line;
use crate::size;
use crate::table::{Side, lay_out};

/// Arrays whose objects are listed at a time.
const AT_ONCE: usize = 8;

const EXAMPLES: &str = "Examples:
  hyperslab du s3://bucket/sky.zarr
  hyperslab du --json data/climate.zarr | jq .total.bytes";

/// Show how many objects and bytes each array takes
///
/// Counts chunks and shards, not the metadata.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of an array or a group
    url: String,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let url = Address::whole(&arguments.url, "du")?;
    let arrays: Vec<(String, hyperslab::Array)> = match context.session.open(&url).await? {
        Node::Array(array) => vec![(String::new(), array)],
        Node::Group(group) => group
            .walk()
            .await?
            .into_iter()
            .filter_map(|(path, node)| match node {
                Node::Array(array) => Some((path, array)),
                Node::Group(_) => None,
            })
            .collect(),
    };
    let counted: Vec<(String, u64, u64)> = futures::stream::iter(arrays)
        .map(|(path, array)| async move {
            let stored = array.stored().await?;
            Ok::<_, hyperslab::Error>((path, stored.objects, stored.bytes))
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let objects: u64 = counted.iter().map(|(_, objects, _)| objects).sum();
    let bytes: u64 = counted.iter().map(|(_, _, bytes)| bytes).sum();
    let line = |path: &str, objects: u64, bytes: u64| {
        vec![
            size::show(bytes),
            size::many(objects, "object"),
            one_line(path),
        ]
    };
    let mut rows: Vec<Vec<String>> = counted
        .iter()
        .map(|(path, objects, bytes)| {
            line(
                if path.is_empty() { name(&url) } else { path },
                *objects,
                *bytes,
            )
        })
        .collect();
    if counted.len() != 1 {
        rows.push(line("total", objects, bytes));
    }
    let text = lay_out(&[Side::Right, Side::Right, Side::Left], &rows);
    context.result(&text, || {
        let nodes: Vec<_> = counted
            .iter()
            .map(|(path, objects, bytes)| json!({"path": path, "objects": objects, "bytes": bytes}))
            .collect();
        json!({"arrays": nodes, "total": {"objects": objects, "bytes": bytes}})
    })?;
    Ok(true)
}
