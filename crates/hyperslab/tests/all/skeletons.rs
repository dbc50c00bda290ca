//! Skeletons, metadata of many nodes at a time, and roots that do not look like it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use hyperslab::{
    ArraySpec, DataType, ErrorKind, GroupMeta, Selection, Session, Shape, SkeletonState,
    StorePolicy, block_on,
};

fn arrays(address: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([("g/a".to_owned(), address)])
}

#[test]
fn a_skeleton_is_replaced_by_who_has_seen_it() {
    let session = Session::default();
    let url = "memory://skeletons-replaced/x.h5";
    block_on(async {
        assert!(session.skeleton(url).await?.is_none());
        let image = |text: &'static str| Bytes::from_static(text.as_bytes());
        let none = SkeletonState::default();
        let keep = |image, address, before: SkeletonState| {
            let session = session.clone();
            async move {
                let told = Some("root".to_owned());
                let arrays = arrays(address);
                session
                    .keep_skeleton(url, image, arrays, told, &before)
                    .await
            }
        };
        let first = keep(image("one"), 7, none.clone()).await?;
        let error = keep(image("two"), 8, none).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let kept = session.skeleton(url).await?.unwrap();
        assert_eq!((&kept.image[..], kept.arrays), (&b"one"[..], arrays(7)));
        assert_eq!((kept.root.as_deref(), &kept.state), (Some("root"), &first));
        keep(image("three"), 9, kept.state).await?;
        let error = keep(image("four"), 10, first).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.hint().is_some());
        assert_eq!(session.skeleton(url).await?.unwrap().arrays, arrays(9));
        Ok(())
    })
    .unwrap();
}

#[test]
fn nodes_that_are_published_are_a_hierarchy() {
    let session = Session::default();
    // Without an ending by which it would be known for a root.
    let url = "memory://skeletons-published/plain";
    block_on(async {
        session.claim(url)?;
        assert!(session.published(url).await?.is_none());
        let mut spec = ArraySpec::new(Shape::new([4, 6])?, DataType::Int(4));
        spec.chunks = Some(vec![2, 3]);
        let meta = spec.build(&StorePolicy::CLOUD)?;
        let array = session
            .adopt(&format!("{url}/g/a.zarr/b"), meta.clone())
            .await?;
        let cells: Vec<u8> = (0..96).collect();
        array.write(&Selection::All, cells.clone()).await?;
        let group = GroupMeta::default().to_json();
        let nodes = BTreeMap::from([
            (String::new(), GroupMeta::root().to_json()),
            ("g".to_owned(), group.clone()),
            ("g/a.zarr".to_owned(), group),
            ("g/a.zarr/b".to_owned(), meta.to_json()),
        ]);
        let all: BTreeSet<String> = nodes.keys().cloned().collect();
        let told = session.publish(url, &nodes, &all).await?;
        let (seen, state) = session.published(url).await?.unwrap();
        assert_eq!(state, told);
        assert_eq!(seen["g/a.zarr/b"], meta.to_json());
        assert_eq!(seen.len(), 4);

        let other = Session::default();
        other.claim(url)?;
        let root = other.open_group(url).await?;
        assert_eq!(root.walk().await?.len(), 3);
        let again = other.open_array(&format!("{url}/g/a.zarr/b")).await?;
        assert_eq!(again.read(&Selection::All).await?, cells);
        session.sweep(&format!("{url}/g/a.zarr")).await?;
        let gone = Session::default()
            .open_array(&format!("{url}/g/a.zarr/b"))
            .await;
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
        Ok(())
    })
    .unwrap();
}
