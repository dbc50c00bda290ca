//! Opening by URL.

use hyperslab_store::{
    Environment, ErrorKind, Get, Options, Put, StoreKind, endpoint, open, open_with,
};

fn bare() -> Options {
    Options::new().with_environment(Environment::default())
}

#[tokio::test]
async fn every_scheme_opens_as_its_kind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b").display().to_string();
    for (url, options, kind, shown) in [
        (path.clone(), bare(), StoreKind::File, path.clone()),
        (
            format!("file://{}/x", dir.path().display()),
            bare(),
            StoreKind::File,
            format!("file://{}/x", dir.path().display()),
        ),
        (
            "relative/path".into(),
            bare(),
            StoreKind::File,
            "relative/path".into(),
        ),
        (
            "memory://m/p".into(),
            bare(),
            StoreKind::Memory,
            "memory://m/p".into(),
        ),
        (
            "s3://b/p?region=r&anonymous=true".into(),
            bare(),
            StoreKind::S3,
            "s3://b/p".into(),
        ),
        ("s3://b".into(), bare(), StoreKind::S3, "s3://b".into()),
        (
            "az://c/p?account=a&anonymous=true".into(),
            bare(),
            StoreKind::Azure,
            "az://c/p".into(),
        ),
        (
            "gs://b/p?anonymous=true".into(),
            bare(),
            StoreKind::Google,
            "gs://b/p".into(),
        ),
        (
            "http://127.0.0.1:1/d?sig=hunter2".into(),
            bare(),
            StoreKind::Http,
            "http://127.0.0.1:1/d".into(),
        ),
    ] {
        let opened = open_with(&url, &options).unwrap();
        assert_eq!(opened.kind, kind, "{url}");
        assert_eq!(opened.store.url(), shown);
        assert_eq!(opened.limit.is_some(), kind.is_remote());
        assert!(!format!("{opened:?}").contains("hunter2"), "{opened:?}");
    }
}

#[test]
fn bad_urls_and_options_are_invalid() {
    for url in [
        "",
        "ftp://h",
        "s3://",
        "s3://b?colour=red",
        "s3://b?concurrency=0",
        "gs://b?endpoint=x",
    ] {
        let e = open_with(url, &bare()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Invalid, "{url}: {e}");
    }
}

#[tokio::test]
async fn memory_stores_are_shared_and_prefixed() {
    let a = open("memory://open-test/x").unwrap();
    let b = open("memory://open-test").unwrap();
    a.put("k", vec!["v".into()], Put::Create).await.unwrap();
    let got = b.get("x/k", Get::default()).await.unwrap();
    assert_eq!(got.body.into_bytes().unwrap(), "v");
    assert_eq!(a.list("", None).await.unwrap().0[0].key, "k");
}

#[test]
fn stores_of_an_endpoint_share_its_limit() {
    let limit = |url: &str| open_with(url, &bare()).unwrap().limit.unwrap();
    let a = limit("s3://a?endpoint=http://127.0.0.1:7&concurrency=9");
    assert_eq!(a.cap(), 9);
    let b = limit("s3://b/p?endpoint=http://127.0.0.1:7&concurrency=11");
    assert_eq!((a.cap(), b.cap()), (11, 11));
    let other = limit("s3://b/p?endpoint=http://127.0.0.1:8&concurrency=12");
    assert_eq!((a.cap(), other.cap()), (11, 12));
}

#[test]
fn the_configuration_file_is_below_options_and_url() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let text = "[store.\"s3://cfg\"]\nendpoint = 'http://127.0.0.1:11'\nconcurrency = 21\n";
    std::fs::write(&path, text).unwrap();
    let environment = [("HYPERSLAB_CONFIG", path.to_str().unwrap())]
        .into_iter()
        .collect();
    let options = Options::new().with_environment(environment);
    let cap = |url: &str, options: &Options| open_with(url, options).unwrap().limit.unwrap().cap();
    assert_eq!(cap("s3://cfg/x", &options), 21);
    let options = options.with("concurrency", "22");
    assert_eq!(cap("s3://cfg/x", &options), 22);
    assert_eq!(cap("s3://cfg/x?concurrency=23", &options), 23);
}

#[test]
fn endpoints_are_named_after_server_and_bucket() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(
        &path,
        "[store.\"s3://cfg\"]\nendpoint = 'http://127.0.0.1:11/'\n",
    )
    .unwrap();
    let none: &[(&str, &str)] = &[];
    let set: &[(&str, &str)] = &[
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/"),
        ("AZURE_STORAGE_ACCOUNT", "acc"),
        ("HYPERSLAB_CONFIG", path.to_str().unwrap()),
    ];
    for (url, environment, name) in [
        ("s3://b/x/y", none, "https://s3.auto.amazonaws.com/b"),
        ("s3://b?region=r", none, "https://s3.r.amazonaws.com/b"),
        ("s3://b/x", set, "http://127.0.0.1:9000/b"),
        ("s3://cfg/x", set, "http://127.0.0.1:11/cfg"),
        ("s3://b/x?endpoint=http%3A%2F%2Fh:1", set, "http://h:1/b"),
        ("gs://b/x", none, "https://storage.googleapis.com/b"),
        ("az://c/x", set, "https://acc.blob.core.windows.net/c"),
        (
            "abfss://c@two.dfs.core.windows.net/x",
            set,
            "https://two.blob.core.windows.net/c",
        ),
        ("https://Host:8/x?sig=s3cret", none, "https://host:8"),
        ("memory://m/x", none, "memory"),
        ("file:///a/b", none, "local disk"),
        ("a/b c", none, "local disk"),
    ] {
        let options = Options::new().with_environment(environment.iter().copied().collect());
        assert_eq!(endpoint(url, &options).unwrap(), name, "{url}");
    }
    assert!(endpoint("ftp://h/x", &bare()).is_err());
}
