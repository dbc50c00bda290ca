//! The binary as a child process: plain server, Cloud Run service, Azure custom handler.

use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hyperslab_function::{
    Answer, ErrorKind, FunctionClient, SIGNATURE_HEADER, Secret, SlabRequest, StridedRun, Unit,
    sign,
};
use serde_json::{Value, json};

pub(crate) const SECRET: &str = "a secret for the tests";

/// A folder with one object, which the function may read.
pub(crate) struct Data {
    dir: tempfile::TempDir,
}

impl Data {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("c0"), "0123456789").unwrap();
        Data { dir }
    }

    fn prefix(&self) -> String {
        format!("file://{}", self.dir.path().display())
    }

    pub(crate) fn request(&self, name: &str) -> SlabRequest {
        let run = StridedRun {
            start: 1,
            len: 2,
            step: 4,
            count: 2,
        };
        SlabRequest::new(
            format!("{}/{name}", self.prefix()),
            vec![Unit::raw(vec![run])],
        )
        .unwrap()
    }

    /// The binary with an allow-list and a secret, and nothing else of our environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hyperslab-function"));
        command
            .env_clear()
            .env("HYPERSLAB_FUNCTION_ALLOW", self.prefix())
            .env("HYPERSLAB_FUNCTION_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }
}

/// A child that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn client(url: &str, secret: &str) -> FunctionClient {
    FunctionClient::new(url, Some(Secret::new(secret).unwrap())).unwrap()
}

/// Asks until the server is there.
async fn ready(url: &str) {
    let (client, end) = (client(url, SECRET), soon());
    while let Err(error) = client.health(soon()).await {
        assert!(Instant::now() < end, "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn check(url: &str, data: &Data, max_answer: u64) {
    let good = client(url, SECRET);
    let health = good.health(soon()).await.unwrap();
    assert_eq!((health.version, health.limits.max_answer), (1, max_answer));
    let cells = good.call(&data.request("c0"), soon()).await.unwrap();
    assert_eq!(cells, "1256");
    let absent = good.call(&data.request("c1"), soon()).await.unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound, "{absent}");
    let pinned = data.request("c0").pinned(Some("\"other\"".into()));
    let changed = good.call(&pinned, soon()).await.unwrap_err();
    assert_eq!(changed.kind(), ErrorKind::Conflict, "{changed}");
    let outside = good.call(&data.request("../c0"), soon()).await.unwrap_err();
    assert_eq!(outside.kind(), ErrorKind::Denied, "{outside}");
    let stranger = client(url, "another secret, wrong");
    let refused = stranger
        .call(&data.request("c0"), soon())
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied, "{refused}");
    let lost = client(&format!("{url}/elsewhere/x"), SECRET);
    assert!(
        lost.call(&data.request("c0"), soon()).await.is_ok(),
        "any path before it"
    );
}

#[tokio::test]
async fn a_plain_server_prints_its_address_and_answers() {
    let data = Data::new();
    let mut child = Running(data.command().spawn().unwrap());
    let mut line = String::new();
    let out = child.0.stdout.take().unwrap();
    std::io::BufReader::new(out).read_line(&mut line).unwrap();
    let printed: Value = serde_json::from_str(&line).unwrap();
    let url = printed["listening"].as_str().unwrap();
    check(url, &data, 256 << 20).await;
    let web = reqwest::Client::new();
    let answer = web.get(format!("{url}/other")).send().await.unwrap();
    assert_eq!(answer.status(), 400);
}

#[tokio::test]
async fn cloud_run_gives_a_port() {
    let data = Data::new();
    let port = free_port();
    let child = data.command().env("PORT", port.to_string()).spawn();
    let _child = Running(child.unwrap());
    let url = format!("http://127.0.0.1:{port}");
    ready(&url).await;
    check(&url, &data, 32 << 20).await;
}

