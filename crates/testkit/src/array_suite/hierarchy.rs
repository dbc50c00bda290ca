//! Hierarchies: groups, attributes, removal, and consolidated metadata that one request reads.

use std::sync::Arc;

use hyperslab::{
    ArraySpec, DataType, ErrorKind, Node, Options, Progress, Selection, Session, Shape,
};
use hyperslab_store::{Meter, MeterHandle};
use serde_json::{Map, Value, json};

use crate::array_suite::fresh;
use crate::servers::Place;
use crate::{Failure, Outcome, ensure, fails, same};

const ARRAYS: [&str; 4] = ["a", "deep/er/b", "deep/c", "with space/é"];
const GROUPS: [&str; 3] = ["deep", "deep/er", "with space"];

struct Silent;

impl Progress for Silent {
    fn start(&self, _: u64) {}
    fn add(&self, _: u64) {}
}

pub(super) async fn check(place: &Place) -> Outcome {
    let (session, url) = fresh(place, "tree.zarr", Options::default())?;
    let attributes = attributes(json!({"title": "all", "n": [1, 2.5, null]}));
    session.create_group(&url, attributes.clone()).await?;
    for (at, path) in ARRAYS.iter().enumerate() {
        let mut spec = ArraySpec::new(Shape::new([4, 6])?, DataType::UInt(1));
        spec.chunks = Some(vec![2, 3]);
        spec.attributes = self::attributes(json!({"at": at}));
        let array = session
            .create_array(&format!("{url}/{path}"), spec, false)
            .await?;
        array.write(&Selection::All, vec![at as u8 + 1; 24]).await?;
    }
    same(
        "attributes of the root",
        session.open_group(&url).await?.attributes().clone(),
        attributes,
    )?;
    check_places(place, &session)?;
    check_one_request(place).await?;
    check_own_metadata_agrees(place).await?;
    check_group_attributes(&session, &url).await?;
    check_removal(place, &session, &url).await
}

fn attributes(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// A session asks no store but those of the place: a test must never reach a real cloud.
fn check_places(place: &Place, session: &Session) -> Outcome {
    let strange = |url: &String| url.contains("://") && !url.starts_with(place.url());
    let asked: Vec<String> = session.meters().into_iter().map(|(url, _)| url).collect();
    ensure(!asked.iter().any(strange), || {
        format!("other stores were asked: {asked:?}")
    })?;
    // Places that are mounted have meters that count nothing.
    let opened = |(url, meter): &(String, hyperslab_store::MeterSnapshot)| {
        let remote = url.contains("://") && !url.starts_with("memory://");
        remote && meter.requests.iter().any(|n| *n > 0)
    };
    ensure(!session.meters().iter().any(opened), || {
        "a store was opened without the options of its place".into()
    })
}

/// One request opens the hierarchy; reading one array adds its own metadata and its chunks.
async fn check_one_request(place: &Place) -> Outcome {
    let session = Session::default();
    let meter = MeterHandle::new();
    let store = Arc::new(Meter::new(place.store("tree.zarr")?, meter.clone()));
    let url = &place.mount_store(&session, "tree.zarr", store)?;
    let requests = || meter.snapshot().requests.iter().sum::<u64>();
    let root = session.open_group(url).await?;
    let nodes = root.walk().await?;
    same("requests that open a hierarchy", requests(), 1)?;
    let found: Vec<&str> = nodes.iter().map(|(path, _)| path.as_str()).collect();
    let mut expected = [&ARRAYS[..], &GROUPS[..]].concat();
    expected.sort_unstable();
    same("nodes", found, expected)?;
    for (path, node) in &nodes {
        let Node::Array(array) = node else { continue };
        let at = ARRAYS
            .iter()
            .position(|name| name == path)
            .unwrap_or_default();
        let before = requests();
        same(
            "cells",
            array.read(&Selection::All).await?,
            vec![at as u8 + 1; 24],
        )?;
        same(
            "requests for four chunks and the array's own metadata",
            requests() - before,
            5,
        )?;
        array.read(&Selection::All).await?;
        same("requests for a second read", requests() - before, 9)?;
    }
    let children: Vec<String> = root
        .children()
        .await?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    same(
        "children",
        children,
        vec!["a".to_owned(), "deep".to_owned(), "with space".to_owned()],
    )
}

/// A session that ignores the copy finds the same nodes.
async fn check_own_metadata_agrees(place: &Place) -> Outcome {
    let ignore = Options {
        consolidated: hyperslab::Consolidated::Ignore,
        ..Options::default()
    };
    let (session, url) = fresh(place, "tree.zarr", ignore)?;
    let root = session.open_group(&url).await?;
    same("disagreements", root.disagreements().await?, Vec::new())?;
    let found: Vec<String> = root
        .walk()
        .await?
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let mut expected: Vec<String> = ARRAYS
        .iter()
        .chain(&GROUPS)
        .map(|path| (*path).to_owned())
        .collect();
    expected.sort_unstable();
    same("nodes without the copy", found, expected)?;
    match root.node("deep/er").await? {
        Node::Group(group) => same("children", group.children().await?.len(), 1),
        Node::Array(_) => Err(Failure::new("the group deep/er is an array")),
    }
}

async fn check_group_attributes(session: &Session, url: &str) -> Outcome {
    let group = session.open_group(&format!("{url}/deep")).await?;
    let new = attributes(json!({"changed": true}));
    group.set_attributes(new.clone()).await?;
    let again = session.open_group(&format!("{url}/deep")).await?;
    same(
        "attributes of a group",
        again.attributes().clone(),
        new.clone(),
    )?;
    let Node::Group(copy) = session.open_group(url).await?.node("deep").await? else {
        return Err(Failure::new("the group deep is an array"));
    };
    same(
        "attributes of a group in the copy",
        copy.attributes().clone(),
        new,
    )?;
    let there = session.create_group(&format!("{url}/a"), Map::new()).await;
    fails("a group over an array", there, ErrorKind::Conflict).map(drop)
}

async fn check_removal(place: &Place, session: &Session, url: &str) -> Outcome {
    let removed = session.remove(&format!("{url}/deep"), &Silent).await?;
    ensure(removed > 0, || "nothing was removed".into())?;
    let gone = session.open(&format!("{url}/deep/c")).await;
    fails("an array that was removed", gone, ErrorKind::NotFound)?;
    let twice = session.remove(&format!("{url}/deep"), &Silent).await;
    fails("removing it twice", twice, ErrorKind::NotFound)?;
    let (session, _) = fresh(place, "tree.zarr", Options::default())?;
    let left: Vec<String> = session
        .open_group(url)
        .await?
        .walk()
        .await?
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    same(
        "what is left",
        left,
        vec![
            "a".to_owned(),
            "with space".to_owned(),
            "with space/é".to_owned(),
        ],
    )?;
    let (entries, _) = place.store("tree.zarr")?.list("deep", None).await?;
    same("objects that are left", entries.len(), 0)
}
