//! The remote path against a scripted server: names on the wire, retries, errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyperslab_store::{
    Environment, Error, ErrorKind, Get, GetRange, Opened, Options, Put, open_with,
};

use crate::server::{Answer, Request, Server, answer};

fn s3(server: &Server, query: &str) -> Opened {
    let environment = [
        ("AWS_ACCESS_KEY_ID", "AKIASECRET"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ("AWS_ENDPOINT_URL", server.url.as_str()),
    ];
    let options = Options::new().with_environment(environment.into_iter().collect());
    open_with(&format!("s3://bucket/pre fix{query}"), &options).unwrap()
}

fn web(server: &Server, path: &str) -> Opened {
    let options = Options::new().with_environment(Environment::default());
    open_with(&format!("{}{path}", server.url), &options).unwrap()
}

fn no_secrets(e: &Error) {
    let text = format!("{e:?} {e}");
    for secret in ["hunter2", "AKIASECRET", "Signature=", "X-Amz"] {
        assert!(!text.contains(secret), "{text}");
    }
}

fn range(range: std::ops::Range<u64>) -> Get {
    Get {
        range: Some(GetRange::Bounded(range)),
        ..Get::default()
    }
}

/// Answers reads of "0123456789" with ranges as S3 does.
fn digits(request: &Request) -> Answer {
    let all = "0123456789";
    let object = |body: &str| Answer::object(body);
    let Some(range) = request.headers.get("range") else {
        return object(all);
    };
    let (from, to) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    let (from, to) = match (from, to) {
        ("", n) => (10usize.saturating_sub(n.parse().unwrap()), 10),
        (from, to) => (from.parse().unwrap(), to.parse::<usize>().unwrap() + 1),
    };
    if from >= 10 {
        return Answer::error(416, "InvalidRange");
    }
    let mut part = object(&all[from..to.min(10)]);
    part.status = 206;
    part.with(
        "Content-Range",
        format!("bytes {from}-{}/10", to.min(10) - 1),
    )
}

#[tokio::test]
async fn names_are_encoded_exactly_once() {
    let server = Server::start(|_, _| Answer::object("")).await;
    let store = s3(&server, "").store;
    for key in ["a b", "ü", "100%", "%20", "a#b?c", "a+b&c=d"] {
        store
            .put(key, vec!["x".into()], Put::Overwrite)
            .await
            .unwrap();
    }
    assert!(server.requests().iter().all(|request| request.body == b"x"));
    let targets: Vec<_> = server.requests().into_iter().map(|r| r.target).collect();
    assert_eq!(
        targets,
        [
            "/bucket/pre%20fix/a%20b",
            "/bucket/pre%20fix/%C3%BC",
            "/bucket/pre%20fix/100%25",
            "/bucket/pre%20fix/%2520",
            "/bucket/pre%20fix/a%23b%3Fc",
            "/bucket/pre%20fix/a%2Bb%26c%3Dd",
        ]
    );
}

#[tokio::test]
async fn options_reach_the_wire() {
    let server = Server::start(|_, _| Answer::object("")).await;
    s3(&server, "")
        .store
        .put("k", vec![], Put::Create)
        .await
        .unwrap();
    s3(&server, "?anonymous=true")
        .store
        .get("k", Get::default())
        .await
        .unwrap();
    s3(&server, "?request_payer=requester")
        .store
        .get("k", Get::default())
        .await
        .unwrap();
    s3(&server, "?unsigned_payload=true")
        .store
        .put("k", vec!["x".into()], Put::Overwrite)
        .await
        .unwrap();
    let etag = "\"tag\"".to_owned();
    s3(&server, "?region=eu-x-1")
        .store
        .put("k", vec![], Put::Update(etag))
        .await
        .unwrap();
    let seen = server.requests();
    let header = |i: usize, name: &str| seen[i].headers.get(name).map(String::as_str);
    assert!(header(0, "authorization").unwrap().contains("AKIASECRET"));
    assert!(
        header(0, "authorization")
            .unwrap()
            .contains("/us-east-1/s3/")
    );
    assert_eq!(header(0, "if-none-match"), Some("*"));
    assert_eq!(header(1, "authorization"), None);
    assert_eq!(header(2, "x-amz-request-payer"), Some("requester"));
    assert_eq!(header(3, "x-amz-content-sha256"), Some("UNSIGNED-PAYLOAD"));
    assert!(header(4, "authorization").unwrap().contains("/eu-x-1/s3/"));
    assert_eq!(header(4, "if-match"), Some("\"tag\""));
}

#[tokio::test]
async fn ranges_are_checked_against_the_object() {
    let server = Server::start(|_, request| digits(request)).await;
    let store = s3(&server, "").store;
    let read = |get: Get| async {
        let got = store.get("k", get).await?;
        assert_eq!(got.meta.size, 10);
        Ok::<_, Error>(String::from_utf8_lossy(&got.body.into_bytes()?).into_owned())
    };
    let suffix = |n| Get {
        range: Some(GetRange::Suffix(n)),
        ..Get::default()
    };
    assert_eq!(read(Get::default()).await.unwrap(), "0123456789");
    assert_eq!(read(range(2..5)).await.unwrap(), "234");
    assert_eq!(read(suffix(4)).await.unwrap(), "6789");
    assert_eq!(read(suffix(40)).await.unwrap(), "0123456789");
    assert_eq!(read(range(5..5)).await.unwrap(), "");
    assert_eq!(read(suffix(0)).await.unwrap(), "");
    for past in [5..11, 10..12, 50..60, 11..11] {
        assert_eq!(read(range(past)).await.unwrap_err().kind(), ErrorKind::Data);
    }
}

#[tokio::test]
async fn a_suffix_of_an_empty_object_is_empty() {
    // S3 answers 416, other servers the whole of nothing.
    for status in [416, 200] {
        let server = Server::start(move |_, request| match (request.method.as_str(), status) {
            ("GET", 416) => Answer::error(416, "InvalidRange"),
            _ => Answer::object(""),
        })
        .await;
        let get = Get {
            range: Some(GetRange::Suffix(8)),
            ..Get::default()
        };
        let got = s3(&server, "").store.get("k", get).await.unwrap();
        assert_eq!((got.range, got.body.len()), (0..0, 0));
    }
}

#[tokio::test]
async fn outages_and_cut_bodies_are_retried_and_metered() {
    let server = Server::start(|number, request| match number {
        0 => Answer::error(503, "SlowDown").with("Retry-After", "0"),
        1 => Answer {
            cut_at: Some(4),
            ..digits(request)
        },
        2 => answer(500, "not xml"),
        _ => digits(request),
    })
    .await;
    let opened = s3(&server, "");
    let got = opened.store.get("k", Get::default()).await.unwrap();
    assert_eq!(got.body.into_bytes().unwrap(), "0123456789");
    let seen = opened.meter.snapshot();
    assert_eq!((seen.total(), seen.retries, seen.errors), (4, 3, 3));
    assert_eq!(seen.bytes_in, 10);
    // Three refusals, one after another, halve 256 three times.
    assert!(opened.limit.unwrap().current() <= 32);
}

#[tokio::test]
async fn retry_after_reaches_the_retry() {
    let server = Server::start(|number, _| match number {
        0 => Answer::error(429, "TooMany").with("Retry-After", "600"),
        _ => Answer::object(""),
    })
    .await;
    // Ten minutes are beyond the deadline: the error comes at once instead.
    let e = s3(&server, "?deadline=10s")
        .store
        .get("k", Get::default())
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unavailable);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn failures_have_their_kind_and_no_secret() {
    for (status, code, kind, word) in [
        (
            404,
            "NoSuchKey",
            ErrorKind::NotFound,
            "s3://bucket/pre fix/k does not exist",
        ),
        (
            404,
            "NoSuchBucket",
            ErrorKind::Invalid,
            "the bucket s3://bucket does not exist",
        ),
        (403, "AccessDenied", ErrorKind::Denied, "may not list"),
        (
            403,
            "SignatureDoesNotMatch",
            ErrorKind::Denied,
            "secret key is wrong",
        ),
        (403, "RequestTimeTooSkewed", ErrorKind::Denied, "clock"),
        (400, "ExpiredToken", ErrorKind::Denied, "expired"),
        (
            412,
            "PreconditionFailed",
            ErrorKind::Conflict,
            "has changed",
        ),
        (503, "SlowDown", ErrorKind::Unavailable, "SlowDown"),
    ] {
        let server = Server::start(move |_, _| Answer::error(status, code)).await;
        let e = s3(&server, "?retries=0")
            .store
            .get("k", Get::default())
            .await
            .unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.to_string().contains(word), "{e}");
        no_secrets(&e);
    }
}

