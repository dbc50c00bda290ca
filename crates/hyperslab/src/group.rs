//! Groups, and nodes of either kind.

use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use hyperslab_format as format;
use hyperslab_format::{GroupMeta, Loaded};
use serde_json::{Map, Value};

use crate::location::Location;
use crate::session::OpenStore;
use crate::{Array, Consolidated, Error, Result, Session};

/// How many nodes are opened at once.
const CONCURRENT: usize = 32;

/// A node of a hierarchy.
#[derive(Debug, Clone)]
pub enum Node {
    /// A group.
    Group(Group),
    /// An array.
    Array(Array),
}

/// A group in a store.
#[derive(Clone)]
pub struct Group(Arc<Inner>);

struct Inner {
    session: Session,
    open: OpenStore,
    location: Location,
    url: String,
    meta: GroupMeta,
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({})", self.0.url)
    }
}

impl Node {
    pub(crate) fn from_loaded(
        session: &Session,
        open: OpenStore,
        location: &Location,
        loaded: Loaded,
        from_copy: bool,
    ) -> Result<Self> {
        Ok(match loaded.node {
            format::Node::Array(meta) => {
                Node::Array(Array::new(session, open, location, *meta, from_copy)?)
            }
            format::Node::Group(meta) => Node::Group(Group(Arc::new(Inner {
                session: session.clone(),
                open,
                url: location.url(),
                location: location.clone(),
                meta,
            }))),
        })
    }

    /// The node's URL.
    pub fn url(&self) -> &str {
        match self {
            Node::Group(group) => group.url(),
            Node::Array(array) => array.url(),
        }
    }
}

impl Group {
    /// The group's URL.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// The metadata as this handle read it.
    pub fn meta(&self) -> &GroupMeta {
        &self.0.meta
    }

    /// The attributes as this handle read them.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.0.meta.attributes
    }

    /// Opens the node at a path below this group.
    pub async fn node(&self, path: &str) -> Result<Node> {
        format::check_path(path)?;
        if let Some(copy) = self.copy() {
            return match copy.get(path) {
                Some(json) => self.node_in_copy(path, json),
                None => self.load(path).await,
            };
        }
        self.load(path).await
    }

    fn copy(&self) -> Option<&std::collections::BTreeMap<String, Value>> {
        match self.0.session.options().consolidated {
            Consolidated::Ignore => None,
            _ => self.0.meta.consolidated.as_ref(),
        }
    }

    fn below(&self, path: &str) -> Location {
        let location = &self.0.location;
        Location {
            root: location.root.clone(),
            path: format::join(&location.path, path),
        }
    }

    fn node_in_copy(&self, path: &str, json: &Value) -> Result<Node> {
        let location = self.below(path);
        let node = format::Node::from_json(json)
            .map_err(|e| e.context(format!("the consolidated metadata of {}", location.url())))?;
        let verify = self.0.session.options().consolidated == Consolidated::Verify;
        let loaded = Loaded {
            node,
            json: json.clone(),
            etag: None,
        };
        Node::from_loaded(
            &self.0.session,
            self.0.open.clone(),
            &location,
            loaded,
            verify,
        )
    }

    async fn load(&self, path: &str) -> Result<Node> {
        let location = self.below(path);
        let loaded = format::load(&*self.0.open.store, &location.path).await?;
        Node::from_loaded(
            &self.0.session,
            self.0.open.clone(),
            &location,
            loaded,
            false,
        )
    }

    /// The nodes directly below, by name.
    pub async fn children(&self) -> Result<Vec<(String, Node)>> {
        if let Some(copy) = self.copy() {
            return copy
                .iter()
                .filter(|(path, _)| !path.contains('/'))
                .map(|(path, json)| Ok((path.clone(), self.node_in_copy(path, json)?)))
                .collect();
        }
        let mut names = format::child_names(&*self.0.open.store, &self.0.location.path).await?;
        names.sort();
        let nodes: Vec<(String, Result<Node>)> =
            stream::iter(names.into_iter().map(|name| async move {
                let node = self.load(&name).await;
                (name, node)
            }))
            .buffered(CONCURRENT)
            .collect()
            .await;
        let mut out = Vec::new();
        for (name, node) in nodes {
            match node {
                Ok(node) => out.push((name, node)),
                // A folder without metadata is not a node.
                Err(e) if e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        Ok(out)
    }

    /// Every node below, by path, sorted.
    pub async fn walk(&self) -> Result<Vec<(String, Node)>> {
        if let Some(copy) = self.copy() {
            return copy
                .iter()
                .map(|(path, json)| Ok((path.clone(), self.node_in_copy(path, json)?)))
                .collect();
        }
        let found = format::walk(&*self.0.open.store, &self.0.location.path).await?;
        found
            .into_iter()
            .map(|(path, loaded)| {
                let location = self.below(&path);
                let open = self.0.open.clone();
                Ok((
                    path,
                    Node::from_loaded(&self.0.session, open, &location, loaded, false)?,
                ))
            })
            .collect()
    }

    /// Replaces the attributes; this handle keeps those it read.
    pub async fn set_attributes(&self, attributes: Map<String, Value>) -> Result<()> {
        let inner = &self.0;
        format::update_node(
            &*inner.open.store,
            &inner.location.path,
            |node| match node {
                format::Node::Group(meta) => {
                    meta.attributes = attributes.clone();
                    Ok(())
                }
                format::Node::Array(_) => Err(Error::conflict(format!(
                    "{} has become an array",
                    inner.url
                ))),
            },
        )
        .await
    }

    /// Compares the consolidated copy with every node's own metadata: a sentence per difference.
    pub async fn disagreements(&self) -> Result<Vec<String>> {
        if self.0.location.path.is_empty() {
            return format::disagreements(&*self.0.open.store, &self.0.meta).await;
        }
        Ok(Vec::new())
    }

    /// Writes the consolidated copy anew from every node's own metadata.
    pub async fn consolidate(&self) -> Result<()> {
        let inner = &self.0;
        let own = format::walk(&*inner.open.store, &inner.location.path).await?;
        let copy: std::collections::BTreeMap<String, Value> = own
            .into_iter()
            .map(|(path, loaded)| (path, format::without_copy(&loaded.json)))
            .collect();
        format::update_node(
            &*inner.open.store,
            &inner.location.path,
            |node| match node {
                format::Node::Group(meta) => {
                    meta.consolidated = Some(copy.clone());
                    Ok(())
                }
                format::Node::Array(_) => Err(Error::conflict(format!(
                    "{} has become an array",
                    inner.url
                ))),
            },
        )
        .await
    }
}
