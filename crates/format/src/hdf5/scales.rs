//! Dimension scales: the names of a dataset's dimensions.
//!
//! Beside the nodes. A dataset refers to a scale for each of its dimensions, and is named after it;
//! netCDF-4 keeps its dimensions so. References are addresses, so the names are looked for where
//! netCDF-4 says they are: in the dataset's group and those above it. Where there is no scale, the label
//! of a dimension is its name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::attribute::Attribute;
use super::datatype::Class;
use super::header::Context;
use super::heap;
use super::link::{self, Target};
use super::value;
use crate::Result;

/// The attribute with a list of scales for each dimension.
const LIST: &str = "DIMENSION_LIST";
/// The attribute with a name for each dimension.
const LABELS: &str = "DIMENSION_LABELS";
/// Attributes that hold references for dimension scales; they appear as dimension names instead.
pub(crate) const HIDDEN: [&str; 2] = [LIST, "REFERENCE_LIST"];
/// What netCDF-4 names scales that have no coordinates.
const NAMELESS: &str = "This is a netCDF dimension but not a netCDF variable";

/// The names of the objects of one group, by address.
type Names = Arc<HashMap<u64, String>>;

/// The names in groups that were looked at.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<HashMap<u64, Names>>);

impl Groups {
    fn names(&self, context: &Context<'_>, group: u64) -> Result<Names> {
        if let Some(names) = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&group)
        {
            return Ok(names.clone());
        }
        let links = link::links(context, &context.header(group)?)?;
        let hard = links.into_iter().filter_map(|link| match link.target {
            Target::Hard(address) => Some((address, link.name)),
            _ => None,
        });
        let names: Names = Arc::new(hard.collect());
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(groups.entry(group).or_insert(names).clone())
    }
}

/// The names of the dimensions of the dataset at a path; `None` if it has none.
pub(crate) fn dimension_names(
    context: &Context<'_>,
    (root, groups): (u64, &Groups),
    path: &str,
    attributes: &[Attribute],
    rank: usize,
) -> Result<Option<Vec<Option<String>>>> {
    let mut names = match scale_names(context, (root, groups), path, attributes, rank)? {
        Some(names) => names,
        None => own_name(context, path, attributes, rank).unwrap_or_default(),
    };
    // The dimensions of elements have no scales.
    names.resize(rank, None);
    for (name, label) in names.iter_mut().zip(labels(context, attributes)) {
        if name.is_none() {
            *name = label;
        }
    }
    Ok(names.iter().any(Option::is_some).then_some(names))
}

/// The names of the scales of a dataset's dimensions, if it has any.
fn scale_names(
    context: &Context<'_>,
    (root, groups): (u64, &Groups),
    path: &str,
    attributes: &[Attribute],
    rank: usize,
) -> Result<Option<Vec<Option<String>>>> {
    let list = attributes.iter().find(|attribute| attribute.name == LIST);
    let Some(list) = list.filter(|list| matches!(list.datatype.class, Class::Sequence(_))) else {
        return Ok(None);
    };
    let above = above(context, (root, groups), path)?;
    let mut names: Vec<Option<String>> = Vec::with_capacity(rank);
    for element in list
        .data
        .chunks_exact(list.datatype.size as usize)
        .take(rank)
    {
        let scale = scale(context, element)?;
        let name = scale.and_then(|scale| above.iter().find_map(|group| group.get(&scale)));
        names.push(name.cloned());
    }
    Ok(Some(names))
}

/// What a dataset itself calls its dimensions.
fn labels(context: &Context<'_>, attributes: &[Attribute]) -> Vec<Option<String>> {
    let attribute = attributes.iter().find(|attribute| attribute.name == LABELS);
    let json = attribute.and_then(|attribute| value::json(context, attribute).ok());
    let label = |value: &Value| match value.as_str() {
        Some("") | None => None,
        Some(label) => Some(label.to_owned()),
    };
    match json {
        Some(Value::Array(list)) => list.iter().map(label).collect(),
        _ => Vec::new(),
    }
}

/// The address of the first scale of a dimension.
fn scale(context: &Context<'_>, element: &[u8]) -> Result<Option<u64>> {
    let Some(place) = heap::reference(context, element)? else {
        return Ok(None);
    };
    let objects = heap::global(context, place.heap)?;
    match objects.get(&place.object) {
        Some(references) if place.count > 0 => context.cursor(references).address(),
        _ => Ok(None),
    }
}

/// The names in the groups above a path, the nearest first.
fn above(context: &Context<'_>, (root, groups): (u64, &Groups), path: &str) -> Result<Vec<Names>> {
    let mut names = vec![groups.names(context, root)?];
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    for part in parts.iter().take(parts.len().saturating_sub(1)) {
        let here = names.last().into_iter().flat_map(|names| names.iter());
        let group = here
            .into_iter()
            .find(|(_, name)| name == part)
            .map(|(address, _)| *address);
        match group {
            Some(group) => names.push(groups.names(context, group)?),
            // Through a soft link: what is above it is not above the dataset.
            None => break,
        }
    }
    names.reverse();
    Ok(names)
}

/// A scale of one dimension is named after itself.
fn own_name(
    context: &Context<'_>,
    path: &str,
    attributes: &[Attribute],
    rank: usize,
) -> Option<Vec<Option<String>>> {
    let says = |name: &str| -> Option<String> {
        let attribute = attributes.iter().find(|attribute| attribute.name == name)?;
        let json = value::json(context, attribute).ok()?;
        json.as_str().map(str::to_owned)
    };
    if says("CLASS").as_deref() != Some("DIMENSION_SCALE") || rank == 0 {
        return None;
    }
    let own = path.rsplit('/').next().filter(|name| !name.is_empty());
    let own = own
        .map(str::to_owned)
        .or_else(|| says("NAME").filter(|name| !name.is_empty() && !name.starts_with(NAMELESS)));
    let mut names = vec![None; rank];
    names[0] = Some(own?);
    Some(names)
}
