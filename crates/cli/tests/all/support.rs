//! Starts the program and looks at what it did.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hyperslab_sim::{Sim, SimConfig};
use serde_json::Value;

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) bytes: Vec<u8>,
}

impl Run {
    /// The run must have ended well; its standard output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// The run must have ended well and printed JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"))
    }

    /// The run must have failed with this code, one sentence and at most one hint.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        let lines: Vec<&str> = self.err.lines().collect();
        assert!(matches!(lines.len(), 1 | 2), "{}", self.err);
        assert!(lines[0].starts_with("error: "), "{}", self.err);
        assert!(
            lines.get(1).is_none_or(|line| line.starts_with("hint: ")),
            "{}",
            self.err
        );
        assert_eq!(self.out, "", "a failure prints no result");
        self.err
    }
}

/// A folder, and the environment that the program runs in there.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Place {
            dir: tempfile::tempdir().unwrap(),
            env: Vec::new(),
        }
    }

    /// A place whose environment leads to a simulated cloud.
    pub(crate) fn near(sim: &Sim) -> Self {
        Place {
            dir: tempfile::tempdir().unwrap(),
            env: sim.env(),
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The program, ready to run in this place and nothing else's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hyperslab"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env("HOME", self.dir.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let output = self.command(arguments).output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            bytes: output.stdout,
        }
    }

    /// Names of all files below the place, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        fn walk(dir: &Path, base: &Path, out: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => walk(&path, base, out),
                    false => out.push(path.strip_prefix(base).unwrap().display().to_string()),
                }
            }
        }
        let mut out = Vec::new();
        walk(self.dir.path(), self.dir.path(), &mut out);
        out.sort();
        out
    }
}

/// A simulated cloud with the bucket `data`.
pub(crate) fn cloud() -> Sim {
    cloud_with(SimConfig::default())
}

pub(crate) fn cloud_with(config: SimConfig) -> Sim {
    Sim::start_in_thread(SimConfig {
        buckets: vec!["data".into()],
        ..config
    })
    .unwrap()
}

/// A `.npy` file of version 1, as NumPy writes it.
pub(crate) fn npy(descr: &str, fortran: bool, shape: &str, cells: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let mut text = format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}");
    while !(10 + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&u16::try_from(text.len()).unwrap().to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(cells);
    out
}

/// The cells of a `.npy` file, and its header as text.
pub(crate) fn npy_parts(file: &[u8]) -> (String, Vec<u8>) {
    assert_eq!(&file[..6], b"\x93NUMPY");
    let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
    let header = String::from_utf8_lossy(&file[10..10 + length])
        .trim()
        .to_owned();
    (header, file[10 + length..].to_vec())
}

/// Little-endian int32 cells 0, 1, 2…
pub(crate) fn counting(many: i32) -> Vec<u8> {
    (0..many).flat_map(i32::to_le_bytes).collect()
}

/// Little-endian int32 cells.
pub(crate) fn ints(cells: &[i32]) -> Vec<u8> {
    cells.iter().flat_map(|cell| cell.to_le_bytes()).collect()
}
