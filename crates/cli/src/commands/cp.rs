//! `cp`: copies arrays and hierarchies between any stores, re-chunked and re-encoded if asked.

use std::path::Path;

use clap::Args;
use hyperslab::{
    Array, CopyOptions, Error, Group, Node, Result, Session, compare_arrays, copy_array,
};
use hyperslab_bridge as bridge;
use serde_json::json;

use crate::address::{Address, below, without_query};
use crate::context::Context;
use crate::layout::LayoutArguments;
use crate::progress::Bar;
use crate::sides::Extent;
use crate::size;

const EXAMPLES: &str = "Examples:
  hyperslab cp data/climate.zarr s3://bucket/climate.zarr
  hyperslab cp s3://bucket/sky.zarr/images local.zarr --chunks 512,512 --codec zstd:5 --verify
  hyperslab cp a.zarr b.zarr --chunks auto --shards auto --memory 256MiB
  hyperslab cp data/climate.zarr s3://bucket/climate.zarr --resume
  hyperslab cp run.h5 s3://bucket/run.h5
  hyperslab cp s3://bucket/run.h5 again.h5 --verify
  hyperslab cp s3://bucket/climate.zarr climate.nc";

/// Endings of destinations on local disk that are written as HDF5 files.
const HDF5_ENDINGS: [&str; 5] = [".h5", ".hdf5", ".he5", ".nc", ".nc4"];

/// Copy an array or a whole hierarchy
///
/// An HDF5 file becomes a Zarr v3 hierarchy, with all that Zarr cannot say beside it. A destination on
/// local disk that ends in .h5, .hdf5 or .nc is written as an HDF5 file: like the one that the source
/// was copied from, or from what Zarr says of it, with deflate for all that is compressed.
///
/// The copy is laid out like the source unless layout options say otherwise; a layout with the
/// same chunks and codecs is copied object by object, without decoding.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of an array or a group
    source: String,
    /// URL of the copy
    destination: String,
    /// Replace arrays that are there
    #[arg(long)]
    overwrite: bool,
    /// Go on with a copy that was stopped: objects that are there are not copied again
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Read the copy back and compare every cell
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    layout: LayoutArguments,
}

/// What was copied so far.
#[derive(Default)]
struct Count {
    arrays: u64,
    groups: u64,
    cells: u64,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let source = Address::whole(&arguments.source, "cp")?;
    let destination = Address::whole(&arguments.destination, "cp")?;
    check_apart(&source, &destination)?;
    let shown = without_query(&destination).to_owned();
    context.set_state(format!("interrupted; {shown} is incomplete, but every object in it is whole; run the same command with --resume to go on, or with --overwrite to begin again"));
    let bar = context.bar("copying");
    let job = Job {
        session: &context.session,
        arguments,
        bar: &bar,
        memory: context.memory(),
    };
    if is_hdf5_file(&destination) {
        return job.to_hdf5(&source, &destination, context).await;
    }
    let mut count = Count::default();
    match context.session.open(&source).await? {
        Node::Array(array) => job.array(&array, &destination, &mut count).await?,
        Node::Group(group) => {
            job.group(&group, &source, &destination, &mut count).await?;
            if group.is_in_file() {
                let kept = bridge::keep_skeleton(&context.session, &source, &destination).await?;
                for lost in kept.iter().flat_map(|kept| &kept.lost) {
                    context.note(&format!("not kept: {lost}"));
                }
            }
        }
    }
    drop(bar);
    let verified = if arguments.verify { ", verified" } else { "" };
    let text = format!(
        "copied {} to {shown}: {}, {}{verified}",
        without_query(&source),
        size::many(count.arrays, "array"),
        size::many(count.cells, "cell"),
    );
    context.done(&text, || {
        json!({
            "source": without_query(&source),
            "destination": shown,
            "arrays": count.arrays,
            "groups": count.groups,
            "cells": count.cells,
            "verified": arguments.verify,
        })
    })?;
    Ok(true)
}

struct Job<'a> {
    session: &'a Session,
    arguments: &'a Arguments,
    bar: &'a Bar,
    memory: u64,
}

