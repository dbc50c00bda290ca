//! What is special about local disk.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use bytes::Bytes;
use hyperslab_store::{Body, ErrorKind, Get, Local, Options, Put, Store, open_with};

fn temporaries(dir: &Path) -> usize {
    fs::read_dir(dir)
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with(".hyperslab-tmp-")
        })
        .count()
}

#[tokio::test]
async fn objects_are_plain_files_and_plain_files_are_objects() {
    let dir = tempfile::tempdir().unwrap();
    let store = Local::new(dir.path()).unwrap();
    store
        .put("a/b c%20", vec!["x".into(), "y".into()], Put::Create)
        .await
        .unwrap();
    assert_eq!(fs::read(dir.path().join("a/b c%20")).unwrap(), b"xy");
    fs::write(dir.path().join("a/from-outside"), "z").unwrap();
    let got = store.get("a/from-outside", Get::default()).await.unwrap();
    assert!(matches!(got.body, Body::File { .. }));
    assert_eq!(got.body.into_bytes().unwrap(), "z");
    assert_eq!(temporaries(&dir.path().join("a")), 0);
}

#[tokio::test]
async fn a_reader_keeps_the_value_it_opened() {
    let dir = tempfile::tempdir().unwrap();
    let store = Local::new(dir.path()).unwrap();
    store
        .put("k", vec!["old".into()], Put::Create)
        .await
        .unwrap();
    let got = store.get("k", Get::default()).await.unwrap();
    store
        .put("k", vec!["newer".into()], Put::Overwrite)
        .await
        .unwrap();
    assert_eq!(got.body.into_bytes().unwrap(), "old");
    store.delete("k").await.unwrap();
}

#[tokio::test]
async fn etags_never_repeat_however_fast_the_writes() {
    let dir = tempfile::tempdir().unwrap();
    let store = Local::new(dir.path()).unwrap();
    let mut seen = HashSet::new();
    for i in 0..2000u32 {
        // Always the same size, so inode and time have to differ.
        let meta = store.put(
            "k",
            vec![Bytes::copy_from_slice(&i.to_le_bytes())],
            Put::Overwrite,
        );
        assert!(seen.insert(meta.await.unwrap().etag.unwrap()), "write {i}");
    }
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no temporary file stays"
    );
}

#[tokio::test]
async fn leftovers_of_a_killed_writer_are_never_seen() {
    let dir = tempfile::tempdir().unwrap();
    let store = Local::new(dir.path()).unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/.hyperslab-tmp-1-2-3"), "half").unwrap();
    assert!(store.list("", None).await.unwrap().0.is_empty());
    assert!(store.list_dir("d").await.unwrap().objects.is_empty());
    let e = store
        .get("d/.hyperslab-tmp-1-2-3", Get::default())
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn failed_writes_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let store = Local::new(dir.path()).unwrap();
    store.put("k", vec!["x".into()], Put::Create).await.unwrap();
    for mode in [Put::Create, Put::Update("\"0-0-0\"".into())] {
        let e = store.put("k", vec!["y".into()], mode).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
    }
    assert_eq!(temporaries(dir.path()), 0);
}

#[tokio::test]
async fn deletes_prune_empty_directories_but_never_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    let store = Local::new(&root).unwrap();
    store.put("a/b/c/d", vec![], Put::Create).await.unwrap();
    store.put("a/e", vec![], Put::Create).await.unwrap();
    store.delete("a/b/c/d").await.unwrap();
    assert!(!root.join("a/b").exists());
    assert!(root.join("a/e").exists());
    store.delete("a/e").await.unwrap();
    assert!(!root.join("a").exists());
    assert!(root.exists());
    store.delete("no/such/thing").await.unwrap();
    assert!(root.exists());
}

#[tokio::test]
async fn wrong_places_have_clear_errors() {
    let dir = tempfile::tempdir().unwrap();
    let store = Local::new(dir.path()).unwrap();
    store.put("a/b", vec![], Put::Create).await.unwrap();
    for (key, word) in [
        ("a", "directory of that name"),
        ("a/b/c", "parent directory is a file"),
    ] {
        for mode in [Put::Create, Put::Overwrite, Put::Update("\"x\"".into())] {
            let e = store.put(key, vec![], mode).await.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Invalid, "{e}");
            assert!(e.message().contains(word), "{e}");
        }
    }
    let long = "n".repeat(300);
    let e = store.put(&long, vec![], Put::Create).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Invalid, "{e}");
    assert_eq!(
        store.head(&long).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
    symlink("loop", dir.path().join("loop")).unwrap();
    assert_eq!(
        store.head("loop").await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
    store.list("", None).await.unwrap();
}

#[tokio::test]
async fn denied_directories_are_denied() {
    let dir = tempfile::tempdir().unwrap();
    let store = Local::new(dir.path()).unwrap();
    store
        .put("a/b", vec!["x".into()], Put::Create)
        .await
        .unwrap();
    let a = dir.path().join("a");
    fs::set_permissions(&a, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser passes every permission check; then there is nothing to see.
    if fs::read_dir(&a).is_err() {
        assert_eq!(
            store.head("a/b").await.unwrap_err().kind(),
            ErrorKind::Denied
        );
        let e = store.put("a/c", vec![], Put::Create).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Denied);
        assert_eq!(
            store.list("", None).await.unwrap_err().kind(),
            ErrorKind::Denied
        );
    }
    fs::set_permissions(&a, fs::Permissions::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn fsync_is_an_option_that_changes_no_result() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().with("fsync", "true");
    let store = open_with(dir.path().to_str().unwrap(), &options)
        .unwrap()
        .store;
    store
        .put("k/l", vec!["x".into()], Put::Create)
        .await
        .unwrap();
    store
        .put("k/l", vec!["y".into()], Put::Overwrite)
        .await
        .unwrap();
    let got = store.get("k/l", Get::default()).await.unwrap();
    assert_eq!(got.body.into_bytes().unwrap(), "y");
    let wrong = Options::new().with("fsync", "sometimes");
    assert!(open_with(dir.path().to_str().unwrap(), &wrong).is_err());
}