#[tokio::test]
async fn azure_forwards_requests_or_wraps_them() {
    let data = Data::new();
    let port = free_port();
    let child = data
        .command()
        .env("FUNCTIONS_CUSTOMHANDLER_PORT", port.to_string())
        .spawn();
    let _child = Running(child.unwrap());
    let url = format!("http://127.0.0.1:{port}");
    ready(&url).await;
    check(&format!("{url}/api"), &data, 100 << 20).await;

    let body = String::from_utf8(data.request("c0").to_bytes().unwrap()).unwrap();
    let expires = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs()
        + 60;
    let signature = sign(&Secret::new(SECRET).unwrap(), body.as_bytes(), expires);
    let wrapped = |signature: &str| {
        json!({
            "Data": {"req": {
                "Url": "https://app.example/api/slab", "Method": "POST", "Query": {},
                "Headers": {"X-Hyperslab-Signature": [signature]}, "Params": {}, "Body": body,
            }},
            "Metadata": {"sys": {"MethodName": "slab"}},
        })
    };
    assert_eq!(SIGNATURE_HEADER, "x-hyperslab-signature");
    let web = reqwest::Client::new();
    let post = |envelope: Value| {
        let call = web
            .post(format!("{url}/slab"))
            .body(envelope.to_string())
            .send();
        async {
            serde_json::from_slice::<Value>(&call.await.unwrap().bytes().await.unwrap()).unwrap()
        }
    };
    let answer = post(wrapped(&signature)).await;
    let res = &answer["Outputs"]["res"];
    assert_eq!(res["statusCode"], 200, "{answer}");
    assert_eq!(res["headers"]["x-hyperslab-encoding"], "base64");
    let text = res["body"].as_str().unwrap();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap();
    assert_eq!(Answer::parse(bytes.into(), 4).unwrap(), "1256");
    let answer = post(wrapped("v1;expires=1;hmac=00")).await;
    assert_eq!(answer["Outputs"]["res"]["statusCode"], 401, "{answer}");
}

#[test]
fn it_does_not_start_open_or_blind() {
    let data = Data::new();
    let fails = |command: &mut Command, word: &str| {
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word), "{said}");
        assert!(!said.contains(SECRET), "{said}");
    };
    let unsigned = || {
        let mut command = data.command();
        command.env_remove("HYPERSLAB_FUNCTION_SECRET");
        command
    };
    fails(&mut unsigned(), "no secret");
    let everywhere = ["--no-signature", "--listen", "0.0.0.0:0"];
    fails(unsigned().args(everywhere), "loopback");
    fails(
        unsigned().arg("--no-signature").env("PORT", "1"),
        "loopback",
    );
    let azure = "FUNCTIONS_CUSTOMHANDLER_PORT";
    fails(unsigned().arg("--no-signature").env(azure, "1"), "loopback");
    fails(
        data.command().env_remove("HYPERSLAB_FUNCTION_ALLOW"),
        "nothing",
    );
    fails(
        data.command().env("HYPERSLAB_FUNCTION_ALLOW", "s3://"),
        "allow-list",
    );
    fails(
        data.command().env("HYPERSLAB_FUNCTION_SECRET", "short"),
        "16",
    );
    fails(
        data.command().env("HYPERSLAB_FUNCTION_MAX_ANSWER", "-1"),
        "MAX_ANSWER",
    );
    fails(data.command().arg("--verbose"), "--verbose");
}

#[tokio::test]
async fn without_signatures_only_on_loopback() {
    let data = Data::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{SECRET}\n")).unwrap();
    for (with_file, secret) in [(false, None), (true, Some(Secret::new(SECRET).unwrap()))] {
        let mut command = data.command();
        command.env_remove("HYPERSLAB_FUNCTION_SECRET");
        match with_file {
            true => command.env("HYPERSLAB_FUNCTION_SECRET_FILE", file.path()),
            false => command.arg("--no-signature"),
        };
        let mut child = Running(command.spawn().unwrap());
        let mut line = String::new();
        let out = child.0.stdout.take().unwrap();
        std::io::BufReader::new(out).read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap();
        let client = FunctionClient::new(printed["listening"].as_str().unwrap(), secret).unwrap();
        let cells = client.call(&data.request("c0"), soon()).await.unwrap();
        assert_eq!(cells, "1256");
    }
}
