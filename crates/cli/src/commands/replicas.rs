//! `replicas`: copies of an array with other layouts, which answer the reads that they are cheaper for.

use std::time::Duration;

use clap::{Args, Subcommand};
use hyperslab::{ABANDONED, Array, CopyOptions, Error, ReplicaInfo, Result, settings};
use serde_json::{Value, json};

use super::describe;
use crate::address::Address;
use crate::context::Context;
use crate::layout::LayoutArguments;
use crate::size;
use crate::table::{Side, lay_out};

const EXAMPLES: &str = "Examples:
  hyperslab replicas create s3://bucket/climate.zarr/t2m --chunks 8760,16,16
  hyperslab replicas create data/sky.zarr/images --name columns --chunks 4096,64 --order F --codec zstd:5
  hyperslab replicas ls s3://bucket/climate.zarr/t2m
  hyperslab replicas refresh s3://bucket/climate.zarr/t2m
  hyperslab replicas rm s3://bucket/climate.zarr/t2m columns
  hyperslab explain 's3://bucket/climate.zarr/t2m[:, 40, 70]'";

/// Keep copies of an array with other layouts
///
/// Each copy has its own chunks, shards, order and codecs. A read is answered from the copy that is
/// cheapest for it, and never from one that is older than the original; a write through Hyperslab
/// changes all copies. What other programs write is noticed when the array is opened, and every minute.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a copy with another layout; the array may be read and written meanwhile
    Create(Box<Create>),
    /// List the copies of an array
    Ls(Place),
    /// Bring copies up to date: what was interrupted, what other programs changed
    Refresh(Refresh),
    /// Remove a copy, or all of them
    Rm(Remove),
}

#[derive(Args)]
struct Place {
    /// URL of the array
    url: String,
}

#[derive(Args)]
struct Create {
    /// URL of the array
    url: String,
    /// Name of the copy: r1, r2 … where it is left out
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    layout: LayoutArguments,
}

#[derive(Args)]
struct Refresh {
    /// URL of the array
    url: String,
    /// Take what was begun so long ago, and not ended, for interrupted
    #[arg(long, value_name = "TIME", value_parser = settings::time)]
    abandoned: Option<Duration>,
}

#[derive(Args)]
struct Remove {
    /// URL of the array
    url: String,
    /// Name of the copy
    #[arg(required_unless_present = "all")]
    name: Option<String>,
    /// Remove all copies
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    match &arguments.action {
        Action::Create(create) => make(create, context).await,
        Action::Ls(place) => list(&open(&place.url, context).await?, context).await,
        Action::Refresh(refresh) => bring(refresh, context).await,
        Action::Rm(remove) => take_away(remove, context).await,
    }
}

async fn open(url: &str, context: &Context) -> Result<Array> {
    let url = Address::whole(url, "replicas")?;
    context.session.open_array(&url).await
}

fn copying(context: &Context) -> CopyOptions {
    CopyOptions {
        memory: context.memory(),
        resume: false,
    }
}

async fn make(create: &Create, context: &Context) -> Result<bool> {
    let array = open(&create.url, context).await?;
    let layout = &create.layout;
    if layout.fill.is_some() || !layout.attributes.is_empty() || layout.dims.is_some() {
        return Err(Error::invalid(
            "a copy has the fill value, attributes and dimensions of its array",
        )
        .with_hint("give --chunks, --shards, --order, --codec or --endian only"));
    }
    let mut spec = array.replica_spec();
    layout.apply(&mut spec)?;
    let name = match &create.name {
        Some(name) => name.clone(),
        None => free_name(&array.replicas().await?),
    };
    context.set_state(format!(
        "interrupted; the copy {name} is incomplete and not used; `hyperslab replicas refresh` fills it, `hyperslab replicas rm` removes it"
    ));
    let bar = context.bar("copying");
    let made = array
        .create_replica(&name, spec, &copying(context), &bar)
        .await?;
    drop(bar);
    let (chunks, shards) = describe::grids(&made.meta)?;
    let shards = shards.map_or(String::new(), |s| format!(" in shards {s:?}"));
    let text = format!(
        "made the copy {name} of {}: chunks {chunks:?}{shards}, codecs {}, {} in {}",
        array.url(),
        describe::codecs(&made.meta),
        size::show(made.bytes),
        size::many(made.objects, "object"),
    );
    let value = as_json(&made)?;
    context.done(&text, || value)?;
    Ok(true)
}

