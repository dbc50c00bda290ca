//! A server process: started on a free port, awaited, and ended with its handle.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::{Failure, Outcome};

/// How long a server may take until it answers; Python and Node are slow on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is asked.
const PERIOD: Duration = Duration::from_millis(50);

/// A running server process.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    port: u16,
    /// Its log and its data.
    folder: TempDir,
}

impl Child {
    /// Starts `program` with the arguments that `arguments` makes of a free port and a folder, and
    /// waits until the server answers HTTP requests.
    pub fn start(
        program: &Path,
        arguments: impl FnOnce(u16, &Path) -> Vec<String>,
    ) -> Outcome<Child> {
        let folder = tempfile::tempdir()?;
        let port = free_port()?;
        let log = File::create(log_path(folder.path()))?;
        let process = Command::new(program)
            .args(arguments(port, folder.path()))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|e| Failure::new(format!("{} cannot be started: {e}", program.display())))?;
        let mut child = Child {
            process,
            port,
            folder,
        };
        child.wait_until_it_answers()?;
        Ok(child)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its address, such as `http://127.0.0.1:4711`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All that it has said.
    pub(super) fn whole_log(&self) -> String {
        std::fs::read_to_string(log_path(self.folder.path())).unwrap_or_default()
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let text = self.whole_log();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Sends a request without a body and returns the status.
    pub fn request(&self, method: &str, target: &str) -> Outcome<u16> {
        request(self.port, method, target)
    }

    fn wait_until_it_answers(&mut self) -> Outcome {
        let start = Instant::now();
        loop {
            if self.request("GET", "/").is_ok() {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                let log = self.log();
                return Err(Failure::new(format!(
                    "the server ended at once ({status}):\n{log}"
                )));
            }
            if start.elapsed() > PATIENCE {
                let log = self.log();
                return Err(Failure::new(format!("the server does not answer:\n{log}")));
            }
            std::thread::sleep(PERIOD);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of the server on port {}:\n{}", self.port, self.log());
        }
        // It may have ended by itself; there is nothing to do about that here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join("server.log")
}

/// A port that nobody listens on now.
fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

/// A request without a body to the loopback; the status of the answer.
fn request(port: u16, method: &str, target: &str) -> Outcome<u16> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let text = format!(
        "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(text.as_bytes())?;
    let mut start = Vec::new();
    stream.take(256).read_to_end(&mut start)?;
    let start = String::from_utf8_lossy(&start);
    let status = start
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5)?.parse().ok());
    status.ok_or_else(|| Failure::new(format!("the answer is not HTTP: {start:?}")))
}