#[tokio::test]
async fn a_wrong_region_is_told_with_the_right_one() {
    let moved = |_, _: &Request| {
        Answer::error(301, "PermanentRedirect").with("x-amz-bucket-region", "eu-west-1")
    };
    let server = Server::start(moved).await;
    let e = s3(&server, "")
        .store
        .get("k", Get::default())
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Invalid);
    assert!(e.to_string().contains("?region=eu-west-1"), "{e}");
}

#[tokio::test]
async fn a_head_tells_a_missing_bucket_from_a_missing_key() {
    for (code, kind) in [
        ("NoSuchBucket", ErrorKind::Invalid),
        ("NoSuchKey", ErrorKind::NotFound),
    ] {
        let server = Server::start(move |_, _| Answer::error(404, code)).await;
        let store = s3(&server, "").store;
        assert_eq!(store.head("k").await.unwrap_err().kind(), kind);
        assert_eq!(server.requests().len(), 2);
        store.head("k").await.unwrap_err();
        let again = if kind == ErrorKind::NotFound { 3 } else { 4 };
        assert_eq!(
            server.requests().len(),
            again,
            "a bucket seen is not asked for again"
        );
    }
}

#[tokio::test]
async fn unreachable_and_silent_servers_are_unavailable() {
    let server = Server::start(|_, _| {
        std::thread::sleep(Duration::from_millis(1500));
        Answer::object("")
    })
    .await;
    let e = s3(&server, "?retries=0&timeout=200ms")
        .store
        .head("k")
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unavailable);
    assert!(e.message().contains("timed out"), "{e}");

    let options = Options::new().with_environment(Environment::default());
    // Port 1 of loopback: nothing listens there.
    let url = "s3://b?endpoint=http://127.0.0.1:1&anonymous=true&retries=0";
    let e = open_with(url, &options)
        .unwrap()
        .store
        .head("k")
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unavailable);
    assert!(e.message().contains("cannot be reached"), "{e}");
}