/// The first of r1, r2 … that no copy has.
fn free_name(replicas: &[ReplicaInfo]) -> String {
    let taken = |name: &String| replicas.iter().any(|r| r.name == *name);
    let mut names = (1..).map(|n| format!("r{n}"));
    names.find(|name| !taken(name)).unwrap_or_default()
}

async fn list(array: &Array, context: &Context) -> Result<bool> {
    let replicas = array.replicas().await?;
    let mut rows = vec![row([
        "name", "state", "chunks", "shards", "codecs", "stored",
    ])];
    let mut values = Vec::new();
    for replica in &replicas {
        let (chunks, shards) = describe::grids(&replica.meta)?;
        rows.push(vec![
            replica.name.clone(),
            state(replica),
            format!("{chunks:?}"),
            shards.map_or(String::new(), |s| format!("{s:?}")),
            describe::codecs(&replica.meta),
            size::show(replica.bytes),
        ]);
        values.push(as_json(replica)?);
    }
    let text = match replicas.is_empty() {
        true => format!("{} has no copies", array.url()),
        false => lay_out(&[Side::Left; 6], &rows),
    };
    context.result(&text, || json!({"url": array.url(), "replicas": values}))?;
    Ok(true)
}

fn row(texts: [&str; 6]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// What a copy is good for, in a word or two.
pub(crate) fn state(replica: &ReplicaInfo) -> String {
    match (replica.complete, replica.marked) {
        (false, _) => "incomplete".into(),
        (true, 0) => "complete".into(),
        (true, cells) => format!("{} not up to date", size::many(cells, "cell")),
    }
}

/// A copy for machines.
pub(crate) fn as_json(replica: &ReplicaInfo) -> Result<Value> {
    let (chunks, shards) = describe::grids(&replica.meta)?;
    Ok(json!({
        "name": replica.name,
        "url": replica.url,
        "complete": replica.complete,
        "marked_cells": replica.marked,
        "chunks": chunks,
        "shards": shards,
        "codecs": replica.meta.codecs.to_json(),
        "objects": replica.objects,
        "bytes": replica.bytes,
    }))
}

async fn bring(refresh: &Refresh, context: &Context) -> Result<bool> {
    let array = open(&refresh.url, context).await?;
    context.set_state(
        "interrupted; what was not brought up to date is not used; run the same command again",
    );
    let bar = context.bar("refreshing");
    let abandoned = refresh.abandoned.unwrap_or(ABANDONED);
    let done = array
        .refresh_replicas(abandoned, &copying(context), &bar)
        .await?;
    drop(bar);
    let found = match done.foreign {
        0 => String::new(),
        objects => format!(
            ", with what other programs changed in {}",
            size::many(objects, "object")
        ),
    };
    let text = match done.clean {
        true => format!("the copies of {} are up to date{found}", array.url()),
        false => format!(
            "the copies of {} are not all up to date: somebody is writing, or was interrupted less than {} ago; refresh again",
            array.url(),
            humantime::format_duration(abandoned)
        ),
    };
    context.done(&text, || {
        json!({
            "url": array.url(),
            "clean": done.clean,
            "foreign_objects": done.foreign,
            "filled": done.filled,
        })
    })?;
    Ok(done.clean)
}

async fn take_away(remove: &Remove, context: &Context) -> Result<bool> {
    let array = open(&remove.url, context).await?;
    let names: Vec<String> = match &remove.name {
        Some(name) => vec![name.clone()],
        None => array
            .replicas()
            .await?
            .into_iter()
            .map(|r| r.name)
            .collect(),
    };
    let counter = context.counter("removing");
    for name in &names {
        if !array.remove_replica(name, &counter).await? {
            return Err(
                Error::not_found(format!("{} has no copy named {name}", array.url()))
                    .with_hint("list its copies with `hyperslab replicas ls`"),
            );
        }
    }
    drop(counter);
    let text = format!(
        "removed {} of {}",
        size::many(names.len() as u64, "replica"),
        array.url()
    );
    context.done(&text, || json!({"url": array.url(), "removed": names}))?;
    Ok(true)
}
