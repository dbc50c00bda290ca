//! Hierarchies: which nodes there are, and how their metadata is read and changed.
//!
//! Every node has its own metadata object; a root group may also carry a consolidated copy of all
//! metadata below it, so that one request opens the hierarchy. **A node's own object wins.** The
//! copy is refreshed after every change made here, by conditional writes; a copy that a foreign
//! writer left behind is noticed when the node's own object is read, which happens before every
//! change and, unless the caller opts out, beside the first read of an array
//! (`docs/design/002-consolidated-metadata.md`).
//!
//! Invariant: metadata changes by conditional put only, so two writers cannot lose one another's
//! change, and a killed writer leaves a hierarchy that opens.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use hyperslab_store::{Get, Put, Store};
use serde_json::{Map, Value};

use crate::meta::{parse_json, render_json};
use crate::signature::{self, Signature};
use crate::{ArrayMeta, Error, ErrorKind, GroupMeta, Result, check_path, join};

/// How often a lost race for a metadata object is run again.
const MAX_RACES: usize = 64;
/// How many metadata objects are asked for at once.
const CONCURRENT: usize = 32;

/// A node of a hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A group.
    Group(GroupMeta),
    /// An array.
    Array(Box<ArrayMeta>),
}

/// A node as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The parsed metadata.
    pub node: Node,
    /// The metadata as it stands (Zarr v3), for comparing and changing.
    pub json: Value,
    /// Pins the state of the metadata object.
    pub etag: Option<String>,
    /// True for an array that says, where other readers see nothing, that it has replicas.
    pub replicated: bool,
}

impl Node {
    /// Parses a `zarr.json` of either kind.
    pub fn from_json(value: &Value) -> Result<Self> {
        match value.get("node_type").and_then(Value::as_str) {
            Some("array") => ArrayMeta::from_json(value).map(|m| Node::Array(Box::new(m))),
            Some("group") => GroupMeta::from_json(value).map(Node::Group),
            _ => Err(Error::data(
                "zarr.json has a node_type that is neither group nor array",
            )),
        }
    }

    /// The array's metadata, or an error that says that this is a group.
    pub fn into_array(self, name: &str) -> Result<ArrayMeta> {
        match self {
            Node::Array(meta) => Ok(*meta),
            Node::Group(_) => Err(Error::invalid(format!("{name} is a group, not an array"))
                .with_hint("list its arrays with `hyperslab ls`")),
        }
    }
}