#[tokio::test]
async fn missing_credentials_are_denied_with_a_hint() {
    let server = Server::start(|_, _| Answer::object("")).await;
    let environment = [
        ("AWS_ENDPOINT_URL", server.url.as_str()),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    let options = Options::new().with_environment(environment.into_iter().collect());
    let e = open_with("s3://b", &options)
        .unwrap()
        .store
        .head("k")
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Denied);
    assert!(e.hint().unwrap().contains("AWS_ACCESS_KEY_ID"), "{e}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn credential_helpers_of_a_profile_sign_requests() {
    let server = Server::start(|_, _| Answer::object("")).await;
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    let json = r#"{\"Version\":1,\"AccessKeyId\":\"FROMHELPER\",\"SecretAccessKey\":\"s\"}"#;
    let text = format!(
        "[profile lab]\nendpoint_url = {}\nregion = lab-1\ncredential_process = echo \"{json}\"\n",
        server.url
    );
    std::fs::write(&config, text).unwrap();
    let environment = [
        ("AWS_CONFIG_FILE", config.to_str().unwrap()),
        ("AWS_PROFILE", "lab"),
    ];
    let options = Options::new().with_environment(environment.into_iter().collect());
    open_with("s3://b", &options)
        .unwrap()
        .store
        .get("k", Get::default())
        .await
        .unwrap();
    let authorization = server.requests()[0].headers["authorization"].clone();
    assert!(authorization.contains("FROMHELPER/"), "{authorization}");
    assert!(authorization.contains("/lab-1/s3/"), "{authorization}");
}

#[tokio::test]
async fn lists_come_in_pages_without_directory_markers() {
    let item = |key: &str| {
        format!(
            "<Contents><Key>{key}</Key><Size>1</Size><ETag>\"e\"</ETag>\
             <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        )
    };
    let server = Server::start(move |_, request| {
        let body = if request.target.contains("delimiter") {
            let dir = "<CommonPrefixes><Prefix>pre fix/d/sub/</Prefix></CommonPrefixes>";
            format!("<R>{}{}{dir}</R>", item("pre fix/d/"), item("pre fix/d/x"))
        } else if request.target.contains("continuation-token=t2") {
            format!("<R>{}</R>", item("pre fix/d/b c"))
        } else {
            let next = "<NextContinuationToken>t2</NextContinuationToken>";
            format!(
                "<R>{}{}{next}</R>",
                item("pre fix/d/"),
                item("pre fix/d/a%20")
            )
        };
        answer(200, body)
    })
    .await;
    let store = s3(&server, "").store;
    let (first, token) = store.list("d", None).await.unwrap();
    assert_eq!(
        first.iter().map(|e| &*e.key).collect::<Vec<_>>(),
        ["d/a%20"]
    );
    let (second, end) = store.list("d", token).await.unwrap();
    assert_eq!(
        second.iter().map(|e| &*e.key).collect::<Vec<_>>(),
        ["d/b c"]
    );
    assert_eq!(end, None);
    let listing = store.list_dir("d").await.unwrap();
    assert_eq!(listing.dirs, ["sub"]);
    assert_eq!(
        listing.objects.iter().map(|e| &*e.key).collect::<Vec<_>>(),
        ["d/x"]
    );
    assert!(
        server.requests()[0]
            .target
            .contains("prefix=pre+fix%2Fd%2F")
            || server.requests()[0]
                .target
                .contains("prefix=pre%20fix%2Fd%2F")
    );
}

#[tokio::test]
async fn web_servers_are_read_only_and_keep_their_query() {
    let server = Server::start(|_, request| match request.method.as_str() {
        "PROPFIND" => answer(405, ""),
        _ => digits(request),
    })
    .await;
    let store = web(&server, "/a%20b?sig=hunter2&retries=1").store;
    assert!(!store.url().contains("hunter2"));
    let got = store.get("c d", range(1..3)).await.unwrap();
    assert_eq!(got.body.into_bytes().unwrap(), "12");
    assert_eq!(server.requests()[0].target, "/a%20b/c%20d?sig=hunter2");
    for e in [
        store.put("k", vec![], Put::Overwrite).await.unwrap_err(),
        store.delete("k").await.unwrap_err(),
        store.list("", None).await.unwrap_err(),
        store.list_dir("x").await.unwrap_err(),
    ] {
        assert_eq!(e.kind(), ErrorKind::Invalid);
        no_secrets(&e);
    }
}

#[tokio::test]
async fn web_servers_without_ranges_are_read_whole() {
    let server = Server::start(|_, request| match request.method.as_str() {
        "PROPFIND" => answer(404, ""),
        _ => answer(200, "0123456789"),
    })
    .await;
    let store = web(&server, "").store;
    for _ in 0..2 {
        let got = store.get("k", range(2..5)).await.unwrap();
        assert_eq!((got.range, got.meta.size), (2..5, 10));
        assert_eq!(got.body.into_bytes().unwrap(), "234");
    }
    assert_eq!(server.requests().len(), 3, "the second read knows better");
    assert_eq!(
        store.get("k", range(2..50)).await.unwrap_err().kind(),
        ErrorKind::Data
    );
    assert_eq!(
        store.list("", None).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

/// Objects that change on servers without ETags, which heed conditions on time or overlook them.
#[tokio::test]
async fn changes_are_noticed_without_etags() {
    for heeds in [true, false] {
        let changed = Arc::new(AtomicBool::new(false));
        let now = Arc::clone(&changed);
        let server = Server::start(move |_, request| {
            let old = "Thu, 01 Jan 2026 00:00:00 GMT";
            let since = |name: &str| request.headers.get(name).map(String::as_str) == Some(old);
            let changed = now.load(Ordering::Relaxed);
            if heeds && changed && since("if-unmodified-since") {
                return answer(412, "");
            }
            if heeds && !changed && since("if-modified-since") {
                return answer(304, "");
            }
            let mut sent = digits(request);
            sent.headers.retain(|(name, _)| *name == "Content-Range");
            sent.with(
                "Last-Modified",
                if changed {
                    "Thu, 01 Jan 2026 00:00:01 GMT"
                } else {
                    old
                },
            )
        })
        .await;
        let store = web(&server, "").store;
        let tag = store.get("k", range(2..5)).await.unwrap().meta.etag;
        assert!(tag.is_some());
        let pinned = || Get {
            if_match: tag.clone(),
            ..range(1..4)
        };
        let got = store.get("k", pinned()).await.unwrap();
        assert_eq!(got.meta.etag, tag);
        assert_eq!(got.body.into_bytes().unwrap(), "123");
        let known = || Get {
            if_none_match: tag.clone(),
            ..Get::default()
        };
        assert_eq!(store.get("k", known()).await.unwrap().not_modified, heeds);
        changed.store(true, Ordering::Relaxed);
        let error = store.get("k", pinned()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let got = store.get("k", known()).await.unwrap();
        assert!(!got.not_modified && got.meta.etag != tag);
    }
}

#[tokio::test]
async fn azure_suffixes_are_pinned_ranges() {
    let server = Server::start(|_, request| digits(request)).await;
    let endpoint = format!("{}/acc", server.url);
    let options = Options::new()
        .with_environment(Environment::default())
        .with("account", "acc")
        .with("account_key", "a2V5")
        .with("endpoint", &endpoint);
    let store = open_with("az://box/p", &options).unwrap().store;
    let get = Get {
        range: Some(GetRange::Suffix(3)),
        ..Get::default()
    };
    let got = store.get("k", get).await.unwrap();
    assert_eq!(
        (got.range, got.body.into_bytes().unwrap()),
        (7..10, "789".into())
    );
    let seen = server.requests();
    assert_eq!((&*seen[0].method, &*seen[1].method), ("HEAD", "GET"));
    assert_eq!(seen[1].target, "/acc/box/p/k");
    assert_eq!(seen[1].headers["if-match"], "\"e\"");
}

#[tokio::test]
async fn google_updates_compare_generations() {
    let server = Server::start(|_, request| match request.method.as_str() {
        "HEAD" => Answer::object("x").with("x-goog-generation", "77"),
        _ => Answer::object(""),
    })
    .await;
    let options = Options::new().with_environment(
        [("STORAGE_EMULATOR_HOST", server.url.as_str())]
            .into_iter()
            .collect(),
    );
    let store = open_with("gs://bucket", &options).unwrap().store;
    store
        .put("k", vec!["y".into()], Put::Update("\"e\"".into()))
        .await
        .unwrap();
    assert_eq!(
        server.requests()[1].headers["x-goog-if-generation-match"],
        "77"
    );
    let e = store
        .put("k", vec!["y".into()], Put::Update("\"old\"".into()))
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    store.put("k", vec!["y".into()], Put::Create).await.unwrap();
    assert_eq!(
        server.requests().last().unwrap().headers["x-goog-if-generation-match"],
        "0"
    );
}
