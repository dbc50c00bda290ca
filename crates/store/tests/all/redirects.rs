//! Servers that send a client elsewhere: their own other paths are followed, other servers are not.

use std::net::TcpListener;

use hyperslab_store::{Environment, Error, ErrorKind, Get, Options, Put, StoreRef, open_with};

use crate::server::{Request, Server, answer};

/// A socket that nobody should connect to.
struct Trap(TcpListener);

impl Trap {
    fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Trap(listener)
    }

    fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// The kernel takes connections in before anybody accepts them, so none is missed here.
    fn assert_empty(&self) {
        let error = self.0.accept().expect_err("somebody has connected");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

/// Every kind of remote store, all of them at `server`.
fn stores(server: &Server) -> Vec<StoreRef> {
    let open = |url: &str, pairs: &[(&str, &str)]| {
        let environment = pairs.iter().copied().collect();
        let options = Options::new().with_environment(environment);
        open_with(url, &options).unwrap().store
    };
    let url = server.url.as_str();
    vec![
        open(
            "s3://bucket/p",
            &[
                ("AWS_ACCESS_KEY_ID", "AKIA"),
                ("AWS_SECRET_ACCESS_KEY", "hunter2"),
                ("AWS_ENDPOINT_URL", url),
            ],
        ),
        open(
            "az://container/p",
            &[
                ("AZURE_STORAGE_ACCOUNT", "account"),
                ("AZURE_STORAGE_KEY", "aHVudGVyMg=="),
                ("AZURE_STORAGE_ENDPOINT", url),
            ],
        ),
        open("gs://bucket/p", &[("STORAGE_EMULATOR_HOST", url)]),
        open(&format!("{url}/p"), &[]),
    ]
}

/// What every operation of the store answers, but for those that a web server does not have.
async fn all_fail(store: &StoreRef) -> Vec<Error> {
    let web = store.url().starts_with("http");
    let mut errors = vec![
        store.get("k", Get::default()).await.unwrap_err(),
        store.head("k").await.unwrap_err(),
    ];
    if !web {
        let put = store.put("k", vec!["x".into()], Put::Overwrite).await;
        errors.push(put.unwrap_err());
        errors.push(store.list("", None).await.unwrap_err());
        errors.push(store.delete("k").await.unwrap_err());
    }
    errors
}

#[tokio::test]
async fn no_request_follows_a_redirect_to_another_server() {
    let trap = Trap::set();
    let elsewhere = trap.address();
    for status in [301, 302, 303, 307, 308] {
        let target = format!("http://{elsewhere}/bucket/k?X-Amz-Signature=s3cret");
        let moved = move |_, _: &Request| answer(status, "").with("Location", target.clone());
        let server = Server::start(moved).await;
        for store in stores(&server) {
            for error in all_fail(&store).await {
                let text = format!("{error:?} {error}");
                assert_eq!(error.kind(), ErrorKind::Invalid, "{status}: {text}");
                assert!(error.message().contains(&elsewhere), "{status}: {text}");
                assert!(error.hint().is_some(), "{status}: {text}");
                assert!(
                    !text.contains("s3cret") && !text.contains("hunter2"),
                    "{text}"
                );
            }
        }
    }
    trap.assert_empty();
}

#[tokio::test]
async fn a_path_of_the_same_server_is_followed() {
    let server = Server::start(|_, request| match request.target.as_str() {
        "/p/k" => answer(307, "").with("Location", "/new/k"),
        "/new/k" => answer(200, "there").with("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
        _ => answer(404, ""),
    })
    .await;
    let options = Options::new().with_environment(Environment::default());
    let opened = open_with(&format!("{}/p", server.url), &options).unwrap();
    let got = opened.store.get("k", Get::default()).await.unwrap();
    assert_eq!(got.body.into_bytes().unwrap(), "there");
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let server = Server::start(|_, _| answer(307, "").with("Location", "/p/k")).await;
    for store in stores(&server) {
        let before = server.requests().len();
        let error = store.get("k", Get::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.hint().is_some());
        assert!(server.requests().len() - before < 10);
    }
}
