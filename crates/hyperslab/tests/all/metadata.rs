//! Hierarchies, consolidated metadata, and bad names.

use hyperslab::store::{Get, Put};
use hyperslab::{Consolidated, ErrorKind, Node, Options, Selection, Session, block_on};
use serde_json::{Map, Value, json};

use crate::{fresh, spec};

#[test]
fn one_request_opens_a_hierarchy() {
    let base = format!("{}/sky.zarr", fresh());
    let session = Session::default();
    for name in ["a", "g/b", "g/h/c"] {
        block_on(session.create_array(&format!("{base}/{name}"), spec(&[4], "f4"), false)).unwrap();
    }
    let reader = Session::default();
    let group = block_on(reader.open_group(&base)).unwrap();
    let names: Vec<String> = block_on(group.walk())
        .unwrap()
        .into_iter()
        .map(|(n, _)| n)
        .collect();
    assert_eq!(names, ["a", "g", "g/b", "g/h", "g/h/c"]);
    let requests: u64 = reader
        .meters()
        .iter()
        .map(|(_, m)| m.requests.iter().sum::<u64>())
        .sum();
    assert_eq!(requests, 1);
    let children: Vec<String> = block_on(group.children())
        .unwrap()
        .into_iter()
        .map(|(n, _)| n)
        .collect();
    assert_eq!(children, ["a", "g"]);
    let own = Session::new(Options {
        consolidated: Consolidated::Ignore,
        ..Default::default()
    });
    let walked = block_on(block_on(own.open_group(&base)).unwrap().walk()).unwrap();
    assert_eq!(
        walked.into_iter().map(|(n, _)| n).collect::<Vec<_>>(),
        names
    );
    assert!(block_on(group.disagreements()).unwrap().is_empty());
    assert_eq!(
        block_on(session.remove(&format!("{base}/g"), &())).unwrap(),
        3
    );
    let group = block_on(Session::default().open_group(&base)).unwrap();
    assert_eq!(block_on(group.walk()).unwrap().len(), 1);
    assert!(block_on(group.disagreements()).unwrap().is_empty());
}

