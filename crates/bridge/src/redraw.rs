//! The skeleton of a hierarchy that has none, or that was changed by somebody who knows nothing of it.
//!
//! What Zarr says wins: objects that are gone there go, new ones come, shapes and attributes become
//! what they are there. Everything else that the skeleton says, it goes on saying.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyperslab::format::hdf5::Object;
use hyperslab::{Error, Node, Noted, Result, Session, Skeleton, objects_in};
use hyperslab_libhdf5::{Described, Redraw, blueprint, redraw as redraw_image};
use serde_json::{Map, Value};

use crate::export::{blocking, drawn};

/// A skeleton as Zarr has it.
#[derive(Debug)]
pub struct Redrawn {
    /// An HDF5 file without the cells that are in arrays.
    pub image: Bytes,
    /// Paths of arrays that hold cells of datasets, and where the headers of those are.
    pub arrays: BTreeMap<String, u64>,
}

/// The skeleton that the hierarchy at a URL should have: the one that is kept, changed to what Zarr says
/// by now, or a new one.
pub async fn redraw(session: &Session, url: &str, kept: Option<&Skeleton>) -> Result<Redrawn> {
    let Node::Group(root) = session.open(url).await? else {
        return Err(
            Error::invalid(format!("{url} is an array, and not a group"))
                .with_hint("open the group that it is in"),
        );
    };
    let mut nodes: BTreeMap<String, Node> = root.walk().await?.into_iter().collect();
    nodes.insert(String::new(), Node::Group(root));
    let image = match kept {
        None => {
            let all: Vec<_> = nodes
                .iter()
                .map(|(path, node)| (path.clone(), drawn(node)))
                .collect();
            blocking(move || blueprint(&all, false)).await?.image
        }
        Some(kept) => changed(kept, &nodes).await?,
    };
    let image = Bytes::from(image);
    let objects = objects_in(image.clone()).await?;
    let arrays = objects.into_iter().filter_map(|noted| {
        let is_array = matches!(nodes.get(&noted.path), Some(Node::Array(_)));
        is_array.then_some((noted.path, noted.address))
    });
    Ok(Redrawn {
        image,
        arrays: arrays.collect(),
    })
}

/// A skeleton with what was changed since it was kept.
async fn changed(kept: &Skeleton, nodes: &BTreeMap<String, Node>) -> Result<Vec<u8>> {
    let known = objects_in(kept.image.clone()).await?;
    let mut changes = differences(&known, kept, nodes);
    let image = kept.image.to_vec();
    let apply =
        |mut image: Vec<u8>, changes: Redraw| blocking(move || redraw_image(&mut image, &changes));
    let made_anew = |paths: &[String]| Redraw {
        removed: paths.to_vec(),
        made: paths
            .iter()
            .filter_map(|path| Some((path.clone(), drawn(nodes.get(path)?))))
            .collect(),
        ..Redraw::default()
    };
    // Groups before their members.
    changes.made.sort_by(|a, b| a.0.cmp(&b.0));
    let (image, fixed) = apply(image, changes).await?;
    match fixed.is_empty() {
        true => Ok(image),
        false => Ok(apply(image, made_anew(&fixed)).await?.0),
    }
}

fn differences(known: &[Noted], kept: &Skeleton, nodes: &BTreeMap<String, Node>) -> Redraw {
    let mut changes = Redraw::default();
    let mut seen = std::collections::BTreeSet::new();
    for noted in known {
        let path = &noted.path;
        let (old, node) = (&noted.object, nodes.get(path));
        // What Zarr never knew of, it says nothing about.
        let was_published = match old {
            Object::Group(..) => true,
            _ => kept.arrays.contains_key(path),
        };
        match (old, node) {
            (_, None) if !was_published => {}
            (_, None) => changes.removed.push(path.clone()),
            (Object::Group(meta, _), Some(Node::Group(group))) => {
                let new = group.attributes();
                describe(&mut changes, path, &meta.attributes, new);
            }
            (Object::Dataset(dataset), Some(Node::Array(array))) => {
                let meta = array.meta();
                if meta.dtype == dataset.meta.dtype
                    && meta.shape.rank() == dataset.meta.shape.rank()
                {
                    let inner = dataset.inner_dims();
                    let sides = &meta.shape[..meta.shape.rank() - inner];
                    if meta.shape != dataset.meta.shape {
                        changes.resized.push((path.clone(), sides.to_vec()));
                    }
                    describe(
                        &mut changes,
                        path,
                        &dataset.meta.attributes,
                        &meta.attributes,
                    );
                } else {
                    changes.removed.push(path.clone());
                    changes
                        .made
                        .push((path.clone(), drawn(&Node::Array(array.clone()))));
                }
            }
            (_, Some(node)) => {
                changes.removed.push(path.clone());
                changes.made.push((path.clone(), drawn(node)));
            }
        }
        seen.insert(path.clone());
    }
    let new = nodes.iter().filter(|(path, _)| !seen.contains(*path));
    let new = new.map(|(path, node)| (path.clone(), drawn(node)));
    changes.made.extend(new);
    changes
}

fn describe(changes: &mut Redraw, path: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
    if old != new {
        changes.described.push(Described {
            path: path.to_owned(),
            old: old.clone(),
            new: new.clone(),
        });
    }
}
