//! `ls`: what is directly below a group, or below a folder of a store.

use clap::Args;
use hyperslab::store::{self, Listing};
use hyperslab::{Error, Node, Result};
use serde_json::{Value, json};

use super::describe;
use crate::address::{Address, name};
use crate::context::Context;
use crate::report::one_line;
use crate::table::{Side, lay_out};

const EXAMPLES: &str = "Examples:
  hyperslab ls s3://bucket/sky.zarr
  hyperslab ls -l data/climate.zarr/surface
  hyperslab ls --json s3://bucket";

/// List the arrays and groups of a group
///
/// Groups end in a slash. Where the URL is no Zarr node, the folders of the store are listed.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of a group, an array or a folder of a store
    url: String,
    /// Also show kind, type, shape, chunks and codecs
    #[arg(short, long)]
    long: bool,
}

pub(crate) async fn run(arguments: &Arguments, context: &Context) -> Result<bool> {
    let url = Address::whole(&arguments.url, "ls")?;
    let nodes = match context.session.open(&url).await {
        Ok(Node::Group(group)) => group.children().await?,
        Ok(array) => vec![(name(&url).to_owned(), array)],
        Err(error) if error.is_not_found() => return list_folder(&url, error, context).await,
        Err(error) => return Err(error),
    };
    let json: Vec<Value> = nodes
        .iter()
        .map(|(path, node)| describe::node_json(path, node))
        .collect::<Result<_>>()?;
    let text = match arguments.long {
        true => long(&nodes)?,
        false => nodes
            .iter()
            .map(|(path, node)| format!("{}\n", shown(path, node)))
            .collect(),
    };
    if text.is_empty() && !context.json {
        return Ok(true);
    }
    context.result(&text, || json!(json))?;
    Ok(true)
}

fn shown(path: &str, node: &Node) -> String {
    let slash = if matches!(node, Node::Group(_)) {
        "/"
    } else {
        ""
    };
    format!("{}{slash}", one_line(path))
}

fn long(nodes: &[(String, Node)]) -> Result<String> {
    let mut rows = Vec::new();
    for (path, node) in nodes {
        rows.push(match node {
            Node::Group(_) => vec![
                "group".into(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
                shown(path, node),
            ],
            Node::Array(array) => {
                let meta = array.meta();
                let (chunks, shards) = describe::grids(&meta)?;
                let chunks = match shards {
                    Some(shards) => format!("chunks {chunks:?} in shards {shards:?}"),
                    None => format!("chunks {chunks:?}"),
                };
                vec![
                    "array".into(),
                    meta.dtype.to_string(),
                    meta.shape.to_string(),
                    chunks,
                    describe::codecs(&meta),
                    shown(path, node),
                ]
            }
        });
    }
    Ok(lay_out(&[Side::Left; 6], &rows))
}

/// The folders and objects of a store where there is no node; with nothing there at all, the
/// error says that nothing was found.
async fn list_folder(url: &str, error: Error, context: &Context) -> Result<bool> {
    let opened = store::open_with(url, &store::Options::new())?;
    let Listing { dirs, objects } = match opened.store.list_dir("").await {
        Ok(listing) => listing,
        Err(e) if e.is_not_found() => return Err(error),
        Err(e) => return Err(e),
    };
    if dirs.is_empty() && objects.is_empty() {
        return Err(error);
    }
    let mut text = String::new();
    let mut json = Vec::new();
    for dir in dirs {
        text.push_str(&format!("{}/\n", one_line(&dir)));
        json.push(json!({"kind": "folder", "path": dir}));
    }
    for object in objects {
        text.push_str(&format!("{}\n", one_line(&object.key)));
        json.push(json!({"kind": "object", "path": object.key, "bytes": object.meta.size}));
    }
    context.note(&format!(
        "note: {} is not a Zarr node; these are the folders and objects of the store",
        crate::address::without_query(url)
    ));
    context.result(&text, || json!(json))?;
    Ok(true)
}