#[test]
fn a_stale_copy_is_noticed_at_the_first_read() {
    let base = format!("{}/sky.zarr", fresh());
    let session = Session::default();
    let array =
        block_on(session.create_array(&format!("{base}/a"), spec(&[4], "u1"), false)).unwrap();
    block_on(array.write(&Selection::All, vec![1, 2, 3, 4])).unwrap();
    // A foreign tool changes the array's own metadata and leaves the copy alone.
    let store = hyperslab::store::open(&base).unwrap();
    block_on(async {
        let bytes = store
            .get("a/zarr.json", Get::default())
            .await?
            .body
            .into_bytes()?;
        let mut json: Value = serde_json::from_slice(&bytes).unwrap();
        json["shape"] = json!([3]);
        store
            .put("a/zarr.json", vec![json.to_string().into()], Put::Overwrite)
            .await
    })
    .unwrap();
    let group = block_on(Session::default().open_group(&base)).unwrap();
    let Node::Array(stale) = block_on(group.node("a")).unwrap() else {
        unreachable!()
    };
    assert_eq!(stale.shape()[..], [4]);
    let e = block_on(stale.read(&Selection::All)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    assert!(e.to_string().contains("consolidated"), "{e}");
    assert_eq!(block_on(group.disagreements()).unwrap().len(), 1);
    let own = block_on(Session::default().open_array(&format!("{base}/a"))).unwrap();
    assert_eq!(block_on(own.read(&Selection::All)).unwrap(), [1, 2, 3]);
    block_on(group.consolidate()).unwrap();
    let group = block_on(Session::default().open_group(&base)).unwrap();
    assert!(block_on(group.disagreements()).unwrap().is_empty());
}

#[test]
fn attributes_survive_and_reach_the_copy() {
    let base = format!("{}/sky.zarr", fresh());
    let session = Session::default();
    let array =
        block_on(session.create_array(&format!("{base}/a"), spec(&[], "f8"), false)).unwrap();
    let attributes: Map<String, Value> = json!({"units": "m", "π": [1, 2.5, null]})
        .as_object()
        .unwrap()
        .clone();
    block_on(array.set_attributes(attributes.clone())).unwrap();
    assert_eq!(array.meta().attributes, attributes);
    let group = block_on(Session::default().open_group(&base)).unwrap();
    let Node::Array(copy) = block_on(group.node("a")).unwrap() else {
        unreachable!()
    };
    assert_eq!(copy.meta().attributes, attributes);
    block_on(copy.write(&Selection::All, 2.5f64.to_le_bytes().to_vec())).unwrap();
    assert_eq!(
        block_on(array.read(&Selection::All)).unwrap(),
        2.5f64.to_le_bytes()
    );
}

#[test]
fn what_is_there_is_not_overwritten_by_accident() {
    let url = format!("{}/sky.zarr/a", fresh());
    let session = Session::default();
    let array = block_on(session.create_array(&url, spec(&[4], "u1"), false)).unwrap();
    block_on(array.write(&Selection::All, vec![5; 4])).unwrap();
    let e = block_on(session.create_array(&url, spec(&[4], "u1"), false)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    let array = block_on(session.create_array(&url, spec(&[4], "u1"), true)).unwrap();
    assert_eq!(block_on(array.read(&Selection::All)).unwrap(), [0; 4]);
    let below = block_on(session.create_array(&format!("{url}/b"), spec(&[4], "u1"), false));
    assert_eq!(below.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn an_array_that_is_made_anew_is_not_read_from_the_cache() {
    let url = format!("{}/sky.zarr/a", fresh());
    let session = Session::new(Options {
        cache_bytes: 1 << 20,
        cache_fresh: std::time::Duration::from_secs(3600),
        ..Options::default()
    });
    let array = block_on(session.create_array(&url, spec(&[4], "u1"), false)).unwrap();
    block_on(array.write(&Selection::All, vec![5; 4])).unwrap();
    assert_eq!(block_on(array.read(&Selection::All)).unwrap(), [5; 4]);
    let array = block_on(session.create_array(&url, spec(&[4], "u1"), true)).unwrap();
    assert_eq!(block_on(array.read(&Selection::All)).unwrap(), [0; 4]);
}

#[test]
fn bad_names_and_absent_things() {
    let base = format!("{}/sky.zarr", fresh());
    let session = Session::default();
    for name in ["..", "a//b", "a/../b", "__x", "zarr.json"] {
        let e = block_on(session.create_array(&format!("{base}/{name}"), spec(&[4], "u1"), false));
        assert_eq!(e.unwrap_err().kind(), ErrorKind::Invalid, "{name}");
    }
    let e = block_on(session.open(&format!("{base}/nothing"))).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    let array =
        block_on(session.create_array(&format!("{base}/ü n"), spec(&[4], "u1"), false)).unwrap();
    block_on(array.write(&Selection::All, vec![5; 4])).unwrap();
    let e = block_on(session.open(&format!("{base}/ü n/c/0"))).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Invalid, "{e}");
    assert!(block_on(session.open_group(&format!("{base}/ü n"))).is_err());
    assert!(block_on(session.open_array(&base)).is_err());
}

#[test]
fn a_stopped_removal_can_be_repeated() {
    let url = format!("{}/sky.zarr/a", fresh());
    let session = Session::default();
    let array = block_on(session.create_array(&url, spec(&[4], "u1"), false)).unwrap();
    block_on(array.write(&Selection::All, vec![5; 4])).unwrap();
    let store = hyperslab::store::open(&url).unwrap();
    block_on(store.delete("zarr.json")).unwrap();
    assert_eq!(block_on(session.remove(&url, &())).unwrap(), 1);
    let e = block_on(session.remove(&url, &())).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
}