async fn get_small(store: &dyn Store, key: &str) -> Result<Option<(Bytes, Option<String>)>> {
    match store.get(key, Get::default()).await {
        Ok(got) => Ok(Some((got.body.into_bytes()?, got.meta.etag))),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}

/// Reads the metadata of the node at `path`: `zarr.json`, else Zarr v2's objects.
pub async fn load(store: &dyn Store, path: &str) -> Result<Loaded> {
    load_signed(store, path).await.map(|(loaded, _)| loaded)
}

/// Like [`load`], with the signatures of the last changes.
async fn load_signed(store: &dyn Store, path: &str) -> Result<(Loaded, Vec<Signature>)> {
    let key = join(path, "zarr.json");
    if let Some((bytes, etag)) = get_small(store, &key).await? {
        let named = |e: Error| e.context(format!("{}/{key}", store.url()));
        let json = Value::Object(parse_json(&bytes, &key).map_err(named)?);
        let node = Node::from_json(&json).map_err(named)?;
        let loaded = Loaded {
            node,
            json,
            etag,
            replicated: signature::is_replicated(&bytes),
        };
        return Ok((loaded, signature::read(&bytes)));
    }
    if let Some(loaded) = load_v2(store, path).await? {
        return Ok((loaded, Vec::new()));
    }
    Err(absent(store, path).await)
}

async fn load_v2(store: &dyn Store, path: &str) -> Result<Option<Loaded>> {
    let (zarray, zgroup, zattrs) = (
        join(path, ".zarray"),
        join(path, ".zgroup"),
        join(path, ".zattrs"),
    );
    let (array, group, attributes) = futures::try_join!(
        get_small(store, &zarray),
        get_small(store, &zgroup),
        get_small(store, &zattrs)
    )?;
    let attributes = match attributes {
        Some((bytes, _)) => parse_json(&bytes, &zattrs)?,
        None => Map::new(),
    };
    if let Some((bytes, etag)) = array {
        let named = |e: Error| e.context(format!("{}/{zarray}", store.url()));
        let zarray = parse_json(&bytes, &zarray)?;
        let meta = ArrayMeta::from_v2(&zarray, attributes).map_err(named)?;
        return Ok(Some(Loaded {
            node: Node::Array(Box::new(meta)),
            json: Value::Object(zarray),
            etag,
            replicated: false,
        }));
    }
    Ok(group.map(|(_, etag)| {
        let meta = GroupMeta {
            attributes,
            ..Default::default()
        };
        Loaded {
            node: Node::Group(meta),
            json: Value::Null,
            etag,
            replicated: false,
        }
    }))
}

/// Says why there is no node: an object may be there instead, or other nodes below.
async fn absent(store: &dyn Store, path: &str) -> Error {
    let shown = if path.is_empty() {
        store.url().to_owned()
    } else {
        format!("{}/{path}", store.url())
    };
    if !path.is_empty() && store.head(path).await.is_ok() {
        return Error::invalid(format!("{shown} is an object, not an array or group"))
            .with_hint("name the folder that holds zarr.json");
    }
    Error::not_found(format!("there is no array or group at {shown}"))
        .with_hint("check the spelling, or list the parent with `hyperslab ls`")
}

/// The names of the nodes directly below a group (folders that may turn out to hold no node).
pub async fn child_names(store: &dyn Store, path: &str) -> Result<Vec<String>> {
    let listing = store.list_dir(path).await?;
    Ok(listing
        .dirs
        .into_iter()
        .filter(|name| check_path(name).is_ok())
        .collect())
}

/// Every node below `path`, by path relative to it, from its own metadata object. A folder that
/// holds no node, such as the chunks of an array, is passed over.
pub async fn walk(store: &dyn Store, path: &str) -> Result<BTreeMap<String, Loaded>> {
    let mut found = BTreeMap::new();
    let mut level = vec![String::new()];
    while !level.is_empty() {
        let names: Vec<Result<Vec<String>>> =
            stream::iter(level.drain(..).map(|group| async move {
                let names = child_names(store, &join(path, &group)).await?;
                Ok(names.iter().map(|name| join(&group, name)).collect())
            }))
            .buffered(CONCURRENT)
            .collect()
            .await;
        let candidates: Vec<String> = names
            .into_iter()
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        let nodes: Vec<(String, Result<Loaded>)> =
            stream::iter(candidates.into_iter().map(|child| async move {
                let loaded = load(store, &join(path, &child)).await;
                (child, loaded)
            }))
            .buffered(CONCURRENT)
            .collect()
            .await;
        for (child, loaded) in nodes {
            match loaded {
                Ok(loaded) => {
                    if matches!(loaded.node, Node::Group(_)) {
                        level.push(child.clone());
                    }
                    found.insert(child, loaded);
                }
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(found)
}

/// Writes the metadata of a new node, after making the groups above it; `Conflict` if a node is
/// there. The copies above it are refreshed.
pub async fn save_node(store: &dyn Store, path: &str, json: &Value) -> Result<()> {
    check_path(path)?;
    let mut changes = make_parents(store, path).await?;
    put_new(store, path, json).await?;
    changes.push((path.to_owned(), Some(json.clone())));
    sync_copies(store, &changes).await
}

/// Makes the group at `path` and those above it, unless they are there.
pub async fn save_group(store: &dyn Store, path: &str, meta: &GroupMeta) -> Result<()> {
    check_path(path)?;
    match load(store, path).await {
        Ok(Loaded {
            node: Node::Group(_),
            ..
        }) => Ok(()),
        Ok(_) => Err(Error::conflict(format!(
            "{}/{path} is an array, not a group",
            store.url()
        ))),
        Err(e) if e.is_not_found() => save_node(store, path, &meta.to_json()).await,
        Err(e) => Err(e),
    }
}

async fn put_new(store: &dyn Store, path: &str, json: &Value) -> Result<()> {
    let key = join(path, "zarr.json");
    let value = vec![Bytes::from(render_json(json))];
    match store.put(&key, value, Put::Create).await {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == ErrorKind::Conflict => Err(Error::conflict(format!(
            "an array or group is already at {}/{path}",
            store.url()
        ))
        .with_hint("choose another name, or overwrite it")
        .with_source(e)),
        Err(e) => Err(e),
    }
}

/// Makes the missing groups above `path` and returns what was made.
async fn make_parents(store: &dyn Store, path: &str) -> Result<Vec<(String, Option<Value>)>> {
    let mut made = Vec::new();
    let mut ancestors: Vec<&str> = path.match_indices('/').map(|(i, _)| &path[..i]).collect();
    if !path.is_empty() {
        ancestors.insert(0, "");
    }
    for ancestor in ancestors {
        match load(store, ancestor).await {
            Ok(Loaded {
                node: Node::Group(_),
                ..
            }) => continue,
            Ok(_) => {
                return Err(Error::invalid(format!(
                    "{}/{ancestor} is an array, so nothing can be put below it",
                    store.url()
                )));
            }
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e),
        }
        let meta = if ancestor.is_empty() {
            GroupMeta::root()
        } else {
            GroupMeta::default()
        };
        match put_new(store, ancestor, &meta.to_json()).await {
            Ok(()) => made.push((ancestor.to_owned(), Some(meta.to_json()))),
            // Another writer made it meanwhile, which is as good.
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            Err(e) => return Err(e),
        }
    }
    Ok(made)
}

/// Changes the metadata of an existing node, running again when another writer was faster.
pub async fn update_node<T>(
    store: &dyn Store,
    path: &str,
    change: impl FnMut(&mut Node) -> Result<T>,
) -> Result<T> {
    update_flagged(store, path, None, change).await
}

/// Says in the metadata of an array, where other readers see nothing, whether it has replicas.
pub async fn flag_node(store: &dyn Store, path: &str, replicated: bool) -> Result<()> {
    update_flagged(store, path, Some(replicated), |_| Ok(())).await
}

async fn update_flagged<T>(
    store: &dyn Store,
    path: &str,
    replicated: Option<bool>,
    mut change: impl FnMut(&mut Node) -> Result<T>,
) -> Result<T> {
    let mut tried: Vec<(Signature, T)> = Vec::new();
    for _ in 0..MAX_RACES {
        let (mut loaded, signatures) = load_signed(store, path).await?;
        // A lost answer may hide that an earlier try took effect.
        if let Some(mine) = tried.iter().position(|(s, _)| signatures.contains(s)) {
            sync_copies(store, &[(path.to_owned(), Some(loaded.json))]).await?;
            return Ok(tried.swap_remove(mine).1);
        }
        if loaded.json.get("node_type").is_none() {
            return Err(Error::invalid(format!(
                "{}/{path} is stored as Zarr v2, which is read only",
                store.url()
            ))
            .with_hint("copy it with `hyperslab cp`; the copy is Zarr v3"));
        }
        let answer = change(&mut loaded.node)?;
        let json = match &loaded.node {
            Node::Array(meta) => meta.to_json(),
            Node::Group(meta) => meta.to_json(),
        };
        let mode = loaded.etag.clone().map_or(Put::Overwrite, Put::Update);
        let flag = replicated.unwrap_or(loaded.replicated);
        let mine = Signature::random();
        let text = Bytes::from(render_json(&json));
        let value = vec![text, signature::render(mine, &signatures, flag)];
        match store.put(&join(path, "zarr.json"), value, mode).await {
            Ok(_) => {
                sync_copies(store, &[(path.to_owned(), Some(json))]).await?;
                return Ok(answer);
            }
            Err(e) if e.kind() == ErrorKind::Conflict => tried.push((mine, answer)),
            Err(e) => return Err(e),
        }
    }
    Err(Error::conflict(format!(
        "the metadata of {}/{path} keeps changing",
        store.url()
    )))
}

/// Refreshes every consolidated copy above the changed nodes (`None`: the node is gone).
pub async fn sync_copies(store: &dyn Store, changes: &[(String, Option<Value>)]) -> Result<()> {
    let mut holders: BTreeMap<String, Vec<(String, Option<Value>)>> = BTreeMap::new();
    for (path, json) in changes {
        let mut ancestors: Vec<&str> = path.match_indices('/').map(|(i, _)| &path[..i]).collect();
        if !path.is_empty() {
            ancestors.push("");
        }
        for ancestor in ancestors {
            let relative = path[ancestor.len()..].trim_start_matches('/').to_owned();
            let json = json.as_ref().map(crate::meta::without_copy);
            holders
                .entry(ancestor.to_owned())
                .or_default()
                .push((relative, json));
        }
    }
    for (holder, changes) in holders {
        sync_copy(store, &holder, &changes).await?;
    }
    Ok(())
}

async fn sync_copy(
    store: &dyn Store,
    holder: &str,
    changes: &[(String, Option<Value>)],
) -> Result<()> {
    let key = join(holder, "zarr.json");
    for _ in 0..MAX_RACES {
        let Some((bytes, etag)) = get_small(store, &key).await? else {
            return Ok(());
        };
        let json = Value::Object(parse_json(&bytes, &key)?);
        let Ok(mut group) = GroupMeta::from_json(&json) else {
            return Ok(());
        };
        let Some(nodes) = &mut group.consolidated else {
            return Ok(());
        };
        let before = nodes.clone();
        for (path, json) in changes {
            match json {
                Some(json) => {
                    nodes.insert(path.clone(), json.clone());
                }
                None => {
                    let below = format!("{path}/");
                    nodes.retain(|name, _| name != path && !name.starts_with(&below));
                }
            }
        }
        if *nodes == before {
            return Ok(());
        }
        let value = vec![Bytes::from(render_json(&group.to_json()))];
        match store
            .put(&key, value, etag.map_or(Put::Overwrite, Put::Update))
            .await
        {
            Ok(_) => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Conflict => continue,
            Err(e) => return Err(e),
        }
    }
    Err(Error::conflict(format!(
        "the consolidated metadata in {}/{key} keeps changing",
        store.url()
    )))
}

/// Removes a node and all below it: first from the copies, then its metadata, then its objects,
/// so that a killed removal leaves no node with missing chunks. Returns how many objects went besides
/// the node's own metadata.
pub async fn remove_node(
    store: &dyn Store,
    path: &str,
    mut progress: impl FnMut(u64),
) -> Result<u64> {
    if !path.is_empty() {
        sync_copies(store, &[(path.to_owned(), None)]).await?;
    }
    for name in ["zarr.json", ".zarray", ".zgroup", ".zmetadata"] {
        store.delete(&join(path, name)).await?;
    }
    let mut removed = 0;
    loop {
        // Pages are listed anew, since removing objects invalidates page tokens on some stores.
        let (entries, more) = store.list(path, None).await?;
        let results: Vec<Result<()>> =
            stream::iter(entries.iter().map(|entry| store.delete(&entry.key)))
                .buffer_unordered(CONCURRENT)
                .collect()
                .await;
        results.into_iter().collect::<Result<Vec<()>>>()?;
        removed += entries.len() as u64;
        progress(removed);
        if entries.is_empty() || more.is_none() {
            return Ok(removed);
        }
    }
}

/// Compares a root's consolidated copy with the nodes' own metadata: the paths that differ, and
/// how.
pub async fn disagreements(store: &dyn Store, root: &GroupMeta) -> Result<Vec<String>> {
    let Some(copy) = &root.consolidated else {
        return Ok(Vec::new());
    };
    let own = walk(store, "").await?;
    let mut out = Vec::new();
    for (path, loaded) in &own {
        match copy.get(path) {
            None => out.push(format!("{path} is missing from the consolidated metadata")),
            Some(json) if *json != crate::meta::without_copy(&loaded.json) => {
                out.push(format!("{path} differs from its consolidated metadata"));
            }
            Some(_) => {}
        }
    }
    out.extend(
        copy.keys()
            .filter(|path| !own.contains_key(*path))
            .map(|path| format!("{path} is in the consolidated metadata but does not exist")),
    );
    Ok(out)
}
