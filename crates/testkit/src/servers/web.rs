//! A plain web server in front of a folder: Python's own, which knows no byte ranges.

use std::path::{Path, PathBuf};

use super::{Child, Unavailable};
use crate::Outcome;

/// A web server that serves a folder, read only.
#[derive(Debug)]
pub struct WebServer {
    child: Child,
}

impl WebServer {
    /// Serves `folder`.
    pub fn start(folder: &Path) -> Result<Self, Unavailable> {
        let python = python().ok_or_else(|| Unavailable::Missing("python3 is not there".into()))?;
        Self::serve(&python, folder).map_err(Unavailable::Broken)
    }

    fn serve(python: &Path, folder: &Path) -> Outcome<Self> {
        let folder = folder.to_string_lossy().into_owned();
        let child = Child::start(python, |port, _| {
            [
                "-m",
                "http.server",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--directory",
                &folder,
            ]
            .map(str::to_owned)
            .into()
        })?;
        Ok(WebServer { child })
    }

    /// Its address, such as `http://127.0.0.1:4711`.
    pub fn url(&self) -> String {
        self.child.endpoint()
    }

    /// How often it has sent the file at `path`, as opposed to saying that it is the same.
    pub fn sent(&self, path: &str) -> usize {
        let line = format!("\"GET {path} HTTP/1.1\" 200");
        self.child.whole_log().matches(&line).count()
    }
}

/// Python from the search path.
fn python() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join("python3"))
        .find(|file| file.is_file())
}
