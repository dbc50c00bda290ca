//! `diff`: compares two arrays or two hierarchies, metadata and values.

use std::collections::BTreeMap;

use clap::Args;
use hyperslab::{
    Array, ArrayMeta, CopyOptions, Error, Node, Region, Result, Selection, compare_arrays,
};
use serde_json::{Value, json};

use super::describe;
use crate::address::Address;
use crate::cell;
use crate::context::Context;
use crate::progress::Bar;
use crate::size;

const EXAMPLES: &str = "Examples:
  hyperslab diff a.zarr s3://bucket/a.zarr
  hyperslab diff a.zarr/x b.zarr/x --layout && echo the same";

/// Compare two arrays or hierarchies; exits with 1 if they differ
///
/// Shapes, types, fill values, attributes, dimension names and all cells are compared, bit by bit.
/// Chunks, shards and codecs are how the same cells are stored: they count only with --layout.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of an array or a group
    left: String,
    /// URL of another
    right: String,
    /// Different chunks, shards and codecs count, too
    #[arg(long)]
    layout: bool,
    /// Compare metadata only
    #[arg(long)]
    metadata_only: bool,
}

/// What was found.
#[derive(Default)]
struct Findings {
    lines: Vec<String>,
    json: Vec<Value>,
    cells: u64,
}

impl Findings {
    fn add(&mut self, path: &str, what: &str, sentence: String, detail: Value) {
        let shown = if path.is_empty() {
            String::new()
        } else {
            format!("{path}: ")
        };
        self.lines.push(format!("{shown}{sentence}"));
        self.json
            .push(json!({"path": path, "what": what, "detail": detail}));
    }
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let left = Address::whole(&arguments.left, "diff")?;
    let right = Address::whole(&arguments.right, "diff")?;
    let (a, b) = futures::try_join!(context.session.open(&left), context.session.open(&right))?;
    let (mut ours, mut theirs) = (nodes(a).await?, nodes(b).await?);
    let mut found = Findings::default();
    let bar = context.bar("comparing");
    let mut paths: Vec<String> = ours.keys().chain(theirs.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        match (ours.remove(&path), theirs.remove(&path)) {
            (Some(Node::Array(a)), Some(Node::Array(b))) => {
                compare(&path, &a, &b, arguments, context, &bar, &mut found).await?;
            }
            (Some(Node::Group(a)), Some(Node::Group(b))) => {
                let (a, b) = (json!(a.meta().attributes), json!(b.meta().attributes));
                field(&path, "attributes", &a, &b, &mut found);
            }
            (Some(_), Some(_)) => {
                let sentence = "one is an array, the other a group".to_owned();
                found.add(&path, "kind", sentence, Value::Null);
            }
            (Some(_), None) => {
                found.add(&path, "only-left", "only in the first".into(), Value::Null)
            }
            (None, Some(_)) => found.add(
                &path,
                "only-right",
                "only in the second".into(),
                Value::Null,
            ),
            (None, None) => {}
        }
    }
    drop(bar);
    let equal = found.lines.is_empty();
    let text = match equal {
        true => format!("equal: {} compared", size::many(found.cells, "cell")),
        false => found.lines.join("\n"),
    };
    context.result(
        &text,
        || json!({"equal": equal, "cells_compared": found.cells, "differences": found.json}),
    )?;
    Ok(equal)
}

/// Every node by path; the root has the empty path.
async fn nodes(root: Node) -> Result<BTreeMap<String, Node>> {
    let mut all = BTreeMap::new();
    if let Node::Group(group) = &root {
        all.extend(group.walk().await?);
    }
    all.insert(String::new(), root);
    Ok(all)
}

fn field(path: &str, name: &str, a: &Value, b: &Value, found: &mut Findings) {
    if a != b {
        let sentence = format!("{name} {a} differs from {b}");
        found.add(path, name, sentence, json!({"left": a, "right": b}));
    }
}

async fn compare(
    path: &str,
    a: &Array,
    b: &Array,
    arguments: &Arguments,
    context: &Context,
    bar: &Bar,
    found: &mut Findings,
) -> Result<()> {
    let (left, right) = (a.meta(), b.meta());
    for (name, of) in CONTENT {
        field(path, name, &of(&left), &of(&right), found);
    }
    let mut layout = Findings::default();
    for (name, of) in LAYOUT {
        field(path, name, &of(&left), &of(&right), &mut layout);
    }
    match arguments.layout {
        true => {
            found.lines.extend(layout.lines);
            found.json.extend(layout.json);
        }
        false if !context.json => {
            layout
                .lines
                .iter()
                .for_each(|line| context.note(&format!("note: {line}")));
        }
        false => {}
    }
    if arguments.metadata_only
        || left.shape != right.shape
        || left.dtype.storable() != right.dtype.storable()
    {
        return Ok(());
    }
    let options = CopyOptions {
        memory: context.memory(),
        ..CopyOptions::default()
    };
    let comparison = compare_arrays(a, b, &options, bar).await?;
    found.cells += comparison.cells;
    let Some(first) = comparison.first else {
        return Ok(());
    };
    let (x, y) = futures::try_join!(cell_text(a, &left, &first), cell_text(b, &right, &first))?;
    let place: Vec<String> = first.iter().map(u64::to_string).collect();
    let sentence = format!(
        "{} of {} differ, the first at [{}]: {x} and {y}",
        size::count(comparison.differing),
        size::many(comparison.cells, "cell"),
        place.join(", ")
    );
    let detail = json!({
        "differing": comparison.differing,
        "cells": comparison.cells,
        "first": first,
        "left": x,
        "right": y,
    });
    found.add(path, "values", sentence, detail);
    Ok(())
}

type Part = (&'static str, fn(&ArrayMeta) -> Value);

/// What an array says, however it is stored.
const CONTENT: [Part; 5] = [
    ("shape", |meta| json!(meta.shape[..])),
    ("type", |meta| json!(meta.dtype.to_string())),
    ("fill value", |meta| meta.fill.to_json(&meta.dtype)),
    ("attributes", |meta| json!(meta.attributes)),
    ("dimension names", |meta| json!(meta.dimension_names)),
];

/// How an array is stored.
const LAYOUT: [Part; 3] = [
    ("chunks", |meta| {
        json!(describe::grids(meta).ok().map(|(chunks, _)| chunks))
    }),
    ("shards", |meta| {
        json!(describe::grids(meta).ok().and_then(|(_, shards)| shards))
    }),
    // A shard's chunk shape stands in its codec, too, and is told above.
    ("codecs", |meta| json!(meta.unit_codecs().to_json())),
];

/// One cell for people.
async fn cell_text(array: &Array, meta: &ArrayMeta, at: &[u64]) -> Result<String> {
    let selection = Selection::region(&Region::new(at, vec![1; at.len()])?);
    if !meta.dtype.is_variable() {
        return Ok(cell::text(&meta.dtype, &array.read(&selection).await?));
    }
    let strings = array.read_strings(&selection).await?;
    let string = strings
        .first()
        .ok_or_else(|| Error::internal("a cell was not read"))?;
    Ok(format!("{:?}", cell::text(&meta.dtype, string)))
}
