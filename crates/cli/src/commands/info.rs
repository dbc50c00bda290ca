//! `info`: everything that is known of an array or a group.

use clap::Args;
use hyperslab::{Array, Group, Node, Result};
use serde_json::{Value, json};

use super::{describe, replicas};
use crate::address::Address;
use crate::context::Context;
use crate::histogram;
use crate::report::one_line;
use crate::size;
use crate::table::{Side, lay_out};

const EXAMPLES: &str = "Examples:
  hyperslab info s3://bucket/sky.zarr/images
  hyperslab info --json data/climate.zarr | jq .attributes";

/// Show the metadata of an array or a group, and what it takes in its store
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of an array or a group
    url: String,
    /// Metadata only: do not list the stored objects
    #[arg(long)]
    no_stored: bool,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let url = Address::whole(&arguments.url, "info")?;
    match context.session.open(&url).await? {
        Node::Array(array) => show_array(&array, !arguments.no_stored, context).await?,
        Node::Group(group) => show_group(&group, context).await?,
    }
    Ok(true)
}

async fn show_array(array: &Array, with_stored: bool, context: &Context) -> Result<()> {
    let meta = array.meta();
    let (chunks, shards) = describe::grids(&meta)?;
    let mut rows = vec![
        row("array", array.url()),
        row("format", describe::format_name(&meta)),
        row("shape", &meta.shape),
        row("type", &meta.dtype),
        row("chunks", tuple(&chunks)),
    ];
    if let Some(shards) = &shards {
        rows.push(row("shards", tuple(shards)));
    }
    if let Some(names) = &meta.dimension_names {
        let names: Vec<&str> = names.iter().map(|n| n.as_deref().unwrap_or("–")).collect();
        rows.push(row("dimensions", names.join(", ")));
    }
    rows.push(row("codecs", describe::codecs(&meta)));
    rows.push(row("fill value", meta.fill.to_json(&meta.dtype)));
    let mut json = describe::array_json(&meta)?;
    json["url"] = json!(array.url());
    let cells_bytes = meta.dtype.cell_bytes().map(|n| n * meta.shape.num_cells());
    rows.push(row("cells", size::count(meta.shape.num_cells())));
    json["cells"] = json!(meta.shape.num_cells());
    json["cell_bytes"] = json!(meta.dtype.cell_bytes());
    json["bytes"] = json!(cells_bytes);
    if let Some(bytes) = cells_bytes {
        rows.push(row("size", size::show(bytes)));
    }
    let mut text = String::new();
    let mut tail = String::new();
    if with_stored {
        let stored = array.stored().await?;
        let what = if shards.is_some() { "shards" } else { "chunks" };
        rows.push(row(
            "stored",
            format!(
                "{} in {} of {} {what}",
                size::show(stored.bytes),
                size::count(stored.objects),
                size::count(stored.chunks_total)
            ),
        ));
        let ratio = ratio(&stored, &meta);
        if let Some(ratio) = ratio {
            rows.push(row("compression", format!("{ratio:.2} : 1")));
        }
        json["stored"] = json!({
            "objects": stored.objects,
            "bytes": stored.bytes,
            "chunks_total": stored.chunks_total,
            "compression_ratio": ratio,
            "histogram": histogram::bins(&stored.sizes)
                .iter()
                .map(|(from, to, many)| json!({"from": from, "to": to, "objects": many}))
                .collect::<Vec<Value>>(),
        });
        let bars = histogram::draw(&stored.sizes);
        if !bars.is_empty() {
            tail.push_str(&format!("\nsizes of the stored {what}:\n"));
            bars.iter()
                .for_each(|bar| tail.push_str(&format!("  {bar}\n")));
        }
    }
    let copies = array.replicas().await?;
    for replica in &copies {
        let (chunks, shards) = describe::grids(&replica.meta)?;
        let shards = shards.map_or(String::new(), |s| format!(" in shards {}", tuple(&s)));
        let state = replicas::state(replica);
        let layout = format!(
            "{}: chunks {}{shards}, {state}",
            replica.name,
            tuple(&chunks)
        );
        rows.push(row("replica", layout));
    }
    let each: Result<Vec<Value>> = copies.iter().map(replicas::as_json).collect();
    json["replicas"] = json!(each?);
    text.push_str(&lay_out(&[Side::Left; 2], &rows));
    text.push_str(&attributes(&meta.attributes));
    text.push_str(&tail);
    context.result(&text, || json)
}

/// Bytes of the array's cells in the stored chunks, per byte that they take.
fn ratio(stored: &hyperslab::Stored, meta: &hyperslab::ArrayMeta) -> Option<f64> {
    let cells = meta.shape.num_cells() as f64 * meta.dtype.cell_bytes()? as f64;
    let share = stored.objects as f64 / stored.chunks_total.max(1) as f64;
    (stored.bytes > 0).then(|| cells * share / stored.bytes as f64)
}

async fn show_group(group: &Group, context: &Context) -> Result<()> {
    let nodes = group.walk().await?;
    let arrays = nodes
        .iter()
        .filter(|(_, node)| matches!(node, Node::Array(_)))
        .count();
    let disagreements = group.disagreements().await?;
    let consolidated = group.meta().consolidated.is_some();
    let rows = [
        row("group", group.url()),
        row("arrays", arrays),
        row("groups", nodes.len() - arrays),
        row(
            "consolidated metadata",
            if consolidated { "yes" } else { "no" },
        ),
    ];
    let mut text = lay_out(&[Side::Left; 2], &rows);
    text.push_str(&attributes(&group.meta().attributes));
    for sentence in &disagreements {
        context.note(&format!("warning: {}", one_line(sentence)));
    }
    if !disagreements.is_empty() {
        context.note("hint: each node's own metadata is used; write to the hierarchy to bring the copy up to date");
    }
    context.result(&text, || {
        json!({
            "kind": "group",
            "url": group.url(),
            "arrays": arrays,
            "groups": nodes.len() - arrays,
            "consolidated": consolidated,
            "disagreements": disagreements,
            "attributes": group.meta().attributes,
        })
    })
}

fn row(name: &str, value: impl std::fmt::Display) -> Vec<String> {
    vec![name.to_owned(), one_line(&value.to_string())]
}

fn tuple(sides: &[u64]) -> String {
    match sides {
        [one] => format!("({one},)"),
        many => format!(
            "({})",
            many.iter()
                .map(u64::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

fn attributes(map: &serde_json::Map<String, Value>) -> String {
    if map.is_empty() {
        return String::new();
    }
    let lines: String = map
        .iter()
        .map(|(key, value)| format!("  {}: {value}\n", one_line(key)))
        .collect();
    format!("\nattributes:\n{lines}")
}
