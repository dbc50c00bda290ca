//! Groups, and nodes of either kind.

use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use hyperslab_format as format;
use hyperslab_format::{GroupMeta, Loaded};
use serde_json::{Map, Value};

use crate::file::FileGroup;
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
    /// The group in an HDF5 file that it is, if it is one.
    file: Option<FileGroup>,
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
                let array = Array::new(session, open, location, *meta, from_copy)?;
                array.set_flagged(loaded.replicated);
                Node::Array(array)
            }
            format::Node::Group(meta) => Node::Group(Group(Arc::new(Inner {
                session: session.clone(),
                open,
                url: location.url(),
                location: location.clone(),
                meta,
                file: None,
            }))),
        })
    }

    /// A group of an HDF5 file.
    pub(crate) fn of_file(
        session: &Session,
        open: OpenStore,
        location: &Location,
        meta: GroupMeta,
        file: FileGroup,
    ) -> Self {
        Node::Group(Group(Arc::new(Inner {
            session: session.clone(),
            open,
            url: location.url(),
            location: location.clone(),
            meta,
            file: Some(file),
        })))
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

    /// True if it is a group of an HDF5 file.
    pub fn is_in_file(&self) -> bool {
        self.0.file.is_some()
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
        self.0.location.below(path)
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
            replicated: false,
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
        if let Some(group) = &self.0.file {
            let open = self.0.open.clone();
            return self.0.session.node_of(open, &group.file, &location).await;
        }
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
        if let Some(group) = &self.0.file {
            let Inner { session, open, .. } = &*self.0;
            return session.file_children(open, group, &self.0.location).await;
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
        if self.0.file.is_some() {
            return self.walk_file().await;
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

    /// Every node below a group of an HDF5 file. A group that is reached twice is walked once: links
    /// may lead in a circle.
    async fn walk_file(&self) -> Result<Vec<(String, Node)>> {
        let mut found: Vec<(String, Node)> = Vec::new();
        let mut groups = vec![(String::new(), self.clone())];
        let mut seen = std::collections::HashSet::new();
        while !groups.is_empty() {
            // A level at a time, so that the depth counts and not the number of groups.
            let level = std::mem::take(&mut groups).into_iter();
            let listed = level.map(|(path, group)| async move {
                let children = group.children().await;
                children.map(|children| (path, children))
            });
            let mut listed = stream::iter(listed).buffered(CONCURRENT);
            while let Some(children) = listed.next().await {
                let (path, children) = children?;
                for (name, node) in children {
                    let path = format::join(&path, &name);
                    if let Node::Group(below) = &node
                        && let Some(file) = &below.0.file
                        && seen.insert((below.0.location.bare_root().to_owned(), file.address))
                    {
                        groups.push((path.clone(), below.clone()));
                    }
                    found.push((path, node));
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Replaces the attributes; this handle keeps those it read.
    pub async fn set_attributes(&self, attributes: Map<String, Value>) -> Result<()> {
        let inner = &self.0;
        if inner.file.is_some() {
            return Err(Error::invalid(format!(
                "{} is in an HDF5 file, which is read only",
                inner.url
            )));
        }
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
