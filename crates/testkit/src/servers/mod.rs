//! Places to store arrays in: memory, local disk, and real servers on free ports of the loopback.
//!
//! Between the suites and the stores. Every server is a child of this process or runs inside it,
//! listens on 127.0.0.1 only, keeps its log in a folder of its own and ends with its [`Place`].
//!
//! Invariant: only processes started here are ended here, by their handle.

mod azurite;
mod child;
mod moto;
mod place;
mod sim;
mod web;

pub use child::Child;
pub use place::Place;
pub use sim::SimPlace;
pub use web::WebServer;

use std::path::PathBuf;

use crate::Failure;

/// Why a server is not running.
#[derive(Debug)]
pub enum Unavailable {
    /// Its program is not installed.
    Missing(String),
    /// It is installed but did not come up.
    Broken(Failure),
}

/// A place whose program may be missing: `None`, with a loud message, where that is allowed.
///
/// It is not allowed where `CI` or `HYPERSLAB_REQUIRE_SERVERS` is set: there a missing server is a
/// failure like any other. A server that is installed but does not come up always is one.
pub fn required<T>(name: &str, started: Result<T, Unavailable>) -> crate::Outcome<Option<T>> {
    match started {
        Ok(server) => Ok(Some(server)),
        Err(Unavailable::Broken(failure)) => Err(failure.within(name)),
        Err(Unavailable::Missing(what)) if must_run() => Err(Failure::new(format!(
            "{name} must run here but {what}; run scripts/setup test"
        ))),
        Err(Unavailable::Missing(what)) => {
            eprintln!("\n*** SKIPPED: {name} is not tested, {what}; run scripts/setup test ***\n");
            Ok(None)
        }
    }
}

fn must_run() -> bool {
    ["CI", "HYPERSLAB_REQUIRE_SERVERS"].iter().any(|name| {
        std::env::var(name).is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
    })
}

/// A program that `scripts/setup` puts into the tree.
fn tool(path: &str) -> Result<PathBuf, Unavailable> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join(path);
    match program.exists() {
        true => Ok(program),
        false => Err(Unavailable::Missing(format!("{path} is not there"))),
    }
}
