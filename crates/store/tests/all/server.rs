//! A scripted HTTP/1.1 server on loopback: one closure answers every request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query, still percent-encoded.
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What to answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Send only so many bytes of the body, then close.
    pub(crate) cut_at: Option<usize>,
}

pub(crate) fn answer(status: u16, body: impl Into<Vec<u8>>) -> Answer {
    Answer {
        status,
        headers: Vec::new(),
        body: body.into(),
        cut_at: None,
    }
}

impl Answer {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// An S3 object as S3 would send it.
    pub(crate) fn object(body: &str) -> Self {
        answer(200, body)
            .with("ETag", "\"e\"")
            .with("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
    }

    /// An S3 error document.
    pub(crate) fn error(status: u16, code: &str) -> Self {
        let key = "AKIASECRET";
        answer(
            status,
            format!("<Error><Code>{code}</Code><AWSAccessKeyId>{key}</AWSAccessKeyId></Error>"),
        )
    }
}

type Script = dyn Fn(usize, &Request) -> Answer + Send + Sync;

/// The server's address, and what it was asked.
pub(crate) struct Server {
    pub(crate) url: String,
    log: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server that answers its n-th request (from 0) by `script`.
    pub(crate) async fn start(
        script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let (script, seen): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&log));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                tokio::spawn(async move {
                    let _ = serve(stream, &*script, &seen).await;
                });
            }
        });
        Server { url, log }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }
}

async fn serve(
    stream: TcpStream,
    script: &Script,
    log: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let mut words = line.split_whitespace();
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let (method, target) = (method.to_owned(), target.to_owned());
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.trim().split_once(':') else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers
            .get("content-length")
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let request = Request {
            method,
            target,
            headers,
            body,
        };
        let number = {
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            log.len() - 1
        };
        let answer = script(number, &request);
        let mut head = format!("HTTP/1.1 {} x\r\n", answer.status);
        head += &format!("Content-Length: {}\r\n", answer.body.len());
        for (name, value) in &answer.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        stream.write_all(head.as_bytes()).await?;
        if request.method != "HEAD" && answer.status != 304 {
            stream
                .write_all(&answer.body[..answer.cut_at.unwrap_or(answer.body.len())])
                .await?;
        }
        stream.flush().await?;
        if answer.cut_at.is_some() {
            return Ok(());
        }
    }
}