impl Job<'_> {
    /// Writes an HDF5 file.
    async fn to_hdf5(&self, source: &str, destination: &str, context: &Context) -> Result<bool> {
        let arguments = self.arguments;
        let chunks = match &arguments.layout.chunks {
            Some(Extent::Sides(sides)) => Some(sides.clone()),
            _ => None,
        };
        let others = LayoutArguments {
            chunks: None,
            ..arguments.layout.clone()
        };
        if others.any() || (chunks.is_none() && arguments.layout.chunks.is_some()) {
            return Err(Error::invalid(
                "of the layout of an HDF5 file only the chunks can be chosen here",
            )
            .with_hint(
                "give --chunks as numbers, such as --chunks 64,64, and no other layout option",
            ));
        }
        let how = bridge::Export {
            memory: self.memory,
            chunks,
            overwrite: arguments.overwrite,
            resume: arguments.resume,
            verify: arguments.verify,
        };
        let path = Path::new(destination.trim_start_matches("file://"));
        let made = bridge::export(self.session, source, path, &how, self.bar).await?;
        for (path, filters) in &made.refiltered {
            let filters: Vec<String> = filters.iter().map(i32::to_string).collect();
            context.note(&format!(
                "{path} is compressed with deflate: the HDF5 filter {} cannot be written here",
                filters.join(", ")
            ));
        }
        for lost in &made.lost {
            context.note(&format!("not kept: {lost}"));
        }
        let verified = if arguments.verify { ", verified" } else { "" };
        let text = format!(
            "copied {} to {destination}: {}, {}{verified}",
            without_query(source),
            size::many(made.datasets, "dataset"),
            size::many(made.cells, "cell"),
        );
        context.done(&text, || {
            json!({
                "source": without_query(source),
                "destination": destination,
                "arrays": made.datasets,
                "cells": made.cells,
                "refiltered": made.refiltered,
                "lost": made.lost,
                "verified": arguments.verify,
            })
        })?;
        Ok(true)
    }

    async fn group(
        &self,
        group: &Group,
        source: &str,
        destination: &str,
        count: &mut Count,
    ) -> Result<()> {
        let outline = match group.is_in_file() {
            true => self.session.outline(source).await?,
            false => None,
        };
        let nodes = match outline {
            // Each object of a file once: its links are kept in its skeleton.
            Some(outline) => {
                let mut nodes = Vec::new();
                for path in outline.nodes.into_iter().filter(|path| !path.is_empty()) {
                    nodes.push((path.clone(), group.node(&path).await?));
                }
                nodes
            }
            None => group.walk().await?,
        };
        self.make_group(group, destination, count).await?;
        for (path, node) in nodes {
            let to = below(destination, &path);
            match node {
                Node::Group(group) => self.make_group(&group, &to, count).await?,
                Node::Array(array) => self.array(&array, &to, count).await?,
            }
        }
        Ok(())
    }

    /// A group that is there keeps its other nodes; its attributes become those of the source.
    async fn make_group(&self, group: &Group, destination: &str, count: &mut Count) -> Result<()> {
        let attributes = group.meta().attributes.clone();
        match self.session.open(destination).await {
            Ok(Node::Group(there)) => {
                if there.meta().attributes != attributes {
                    there.set_attributes(attributes).await?;
                }
            }
            Ok(Node::Array(array)) if !self.arguments.overwrite => {
                return Err(
                    Error::conflict(format!("{} is an array, not a group", array.url()))
                        .with_hint("choose another name, or add --overwrite to replace it"),
                );
            }
            Ok(Node::Array(_)) => {
                self.session.remove(destination, &()).await?;
                self.session.create_group(destination, attributes).await?;
            }
            Err(error) if error.is_not_found() => {
                self.session.create_group(destination, attributes).await?;
            }
            Err(error) => return Err(error),
        }
        count.groups += 1;
        Ok(())
    }

    async fn array(&self, from: &Array, destination: &str, count: &mut Count) -> Result<()> {
        let begun = match self.arguments.resume {
            true => self.begun(from, destination).await?,
            false => None,
        };
        let resume = begun.is_some();
        let to = match begun {
            Some(to) => to,
            None => {
                let spec = self.arguments.layout.spec_like(from)?;
                self.session
                    .create_array(destination, spec, self.arguments.overwrite)
                    .await?
            }
        };
        let options = CopyOptions {
            memory: self.memory,
            resume,
        };
        copy_array(from, &to, &options, self.bar).await?;
        if self.arguments.verify {
            let comparison = compare_arrays(from, &to, &options, self.bar).await?;
            if !comparison.equal() {
                return Err(Error::data(format!(
                    "the copy {} differs from {} in {} cells, the first at {:?}",
                    to.url(),
                    from.url(),
                    comparison.differing,
                    comparison.first.unwrap_or_default()
                ))
                .with_hint("something else wrote to one of them meanwhile; copy it again"));
            }
        }
        count.arrays += 1;
        count.cells += from.shape().num_cells();
        Ok(())
    }

    /// The array that an earlier run began, if it can be this one's.
    async fn begun(&self, from: &Array, destination: &str) -> Result<Option<Array>> {
        let to = match self.session.open_array(destination).await {
            Ok(to) => to,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let (a, b) = (from.meta(), to.meta());
        if a.shape != b.shape
            || a.dtype.storable() != b.dtype.storable()
            || a.attributes != b.attributes
        {
            return Err(Error::conflict(format!(
                "{} is not the beginning of a copy of {}",
                to.url(),
                from.url()
            ))
            .with_hint("add --overwrite instead of --resume to replace it"));
        }
        Ok(Some(to))
    }
}

/// True for a path on local disk with an ending that HDF5 files have.
pub(crate) fn is_hdf5_file(url: &str) -> bool {
    let local = !url.contains("://") || url.starts_with("file://");
    local && HDF5_ENDINGS.iter().any(|ending| url.ends_with(ending))
}

/// A copy into itself would never end, or eat what it copies.
fn check_apart(source: &str, destination: &str) -> Result<()> {
    let bare = |url: &str| {
        without_query(url)
            .trim_end_matches('/')
            .trim_start_matches("./")
            .to_owned()
    };
    let (from, to) = (bare(source), bare(destination));
    let inside = |inner: &str, outer: &str| {
        inner == outer
            || inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    if inside(&to, &from) || inside(&from, &to) {
        return Err(
            Error::invalid(format!("{from} and {to} lie within each other"))
                .with_hint("copy to a place outside the source"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_into_themselves_are_refused() {
        assert!(check_apart("a.zarr", "a.zarr/").is_err());
        assert!(check_apart("./a.zarr", "a.zarr/x").is_err());
        assert!(check_apart("s3://b/x/y?region=q", "s3://b/x").is_err());
        assert!(check_apart("a.zarr", "a.zarr2").is_ok());
    }
}
