//! `rm`: removes an array, or a group with everything below it.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use hyperslab::{Error, Node, Result, ZarrFormat};
use serde_json::json;

use super::describe;
use crate::address::Address;
use crate::context::Context;
use crate::size;

const EXAMPLES: &str = "Examples:
  hyperslab rm data/old.zarr
  hyperslab rm -r --yes s3://bucket/sky.zarr";

/// Remove an array, or with -r a group and everything below it
///
/// Asks before it removes anything; without a terminal it needs --yes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of an array or a group
    url: String,
    /// Remove groups, with everything below them
    #[arg(short, long)]
    recursive: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let url = Address::whole(&arguments.url, "rm")?;
    let node = context.session.open(&url).await?;
    let in_file = match &node {
        Node::Array(array) => array.meta().format == ZarrFormat::Hdf5,
        Node::Group(group) => group.is_in_file(),
    };
    if in_file {
        return Err(Error::invalid(format!(
            "{} is in an HDF5 file, which is read only",
            node.url()
        ))
        .with_hint("remove the file itself as you remove other files"));
    }
    let what = match &node {
        Node::Array(array) => format!(
            "the array {} ({})",
            array.url(),
            describe::brief(&array.meta())
        ),
        Node::Group(group) => {
            let below = group.walk().await?.len() as u64;
            if !arguments.recursive {
                return Err(Error::invalid(format!(
                    "{} is a group with {} below it",
                    group.url(),
                    size::many(below, "node")
                ))
                .with_hint("add -r to remove it with everything below"));
            }
            format!(
                "the group {} with {} below it",
                group.url(),
                size::many(below, "node")
            )
        }
    };
    if !arguments.yes && !confirmed(&what)? {
        context.note("nothing was removed");
        return Ok(true);
    }
    // Metadata goes first, so what is left is no node any more.
    context.set_state(format!("interrupted; {what} is gone or half gone; what is left of it is cleared by creating something there with --overwrite"));
    let removed = context
        .session
        .remove(&url, &context.counter("removing"))
        .await?;
    context.done(
        &format!(
            "removed {what}: its metadata and {}",
            size::many(removed, "object")
        ),
        || json!({"url": node.url(), "objects": removed}),
    )?;
    Ok(true)
}

/// Asks on the terminal; without one nobody can answer.
fn confirmed(what: &str) -> Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Error::invalid(format!(
            "{what} was not removed, since nobody can be asked here"
        ))
        .with_hint("add --yes to remove it without asking"));
    }
    let unanswered = |e: std::io::Error| Error::unavailable(format!("nobody could be asked: {e}"));
    let mut err = std::io::stderr();
    write!(err, "remove {what}? [y/N] ")
        .and_then(|()| err.flush())
        .map_err(unanswered)?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(unanswered)?;
    Ok(matches!(
        answer.trim().to_ascii_lowercase().as_str(),
        "y" | "yes"
    ))
}
