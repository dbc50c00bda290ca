//! `tree`: a hierarchy as a tree with shapes and types.

use clap::Args;
use hyperslab::{Node, Result};
use serde_json::{Value, json};

use super::describe;
use crate::address::{Address, name};
use crate::context::Context;
use crate::report::one_line;

const EXAMPLES: &str = "Examples:
  hyperslab tree s3://bucket/sky.zarr
  hyperslab tree --json data/climate.zarr";

/// Show a hierarchy as a tree, with shapes and types
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of a group or an array
    url: String,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let url = Address::whole(&arguments.url, "tree")?;
    let root = context.session.open(&url).await?;
    let nodes = match &root {
        Node::Group(group) => group.walk().await?,
        Node::Array(_) => Vec::new(),
    };
    let json: Vec<Value> = std::iter::once(("", &root))
        .chain(nodes.iter().map(|(path, node)| (path.as_str(), node)))
        .map(|(path, node)| describe::node_json(path, node))
        .collect::<Result<_>>()?;
    let mut lines = vec![line(name(&url), &root)];
    let entries: Vec<(&str, String)> = nodes
        .iter()
        .map(|(path, node)| {
            (
                path.as_str(),
                line(path.rsplit('/').next().unwrap_or(path), node),
            )
        })
        .collect();
    lines.extend(branches(&entries));
    context.result(&lines.join("\n"), || json!(json))?;
    Ok(true)
}

fn line(name: &str, node: &Node) -> String {
    match node {
        Node::Group(_) => format!("{}/", one_line(name)),
        Node::Array(array) => format!("{} {}", one_line(name), describe::brief(&array.meta())),
    }
}

/// Draws the branches before the lines of the nodes, which come by path.
fn branches(entries: &[(&str, String)]) -> Vec<String> {
    // By components, so that "a/b" comes directly after "a" and before "a-b".
    let mut entries: Vec<(Vec<&str>, &String)> = entries
        .iter()
        .map(|(path, line)| (path.split('/').collect(), line))
        .collect();
    entries.sort();
    let mut out = Vec::with_capacity(entries.len());
    for (at, (path, line)) in entries.iter().enumerate() {
        let mut prefix = String::new();
        for depth in 1..=path.len() {
            // A branch goes on if a later node shares the path so far and has another name here.
            let goes_on = entries[at + 1..]
                .iter()
                .take_while(|(later, _)| {
                    later.len() >= depth && later[..depth - 1] == path[..depth - 1]
                })
                .any(|(later, _)| later[depth - 1] != path[depth - 1]);
            prefix.push_str(match (depth == path.len(), goes_on) {
                (true, true) => "├── ",
                (true, false) => "└── ",
                (false, true) => "│   ",
                (false, false) => "    ",
            });
        }
        out.push(format!("{prefix}{line}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_drawn() {
        let paths = ["a", "a-b", "a/x", "a/y", "a/y/z", "c"];
        let entries: Vec<(&str, String)> = paths
            .iter()
            .map(|p| (*p, p.rsplit('/').next().unwrap().to_owned()))
            .collect();
        assert_eq!(
            branches(&entries),
            [
                "├── a",
                "│   ├── x",
                "│   └── y",
                "│       └── z",
                "├── a-b",
                "└── c"
            ]
        );
    }
}
